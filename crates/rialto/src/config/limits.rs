//! `[limits]`: how much callers and orgs may ask for.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How much callers and orgs may ask for. Zero is without a limit.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Limits {
    /// How many requests a caller may send over HTTP each second, over time. Programs of a team stay far below the default; one that loops
    /// by mistake does not.
    pub(crate) requests_per_second: u32,
    /// How many requests a caller may send at once before that counts; at least as many as in a second.
    pub(crate) burst: u32,
    /// How many wrong tokens may come from an address each minute before it is shut out for a moment. Loopback addresses
    /// are not counted.
    pub(crate) wrong_tokens_per_minute: u32,
    /// How many calls of one caller may be under way at once, by all doors of this process.
    pub(crate) concurrent_calls: usize,
    /// How many streams one caller may keep open over HTTP: subscriptions, streams of events, watchers of the console.
    pub(crate) concurrent_streams: usize,
    /// How many bytes of tasks and audit records each org may keep. The store is asked once a minute.
    pub(crate) max_org_storage_bytes: u64,
    /// What single orgs may.
    pub(crate) orgs: BTreeMap<String, OrgLimits>,
    /// How often each caller may call single tools, by their canonical names (`agent.skill`).
    pub(crate) tools: BTreeMap<String, ToolLimits>,
}

/// How many calls an org may make. Zero is without a limit. Each process counts for itself, from its start.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct OrgLimits {
    /// How many in each hour.
    pub(crate) calls_per_hour: u64,
    /// How many in each day, by UTC.
    pub(crate) calls_per_day: u64,
    /// How many bytes of tasks and audit records it may keep; zero is what every org may.
    pub(crate) max_storage_bytes: u64,
}

/// How often each caller may call a tool. Zero is without a limit. Each process counts for itself, from its start.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ToolLimits {
    /// How many times in each minute.
    pub(crate) calls_per_minute: u64,
}

// === impl Limits ===

impl Limits {
    /// What counts for requests.
    pub(crate) const fn requests(&self) -> rialto_edge::rate_limits::Config {
        rialto_edge::rate_limits::Config {
            requests_per_second: self.requests_per_second,
            burst: self.burst,
            wrong_tokens_per_minute: self.wrong_tokens_per_minute,
        }
    }

    /// What counts for calls.
    pub(crate) fn calls(&self) -> rialto_engine::limits::Config {
        let quota = |org: &OrgLimits| rialto_engine::limits::Quota {
            calls_per_hour: org.calls_per_hour,
            calls_per_day: org.calls_per_day,
            storage_bytes: org.max_storage_bytes,
        };
        rialto_engine::limits::Config {
            concurrent_calls: self.concurrent_calls,
            org_storage_bytes: self.max_org_storage_bytes,
            orgs: self.orgs.iter().map(|(name, org)| (name.clone(), quota(org))).collect(),
            tools: self.tools.iter().map(|(name, tool)| (name.clone(), tool.calls_per_minute)).collect(),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        let concurrent_calls = rialto_engine::limits::Config::default().concurrent_calls;
        Self {
            requests_per_second: 2_000,
            burst: 20_000,
            wrong_tokens_per_minute: 30,
            concurrent_calls,
            concurrent_streams: 256,
            max_org_storage_bytes: 0,
            orgs: BTreeMap::new(),
            tools: BTreeMap::new(),
        }
    }
}
