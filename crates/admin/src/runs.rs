//! Runs of workflows. Callers start runs and see their own; with permission to read the audit log, they see those of the whole org.

use std::{sync::Arc, time::Duration};

use rialto_engine::{CallHandle, CallRequest, CallUpdate};
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
use rialto_workflow::definition::Workflow;
use serde_json::json;

use super::{page_size, tasks, truncate_page};
use crate::{
    Administration,
    administration::{require_right, require_right_or_admin, store_failure},
};

/// Skill that runs an inline definition.
const INLINE_SKILL: &str = "orchestrate_workflow";

/// Filter and page of a list of runs, newest first.
#[derive(Clone, Debug, Default)]
pub struct RunQuery {
    /// Definition to filter by.
    pub name: Option<String>,
    /// State to filter by.
    pub state: Option<RunState>,
    /// Whether only the caller's own runs are listed.
    pub own: bool,
    /// Maximum number of rows.
    pub limit: Option<usize>,
    /// Last run of the previous page.
    pub cursor: Option<TaskId>,
}

/// Definition to run.
#[derive(Clone, Debug)]
pub enum RunSource {
    /// Saved definition. A draft runs only if requested.
    Saved {
        /// Name of the workflow.
        name: String,
        /// Whether a draft is run.
        is_draft: bool,
    },
    /// Definition in the request.
    Inline(String),
}

/// Options of a run.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// Timeout of the call.
    pub timeout: Option<Duration>,
    /// Trace context of the caller.
    pub trace: Option<Box<Trace>>,
}

/// Run with its definition and its task.
#[derive(Clone, Debug)]
pub struct RunView {
    /// State and steps.
    pub record: RunRecord,
    /// Parsed definition, if it is valid.
    pub workflow: Option<Arc<Workflow>>,
    /// Task of the run.
    pub task: Task,
}

/// Task that was started.
#[derive(Clone, Debug)]
pub struct StartedTask {
    /// Task of the run.
    pub task: TaskId,
    /// Whether the run exists. A task that waits for approval has no run yet.
    pub is_run: bool,
}

/// Page of runs that the caller is allowed to see, newest first, and the cursor of the next one.
pub async fn list(
    admin: &Administration,
    caller: &Caller,
    filter: &RunQuery,
) -> Result<(Vec<FlowRun>, Option<TaskId>), Failure> {
    require_right_or_admin(caller, TokenScope::Call)?;
    admin.engine().policies().sync().await?;
    let limit = page_size(filter.limit);
    let own = filter.own || !admin.sees_all_callers(caller);
    let run_filter = RunFilter {
        caller: own.then(|| caller.id.clone()),
        name: filter.name.clone(),
        state: filter.state,
        before: filter.cursor.clone(),
        limit: limit + 1,
    };
    let mut found = admin.store().runs(&caller.scope, &run_filter).await.map_err(store_failure)?;
    let next = truncate_page(&mut found, limit, |last| last.id.clone());
    Ok((found, next))
}

/// Last run of a definition that the caller is allowed to see.
pub(crate) async fn latest_run(
    admin: &Administration,
    caller: &Caller,
    name: &str,
) -> Result<Option<FlowRun>, Failure> {
    if require_right_or_admin(caller, TokenScope::Call).is_err() {
        return Ok(None);
    }
    let own = (!admin.sees_all_callers(caller)).then(|| caller.id.clone());
    let filter = RunFilter { caller: own, name: Some(name.to_owned()), state: None, before: None, limit: 1 };
    Ok(admin.store().runs(&caller.scope, &filter).await.map_err(store_failure)?.pop())
}

