//! Everything that can be set: `rialto.toml`, and the environment on top of it.
//!
//! Each crate owns its section. An unknown key is an error that names the key, because a setting that is silently
//! ignored is worse than none.

pub(crate) mod deployed;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

use crate::commands::keys;
use rialto_edge::site::Site;
use rialto_engine::registry::Deployment;
use rialto_mcp::Invoking;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toml::{Table, Value};
use url::Url;

use crate::{environment::Environment, guarding, telemetry::LogFormat};

/// The file that is read when none is named and it is there.
const DEFAULT_FILE: &str = "rialto.toml";

/// `RIALTO_CALLS__TIMEOUT_MS=1000` is `[calls] timeout_ms = 1000`.
const PREFIX: &str = "RIALTO_";

/// Variables with names of their own, and what they say.
const OWN_NAMES: [(&str, &str, &str); 2] =
    [("A2A_DISCOVERY_TIMEOUT_MS", "calls", "discovery_timeout_ms"), ("RIALTO_STORE_URL", "store", "url")];

/// The whole configuration.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    /// The folder everything is kept in. Default: `rialto` in the system's place for data.
    pub(crate) data: Option<PathBuf>,
    /// The HTTP server.
    pub(crate) server: Server,
    /// Who may come in over HTTP.
    pub(crate) auth: rialto_edge::auth::Config,
    /// The store.
    pub(crate) store: rialto_store::Config,
    /// How much callers and orgs may ask for.
    pub(crate) limits: Limits,
    /// Calls and the registry.
    pub(crate) calls: rialto_engine::Config,
    /// Choosing who does work that names nobody.
    pub(crate) routing: rialto_engine::routing::Config,
    /// Calls that wait until somebody has approved them.
    pub(crate) approvals: rialto_engine::approving::Config,
    /// A registry elsewhere that is asked when nobody here can do some work.
    pub(crate) mesh: crate::mesh::Config,
    /// What may be said to whoever works here, and what they may say back.
    pub(crate) guardrails: rialto_guard::setting::Guardrails,
    /// Everything that leaves over HTTP.
    pub(crate) outbound: rialto_edge::client::Config,
    /// The MCP door.
    pub(crate) mcp: rialto_mcp::Config,
    /// MCP servers whose tools are offered at every door.
    pub(crate) mcp_servers: Vec<deployed::McpServer>,
    /// Functions that are offered at every door.
    pub(crate) functions: Vec<deployed::Function>,
    /// Work in many steps.
    pub(crate) flows: rialto_flow::run::Config,
    /// Workflows and pipelines that are read from files at the start.
    pub(crate) workflows: Vec<WorkflowFile>,
    /// Those who are told of calls.
    pub(crate) webhooks: rialto_hooks::Config,
    /// How agents are called, and coding agents on this machine.
    pub(crate) agents: Agents,
    /// The A2A side.
    pub(crate) a2a: A2a,
    /// Logs and traces.
    pub(crate) telemetry: Telemetry,
    /// The file that was read, if there was one.
    #[serde(skip)]
    pub(crate) file: Option<PathBuf>,
}

/// How agents are called, and coding agents on this machine.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Agents {
    /// Coding agents that are started on this machine and offered at every door.
    pub(crate) local: Vec<deployed::LocalAgent>,
    /// How remote agents are called.
    #[serde(flatten)]
    pub(crate) calls: rialto_a2a::peer::Config,
}

