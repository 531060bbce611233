//! Runs of workflows. Whoever may call begins them and sees its own; whoever may read the audit trail sees everybody's.

use std::{sync::Arc, time::Duration};

use rialto_engine::{Request, Running, Step};
use rialto_flow::definition::Workflow;
use rialto_model::{
    backing::skill,
    call::{CallTarget, Caller, EntryProtocol},
    failure::{Failure, FailureKind},
    flow::{Flow, FlowRun, FlowStatus, RunFilter, RunRecord, RunState},
    ids::TaskId,
    json::{Extra, Json},
    message::Part,
    task::{Task, TaskState},
    token_scopes::TokenScope,
    trace::Trace,
};
use rialto_policy::Action;
use serde_json::json;

use super::{cut, page_size, tasks};
use crate::{Console, console::store_failure};

/// What runs a definition that comes with the call.
const INLINE: &str = "orchestrate_workflow";

/// Which runs to list, newest first.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Only of this definition.
    pub name: Option<String>,
    /// Only those that stand like this.
    pub state: Option<RunState>,
    /// Only those of whoever asks, also where it may see others'.
    pub own: bool,
    /// At most so many.
    pub limit: Option<usize>,
    /// Only those older than this one.
    pub cursor: Option<TaskId>,
}

/// What is to be run.
#[derive(Clone, Debug)]
pub enum What {
    /// A definition that is kept; a draft only where it is to be tried out.
    Kept {
        /// Its name.
        name: String,
        /// Whether it is tried out.
        is_draft: bool,
    },
    /// One that comes with the call.
    Inline(String),
}

/// How it is run.
#[derive(Clone, Debug, Default)]
pub struct How {
    /// How long the caller waits.
    pub wall_clock: Option<Duration>,
    /// The trace that the caller has begun.
    pub trace: Option<Box<Trace>>,
}

/// One run.
#[derive(Clone, Debug)]
pub struct Run {
    /// How it stands, with its steps.
    pub record: RunRecord,
    /// What is run, if it can still be read.
    pub workflow: Option<Arc<Workflow>>,
    /// The task that it is.
    pub task: Task,
}

/// What has begun.
#[derive(Clone, Debug)]
pub struct Begun {
    /// The task that it is.
    pub task: TaskId,
    /// Whether it is a run already. One that waits for approval is not.
    pub is_run: bool,
}

/// Runs that the caller may see, newest first, and where the next page begins.
pub async fn list(
    console: &Console,
    caller: &Caller,
    filter: &Filter,
) -> Result<(Vec<FlowRun>, Option<TaskId>), Failure> {
    Console::need(caller, TokenScope::Call)?;
    console.engine().sync().await?;
    let limit = page_size(filter.limit);
    let own = filter.own || !console.sees_all(caller);
    let wanted = RunFilter {
        caller: own.then(|| caller.id.clone()),
        name: filter.name.clone(),
        state: filter.state,
        before: filter.cursor.clone(),
        limit: limit + 1,
    };
    let mut found = console.store().runs(&caller.scope, &wanted).await.map_err(store_failure)?;
    let next = cut(&mut found, limit, |last| last.id.clone());
    Ok((found, next))
}

/// The last run of a definition that the caller may see.
pub(crate) async fn latest(
    console: &Console,
    caller: &Caller,
    name: &str,
) -> Result<Option<FlowRun>, Failure> {
    if Console::need(caller, TokenScope::Call).is_err() {
        return Ok(None);
    }
    let own = (!console.sees_all(caller)).then(|| caller.id.clone());
    let filter = RunFilter { caller: own, name: Some(name.to_owned()), state: None, before: None, limit: 1 };
    Ok(console.store().runs(&caller.scope, &filter).await.map_err(store_failure)?.pop())
}

/// A run as it stands, with its steps.
pub async fn record(console: &Console, caller: &Caller, id: &str) -> Result<RunRecord, Failure> {
    Console::need(caller, TokenScope::Call)?;
    console.engine().sync().await?;
    // The task first: a run that has gone on since then is not said to wait.
    let head = console.store().task(&caller.scope, id).await.map_err(store_failure)?;
    let found = console.store().run(&caller.scope, &TaskId::from(id)).await.map_err(store_failure)?;
    let may_see = |record: &RunRecord| record.run.caller == caller.id || console.sees_all(caller);
    let none = || Failure::new(FailureKind::NotFound, format!("there is no run \"{id}\" that you may see"));
    let record = found.filter(may_see).ok_or_else(none)?;
    Ok(match head {
        Some(head) => as_task_state(record, head.state),
        None => record,
    })
}

/// A run is stored as waiting a moment before its task is. An answer is accepted only by a task that waits, so until then the run is
/// reported as running.
fn as_task_state(mut record: RunRecord, task: TaskState) -> RunRecord {
    if record.run.state == RunState::Waiting && !task.is_waiting() && !task.is_terminal() {
        record.run.state = RunState::Running;
    }
    record
}

