//! `[limits]`: limits of callers and orgs.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Limits of callers and orgs. Zero disables a limit.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct LimitsConfig {
    /// Sustained HTTP requests per caller and second. The default is far above normal use; it stops programs that loop by mistake.
    pub(crate) requests_per_second: u32,
    /// Burst of HTTP requests per caller; at least `requests_per_second`.
    pub(crate) burst: u32,
    /// Invalid tokens per address and minute before it is blocked for a short time. Loopback addresses are not counted.
    pub(crate) wrong_tokens_per_minute: u32,
    /// Concurrent calls per caller, over all endpoints of this process.
    pub(crate) concurrent_calls: usize,
    /// Open HTTP streams per caller: subscriptions, event streams and console pages.
    pub(crate) concurrent_streams: usize,
    /// Storage per org for tasks and audit records, in bytes. Measured once a minute.
    pub(crate) max_org_storage_bytes: u64,
    /// Limits of single orgs.
    pub(crate) orgs: BTreeMap<String, OrgLimitsConfig>,
    /// Limits of single tools per caller, by canonical name (`agent.skill`).
    pub(crate) tools: BTreeMap<String, ToolLimitsConfig>,
}

/// Call limits of an org. Zero disables a limit. Each process counts separately, from its start.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct OrgLimitsConfig {
    /// Calls per hour.
    pub(crate) calls_per_hour: u64,
    /// Calls per day, by UTC.
    pub(crate) calls_per_day: u64,
    /// Storage for tasks and audit records, in bytes; zero uses the limit of all orgs.
    pub(crate) max_storage_bytes: u64,
}

/// Limit of a tool per caller. Zero disables it. Each process counts separately, from its start.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ToolLimitsConfig {
    /// Calls per minute.
    pub(crate) calls_per_minute: u64,
}

// === impl LimitsConfig ===

impl LimitsConfig {
    /// Limits of requests.
    pub(crate) const fn request_limits(&self) -> rialto_http_server::rate_limits::Config {
        rialto_http_server::rate_limits::Config {
            requests_per_second: self.requests_per_second,
            burst: self.burst,
            wrong_tokens_per_minute: self.wrong_tokens_per_minute,
        }
    }

    /// Limits of calls.
    pub(crate) fn call_limits(&self) -> rialto_engine::limits::Config {
        let quota = |org: &OrgLimitsConfig| rialto_engine::limits::Quota {
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

impl Default for LimitsConfig {
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
