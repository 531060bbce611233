//! What waits until somebody has approved it, for whoever a policy lets `approve_call`.

use rialto_engine::approvals::Decider;
use rialto_model::{
    approval::{Approval, ApprovalFilter},
    call::Caller,
    failure::Failure,
    ids::{ApprovalId, TaskId},
    token_scopes::TokenScope,
};
use rialto_policy::Action;

use super::{cut, page_size};
use crate::{Console, operation::Operation};

/// So many that wait are shown, and so many of the latest are looked at for those that do not.
const SHOWN: usize = 100;

/// Counting stops here: every page of somebody who may decide asks for it.
pub(crate) const COUNTED: usize = 9;

/// What waits, and what was decided lately; newest first.
#[derive(Clone, Debug)]
pub struct Approvals {
    /// What waits.
    pub waiting: Vec<Approval>,
    /// What was decided, or waits for nothing any more.
    pub decided: Vec<Approval>,
}

/// Which of them to list, newest first.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Also those that wait for nothing any more.
    pub all: bool,
    /// At most so many.
    pub limit: Option<usize>,
    /// Only those older than this one.
    pub cursor: Option<ApprovalId>,
}

/// One page of what waits in the caller's org, or waited, and where the next begins.
pub async fn page(
    console: &Console,
    caller: &Caller,
    filter: &Filter,
) -> Result<(Vec<Approval>, Option<ApprovalId>), Failure> {
    let (by, limit) = (decider(console, caller)?, page_size(filter.limit));
    let mut found: Vec<Approval> = Vec::new();
    // What turns out to wait for nothing is left out, so a look may find less than there is.
    while found.len() <= limit {
        let before = found.last().map(|last| last.id.clone()).or_else(|| filter.cursor.clone());
        let wanted = ApprovalFilter {
            undecided: !filter.all,
            before,
            limit: limit + 1 - found.len(),
            ..ApprovalFilter::default()
        };
        let more = console.engine().approvals(&by, wanted).await?;
        if more.is_empty() {
            break;
        }
        found.extend(more);
    }
    let next = cut(&mut found, limit, |last| last.id.clone());
    Ok((found, next))
}

/// One of them.
pub async fn show(console: &Console, caller: &Caller, id: &str) -> Result<Approval, Failure> {
    console.engine().approval(&decider(console, caller)?, id).await
}

/// What waits in the caller's org, and what was decided there lately.
pub async fn list(console: &Console, caller: &Caller) -> Result<Approvals, Failure> {
    let by = decider(console, caller)?;
    let undecided = ApprovalFilter { undecided: true, limit: SHOWN, ..ApprovalFilter::default() };
    let waiting = console.engine().approvals(&by, undecided).await?;
    let latest = ApprovalFilter { limit: SHOWN, ..ApprovalFilter::default() };
    let mut decided = console.engine().approvals(&by, latest).await?;
    decided.retain(|approval| approval.decided.is_some() || approval.is_settled);
    Ok(Approvals { waiting, decided })
}

/// What a task waits for, if the caller may decide about it.
pub async fn of_task(console: &Console, caller: &Caller, task: &TaskId) -> Result<Vec<Approval>, Failure> {
    if console.may(caller, Action::ApproveCall).is_err() {
        return Ok(Vec::new());
    }
    let filter = ApprovalFilter {
        task: Some(task.clone()),
        undecided: true,
        limit: SHOWN,
        ..ApprovalFilter::default()
    };
    console.engine().approvals(&decider(console, caller)?, filter).await
}

/// How many wait for somebody like the caller; [`COUNTED`] and one more are many. Trouble in counting keeps no page from being shown.
pub(crate) async fn count(console: &Console, caller: &Caller) -> usize {
    if console.may(caller, Action::ApproveCall).is_err() {
        return 0;
    }
    let filter = ApprovalFilter { undecided: true, limit: COUNTED + 1, ..ApprovalFilter::default() };
    let found = console.engine().approvals(&Decider::Caller(caller.clone()), filter).await;
    found.map_or(0, |found| found.len())
}

/// Decides about something that waits. Whoever has it under way goes on with it.
pub async fn decide(
    console: &Console,
    caller: &Caller,
    id: &str,
    approved: bool,
    reason: Option<String>,
) -> Result<Approval, Failure> {
    let decided = match decider(console, caller) {
        Ok(decider) => console.engine().decide_on(&decider, id, approved, reason).await,
        Err(refused) => Err(refused),
    };
    // A decision is recorded where it is taken, because it is also taken in tasks; here only what did not become one.
    match decided {
        Ok(approval) => Ok(approval),
        Err(failure) => {
            let operation = Operation::new("approve_call", id);
            console.record(caller, &operation, Err(failure)).await
        }
    }
}

fn decider(console: &Console, caller: &Caller) -> Result<Decider, Failure> {
    if console.at_machine() {
        Ok(Decider::Operator(console.office().operator()))
    } else if caller.rights.have(TokenScope::Admin) {
        Ok(Decider::Caller(caller.clone()))
    } else {
        Err(TokenScope::Admin.lacking())
    }
}
