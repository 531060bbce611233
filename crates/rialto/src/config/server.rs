//! `[server]`: where to listen, and to whom to answer.

use std::{fs, net::SocketAddr, num::NonZero, sync::Arc, thread, time::Duration};

use rialto_edge::{
    listener::{ConnectionLimits, Deadlines, PerAddress, TlsConfig, max_connections_for},
    public_url::PublicUrl,
};
use rialto_model::node::{MAX_NODE_NAME_BYTES, is_node_name};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use url::Url;

/// Seconds in which a load balancer that checks every second or two notices that this server is not ready.
const DEFAULT_GRACE_SECS: u64 = 5;

/// The HTTP server.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Server {
    /// Where to listen.
    pub(crate) addr: String,
    /// Name of this server among the nodes that share the store: at most 64 letters, digits, `-`, `_` and `.`. Without it, that is the name of
    /// the machine and the port, like `web-1-8420`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) node_name: Option<String>,
    /// Host names to answer to besides loopback names; `*` answers to all.
    pub(crate) allowed_hosts: Vec<String>,
    /// How many threads serve connections. Without it there is one for each processor.
    pub(crate) threads: Option<NonZero<usize>>,
    /// Serve each connection on one thread from its beginning to its end, together with the connections to agents that its calls use
    /// (worker threads). Without it, all threads share all work, which costs more CPU time per call.
    pub(crate) worker_threads: bool,
    /// How many connections may be open at once. The limit of open files lowers it, so that some are left for the store.
    pub(crate) max_connections: usize,
    /// How many of them may come from one address, loopback addresses included. Without it, that is 1000; loopback addresses are then not
    /// counted, and with `trust_proxy` none are.
    pub(crate) max_connections_per_address: Option<usize>,
    /// How long a client may take to send the head of a request, and for the handshake of TLS, in milliseconds.
    pub(crate) header_timeout_ms: NonZero<u64>,
    /// How long a client may take to send the body of a request, in milliseconds.
    pub(crate) body_timeout_ms: NonZero<u64>,
    /// How long a connection may stay open without a request, in milliseconds.
    pub(crate) idle_timeout_ms: NonZero<u64>,
    /// How long a client may take none of a response that is sent to it, in milliseconds.
    pub(crate) write_timeout_ms: NonZero<u64>,
    /// TLS. Without it, what comes in is not encrypted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tls: Option<TlsConfig>,
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
    /// How long requests are still served after SIGTERM, while `/readyz` answers 503 and connections are closed after each response, in
    /// seconds: a load balancer needs that long to notice. Without it, 5; 0 where nothing outside is known to lead here, which is a
    /// loopback address without PostgreSQL, TLS, `public_url`, `domain`, `trust_proxy` and `allowed_hosts`. Ctrl-C waits for nothing.
    pub(crate) shutdown_grace_secs: Option<u64>,
    /// How long calls under way may take to end when the server is told to stop, in seconds. Those that take longer are
    /// handed back: their callers get the task's id.
    pub(crate) drain_secs: u64,
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

    /// How many threads serve connections.
    pub(crate) fn threads(&self) -> NonZero<usize> {
        self.threads.or_else(|| thread::available_parallelism().ok()).unwrap_or(NonZero::<usize>::MIN)
    }

    /// Whether something outside is known to lead here.
    pub(crate) const fn is_published(&self) -> bool {
        self.public_url.is_some()
            || self.domain.is_some()
            || self.trust_proxy
            || self.tls.is_some()
            || !self.allowed_hosts.is_empty()
    }

    /// How long requests are still served after SIGTERM.
    pub(crate) fn grace(&self, address: SocketAddr, is_store_shared: bool) -> Duration {
        let is_alone = address.ip().is_loopback() && !self.is_published() && !is_store_shared;
        let seconds = self.shutdown_grace_secs.unwrap_or(if is_alone { 0 } else { DEFAULT_GRACE_SECS });
        Duration::from_secs(seconds)
    }

    /// The setting that says that others reach this server, which needs no token then, and how to go on.
    pub(crate) fn why_not_open(&self) -> Option<String> {
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
            "--allow-no-auth lets everybody in, and [server] {setting} says that others reach this server; leave out \
             --allow-no-auth and give callers tokens with `rialto tokens create NAME`, or remove {setting}"
        ))
    }

    /// How long clients may take.
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

    /// How many connections may be open, of the descriptors that this process may have.
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

    /// How this server is reached from outside.
    pub(crate) fn site(&self) -> Result<PublicUrl, String> {
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

impl Default for Server {
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

/// Files that hold the name of the machine.
const MACHINE_NAME_FILES: [&str; 2] = ["/proc/sys/kernel/hostname", "/etc/hostname"];

/// Name of a machine that does not tell its own.
const NAMELESS_MACHINE: &str = "node";

/// Name of this machine, as far as it is known.
fn machine_name() -> String {
    let read = MACHINE_NAME_FILES.iter().filter_map(|file| fs::read_to_string(file).ok());
    read.map(|name| name.trim().to_owned()).find(|name| !name.is_empty()).unwrap_or_default()
}

/// Name of a server that was given none.
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
        let named = |name: &str| Server { node_name: Some(name.to_owned()), ..Server::default() };
        assert_eq!(&*named("a.1").node_name(address).unwrap(), "a.1");
        let refusal = named("a b").node_name(address).unwrap_err();
        assert!(refusal.contains("[server] node_name = \"a b\""), "{refusal}");
    }
}
