//! What can be set about everything that leaves over HTTP.

use std::{fmt, path::PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use crate::{fetch::DEFAULT_LIMIT, rules::NEVER_AGENTS};

/// How the client behaves.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// How long a connection may take in milliseconds: name, TCP and TLS together.
    pub connect_timeout_ms: u64,
    /// How long an unused connection is kept, in milliseconds. Below the five seconds after which common servers hang
    /// up, because a request that meets a closing connection cannot be repeated safely.
    pub keep_idle_ms: u64,
    /// How many bytes an answer, or one event of a stream, may have.
    pub max_response_bytes: usize,
    /// A PEM file with the authorities to trust, in place of the built-in ones.
    pub ca_file: Option<PathBuf>,
    /// Whether plain http is refused everywhere but on this machine.
    pub https_only: bool,
    /// The only ports to call. When there are none, all ports but those in `denied_ports` are called.
    pub allowed_ports: Vec<u16>,
    /// Ports that are not called unless `allowed_ports` names them. By default those of mail, shells, databases and other
    /// services that are no agents.
    pub denied_ports: Vec<u16>,
    /// The only hosts to call: names, addresses, or `*.example.com` for all below a domain. When there are none, all
    /// hosts but those in `denied_hosts` are called.
    pub allowed_hosts: Vec<String>,
    /// Hosts that are never called, written like `allowed_hosts`.
    pub denied_hosts: Vec<String>,
    /// The proxy to go through (`http://user:password@proxy.example:3128`), or `none`. By default the one that
    /// `HTTPS_PROXY`, `HTTP_PROXY` or `ALL_PROXY` name, except for what `NO_PROXY` lists.
    pub proxy: Option<ProxyAddress>,
    /// A PEM file with the certificate, and those up to its authority, that servers are shown when they ask who we are.
    /// Read again when it changes.
    pub client_cert: Option<PathBuf>,
    /// A PEM file with the private key of `client_cert`.
    pub client_key: Option<PathBuf>,
    /// Certificates for some hosts only; the first that fits goes before `client_cert`.
    pub identities: Vec<Identity>,
}

/// The address of a proxy. It may hold a password, so it is printed without.
#[derive(Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct ProxyAddress(String);

/// A certificate to show to some hosts.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// Whom it is shown to: a name, an address, or `*.example.com` for all below a domain.
    pub host: String,
    /// A PEM file with the certificate, and those up to its authority.
    pub cert: PathBuf,
    /// A PEM file with its private key.
    pub key: PathBuf,
}

// === impl ProxyAddress ===

impl ProxyAddress {
    /// The address, for those who call it.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }

    /// The address without what stands before its host.
    fn printable(&self) -> String {
        let (scheme, rest) =
            self.0.split_once("://").map_or(("", self.0.as_str()), |(scheme, rest)| (scheme, rest));
        let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
        if scheme.is_empty() { host.to_owned() } else { format!("{scheme}://{host}") }
    }
}

impl<T: Into<String>> From<T> for ProxyAddress {
    fn from(text: T) -> Self {
        Self(text.into())
    }
}

impl fmt::Debug for ProxyAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.printable())
    }
}

impl Serialize for ProxyAddress {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.printable())
    }
}

// === impl Config ===

impl Default for Config {
    fn default() -> Self {
        Self {
            connect_timeout_ms: 5_000,
            keep_idle_ms: 4_000,
            max_response_bytes: DEFAULT_LIMIT,
            ca_file: None,
            https_only: false,
            allowed_ports: Vec::new(),
            denied_ports: NEVER_AGENTS.to_vec(),
            allowed_hosts: Vec::new(),
            denied_hosts: Vec::new(),
            proxy: None,
            client_cert: None,
            client_key: None,
            identities: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_password_of_a_proxy_is_not_printed() {
        for (text, shown) in [
            ("http://me:hunter2@proxy:3128", "http://proxy:3128"),
            ("me:hunter2@proxy", "proxy"),
            ("http://me:hunt@er2@proxy", "http://proxy"),
            ("none", "none"),
        ] {
            let proxy = ProxyAddress::from(text);
            assert_eq!(serde_json::to_value(&proxy).unwrap(), shown);
            assert_eq!(format!("{proxy:?}"), shown);
        }
    }
}
