//! `[[mcp_servers]]`, `[[functions]]` and `[[agents.local]]`: what is deployed, as a file says it.
//!
//! The command line and the API say the same in the same words, so everything is checked here, once.

use std::{collections::BTreeMap, fmt, path::Path, sync::Arc};

use rialto_engine::{directory::RESERVED, registry::Deployment, schema};
use rialto_model::{
    credential::Source,
    deployed::{self, Backing, Command, Endpoint, Via, is_name},
    ids::{OrgId, ProjectId, Scope, is_slug},
    json::Json,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use url::Url;

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
    /// How it is reached.
    #[serde(flatten)]
    pub(crate) way: Way,
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

/// A coding agent that is started on this machine and speaks the Agent Client Protocol: Gemini CLI, Claude Code's adapter,
/// Codex, Goose, …
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct LocalAgent {
    /// Its name: letters, digits, `-` and `_`.
    pub(crate) name: String,
    /// What it is, for whoever decides whether to ask it.
    pub(crate) description: String,
    /// What it is good at. Every agent has the skill `prompt` beside these: it does what it is told.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) skills: Vec<LocalSkill>,
    /// What becomes of its wish to use a tool that it asks about: `ask` has the task wait until somebody has approved it,
    /// `allow` lets it, `deny` does not.
    pub(crate) permission: PermissionName,
    /// Which files below its folder (`cwd`) it may have from us: `none` (it uses its own means), `read` or `write`.
    pub(crate) allow_files: FilesName,
    /// How it is started. It works in the folder `cwd`.
    #[serde(flatten)]
    pub(crate) way: Way,
}

/// Something a coding agent is good at.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct LocalSkill {
    /// Its id: letters, digits, `-` and `_`.
    pub(crate) id: String,
    /// What it does, for whoever decides whether to ask for it.
    pub(crate) description: String,
    /// Words to find it by.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) tags: Vec<String>,
    /// What the agent is told before what the caller says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) instructions: Option<String>,
}

/// What becomes of an agent's wish to use a tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum PermissionName {
    /// The task waits until somebody has approved it.
    #[default]
    Ask,
    /// It may.
    Allow,
    /// It may not.
    Deny,
}

/// Which files an agent may have from us.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum FilesName {
    /// None.
    #[default]
    None,
    /// It may read them.
    Read,
    /// It may read and write them.
    Write,
}

/// How something deployed is reached: by a command on this machine, or at an address.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct Way {
    /// The program, or the program and its arguments. An MCP server speaks on stdin and stdout; a function reads its
    /// arguments from stdin as JSON and writes its result to stdout.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) command: Option<Words>,
    /// The program's (further) arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) args: Vec<String>,
    /// The program's environment, beside `PATH`, `HOME` and a few more like these. A secret is named, not written:
    /// `"${VARIABLE}"`, `{ env = "VARIABLE" }`, `{ file = "PATH" }` or `{ secret = "NAME" }` (see `rialto secrets`).
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) env: BTreeMap<String, Setting>,
    /// The folder the program is started in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cwd: Option<String>,
    /// The address: of an MCP server, or where a function's arguments are posted to as JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) url: Option<String>,
    /// Headers that are sent there. A secret is named, not written, as in `env`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) headers: BTreeMap<String, Setting>,
    /// How long a call may take, in seconds. A function that takes longer is ended (default 30); a tool goes on, and its
    /// caller gets the task's id (default: as for all calls).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) timeout: Option<f64>,
    /// The org it belongs to (default: `default`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) org: Option<String>,
    /// The project it belongs to (default: `main`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) project: Option<String>,
}

/// A program, or a program and its arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum Words {
    /// A program.
    One(String),
    /// A program and its arguments.
    Many(Vec<String>),
}

