//! Approvals: pending and decided calls, for callers with permission to `approve_call`.

use rialto_engine::approvals::Decider;
use rialto_model::{
    approval::{Approval, ApprovalFilter},
    call::Caller,
    failure::Failure,
    ids::{ApprovalId, TaskId},
    token_scopes::TokenScope,
};
use rialto_policy::Action;

use super::{page_size, truncate_page};
use crate::{Administration, operation::AdminOperation};

/// Maximum number of pending approvals, and of recent ones that are searched for decisions.
const MAX_LISTED: usize = 100;

/// Maximum count of pending approvals, because every page counts them.
pub const MAX_COUNTED: usize = 9;

/// Pending and recently decided approvals, newest first.
#[derive(Clone, Debug)]
pub struct ApprovalLists {
    /// Pending approvals.
    pub waiting: Vec<Approval>,
    /// Decided and withdrawn approvals.
    pub decided: Vec<Approval>,
}

/// Filter and page of a list of approvals, newest first.
#[derive(Clone, Debug, Default)]
pub struct ApprovalQuery {
    /// Whether decided and withdrawn approvals are included.
    pub all: bool,
    /// Maximum number of rows.
    pub limit: Option<usize>,
    /// Last approval of the previous page.
    pub cursor: Option<ApprovalId>,
}

/// Page of the approvals of the caller's org, and the cursor of the next one.
pub async fn page(
    admin: &Administration,
    caller: &Caller,
    filter: &ApprovalQuery,
) -> Result<(Vec<Approval>, Option<ApprovalId>), Failure> {
    let (by, limit) = (decider(admin, caller)?, page_size(filter.limit));
    let mut found: Vec<Approval> = Vec::new();
    // Settled approvals are left out of each batch, so one batch may be shorter than the page.
    while found.len() <= limit {
        let before = found.last().map(|last| last.id.clone()).or_else(|| filter.cursor.clone());
        let batch_filter = ApprovalFilter {
            undecided: !filter.all,
            before,
            limit: limit + 1 - found.len(),
            ..ApprovalFilter::default()
        };
        let more = admin.engine().approvals().list(&by, batch_filter).await?;
        if more.is_empty() {
            break;
        }
        found.extend(more);
    }
    let next = truncate_page(&mut found, limit, |last| last.id.clone());
    Ok((found, next))
}

/// Finds an approval.
pub async fn show(admin: &Administration, caller: &Caller, id: &str) -> Result<Approval, Failure> {
    admin.engine().approvals().get(&decider(admin, caller)?, id).await
}

/// Pending and recently decided approvals of the caller's org.
pub async fn list(admin: &Administration, caller: &Caller) -> Result<ApprovalLists, Failure> {
    let by = decider(admin, caller)?;
    let undecided = ApprovalFilter { undecided: true, limit: MAX_LISTED, ..ApprovalFilter::default() };
    let waiting = admin.engine().approvals().list(&by, undecided).await?;
    let latest = ApprovalFilter { limit: MAX_LISTED, ..ApprovalFilter::default() };
    let mut decided = admin.engine().approvals().list(&by, latest).await?;
    decided.retain(|approval| approval.decided.is_some() || approval.is_settled);
    Ok(ApprovalLists { waiting, decided })
}

/// Pending approvals of a task, if the caller is allowed to decide about them.
pub async fn list_for_task(
    admin: &Administration,
    caller: &Caller,
    task: &TaskId,
) -> Result<Vec<Approval>, Failure> {
    if admin.check_admin(caller, Action::ApproveCall).is_err() {
        return Ok(Vec::new());
    }
    let filter = ApprovalFilter {
        task: Some(task.clone()),
        undecided: true,
        limit: MAX_LISTED,
        ..ApprovalFilter::default()
    };
    admin.engine().approvals().list(&decider(admin, caller)?, filter).await
}

/// Number of pending approvals for the caller, at most one more than [`MAX_COUNTED`]; 0 if they cannot be read.
pub async fn count_waiting(admin: &Administration, caller: &Caller) -> usize {
    if admin.check_admin(caller, Action::ApproveCall).is_err() {
        return 0;
    }
    let filter = ApprovalFilter { undecided: true, limit: MAX_COUNTED + 1, ..ApprovalFilter::default() };
    let found = admin.engine().approvals().list(&Decider::Caller(caller.clone()), filter).await;
    found.map_or(0, |found| found.len())
}

/// Decides a pending approval. The server that holds the call resumes it.
pub async fn decide(
    admin: &Administration,
    caller: &Caller,
    id: &str,
    approved: bool,
    reason: Option<String>,
) -> Result<Approval, Failure> {
    let decided = match decider(admin, caller) {
        Ok(decider) => admin.engine().approvals().decide(&decider, id, approved, reason).await,
        Err(refused) => Err(refused),
    };
    // The engine records decisions, because they are also made in tasks. Only failed attempts are recorded here.
    match decided {
        Ok(approval) => Ok(approval),
        Err(failure) => {
            let operation = AdminOperation::new("approve_call", id);
            admin.record(caller, &operation, Err(failure)).await
        }
    }
}

fn decider(admin: &Administration, caller: &Caller) -> Result<Decider, Failure> {
    if admin.is_local() {
        Ok(Decider::Operator(admin.host().operator_name()))
    } else if caller.rights.have(TokenScope::Admin) {
        Ok(Decider::Caller(caller.clone()))
    } else {
        Err(TokenScope::Admin.lacking())
    }
}
