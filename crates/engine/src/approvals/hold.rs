//! Holding of calls: the approval request is stored, and the call is sealed.

use std::{sync::Arc, time::Duration};

use futures::{StreamExt, stream, stream::BoxStream};
use rialto_model::{
    approval::{Approval, ApprovalTarget},
    call::{Call, Caller, OriginalMessage},
    clock::Timestamp,
    credential::Secret,
    event::{Event, RemoteIds},
    failure::{Failure, FailureKind},
    ids::ApprovalId,
    json::Json,
    message::{Message, Part},
    store::StoreError,
};
use rialto_policy::PolicyDecision;
use serde::{Deserialize, Serialize};

use super::{ApprovalRequest, ApprovalService, question};
use crate::{redact::redact, store_failure::store_failure};

/// The parts of a call that are stored nowhere else.
#[derive(Serialize, Deserialize)]
pub(super) struct SealedCall {
    pub(super) caller: Caller,
    pub(super) parts: Vec<Part>,
    pub(super) message: Option<Message>,
    pub(super) metadata: Option<Json>,
    pub(super) continues: RemoteIds,
    pub(super) session: Arc<str>,
    /// Number of calls through this server that led to this one: waiting does not restart the count of a circle of agents.
    #[serde(default)]
    pub(super) hops: u8,
}

// === impl ApprovalService ===

impl ApprovalService {
    /// Requests approval for what a backend wants to do in the middle of its work, and returns the event that its stream must end with.
    ///
    /// When it is decided, the backend is sent a call that continues the task, and whose parts are a [`Verdict`](super::Verdict). A denial
    /// is a message like an approval: the backend decides how its task continues. A task that the backend has not named
    /// ([`Event::Accepted`]) can still continue: the call then has the task's id alone.
    pub async fn request(&self, wish: ApprovalRequest) -> Result<Event, Failure> {
        let patience = wish.patience.unwrap_or_else(|| self.runner.config.approvals.patience());
        let now = self.runner.journal.now();
        let approval = Approval {
            id: ApprovalId::fresh(),
            scope: wish.scope,
            task: wish.task,
            caller: wish.caller.id,
            token: wish.caller.token,
            agent: wish.agent,
            tool: wish.tool,
            args: redact(&wish.args),
            by: wish.by,
            policies: wish.policies,
            waits: ApprovalTarget::Work,
            runner: self.runner.lease.runner(),
            asked_at: now,
            expires_at: after(now, patience),
            decided: None,
            is_settled: false,
        };
        self.runner.store.put_approval(&approval).await.map_err(store_failure)?;
        Ok(question::question_event(&approval, None))
    }

    /// Holds a call that may leave once it is approved; its task asks the question.
    pub(crate) async fn hold(&self, call: Call, decision: &PolicyDecision) -> BoxStream<'static, Event> {
        let event = match self.try_hold(call, decision).await {
            Ok(approval) => question::question_event(&approval, None),
            // Its task is stored, so this is how it ends.
            Err(failure) => Event::failed(failure),
        };
        stream::iter([event]).boxed()
    }

    async fn try_hold(&self, call: Call, decision: &PolicyDecision) -> Result<Approval, Failure> {
        let now = self.runner.journal.now();
        let by_policy = !decision.approvers.is_empty();
        let policies =
            if by_policy { decision.policies.to_vec() } else { vec!["destructiveHint".to_owned()] };
        let approval = Approval {
            id: ApprovalId::fresh(),
            scope: call.caller.scope.clone(),
            task: call.task.clone(),
            caller: call.caller.id.clone(),
            token: call.caller.token.clone(),
            agent: call.target.agent.id.clone(),
            tool: call.target.verb(),
            args: redact(&call.args()),
            by: decision.approvers.clone(),
            policies,
            waits: ApprovalTarget::Call,
            runner: self.runner.lease.runner(),
            asked_at: now,
            expires_at: after(now, self.runner.config.approvals.patience()),
            decided: None,
            is_settled: false,
        };
        let held = serde_json::to_string(&SealedCall::of(call)).map_err(|error| unkept(&error))?;
        let sealed_calls = self.sealed_calls();
        sealed_calls.put(&name(&approval.id), Secret::from(held)).await.map_err(|error| unkept(&error))?;
        let put: Result<u64, StoreError> = self.runner.store.put_approval(&approval).await;
        if put.is_err() {
            let _ = sealed_calls.forget(&name(&approval.id)).await;
        }
        put.map_err(store_failure)?;
        Ok(approval)
    }
}

// === impl SealedCall ===

impl SealedCall {
    fn of(call: Call) -> Self {
        let (message, metadata) = match call.spoken.as_deref() {
            Some(spoken) => (Some(spoken.message.clone()), spoken.metadata.clone()),
            None => (None, None),
        };
        Self {
            hops: call.caller.hops,
            caller: call.caller,
            parts: call.parts,
            message,
            metadata,
            continues: call.continues,
            session: call.session,
        }
    }

    /// The caller's original message.
    pub(super) fn spoken(&self) -> Option<Arc<OriginalMessage>> {
        let message = self.message.clone()?;
        Some(Arc::new(OriginalMessage::new(message, self.metadata.clone())))
    }
}

/// Name of the sealed call of an approval.
pub(super) fn name(id: &ApprovalId) -> String {
    format!("approval:{id}")
}

fn after(now: Timestamp, patience: Duration) -> Timestamp {
    now.checked_add(patience).unwrap_or(Timestamp::MAX)
}

/// Failure of a call that cannot be stored until it is approved.
fn unkept(error: &dyn std::error::Error) -> Failure {
    tracing::error!("a call that needs approval could not be kept until then: {error}");
    let message =
        "the call needs approval, and could not be kept until then, so it was not made; see the server's log";
    Failure::new(FailureKind::Internal, message)
}
