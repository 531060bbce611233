//! Configuration of the outbound client (`[outbound]`).

use std::{fmt, path::PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use crate::{egress_rules::DEFAULT_DENIED_PORTS, fetch::DEFAULT_MAX_BYTES};

/// Settings of the outbound client.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Connect timeout in milliseconds: name, TCP and TLS together.
    pub connect_timeout_ms: u64,
    /// Idle timeout of a pooled connection, in milliseconds. It is below the five seconds after which common servers close connections,
    /// because a request that meets a closing connection cannot be repeated safely.
    pub keep_idle_ms: u64,
    /// Maximum bytes of a response, or of one event of a stream.
    pub max_response_bytes: usize,
    /// A PEM file with the authorities to trust, in place of the built-in ones.
    pub ca_file: Option<PathBuf>,
    /// Refuse plain http everywhere but on this machine.
    pub https_only: bool,
    /// Ports that may be called. If empty, all ports but those in `denied_ports`.
    pub allowed_ports: Vec<u16>,
    /// Ports that are not called unless `allowed_ports` names them. By default those of mail, shells, databases and other services that are
    /// no agents.
    pub denied_ports: Vec<u16>,
    /// Hosts that may be called: names, addresses, or `*.example.com` for all below a domain. If empty, all hosts but those in
    /// `denied_hosts`.
    pub allowed_hosts: Vec<String>,
    /// Hosts that are never called, written like `allowed_hosts`.
    pub denied_hosts: Vec<String>,
    /// Proxy to use (`http://user:password@proxy.example:3128`), or `none`. By default the one that `HTTPS_PROXY`, `HTTP_PROXY` or
    /// `ALL_PROXY` names, except for hosts in `NO_PROXY`.
    pub proxy: Option<ProxyAddress>,
    /// PEM file with the certificate chain that is sent to servers that request a client certificate. It is read again when it changes.
    pub client_cert: Option<PathBuf>,
    /// A PEM file with the private key of `client_cert`.
    pub client_key: Option<PathBuf>,
    /// Client certificates for single hosts. The first that matches takes precedence over `client_cert`.
    pub identities: Vec<ClientIdentity>,
}

/// The address of a proxy. It may hold a password, so it is printed without.
#[derive(Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct ProxyAddress(String);

/// Client certificate for some hosts.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClientIdentity {
    /// Host it is sent to: a name, an address, or `*.example.com` for all below a domain.
    pub host: String,
    /// PEM file with the certificate chain.
    pub cert: PathBuf,
    /// A PEM file with its private key.
    pub key: PathBuf,
}

// === impl ProxyAddress ===

impl ProxyAddress {
    /// Address with its password.
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
            max_response_bytes: DEFAULT_MAX_BYTES,
            ca_file: None,
            https_only: false,
            allowed_ports: Vec::new(),
            denied_ports: DEFAULT_DENIED_PORTS.to_vec(),
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
