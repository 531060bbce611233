//! Guardrails of an installation: for everything, for single orgs, and for single skills.
//!
//! The strictest wins: all that apply are combined, and of two with the same finding the stricter action counts. So a skill can require
//! more than its org, never less.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    config::{CheckAction, Guardrail, GuardrailCheck},
    ruleset::CompileError,
};

/// The guardrails of an installation.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Guardrails {
    /// True if the guardrail for everything applies. Those of orgs and skills have their own switch.
    pub enabled: bool,
    /// Checks of every message.
    pub checks: Vec<GuardrailCheck>,
    /// Action when one of them finds something.
    pub action: CheckAction,
    /// Maximum bytes of a task's artifacts that are held back until they are checked. A longer response is blocked; where nothing is held
    /// back, only this much is checked.
    pub hold_bytes: usize,
    /// Further guardrails for single orgs.
    pub orgs: BTreeMap<String, Guardrail>,
    /// Further guardrails for single skills, by name (`<agent>.<skill>`, or the name of a tool), or for all skills of an agent
    /// (`<agent>.*`).
    pub skills: BTreeMap<String, Guardrail>,
}

/// Guardrail with its scope and its place in the configuration.
#[derive(Clone, Debug)]
pub struct ScopedGuardrail {
    /// Place in the section, like `skills."desk.book"`; empty for the one for everything.
    pub place: String,
    /// Scope.
    pub scope: GuardrailScope,
    /// The guardrail.
    pub guardrail: Guardrail,
}

/// Scope of a guardrail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GuardrailScope {
    /// All calls.
    All,
    /// An org.
    Org(String),
    /// A skill.
    Skill(String),
    /// All skills of an agent.
    Agent(String),
}

/// Names of the called skill.
#[derive(Clone, Copy, Debug)]
pub struct CalledSkill<'a> {
    /// The org.
    pub org: &'a str,
    /// The agent's name.
    pub agent: &'a str,
    /// The skill's name, as it is called.
    pub skill: &'a str,
    /// `<agent>.<skill>`, where that is another name.
    pub canonical: &'a str,
}

/// Guardrails that cannot be compiled.
#[derive(Debug, thiserror::Error)]
#[error("guardrails{}{place}: {source}", if place.is_empty() { "" } else { "." })]
pub struct ScopedRuleError {
    /// Place in the section; empty for the one for everything.
    pub place: String,
    /// Error.
    pub source: CompileError,
}

// === impl Guardrails ===

impl Default for Guardrails {
    fn default() -> Self {
        let usual = Guardrail::default();
        Self {
            enabled: usual.enabled,
            checks: usual.checks,
            action: usual.action,
            hold_bytes: 4 * 1024 * 1024,
            orgs: BTreeMap::new(),
            skills: BTreeMap::new(),
        }
    }
}

impl Guardrails {
    /// Enabled guardrails with checks, in the order of the section.
    pub fn enabled(&self) -> Vec<ScopedGuardrail> {
        let usual = Guardrail { enabled: self.enabled, checks: self.checks.clone(), action: self.action };
        let usual = ScopedGuardrail { place: String::new(), scope: GuardrailScope::All, guardrail: usual };
        let orgs = self.orgs.iter().map(|(org, guardrail)| ScopedGuardrail {
            place: format!("orgs.{org}"),
            scope: GuardrailScope::Org(org.clone()),
            guardrail: guardrail.clone(),
        });
        let skills = self.skills.iter().map(|(name, guardrail)| ScopedGuardrail {
            place: format!("skills.\"{name}\""),
            scope: name.strip_suffix(".*").map_or_else(
                || GuardrailScope::Skill(name.clone()),
                |agent| GuardrailScope::Agent(agent.to_owned()),
            ),
            guardrail: guardrail.clone(),
        });
        let all = std::iter::once(usual).chain(orgs).chain(skills);
        all.filter(|scoped| scoped.guardrail.enabled && !scoped.guardrail.checks.is_empty()).collect()
    }
}

// === impl GuardrailScope ===

impl GuardrailScope {
    /// True if it applies to this call.
    pub fn applies_to(&self, called: &CalledSkill<'_>) -> bool {
        match self {
            Self::All => true,
            Self::Org(org) => org == called.org,
            Self::Skill(name) => name == called.skill || name == called.canonical,
            Self::Agent(agent) => agent == called.agent,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Guardrails {
        serde_json::from_str(text).unwrap()
    }

    fn places(guardrails: &Guardrails, called: &CalledSkill<'_>) -> Vec<String> {
        let scoped = guardrails.enabled().into_iter().filter(|scoped| scoped.scope.applies_to(called));
        scoped.map(|scoped| scoped.place).collect()
    }

    #[test]
    fn everybodys_the_orgs_the_agents_and_the_skills_hold_together() {
        let all = read(
            r#"{"checks":[{"type":"pii"}],
                "orgs":{"acme":{"checks":[{"type":"secrets"}]},"other":{"checks":[{"type":"pii"}]}},
                "skills":{"desk.book":{"checks":[{"type":"pii"}]},"desk.*":{"checks":[{"type":"pii"}]},
                          "desk.off":{"enabled":false,"checks":[{"type":"pii"}]},"desk.none":{}}}"#,
        );
        let called = |skill| CalledSkill { org: "acme", agent: "desk", skill, canonical: skill };
        assert_eq!(
            places(&all, &called("desk.book")),
            ["", "orgs.acme", "skills.\"desk.*\"", "skills.\"desk.book\""]
        );
        assert_eq!(places(&all, &called("desk.off")), ["", "orgs.acme", "skills.\"desk.*\""]);
        let elsewhere = CalledSkill { org: "default", agent: "shop", skill: "buy", canonical: "shop.buy" };
        assert_eq!(places(&all, &elsewhere), [""]);
    }

    #[test]
    fn a_tool_is_found_by_what_it_is_called_and_by_its_server() {
        let all =
            read(r#"{"skills":{"buy":{"checks":[{"type":"pii"}]},"shop.buy":{"checks":[{"type":"pii"}]}}}"#);
        let called = CalledSkill { org: "default", agent: "shop", skill: "buy", canonical: "shop.buy" };
        assert_eq!(places(&all, &called).len(), 2);
    }

    #[test]
    fn a_configuration_without_checks_has_no_guardrails() {
        assert!(read("{}").enabled().is_empty());
        assert!(read(r#"{"enabled":false,"checks":[{"type":"pii"}]}"#).enabled().is_empty());
    }
}
