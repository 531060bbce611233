//! Policies as list entries.

use std::str::FromStr;

use cedar_policy::{ActionConstraint, EntityUid, Policy, PolicySet, PrincipalConstraint, ResourceConstraint};
use rialto_model::ids::{AgentId, OrgId};

/// Effect of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It allows, unless something forbids.
    Permit,
    /// It denies, whatever permits.
    Forbid,
}

/// List entry of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicySummary {
    /// Its `@id`, or its place in its file.
    pub name: String,
    /// Effect when it matches.
    pub effect: Effect,
    /// Its `@summary`, or what its scope says, in one line.
    pub summary: String,
    /// File it is in.
    pub file: String,
    /// Org that it belongs to; none if it applies to all orgs.
    pub org: Option<OrgId>,
}

// === impl Effect ===

impl Effect {
    /// Its name in Cedar.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Permit => "permit",
            Self::Forbid => "forbid",
        }
    }
}

impl From<cedar_policy::Effect> for Effect {
    fn from(effect: cedar_policy::Effect) -> Self {
        match effect {
            cedar_policy::Effect::Permit => Self::Permit,
            cedar_policy::Effect::Forbid => Self::Forbid,
        }
    }
}

// === impl PolicySummary ===

impl PolicySummary {
    pub(crate) fn from_cedar(policy: &Policy, file: &str, org: Option<&OrgId>) -> Self {
        Self {
            name: policy.id().to_string(),
            effect: policy.effect().into(),
            summary: policy.annotation("summary").map_or_else(|| describe_policy(policy), str::to_owned),
            file: file.to_owned(),
            org: org.cloned(),
        }
    }
}

/// True if all policies of a text name only this agent or its skills, so that they mean nothing without it.
pub fn is_only_about(text: &str, agent: &AgentId) -> bool {
    let Ok(set) = PolicySet::from_str(text) else { return false };
    !set.is_empty() && set.policies().all(|policy| names_agent(policy, agent))
}

fn names_agent(policy: &Policy, agent: &AgentId) -> bool {
    let (ResourceConstraint::Eq(uid) | ResourceConstraint::In(uid) | ResourceConstraint::IsIn(_, uid)) =
        policy.resource_constraint()
    else {
        return false;
    };
    let id = uid.id().unescaped();
    match uid.type_name().to_string().as_str() {
        "A2AAgent" => id == agent.as_str(),
        "Skill" => id.strip_prefix(agent.as_str()).is_some_and(|skill| skill.starts_with('/')),
        _ => false,
    }
}

fn describe_policy(policy: &Policy) -> String {
    let subject = match (Effect::from(policy.effect()), policy.principal_constraint()) {
        (Effect::Permit, _) => format!("{} may", describe_principal(policy)),
        (Effect::Forbid, PrincipalConstraint::Any) => "nobody may".to_owned(),
        (Effect::Forbid, _) => format!("{} may not", describe_principal(policy)),
    };
    let condition = if policy.has_non_scope_constraint() { ", under conditions" } else { "" };
    format!("{subject} {} {}{condition}", describe_action(policy), describe_resource(policy))
}

fn describe_principal(policy: &Policy) -> String {
    match policy.principal_constraint() {
        PrincipalConstraint::Any => "everybody".to_owned(),
        PrincipalConstraint::Eq(uid) => uid.to_string(),
        PrincipalConstraint::In(uid) => format!("everybody in {uid}"),
        PrincipalConstraint::Is(kind) => format!("every {kind}"),
        PrincipalConstraint::IsIn(kind, uid) => format!("every {kind} in {uid}"),
    }
}

fn describe_action(policy: &Policy) -> String {
    let name = |uid: &EntityUid| uid.id().unescaped().to_owned();
    match policy.action_constraint() {
        ActionConstraint::Any => "do anything to".to_owned(),
        ActionConstraint::Eq(uid) => name(&uid),
        ActionConstraint::In(uids) => uids.iter().map(name).collect::<Vec<_>>().join(" or "),
    }
}

fn describe_resource(policy: &Policy) -> String {
    match policy.resource_constraint() {
        ResourceConstraint::Any => "everything".to_owned(),
        ResourceConstraint::Eq(uid) => uid.to_string(),
        ResourceConstraint::In(uid) => format!("everything in {uid}"),
        ResourceConstraint::Is(kind) => format!("every {kind}"),
        ResourceConstraint::IsIn(kind, uid) => format!("every {kind} in {uid}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{policy::Policy, source::PolicySource};

    fn rules(text: &str) -> Vec<PolicySummary> {
        Policy::parse(&[PolicySource { name: "x.cedar".into(), text: text.into(), org: None }])
            .unwrap()
            .rules()
    }

    #[test]
    fn a_policy_is_described_in_one_line() {
        let rules = rules(
            r#"permit (principal, action, resource);
            @id("b") forbid (principal is A2AAgent in Org::"o", action in [Action::"a2a_invoke", Action::"a2a_cancel"], resource is Skill) when { resource.tags.contains("x") };
            @id("a") @summary("ann may look") permit (principal == User::"ann", action, resource);"#,
        );
        let lines: Vec<_> = rules.iter().map(|r| format!("{}: {}", r.name, r.summary)).collect();
        insta::assert_snapshot!(lines.join("\n"), @r#"
        x.cedar#1: everybody may do anything to everything
        b: every A2AAgent in Org::"o" may not a2a_invoke or a2a_cancel every Skill, under conditions
        a: ann may look
        "#);
    }

    #[test]
    fn a_text_that_is_only_about_one_agent_is_known_as_such() {
        let agent = AgentId::from("agt_1");
        let about = |text: &str| is_only_about(text, &agent);
        assert!(about(r#"permit (principal, action, resource in A2AAgent::"agt_1");"#));
        assert!(about(r#"forbid (principal, action, resource == Skill::"agt_1/deploy");"#));
        assert!(!about(r#"permit (principal, action, resource in A2AAgent::"agt_10");"#));
        assert!(!about(r#"permit (principal, action, resource == Skill::"agt_10/deploy");"#));
        assert!(!about(
            r#"permit (principal, action, resource in A2AAgent::"agt_1"); permit (principal, action, resource);"#
        ));
        assert!(!about("// agt_1") && !about("permit ("));
    }
}
