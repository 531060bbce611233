//! Explanation of a decision, policy by policy.

use cedar_policy::{Authorizer, EntityUid, Policy, PolicySet, PrincipalConstraint, ResourceConstraint};

use crate::{
    entities::CedarRequest,
    index::{PolicyEvaluation, concerns},
    policy::PolicyDecision,
    policy_rule::{Effect, PolicySummary},
    request::Action,
};

/// Result of one policy for a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyExplanation {
    /// Policy.
    pub rule: PolicySummary,
    /// Its result.
    pub outcome: ExplanationOutcome,
}

/// Result of a policy for a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExplanationOutcome {
    /// It matches, and decides.
    Decides,
    /// It is a permit that matches, and a forbid is stronger.
    Overruled,
    /// It applies to other actions.
    OtherAction,
    /// It applies to other callers.
    OtherCaller,
    /// It applies to other agents or skills.
    OtherTarget,
    /// It applies, but its conditions are not met.
    Unmet,
    /// It could not be evaluated, and does not count.
    Failed(String),
}

// === impl PolicyExplanation ===

impl PolicyExplanation {
    pub(crate) fn new(rule: PolicySummary, policy: &Policy, action: Action, cedar: &CedarRequest) -> Self {
        let outcome = if !concerns(policy, action) {
            ExplanationOutcome::OtherAction
        } else if !matches_principal(policy, &cedar.principal) {
            ExplanationOutcome::OtherCaller
        } else if !matches_resource(policy, &cedar.resource) {
            ExplanationOutcome::OtherTarget
        } else {
            evaluate(policy, cedar)
        };
        Self { rule, outcome }
    }

    /// A matching permit decides only when the request was allowed.
    pub(crate) fn after_decision(mut self, decision: &PolicyDecision) -> Self {
        if self.outcome == ExplanationOutcome::Decides
            && self.rule.effect == Effect::Permit
            && !decision.allowed
        {
            self.outcome = ExplanationOutcome::Overruled;
        }
        self
    }
}

// === impl ExplanationOutcome ===

impl ExplanationOutcome {
    /// Name for programs.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Decides => "decides",
            Self::Overruled => "overruled",
            Self::OtherAction => "other-action",
            Self::OtherCaller => "other-caller",
            Self::OtherTarget => "other-target",
            Self::Unmet => "conditions-not-met",
            Self::Failed(_) => "failed",
        }
    }
}

impl std::fmt::Display for ExplanationOutcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Decides => "matches, and decides",
            Self::Overruled => "matches, but a forbid is stronger",
            Self::OtherAction => "is about other actions",
            Self::OtherCaller => "is about other callers",
            Self::OtherTarget => "is about other agents or skills",
            Self::Unmet => "is about this, but its conditions do not hold",
            Self::Failed(error) => return write!(f, "could not be evaluated, and does not count: {error}"),
        })
    }
}

fn evaluate(policy: &Policy, cedar: &CedarRequest) -> ExplanationOutcome {
    let mut alone = PolicySet::new();
    if let Err(error) = alone.add(policy.clone()) {
        return ExplanationOutcome::Failed(error.to_string());
    }
    let evaluation = PolicyEvaluation::evaluate(&Authorizer::new(), &alone, cedar);
    match evaluation.errors.into_iter().next() {
        Some(error) => ExplanationOutcome::Failed(error),
        None if evaluation.permits.is_empty() && evaluation.forbids.is_empty() => ExplanationOutcome::Unmet,
        None => ExplanationOutcome::Decides,
    }
}

/// True if a policy's scope matches a principal, given with its ancestors.
fn matches_principal(policy: &Policy, line: &[EntityUid]) -> bool {
    let is_kind = |kind| line.first().is_some_and(|uid| *uid.type_name() == kind);
    match policy.principal_constraint() {
        PrincipalConstraint::Any => true,
        PrincipalConstraint::Eq(uid) => line.first() == Some(&uid),
        PrincipalConstraint::In(uid) => line.contains(&uid),
        PrincipalConstraint::Is(kind) => is_kind(kind),
        PrincipalConstraint::IsIn(kind, uid) => is_kind(kind) && line.contains(&uid),
    }
}

/// True if a policy's scope matches a resource, given with its ancestors.
fn matches_resource(policy: &Policy, line: &[EntityUid]) -> bool {
    let is_kind = |kind| line.first().is_some_and(|uid| *uid.type_name() == kind);
    match policy.resource_constraint() {
        ResourceConstraint::Any => true,
        ResourceConstraint::Eq(uid) => line.first() == Some(&uid),
        ResourceConstraint::In(uid) => line.contains(&uid),
        ResourceConstraint::Is(kind) => is_kind(kind),
        ResourceConstraint::IsIn(kind, uid) => is_kind(kind) && line.contains(&uid),
    }
}

#[cfg(test)]
mod tests {
    use rialto_model::{agent::AgentTrust, call::Caller};

    use super::*;
    use crate::{
        policy::Policy,
        request::{AuthorizationRequest, Resource},
        samples,
        source::PolicySource,
    };

    #[test]
    fn each_policy_says_why_it_decides_or_why_not() {
        let text = r#"
            @id("yes") permit (principal == User::"ann", action, resource is Skill in A2AAgent::"agt_1");
            @id("action") permit (principal, action == Action::"a2a_cancel", resource);
            @id("caller") permit (principal is Session, action, resource);
            @id("target") permit (principal, action, resource == A2AAgent::"agt_1");
            @id("condition") permit (principal, action, resource is Skill) when { resource.tags.contains("fun") };
        "#;
        let forbid = r#"@id("no") forbid (principal in Org::"default", action, resource);"#;
        insta::assert_snapshot!(explained(text), @"
        yes: matches, and decides
        action: is about other actions
        caller: is about other callers
        target: is about other agents or skills
        condition: is about this, but its conditions do not hold
        ");
        assert!(explained(&format!("{text}{forbid}")).contains("yes: matches, but a forbid is stronger"));
        assert!(explained(&format!("{text}{forbid}")).contains("no: matches, and decides"));
    }

    fn explained(text: &str) -> String {
        let policy =
            Policy::parse(&[PolicySource { name: "x.cedar".into(), text: text.into(), org: None }]).unwrap();
        let (caller, agent) = (Caller::user("ann"), samples::agent(AgentTrust::External));
        let resource = Resource::Skill(&agent, &agent.card.skills[0]);
        let request = AuthorizationRequest {
            caller: &caller,
            caller_agent: None,
            action: Action::Invoke,
            resource,
            approved: false,
        };
        let findings = policy.explain(&request);
        let lines = findings.iter().map(|finding| format!("{}: {}", finding.rule.name, finding.outcome));
        lines.collect::<Vec<_>>().join("\n")
    }
}
