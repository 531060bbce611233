//! Endpoints of an agent, in the order in which they are tried.
//!
//! A card lists interfaces in its order of preference; the first supported one is used, but gRPC only where nothing else is offered:
//! JSON keeps every digit and unknown member, protobuf does not. The other dialects follow as fallbacks, for agents that do not support
//! what their card declares.

use http::{StatusCode, Uri};
use rialto_a2a_codec::wire::Wire;
use rialto_http_client::fetch::FetchResponse;
use rialto_model::{
    agent::Agent,
    card::{Binding, Dialect, Interface},
};
use url::Url;

use crate::grpc;

/// Transport of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Carrier {
    /// JSON-RPC: every request is a POST to one URL.
    Rpc,
    /// HTTP+JSON: every operation has its own URL.
    Rest,
    /// gRPC: every operation is a method of one service.
    Grpc,
}

/// One endpoint of an agent.
#[derive(Clone, Debug)]
pub(crate) struct AgentEndpoint {
    pub(crate) carrier: Carrier,
    pub(crate) dialect: Dialect,
    pub(crate) wire: Wire,
    /// URL of JSON-RPC.
    pub(crate) uri: Uri,
    /// Base of the paths of HTTP+JSON and gRPC, without a trailing slash.
    pub(crate) base: String,
    pub(crate) tenant: Option<String>,
    /// True when the agent's credential may be sent here: only where it was given for.
    pub(crate) is_home: bool,
}

/// Endpoints to try, the preferred one first; or the reason why there is none.
pub(crate) fn routes(agent: &Agent) -> Result<Vec<AgentEndpoint>, String> {
    let mut reasons = Vec::new();
    let mut routes = Vec::new();
    for interface in offered(agent) {
        match AgentEndpoint::new(agent, &interface) {
            Ok(route) => routes.push(route),
            Err(reason) => reasons.push(reason),
        }
    }
    if routes.is_empty() {
        return Err(reasons.join("; "));
    }
    routes.sort_by_key(|route| route.carrier == Carrier::Grpc);
    prefer_rpc(&mut routes);
    if let Some(dialect) = agent.speaks {
        prefer(&mut routes, dialect);
    }
    let others: Vec<_> =
        others(routes[0].dialect).iter().filter_map(|&dialect| routes[0].speaking(dialect)).collect();
    routes.extend(others);
    Ok(routes)
}

// === impl AgentEndpoint ===

impl AgentEndpoint {
    fn new(agent: &Agent, interface: &Interface) -> Result<Self, String> {
        let carrier = match (&interface.binding, interface.dialect) {
            (Binding::JsonRpc, _) => Carrier::Rpc,
            (Binding::HttpJson, Dialect::V02 | Dialect::V03 | Dialect::V10) => Carrier::Rest,
            (Binding::Grpc, Dialect::V02 | Dialect::V03 | Dialect::V10) => Carrier::Grpc,
            (binding, dialect) => return Err(cannot_speak(binding, dialect)),
        };
        let url = match carrier {
            Carrier::Rpc | Carrier::Rest => address(&interface.url)?,
            Carrier::Grpc => address(&target(&interface.url, &agent.url))?,
        };
        let uri = url.as_str().parse().map_err(|_| odd(&interface.url))?;
        let wire = Wire::of(interface.dialect, &interface.binding)
            .ok_or_else(|| cannot_speak(&interface.binding, interface.dialect))?;
        Ok(Self {
            carrier,
            dialect: interface.dialect,
            wire,
            uri,
            base: url.as_str().trim_end_matches('/').to_owned(),
            tenant: interface.tenant.clone(),
            is_home: may_see(&agent.url, &url, consented(agent)),
        })
    }

