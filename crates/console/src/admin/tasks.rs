//! What became of calls. A caller sees its own tasks; whoever may read the audit trail sees everybody's.

use rialto_engine::{Following, Request};
use rialto_model::{
    call::{Caller, Door, Target},
    event::Recorded,
    failure::{Failure, Kind},
    ids::{AgentId, SkillId, TaskId},
    json::Json,
    message::{Artifact, Message, Part},
    rights::Right,
    store::TaskFilter,
    task::{Task, TaskHead, TaskState},
};
use serde::Serialize;

use super::page_size;
use crate::{Console, console::store_failure};

/// Which tasks to list, newest first.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Only this agent's: by slug, id, URL or name.
    pub agent: Option<String>,
    /// Only in this state.
    pub state: Option<TaskState>,
    /// Only those that are not over.
    pub open: bool,
    /// Only those of whoever asks, also where it may see others'.
    pub own: bool,
    /// At most so many.
    pub limit: Option<usize>,
    /// Only those older than this one.
    pub cursor: Option<TaskId>,
}

/// One page of tasks.
#[derive(Clone, Debug)]
pub struct Page {
    /// Those of this page.
    pub tasks: Vec<TaskHead>,
    /// Where the next page begins.
    pub next: Option<TaskId>,
}

/// A task for programs. A type of its own, because on the way through a `Value` numbers lose digits.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskJson<'a> {
    task_id: &'a TaskId,
    state: TaskState,
    agent_id: &'a AgentId,
    agent_url: &'a str,
    skill_id: Option<&'a SkillId>,
    remote_task_id: Option<&'a str>,
    context_id: Option<&'a str>,
    message: Option<&'a Message>,
    artifacts: &'a [Artifact],
    failure: Option<&'a Failure>,
    args: &'a Json,
    created_at: jiff::Timestamp,
    updated_at: jiff::Timestamp,
}

// === impl TaskJson ===

impl<'a> TaskJson<'a> {
    /// All that is known of a task.
    pub fn of(task: &'a Task) -> Self {
        let head = &task.head;
        Self {
            task_id: &head.id,
            state: head.state,
            agent_id: &head.agent,
            agent_url: &head.agent_url,
            skill_id: head.skill.as_ref(),
            remote_task_id: head.remote.task_id.as_deref(),
            context_id: head.remote.context_id.as_deref(),
            message: task.message.as_ref(),
            artifacts: &task.artifacts,
            failure: task.failure.as_ref(),
            args: &head.args,
            created_at: head.created_at,
            updated_at: head.updated_at,
        }
    }
}

/// The tasks of the caller's project that it may see.
pub async fn list(console: &Console, caller: &Caller, filter: &Filter) -> Result<Page, Failure> {
    Console::need(caller, Right::Call)?;
    console.engine().sync().await?;
    let registry = console.engine().registry();
    let agent = filter.agent.as_ref().filter(|key| !key.is_empty());
    let agent =
        agent.map(|key| registry.find(&caller.scope, key).map(|agent| agent.id.clone())).transpose()?;
    let own = filter.own || !console.sees_all(caller);
    let limit = page_size(filter.limit);
    let wanted = TaskFilter {
        caller: own.then(|| caller.id.clone()),
        agent,
        state: filter.state,
        open: filter.open,
        before: filter.cursor.clone(),
        limit: limit + 1,
        ..TaskFilter::default()
    };
    let mut tasks = console.store().tasks(&caller.scope, &wanted).await.map_err(store_failure)?;
    let has_more = tasks.len() > limit;
    tasks.truncate(limit);
    let next = tasks.last().filter(|_| has_more).map(|last| last.id.clone());
    Ok(Page { tasks, next })
}

/// A task and everything that happened to it, as far as it is written down.
pub async fn show(console: &Console, caller: &Caller, id: &str) -> Result<(Task, Vec<Recorded>), Failure> {
    let head = head(console, caller, id).await?;
    let events = console.store().events(&head.id, 0).await.map_err(store_failure)?;
    let mut task = Task::new(head.as_opened());
    for recorded in &events {
        task.apply(&recorded.event, recorded.at);
    }
    Ok((task, events))
}

/// Whatever happens to a task behind this event of it.
pub async fn follow(console: &Console, caller: &Caller, id: &str, seen: u64) -> Result<Following, Failure> {
    let head = head(console, caller, id).await?;
    Ok(console.engine().listen(&TaskHead { version: seen, ..head }))
}

/// Calls a task of the caller's own off.
pub async fn cancel(console: &Console, caller: &Caller, id: &str) -> Result<Task, Failure> {
    need(caller, Right::Call)?;
    console.engine().cancel(caller, id).await
}

/// Says something in a task of the caller's own: an answer to its question, or more. It goes on by itself.
pub async fn say(console: &Console, caller: &Caller, id: &str, part: Part) -> Result<TaskId, Failure> {
    need(caller, Right::Call)?;
    let target = console.engine().worker(caller, id).await?;
    let request = Request {
        task: Some(id.to_owned()),
        ..Request::message(caller.clone(), Door::Http, target, vec![part])
    };
    let running = console.engine().call(request).await?;
    Ok(running.task().clone())
}

/// Begins a task, which goes on by itself.
pub async fn begin(
    console: &Console,
    caller: &Caller,
    target: Target,
    part: Part,
) -> Result<TaskId, Failure> {
    need(caller, Right::Call)?;
    let request = Request::message(caller.clone(), Door::Http, target, vec![part]);
    let running = console.engine().call(request).await?;
    Ok(running.task().clone())
}

/// Whether a task is the caller's own, so that it may be answered and called off.
pub fn is_own(caller: &Caller, head: &TaskHead) -> bool {
    head.caller == caller.id
}

async fn head(console: &Console, caller: &Caller, id: &str) -> Result<TaskHead, Failure> {
    Console::need(caller, Right::Call)?;
    console.engine().sync().await?;
    let head = console.store().task(&caller.scope, id).await.map_err(store_failure)?;
    head.filter(|head| is_own(caller, head) || console.sees_all(caller))
        .ok_or_else(|| Failure::new(Kind::NotFound, format!("there is no task \"{id}\" that you may see")))
}

fn need(caller: &Caller, right: Right) -> Result<(), Failure> {
    if caller.rights.have(right) { Ok(()) } else { Err(right.lacking()) }
}