/// The HTTP server.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Server {
    /// Where to listen.
    pub(crate) addr: String,
    /// Host names to answer to besides loopback names; `*` answers to all.
    pub(crate) allowed_hosts: Vec<String>,
    /// Largest request body, in bytes.
    pub(crate) max_body_bytes: usize,
    /// The address this server is reached at from outside (`https://bridge.example.com`), when that is another one than
    /// requests name.
    pub(crate) public_url: Option<String>,
    /// Whether a proxy in front of this server sets `X-Forwarded-Proto`. Without one, anybody could.
    pub(crate) trust_proxy: bool,
    /// The domain below which each org has a name: `<org>.<domain>`.
    pub(crate) domain: Option<String>,
    /// Whether `/metrics` is shown to everybody who can reach it. Without this it needs a token with the scope `admin`,
    /// except on a loopback address that nothing outside is known to lead to.
    pub(crate) public_metrics: bool,
    /// Whether `/api/v1/tools` may deploy commands. That is running programs on this machine, for whoever may administer.
    pub(crate) allow_commands_over_api: bool,
    /// Whether agents that are registered over the network may have private addresses. Without it only those registered at this
    /// machine may, and everybody's where `--allow-no-auth` lets nobody in from elsewhere.
    pub(crate) allow_private_over_api: bool,
    /// How long calls under way may take to end when the server is told to stop, in seconds. Those that take longer are
    /// handed back: their callers get the task's id.
    pub(crate) drain_secs: u64,
}

/// How much callers and orgs may ask for. Zero is without a limit.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Limits {
    /// How many requests a caller may send over HTTP each second, over time.
    pub(crate) requests_per_second: u32,
    /// How many requests a caller may send at once before that counts; at least as many as in a second.
    pub(crate) burst: u32,
    /// How many wrong tokens may come from an address each minute before it is shut out for a moment. Loopback addresses
    /// are not counted.
    pub(crate) wrong_tokens_per_minute: u32,
    /// How many calls of one caller may be under way at once, by all doors of this process.
    pub(crate) concurrent_calls: usize,
    /// How many calls single orgs may make.
    pub(crate) orgs: BTreeMap<String, OrgLimits>,
}

/// How many calls an org may make. Zero is without a limit. Each process counts for itself, from its start.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct OrgLimits {
    /// How many in each hour.
    pub(crate) calls_per_hour: u64,
    /// How many in each day, by UTC.
    pub(crate) calls_per_day: u64,
}

/// A definition of a workflow or a pipeline.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct WorkflowFile {
    /// The file, YAML or JSON.
    pub(crate) file: PathBuf,
    /// The org it belongs to (default: `default`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) org: Option<String>,
    /// The project it belongs to (default: `main`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) project: Option<String>,
}

/// The A2A side.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct A2a {
    /// Whether everything that can be called here is offered as an A2A agent too.
    pub(crate) enabled: bool,
    /// That agent's name; `rialto-<org>` when it is not set.
    pub(crate) agent_name: Option<String>,
    /// That agent's description; when it is not set, it says how many tools there are.
    pub(crate) agent_description: Option<String>,
    /// The skill that a message goes to which names none. Without it, that is the only skill there is.
    pub(crate) default_skill: Option<String>,
    /// How long a caller waits for an answer at most, in seconds. After that it gets the task as it stands.
    pub(crate) wait_secs: u64,
    /// How long a task may take, in seconds.
    pub(crate) task_timeout_secs: u64,
    /// Whether push notifications may go to private and loopback addresses.
    pub(crate) push_private: bool,
    /// Whether a message that comes again, with the same `messageId` from the same caller, is answered with the task that it
    /// began before. Without it, clients that use an id more than once get a task each time.
    pub(crate) once_per_message: bool,
    /// How long `invoke_a2a` waits for an agent when its caller does not say, in seconds.
    pub(crate) default_timeout: u64,
    /// The agent that `invoke_a2a` calls when none is named: its URL or, for `rialto mcp`, a card file.
    pub(crate) default_agent_card_url: Option<String>,
    /// The private key that our own cards are signed with: a PEM file, made by `rialto keys create`. Its public half is at
    /// `/.well-known/jwks.json`.
    pub(crate) signing_key: Option<PathBuf>,
    /// PEM or JWK files with keys that agent cards may be signed with. When there are any, a card with a wrong
    /// signature is refused.
    pub(crate) card_keys: Vec<PathBuf>,
}

