//! Authorization: every question to policy about a caller is asked here, with the caller's own live row.

use std::sync::Arc;

use rialto_model::{
    agent::Agent,
    audit_event::AuditEvent,
    call::{Call, CallTarget, Caller, CallerKind},
    failure::{Failure, FailureKind},
    ids::AgentId,
};
use rialto_policy::{
    Action, Authorizable, Authorization, AuthorizationRequest, Denied, Permitted, PolicyDecision,
};

use crate::{
    call_service::CallService,
    journal::{AuditSpan, audit_verb},
    policies::PolicyService,
    redact::kept_args,
};

/// A call that may leave, now or once it is approved.
pub(crate) struct AuthorizedCall {
    pub(crate) call: Authorization<Call>,
    pub(crate) span: AuditSpan,
    pub(crate) pre: AuditEvent,
}

// === impl PolicyService ===

impl PolicyService {
    /// True if a caller may see a skill in a list.
    pub fn may_discover(&self, caller: &Caller, target: &CallTarget) -> bool {
        self.decide(caller, Action::Discover, target).allowed
    }

    /// True if a caller may call a target without approval.
    pub(crate) fn may_invoke(&self, caller: &Caller, target: &CallTarget) -> bool {
        self.decide(caller, Action::Invoke, target).allowed
    }

    /// True if policy permits a call, now or once it is approved.
    pub(crate) fn may_permit(&self, call: &Call) -> bool {
        let decision = self.decide(&call.caller, Action::Invoke, &call.target);
        decision.allowed || !decision.approvers.is_empty()
    }

    /// Refuses an administrative action that policy does not permit the caller. An operation that changes anything calls
    /// [`PolicyService::sync`] before.
    pub fn require_admin(&self, caller: &Caller, action: Action) -> Result<(), Failure> {
        let row = self.caller_agent(caller);
        let allowed = self
            .load()
            .require(&AuthorizationRequest::for_admin(caller, action).with_caller_agent(row.as_deref()));
        allowed.map_err(|denied| Failure::new(FailureKind::Denied, denied.to_string()))
    }

    /// Refuses an action that policy does not permit the caller; returns the policies that permit it.
    pub(crate) fn require(
        &self,
        by: &Caller,
        action: Action,
        target: &CallTarget,
    ) -> Result<Vec<String>, Failure> {
        let row = self.caller_agent(by);
        let question = AuthorizationRequest::for_target(by, action, target).with_caller_agent(row.as_deref());
        let policy = self.active();
        policy.require(&question).map_err(|denied| Failure::new(FailureKind::Denied, denied.to_string()))?;
        Ok(policy.decide(&question).policies.to_vec())
    }

    /// Asks policy, with the live row of a caller that is itself a registered agent.
    pub(crate) fn check<T: Authorizable>(&self, deed: T) -> Result<Permitted<T>, Denied> {
        let row = self.caller_agent(deed.policy_request().caller);
        self.load().authorize_as(deed, row.as_deref())
    }

    /// Asks policy about something that a person has approved.
    pub(crate) fn check_approved<T: Authorizable>(&self, deed: T) -> Result<Permitted<T>, Denied> {
        let row = self.caller_agent(deed.policy_request().caller);
        self.load().authorize_approved(deed, row.as_deref())
    }

    /// Asks policy about a call: permitted, permitted once it is approved, or denied.
    fn check_or_hold(&self, call: Call) -> Result<Authorization<Call>, Denied> {
        let row = self.caller_agent(&call.caller);
        self.load().authorize_or_hold(call, row.as_deref())
    }

    fn decide(&self, caller: &Caller, action: Action, target: &CallTarget) -> Arc<PolicyDecision> {
        let row = self.caller_agent(caller);
        self.load().decide(
            &AuthorizationRequest::for_target(caller, action, target).with_caller_agent(row.as_deref()),
        )
    }

    fn caller_agent(&self, caller: &Caller) -> Option<Arc<Agent>> {
        match caller.kind {
            CallerKind::User | CallerKind::Session => None,
            CallerKind::Agent => self.registry.get(&AgentId::from(caller.id.as_str())),
        }
    }
}

// === impl CallService ===

impl CallService {
    /// Checks guardrails, policy and the arguments of a call, and publishes its pre-verb event. Nothing of a refused call has left this
    /// process.
    pub(crate) async fn authorize(&self, call: Call) -> Result<AuthorizedCall, Failure> {
        let call = match self.guardrails.find_checker(&call) {
            Some(checker) => Box::pin(self.guardrails.check_call(checker, call)).await?,
            None => call,
        };
        let args = call.args();
        let (verb, cost) =
            (audit_verb(&call, kept_args(&args, self.runner.config.max_kept_args_bytes)), call.target.cost());
        let mut verdict = self.check_or_hold(call);
        if let Ok(Authorization::NeedsApproval(call, _)) = &verdict
            && call.continues.task_id.is_some()
            && Box::pin(self.approvals.was_approved(&call.task)).await?
        {
            // A task that was approved once needs no other approval.
            verdict = self.runner.policies.check_approved(call.clone()).map(Authorization::Allow);
        }
        let refusal = verdict.as_ref().err().map(ToString::to_string);
        let decided = match (&verdict, &refusal) {
            (Ok(call), _) => Ok(call.by()),
            (Err(_), reason) => Err(reason.as_deref().unwrap_or_default()),
        };
        let (mut span, pre) = self.runner.journal.announce(verb, cost, decided);
        let refused = match verdict {
            // An answer to a question is not what the skill was called with.
            Ok(call) if !pre.context.denied && call.get().continues.task_id.is_some() => {
                return Ok(AuthorizedCall { call, span, pre });
            }
            Ok(call) if !pre.context.denied => match self.schemas.check(&call.get().target, &args).await {
                Ok(()) => return Ok(AuthorizedCall { call, span, pre }),
                Err(invalid) => invalid,
            },
            _ => {
                let reason =
                    pre.context.reason.clone().unwrap_or_else(|| "a subscriber refused the call".to_owned());
                Failure::new(FailureKind::Denied, reason)
            }
        };
        self.runner.journal.close(&mut span, Some(pre), &refused).await;
        Err(refused)
    }

    /// Asks policy about a call, and the configuration if it must wait for approval.
    fn check_or_hold(&self, call: Call) -> Result<Authorization<Call>, Denied> {
        match self.runner.policies.check_or_hold(call)? {
            Authorization::Allow(call)
                if call.get().continues.task_id.is_none()
                    && self.runner.config.approvals.asks(&call.get().target) =>
            {
                let decision =
                    PolicyDecision { policies: Arc::clone(call.by()), ..PolicyDecision::default() };
                Ok(Authorization::NeedsApproval(call.into_inner(), Arc::new(decision)))
            }
            verdict => Ok(verdict),
        }
    }
}
