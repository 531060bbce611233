//! `[[mcp_servers]]`, `[[functions]]` and `[[agents.local]]`: deployments in the configuration.
//!
//! The command line and the API use these types too, so all validation is here.

mod local_agents;
mod transport;

use std::{path::Path, sync::Arc};

use rialto_engine::{directory::RESERVED, registry::Deployment, schema};
use rialto_model::{
    agent::AgentTrust,
    backing::{self, Backing, is_name},
    json::Json,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::transport::seconds_to_millis;
pub(crate) use self::{local_agents::LocalAgentConfig, transport::TransportConfig};

/// Default timeout of a function, in seconds.
const DEFAULT_FUNCTION_SECONDS: f64 = 30.0;

/// Default timeout of a coding agent's turn, after which its caller receives the task id, in seconds.
const DEFAULT_AGENT_SECONDS: f64 = 600.0;

/// A function is ended this much before its caller's timeout, so that the failure is reported.
const GRACE_MS: u64 = 1_000;

/// MCP server whose tools are offered on all endpoints.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct McpServerConfig {
    /// Name: letters, digits, `-` and `_`.
    pub(crate) name: String,
    /// Agent or skill that answers sampling requests of this server (`sampling/createMessage`), in the name of the tool's caller. Without
    /// it such requests are declined.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sampling: Option<String>,
    /// Trust level: `external`, `trusted` or `system`. Tools of an `external` server need a permit, and changes of its descriptions and
    /// schemas need approval. Default: `system` for a new server, unchanged for a known one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) trust: Option<TrustLevelName>,
    /// Transport.
    #[serde(flatten)]
    pub(crate) way: TransportConfig,
}

/// Trust level of a server.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum TrustLevelName {
    /// Outside of this organization.
    External,
    /// Inside of this organization.
    Trusted,
    /// Part of the platform.
    System,
}

/// Function that is offered on all endpoints: arguments in, result out.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct FunctionConfig {
    /// Name: letters, digits, `-` and `_`.
    pub(crate) name: String,
    /// Description, for models and users that select tools.
    pub(crate) description: String,
    /// JSON Schema of the arguments, or the path of a file with it. Invalid arguments are rejected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) input_schema: Option<Value>,
    /// JSON Schema of the result, or the path of a file with it. An invalid result is a failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) output_schema: Option<Value>,
    /// True if the function is idempotent, so that it may be called again after a failure.
    pub(crate) idempotent: bool,
    /// Transport.
    #[serde(flatten)]
    pub(crate) way: TransportConfig,
}

