//! What can be set about calls and the registry.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use rialto_model::{
    agent::Agent,
    ids::OrgId,
    trace::{Sampling, Trace},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{approvals, limits, routing};

/// A program that is started for the first time may have to be downloaded.
const START: Duration = Duration::from_secs(60);

/// How calls are made and agents looked after.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Wall clock of one call, in milliseconds. A call that takes longer is answered with its task id.
    pub timeout_ms: u64,
    /// How long a task is followed after its caller was told that it takes too long, in seconds.
    pub patience_secs: u64,
    /// While a call runs, its caller hears something at least this often, in seconds.
    pub heartbeat_secs: u64,
    /// Wall clocks of single orgs, in milliseconds.
    pub org_timeout_ms: BTreeMap<String, u64>,
    /// How long fetching a card may take, in milliseconds.
    pub discovery_timeout_ms: u64,
    /// How often each agent's health is probed, in seconds; 0 turns probes off.
    pub probe_interval_secs: u64,
    /// How many probes may be under way at once.
    pub probe_concurrency: usize,
    /// Hold a changed card until `rialto agents approve` accepts it.
    pub pin_cards: bool,
    /// Maximum bytes that an agent may send into one task; beyond it the task is cancelled and fails. 0 is without a limit.
    pub max_task_bytes: u64,
    /// Maximum events that an agent may send into one task; beyond it the task is cancelled and fails. 0 is without a limit.
    pub max_task_events: u64,
    /// Maximum calls through this server that may lead to one another: an agent that calls back is refused beyond it.
    pub max_hops: u8,
    /// Arguments that are larger than this, in bytes, are kept neither with their task nor in the audit log: their size and hash are.
    /// 0 is without a limit.
    pub max_kept_args_bytes: usize,
    /// Maximum time that one operation of the store may take, in seconds; a caller with an earlier deadline waits no longer than
    /// that. 0 is without a limit.
    pub store_timeout_secs: u64,
    /// Maximum bytes of results that are held in memory while the store is not available; beyond it nothing more is read from
    /// agents until some are recorded.
    pub max_held_bytes: usize,
    /// Evaluate only the policies whose scope can match a request (policy index), which saves CPU time where there are many. Decisions are
    /// the same either way.
    pub policy_index: bool,
    /// How much callers and orgs may ask for. It has a section of its own in the configuration.
    #[serde(skip)]
    pub limits: limits::Config,
    /// How agents are chosen for work that names none. It has a section of its own in the configuration.
    #[serde(skip)]
    pub routing: routing::Config,
    /// What waits for approval. It has a section of its own in the configuration.
    #[serde(skip)]
    pub approvals: approvals::Config,
    /// Whether calls that come without a trace begin one, which takes somebody who collects them.
    #[serde(skip)]
    pub traces: Option<Sampling>,
}

// === impl Config ===

impl Default for Config {
    fn default() -> Self {
        Self {
            timeout_ms: 30_000,
            patience_secs: 900,
            heartbeat_secs: 10,
            org_timeout_ms: BTreeMap::new(),
            discovery_timeout_ms: 5_000,
            probe_interval_secs: 30,
            probe_concurrency: 16,
            pin_cards: false,
            max_task_bytes: 64 * 1024 * 1024,
            max_task_events: 100_000,
            max_hops: 8,
            max_kept_args_bytes: 64 * 1024,
            store_timeout_secs: 10,
            max_held_bytes: 64 * 1024 * 1024,
            policy_index: true,
            limits: limits::Config::default(),
            routing: routing::Config::default(),
            approvals: approvals::Config::default(),
            traces: None,
        }
    }
}

impl Config {
    /// The wall clock of a call: the agent's own, else the org's, else everybody's.
    pub fn call_timeout(&self, org: &OrgId, agent: &Agent) -> Duration {
        let of_org = || self.org_timeout_ms.get(org.as_str()).copied();
        Duration::from_millis(agent.timeout_ms.or_else(of_org).unwrap_or(self.timeout_ms))
    }

    /// The trace of a call: its caller's, or one of its own if somebody collects them.
    pub(crate) fn trace(&self, parent: Option<&Trace>, hops: u8) -> Option<Arc<Trace>> {
        let begun = || self.traces.map(Trace::begin);
        let trace = parent.map(Trace::child).or_else(begun);
        trace.map(|trace| Arc::new(trace.with_hops(hops.saturating_add(1))))
    }

    /// How long one operation of the store may take.
    pub fn store_timeout(&self) -> Option<Duration> {
        Some(Duration::from_secs(self.store_timeout_secs)).filter(|timeout| !timeout.is_zero())
    }

    /// How long something may take that is started to be asked what it can do: more than a server that runs already.
    pub(crate) fn start_timeout(&self) -> Duration {
        self.discovery_timeout().max(START)
    }

    /// How long fetching a card may take.
    pub const fn discovery_timeout(&self) -> Duration {
        Duration::from_millis(self.discovery_timeout_ms)
    }
}

#[cfg(test)]
mod tests {
    use rialto_model::ids::OrgId;

    use super::*;

    #[test]
    fn the_agents_wall_clock_counts_before_the_orgs_and_that_before_everybodys() {
        let org_timeout_ms = BTreeMap::from([("acme".to_owned(), 2_000)]);
        let config = Config { timeout_ms: 3_000, org_timeout_ms, ..Config::default() };
        let timeout = |org: &str, timeout_ms| {
            let agent = Agent { timeout_ms, ..rialto_testkit::agents::agent("Desk", Vec::new()) };
            config.call_timeout(&OrgId::from(org), &agent).as_millis()
        };
        assert_eq!(timeout("acme", Some(1_000)), 1_000);
        assert_eq!(timeout("acme", None), 2_000);
        assert_eq!(timeout("default", None), 3_000);
    }
}
