//! Transport of a deployment: a command or a URL.

use std::{collections::BTreeMap, fmt};

use rialto_model::{
    backing::{self, BackingEndpoint, BackingTransport, NodePlacement, ProcessCommand},
    credential::SecretSource,
    ids::{OrgId, ProjectId, Scope, is_slug},
    node::is_node_name,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use url::Url;

/// Transport of a deployment: a command on this machine, or a URL.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct TransportConfig {
    /// Program, or program with arguments. An MCP server speaks on stdin and stdout; a function reads its arguments from stdin as JSON
    /// and writes its result to stdout.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) command: Option<CommandConfig>,
    /// Further arguments of the program.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) args: Vec<String>,
    /// Environment of the program, beside `PATH`, `HOME` and similar variables. Secrets are references:
    /// `"${VARIABLE}"`, `{ env = "VARIABLE" }`, `{ file = "PATH" }` or `{ secret = "NAME" }` (see `rialto secrets`).
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) env: BTreeMap<String, SettingConfig>,
    /// Working directory of the program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cwd: Option<String>,
    /// Nodes that may run the program, by name (`[server] node_name`), if several servers share a store. Other nodes pass calls on to one
    /// of them. Default: every node runs a copy.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) nodes: Vec<String>,
    /// Run the program on one node at a time, of those that may run it: for a program with state or exclusive resources. Other nodes
    /// pass calls on to it. If its node fails, another one starts it for the next call.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) singleton: bool,
    /// URL of an MCP server, or URL to which a function's arguments are posted as JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) url: Option<String>,
    /// Request headers. Secrets are references, as in `env`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) headers: BTreeMap<String, SettingConfig>,
    /// Call timeout, in seconds. A function is ended after it (default 30); a tool continues, and its caller receives the task id
    /// (default: as for all calls).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) timeout: Option<f64>,
    /// Org (default: `default`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) org: Option<String>,
    /// Project (default: `main`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) project: Option<String>,
}

/// Program, or program with arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum CommandConfig {
    /// Program.
    One(String),
    /// Program with arguments.
    Many(Vec<String>),
}

/// Value of a header or a variable, or a reference to it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, deny_unknown_fields)]
pub(crate) enum SettingConfig {
    /// Text; `${VARIABLE}` inserts an environment variable.
    Text(String),
    /// Environment variable.
    Env {
        /// Name.
        env: String,
    },
    /// File.
    File {
        /// Path.
        file: String,
    },
    /// Secret in the store.
    Secret {
        /// Name.
        secret: String,
    },
}

// === impl TransportConfig ===

impl TransportConfig {
    pub(super) fn to_via(&self) -> Result<BackingTransport, (String, String)> {
        let wrong = |key: &str, reason: &str| Err((key.to_owned(), reason.to_owned()));
        match (&self.command, &self.url) {
            (None, None) => wrong("url", "`command` or `url` is required"),
            (Some(_), Some(_)) => wrong("url", "it has a `command` already; leave one of them out"),
            (Some(_), None) if !self.headers.is_empty() => {
                wrong("headers", "a command has `env`, not headers")
            }
            (None, Some(_)) if !self.env.is_empty() => wrong("env", "a URL has `headers`, not env"),
            (None, Some(_)) if !self.args.is_empty() => wrong("args", "a URL has no arguments"),
            (None, Some(_)) if self.cwd.is_some() => wrong("cwd", "an address has no folder"),
            (None, Some(_)) if !self.nodes.is_empty() => {
                wrong("nodes", "every node calls an address; only a `command` is placed on nodes")
            }
            (None, Some(_)) if self.singleton => {
                wrong("singleton", "every node calls an address; only a `command` is placed on a node")
            }
            (Some(words), None) => Ok(BackingTransport::Command(ProcessCommand {
                argv: words.argv(&self.args).map_err(|reason| ("command".to_owned(), reason))?,
                env: resolve_settings(&self.env, "env")?,
                cwd: self.cwd.clone(),
                placement: self.placement()?,
            })),
            (None, Some(url)) => Ok(BackingTransport::Http(BackingEndpoint {
                url: parse_url(url).map_err(|reason| ("url".to_owned(), reason))?,
                headers: resolve_settings(&self.headers, "headers")?,
            })),
        }
    }

    fn placement(&self) -> Result<NodePlacement, (String, String)> {
        if let Some(name) = self.nodes.iter().find(|name| !is_node_name(name)) {
            let reason = format!("\"{name}\" is not the name of a node; use what `rialto nodes list` shows");
            return Err(("nodes".to_owned(), reason));
        }
        Ok(NodePlacement { nodes: self.nodes.clone(), singleton: self.singleton })
    }

    pub(super) fn timeout_ms(&self) -> Result<Option<u64>, String> {
        match self.timeout {
            Some(seconds) if seconds > 0.0 && seconds <= 86_400.0 => {
                Ok(Some(seconds_to_millis(seconds).max(1)))
            }
            Some(_) => Err("give seconds, more than 0 and at most 86400".to_owned()),
            None => Ok(None),
        }
    }

    pub(super) fn scope(&self) -> Result<Scope, (String, String)> {
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

// === impl CommandConfig ===

impl CommandConfig {
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

// === impl SettingConfig ===

impl fmt::Debug for SettingConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        backing::TransportSetting::from(self).fmt(f)
    }
}

impl From<&SettingConfig> for backing::TransportSetting {
    fn from(setting: &SettingConfig) -> Self {
        match setting {
            SettingConfig::Text(text) => Self::Text(text.clone()),
            SettingConfig::Env { env } => Self::From(SecretSource::Env(env.clone())),
            SettingConfig::File { file } => Self::From(SecretSource::File(file.clone())),
            SettingConfig::Secret { secret } => Self::From(SecretSource::Store(secret.clone())),
        }
    }
}

/// Values as rows store them. A literal secret is rejected: it would be readable in the database.
fn resolve_settings(
    given: &BTreeMap<String, SettingConfig>,
    key: &str,
) -> Result<BTreeMap<String, backing::TransportSetting>, (String, String)> {
    let mut settings = BTreeMap::new();
    for (name, setting) in given {
        let setting = backing::TransportSetting::from(setting);
        if setting.is_bare_secret(name) {
            let reason = "this looks like a secret; use a reference to it: \"${VARIABLE}\", { env = \"VARIABLE\" } \
                          or { secret = \"NAME\" } after `rialto secrets set NAME`";
            return Err((format!("{key}.{name}"), reason.to_owned()));
        }
        settings.insert(name.clone(), setting);
    }
    Ok(settings)
}

fn parse_url(url: &str) -> Result<String, String> {
    let parsed: Url = url.parse().map_err(|error| format!("\"{url}\" is not an address: {error}"))?;
    if !matches!(parsed.scheme(), "http" | "https") {
        return Err(format!("only http and https are called, not {}", parsed.scheme()));
    }
    if !parsed.username().is_empty() || parsed.password().is_some() {
        return Err("no user and password in an address; use a header with ${VARIABLE}".to_owned());
    }
    Ok(parsed.into())
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a day of milliseconds is far below"
)]
pub(super) fn seconds_to_millis(seconds: f64) -> u64 {
    (seconds * 1_000.0).round() as u64
}