/// Deployment of any kind.
pub(crate) enum DeploymentConfig<'a> {
    /// An MCP server.
    Server(&'a McpServerConfig),
    /// A function.
    Function(&'a FunctionConfig),
    /// A coding agent.
    Agent(&'a LocalAgentConfig),
}

/// All configured deployments, or the first error with its location.
pub(crate) fn all_deployments(
    servers: &[McpServerConfig],
    functions: &[FunctionConfig],
    agents: &[LocalAgentConfig],
) -> Result<Vec<Deployment>, (String, String)> {
    let servers = servers
        .iter()
        .enumerate()
        .map(|(at, it)| (format!("mcp_servers[{at}]"), DeploymentConfig::Server(it)));
    let functions = functions
        .iter()
        .enumerate()
        .map(|(at, it)| (format!("functions[{at}]"), DeploymentConfig::Function(it)));
    let agents = agents
        .iter()
        .enumerate()
        .map(|(at, it)| (format!("agents.local[{at}]"), DeploymentConfig::Agent(it)));
    let mut found: Vec<Deployment> = Vec::new();
    for (place, wanted) in functions.chain(servers).chain(agents) {
        let wanted = wanted.deployment().map_err(|(key, reason)| (format!("{place}.{key}"), reason))?;
        if found
            .iter()
            .any(|other| other.scope == wanted.scope && other.backing.url() == wanted.backing.url())
        {
            return Err((format!("{place}.name"), "another one has this name already".to_owned()));
        }
        found.push(wanted);
    }
    Ok(found)
}

// === impl DeploymentConfig ===

impl DeploymentConfig<'_> {
    /// The deployment, or the invalid key and the reason.
    pub(crate) fn deployment(&self) -> Result<Deployment, (String, String)> {
        let (name, way) = match self {
            Self::Server(server) => (&server.name, &server.way),
            Self::Function(function) => (&function.name, &function.way),
            Self::Agent(agent) => (&agent.name, &agent.way),
        };
        check_name(name).map_err(invalid_key("name"))?;
        let via = way.to_via()?;
        let own = way.timeout_ms().map_err(invalid_key("timeout"))?;
        let (backing, timeout_ms) = match self {
            Self::Server(server) => {
                let sampling = server.sampling.clone().filter(|name| !name.is_empty());
                (Backing::Mcp(Arc::new(backing::McpServerBacking { name: name.clone(), via, sampling })), own)
            }
            Self::Function(function) => {
                let timeout_ms = own.unwrap_or(seconds_to_millis(DEFAULT_FUNCTION_SECONDS));
                let made = backing::FunctionBacking {
                    name: name.clone(),
                    description: function.description.clone(),
                    via,
                    input_schema: read_schema(function.input_schema.as_ref())
                        .map_err(invalid_key("input_schema"))?,
                    output_schema: read_schema(function.output_schema.as_ref())
                        .map_err(invalid_key("output_schema"))?,
                    idempotent: function.idempotent,
                    timeout_ms,
                };
                (Backing::Function(Arc::new(made)), Some(timeout_ms.saturating_add(GRACE_MS)))
            }
            Self::Agent(agent) => {
                let made = agent.to_deployment(via)?;
                (Backing::Acp(Arc::new(made)), own.or(Some(seconds_to_millis(DEFAULT_AGENT_SECONDS))))
            }
        };
        let trust = match self {
            Self::Server(server) => server.trust.map(AgentTrust::from),
            Self::Function(_) | Self::Agent(_) => None,
        };
        Ok(Deployment { scope: way.scope()?, backing, allow_private: true, timeout_ms, trust })
    }
}

// === impl TrustLevelName ===

impl From<TrustLevelName> for AgentTrust {
    fn from(level: TrustLevelName) -> Self {
        match level {
            TrustLevelName::External => Self::External,
            TrustLevelName::Trusted => Self::Trusted,
            TrustLevelName::System => Self::System,
        }
    }
}

fn check_name(name: &str) -> Result<(), String> {
    if !is_name(name) {
        return Err(format!("\"{name}\" must be letters, digits, `-` and `_`, at most 64 of them"));
    }
    if RESERVED.contains(&name) {
        return Err(format!("\"{name}\" is the name of one of Rialto's own tools; choose another"));
    }
    Ok(())
}

/// Adds the key to an error.
fn invalid_key(key: &str) -> impl Fn(String) -> (String, String) {
    move |reason| (key.to_owned(), reason)
}

/// Reads a schema that is inline or in a file.
pub(crate) fn read_schema(given: Option<&Value>) -> Result<Option<Json>, String> {
    let Some(given) = given else { return Ok(None) };
    let schema = match given {
        Value::String(path) => {
            let text =
                std::fs::read_to_string(Path::new(path)).map_err(|error| format!("{path}: {error}"))?;
            Json::parse(text.trim()).map_err(|error| format!("{path}: {error}"))?
        }
        given => Json::encode(given),
    };
    schema::is_schema(&schema).map_err(|why| format!("this is not a JSON Schema: {why}"))?;
    Ok(Some(schema))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trouble(text: &str) -> (String, String) {
        #[derive(Deserialize)]
        #[serde(default, deny_unknown_fields)]
        #[derive(Default)]
        struct Both {
            mcp_servers: Vec<McpServerConfig>,
            functions: Vec<FunctionConfig>,
        }
        let both: Both = toml::from_str(text).unwrap();
        all_deployments(&both.mcp_servers, &both.functions, &[]).unwrap_err()
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        for (text, place, reason) in [
            ("[[functions]]\nname='a b'\nurl='http://a'", "functions[0].name", "letters, digits"),
            ("[[functions]]\nname='get_task'\nurl='http://a'", "functions[0].name", "Rialto's own tools"),
            ("[[functions]]\nname='a'", "functions[0].url", "`command` or `url`"),
            ("[[mcp_servers]]\nname='a'\nurl='http://a'\ncommand='b'", "mcp_servers[0].url", "leave one"),
            ("[[mcp_servers]]\nname='a'\nurl='ftp://a'", "mcp_servers[0].url", "only http and https"),
            ("[[mcp_servers]]\nname='a'\nurl='http://u:p@a'", "mcp_servers[0].url", "no user and password"),
            ("[[mcp_servers]]\nname='a'\nurl='http://a'\nenv={A='b'}", "mcp_servers[0].env", "`headers`"),
            ("[[mcp_servers]]\nname='a'\nurl='http://a'\nnodes=['b']", "mcp_servers[0].nodes", "`command`"),
            ("[[mcp_servers]]\nname='a'\ncommand='b'\nnodes=['b c']", "mcp_servers[0].nodes", "nodes list"),
            (
                "[[mcp_servers]]\nname='a'\nurl='http://a'\nsingleton=true",
                "mcp_servers[0].singleton",
                "`command`",
            ),
            ("[[mcp_servers]]\nname='a'\ncommand=[]", "mcp_servers[0].command", "name a program"),
            ("[[mcp_servers]]\nname='a'\ncommand='b'\ntimeout=0", "mcp_servers[0].timeout", "seconds"),
            ("[[mcp_servers]]\nname='a'\ncommand='b'\norg='a/b'", "mcp_servers[0].org", "letters"),
            (
                "[[functions]]\nname='a'\nurl='http://a'\ninput_schema={type='objekt'}",
                "functions[0].input_schema",
                "not a JSON Schema",
            ),
            (
                "[[functions]]\nname='a'\nurl='http://a'\noutput_schema='/no/such.json'",
                "functions[0].output_schema",
                "/no/such.json",
            ),
            (
                "[[mcp_servers]]\nname='a'\nurl='http://a'\nheaders={Authorization='Bearer hunter2'}",
                "mcp_servers[0].headers.Authorization",
                "looks like a secret",
            ),
            (
                "[[functions]]\nname='a'\nurl='http://a'\n[[functions]]\nname='a'\nurl='http://b'",
                "functions[1].name",
                "already",
            ),
        ] {
            let (where_, why) = trouble(text);
            assert_eq!(where_, place, "{text}");
            assert!(why.contains(reason), "{why}");
            assert!(!why.contains("hunter2"));
        }
    }

    #[test]
    fn an_unknown_key_is_refused() {
        let error = toml::from_str::<McpServerConfig>("name='a'\ncommand='b'\nurll='c'").unwrap_err();
        assert!(error.to_string().contains("urll"), "{error}");
    }

    #[test]
    fn a_function_is_ended_before_its_callers_patience() {
        let way = TransportConfig {
            url: Some("https://a.example".into()),
            timeout: Some(1.5),
            ..TransportConfig::default()
        };
        let function = FunctionConfig { name: "a".into(), way, ..FunctionConfig::default() };
        let made = DeploymentConfig::Function(&function).deployment().unwrap();
        let Backing::Function(inside) = &made.backing else { panic!("{made:?}") };
        assert_eq!((inside.timeout_ms, made.timeout_ms), (1_500, Some(2_500)));
    }
}
