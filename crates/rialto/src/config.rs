//! Configuration: `rialto.toml`, overridden by the environment.
//!
//! Each crate owns its section. An unknown key is an error that names the key, because a setting that is silently
//! ignored is worse than none.

mod a2a;
pub(crate) mod deployments;
mod limits;
mod server;
mod sources;

use std::path::{Path, PathBuf};

use rialto_engine::registry::Deployment;
use rialto_mcp::InvokeConfig;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toml::Value;

pub(crate) use self::{a2a::A2aConfig, limits::LimitsConfig, server::ServerConfig};
use crate::{environment::Environment, guardrail_config, telemetry::LogFormat};

/// Default configuration file.
pub(crate) const DEFAULT_FILE: &str = "rialto.toml";

/// The whole configuration.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    /// Data folder. Default: `rialto` in the system's folder for application data.
    pub(crate) data: Option<PathBuf>,
    /// The HTTP server.
    pub(crate) server: ServerConfig,
    /// Authentication over HTTP.
    pub(crate) auth: rialto_http_server::auth::Config,
    /// The store.
    pub(crate) store: rialto_store::Config,
    /// Limits of callers and orgs.
    pub(crate) limits: LimitsConfig,
    /// Calls and the registry.
    pub(crate) calls: rialto_engine::Config,
    /// Routing of work without a named agent.
    pub(crate) routing: rialto_engine::routing::Config,
    /// Approvals of calls.
    pub(crate) approvals: rialto_engine::approvals::Config,
    /// Registry of another Rialto that is asked for agents when no local one matches.
    pub(crate) mesh: crate::federation::Config,
    /// Guardrails on the content of requests and responses.
    pub(crate) guardrails: rialto_guardrails::scoped_rules::Guardrails,
    /// Outbound HTTP connections.
    pub(crate) outbound: rialto_http_client::Config,
    /// MCP server.
    pub(crate) mcp: rialto_mcp::Config,
    /// MCP servers whose tools are offered on all endpoints.
    pub(crate) mcp_servers: Vec<deployments::McpServerConfig>,
    /// Functions that are offered on all endpoints.
    pub(crate) functions: Vec<deployments::FunctionConfig>,
    /// Execution of workflows.
    pub(crate) flows: rialto_workflow::run::Config,
    /// Workflows and pipelines that are read from files at the start.
    pub(crate) workflows: Vec<WorkflowFileConfig>,
    /// Webhooks.
    pub(crate) webhooks: rialto_webhooks::Config,
    /// Agents: remote calls, and coding agents on this machine.
    pub(crate) agents: AgentsConfig,
    /// A2A server and client.
    pub(crate) a2a: A2aConfig,
    /// Logs and traces.
    pub(crate) telemetry: TelemetryConfig,
    /// The file that was read, if there was one.
    #[serde(skip)]
    pub(crate) file: Option<PathBuf>,
}

/// Agents: remote calls, and coding agents on this machine.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct AgentsConfig {
    /// Coding agents that are started on this machine and offered on all endpoints.
    pub(crate) local: Vec<deployments::LocalAgentConfig>,
    /// Calls of remote agents.
    #[serde(flatten)]
    pub(crate) calls: rialto_a2a::backend::Config,
}

/// File with a workflow or a pipeline.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct WorkflowFileConfig {
    /// The file, YAML or JSON.
    pub(crate) file: PathBuf,
    /// The org it belongs to (default: `default`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) org: Option<String>,
    /// The project it belongs to (default: `main`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) project: Option<String>,
}

/// Logs and traces.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct TelemetryConfig {
    /// Format of log lines.
    pub(crate) log: LogFormat,
    /// Log successful calls at `info` in place of `debug`. Failed calls are always logged at `warn`.
    pub(crate) log_calls: bool,
    /// URL of an OpenTelemetry collector for traces of calls, OTLP over HTTP: `http://localhost:4318`. Default:
    /// `OTEL_EXPORTER_OTLP_ENDPOINT`, or no traces.
    pub(crate) otlp_endpoint: Option<String>,
    /// Share of calls without a trace context that are traced, 0 to 1. Calls with one follow their sender's decision.
    pub(crate) sample_ratio: f64,
}

/// Error of the configuration.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    /// The file does not exist or cannot be read.
    #[error("{path}: {reason}")]
    Unreadable {
        /// Path.
        path: String,
        /// Reason.
        reason: String,
    },
    /// Invalid key or value.
    #[error("{place}: {reason}")]
    Invalid {
        /// File and key, or variable.
        place: String,
        /// Reason.
        reason: String,
    },
}

// === impl TelemetryConfig ===

impl Default for TelemetryConfig {
    fn default() -> Self {
        Self { log: LogFormat::Text, log_calls: false, otlp_endpoint: None, sample_ratio: 1.0 }
    }
}

// === impl Config ===

impl Config {
    /// Reads the file, if it exists, and then the environment.
    pub(crate) fn load(file: Option<&Path>, environment: &Environment) -> Result<Self, ConfigError> {
        let (place, mut table) = sources::read_file(file)?;
        sources::apply_environment(&mut table, environment)?;
        if let Some((key, reason)) = table.get("guardrails").and_then(guardrail_config::find_config_error) {
            return Err(ConfigError::Invalid { place: format!("{place}: guardrails.{key}"), reason });
        }
        let mut config: Self =
            serde_path_to_error::deserialize(Value::Table(table)).map_err(|error| ConfigError::Invalid {
                place: format!("{place}: {}", error.path()),
                reason: error.inner().to_string().trim().to_owned(),
            })?;
        config
            .routing
            .check()
            .map_err(|reason| ConfigError::Invalid { place: format!("{place}: routing"), reason })?;
        config
            .mesh
            .check()
            .map_err(|reason| ConfigError::Invalid { place: format!("{place}: mesh"), reason })?;
        config.deployments().map_err(|(key, reason)| {
            let place = format!("{place}: {key}");
            ConfigError::Invalid { place, reason }
        })?;
        let path = file.unwrap_or(Path::new(DEFAULT_FILE));
        config.file = path.is_file().then(|| path.to_owned());
        Ok(config)
    }

