//! MCP servers and functions that are deployed beside the agents.

use std::collections::BTreeMap;

use rialto_model::{
    agent::{AgentTrust, Health},
    ids::{AgentId, OrgId, ProjectId},
    json::Json,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::agents::CardChanges;

/// Deployed MCP server or function.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeploymentRow {
    /// Id of its row.
    pub id: AgentId,
    /// Name it was deployed under.
    pub name: String,
    /// Name that its tools are called by. Older servers do not send it.
    #[serde(default)]
    pub slug: String,
    /// `mcp` or `function`.
    pub kind: String,
    /// Org it belongs to.
    pub org: OrgId,
    /// Project it belongs to.
    pub project: ProjectId,
    /// Address, if it is reached by one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Command and arguments, if it is a program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
    /// Headers or environment variables, each with the source of its value.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
    /// Whether it is managed by the configuration file.
    pub configured: bool,
    /// Trust level.
    pub trust: AgentTrust,
    /// Whether a change is held until it is approved. Older servers do not send it.
    #[serde(default)]
    pub change_held: bool,
    /// The change that is held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending: Option<CardChanges>,
    /// Result of the last probes.
    pub health: Health,
    /// Whether its tools can be called now.
    pub available: bool,
    /// Error of the last probe, if it failed.
    pub last_error: Option<String>,
    /// Call timeout, in milliseconds.
    pub timeout_ms: Option<u64>,
    /// Its tools.
    pub tools: Vec<ToolRow>,
}

/// Tool of an MCP server, or the one of a function.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolRow {
    /// Name it is called by.
    pub name: String,
    /// Name with that of its server in front, which is always unique.
    pub full_name: String,
    /// Description.
    pub description: String,
    /// Whether it can be called now.
    pub available: bool,
    /// Whether a call may be repeated without doing more.
    pub repeatable: bool,
    /// JSON Schema of its arguments.
    pub input_schema: Option<Json>,
    /// JSON Schema of its result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Json>,
    /// MCP annotations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Json>,
}

/// MCP server or function to deploy, reached by an address or a command.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewDeployment {
    /// MCP server or function.
    pub kind: DeploymentKind,
    /// Name to deploy it under; one with the same name is replaced.
    pub name: String,
    /// Address of the server, or address that the arguments of the function are posted to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// HTTP headers: texts, or sources of secrets.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, Json>,
    /// Program, or program and arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandLine>,
    /// Further arguments of the program.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Environment variables of the program: texts, or sources of secrets.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, Json>,
    /// Working directory of the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Nodes that may run the program; by default each runs a copy of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<String>,
    /// Whether the program runs on one node at a time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub singleton: bool,
    /// Call timeout, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<f64>,
    /// Agent that answers an MCP server's requests to a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampling: Option<String>,
    /// Trust level of an MCP server; changes of an external one are held until they are approved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["external", "trusted", null]))]
    pub trust: Option<String>,
    /// Description of a function.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// JSON Schema of a function's arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("type" = ["object", "null"]))]
    pub input_schema: Option<Json>,
    /// JSON Schema of a function's result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("type" = ["object", "null"]))]
    pub output_schema: Option<Json>,
    /// Whether a call of a function may be repeated without doing more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotent: Option<bool>,
}

/// Kind of a deployment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DeploymentKind {
    /// MCP server.
    Mcp,
    /// Function.
    Function,
}

/// Command line of a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum CommandLine {
    /// Program.
    Program(String),
    /// Program and its arguments.
    Words(Vec<String>),
}
