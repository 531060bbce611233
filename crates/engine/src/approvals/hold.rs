//! Has a call wait: the question is written down, and what was said is sealed away.

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
use rialto_policy::Decision;
use serde::{Deserialize, Serialize};

use super::{Wish, question};
use crate::{
    engine::{Engine, EngineInner, store_failure},
    redact::redact,
};

/// Everything of a call that is not found again elsewhere.
#[derive(Serialize, Deserialize)]
pub(super) struct SealedCall {
    pub(super) caller: Caller,
    pub(super) parts: Vec<Part>,
    pub(super) message: Option<Message>,
    pub(super) metadata: Option<Json>,
    pub(super) continues: RemoteIds,
    pub(super) session: Arc<str>,
    /// How many calls through us led to this one: a circle of agents does not begin anew by waiting.
    #[serde(default)]
    pub(super) hops: u8,
}

// === impl Engine ===

impl Engine {
    /// Has somebody asked whether a peer may do something in the middle of its work, and answers the event with which its
    /// stream must end.
    ///
    /// When it is decided, by whomever, the peer is sent a call that goes on with the same task, and whose parts are a
    /// [`Verdict`](super::Verdict). A denial is a message like an approval: the peer decides what becomes of its task. A task
    /// that the peer has given no name ([`Event::Accepted`]) can still go on: the call then has the task's id alone.
    pub async fn hold_for_approval(&self, wish: Wish) -> Result<Event, Failure> {
        let patience = wish.patience.unwrap_or_else(|| self.config().approvals.patience());
        let now = self.now();
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
            runner: self.runner(),
            asked_at: now,
            expires_at: after(now, patience),
            decided: None,
            is_settled: false,
        };
        self.inner().store.put_approval(&approval).await.map_err(store_failure)?;
        Ok(question::asked(&approval, None))
    }

    /// Has a call wait that may leave once it is approved. What happens to its task is that somebody is asked.
    pub(crate) async fn hold(&self, call: Call, decision: &Decision) -> BoxStream<'static, Event> {
        let event = match self.inner().try_hold(call, decision).await {
            Ok(approval) => question::asked(&approval, None),
            // Its task is written down, so this is how it ends.
            Err(failure) => Event::failed(failure),
        };
        stream::iter([event]).boxed()
    }
}

// === impl Inner ===

impl EngineInner {
    async fn try_hold(&self, call: Call, decision: &Decision) -> Result<Approval, Failure> {
        let now = self.journal.now();
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
            runner: self.runner_here(),
            asked_at: now,
            expires_at: after(now, self.config.approvals.patience()),
            decided: None,
            is_settled: false,
        };
        let held = serde_json::to_string(&SealedCall::of(call)).map_err(|error| unkept(&error))?;
        let safe = self.approving.safe();
        safe.put(&name(&approval.id), Secret::from(held)).await.map_err(|error| unkept(&error))?;
        let put: Result<u64, StoreError> = self.store.put_approval(&approval).await;
        if put.is_err() {
            let _ = safe.forget(&name(&approval.id)).await;
        }
        put.map_err(store_failure)?;
        Ok(approval)
    }
}

// === impl Held ===

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

    /// The caller's own words, as they were.
    pub(super) fn spoken(&self) -> Option<Arc<OriginalMessage>> {
        let message = self.message.clone()?;
        Some(Arc::new(OriginalMessage::new(message, self.metadata.clone())))
    }
}

/// What the sealed call of an approval is called.
pub(super) fn name(id: &ApprovalId) -> String {
    format!("approval:{id}")
}

fn after(now: Timestamp, patience: Duration) -> Timestamp {
    now.checked_add(patience).unwrap_or(Timestamp::MAX)
}

/// A call that cannot be kept cannot wait.
fn unkept(error: &dyn std::error::Error) -> Failure {
    tracing::error!("a call that needs approval could not be kept until then: {error}");
    let message =
        "the call needs approval, and could not be kept until then, so it was not made; see the server's log";
    Failure::new(FailureKind::Internal, message)
}