/// Logs and traces.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Telemetry {
    /// How the lines of the log look.
    pub(crate) log: LogFormat,
    /// Whether calls that end well are logged as `info`; else they are as `debug`. Failures always are, as `warn`.
    pub(crate) log_calls: bool,
    /// The collector that is told of calls, as OTLP over HTTP: `http://localhost:4318`. Without it,
    /// `OTEL_EXPORTER_OTLP_ENDPOINT` counts, and without that no traces are made.
    pub(crate) otlp_endpoint: Option<String>,
    /// The share of calls that are traced when they come without a trace: 1 is all of them. Those that come with one are
    /// traced if their sender does.
    pub(crate) sample_ratio: f64,
}

/// Why the configuration was not accepted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    /// The file that was named is not there or cannot be read.
    #[error("{path}: {reason}")]
    Unreadable {
        /// Which file.
        path: String,
        /// Why.
        reason: String,
    },
    /// It says something we do not understand.
    #[error("{place}: {reason}")]
    Invalid {
        /// File and key, or variable.
        place: String,
        /// What is wrong.
        reason: String,
    },
}

// === impl Server ===

impl Server {
    /// Every name this server answers to besides loopback names.
    pub(crate) fn hosts(&self) -> Vec<String> {
        let public = self.public_url.as_deref().and_then(|url| url.parse::<Url>().ok());
        let public = public.and_then(|url| url.host_str().map(str::to_owned));
        let below = self.domain.iter().flat_map(|domain| [domain.clone(), format!("*.{domain}")]);
        self.allowed_hosts.iter().cloned().chain(public).chain(below).collect()
    }

    /// Whether something outside is known to lead here.
    pub(crate) const fn is_published(&self) -> bool {
        self.public_url.is_some() || self.domain.is_some() || self.trust_proxy
    }

    /// How this server is reached from outside.
    pub(crate) fn site(&self) -> Result<Site, String> {
        let is_address = |url: &String| {
            url.parse::<Url>()
                .is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.query().is_none())
        };
        if self.public_url.as_ref().is_some_and(|url| !is_address(url)) {
            return Err("[server] public_url must be an address like https://bridge.example.com".to_owned());
        }
        let is_domain = |domain: &String| !domain.is_empty() && !domain.contains([':', '/', '*', ' ']);
        if self.domain.as_ref().is_some_and(|domain| !is_domain(domain)) {
            return Err("[server] domain must be a name like bridge.example.com".to_owned());
        }
        let (public_url, domain) = (self.public_url.clone(), self.domain.clone());
        Ok(Site { public_url, trust_proxy: self.trust_proxy, domain })
    }
}

impl Default for Server {
    fn default() -> Self {
        Self {
            addr: "127.0.0.1:8420".to_owned(),
            allowed_hosts: Vec::new(),
            max_body_bytes: 4 * 1024 * 1024,
            public_url: None,
            trust_proxy: false,
            domain: None,
            public_metrics: false,
            allow_commands_over_api: false,
            allow_private_over_api: false,
            drain_secs: 10,
        }
    }
}

// === impl Limits ===

