//! `[server]`: listener, TLS and shutdown.

use std::{fs, net::SocketAddr, num::NonZero, sync::Arc, thread, time::Duration};

use rialto_http_server::{
    listener::{ConnectionLimits, Deadlines, PerAddress, TlsConfig, max_connections_for},
    public_url::PublicUrl,
};
use rialto_model::node::{MAX_NODE_NAME_BYTES, is_node_name};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use url::Url;

/// Default grace period in seconds: a load balancer that checks every second or two notices that the server is not ready.
const DEFAULT_GRACE_SECS: u64 = 5;

/// HTTP server.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ServerConfig {
    /// Address to listen on.
    pub(crate) addr: String,
    /// Name of this server among the nodes that share the store: at most 64 letters, digits, `-`, `_` and `.`. Default: the machine's name
    /// and the port, such as `web-1-8420`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) node_name: Option<String>,
    /// Host names to accept beside loopback names; `*` accepts all.
    pub(crate) allowed_hosts: Vec<String>,
    /// Number of worker threads for connections (default: one per processor).
    pub(crate) threads: Option<NonZero<usize>>,
    /// Serve each connection on one worker thread from its start to its end, together with the connections to agents that its calls
    /// use. Without it, all threads share all work, which costs more CPU time per call.
    pub(crate) worker_threads: bool,
    /// Maximum number of open connections. The limit of open files lowers it, so that some are left for the store.
    pub(crate) max_connections: usize,
    /// Maximum number of open connections per address, loopback addresses included. Default: 1000, loopback addresses not counted; no
    /// limit with `trust_proxy`.
    pub(crate) max_connections_per_address: Option<usize>,
    /// Timeout for the head of a request and for the TLS handshake, in milliseconds.
    pub(crate) header_timeout_ms: NonZero<u64>,
    /// Timeout for the body of a request, in milliseconds.
    pub(crate) body_timeout_ms: NonZero<u64>,
    /// Timeout of an idle connection, in milliseconds.
    pub(crate) idle_timeout_ms: NonZero<u64>,
    /// Timeout for a client that does not read its response, in milliseconds.
    pub(crate) write_timeout_ms: NonZero<u64>,
    /// TLS. Without it, connections are not encrypted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tls: Option<TlsConfig>,
    /// Maximum size of a request body, in bytes.
    pub(crate) max_body_bytes: usize,
    /// Public URL of this server (`https://bridge.example.com`), if requests name another one.
    pub(crate) public_url: Option<String>,
    /// Trust `X-Forwarded-Proto` from a proxy in front of this server. Without a proxy, any client could set it.
    pub(crate) trust_proxy: bool,
    /// Domain with a subdomain per org: `<org>.<domain>`.
    pub(crate) domain: Option<String>,
    /// Serve `/metrics` without a token. By default it needs a token with the scope `admin`, except on a loopback address that is not
    /// published.
    pub(crate) public_metrics: bool,
    /// Allow `/api/v1/tools` to deploy commands. Administrators can then run programs on this machine.
    pub(crate) allow_commands_over_api: bool,
    /// Allow private addresses for agents that are registered over the network. By default only agents registered on this machine may
    /// have one, and all agents with `--allow-no-auth`, which accepts no remote clients.
    pub(crate) allow_private_over_api: bool,
    /// Grace period after SIGTERM in which requests are still served, while `/readyz` answers 503 and connections are closed after each
    /// response, in seconds: a load balancer needs it to notice. Default: 5; 0 on a loopback address without PostgreSQL, TLS,
    /// `public_url`, `domain`, `trust_proxy` and `allowed_hosts`. Ctrl-C skips it.
    pub(crate) shutdown_grace_secs: Option<u64>,
    /// Maximum time for calls in progress at shutdown, in seconds. Longer calls are detached: their callers receive the task id.
    pub(crate) drain_secs: u64,
}

// === impl ServerConfig ===

impl ServerConfig {
    /// All host names of this server beside loopback names.
    pub(crate) fn hosts(&self) -> Vec<String> {
        let public = self.public_url.as_deref().and_then(|url| url.parse::<Url>().ok());
        let public = public.and_then(|url| url.host_str().map(str::to_owned));
        let below = self.domain.iter().flat_map(|domain| [domain.clone(), format!("*.{domain}")]);
        self.allowed_hosts.iter().cloned().chain(public).chain(below).collect()
    }

    /// Name of this server among the nodes.
    pub(crate) fn node_name(&self, address: SocketAddr) -> Result<Arc<str>, String> {
        match &self.node_name {
            Some(name) if is_node_name(name) => Ok(Arc::from(name.as_str())),
            Some(name) => Err(format!(
                "[server] node_name = \"{name}\" cannot be a name; use at most {MAX_NODE_NAME_BYTES} letters, digits, `-`, `_` and `.`, a letter or digit first"
            )),
            None => Ok(default_node_name(&machine_name(), address.port()).into()),
        }
    }

    /// Number of worker threads.
    pub(crate) fn threads(&self) -> NonZero<usize> {
        self.threads.or_else(|| thread::available_parallelism().ok()).unwrap_or(NonZero::<usize>::MIN)
    }

    /// True if a setting publishes this server beyond its address.
    pub(crate) const fn is_published(&self) -> bool {
        self.public_url.is_some()
            || self.domain.is_some()
            || self.trust_proxy
            || self.tls.is_some()
            || !self.allowed_hosts.is_empty()
    }

