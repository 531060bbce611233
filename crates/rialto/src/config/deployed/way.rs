//! How something deployed is reached, as a file says it.

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
    /// Nodes that may run the program, by their names (`[server] node_name`), where several servers share one store. The others pass calls on to
    /// one of them. Without it every node runs a copy of its own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) nodes: Vec<String>,
    /// Whether the program runs on one node at a time, of those that may run it: for a program that keeps state or holds something that can be
    /// held once. The others pass calls on to it. When its node is lost, another one starts it for the next call.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) singleton: bool,
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

// === impl Way ===

impl Way {
    pub(super) fn via(&self) -> Result<BackingTransport, (String, String)> {
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
            (None, Some(_)) if !self.nodes.is_empty() => {
                wrong("nodes", "every node calls an address; only a `command` is placed on nodes")
            }
            (None, Some(_)) if self.singleton => {
                wrong("singleton", "every node calls an address; only a `command` is placed on a node")
            }
            (Some(words), None) => Ok(BackingTransport::Command(ProcessCommand {
                argv: words.argv(&self.args).map_err(|reason| ("command".to_owned(), reason))?,
                env: settings(&self.env, "env")?,
                cwd: self.cwd.clone(),
                placement: self.placement()?,
            })),
            (None, Some(url)) => Ok(BackingTransport::Http(BackingEndpoint {
                url: address(url).map_err(|reason| ("url".to_owned(), reason))?,
                headers: settings(&self.headers, "headers")?,
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
            Some(seconds) if seconds > 0.0 && seconds <= 86_400.0 => Ok(Some(millis(seconds).max(1))),
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
        backing::TransportSetting::from(self).fmt(f)
    }
}

impl From<&Setting> for backing::TransportSetting {
    fn from(setting: &Setting) -> Self {
        match setting {
            Setting::Text(text) => Self::Text(text.clone()),
            Setting::Env { env } => Self::From(SecretSource::Env(env.clone())),
            Setting::File { file } => Self::From(SecretSource::File(file.clone())),
            Setting::Secret { secret } => Self::From(SecretSource::Store(secret.clone())),
        }
    }
}

/// Values as rows keep them. A secret in plain sight is refused: it would be kept where anybody can read it.
fn settings(
    given: &BTreeMap<String, Setting>,
    key: &str,
) -> Result<BTreeMap<String, backing::TransportSetting>, (String, String)> {
    let mut settings = BTreeMap::new();
    for (name, setting) in given {
        let setting = backing::TransportSetting::from(setting);
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

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a day of milliseconds is far below"
)]
pub(super) fn millis(seconds: f64) -> u64 {
    (seconds * 1_000.0).round() as u64
}
