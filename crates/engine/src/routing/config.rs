//! What can be set about choosing agents.

use rialto_route::{breaker::Patience, choice::Rules};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How agents are chosen for work that names none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Whether `tools/list` shows `dispatch`, `mesh_resolve` and `invoke_a2a`. They can be called whether or not they are listed.
    pub tools: bool,
    /// Orgs whose A2A messages without a skill go to whoever fits them best; `*` is all orgs.
    pub messages: Vec<String>,
    /// How many agents that fit are weighed; the best ones.
    pub candidates: usize,
    /// With so many tasks under way an agent counts half.
    pub soft_cap: u64,
    /// With so many tasks under way an agent gets no more.
    pub hard_cap: u64,
    /// What an observation of late keeps of its weight when the next one comes; once those of late do not fit the rest, the agent has
    /// changed, and only they count. 1 never forgets anything.
    pub discount: f64,
    /// How much prices count, where cards say them: 0 is not at all, 1 is that half the price counts double.
    pub cost_weight: f64,
    /// How many seconds a task should take. One that takes longer is worth less; without this, time does not count.
    pub target_secs: Option<f64>,
    /// Makes decisions repeatable: the same seed, agents and calls give the same choices. For tests.
    pub seed: Option<u64>,
    /// How many other agents are tried when one cannot be reached and surely has heard nothing.
    pub failovers: usize,
    /// So many calls in a row that do not reach an agent have it left alone for a while; 0 never does.
    pub breaker_failures: u32,
    /// For how many seconds at first. Then one task goes through; if it does not arrive either, the pause doubles.
    pub breaker_pause_secs: u32,
    /// For how many seconds at most.
    pub breaker_longest_secs: u32,
    /// A task of which nothing was heard for so many seconds does not count as under way any more.
    pub forget_after_secs: u64,
}

// === impl Config ===

impl Default for Config {
    fn default() -> Self {
        let (rules, patience) = (Rules::default(), Patience::default());
        Self {
            tools: true,
            messages: Vec::new(),
            candidates: 1_000,
            soft_cap: rules.soft_cap,
            hard_cap: rules.hard_cap,
            discount: 0.99,
            cost_weight: rules.cost_weight,
            target_secs: None,
            seed: None,
            failovers: 3,
            breaker_failures: patience.failures,
            breaker_pause_secs: patience.pause_secs,
            breaker_longest_secs: patience.longest_secs,
            forget_after_secs: 3_600,
        }
    }
}

impl Config {
    /// Whether messages without a skill are routed in an org.
    pub fn routes_messages(&self, org: &str) -> bool {
        self.messages.iter().any(|named| named == "*" || named == org)
    }

    /// What cannot be meant, naming the option.
    pub fn check(&self) -> Result<(), String> {
        if !(self.discount > 0.0 && self.discount <= 1.0) {
            return Err("discount: expected more than 0 and at most 1".to_owned());
        }
        if !(self.cost_weight >= 0.0 && self.cost_weight.is_finite()) {
            return Err("cost_weight: expected 0 or more".to_owned());
        }
        if self.target_secs.is_some_and(|secs| !(secs > 0.0 && secs.is_finite())) {
            return Err("target_secs: expected more than 0".to_owned());
        }
        if self.candidates == 0 || self.hard_cap == 0 {
            return Err("candidates, hard_cap: expected at least 1".to_owned());
        }
        Ok(())
    }

    pub(crate) const fn rules(&self) -> Rules {
        Rules { soft_cap: self.soft_cap, hard_cap: self.hard_cap, cost_weight: self.cost_weight }
    }

    pub(crate) const fn patience(&self) -> Patience {
        Patience {
            failures: self.breaker_failures,
            pause_secs: self.breaker_pause_secs,
            longest_secs: self.breaker_longest_secs,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_meant_is_refused_by_name() {
        assert!(Config::default().check().is_ok());
        let wrong = [
            (Config { discount: 0.0, ..Config::default() }, "discount"),
            (Config { discount: f64::NAN, ..Config::default() }, "discount"),
            (Config { cost_weight: -1.0, ..Config::default() }, "cost_weight"),
            (Config { target_secs: Some(0.0), ..Config::default() }, "target_secs"),
            (Config { hard_cap: 0, ..Config::default() }, "hard_cap"),
        ];
        for (config, name) in wrong {
            assert!(config.check().unwrap_err().contains(name), "{config:?}");
        }
    }

    #[test]
    fn messages_are_routed_for_the_orgs_that_want_it() {
        let config = Config { messages: vec!["acme".to_owned()], ..Config::default() };
        assert!(config.routes_messages("acme") && !config.routes_messages("default"));
        assert!(Config { messages: vec!["*".to_owned()], ..Config::default() }.routes_messages("default"));
    }
}
