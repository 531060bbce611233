//! What became of calls. A caller sees its own tasks; whoever may read the audit trail sees everybody's.

use rialto_api_types::tasks::UndeliveredPush;
use rialto_engine::{Following, Request};
use rialto_model::{
    call::{CallTarget, Caller, EntryProtocol},
    event::RecordedEvent,
    failure::{Failure, FailureKind},
    ids::TaskId,
    message::Part,
    push::PushSubscription,
    store::TaskFilter,
    task::{Task, TaskHead, TaskState},
    token_scopes::TokenScope,
};
use rialto_policy::Action;

use super::{cut, page_size};
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

/// The tasks of the caller's project that it may see.
pub async fn list(console: &Console, caller: &Caller, filter: &Filter) -> Result<Page, Failure> {
    Console::own(caller, TokenScope::Call)?;
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
    let next = cut(&mut tasks, limit, |last| last.id.clone());
    Ok(Page { tasks, next })
}

/// A task and everything that happened to it, as far as it is written down.
pub async fn show(
    console: &Console,
    caller: &Caller,
    id: &str,
) -> Result<(Task, Vec<RecordedEvent>), Failure> {
    let head = head(console, caller, id).await?;
    let events = console.store().events(&head.id, 0).await.map_err(store_failure)?;
    let mut task = Task::new(head.as_opened());
    for recorded in &events {
        task.apply(&recorded.event, recorded.at);
    }
    Ok((task, events))
}

/// The same, but an open task of the caller's own is asked about at its agent first.
pub async fn look(console: &Console, caller: &Caller, id: &str) -> Result<Task, Failure> {
    let head = head(console, caller, id).await?;
    if is_own(caller, &head) {
        return console.engine().task(caller, id).await;
    }
    show(console, caller, id).await.map(|(task, _)| task)
}

/// Push notifications that were given up, newest first.
pub async fn undelivered(
    console: &Console,
    caller: &Caller,
    limit: usize,
) -> Result<Vec<PushSubscription>, Failure> {
    console.admit(caller, Action::AdminAudit).await?;
    console.engine().dead_pushes(&caller.scope, limit).await
}

/// Push notification that was given up, without what it is shown at its address.
pub fn undelivered_push(push: &PushSubscription) -> UndeliveredPush {
    UndeliveredPush {
        task: push.task.clone(),
        id: push.id.clone(),
        url: push.url.clone(),
        caller: push.caller.to_string(),
        told_up_to: push.standing.told,
        failures: push.standing.failures,
        last_error: push.standing.last_error.clone().unwrap_or_default(),
        created_at: push.created_at,
    }
}

/// Whatever happens to a task behind this event of it.
pub async fn follow(console: &Console, caller: &Caller, id: &str, seen: u64) -> Result<Following, Failure> {
    let head = head(console, caller, id).await?;
    Ok(console.engine().listen(&TaskHead { version: seen, ..head }))
}

/// Calls a task off: the caller's own, or anybody's for whoever may administer agents.
pub async fn cancel(console: &Console, caller: &Caller, id: &str) -> Result<Task, Failure> {
    if is_others(console, caller, id).await? {
        console.admit(caller, Action::AdminAgents).await?;
        return console.engine().cancel_for(caller, id).await;
    }
    Console::own(caller, TokenScope::Call)?;
    console.engine().cancel(caller, id).await
}

/// Says something in a task, as an answer to its question or more: in the caller's own, or in anybody's for whoever may administer
/// agents. It goes on by itself.
pub async fn say(console: &Console, caller: &Caller, id: &str, part: Part) -> Result<TaskId, Failure> {
    if is_others(console, caller, id).await? {
        console.admit(caller, Action::AdminAgents).await?;
        let running = console.engine().answer_for(caller, id, vec![part]).await?;
        return Ok(running.task().clone());
    }
    Console::own(caller, TokenScope::Call)?;
    let target = console.engine().worker(caller, id).await?;
    let request = Request {
        task: Some(id.to_owned()),
        ..Request::message(caller.clone(), EntryProtocol::Http, target, vec![part])
    };
    let running = console.engine().call(request).await?;
    Ok(running.task().clone())
}

/// Says more after a task of the caller's own is over: a new task in the same conversation.
pub async fn go_on(console: &Console, caller: &Caller, id: &str, part: Part) -> Result<TaskId, Failure> {
    Console::own(caller, TokenScope::Call)?;
    let head = head(console, caller, id).await?;
    let worker = console.engine().worker(caller, id).await?;
    let Some(context) = head.remote.context_id else {
        let message =
            format!("the agent has named no conversation that task {id} belongs to; begin a new task");
        return Err(Failure::new(FailureKind::Conflict, message));
    };
    // Words are not what a skill with a schema takes: they go to the agent, which knows the conversation.
    let skill = worker.skill.filter(|skill| skill.input_schema.is_none());
    let target = CallTarget { agent: worker.agent, skill };
    let request = Request {
        context: Some(context),
        ..Request::message(caller.clone(), EntryProtocol::Console, target, vec![part])
    };
    let running = console.engine().call(request).await?;
    Ok(running.task().clone())
}

/// Whether the caller may call a task off and answer it: its own, or anybody's where it may administer agents.
pub fn may_act(console: &Console, caller: &Caller, head: &TaskHead) -> Result<(), Failure> {
    if is_own(caller, head) {
        Console::own(caller, TokenScope::Call)
    } else {
        console.may(caller, Action::AdminAgents)
    }
}

/// Begins a task, which goes on by itself.
pub async fn begin(
    console: &Console,
    caller: &Caller,
    target: CallTarget,
    part: Part,
) -> Result<TaskId, Failure> {
    Console::own(caller, TokenScope::Call)?;
    let request = Request::message(caller.clone(), EntryProtocol::Console, target, vec![part]);
    let running = console.engine().call(request).await?;
    Ok(running.task().clone())
}

/// Whether a task is the caller's own.
pub fn is_own(caller: &Caller, head: &TaskHead) -> bool {
    head.caller == caller.id
}

/// Whether a task is one that the caller may see, and somebody else's.
pub(super) async fn is_others(console: &Console, caller: &Caller, id: &str) -> Result<bool, Failure> {
    Ok(!is_own(caller, &head(console, caller, id).await?))
}

async fn head(console: &Console, caller: &Caller, id: &str) -> Result<TaskHead, Failure> {
    Console::own(caller, TokenScope::Call)?;
    console.engine().sync().await?;
    let head = console.store().task(&caller.scope, id).await.map_err(store_failure)?;
    head.filter(|head| is_own(caller, head) || console.sees_all(caller)).ok_or_else(|| {
        Failure::new(FailureKind::NotFound, format!("there is no task \"{id}\" that you may see"))
    })
}
