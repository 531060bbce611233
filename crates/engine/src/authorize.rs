//! Who may do what: whatever policy is asked about a caller is asked here, with the caller's own live row.

use std::sync::Arc;

use rialto_model::{
    agent::Agent,
    audit_event::AuditEvent,
    call::{Call, CallTarget, Caller, CallerKind},
    failure::{Failure, FailureKind},
    ids::{AgentId, ProcessId},
};
use rialto_policy::{Action, Decision, Deed, Denied, Leave, Permitted, Question};

use crate::{
    engine::{Engine, EngineInner, verb_of},
    journal::AuditSpan,
    redact::kept_args,
};

/// A call that may leave, now or once it is approved.
pub(crate) struct AuthorizedCall {
    pub(crate) call: Leave<Call>,
    pub(crate) announcement: AuditSpan,
    pub(crate) pre: AuditEvent,
}

// === impl Engine ===

impl Engine {
    /// Whether a caller may see a skill in a list.
    pub fn may_discover(&self, caller: &Caller, target: &CallTarget) -> bool {
        let row = self.inner().caller_agent(caller);
        self.inner()
            .policies
            .load()
            .decide(&Question::about(caller, Action::Discover, target).by(row.as_deref()))
            .allowed
    }

    /// Whether policy lets a caller administer something, as things stand. What is done, and not only shown, wants a
    /// [`Engine::sync`] before.
    pub fn may_administer(&self, caller: &Caller, action: Action) -> Result<(), Failure> {
        let row = self.inner().caller_agent(caller);
        let question = Question::admin(caller, action).by(row.as_deref());
        let allowed = self.policy().allow(&question);
        allowed.map_err(|denied| Failure::new(FailureKind::Denied, denied.to_string()))
    }

    /// Guards, authorizes, announces, checks the arguments. A call that is refused here has left no packet.
    pub(crate) async fn permit(&self, call: Call) -> Result<AuthorizedCall, Failure> {
        let call = match self.guard_of(&call) {
            Some(screen) => Box::pin(self.guard_call(screen, call)).await?,
            None => call,
        };
        let args = call.args();
        let (verb, cost) =
            (verb_of(&call, kept_args(&args, self.inner().config.max_kept_args_bytes)), call.target.cost());
        let mut verdict = self.check_or_hold(call);
        if let Ok(Leave::OnceApproved(call, _)) = &verdict
            && call.continues.task_id.is_some()
            && Box::pin(self.was_approved(&call.task)).await?
        {
            // Whoever was approved once is not asked again in the same task.
            verdict = self.inner().check_approved(call.clone()).map(Leave::Now);
        }
        let refusal = verdict.as_ref().err().map(ToString::to_string);
        let decided = match (&verdict, &refusal) {
            (Ok(call), _) => Ok(call.by()),
            (Err(_), reason) => Err(reason.as_deref().unwrap_or_default()),
        };
        let (mut announcement, pre) = self.inner().journal.announce(verb, cost, decided);
        let refused = match verdict {
            // An answer to a question is not what the skill was called with.
            Ok(call) if !pre.context.denied && call.get().continues.task_id.is_some() => {
                return Ok(AuthorizedCall { call, announcement, pre });
            }
            Ok(call) if !pre.context.denied => {
                match self.inner().schemas.check(&call.get().target, &args).await {
                    Ok(()) => return Ok(AuthorizedCall { call, announcement, pre }),
                    Err(invalid) => invalid,
                }
            }
            _ => {
                let reason =
                    pre.context.reason.clone().unwrap_or_else(|| "a subscriber refused the call".to_owned());
                Failure::new(FailureKind::Denied, reason)
            }
        };
        self.inner().journal.close(&mut announcement, Some(pre), &refused).await;
        Err(refused)
    }

    /// Asks policy about a call, and whether it must wait.
    fn check_or_hold(&self, call: Call) -> Result<Leave<Call>, Denied> {
        let row = self.inner().caller_agent(&call.caller);
        match self.inner().policies.load().check_or_hold(call, row.as_deref())? {
            Leave::Now(call)
                if call.get().continues.task_id.is_none()
                    && self.inner().config.approvals.asks(&call.get().target) =>
            {
                let decision = Decision { policies: Arc::clone(call.by()), ..Decision::default() };
                Ok(Leave::OnceApproved(call.into_inner(), Arc::new(decision)))
            }
            leave => Ok(leave),
        }
    }
}

// === impl Inner ===

impl EngineInner {
    /// Asks policy, with the live row of a caller that is itself a registered agent.
    pub(crate) fn check<T: Deed>(&self, deed: T) -> Result<Permitted<T>, Denied> {
        let row = self.caller_agent(deed.question().caller);
        self.policies.load().check_as(deed, row.as_deref())
    }

    /// The same for something that somebody has approved.
    pub(crate) fn check_approved<T: Deed>(&self, deed: T) -> Result<Permitted<T>, Denied> {
        let row = self.caller_agent(deed.question().caller);
        self.policies.load().check_approved(deed, row.as_deref())
    }

    /// The number of this process, if it keeps watch.
    pub(crate) fn runner_here(&self) -> ProcessId {
        self.attendance.runner()
    }

    pub(crate) fn caller_agent(&self, caller: &Caller) -> Option<Arc<Agent>> {
        match caller.kind {
            CallerKind::User | CallerKind::Session => None,
            CallerKind::Agent => self.registry.get(&AgentId::from(caller.id.as_str())),
        }
    }
}