impl Limits {
    /// What counts for requests.
    pub(crate) const fn requests(&self) -> rialto_edge::limits::Config {
        rialto_edge::limits::Config {
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
        };
        rialto_engine::limits::Config {
            concurrent_calls: self.concurrent_calls,
            orgs: self.orgs.iter().map(|(name, org)| (name.clone(), quota(org))).collect(),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        let concurrent_calls = rialto_engine::limits::Config::default().concurrent_calls;
        let (requests_per_second, burst, wrong_tokens_per_minute) = (0, 0, 30);
        Self { requests_per_second, burst, wrong_tokens_per_minute, concurrent_calls, orgs: BTreeMap::new() }
    }
}

// === impl Telemetry ===

impl Default for Telemetry {
    fn default() -> Self {
        Self { log: LogFormat::Text, log_calls: false, otlp_endpoint: None, sample_ratio: 1.0 }
    }
}

// === impl A2a ===

impl Default for A2a {
    fn default() -> Self {
        Self {
            enabled: true,
            agent_name: None,
            agent_description: None,
            default_skill: None,
            wait_secs: 120,
            task_timeout_secs: 3600,
            push_private: false,
            once_per_message: true,
            default_timeout: 120,
            default_agent_card_url: None,
            signing_key: None,
            card_keys: Vec::new(),
        }
    }
}

impl A2a {
    /// What the A2A door is to know.
    pub(crate) fn door(&self, needs_token: bool) -> Result<rialto_a2a::door::Config, String> {
        let signer = self.signing_key.as_deref().map(keys::signer).transpose()?;
        Ok(rialto_a2a::door::Config {
            signer,
            agent_name: self.agent_name.clone(),
            agent_description: self.agent_description.clone(),
            default_skill: self.default_skill.clone(),
            needs_token,
            wait: Duration::from_secs(self.wait_secs),
            task_timeout: Duration::from_secs(self.task_timeout_secs),
            push_private: self.push_private,
            once_per_message: self.once_per_message,
        })
    }
}

// === impl Config ===

impl Config {
    /// Reads the file, if there is one, and then the environment.
    pub(crate) fn load(file: Option<&Path>, environment: &Environment) -> Result<Self, ConfigError> {
        let (place, mut table) = read(file)?;
        overlay(&mut table, environment)?;
        if let Some((key, reason)) = table.get("guardrails").and_then(guarding::mistake) {
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

    /// What the MCP door is to know, also from sections that are not its own.
    pub(crate) fn mcp_door(&self) -> rialto_mcp::Config {
        let invoking = Invoking {
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

    /// What is to be deployed, or where the first thing is wrong, and what.
    pub(crate) fn deployments(&self) -> Result<Vec<Deployment>, (String, String)> {
        deployed::all(&self.mcp_servers, &self.functions, &self.agents.local)
    }

    /// JSON Schema of the file, every option with its meaning and default.
    pub(crate) fn schema() -> serde_json::Value {
        schemars::schema_for!(Self).to_value()
    }
}

fn read(file: Option<&Path>) -> Result<(String, Table), ConfigError> {
    let path = file.unwrap_or(Path::new(DEFAULT_FILE));
    let place = path.display().to_string();
    match std::fs::read_to_string(path) {
        Ok(text) => match text.parse::<Table>() {
            Ok(table) => Ok((place, table)),
            Err(error) => Err(ConfigError::Invalid { place, reason: error.to_string().trim().to_owned() }),
        },
        Err(error) if file.is_none() && error.kind() == std::io::ErrorKind::NotFound => {
            Ok(("the environment".to_owned(), Table::new()))
        }
        Err(error) => Err(ConfigError::Unreadable { path: place, reason: error.to_string() }),
    }
}

fn overlay(table: &mut Table, environment: &Environment) -> Result<(), ConfigError> {
    for (name, value) in environment.starting_with(PREFIX) {
        let path: Vec<String> = name[PREFIX.len()..].split("__").map(str::to_lowercase).collect();
        if let [section, key] = path.as_slice() {
            set(table, name, section, key, toml_value(value))?;
        }
    }
    for (name, section, key) in OWN_NAMES {
        if let Some(value) = environment.get(name) {
            set(table, name, section, key, toml_value(value))?;
        }
    }
    Ok(())
}

fn set(table: &mut Table, variable: &str, section: &str, key: &str, value: Value) -> Result<(), ConfigError> {
    let section = table.entry(section).or_insert_with(|| Value::Table(Table::new()));
    let Value::Table(section) = section else {
        let reason = "this is not a section of the configuration".to_owned();
        return Err(ConfigError::Invalid { place: variable.to_owned(), reason });
    };
    section.insert(key.to_owned(), value);
    Ok(())
}

/// `5`, `true` and `["a"]` are what they look like; everything else is a text.
fn toml_value(text: &str) -> Value {
    let parsed = format!("value = {text}").parse::<Table>().ok().and_then(|mut table| table.remove("value"));
    parsed.unwrap_or_else(|| Value::String(text.to_owned()))
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
        let config = loaded("", &[("RIALTO_STORE_URL", "postgres://ann:hunter2@db/rialto")]).unwrap();
        let shown = format!("{config:?} {}", toml::to_string(&config).unwrap());
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
