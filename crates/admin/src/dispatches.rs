//! Dispatches: routing of work to the best agent, and the routing decisions. Callers see their own decisions; with permission to read the
//! audit log, they see those of the whole org.

use std::time::Duration;

use rialto_engine::DispatchRequest;
use rialto_model::{
    call::Caller,
    failure::{Failure, FailureKind},
    ids::{DispatchId, TaskId},
    message::Part,
    routing::{Dispatch, DispatchFilter, WorkDescription},
    task::Task,
    token_scopes::TokenScope,
    trace::Trace,
};

use super::page_size;
use crate::{
    Administration,
    administration::{require_right, require_right_or_admin},
};

/// Maximum number of rows of a page. Each row contains all candidates.
const MAX_ROWS: usize = 200;

/// Filter and page of a list of routing decisions, newest first.
#[derive(Clone, Debug, Default)]
pub struct DispatchQuery {
    /// Type of work to filter by.
    pub work_type: Option<String>,
    /// Maximum number of rows.
    pub limit: Option<usize>,
    /// Last decision of the previous page.
    pub cursor: Option<DispatchId>,
}

/// Work for the best agent.
#[derive(Debug)]
pub struct WorkRequest {
    /// Type, description and required skills of the work.
    pub work: WorkDescription,
    /// Message for the agent.
    pub part: Part,
    /// Conversation to continue.
    pub context: Option<String>,
    /// Timeout of the call.
    pub timeout: Option<Duration>,
    /// Trace context of the caller.
    pub trace: Option<Box<Trace>>,
}

/// Result of a dispatch.
#[derive(Clone, Debug)]
pub struct DispatchOutcome {
    /// Id of the routing decision.
    pub dispatch: Option<DispatchId>,
    /// Slug of the selected agent, while it is registered.
    pub agent: Option<String>,
    /// Task of the call.
    pub task: Task,
}

/// Page of routing decisions that the caller is allowed to see, newest first, and the cursor of the next one.
pub async fn list(
    admin: &Administration,
    caller: &Caller,
    filter: &DispatchQuery,
) -> Result<(Vec<Dispatch>, Option<DispatchId>), Failure> {
    let limit = page_size(filter.limit).min(MAX_ROWS);
    let requested = DispatchFilter {
        work_type: filter.work_type.clone(),
        before: filter.cursor.clone(),
        limit,
        ..DispatchFilter::default()
    };
    let found = query(admin, caller, requested).await?;
    let next = found.last().filter(|_| found.len() == limit).map(|last| last.id.clone());
    Ok((found, next))
}

/// Finds a routing decision by its id or the id of a task.
pub async fn show(admin: &Administration, caller: &Caller, id: &str) -> Result<Dispatch, Failure> {
    let filter = DispatchFilter { id: Some(id.to_owned()), limit: 1, ..DispatchFilter::default() };
    let found = query(admin, caller, filter).await?.into_iter().next();
    found.ok_or_else(|| {
        Failure::new(
            FailureKind::NotFound,
            format!("there is no routing decision \"{id}\" that you are allowed to see"),
        )
    })
}

/// Whether a task was dispatched, and the caller is allowed to see the decision.
pub async fn is_visible_dispatch(admin: &Administration, caller: &Caller, task: &TaskId) -> bool {
    show(admin, caller, task.as_str()).await.is_ok()
}

/// Routes work to the best agent, and waits until it ends or asks for input.
pub async fn dispatch(
    admin: &Administration,
    caller: &Caller,
    requested: WorkRequest,
) -> Result<DispatchOutcome, Failure> {
    require_right(caller, TokenScope::Call)?;
    let request = DispatchRequest {
        context: requested.context,
        timeout: requested.timeout,
        trace: requested.trace,
        ..DispatchRequest::new(caller.clone(), admin.protocol(), requested.work, vec![requested.part])
    };
    let running = Box::pin(admin.engine().dispatches().start(request)).await?;
    let dispatch = running.dispatch().cloned();
    let task = running.finish().await?;
    let agent = admin.engine().registry().get(&task.head.agent);
    Ok(DispatchOutcome { dispatch, agent: agent.map(|agent| agent.slug.clone()), task })
}

/// Routing decision for some work, without a call.
pub async fn preview(
    admin: &Administration,
    caller: &Caller,
    work: &WorkDescription,
) -> Result<Dispatch, Failure> {
    require_right_or_admin(caller, TokenScope::Discover)?;
    // A remote caller gets the agents of this server only: two servers that ask each other would never end.
    if admin.is_local() {
        admin.engine().dispatches().explain(caller, work).await
    } else {
        admin.engine().dispatches().explain_local(caller, work).await
    }
}

async fn query(
    admin: &Administration,
    caller: &Caller,
    filter: DispatchFilter,
) -> Result<Vec<Dispatch>, Failure> {
    require_right_or_admin(caller, TokenScope::Call)?;
    admin.engine().policies().sync().await?;
    let own = (!admin.sees_all_callers(caller)).then(|| caller.id.clone());
    admin.engine().dispatches().list(caller, DispatchFilter { caller: own, ..filter }).await
}
