//! `[[mcp_servers]]`, `[[functions]]` and `[[agents.local]]`: what is deployed, as a file says it.
//!
//! The command line and the API say the same in the same words, so everything is checked here, once.

mod local;
mod way;

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

use self::way::millis;
pub(crate) use self::{local::LocalAgent, way::Way};

/// How long a function may take when nobody says, in seconds.
const FUNCTION_SECONDS: f64 = 30.0;

/// How long a turn of a coding agent may take before its caller gets the task's id, when nobody says, in seconds.
const AGENT_SECONDS: f64 = 600.0;

/// A function that is ended for being late has told so before its caller's patience ends.
const GRACE_MS: u64 = 1_000;

/// An MCP server whose tools are offered at every door.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct McpServer {
    /// Its name: letters, digits, `-` and `_`.
    pub(crate) name: String,
    /// The agent or skill that says what this server would have a model say (`sampling/createMessage`), asked in the name of
    /// whoever called the tool. Without it such requests are declined.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sampling: Option<String>,
    /// How far it is trusted: `external`, `trusted` or `system`. Tools of an `external` server need a permit, and what it changes in
    /// descriptions and schemas is held until somebody approves it. A new server without this is `system`, and a known one stays what it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) trust: Option<TrustLevel>,
    /// How it is reached.
    #[serde(flatten)]
    pub(crate) way: Way,
}

/// How far a server is trusted.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum TrustLevel {
    /// A stranger's.
    External,
    /// One of ours.
    Trusted,
    /// The platform's own.
    System,
}

/// A function that is offered at every door: arguments in, result out.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Function {
    /// Its name: letters, digits, `-` and `_`.
    pub(crate) name: String,
    /// What it does, for whoever decides whether to call it.
    pub(crate) description: String,
    /// JSON Schema of its arguments, or the path of a file with it. Arguments that do not fit are refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) input_schema: Option<Value>,
    /// JSON Schema of its result, or the path of a file with it. A result that does not fit is a failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) output_schema: Option<Value>,
    /// Whether calling it twice does no more than calling it once.
    pub(crate) idempotent: bool,
    /// How it is reached.
    #[serde(flatten)]
    pub(crate) way: Way,
}

/// Something to be deployed, of any kind.
pub(crate) enum Wanted<'a> {
    /// An MCP server.
    Server(&'a McpServer),
    /// A function.
    Function(&'a Function),
    /// A coding agent.
    Agent(&'a LocalAgent),
}

/// Everything that is deployed, or the first thing that is wrong: where, and what.
pub(crate) fn all(
    servers: &[McpServer],
    functions: &[Function],
    agents: &[LocalAgent],
) -> Result<Vec<Deployment>, (String, String)> {
    let servers =
        servers.iter().enumerate().map(|(at, it)| (format!("mcp_servers[{at}]"), Wanted::Server(it)));
    let functions =
        functions.iter().enumerate().map(|(at, it)| (format!("functions[{at}]"), Wanted::Function(it)));
    let agents = agents.iter().enumerate().map(|(at, it)| (format!("agents.local[{at}]"), Wanted::Agent(it)));
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

// === impl Wanted ===

impl Wanted<'_> {
    /// What is to be deployed, or the key that is wrong and why.
    pub(crate) fn deployment(&self) -> Result<Deployment, (String, String)> {
        let (name, way) = match self {
            Self::Server(server) => (&server.name, &server.way),
            Self::Function(function) => (&function.name, &function.way),
            Self::Agent(agent) => (&agent.name, &agent.way),
        };
        check_name(name).map_err(wrong("name"))?;
        let via = way.via()?;
        let own = way.timeout_ms().map_err(wrong("timeout"))?;
        let (backing, timeout_ms) = match self {
            Self::Server(server) => {
                let sampling = server.sampling.clone().filter(|name| !name.is_empty());
                (Backing::Mcp(Arc::new(backing::McpServerBacking { name: name.clone(), via, sampling })), own)
            }
            Self::Function(function) => {
                let timeout_ms = own.unwrap_or(millis(FUNCTION_SECONDS));
                let made = backing::FunctionBacking {
                    name: name.clone(),
                    description: function.description.clone(),
                    via,
                    input_schema: schema_of(function.input_schema.as_ref()).map_err(wrong("input_schema"))?,
                    output_schema: schema_of(function.output_schema.as_ref())
                        .map_err(wrong("output_schema"))?,
                    idempotent: function.idempotent,
                    timeout_ms,
                };
                (Backing::Function(Arc::new(made)), Some(timeout_ms.saturating_add(GRACE_MS)))
            }
            Self::Agent(agent) => {
                let made = agent.made(via)?;
                (Backing::Acp(Arc::new(made)), own.or(Some(millis(AGENT_SECONDS))))
            }
        };
        let trust = match self {
            Self::Server(server) => server.trust.map(AgentTrust::from),
            Self::Function(_) | Self::Agent(_) => None,
        };
        Ok(Deployment { scope: way.scope()?, backing, allow_private: true, timeout_ms, trust })
    }
}

// === impl TrustLevel ===

impl From<TrustLevel> for AgentTrust {
    fn from(level: TrustLevel) -> Self {
        match level {
            TrustLevel::External => Self::External,
            TrustLevel::Trusted => Self::Trusted,
            TrustLevel::System => Self::System,
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

/// Says which key is wrong.
fn wrong(key: &str) -> impl Fn(String) -> (String, String) {
    move |reason| (key.to_owned(), reason)
}

/// A schema that is given as it is, or in a file.
pub(crate) fn schema_of(given: Option<&Value>) -> Result<Option<Json>, String> {
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
            mcp_servers: Vec<McpServer>,
            functions: Vec<Function>,
        }
        let both: Both = toml::from_str(text).unwrap();
        all(&both.mcp_servers, &both.functions, &[]).unwrap_err()
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
        let error = toml::from_str::<McpServer>("name='a'\ncommand='b'\nurll='c'").unwrap_err();
        assert!(error.to_string().contains("urll"), "{error}");
    }

    #[test]
    fn a_function_is_ended_before_its_callers_patience() {
        let way = Way { url: Some("https://a.example".into()), timeout: Some(1.5), ..Way::default() };
        let function = Function { name: "a".into(), way, ..Function::default() };
        let made = Wanted::Function(&function).deployment().unwrap();
        let Backing::Function(inside) = &made.backing else { panic!("{made:?}") };
        assert_eq!((inside.timeout_ms, made.timeout_ms), (1_500, Some(2_500)));
    }
}
