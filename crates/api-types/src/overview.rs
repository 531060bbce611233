//! The caller, the state of the project, and errors.

use std::collections::BTreeMap;

use rialto_model::{
    agent::Health,
    call::{CallerId, CallerKind},
    ids::{OrgId, ProjectId},
    token_scopes::TokenScope,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Caller of the request, and what it may administer.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CallerIdentity {
    /// Name of the caller.
    pub caller: CallerId,
    /// Kind of the caller.
    pub kind: CallerKind,
    /// Org of the caller.
    pub org: OrgId,
    /// Project of the caller.
    pub project: ProjectId,
    /// Scopes of its token.
    pub scopes: Vec<TokenScope>,
    /// Administrative actions in their usual order, each with whether the policies allow it.
    #[schemars(with = "BTreeMap<String, bool>")]
    pub may: Map<String, Value>,
    /// Version of the server.
    pub version: String,
}

/// State of the caller's project.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ProjectOverview {
    /// Numbers of agents.
    pub agents: AgentCounts,
    /// Some of the unhealthy agents.
    pub unwell: Vec<UnhealthyAgent>,
    /// Number of skills that can be called.
    pub skills: usize,
    /// Number of deployed MCP servers and functions.
    pub tools: usize,
    /// Number of the caller's tasks that wait for an answer.
    pub waiting: usize,
    /// Calls of the last hour; null if the caller may not read the audit trail.
    pub calls: Option<RecentCalls>,
}

/// Numbers of agents.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct AgentCounts {
    /// All agents.
    pub all: usize,
    /// Healthy agents.
    pub healthy: usize,
    /// Degraded and unreachable agents.
    pub unwell: usize,
    /// External agents, whose skills need a permit.
    pub external: usize,
}

/// Unhealthy agent.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UnhealthyAgent {
    /// Slug of the agent.
    pub agent: String,
    /// Result of the last probes.
    pub health: Health,
    /// Error of the last probe.
    pub last_error: Option<String>,
}

/// Calls of the last hour.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecentCalls {
    /// Number of calls that ended.
    pub ended: u64,
    /// Number of those that failed.
    pub failed: u64,
    /// Number of those that were denied.
    pub denied: u64,
    /// Median latency, in milliseconds.
    pub p50_ms: Option<u64>,
    /// p99 latency, in milliseconds.
    pub p99_ms: Option<u64>,
    /// Number of calls that ended in each minute, the oldest first.
    pub per_minute: Vec<u64>,
    /// Number of calls that failed in each minute, the oldest first.
    pub failed_per_minute: Vec<u64>,
    /// Whether the numbers are estimated from a sample, because there are many records.
    pub is_estimated: bool,
    /// Whether there were too many records to reach the beginning of the hour.
    pub is_cut: bool,
}

/// Error of a request, as RFC 9457 describes it. Facts of the error are further members.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Problem", extend("additionalProperties" = true))]
pub struct ApiProblem {
    /// Class of the error.
    pub title: String,
    /// HTTP status.
    pub status: u16,
    /// Description of the error, and how to fix it.
    pub detail: String,
    /// JSON-RPC code of the error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i64>,
    /// Class of the error, for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
}
