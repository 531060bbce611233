//! Policies as a list shows them.

use std::str::FromStr;

use cedar_policy::{ActionConstraint, EntityUid, Policy, PolicySet, PrincipalConstraint, ResourceConstraint};
use rialto_model::ids::{AgentId, OrgId};

/// What a policy does when it matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It allows, unless something forbids.
    Permit,
    /// It denies, whatever permits.
    Forbid,
}

/// One policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Its `@id`, or its place in its file.
    pub name: String,
    /// What it does when it matches.
    pub effect: Effect,
    /// Its `@summary`, or what its scope says, in one line.
    pub summary: String,
    /// Where it stands.
    pub file: String,
    /// The org that it belongs to; none if it applies to all orgs.
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

// === impl Rule ===

impl Rule {
    pub(crate) fn of(policy: &Policy, file: &str, org: Option<&OrgId>) -> Self {
        Self {
            name: policy.id().to_string(),
            effect: policy.effect().into(),
            summary: policy.annotation("summary").map_or_else(|| summary(policy), str::to_owned),
            file: file.to_owned(),
            org: org.cloned(),
        }
    }
}

/// Whether a text holds policies, and all of them are about this agent or its skills and nothing else: when the
/// agent is gone, so is their meaning.
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

fn summary(policy: &Policy) -> String {
    let subject = match (Effect::from(policy.effect()), policy.principal_constraint()) {
        (Effect::Permit, _) => format!("{} may", who(policy)),
        (Effect::Forbid, PrincipalConstraint::Any) => "nobody may".to_owned(),
        (Effect::Forbid, _) => format!("{} may not", who(policy)),
    };
    let condition = if policy.has_non_scope_constraint() { ", under conditions" } else { "" };
    format!("{subject} {} {}{condition}", what(policy), whom(policy))
}

fn who(policy: &Policy) -> String {
    match policy.principal_constraint() {
        PrincipalConstraint::Any => "everybody".to_owned(),
        PrincipalConstraint::Eq(uid) => uid.to_string(),
        PrincipalConstraint::In(uid) => format!("everybody in {uid}"),
        PrincipalConstraint::Is(kind) => format!("every {kind}"),
        PrincipalConstraint::IsIn(kind, uid) => format!("every {kind} in {uid}"),
    }
}

fn what(policy: &Policy) -> String {
    let name = |uid: &EntityUid| uid.id().unescaped().to_owned();
    match policy.action_constraint() {
        ActionConstraint::Any => "do anything to".to_owned(),
        ActionConstraint::Eq(uid) => name(&uid),
        ActionConstraint::In(uids) => uids.iter().map(name).collect::<Vec<_>>().join(" or "),
    }
}

fn whom(policy: &Policy) -> String {
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
    use crate::{policy::Policy, text::Source};

    fn rules(text: &str) -> Vec<Rule> {
        Policy::parse(&[Source { name: "x.cedar".into(), text: text.into(), org: None }]).unwrap().rules()
    }

    #[test]
    fn a_policy_is_told_in_one_line() {
        let rules = rules(
            r#"permit (principal, action, resource);
            @id("b") forbid (principal is A2AAgent in Org::"o", action in [Action::"a2a_invoke", Action::"a2a_cancel"], resource is Skill) when { resource.tags.contains("x") };
            @id("a") @summary("ann may look") permit (principal == User::"ann", action, resource);"#,
        );
        let told: Vec<_> = rules.iter().map(|r| format!("{}: {}", r.name, r.summary)).collect();
        insta::assert_snapshot!(told.join("\n"), @r#"
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
