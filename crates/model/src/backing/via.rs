//! Transports of backings: programs and HTTP endpoints, with their headers and environment variables.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};

use crate::credential::SecretSource;

/// Transport of a backing.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BackingTransport {
    /// A program on this machine.
    Command(ProcessCommand),
    /// An address.
    Http(BackingEndpoint),
}

/// A program and what it is started with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProcessCommand {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Its environment, beside the few variables that every program gets.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, TransportSetting>,
    /// The folder it is started in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Nodes that may run it.
    #[serde(default, skip_serializing_if = "NodePlacement::is_anywhere")]
    pub placement: NodePlacement,
}

/// Nodes that may run a program, where several share a store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodePlacement {
    /// Names of the nodes; empty for all.
    pub nodes: Vec<String>,
    /// True if it runs on one of them at a time.
    pub singleton: bool,
}

/// An address and what is sent there with each request.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BackingEndpoint {
    /// URL.
    pub url: String,
    /// Headers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, TransportSetting>,
}

/// A header or an environment variable. It may lead to a secret, so it is never shown: only where it comes from.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum TransportSetting {
    /// A text. `${NAME}` in it stands for an environment variable of this process, `${store:NAME}` for a secret.
    Text(String),
    /// Value of a secret or variable.
    From(SecretSource),
}

/// A piece of a [`TransportSetting`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingPiece {
    /// This very text.
    Text(String),
    /// Value of a secret or variable.
    From(SecretSource),
}

/// Words that make a name suspicious, in lower case, without separators.
const SECRETS: [&str; 10] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "apikey",
    "authorization",
    "credential",
    "privatekey",
    "cookie",
];

// === impl NodePlacement ===

impl NodePlacement {
    /// Returns whether every node runs a copy of its own.
    pub const fn is_anywhere(&self) -> bool {
        self.nodes.is_empty() && !self.singleton
    }

    /// Returns whether the node of this name may run it.
    pub fn allows(&self, node: &str) -> bool {
        self.nodes.is_empty() || self.nodes.iter().any(|name| name == node)
    }
}

// === impl BackingTransport ===

impl BackingTransport {
    /// Description in one line, without anything that could be a secret.
    pub fn described(&self) -> String {
        match self {
            Self::Command(command) => command.argv.first().cloned().unwrap_or_default(),
            Self::Http(endpoint) => endpoint.url.split(['?', '#']).next().unwrap_or(&endpoint.url).to_owned(),
        }
    }

    /// Its headers or variables.
    pub const fn settings(&self) -> &BTreeMap<String, TransportSetting> {
        match self {
            Self::Command(command) => &command.env,
            Self::Http(endpoint) => &endpoint.headers,
        }
    }
}

// === impl TransportSetting ===

impl TransportSetting {
    /// Parts of the text. An `${` without its `}` is literal.
    pub fn pieces(&self) -> Vec<SettingPiece> {
        let text = match self {
            Self::From(source) => return vec![SettingPiece::From(source.clone())],
            Self::Text(text) => text,
        };
        let mut pieces = Vec::new();
        let mut rest = text.as_str();
        while let Some((before, after)) = rest.split_once("${") {
            let Some((name, behind)) = after.split_once('}') else { break };
            if !before.is_empty() {
                pieces.push(SettingPiece::Text(before.to_owned()));
            }
            let source = SecretSource::parse(name).unwrap_or_else(|| SecretSource::Env(name.to_owned()));
            pieces.push(SettingPiece::From(source));
            rest = behind;
        }
        if !rest.is_empty() || pieces.is_empty() {
            pieces.push(SettingPiece::Text(rest.to_owned()));
        }
        pieces
    }

    /// Origin of the value, for listings.
    pub fn described(&self) -> String {
        let described = self.pieces().into_iter().map(|piece| match piece {
            SettingPiece::Text(_) => "given".to_owned(),
            SettingPiece::From(source) => source.to_string(),
        });
        described.filter(|word| word != "given").reduce(|a, b| format!("{a}, {b}")).unwrap_or("given".into())
    }

    /// Returns whether it is a secret that was written where it would be kept: its name says so, and nothing in it leads
    /// elsewhere.
    pub fn is_bare_secret(&self, name: &str) -> bool {
        let plain: String =
            name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect();
        let is_suspicious = SECRETS.iter().any(|word| plain.contains(word)) || plain.ends_with("key");
        is_suspicious && self.pieces().iter().all(|piece| matches!(piece, SettingPiece::Text(_)))
    }
}

impl fmt::Debug for TransportSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.described())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> TransportSetting {
        TransportSetting::Text(text.to_owned())
    }

    #[test]
    fn a_setting_is_put_together_from_texts_and_places() {
        let env = |name: &str| SettingPiece::From(SecretSource::Env(name.to_owned()));
        assert_eq!(text("plain").pieces(), [SettingPiece::Text("plain".into())]);
        assert_eq!(text("").pieces(), [SettingPiece::Text(String::new())]);
        assert_eq!(text("Bearer ${TOKEN}").pieces(), [SettingPiece::Text("Bearer ".into()), env("TOKEN")]);
        assert_eq!(text("${A}-${B}").pieces(), [env("A"), SettingPiece::Text("-".into()), env("B")]);
        assert_eq!(text("${store:desk}").pieces(), [SettingPiece::From(SecretSource::Store("desk".into()))]);
        assert_eq!(text("${open").pieces(), [SettingPiece::Text("${open".into())]);
    }

    #[test]
    fn a_setting_is_never_shown() {
        let shown = format!("{:?} {}", text("hunter2 ${TOKEN}"), text("hunter2").described());
        assert_eq!(shown, "env:TOKEN given");
    }

    #[test]
    fn a_secret_is_named_and_not_written() {
        for name in ["Authorization", "X-API-Key", "GITHUB_TOKEN", "db_password", "OPENAI_API_KEY"] {
            assert!(text("hunter2").is_bare_secret(name), "{name}");
            assert!(!text("Bearer ${TOKEN}").is_bare_secret(name), "{name}");
        }
        for name in ["Accept", "LANG", "MONKEYS", "X-Tenant"] {
            assert!(!text("hunter2").is_bare_secret(name), "{name}");
        }
    }
}
