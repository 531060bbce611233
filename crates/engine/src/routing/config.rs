//! What can be set about choosing agents.

use std::time::Duration;

use rialto_routing::{breaker::BreakerRules, scoring::ScoringRules};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Longest span that can be set, in seconds: a day.
const MAX_SECS: f64 = 86_400.0;

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
    /// Connection failures in a row that open an agent's circuit breaker, for all calls to it; 0 turns breakers off.
    pub breaker_failures: u32,
    /// Share of failed calls within `breaker_window_secs` that opens an agent's breaker; 0 counts no share. A call fails when there is no connection,
    /// the connection breaks before the answer, or the answer is 502, 503 or 504.
    pub breaker_rate: f64,
    /// Calls within `breaker_window_secs` from which on their share counts.
    pub breaker_min_calls: u32,
    /// Length of the time window that failed calls are counted in, in seconds.
    pub breaker_window_secs: f64,
    /// First pause without calls, in seconds. Then one call goes through; if it fails too, the pause doubles.
    pub breaker_pause_secs: f64,
    /// Longest pause without calls, in seconds.
    pub breaker_longest_secs: f64,
    /// A task of which nothing was heard for so many seconds does not count as under way any more.
    pub forget_after_secs: u64,
}

// === impl Config ===

impl Default for Config {
    fn default() -> Self {
        let (rules, breaker) = (ScoringRules::default(), BreakerRules::default());
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
            breaker_failures: breaker.failures_in_a_row,
            breaker_rate: breaker.failure_rate,
            breaker_min_calls: breaker.min_calls,
            breaker_window_secs: breaker.window.as_secs_f64(),
            breaker_pause_secs: breaker.pause.as_secs_f64(),
            breaker_longest_secs: breaker.longest_pause.as_secs_f64(),
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
        self.check_breaker()
    }

    pub(crate) const fn rules(&self) -> ScoringRules {
        ScoringRules { soft_cap: self.soft_cap, hard_cap: self.hard_cap, cost_weight: self.cost_weight }
    }

    pub(crate) fn breaker_rules(&self) -> BreakerRules {
        BreakerRules {
            failures_in_a_row: self.breaker_failures,
            failure_rate: self.breaker_rate,
            min_calls: self.breaker_min_calls,
            window: seconds(self.breaker_window_secs),
            pause: seconds(self.breaker_pause_secs),
            longest_pause: seconds(self.breaker_longest_secs),
        }
    }

    fn check_breaker(&self) -> Result<(), String> {
        if !(0.0..=1.0).contains(&self.breaker_rate) {
            return Err(format!("breaker_rate: expected 0 to 1, not {}", self.breaker_rate));
        }
        let spans = [
            ("breaker_window_secs", self.breaker_window_secs),
            ("breaker_pause_secs", self.breaker_pause_secs),
            ("breaker_longest_secs", self.breaker_longest_secs),
        ];
        for (name, secs) in spans {
            if !(secs > 0.0 && secs <= MAX_SECS) {
                return Err(format!("{name}: expected more than 0 and at most {MAX_SECS}, not {secs}"));
            }
        }
        Ok(())
    }
}

/// Positive seconds as a duration; anything else, which [`Config::check`] refuses, is none.
fn seconds(secs: f64) -> Duration {
    Duration::try_from_secs_f64(secs).unwrap_or_default()
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
            (Config { breaker_rate: 1.5, ..Config::default() }, "breaker_rate"),
            (Config { breaker_pause_secs: -1.0, ..Config::default() }, "breaker_pause_secs"),
            (Config { breaker_longest_secs: f64::NAN, ..Config::default() }, "breaker_longest_secs"),
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