/// A header or a variable, or where it comes from.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, deny_unknown_fields)]
pub(crate) enum Setting {
    /// A text; `${VARIABLE}` in it stands for an environment variable.
    Text(String),
    /// An environment variable.
    Env {
        /// Its name.
        env: String,
    },
    /// A file.
    File {
        /// Its path.
        file: String,
    },
    /// A secret in the store.
    Secret {
        /// Its name.
        secret: String,
    },
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
                (Backing::Mcp(Arc::new(deployed::McpServer { name: name.clone(), via, sampling })), own)
            }
            Self::Function(function) => {
                let timeout_ms = own.unwrap_or(millis(FUNCTION_SECONDS));
                let made = deployed::Function {
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
        Ok(Deployment { scope: way.scope()?, backing, allow_private: true, timeout_ms })
    }
}

// === impl LocalAgent ===

impl LocalAgent {
    fn made(&self, via: Via) -> Result<deployed::LocalAgent, (String, String)> {
        if matches!(via, Via::Http(_)) {
            let reason = "a coding agent is started by a `command`; one at an address is added with `rialto agents add URL`";
            return Err(("url".to_owned(), reason.to_owned()));
        }
        let mut skills: Vec<deployed::LocalSkill> = Vec::new();
        for (at, skill) in self.skills.iter().enumerate() {
            let wrong = |reason: String| (format!("skills[{at}].id"), reason);
            if !is_name(&skill.id) {
                return Err(wrong(format!("\"{}\" must be letters, digits, `-` and `_`", skill.id)));
            }
            if skill.id == deployed::PROMPT || skills.iter().any(|other| other.id == skill.id) {
                return Err(wrong(format!("it has a skill \"{}\" already", skill.id)));
            }
            skills.push(deployed::LocalSkill {
                id: skill.id.clone(),
                description: skill.description.clone(),
                tags: skill.tags.clone(),
                instructions: skill.instructions.clone(),
            });
        }
        Ok(deployed::LocalAgent {
            name: self.name.clone(),
            description: self.description.clone(),
            via,
            skills,
            permission: match self.permission {
                PermissionName::Ask => deployed::Permission::Ask,
                PermissionName::Allow => deployed::Permission::Allow,
                PermissionName::Deny => deployed::Permission::Deny,
            },
            files: match self.allow_files {
                FilesName::None => deployed::Files::None,
                FilesName::Read => deployed::Files::Read,
                FilesName::Write => deployed::Files::Write,
            },
        })
    }
}

// === impl Way ===

impl Way {
    fn via(&self) -> Result<Via, (String, String)> {
        let wrong = |key: &str, reason: &str| Err((key.to_owned(), reason.to_owned()));
        match (&self.command, &self.url) {
            (None, None) => wrong("url", "say how it is reached: `command` or `url`"),
            (Some(_), Some(_)) => wrong("url", "it has a `command` already; leave one of them out"),
            (Some(_), None) if !self.headers.is_empty() => {
                wrong("headers", "a command takes `env`, not headers")
            }
            (None, Some(_)) if !self.env.is_empty() => wrong("env", "an address takes `headers`, not env"),
            (None, Some(_)) if !self.args.is_empty() => wrong("args", "an address takes no arguments"),
            (None, Some(_)) if self.cwd.is_some() => wrong("cwd", "an address has no folder"),
            (Some(words), None) => Ok(Via::Command(Command {
                argv: words.argv(&self.args).map_err(|reason| ("command".to_owned(), reason))?,
                env: settings(&self.env, "env")?,
                cwd: self.cwd.clone(),
            })),
            (None, Some(url)) => Ok(Via::Http(Endpoint {
                url: address(url).map_err(|reason| ("url".to_owned(), reason))?,
                headers: settings(&self.headers, "headers")?,
            })),
        }
    }

    fn timeout_ms(&self) -> Result<Option<u64>, String> {
        match self.timeout {
            Some(seconds) if seconds > 0.0 && seconds <= 86_400.0 => Ok(Some(millis(seconds).max(1))),
            Some(_) => Err("give seconds, more than 0 and at most 86400".to_owned()),
            None => Ok(None),
        }
    }