    /// The same URL with another dialect; none when the transport does not support that dialect.
    fn speaking(&self, dialect: Dialect) -> Option<Self> {
        let binding = match self.carrier {
            Carrier::Rpc => Binding::JsonRpc,
            Carrier::Rest if dialect == Dialect::V01 => return None,
            Carrier::Rest => Binding::HttpJson,
            Carrier::Grpc => Binding::Grpc,
        };
        let wire = Wire::of(dialect, &binding)?;
        Some(Self { dialect, wire, ..self.clone() })
    }

    /// HTTP status of the exchange, as far as a response's headers tell.
    pub(crate) fn status(&self, answer: &FetchResponse) -> StatusCode {
        match self.carrier {
            Carrier::Rpc | Carrier::Rest => answer.status,
            Carrier::Grpc => grpc::http_status(answer),
        }
    }
}

/// Interfaces of the card; for a card without any, the base URL in the oldest common form.
fn offered(agent: &Agent) -> Vec<Interface> {
    if !agent.card.interfaces.is_empty() {
        return agent.card.interfaces.clone();
    }
    vec![Interface { url: agent.url.clone(), binding: Binding::JsonRpc, dialect: Dialect::V02, tenant: None }]
}

/// SDKs disagree on the format of 0.3's file bytes over HTTP+JSON, so JSON-RPC is preferred where both are offered.
fn prefer_rpc(routes: &mut [AgentEndpoint]) {
    let is_old = |route: &AgentEndpoint| matches!(route.dialect, Dialect::V02 | Dialect::V03);
    if routes[0].carrier == Carrier::Rest && is_old(&routes[0]) {
        let rpc = routes.iter().position(|route| is_old(route) && route.carrier == Carrier::Rpc);
        routes[..=rpc.unwrap_or(0)].rotate_right(1);
    }
}

fn prefer(routes: &mut Vec<AgentEndpoint>, dialect: Dialect) {
    if let Some(at) = routes.iter().position(|route| route.dialect == dialect) {
        routes[..=at].rotate_right(1);
    } else if let Some(route) = routes[0].speaking(dialect) {
        routes.insert(0, route);
    }
}

/// Fallback dialects, the likeliest first.
const fn others(dialect: Dialect) -> &'static [Dialect] {
    match dialect {
        Dialect::V10 => &[Dialect::V03, Dialect::V01],
        Dialect::V03 => &[Dialect::V10, Dialect::V01],
        Dialect::V02 => &[Dialect::V01, Dialect::V10],
        Dialect::V01 => &[Dialect::V03, Dialect::V10],
    }
}

/// URL of a gRPC target. Cards often name only `host:port`, without a scheme: it is then as private as the URL of the card.
fn target(text: &str, base: &str) -> String {
    let is_private = base.starts_with("https://");
    match text.split_once("://") {
        None => format!("{}://{text}", if is_private { "https" } else { "http" }),
        Some(("grpc", rest)) => format!("http://{rest}"),
        Some(("grpcs", rest)) => format!("https://{rest}"),
        Some(_) => text.to_owned(),
    }
}

fn address(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|_| odd(text))?;
    if !matches!(url.scheme(), "http" | "https") || !url.username().is_empty() || url.password().is_some() {
        return Err(odd(text));
    }
    Ok(url)
}

fn odd(text: &str) -> String {
    format!(
        "the card's address \"{text}\" is not an absolute http or https URL; its owner must correct the card"
    )
}

fn cannot_speak(binding: &Binding, dialect: Dialect) -> String {
    let name = match binding {
        Binding::JsonRpc => "JSONRPC",
        Binding::HttpJson => "HTTP+JSON",
        Binding::Grpc => "GRPC",
        Binding::Other(name) => name,
    };
    format!("the card offers {name} in A2A {dialect}, which is not spoken here")
}

