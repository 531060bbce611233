//! Configuration of the MCP server.

use std::{collections::BTreeMap, fmt, sync::Arc};

use rialto_model::card::Card;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{aliases::Aliases, builtin_tools::NAMES};

/// Configuration of the MCP server (`[mcp]`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Names in `tools/list`. Every name always works in `tools/call`, whichever are listed.
    pub tool_names: ToolNames,
    /// Tools in `tools/list`: all tools, or three that search, describe and call the others. A client may ask for either
    /// (`/mcp?tools=search`, `rialto mcp --tools search`).
    pub tools: ToolList,
    /// With more tools than this, `tools/list` shows the three; 0 always shows all.
    pub search_above: usize,
    /// Names of your own for single skills: `name = "<agent>.<skill>"`. Such a skill is listed under that name alone; its other
    /// names still work.
    #[schemars(with = "BTreeMap<String, String>")]
    pub tool_aliases: Aliases,
    /// Rialto's own tools that `tools/list` shows, by name (`send_message`, `get_task`, …); all that the caller may use when it is not
    /// set. They can be called whether or not they are listed.
    #[schemars(with = "Option<Vec<String>>")]
    pub own_tools: Option<OwnTools>,
    /// Argument schemas in `tools/list`: those of the skills, or portable ones for clients that do not support all of JSON
    /// Schema. A client may ask for either (`/mcp?schemas=portable`).
    pub schemas: SchemaStyle,
    /// Form of a failed call: a result with `isError` that the model reads, or a JSON-RPC error. A client may ask for either
    /// (`/mcp?errors=protocol`, `rialto mcp --errors protocol`).
    pub tool_errors: ToolErrors,
    /// Skills on one page of `tools/list`. Many clients read only the first page.
    pub page_size: usize,
    /// Time for which a client may cache the list of tools, in milliseconds.
    pub list_ttl_ms: u64,
    /// A result that is larger than this, in kilobytes, is not put into the model's context whole: its largest parts become links, which
    /// `resources/read` and `get_task` read in pieces; 0 puts in everything.
    pub inline_limit_kb: usize,
    /// The largest piece in which such a part is read, in kilobytes.
    pub piece_kb: usize,
    /// Time to answer a question to the person at a client, in seconds: by calling the tool again (protocol version
    /// 2026-07-28), or while the call waits. The task itself waits as long as its agent does.
    pub question_ttl_secs: u64,
    /// Time after which a call becomes a task that the client fetches, in milliseconds; for requests that declare the
    /// tasks extension of MCP. A skill with the tag `long-running` becomes one at once.
    pub task_after_ms: u64,
    /// Interval at which clients are asked to poll their task, in milliseconds.
    pub task_poll_ms: u64,
    /// Minimum time for which a task can be fetched, in milliseconds; none is unlimited. Set by the program from its retention.
    #[serde(skip)]
    pub task_ttl_ms: Option<u64>,
    /// List the tools that choose an agent; configured in a section of their own, `[routing]`.
    #[serde(skip)]
    pub routing_tools: bool,
    /// List the tools that run workflows; configured in `[flows]`.
    #[serde(skip)]
    pub flow_tools: bool,
    /// Agent discovery of `invoke_a2a`; configured in `[a2a]`.
    #[serde(skip)]
    pub invoking: InvokeConfig,
    /// Answer well-formed calls and lists of protocol version 2026-07-28 over HTTP without the MCP library's per-request service, which
    /// saves CPU time. The answers are the same either way.
    pub fast_path: bool,
    /// Give HTTP clients of protocol versions before 2026-07-28 a session, and with it notifications of changed tools. Its id holds the
    /// state of a session, so every process of the store serves it, after a restart too. Without sessions such clients are served
    /// request by request.
    pub legacy_sessions: bool,
    /// Maximum number of such sessions in this process. One more replaces one that has been unused for `session_idle_secs`, or the
    /// caller's own that has been idle the longest; if there is none, it is rejected.
    pub max_sessions: usize,
    /// Maximum number of such sessions of one caller in this process. One more drops the caller's own that has been idle the longest, which is
    /// rebuilt when its client uses it again; if none is idle, it is rejected.
    pub max_sessions_per_caller: usize,
    /// Idle time after which a session may be dropped for another caller's, in seconds.
    pub session_idle_secs: u64,
    /// Host names this server answers to over HTTP, with or without port; `*` answers to every name.
    pub allowed_hosts: Vec<String>,
    /// Origins (`https://app.example.com:443`, `http://localhost:*`) whose web pages may call over HTTP.
    pub allowed_origins: Vec<String>,
    /// The largest request body over HTTP, in bytes.
    pub max_body_bytes: usize,
}

/// Names of Rialto's own tools.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<String>", into = "Vec<String>")]
pub struct OwnTools(Vec<String>);

/// Reads a card file.
pub type CardReader = Arc<dyn Fn(&str) -> Result<Card, String> + Send + Sync>;

/// Agent discovery of `invoke_a2a`.
#[derive(Clone)]
pub struct InvokeConfig {
    /// The agent that is called when none is named: its URL, or a card file.
    pub default_agent_card_url: Option<String>,
    /// Default timeout of a call, in seconds.
    pub default_timeout_secs: u64,
    /// Reads card files; none where clients may not name local files.
    pub read_card: Option<CardReader>,
}

