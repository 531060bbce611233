//! Decides about what waits, once.

use std::sync::Arc;

use rialto_model::{
    approval::{Approval, ApprovalFilter, ApprovalTarget, ApprovalVerdict},
    call::Caller,
    clock::Timestamp,
    failure::{Failure, FailureKind},
    ids::{ApprovalId, OrgId, TaskId},
    task::Task,
};
use rialto_policy::Action;
use serde_json::json;

use super::{one, question};
use crate::{
    admin_record::AdminRecord,
    engine::{Engine, store_failure},
};

/// So many can be listed at once.
const MOST: usize = 1_000;

/// The longest reason that is kept.
const LONGEST_REASON: usize = 2_000;

/// Who decides.
#[derive(Clone, Debug)]
pub enum Decider {
    /// Whoever is at the machine, by name. It is not asked whether it may.
    Operator(String),
    /// A caller. A policy must permit it `approve_call`.
    Caller(Caller),
}

// === impl Engine ===

impl Engine {
    /// What waits for approval or waited for it, newest first.
    pub async fn approvals(&self, by: &Decider, filter: ApprovalFilter) -> Result<Vec<Approval>, Failure> {
        self.may_decide(by).await?;
        let limit = if filter.limit == 0 { 100 } else { filter.limit.min(MOST) };
        let unsettled = filter.unsettled || filter.undecided;
        let filter = ApprovalFilter { org: by.org().or(filter.org), unsettled, limit, ..filter };
        let found = self.inner().store.approvals(&filter).await.map_err(store_failure)?;
        let mut shown = Vec::with_capacity(found.len());
        for approval in found {
            // A task that was called off meanwhile waits for nothing.
            let is_over = !approval.is_settled && self.inner().settle_if_over(&approval).await?;
            if !is_over {
                shown.push(approval);
            } else if !unsettled {
                shown.push(Approval { is_settled: true, ..approval });
            }
        }
        Ok(shown)
    }

    /// The one of that name.
    pub async fn approval(&self, by: &Decider, id: &str) -> Result<Approval, Failure> {
        self.may_decide(by).await?;
        let filter = ApprovalFilter { org: by.org(), ..one(&ApprovalId::from(id)) };
        let found = self.inner().store.approvals(&filter).await.map_err(store_failure)?.pop();
        found.ok_or_else(|| Failure::new(FailureKind::NotFound, format!("there is no approval \"{id}\"")))
    }

    /// Decides about something that waits. Whoever has it under way goes on with it.
    pub async fn decide_on(
        &self,
        by: &Decider,
        id: &str,
        approved: bool,
        reason: Option<String>,
    ) -> Result<Approval, Failure> {
        let approval = self.approval(by, id).await?;
        if let Decider::Caller(caller) = by
            && caller.id == approval.caller
            && caller.scope.org == approval.scope.org
            && !approval.is_for_caller()
        {
            let message = format!(
                "{} asked for {} itself; it needs approval by {}",
                caller.id,
                approval.tool,
                approval.by.join(" and by ")
            );
            return Err(Failure::new(FailureKind::Denied, message));
        }
        if let Some(reason) = &reason
            && reason.len() > LONGEST_REASON
        {
            let message = format!("a reason has at most {LONGEST_REASON} bytes, not {}", reason.len());
            return Err(Failure::new(FailureKind::Invalid, message));
        }
        if approval.decided.is_none() && self.inner().settle_if_over(&approval).await? {
            let message = format!("task {} is over, so nothing waits for approval {id}", approval.task);
            return Err(Failure::new(FailureKind::Conflict, message));
        }
        let decided = ApprovalVerdict { approved, by: by.name(), reason, at: self.now() };
        self.settle_on(&approval, decided).await
    }

    /// Takes a decision, if there is none yet: one that comes too late is told what counts.
    pub(super) async fn settle_on(
        &self,
        approval: &Approval,
        decided: ApprovalVerdict,
    ) -> Result<Approval, Failure> {
        let inner = self.inner();
        let decided = if decided.at >= approval.expires_at { expired(approval) } else { decided };
        let is_ours = inner.store.decide_approval(&approval.id, &decided).await.map_err(store_failure)?;
        if is_ours {
            self.put_on_record(approval, &decided).await;
            let is_late = decided.by == EXPIRY;
            let approval = Approval { decided: Some(decided), ..approval.clone() };
            return if is_late { Err(too_late(&approval)) } else { Ok(approval) };
        }
        let found = inner.store.approvals(&one(&approval.id)).await.map_err(store_failure)?.pop();
        Err(found.as_ref().map_or_else(|| gone(&approval.id), too_late))
    }

    /// Denies what nobody has decided in time.
    pub(super) async fn expire(&self, approval: &Approval) -> Result<Approval, Failure> {
        self.deny(approval, expired(approval)).await
    }