/// True when `url` may receive the credential of the agent at `base`: on the same host and port, or one of `others`, and no less private
/// than the agent itself.
pub(crate) fn may_see(base: &str, url: &Url, others: &[String]) -> bool {
    let Ok(base) = Url::parse(base) else { return false };
    let stays_encrypted = base.scheme() == url.scheme() || url.scheme() == "https";
    // The default port of http leads to the default one of https.
    let is_same_port = base.port_or_known_default() == url.port_or_known_default()
        || (base.port().is_none() && url.port().is_none());
    let is_home = host(&base) == host(url) && is_same_port;
    stays_encrypted && (is_home || others.iter().any(|other| is_named(other, url)))
}

/// True when the operator named this host: `host` means its default port, `host:port` that one.
fn is_named(name: &str, url: &Url) -> bool {
    let Some(host) = url.host_str() else { return false };
    match name.strip_prefix(host) {
        Some("") => url.port().is_none(),
        Some(rest) => {
            let port = rest.strip_prefix(':').and_then(|port| port.parse().ok());
            port.is_some() && port == url.port_or_known_default()
        }
        None => false,
    }
}

fn consented(agent: &Agent) -> &[String] {
    agent.credential.as_ref().map_or(&[], |credential| &credential.hosts)
}

/// Host, with one name for all spellings of this machine.
fn host(url: &Url) -> Option<&str> {
    match url.host_str() {
        Some("127.0.0.1" | "[::1]") => Some("localhost"),
        host => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn home(base: &str, url: &str) -> bool {
        may_see(base, &Url::parse(url).unwrap(), &[])
    }

    #[test]
    fn a_grpc_target_without_a_scheme_is_as_private_as_its_card() {
        for (text, base, url) in [
            ("a.example:50051", "https://a.example", "https://a.example:50051"),
            ("a.example:50051", "http://a.example", "http://a.example:50051"),
            ("[::1]:50051", "http://a.example", "http://[::1]:50051"),
            ("http://a.example:50051", "https://a.example", "http://a.example:50051"),
            ("grpcs://a.example", "http://a.example", "https://a.example"),
            ("grpc://a.example:1", "https://a.example", "http://a.example:1"),
        ] {
            assert_eq!(target(text, base), url);
            assert!(address(url).is_ok());
        }
    }

    #[test]
    fn a_token_belongs_to_the_host_and_port_it_was_given_for() {
        assert!(home("https://a.example", "https://a.example:443/rpc"));
        assert!(home("http://localhost:1", "http://127.0.0.1:1"));
        assert!(home("http://a.example", "https://a.example"));
        assert!(home("https://A.example", "https://a.EXAMPLE/rpc"));
        assert!(!home("https://a.example", "https://a.example:8443/rpc"));
        assert!(!home("http://localhost:1", "http://127.0.0.1:2"));
        assert!(!home("https://a.example", "https://a.example@evil.example"));
        assert!(!home("https://a.example", "https://a.example.:443"));
        assert!(!home("https://a.example", "https://b.example"));
        assert!(!home("https://a.example", "https://a.example.evil"));
        assert!(!home("https://a.example", "http://a.example"));
    }

    #[test]
    fn a_token_may_go_where_a_person_said_so_and_stays_encrypted() {
        let seen = |url: &str, other: &str| {
            may_see("https://a.example", &Url::parse(url).unwrap(), &[other.to_owned()])
        };
        assert!(seen("https://b.example/rpc", "b.example"));
        assert!(seen("https://b.example:8443/rpc", "b.example:8443"));
        assert!(seen("https://b.example/rpc", "b.example:443"));
        assert!(!seen("https://b.example:8443/rpc", "b.example"));
        assert!(!seen("https://b.example.evil/rpc", "b.example"));
        assert!(!seen("https://evil.b.example/rpc", "b.example"));
        assert!(!seen("http://b.example/rpc", "b.example"));
    }

    #[test]
    fn each_dialect_has_the_others_to_fall_back_on() {
        for dialect in [Dialect::V01, Dialect::V02, Dialect::V03, Dialect::V10] {
            assert!(others(dialect).iter().all(|other| *other != dialect), "{dialect}");
        }
    }
}