    fn scope(&self) -> Result<Scope, (String, String)> {
        let standard = Scope::default();
        let slug = |key: &str, given: &Option<String>, otherwise: &str| match given {
            Some(name) if !is_slug(name) => {
                Err((key.to_owned(), format!("\"{name}\" must be letters, digits, `-` and `_`")))
            }
            Some(name) => Ok(name.clone()),
            None => Ok(otherwise.to_owned()),
        };
        Ok(Scope {
            org: OrgId::from(slug("org", &self.org, standard.org.as_str())?),
            project: ProjectId::from(slug("project", &self.project, standard.project.as_str())?),
        })
    }
}

// === impl Words ===

impl Words {
    fn argv(&self, more: &[String]) -> Result<Vec<String>, String> {
        let first: &[String] = match self {
            Self::One(word) => std::slice::from_ref(word),
            Self::Many(words) => words,
        };
        if first.first().is_none_or(String::is_empty) {
            return Err("name a program".to_owned());
        }
        Ok(first.iter().chain(more).cloned().collect())
    }
}

// === impl Setting ===

impl fmt::Debug for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        deployed::Setting::from(self).fmt(f)
    }
}

impl From<&Setting> for deployed::Setting {
    fn from(setting: &Setting) -> Self {
        match setting {
            Setting::Text(text) => Self::Text(text.clone()),
            Setting::Env { env } => Self::From(Source::Env(env.clone())),
            Setting::File { file } => Self::From(Source::File(file.clone())),
            Setting::Secret { secret } => Self::From(Source::Store(secret.clone())),
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

/// Values as rows keep them. A secret in plain sight is refused: it would be kept where anybody can read it.
fn settings(
    given: &BTreeMap<String, Setting>,
    key: &str,
) -> Result<BTreeMap<String, deployed::Setting>, (String, String)> {
    let mut settings = BTreeMap::new();
    for (name, setting) in given {
        let setting = deployed::Setting::from(setting);
        if setting.is_bare_secret(name) {
            let reason = "this looks like a secret; name where it is instead: \"${VARIABLE}\", { env = \"VARIABLE\" } \
                          or { secret = \"NAME\" } after `rialto secrets set NAME`";
            return Err((format!("{key}.{name}"), reason.to_owned()));
        }
        settings.insert(name.clone(), setting);
    }
    Ok(settings)
}

fn address(url: &str) -> Result<String, String> {
    let parsed: Url = url.parse().map_err(|error| format!("\"{url}\" is not an address: {error}"))?;
    if !matches!(parsed.scheme(), "http" | "https") {
        return Err(format!("only http and https are called, not {}", parsed.scheme()));
    }
    if !parsed.username().is_empty() || parsed.password().is_some() {
        return Err("no user and password in an address; use a header with ${VARIABLE}".to_owned());
    }
    Ok(parsed.into())
}

/// Says which key is wrong.
fn wrong(key: &str) -> impl Fn(String) -> (String, String) {
    move |reason| (key.to_owned(), reason)
}

/// A schema that is given as it is, or in a file.
fn schema_of(given: Option<&Value>) -> Result<Option<Json>, String> {
    let Some(given) = given else { return Ok(None) };
    let schema = match given {
        Value::String(path) => {
            let text =
                std::fs::read_to_string(Path::new(path)).map_err(|error| format!("{path}: {error}"))?;
            Json::parse(text.trim()).map_err(|error| format!("{path}: {error}"))?
        }
        given => Json::of(given),
    };
    schema::is_schema(&schema).map_err(|why| format!("this is not a JSON Schema: {why}"))?;
    Ok(Some(schema))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a day of milliseconds is far below"
)]
fn millis(seconds: f64) -> u64 {
    (seconds * 1_000.0).round() as u64
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
