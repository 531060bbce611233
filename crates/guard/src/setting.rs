//! Guardrails of a whole installation: one for everybody, more for single orgs, and more for single skills.
//!
//! The strictest wins: all that apply hold together, and where two of them find the same, the stricter action counts. So a skill can
//! ask for more than its org does, never for less.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    config::{Action, Check, Guardrail},
    guards::CompileError,
};

/// The guardrails of an installation.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Guardrails {
    /// Whether the guardrail for everybody counts. Those of orgs and skills say that for themselves.
    pub enabled: bool,
    /// What is looked for in everything that is said.
    pub checks: Vec<Check>,
    /// What is done when something of it is found.
    pub action: Action,
    /// How many bytes of a task's artifacts are held back, at most, until they were looked through. An answer that is longer is
    /// blocked; where nothing is held back, only so much of it is looked through.
    pub hold_bytes: usize,
    /// More guardrails for single orgs.
    pub orgs: BTreeMap<String, Guardrail>,
    /// More guardrails for single skills, by their names (`<agent>.<skill>`, or what a tool is called), or for all skills of an agent
    /// (`<agent>.*`).
    pub skills: BTreeMap<String, Guardrail>,
}

/// One of them, with where it is written.
#[derive(Clone, Debug)]
pub struct Placed {
    /// Where in the section, like `skills."desk.book"`; empty for the one for everybody.
    pub place: String,
    /// For whom it is.
    pub whose: Whose,
    /// The guardrail.
    pub guardrail: Guardrail,
}

/// For whom a guardrail is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whose {
    /// Everybody.
    All,
    /// An org.
    Org(String),
    /// A skill.
    Skill(String),
    /// All skills of an agent.
    Agent(String),
}

/// Who is called, as guardrails know it.
#[derive(Clone, Copy, Debug)]
pub struct Called<'a> {
    /// The org.
    pub org: &'a str,
    /// The agent's name.
    pub agent: &'a str,
    /// The skill's name, as it is called.
    pub skill: &'a str,
    /// The same as `<agent>.<skill>`, where that is another name.
    pub canonical: &'a str,
}

/// Guardrails that do not hold up.
#[derive(Debug, thiserror::Error)]
#[error("guardrails{}{place}: {source}", if place.is_empty() { "" } else { "." })]
pub struct SettingError {
    /// Where in the section; empty for the one for everybody.
    pub place: String,
    /// What is wrong.
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
    /// Those that look for anything, in the order of the section.
    pub fn placed(&self) -> Vec<Placed> {
        let usual = Guardrail { enabled: self.enabled, checks: self.checks.clone(), action: self.action };
        let usual = Placed { place: String::new(), whose: Whose::All, guardrail: usual };
        let orgs = self.orgs.iter().map(|(org, guardrail)| Placed {
            place: format!("orgs.{org}"),
            whose: Whose::Org(org.clone()),
            guardrail: guardrail.clone(),
        });
        let skills = self.skills.iter().map(|(name, guardrail)| Placed {
            place: format!("skills.\"{name}\""),
            whose: name
                .strip_suffix(".*")
                .map_or_else(|| Whose::Skill(name.clone()), |agent| Whose::Agent(agent.to_owned())),
            guardrail: guardrail.clone(),
        });
        let all = std::iter::once(usual).chain(orgs).chain(skills);
        all.filter(|placed| placed.guardrail.enabled && !placed.guardrail.checks.is_empty()).collect()
    }
}

// === impl Whose ===

impl Whose {
    /// Whether it is for this call.
    pub fn is_for(&self, called: &Called<'_>) -> bool {
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

    fn places(guardrails: &Guardrails, called: &Called<'_>) -> Vec<String> {
        let placed = guardrails.placed().into_iter().filter(|placed| placed.whose.is_for(called));
        placed.map(|placed| placed.place).collect()
    }

    #[test]
    fn everybodys_the_orgs_the_agents_and_the_skills_hold_together() {
        let all = read(
            r#"{"checks":[{"type":"pii"}],
                "orgs":{"acme":{"checks":[{"type":"secrets"}]},"other":{"checks":[{"type":"pii"}]}},
                "skills":{"desk.book":{"checks":[{"type":"pii"}]},"desk.*":{"checks":[{"type":"pii"}]},
                          "desk.off":{"enabled":false,"checks":[{"type":"pii"}]},"desk.none":{}}}"#,
        );
        let called = |skill| Called { org: "acme", agent: "desk", skill, canonical: skill };
        assert_eq!(
            places(&all, &called("desk.book")),
            ["", "orgs.acme", "skills.\"desk.*\"", "skills.\"desk.book\""]
        );
        assert_eq!(places(&all, &called("desk.off")), ["", "orgs.acme", "skills.\"desk.*\""]);
        let elsewhere = Called { org: "default", agent: "shop", skill: "buy", canonical: "shop.buy" };
        assert_eq!(places(&all, &elsewhere), [""]);
    }

    #[test]
    fn a_tool_is_found_by_what_it_is_called_and_by_its_server() {
        let all =
            read(r#"{"skills":{"buy":{"checks":[{"type":"pii"}]},"shop.buy":{"checks":[{"type":"pii"}]}}}"#);
        let called = Called { org: "default", agent: "shop", skill: "buy", canonical: "shop.buy" };
        assert_eq!(places(&all, &called).len(), 2);
    }

    #[test]
    fn who_looks_for_nothing_has_none() {
        assert!(read("{}").placed().is_empty());
        assert!(read(r#"{"enabled":false,"checks":[{"type":"pii"}]}"#).placed().is_empty());
    }
}
