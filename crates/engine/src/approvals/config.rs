//! What can be set about approvals.

use std::{collections::BTreeMap, time::Duration};

use rialto_model::{agent::Agent, call::CallTarget, card::Skill};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What waits for approval beside what policies hold back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Whether tools that say of themselves that they destroy something (`destructiveHint`) wait until somebody has approved
    /// the call: `ask` or `allow`.
    pub destructive: Destructive,
    /// The same for single servers and agents, by their names in lists.
    pub servers: BTreeMap<String, Destructive>,
    /// How long a call waits for approval, in seconds. Then it is denied.
    pub timeout_secs: u64,
}

/// Whether something that destroys may be done without asking.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Destructive {
    /// Somebody is asked first.
    Ask,
    /// It is done like anything else.
    #[default]
    Allow,
}

// === impl Config ===

impl Default for Config {
    fn default() -> Self {
        Self { destructive: Destructive::Allow, servers: BTreeMap::new(), timeout_secs: 900 }
    }
}

impl Config {
    /// How long a call waits.
    pub(crate) const fn patience(&self) -> Duration {
        Duration::from_secs(self.timeout_secs)
    }

    /// Whether somebody is asked before this is done, because of what it says of itself.
    pub(crate) fn asks(&self, target: &CallTarget) -> bool {
        // Most have nothing set, and then nothing need be looked up.
        if self.destructive == Destructive::Allow && self.servers.is_empty() {
            return false;
        }
        self.of(&target.agent) == Destructive::Ask
            && target.skill.as_deref().is_some_and(Skill::is_destructive)
    }

    fn of(&self, agent: &Agent) -> Destructive {
        self.servers.get(&agent.slug).copied().unwrap_or(self.destructive)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rialto_model::json::Json;
    use rialto_testkit::agents::{agent, skill};
    use serde_json::json;

    use super::*;

    fn target(hints: &serde_json::Value) -> CallTarget {
        let mut skill = skill("drop");
        skill.extra.push("annotations", Json::encode(hints));
        let agent = Arc::new(agent("Desk", vec![skill]));
        let skill = agent.card.skills.first().cloned();
        CallTarget { agent, skill }
    }

    #[test]
    fn what_says_that_it_destroys_waits_only_where_that_is_wanted() {
        let destroys = target(&json!({ "destructiveHint": true }));
        let reads = target(&json!({ "readOnlyHint": true, "destructiveHint": true }));
        let says_nothing = target(&json!({}));
        assert!(!Config::default().asks(&destroys));
        let all = Config { destructive: Destructive::Ask, ..Config::default() };
        assert!(all.asks(&destroys) && !all.asks(&reads) && !all.asks(&says_nothing));
        let but = BTreeMap::from([("desk".to_owned(), Destructive::Allow)]);
        assert!(!Config { servers: but, ..all }.asks(&destroys));
        let only = BTreeMap::from([("desk".to_owned(), Destructive::Ask)]);
        assert!(Config { servers: only, ..Config::default() }.asks(&destroys));
    }
}