    /// Denies what was asked for with a token that has ended.
    pub(super) async fn deny_revoked(&self, approval: &Approval) -> Result<Approval, Failure> {
        self.deny(approval, revoked(approval, self.now())).await
    }

    async fn deny(&self, approval: &Approval, decided: ApprovalVerdict) -> Result<Approval, Failure> {
        let store = &self.inner().store;
        if store.decide_approval(&approval.id, &decided).await.map_err(store_failure)? {
            self.put_on_record(approval, &decided).await;
            return Ok(Approval { decided: Some(decided), ..approval.clone() });
        }
        let found = store.approvals(&one(&approval.id)).await.map_err(store_failure)?.pop();
        found.ok_or_else(|| gone(&approval.id))
    }

    /// The question that a task waits with, if it is one of ours.
    pub(crate) async fn approval_of(&self, task: &Task) -> Result<Option<Approval>, Failure> {
        let Some(id) = question::waits_for(task) else { return Ok(None) };
        let found = self.inner().store.approvals(&one(&id)).await.map_err(store_failure)?.pop();
        // An agent can write anything into its words.
        Ok(found.filter(|approval| approval.task == task.head.id))
    }

    /// Whether somebody has approved a task before: its answers need not be approved again.
    pub(crate) async fn was_approved(&self, task: &TaskId) -> Result<bool, Failure> {
        let filter = ApprovalFilter { task: Some(task.clone()), limit: MOST, ..ApprovalFilter::default() };
        let found = self.inner().store.approvals(&filter).await.map_err(store_failure)?;
        let is_yes = |approval: &Approval| {
            let waits = approval.waits == ApprovalTarget::Call;
            waits && approval.decided.as_ref().is_some_and(|decided| decided.approved)
        };
        Ok(found.iter().any(is_yes))
    }

    async fn may_decide(&self, by: &Decider) -> Result<(), Failure> {
        self.sync().await?;
        let Decider::Caller(caller) = by else { return Ok(()) };
        self.may_administer(caller, Action::ApproveCall)
    }

    /// Who decided what and why, in the audit trail.
    async fn put_on_record(&self, approval: &Approval, decided: &ApprovalVerdict) {
        let word = if decided.approved { "approve" } else { "deny" };
        let facts = json!({
            "approval": approval.id,
            "decision": word,
            "reason": decided.reason,
            "tool": approval.tool,
            "askedBy": approval.caller,
        });
        let after = Approval { decided: Some(decided.clone()), ..approval.clone() };
        let record = AdminRecord {
            verb: "approve_call",
            by: Arc::from(decided.by.as_str()),
            token: None,
            org: approval.scope.org.clone(),
            object: approval.id.to_string(),
            agent: self.registry().get(&approval.agent),
            task: Some(approval.task.clone()),
            before: json!({ "state": approval.state() }),
            after: json!({ "state": after.state() }),
            facts: facts.as_object().cloned().unwrap_or_default(),
            policies: approval.policies.clone(),
            failure: None,
        };
        if let Err(failure) = self.record_admin(record).await {
            tracing::error!("the decision about {} is not in the audit trail: {failure}", approval.id);
        }
    }
}

// === impl Decider ===

impl Decider {
    fn name(&self) -> String {
        match self {
            Self::Operator(name) => name.clone(),
            Self::Caller(caller) => caller.id.to_string(),
        }
    }

    fn org(&self) -> Option<OrgId> {
        match self {
            Self::Operator(_) => None,
            Self::Caller(caller) => Some(caller.scope.org.clone()),
        }
    }
}

/// Who denies what nobody has decided.
pub(super) const EXPIRY: &str = "expiry";

fn expired(approval: &Approval) -> ApprovalVerdict {
    ApprovalVerdict {
        approved: false,
        by: EXPIRY.to_owned(),
        reason: Some(format!("nobody decided before {}", approval.expires_at)),
        at: approval.expires_at,
    }
}

/// Who denies what was asked for with a token that has ended.
pub(super) const REVOCATION: &str = "revocation";

fn revoked(approval: &Approval, at: Timestamp) -> ApprovalVerdict {
    ApprovalVerdict {
        approved: false,
        by: REVOCATION.to_owned(),
        reason: Some(format!(
            "the token that {} made this call with was revoked or has expired",
            approval.caller
        )),
        at,
    }
}

fn gone(id: &ApprovalId) -> Failure {
    Failure::new(FailureKind::NotFound, format!("there is no approval \"{id}\" any more"))
}

fn too_late(approval: &Approval) -> Failure {
    let by = approval.decided.as_ref().map_or("somebody", |decided| decided.by.as_str());
    let (id, state) = (&approval.id, approval.state());
    Failure::new(FailureKind::Conflict, format!("approval {id} was decided before: it is {state} by {by}"))
}
