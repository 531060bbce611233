//! Check of Host and Origin against DNS rebinding and cross-site requests.
//!
//! A web page in a browser can send requests to `localhost`, and with a name that it points there a moment later even read the responses.
//! It cannot choose the `Host` and `Origin` headers, so a request that names another server is rejected. The size of the body is limited
//! here too, before anything reads it.

use std::mem;

use axum::body::{Body, HttpBody};
use http::{HeaderMap, StatusCode, Uri, header};
use http_body_util::Limited;

use crate::rejection::Rejection;

/// Accepted host names, and the maximum body size.
#[derive(Clone, Debug)]
pub struct HostCheck {
    hosts: HostAllowList,
    max_body_bytes: usize,
    /// Origins that may send requests besides our own, as configured; only where no token is needed.
    pages: Option<Vec<String>>,
    configured: Vec<String>,
}

#[derive(Clone, Debug)]
enum HostAllowList {
    Any,
    /// Few names, compared one by one, case-insensitively.
    Listed(Vec<String>),
}

// === impl HostCheck ===

impl HostCheck {
    /// Accepts loopback names and `hosts` (without port; `*` accepts every name, `*.example.com` every name directly below).
    pub fn new(hosts: &[String], max_body_bytes: usize) -> Self {
        let configured = hosts.to_vec();
        let hosts = if hosts.iter().any(|host| host == "*") {
            HostAllowList::Any
        } else {
            let local = ["localhost", "127.0.0.1", "[::1]"].into_iter();
            HostAllowList::Listed(
                local.chain(hosts.iter().map(|host| host_name(host))).map(str::to_owned).collect(),
            )
        };
        Self { hosts, max_body_bytes, pages: None, configured }
    }

    /// Compares ports of origins too, for a server that needs no token: any program on this machine may serve a page on another port, and
    /// only its origin tells it apart.
    #[must_use]
    pub(crate) fn with_port_check(self) -> Self {
        Self { pages: Some(self.configured.clone()), ..self }
    }

    /// True if pages of `origin` may send requests to `host`.
    fn allows_origin(&self, origin: &str, host: &str) -> bool {
        let Some((scheme, authority)) = origin.split_once("://") else { return false };
        if !self.allows_host(authority) {
            return false;
        }
        let Some(pages) = &self.pages else { return true };
        let default_port = if scheme.eq_ignore_ascii_case("https") { "443" } else { "80" };
        let port = |authority| port_in(authority).unwrap_or(default_port);
        let is_page = |page: &String| match port_in(page) {
            Some(known) => {
                known == port(authority) && host_name(page).eq_ignore_ascii_case(host_name(authority))
            }
            None => matches_host(page, host_name(authority)),
        };
        port(authority) == port(host) || pages.iter().any(is_page)
    }

    fn allows_host(&self, authority: &str) -> bool {
        match &self.hosts {
            HostAllowList::Any => true,
            HostAllowList::Listed(hosts) => {
                let name = host_name(authority);
                hosts.iter().any(|host| matches_host(host, name))
            }
        }
    }

    pub(crate) fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Rejection> {
        let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or_default());
        let host = request_host(uri, headers);
        if !host.is_some_and(|host| self.allows_host(host)) {
            let message = "this server does not answer to that Host; add the name to `allowed_hosts`";
            return Err(Rejection::new(StatusCode::MISDIRECTED_REQUEST, "host-not-allowed", message));
        }
        if let Some(origin) = text(header::ORIGIN)
            && !self.allows_origin(origin, host.unwrap_or_default())
        {
            let message = if self.pages.is_some() {
                "pages of that Origin may not call this server, which asks for no token; add its host and port to \
                 `allowed_hosts`, like \"localhost:3000\""
            } else {
                "pages of that Origin may not call this server; add its host to `allowed_hosts`"
            };
            return Err(Rejection::new(StatusCode::FORBIDDEN, "origin-not-allowed", message));
        }
        let length = text(header::CONTENT_LENGTH).and_then(|length| length.parse::<usize>().ok());
        if length.is_some_and(|length| length > self.max_body_bytes) {
            let message = format!("the body is larger than the limit of {} bytes", self.max_body_bytes);
            return Err(Rejection::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", message));
        }
        Ok(())
    }

    /// Limits `body`: it fails where it grows too large. One of known length needs no limit: it was announced, and the connection delivers
    /// no more.
    pub(crate) fn limit_body(&self, body: &mut Body) {
        let limit = self.max_body_bytes;
        let upper = body.size_hint().upper().and_then(|upper| usize::try_from(upper).ok());
        if upper.is_none_or(|upper| upper > limit) {
            *body = Body::new(Limited::new(mem::take(body), limit));
        }
    }
}

/// Host that a request names; HTTP/2 has it in the address.
pub(crate) fn request_host<'a>(uri: &'a Uri, headers: &'a HeaderMap) -> Option<&'a str> {
    let named = || headers.get(header::HOST).map(|value| value.to_str().unwrap_or_default());
    uri.authority().map(http::uri::Authority::as_str).or_else(named)
}

/// True if `host` matches `name`: itself, any name, or any name directly below.
fn matches_host(host: &str, name: &str) -> bool {
    let parent = || name.split_once('.').map(|(_, parent)| parent);
    match host.strip_prefix("*.") {
        None => host == "*" || host.eq_ignore_ascii_case(name),
        Some(below) => parent().is_some_and(|parent| parent.eq_ignore_ascii_case(below)),
    }
}

/// Port of `name:port`, if there is one.
fn port_in(authority: &str) -> Option<&str> {
    authority.rsplit_once(':').map(|(_, port)| port).filter(|port| !port.contains(']'))
}

/// Name of `name:port`.
pub(crate) fn host_name(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') => name,
        _ => authority,
    }
}
