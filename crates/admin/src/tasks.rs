//! Tasks. Callers see their own; with permission to read the audit log, they see those of the whole org.

use rialto_api_types::tasks::UndeliveredPush;
use rialto_engine::{CallRequest, TaskSubscription};
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

use super::{page_size, truncate_page};
use crate::{
    Administration,
    administration::{require_right, store_failure},
};

/// Filter and page of a list of tasks, newest first.
#[derive(Clone, Debug, Default)]
pub struct TaskQuery {
    /// Agent to filter by: its slug, id, URL or name.
    pub agent: Option<String>,
    /// State to filter by.
    pub state: Option<TaskState>,
    /// Whether only active tasks are listed.
    pub open: bool,
    /// Whether only the caller's own tasks are listed.
    pub own: bool,
    /// Maximum number of rows.
    pub limit: Option<usize>,
    /// Last task of the previous page.
    pub cursor: Option<TaskId>,
}

/// Page of tasks.
#[derive(Clone, Debug)]
pub struct TaskResults {
    /// Tasks of this page.
    pub tasks: Vec<TaskHead>,
    /// Cursor of the next page.
    pub next: Option<TaskId>,
}

/// Lists the tasks of the caller's project that it is allowed to see.
pub async fn list(
    admin: &Administration,
    caller: &Caller,
    filter: &TaskQuery,
) -> Result<TaskResults, Failure> {
    require_right(caller, TokenScope::Call)?;
    admin.engine().policies().sync().await?;
    let registry = admin.engine().registry();
    let agent = filter.agent.as_ref().filter(|key| !key.is_empty());
    let agent =
        agent.map(|key| registry.find(&caller.scope, key).map(|agent| agent.id.clone())).transpose()?;
    let own = filter.own || !admin.sees_all_callers(caller);
    let limit = page_size(filter.limit);
    let task_filter = TaskFilter {
        caller: own.then(|| caller.id.clone()),
        agent,
        state: filter.state,
        open: filter.open,
        before: filter.cursor.clone(),
        limit: limit + 1,
        ..TaskFilter::default()
    };
    let mut tasks = admin.store().tasks(&caller.scope, &task_filter).await.map_err(store_failure)?;
    let next = truncate_page(&mut tasks, limit, |last| last.id.clone());
    Ok(TaskResults { tasks, next })
}

/// Finds a task with its events.
pub async fn show(
    admin: &Administration,
    caller: &Caller,
    id: &str,
) -> Result<(Task, Vec<RecordedEvent>), Failure> {
    let head = find_head(admin, caller, id).await?;
    let events = admin.store().events(&head.id, 0).await.map_err(store_failure)?;
    let mut task = Task::new(head.as_opened());
    for recorded in &events {
        task.apply(&recorded.event, recorded.at);
    }
    Ok((task, events))
}

/// Finds a task. The state of an active task of the caller is first requested from its agent.
pub async fn refresh(admin: &Administration, caller: &Caller, id: &str) -> Result<Task, Failure> {
    let head = find_head(admin, caller, id).await?;
    if is_own(caller, &head) {
        return admin.engine().tasks().get(caller, id).await;
    }
    show(admin, caller, id).await.map(|(task, _)| task)
}

/// Push notifications that could not be delivered, newest first.
pub async fn undelivered(
    admin: &Administration,
    caller: &Caller,
    limit: usize,
) -> Result<Vec<PushSubscription>, Failure> {
    admin.authorize_admin(caller, Action::AdminAudit).await?;
    admin.engine().push_configs().list_dead(&caller.scope, limit).await
}

/// Push notification that could not be delivered, without its credentials.
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

/// Follows the events of a task after this one.
pub async fn follow(
    admin: &Administration,
    caller: &Caller,
    id: &str,
    seen: u64,
) -> Result<TaskSubscription, Failure> {
    let head = find_head(admin, caller, id).await?;
    Ok(admin.engine().tasks().subscribe_after(&TaskHead { version: seen, ..head }))
}