    /// Configuration of the MCP server, with values from other sections.
    pub(crate) fn mcp_config(&self) -> rialto_mcp::Config {
        let invoking = InvokeConfig {
            default_agent_card_url: self.a2a.default_agent_card_url.clone(),
            default_timeout_secs: self.a2a.default_timeout,
            read_card: None,
        };
        rialto_mcp::Config {
            task_ttl_ms: self.store.keeps_tasks_ms(),
            routing_tools: self.routing.tools,
            flow_tools: self.flows.tools,
            invoking,
            ..self.mcp.clone()
        }
    }

    /// Configured deployments, or the first error with its location.
    pub(crate) fn deployments(&self) -> Result<Vec<Deployment>, (String, String)> {
        deployments::all_deployments(&self.mcp_servers, &self.functions, &self.agents.local)
    }

    /// JSON Schema of the file: all options with meaning and default.
    pub(crate) fn schema() -> serde_json::Value {
        schemars::schema_for!(Self).to_value()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(variables: &[(&str, &str)]) -> Environment {
        variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn loaded(text: &str, variables: &[(&str, &str)]) -> Result<Config, ConfigError> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("rialto.toml");
        std::fs::write(&file, text).unwrap();
        Config::load(Some(&file), &environment(variables))
    }

    #[test]
    fn the_environment_wins_over_the_file() {
        let text = "[calls]\ntimeout_ms = 1\npin_cards = true";
        let config =
            loaded(text, &[("RIALTO_CALLS__TIMEOUT_MS", "7"), ("RIALTO_SERVER__ADDR", "127.0.0.1:1")])
                .unwrap();
        assert_eq!((config.calls.timeout_ms, config.calls.pin_cards), (7, true));
        assert_eq!(config.server.addr, "127.0.0.1:1");
    }

    #[test]
    fn the_discovery_timeout_has_a_variable_of_its_own() {
        let config = loaded("", &[("A2A_DISCOVERY_TIMEOUT_MS", "250")]).unwrap();
        assert_eq!(config.calls.discovery_timeout_ms, 250);
    }

    #[test]
    fn the_database_has_a_variable_of_its_own_and_its_password_is_not_shown() {
        let variables = [
            ("RIALTO_STORE_URL", "postgres://ann:hunter2@pooler/rialto"),
            ("RIALTO_STORE_LISTEN_URL", "postgres://ann:hunter2@db/rialto"),
        ];
        let config = loaded("", &variables).unwrap();
        let shown = format!("{config:?} {}", toml::to_string(&config).unwrap());
        assert!(shown.contains("postgres://ann:***@pooler/rialto"), "{shown}");
        assert!(shown.contains("postgres://ann:***@db/rialto") && !shown.contains("hunter2"), "{shown}");
    }

    #[test]
    fn a_mistake_in_the_section_of_the_store_does_not_show_the_password() {
        let text = "[store]\nurl = [\"postgres://ann:hunter2@db/rialto\"]";
        let error = loaded(text, &[]).unwrap_err().to_string();
        assert!(error.contains("store.url") && !error.contains("hunter2"), "{error}");
    }

    #[test]
    fn an_unknown_key_is_an_error_that_names_it() {
        let error = loaded("[calls]\ntimeout = 1", &[]).unwrap_err().to_string();
        assert!(error.contains("calls") && error.contains("timeout"), "{error}");
    }

    #[test]
    fn a_value_of_the_wrong_kind_is_an_error_that_names_its_place() {
        let error = loaded("[calls]\ntimeout_ms = \"soon\"", &[]).unwrap_err().to_string();
        assert!(error.contains("calls.timeout_ms"), "{error}");
    }

    #[test]
    fn a_check_that_nobody_knows_is_named_with_its_place_and_with_what_may_be_meant() {
        let error = loaded("[[guardrails.checks]]\ntype = \"pi\"", &[]).unwrap_err().to_string();
        assert!(error.contains("guardrails.checks[0].type"), "{error}");
        assert!(error.contains("did you mean \"pii\"?"), "{error}");
        let text = "[guardrails.skills.\"a.b\"]\nchecks = [{ type = \"pii\" }, { type = \"nonsense\" }]";
        let error = loaded(text, &[]).unwrap_err().to_string();
        assert!(error.contains("guardrails.skills.\"a.b\".checks[1].type"), "{error}");
        assert!(error.contains("prompt-injection") && !error.contains("did you mean"), "{error}");
    }

    #[test]
    fn every_option_is_documented() {
        fn undocumented(schema: &serde_json::Value, path: &str, found: &mut Vec<String>) {
            for (name, option) in schema["properties"].as_object().into_iter().flatten() {
                let path = format!("{path}.{name}");
                if option["description"].as_str().is_none_or(str::is_empty) {
                    found.push(path.clone());
                }
                undocumented(option, &path, found);
            }
            for (name, definition) in schema["$defs"].as_object().into_iter().flatten() {
                undocumented(definition, name, found);
            }
        }
        let mut found = Vec::new();
        undocumented(&Config::schema(), "", &mut found);
        assert_eq!(found, Vec::<String>::new());
    }
}