/// The same, with what is run and the task that it is.
pub async fn show(console: &Console, caller: &Caller, id: &str) -> Result<Run, Failure> {
    let (task, _) = tasks::show(console, caller, id).await?;
    let found = console.store().run(&caller.scope, &task.head.id).await.map_err(store_failure)?;
    let record =
        found.ok_or_else(|| Failure::new(FailureKind::NotFound, format!("there is no run \"{id}\"")))?;
    let record = as_task_state(record, task.head.state);
    let workflow = console.flows().book().workflow_of(&record.run).await.ok();
    Ok(Run { record, workflow, task })
}

/// Begins a run of a definition from a form, which goes on by itself. A draft is tried out.
pub async fn begin(console: &Console, caller: &Caller, flow: &Flow, part: Part) -> Result<Begun, Failure> {
    Console::own(caller, TokenScope::Call)?;
    let (book, is_draft) = (console.flows().book(), flow.status == FlowStatus::Draft);
    let target = book.target_of(console.engine(), caller, &flow.name, is_draft).await?;
    let request = Request::message(caller.clone(), EntryProtocol::Console, target, vec![part]);
    let mut running = console.engine().call(request).await?;
    // The first thing that a run tells is that it is written down.
    let first = running.next().await;
    let task = running.task().clone();
    let is_run = console.store().run(&caller.scope, &task).await.map_err(store_failure)?.is_some();
    match first {
        Step::Failed(failure) if !is_run => Err(failure),
        _ => Ok(Begun { task, is_run }),
    }
}

/// Begins a run. It goes on by itself when it is let go of.
pub async fn start(
    console: &Console,
    caller: &Caller,
    what: What,
    input: Json,
    how: How,
) -> Result<Running, Failure> {
    Console::own(caller, TokenScope::Call)?;
    let engine = console.engine();
    let (target, args) = match what {
        What::Kept { name, is_draft } => {
            (console.flows().book().target_of(engine, caller, &name, is_draft).await?, input)
        }
        What::Inline(text) => {
            engine.sync().await?;
            let agent = engine.registry().flows(&caller.scope).await?;
            let members = [("workflow".to_owned(), Json::encode(&text)), ("input".to_owned(), input)];
            let args = Json::encode(&members.into_iter().collect::<Extra>());
            (CallTarget { agent, skill: Some(Arc::new(skill(INLINE, INLINE, ""))) }, args)
        }
    };
    let request = Request {
        trace: how.trace,
        wall_clock: how.wall_clock,
        ..Request::skill(caller.clone(), console.door(), target, args)
    };
    engine.call(request).await
}

/// What is meant for one step of a run; without one, for the first that asks.
pub fn meant_for(step: Option<&str>, mut part: Part) -> Part {
    part.metadata = step.map(|step| Json::encode(&json!({ "rialto/flow": { "node": step } })));
    part
}

/// Whether a run can be taken up again: it is the caller's own, it is not over, and nobody here works on it.
pub(crate) fn can_resume(console: &Console, caller: &Caller, run: &Run) -> bool {
    let head = &run.task.head;
    tasks::is_own(caller, head)
        && !head.state.is_terminal()
        && head.remote.task_id.is_some()
        && !console.engine().works_on(&head.id)
}

/// Says something in a run: what a step of it ([`meant_for`]), or the first, asks for. In the caller's own, or in anybody's for
/// whoever may administer agents.
pub async fn tell(
    console: &Console,
    caller: &Caller,
    id: &str,
    part: Part,
    how: How,
) -> Result<Running, Failure> {
    Console::own(caller, TokenScope::Call)?;
    if tasks::is_others(console, caller, id).await? {
        console.admit(caller, Action::AdminAgents).await?;
        return console.engine().answer_for(caller, id, vec![part]).await;
    }
    let worker = console.engine().worker(caller, id).await?;
    let target = CallTarget { agent: worker.agent, skill: None };
    let request = Request {
        task: Some(id.to_owned()),
        trace: how.trace,
        wall_clock: how.wall_clock,
        ..Request::message(caller.clone(), console.door(), target, vec![part])
    };
    console.engine().call(request).await
}

/// Takes a run of the caller's own up again that nobody works on.
pub async fn resume(console: &Console, caller: &Caller, id: &str) -> Result<Running, Failure> {
    Console::own(caller, TokenScope::Call)?;
    console.engine().rejoin(caller, id).await.map_err(|failure| match failure.kind {
        FailureKind::Conflict => {
            let message = format!("run {id} is over, or goes on already: there is nothing to resume");
            Failure::new(FailureKind::Conflict, message)
        }
        _ => failure,
    })
}