/// Cancels a task. Tasks of other callers need permission to administer agents.
pub async fn cancel(admin: &Administration, caller: &Caller, id: &str) -> Result<Task, Failure> {
    if is_of_other_caller(admin, caller, id).await? {
        admin.authorize_admin(caller, Action::AdminAgents).await?;
        return admin.engine().overrides().cancel(caller, id).await;
    }
    require_right(caller, TokenScope::Call)?;
    admin.engine().tasks().cancel(caller, id).await
}

/// Sends a message to a task, such as the answer to its question. Tasks of other callers need permission to administer agents. The task
/// continues in the background.
pub async fn send_message(
    admin: &Administration,
    caller: &Caller,
    id: &str,
    part: Part,
) -> Result<TaskId, Failure> {
    if is_of_other_caller(admin, caller, id).await? {
        admin.authorize_admin(caller, Action::AdminAgents).await?;
        let running = admin.engine().overrides().answer(caller, id, vec![part]).await?;
        return Ok(running.task().clone());
    }
    require_right(caller, TokenScope::Call)?;
    let target = admin.engine().tasks().target(caller, id).await?;
    let request = CallRequest {
        task: Some(id.to_owned()),
        ..CallRequest::message(caller.clone(), EntryProtocol::Http, target, vec![part])
    };
    let running = admin.engine().calls().start(request).await?.into_handle()?;
    Ok(running.task().clone())
}

/// Continues the conversation of an ended task of the caller with a new task.
pub async fn continue_conversation(
    admin: &Administration,
    caller: &Caller,
    id: &str,
    part: Part,
) -> Result<TaskId, Failure> {
    require_right(caller, TokenScope::Call)?;
    let head = find_head(admin, caller, id).await?;
    let worker = admin.engine().tasks().target(caller, id).await?;
    let Some(context) = head.remote.context_id else {
        let message = format!("task {id} has no conversation at the agent; start a new task");
        return Err(Failure::new(FailureKind::Conflict, message));
    };
    // A skill with a schema takes no text, so the message goes to the agent, which knows the conversation.
    let skill = worker.skill.filter(|skill| skill.input_schema.is_none());
    let target = CallTarget { agent: worker.agent, skill };
    let request = CallRequest {
        context: Some(context),
        ..CallRequest::message(caller.clone(), EntryProtocol::Console, target, vec![part])
    };
    let running = admin.engine().calls().start(request).await?.into_handle()?;
    Ok(running.task().clone())
}

/// Fails unless the caller is allowed to cancel and answer a task: its own, or any with permission to administer agents.
pub fn may_act(admin: &Administration, caller: &Caller, head: &TaskHead) -> Result<(), Failure> {
    if is_own(caller, head) {
        require_right(caller, TokenScope::Call)
    } else {
        admin.check_admin(caller, Action::AdminAgents)
    }
}

/// Starts a task, which continues in the background.
pub async fn start(
    admin: &Administration,
    caller: &Caller,
    target: CallTarget,
    part: Part,
) -> Result<TaskId, Failure> {
    require_right(caller, TokenScope::Call)?;
    let request = CallRequest::message(caller.clone(), EntryProtocol::Console, target, vec![part]);
    let running = admin.engine().calls().start(request).await?.into_handle()?;
    Ok(running.task().clone())
}

/// Whether a task is the caller's own.
pub fn is_own(caller: &Caller, head: &TaskHead) -> bool {
    head.caller == caller.id
}

/// Whether a visible task belongs to another caller.
pub(super) async fn is_of_other_caller(
    admin: &Administration,
    caller: &Caller,
    id: &str,
) -> Result<bool, Failure> {
    Ok(!is_own(caller, &find_head(admin, caller, id).await?))
}

async fn find_head(admin: &Administration, caller: &Caller, id: &str) -> Result<TaskHead, Failure> {
    require_right(caller, TokenScope::Call)?;
    admin.engine().policies().sync().await?;
    let head = admin.store().task(&caller.scope, id).await.map_err(store_failure)?;
    head.filter(|head| is_own(caller, head) || admin.sees_all_callers(caller)).ok_or_else(|| {
        Failure::new(FailureKind::NotFound, format!("there is no task \"{id}\" that you are allowed to see"))
    })
}
