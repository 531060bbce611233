//! What waits until somebody has approved it, for whoever a policy lets `approve_call`.

use rialto_engine::approving::Decider;
use rialto_model::{
    approval::{Approval, ApprovalFilter},
    call::Caller,
    failure::Failure,
    ids::TaskId,
    rights::Right,
};
use rialto_policy::Action;

use crate::Console;

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

/// What waits in the caller's org, and what was decided there lately.
pub async fn list(console: &Console, caller: &Caller) -> Result<Approvals, Failure> {
    let by = decider(caller)?;
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
    console.engine().approvals(&decider(caller)?, filter).await
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
    console.engine().decide_on(&decider(caller)?, id, approved, reason).await
}

fn decider(caller: &Caller) -> Result<Decider, Failure> {
    if caller.rights.have(Right::Admin) {
        Ok(Decider::Caller(caller.clone()))
    } else {
        Err(Right::Admin.lacking())
    }
}