/// Names in `tools/list`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ToolNames {
    /// The legacy alias, which matches `^[a-zA-Z0-9_-]{1,64}$`; canonical names to clients known to accept or rewrite dots.
    #[default]
    Auto,
    /// `<agentSlug>.<skillId>`.
    Canonical,
    /// `a2a_<agentSlug>_<skillId>`.
    Legacy,
    /// Each skill twice, under both names.
    Both,
}

/// Form of a failed call of a known tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ToolErrors {
    /// A result with `isError`: its text is the reason, `structuredContent.error` has code, class and data.
    #[default]
    Result,
    /// A JSON-RPC error with its own code, and the same class and data.
    #[serde(alias = "error")]
    Protocol,
}

/// Argument schemas in `tools/list`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SchemaStyle {
    /// Portable ones to clients that are known to stumble over others.
    #[default]
    Auto,
    /// Without references, and with a plain object at the root. The skill's own is in the tool's `_meta`.
    Portable,
    /// The skills' own.
    Original,
}

/// Tools in `tools/list`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ToolList {
    /// Every tool.
    #[default]
    All,
    /// `search_tools`, `describe_tool` and `call_tool`.
    Search,
}

// === impl Config ===

impl Default for Config {
    fn default() -> Self {
        Self {
            tool_names: ToolNames::Auto,
            tools: ToolList::All,
            search_above: 0,
            tool_aliases: Aliases::default(),
            own_tools: None,
            schemas: SchemaStyle::Auto,
            tool_errors: ToolErrors::Result,
            page_size: 500,
            list_ttl_ms: 60_000,
            inline_limit_kb: 256,
            piece_kb: 64,
            question_ttl_secs: 24 * 60 * 60,
            task_after_ms: 3_000,
            task_poll_ms: 1_000,
            task_ttl_ms: None,
            routing_tools: false,
            flow_tools: false,
            invoking: InvokeConfig::default(),
            fast_path: true,
            legacy_sessions: true,
            max_sessions: 5_000,
            max_sessions_per_caller: 250,
            session_idle_secs: 3_600,
            allowed_hosts: ["localhost", "127.0.0.1", "::1"].map(str::to_owned).to_vec(),
            allowed_origins: Vec::new(),
            max_body_bytes: 4 * 1024 * 1024,
        }
    }
}

// === impl Invoking ===

impl Default for InvokeConfig {
    fn default() -> Self {
        Self { default_agent_card_url: None, default_timeout_secs: 120, read_card: None }
    }
}

impl PartialEq for InvokeConfig {
    fn eq(&self, other: &Self) -> bool {
        self.default_agent_card_url == other.default_agent_card_url
            && self.default_timeout_secs == other.default_timeout_secs
            && self.read_card.is_some() == other.read_card.is_some()
    }
}

impl Eq for InvokeConfig {}

impl fmt::Debug for InvokeConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Invoking")
            .field("default_agent_card_url", &self.default_agent_card_url)
            .field("default_timeout_secs", &self.default_timeout_secs)
            .finish_non_exhaustive()
    }
}

// === impl OwnTools ===

impl OwnTools {
    /// True when the list has this tool.
    pub(crate) fn keeps(&self, name: &str) -> bool {
        self.0.iter().any(|kept| kept == name)
    }
}

impl TryFrom<Vec<String>> for OwnTools {
    type Error = String;

    fn try_from(names: Vec<String>) -> Result<Self, String> {
        match names.iter().find(|name| !NAMES.contains(&name.as_str())) {
            Some(unknown) => {
                Err(format!("\"{unknown}\" is none of Rialto's own tools; use {}", NAMES.join(", ")))
            }
            None => Ok(Self(names)),
        }
    }
}

impl From<OwnTools> for Vec<String> {
    fn from(tools: OwnTools) -> Self {
        tools.0
    }
}

// === impl ToolList ===

impl ToolList {
    /// Parses the list as configuration and `?tools=` spell it.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "all" => Some(Self::All),
            "search" => Some(Self::Search),
            _ => None,
        }
    }
}

// === impl Schemas ===

impl SchemaStyle {
    /// Parses the schemas as configuration and `?schemas=` spell it.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "auto" => Some(Self::Auto),
            "portable" => Some(Self::Portable),
            "original" => Some(Self::Original),
            _ => None,
        }
    }
}

// === impl ToolErrors ===

impl ToolErrors {
    /// Parses the form as configuration and `?errors=` spell it.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "result" => Some(Self::Result),
            "protocol" | "error" => Some(Self::Protocol),
            _ => None,
        }
    }
}

// === impl ToolNames ===

impl ToolNames {
    /// Parses the mode as configuration and `?names=` spell it.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "auto" => Some(Self::Auto),
            "canonical" => Some(Self::Canonical),
            "legacy" => Some(Self::Legacy),
            "both" => Some(Self::Both),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_key_is_an_error() {
        let error = serde_json::from_str::<Config>(r#"{"tool_name":"auto"}"#).unwrap_err();
        assert!(error.to_string().contains("tool_name"), "{error}");
    }

    #[test]
    fn what_is_not_set_has_its_default() {
        let config: Config = serde_json::from_str(r#"{"tool_errors":"protocol"}"#).unwrap();
        assert_eq!(config, Config { tool_errors: ToolErrors::Protocol, ..Config::default() });
    }
}
