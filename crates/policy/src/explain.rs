//! Why a question was answered as it was, policy by policy.

use cedar_policy::{Authorizer, EntityUid, Policy, PolicySet, PrincipalConstraint, ResourceConstraint};

use crate::{
    entities::Asked,
    index::{Verdict, concerns},
    policy::Decision,
    question::Action,
    rules::{Effect, Rule},
};

/// What one policy says to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The policy.
    pub rule: Rule,
    /// What it says.
    pub outcome: Outcome,
}

/// What a policy says to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It matches, and decides.
    Decides,
    /// It is a permit that matches, and a forbid is stronger.
    Overruled,
    /// It is about other actions.
    OtherAction,
    /// It is about other callers.
    OtherCaller,
    /// It is about something else that is called.
    OtherTarget,
    /// It is about this, and its conditions do not hold.
    Unmet,
    /// It could not be evaluated, and does not count.
    Failed(String),
}

// === impl Finding ===

impl Finding {
    pub(crate) fn of(rule: Rule, policy: &Policy, action: Action, asked: &Asked) -> Self {
        let outcome = if !concerns(policy, action) {
            Outcome::OtherAction
        } else if !is_from(policy, &asked.principal) {
            Outcome::OtherCaller
        } else if !is_to(policy, &asked.resource) {
            Outcome::OtherTarget
        } else {
            evaluate(policy, asked)
        };
        Self { rule, outcome }
    }

    /// A permit that matches decides only when it was allowed.
    pub(crate) fn weighed(mut self, decision: &Decision) -> Self {
        if self.outcome == Outcome::Decides && self.rule.effect == Effect::Permit && !decision.allowed {
            self.outcome = Outcome::Overruled;
        }
        self
    }
}

// === impl Outcome ===

impl Outcome {
    /// One word for programs.
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

impl std::fmt::Display for Outcome {
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

fn evaluate(policy: &Policy, asked: &Asked) -> Outcome {
    let mut alone = PolicySet::new();
    if let Err(error) = alone.add(policy.clone()) {
        return Outcome::Failed(error.to_string());
    }
    let verdict = Verdict::of(&Authorizer::new(), &alone, asked);
    match verdict.errors.into_iter().next() {
        Some(error) => Outcome::Failed(error),
        None if verdict.permits.is_empty() && verdict.forbids.is_empty() => Outcome::Unmet,
        None => Outcome::Decides,
    }
}

/// Whether a policy's scope has room for a principal, which is followed by what it is in.
fn is_from(policy: &Policy, line: &[EntityUid]) -> bool {
    let is_kind = |kind| line.first().is_some_and(|uid| *uid.type_name() == kind);
    match policy.principal_constraint() {
        PrincipalConstraint::Any => true,
        PrincipalConstraint::Eq(uid) => line.first() == Some(&uid),
        PrincipalConstraint::In(uid) => line.contains(&uid),
        PrincipalConstraint::Is(kind) => is_kind(kind),
        PrincipalConstraint::IsIn(kind, uid) => is_kind(kind) && line.contains(&uid),
    }
}

/// Whether a policy's scope has room for a resource, which is followed by what it is in.
fn is_to(policy: &Policy, line: &[EntityUid]) -> bool {
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
        question::{Question, Resource},
        samples,
        text::Source,
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
            Policy::parse(&[Source { name: "x.cedar".into(), text: text.into(), org: None }]).unwrap();
        let (caller, agent) = (Caller::user("ann"), samples::agent(AgentTrust::External));
        let resource = Resource::Skill(&agent, &agent.card.skills[0]);
        let question = Question {
            caller: &caller,
            caller_agent: None,
            action: Action::Invoke,
            resource,
            approved: false,
        };
        let findings = policy.explain(&question);
        let lines = findings.iter().map(|finding| format!("{}: {}", finding.rule.name, finding.outcome));
        lines.collect::<Vec<_>>().join("\n")
    }
}