    /// Grace period after SIGTERM.
    pub(crate) fn grace(&self, address: SocketAddr, is_store_shared: bool) -> Duration {
        let is_alone = address.ip().is_loopback() && !self.is_published() && !is_store_shared;
        let seconds = self.shutdown_grace_secs.unwrap_or(if is_alone { 0 } else { DEFAULT_GRACE_SECS });
        Duration::from_secs(seconds)
    }

    /// Setting that publishes this server, which then requires tokens, with a hint.
    pub(crate) fn public_setting(&self) -> Option<String> {
        let setting = if self.public_url.is_some() {
            "public_url"
        } else if self.domain.is_some() {
            "domain"
        } else if self.trust_proxy {
            "trust_proxy"
        } else {
            return None;
        };
        Some(format!(
            "--allow-no-auth accepts all requests, and [server] {setting} publishes this server; omit \
             --allow-no-auth and create tokens for callers with `rialto tokens create NAME`, or remove {setting}"
        ))
    }

    /// Timeouts of clients.
    pub(crate) const fn deadlines(&self) -> Deadlines {
        const fn millis(value: NonZero<u64>) -> Duration {
            Duration::from_millis(value.get())
        }
        Deadlines {
            head: millis(self.header_timeout_ms),
            body: millis(self.body_timeout_ms),
            idle: millis(self.idle_timeout_ms),
            write: millis(self.write_timeout_ms),
        }
    }

    /// Maximum number of connections, for this number of file descriptors.
    pub(crate) fn connections(&self, descriptors: Option<usize>) -> ConnectionLimits {
        let most = descriptors.map_or(usize::MAX, max_connections_for);
        if most < self.max_connections {
            tracing::info!(
                "at most {most} connections instead of [server] max_connections = {}: this process may have only {} files \
                 open; raise that limit (ulimit -n)",
                self.max_connections,
                descriptors.unwrap_or_default()
            );
        }
        let per_address = match self.max_connections_per_address {
            Some(max) => PerAddress::Max(max),
            None if self.trust_proxy => PerAddress::Unlimited,
            None => PerAddress::Default,
        };
        ConnectionLimits { max: self.max_connections.min(most), per_address }
    }

    /// Public URL of this server.
    pub(crate) fn public_site(&self) -> Result<PublicUrl, String> {
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
        Ok(PublicUrl {
            external_url: public_url,
            trust_proxy: self.trust_proxy,
            domain,
            is_encrypted: self.tls.is_some(),
        })
    }
}

impl Default for ServerConfig {
    fn default() -> Self {
        let deadlines = Deadlines::default();
        let millis = |time: Duration| {
            let millis = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
            NonZero::new(millis).unwrap_or(NonZero::<u64>::MIN)
        };
        Self {
            addr: "127.0.0.1:8420".to_owned(),
            node_name: None,
            allowed_hosts: Vec::new(),
            threads: None,
            worker_threads: true,
            max_connections: ConnectionLimits::default().max,
            max_connections_per_address: None,
            header_timeout_ms: millis(deadlines.head),
            body_timeout_ms: millis(deadlines.body),
            idle_timeout_ms: millis(deadlines.idle),
            write_timeout_ms: millis(deadlines.write),
            tls: None,
            max_body_bytes: 4 * 1024 * 1024,
            public_url: None,
            trust_proxy: false,
            domain: None,
            public_metrics: false,
            allow_commands_over_api: false,
            allow_private_over_api: false,
            shutdown_grace_secs: None,
            drain_secs: 10,
        }
    }
}

/// Files with the name of the machine.
const MACHINE_NAME_FILES: [&str; 2] = ["/proc/sys/kernel/hostname", "/etc/hostname"];

/// Name of a machine without a host name.
const NAMELESS_MACHINE: &str = "node";

/// Name of this machine, if known.
fn machine_name() -> String {
    let read = MACHINE_NAME_FILES.iter().filter_map(|file| fs::read_to_string(file).ok());
    read.map(|name| name.trim().to_owned()).find(|name| !name.is_empty()).unwrap_or_default()
}

/// Default name of a node.
fn default_node_name(machine: &str, port: u16) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let port = format!("-{port}");
    let machine: String = machine.chars().map(|c| if is_word(c) { c } else { '-' }).collect();
    let machine = machine.trim_start_matches(|c: char| !c.is_ascii_alphanumeric());
    let machine = machine.get(..MAX_NODE_NAME_BYTES - port.len()).unwrap_or(machine);
    format!("{}{port}", if machine.is_empty() { NAMELESS_MACHINE } else { machine })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_without_a_name_is_named_after_its_machine_and_port() {
        for (machine, expected) in
            [("web-1", "web-1-8420"), ("büro 2", "b-ro-2-8420"), ("", "node-8420"), ("_-x", "x-8420")]
        {
            assert_eq!(default_node_name(machine, 8420), expected);
        }
        let long = default_node_name(&"m".repeat(100), 8420);
        assert!(is_node_name(&long) && long.len() == MAX_NODE_NAME_BYTES, "{long}");
    }

    #[test]
    fn a_node_name_that_cannot_stand_in_a_command_is_refused() {
        let address = "127.0.0.1:8420".parse().unwrap();
        let named = |name: &str| ServerConfig { node_name: Some(name.to_owned()), ..ServerConfig::default() };
        assert_eq!(&*named("a.1").node_name(address).unwrap(), "a.1");
        let refusal = named("a b").node_name(address).unwrap_err();
        assert!(refusal.contains("[server] node_name = \"a b\""), "{refusal}");
    }
}
