//! Was this request meant for us?
//!
//! A web page in somebody's browser can make requests to `localhost`, and with a name that it points there a moment
//! later even read the answers. It cannot choose the `Host` and `Origin` headers: a request that names anyone but us
//! is turned away. The size of what may come in is limited here too, before anybody reads it.

use std::mem;

use axum::body::{Body, HttpBody};
use http::{HeaderMap, StatusCode, Uri, header};
use http_body_util::Limited;

use crate::refusal::Refusal;

/// The names we answer to, and how much we take in.
#[derive(Clone, Debug)]
pub struct Guard {
    hosts: Hosts,
    max_body_bytes: usize,
    /// Where nobody needs a token: the pages that may call besides our own, as they were configured.
    pages: Option<Vec<String>>,
    configured: Vec<String>,
}

#[derive(Clone, Debug)]
enum Hosts {
    Any,
    /// Few enough to look at each; the case of letters makes no difference.
    These(Vec<String>),
}

// === impl Guard ===

impl Guard {
    /// Answers to loopback names and to `hosts` (without port; `*` answers to every name, `*.example.com` to every one
    /// directly below that).
    pub fn new(hosts: &[String], max_body_bytes: usize) -> Self {
        let configured = hosts.to_vec();
        let hosts = if hosts.iter().any(|host| host == "*") {
            Hosts::Any
        } else {
            let local = ["localhost", "127.0.0.1", "[::1]"].into_iter();
            Hosts::These(local.chain(hosts.iter().map(|host| name_of(host))).map(str::to_owned).collect())
        };
        Self { hosts, max_body_bytes, pages: None, configured }
    }

    /// The same, for a server that needs no token: a page of another port on this machine is a stranger, unless it is configured. Any
    /// program here may serve such a page, and nothing but its origin tells it apart.
    #[must_use]
    pub(crate) fn checking_ports(self) -> Self {
        Self { pages: Some(self.configured.clone()), ..self }
    }

    /// Whether pages of `origin` may send requests to `host`.
    fn takes_origin(&self, origin: &str, host: &str) -> bool {
        let Some((scheme, authority)) = origin.split_once("://") else { return false };
        if !self.answers_to(authority) {
            return false;
        }
        let Some(pages) = &self.pages else { return true };
        let default_port = if scheme.eq_ignore_ascii_case("https") { "443" } else { "80" };
        let port = |authority| port_of(authority).unwrap_or(default_port);
        let is_page = |page: &String| match port_of(page) {
            Some(known) => known == port(authority) && name_of(page).eq_ignore_ascii_case(name_of(authority)),
            None => fits(page, name_of(authority)),
        };
        port(authority) == port(host) || pages.iter().any(is_page)
    }

    fn answers_to(&self, authority: &str) -> bool {
        match &self.hosts {
            Hosts::Any => true,
            Hosts::These(hosts) => {
                let name = name_of(authority);
                hosts.iter().any(|host| fits(host, name))
            }
        }
    }

    pub(crate) fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Refusal> {
        let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or_default());
        let host = host_of(uri, headers);
        if !host.is_some_and(|host| self.answers_to(host)) {
            let message = "this server does not answer to that Host; add the name to `allowed_hosts`";
            return Err(Refusal::new(StatusCode::MISDIRECTED_REQUEST, "host-not-allowed", message));
        }
        if let Some(origin) = text(header::ORIGIN)
            && !self.takes_origin(origin, host.unwrap_or_default())
        {
            let message = if self.pages.is_some() {
                "pages of that Origin may not call this server, which asks for no token; add its host and port to \
                 `allowed_hosts`, like \"localhost:3000\""
            } else {
                "pages of that Origin may not call this server; add its host to `allowed_hosts`"
            };
            return Err(Refusal::new(StatusCode::FORBIDDEN, "origin-not-allowed", message));
        }
        let length = text(header::CONTENT_LENGTH).and_then(|length| length.parse::<usize>().ok());
        if length.is_some_and(|length| length > self.max_body_bytes) {
            let message = format!("the body is larger than the limit of {} bytes", self.max_body_bytes);
            return Err(Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", message));
        }
        Ok(())
    }

    /// Makes `body` end with an error where it grows too large. One whose length is known cannot: it was announced, and
    /// the connection delivers no more than that.
    pub(crate) fn limit(&self, body: &mut Body) {
        let limit = self.max_body_bytes;
        let most = body.size_hint().upper().and_then(|most| usize::try_from(most).ok());
        if most.is_none_or(|most| most > limit) {
            *body = Body::new(Limited::new(mem::take(body), limit));
        }
    }
}

/// The host a request is for, as it stands; HTTP/2 says it in the address.
pub(crate) fn host_of<'a>(uri: &'a Uri, headers: &'a HeaderMap) -> Option<&'a str> {
    let named = || headers.get(header::HOST).map(|value| value.to_str().unwrap_or_default());
    uri.authority().map(http::uri::Authority::as_str).or_else(named)
}

/// Whether `name` is one that `host` stands for: itself, any name, or any one directly below.
fn fits(host: &str, name: &str) -> bool {
    let parent = || name.split_once('.').map(|(_, parent)| parent);
    match host.strip_prefix("*.") {
        None => host == "*" || host.eq_ignore_ascii_case(name),
        Some(below) => parent().is_some_and(|parent| parent.eq_ignore_ascii_case(below)),
    }
}

/// The port in `name:port`, if there is one.
fn port_of(authority: &str) -> Option<&str> {
    authority.rsplit_once(':').map(|(_, port)| port).filter(|port| !port.contains(']'))
}

/// The name in `name:port`.
pub(crate) fn name_of(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') => name,
        _ => authority,
    }
}
