//! Workflows and their runs. Whoever may discover sees what there is; whoever may call runs it and sees its own runs; whoever may
//! read the audit trail sees everybody's.

use std::sync::Arc;

use rialto_engine::{Request, Step};
use rialto_flow::definition::Workflow;
use rialto_model::{
    call::{Caller, Door, Target},
    failure::{Failure, Kind},
    flow::{Flow, FlowRun, FlowStatus, RunFilter, RunRecord},
    ids::TaskId,
    json::Json,
    message::Part,
    rights::Right,
    task::Task,
};
use serde_json::json;

use super::{MOST, page_size, tasks};
use crate::{Console, console::store_failure};

/// A definition in a list.
#[derive(Clone, Debug)]
pub struct Listed {
    /// The definition.
    pub flow: Flow,
    /// What it says, if it can still be read.
    pub workflow: Option<Arc<Workflow>>,
    /// The last run of it that the caller may see.
    pub last: Option<FlowRun>,
}

/// One version of a definition.
#[derive(Clone, Debug)]
pub struct Shown {
    /// The version.
    pub flow: Arc<Flow>,
    /// What it says.
    pub workflow: Arc<Workflow>,
    /// The version in force.
    pub newest: u64,
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

/// The definitions of the caller's project, by name.
pub async fn list(console: &Console, caller: &Caller) -> Result<Vec<Listed>, Failure> {
    Console::need(caller, Right::Discover)?;
    let book = console.flows().book();
    let mut listed = Vec::new();
    for flow in book.list(&caller.scope).await?.into_iter().take(MOST) {
        let workflow = book.workflow(&flow).ok();
        let last = latest(console, caller, &flow.name, 1, None).await?.pop();
        listed.push(Listed { flow, workflow, last });
    }
    Ok(listed)
}

/// A definition: the version in force, or an earlier one.
pub async fn show(
    console: &Console,
    caller: &Caller,
    name: &str,
    version: Option<u64>,
) -> Result<Shown, Failure> {
    Console::need(caller, Right::Discover)?;
    let book = console.flows().book();
    let (flow, workflow) = book.show(&caller.scope, name).await?;
    let newest = flow.version;
    let Some(version) = version.filter(|version| *version != newest) else {
        return Ok(Shown { flow, workflow, newest });
    };
    let found = console.store().flow(&caller.scope, name, Some(version)).await.map_err(store_failure)?;
    let none = || Failure::new(Kind::NotFound, format!("there is no version {version} of \"{name}\""));
    let flow = found.ok_or_else(none)?;
    let workflow = book.workflow(&flow)?;
    Ok(Shown { flow: Arc::new(flow), workflow, newest })
}

/// Runs of a definition that the caller may see, newest first, and where the next page begins.
pub async fn runs(
    console: &Console,
    caller: &Caller,
    name: &str,
    cursor: Option<&str>,
) -> Result<(Vec<FlowRun>, Option<TaskId>), Failure> {
    let limit = page_size(None);
    let mut found = latest(console, caller, name, limit + 1, cursor.map(TaskId::from)).await?;
    let has_more = found.len() > limit;
    found.truncate(limit);
    let next = found.last().filter(|_| has_more).map(|last| last.id.clone());
    Ok((found, next))
}

/// A run as it stands.
pub async fn run(console: &Console, caller: &Caller, id: &str) -> Result<Run, Failure> {
    let (task, _) = tasks::show(console, caller, id).await?;
    let found = console.store().run(&caller.scope, &task.head.id).await.map_err(store_failure)?;
    let record = found.ok_or_else(|| Failure::new(Kind::NotFound, format!("there is no run \"{id}\"")))?;
    let workflow = console.flows().book().workflow_of(&record.run).await.ok();
    Ok(Run { record, workflow, task })
}

/// Begins a run, which goes on by itself. A draft is tried out.
pub async fn begin(console: &Console, caller: &Caller, flow: &Flow, part: Part) -> Result<Begun, Failure> {
    if !caller.rights.have(Right::Call) {
        return Err(Right::Call.lacking());
    }
    let (book, is_draft) = (console.flows().book(), flow.status == FlowStatus::Draft);
    let target = book.target_of(console.engine(), caller, &flow.name, is_draft).await?;
    let request = Request::message(caller.clone(), Door::Http, target, vec![part]);
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

/// Answers a question of a run of the caller's own: that of a step, or the first. It goes on by itself.
pub async fn answer(
    console: &Console,
    caller: &Caller,
    id: &str,
    step: Option<&str>,
    text: &str,
) -> Result<(), Failure> {
    Console::need(caller, Right::Call)?;
    let worker = console.engine().worker(caller, id).await?;
    let mut part = Part::text(text);
    part.metadata = step.map(|step| Json::of(&json!({ "rialto/flow": { "node": step } })));
    let target = Target { agent: worker.agent, skill: None };
    let request = Request {
        task: Some(id.to_owned()),
        ..Request::message(caller.clone(), Door::Http, target, vec![part])
    };
    console.engine().call(request).await.map(drop)
}

async fn latest(
    console: &Console,
    caller: &Caller,
    name: &str,
    limit: usize,
    before: Option<TaskId>,
) -> Result<Vec<FlowRun>, Failure> {
    if Console::need(caller, Right::Call).is_err() {
        return Ok(Vec::new());
    }
    let own = (!console.sees_all(caller)).then(|| caller.id.clone());
    let filter = RunFilter { caller: own, name: Some(name.to_owned()), state: None, before, limit };
    console.store().runs(&caller.scope, &filter).await.map_err(store_failure)
}