/// State and steps of a run.
pub async fn record(admin: &Administration, caller: &Caller, id: &str) -> Result<RunRecord, Failure> {
    require_right_or_admin(caller, TokenScope::Call)?;
    admin.engine().policies().sync().await?;
    // The task is read first, so that a run that resumed since is not reported as waiting.
    let head = admin.store().task(&caller.scope, id).await.map_err(store_failure)?;
    let found = admin.store().run(&caller.scope, &TaskId::from(id)).await.map_err(store_failure)?;
    let may_see = |record: &RunRecord| record.run.caller == caller.id || admin.sees_all_callers(caller);
    let none = || {
        Failure::new(FailureKind::NotFound, format!("there is no run \"{id}\" that you are allowed to see"))
    };
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

/// State and steps of a run, with its definition and its task.
pub async fn show(admin: &Administration, caller: &Caller, id: &str) -> Result<RunView, Failure> {
    let (task, _) = tasks::show(admin, caller, id).await?;
    let found = admin.store().run(&caller.scope, &task.head.id).await.map_err(store_failure)?;
    let record =
        found.ok_or_else(|| Failure::new(FailureKind::NotFound, format!("there is no run \"{id}\"")))?;
    let record = as_task_state(record, task.head.state);
    let workflow = admin.workflows().definitions().workflow_of_run(&record.run).await.ok();
    Ok(RunView { record, workflow, task })
}

/// Starts a run from a form, which continues in the background. A draft runs too.
pub async fn start_from_form(
    admin: &Administration,
    caller: &Caller,
    flow: &Flow,
    part: Part,
) -> Result<StartedTask, Failure> {
    require_right(caller, TokenScope::Call)?;
    let (book, is_draft) = (admin.workflows().definitions(), flow.status == FlowStatus::Draft);
    let target = book.resolve_target(admin.engine(), caller, &flow.name, is_draft).await?;
    let request = CallRequest::message(caller.clone(), EntryProtocol::Console, target, vec![part]);
    let mut running = admin.engine().calls().start(request).await?.into_handle()?;
    // The first update of a run is sent when it is stored.
    let first = running.next().await;
    let task = running.task().clone();
    let is_run = admin.store().run(&caller.scope, &task).await.map_err(store_failure)?.is_some();
    match first {
        CallUpdate::Failed(failure) if !is_run => Err(failure),
        _ => Ok(StartedTask { task, is_run }),
    }
}

/// Starts a run. It continues when its handle is dropped.
pub async fn start(
    admin: &Administration,
    caller: &Caller,
    source: RunSource,
    input: Json,
    options: RunOptions,
) -> Result<CallHandle, Failure> {
    require_right(caller, TokenScope::Call)?;
    let engine = admin.engine();
    let (target, args) = match source {
        RunSource::Saved { name, is_draft } => {
            (admin.workflows().definitions().resolve_target(engine, caller, &name, is_draft).await?, input)
        }
        RunSource::Inline(text) => {
            engine.policies().sync().await?;
            let agent = engine.registry().deployments().ensure_flows(&caller.scope).await?;
            let members = [("workflow".to_owned(), Json::encode(&text)), ("input".to_owned(), input)];
            let args = Json::encode(&members.into_iter().collect::<Extra>());
            (CallTarget { agent, skill: Some(Arc::new(skill(INLINE_SKILL, INLINE_SKILL, ""))) }, args)
        }
    };
    let request = CallRequest {
        trace: options.trace,
        timeout: options.timeout,
        ..CallRequest::skill(caller.clone(), admin.protocol(), target, args)
    };
    engine.calls().start(request).await?.into_handle()
}

/// Addresses a message to a step of a run; by default it goes to the first step that asks.
pub fn address_step(step: Option<&str>, mut part: Part) -> Part {
    part.metadata = step.map(|step| Json::encode(&json!({ "rialto/flow": { "node": step } })));
    part
}

/// Whether a run can be resumed: it is the caller's own, it is active, and this server does not work on it.
pub fn can_resume(admin: &Administration, caller: &Caller, run: &RunView) -> bool {
    let head = &run.task.head;
    tasks::is_own(caller, head)
        && !head.state.is_terminal()
        && head.remote.task_id.is_some()
        && !admin.engine().running().contains(&head.id)
}

/// Answers a question of a run, of the step it is addressed to ([`address_step`]) or the first. Runs of other callers need permission to
/// administer agents.
pub async fn answer(
    admin: &Administration,
    caller: &Caller,
    id: &str,
    part: Part,
    options: RunOptions,
) -> Result<CallHandle, Failure> {
    require_right(caller, TokenScope::Call)?;
    if tasks::is_of_other_caller(admin, caller, id).await? {
        admin.authorize_admin(caller, Action::AdminAgents).await?;
        return admin.engine().overrides().answer(caller, id, vec![part]).await;
    }
    let worker = admin.engine().tasks().target(caller, id).await?;
    let target = CallTarget { agent: worker.agent, skill: None };
    let request = CallRequest {
        task: Some(id.to_owned()),
        trace: options.trace,
        timeout: options.timeout,
        ..CallRequest::message(caller.clone(), admin.protocol(), target, vec![part])
    };
    admin.engine().calls().start(request).await?.into_handle()
}

/// Resumes a run of the caller that no server works on.
pub async fn resume(admin: &Administration, caller: &Caller, id: &str) -> Result<CallHandle, Failure> {
    require_right(caller, TokenScope::Call)?;
    admin.engine().calls().follow_remote(caller, id).await.map_err(|failure| match failure.kind {
        FailureKind::Conflict => {
            let message = format!("run {id} has ended or is running: there is nothing to resume");
            Failure::new(FailureKind::Conflict, message)
        }
        _ => failure,
    })
}
