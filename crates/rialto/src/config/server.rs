//! `[server]`: where to listen, and to whom to answer.

use std::{num::NonZero, thread};

use rialto_edge::site::Site;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use url::Url;

/// The HTTP server.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Server {
    /// Where to listen.
    pub(crate) addr: String,
    /// Host names to answer to besides loopback names; `*` answers to all.
    pub(crate) allowed_hosts: Vec<String>,
    /// How many threads serve connections. Without it there is one for each processor.
    pub(crate) threads: Option<NonZero<usize>>,
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

    /// How many threads serve connections.
    pub(crate) fn threads(&self) -> NonZero<usize> {
        self.threads.or_else(|| thread::available_parallelism().ok()).unwrap_or(NonZero::<usize>::MIN)
    }

    /// Whether something outside is known to lead here.
    pub(crate) const fn is_published(&self) -> bool {
        self.public_url.is_some() || self.domain.is_some() || self.trust_proxy
    }

    /// How this server is reached from outside.
    pub(crate) fn site(&self) -> Result<Site, String> {
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
        Ok(Site { public_url, trust_proxy: self.trust_proxy, domain })
    }
}

impl Default for Server {
    fn default() -> Self {
        Self {
            addr: "127.0.0.1:8420".to_owned(),
            allowed_hosts: Vec::new(),
            threads: None,
            max_body_bytes: 4 * 1024 * 1024,
            public_url: None,
            trust_proxy: false,
            domain: None,
            public_metrics: false,
            allow_commands_over_api: false,
            allow_private_over_api: false,
            drain_secs: 10,
        }
    }
}
