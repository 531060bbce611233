//! The one outbound HTTP client.
//!
//! Connections are pooled, but never across rules: a connection that was opened to a private address with permission is not used for a
//! request without it. A request that was never written is retried by the pool itself. Any other failure is returned, because only the
//! caller knows whether the request may be repeated.
//!
//! Connections are hyper's: each has a task of its own, and a pool for its rule and its runtime ([`runtime_pools`]). An encrypted
//! connection may negotiate HTTP/2; concurrent requests share it then. Requests that require HTTP/2, encrypted or not, have pools of their
//! own, because their connections speak it from the first byte.
//!
//! Every connection passes the egress rules ([`address`], `egress_rules`) and goes through a proxy where one is configured ([`proxy`]).
//! Users of the client ask for an `Arc<dyn Fetch>` ([`fetch`]), so that a test can answer in its place.

pub mod address;
mod config;
mod connect;
mod egress_rules;
pub mod fetch;
mod gunzip;
mod local_fault;
pub mod pem;
pub mod proxy;
mod runtime_pools;
mod tls;
pub mod yield_once;

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_util::{
    client::legacy,
    rt::{TokioExecutor, TokioTimer},
};
use tokio::time::{Instant, timeout};
use url::Url;

use self::runtime_pools::RuntimePools;
use crate::{
    address::Reach,
    connect::{ConnectError, Connector, ConnectorShared, host_and_port, needs_login, system_resolver},
    egress_rules::EgressRules,
    fetch::{Fetch, FetchBody, FetchDeadline, FetchError, FetchRequest, FetchResponse, remaining_time},
    gunzip::Gunzip,
    local_fault::LocalFaultLog,
    proxy::ProxyRules,
    tls::ClientTls,
    yield_once::yield_once,
};

pub use self::config::{ClientIdentity, Config, ProxyAddress};
pub use crate::connect::DnsResolver;

/// Maximum number of redirects that a GET follows.
const MAX_REDIRECTS: usize = 3;

/// Maximum number of unused connections kept for each server by a runtime.
const MAX_IDLE_CONNECTIONS: usize = 128;

/// Environment of the client: proxies and DNS.
#[derive(Default)]
pub struct ClientEnv {
    /// Proxies used when the configuration names none.
    pub proxies: ProxyRules,
    /// Resolver of host names; the system's if there is none.
    pub resolver: Option<DnsResolver>,
}

/// Outbound HTTP client. Clones share its connections.
#[derive(Clone)]
pub struct HttpClient(Arc<ReachPools>);

struct ReachPools {
    public: ReachPool,
    private: ReachPool,
    max_response_bytes: usize,
}

/// Connection pools of one [`Reach`].
struct ReachPool {
    connector: Connector,
    /// Pools that speak HTTP/1.1, or HTTP/2 where an encrypted server chooses it.
    negotiated: RuntimePools,
    /// Pools that speak HTTP/2 from the first byte.
    http2: RuntimePools,
}

type Message = http::Request<Full<Bytes>>;

// === impl HttpClient ===

impl HttpClient {
    /// Creates a client without connections, which uses a proxy only if the configuration names one. Nothing is opened or read before the
    /// first request.
    pub fn new(config: &Config) -> Self {
        Self::with_env(config, ClientEnv::default())
    }

    /// Creates a client with proxies and resolver of its own.
    pub fn with_env(config: &Config, env: ClientEnv) -> Self {
        let shared = Arc::new(ConnectorShared {
            rules: EgressRules::new(config),
            tls: ClientTls::new(config),
            proxies: env.proxies.or_configured(config.proxy.as_ref().map(ProxyAddress::expose)),
            resolver: env.resolver.unwrap_or_else(system_resolver),
            connect_timeout: Duration::from_millis(config.connect_timeout_ms),
            local_faults: LocalFaultLog::default(),
        });
        let idle_timeout = Duration::from_millis(config.keep_idle_ms);
        let pool = |reach| ReachPool::new(Connector::new(reach, Arc::clone(&shared)), idle_timeout);
        Self(Arc::new(ReachPools {
            public: pool(Reach::Public),
            private: pool(Reach::Private),
            max_response_bytes: config.max_response_bytes,
        }))
    }
}

impl Fetch for HttpClient {
    fn fetch(&self, request: FetchRequest) -> BoxFuture<'static, Result<FetchResponse, FetchError>> {
        let pools = Arc::clone(&self.0);
        Box::pin(async move {
            let deadline = request.total.map(|total| FetchDeadline { at: Instant::now() + total, total });
            if request.method == Method::GET {
                pools.follow(request, deadline).await
            } else {
                pools.send_once(request, deadline).await
            }
        })
    }
}

// === impl ReachPools ===

impl ReachPools {
    async fn follow(
        &self,
        mut request: FetchRequest,
        deadline: Option<FetchDeadline>,
    ) -> Result<FetchResponse, FetchError> {
        for _ in 0..=MAX_REDIRECTS {
            let answer = self.send_once(request.clone(), deadline).await?;
            let Some(next) = redirect_target(&request.uri, &answer)? else { return Ok(answer) };
            if origin(&next) != origin(&request.uri) {
                remove_secrets(&mut request.headers);
            }
            request.uri = next;
        }
        Err(FetchError::Broken(format!("sent on to another address more than {MAX_REDIRECTS} times")))
    }

    async fn send_once(
        &self,
        request: FetchRequest,
        deadline: Option<FetchDeadline>,
    ) -> Result<FetchResponse, FetchError> {
        check_uri(&request.uri)?;
        let (wait, exceeded) = remaining_time(request.patience, deadline);
        let pool = match request.reach {
            Reach::Public => &self.public,
            Reach::Private => &self.private,
        };
        let mut message = http::Request::new(Full::new(request.body));
        *message.method_mut() = request.method;
        *message.headers_mut() = request.headers;
        // gRPC compresses messages, not bodies.
        let asks_gzip = !request.http2 && !message.headers().contains_key(header::ACCEPT_ENCODING);
        if asks_gzip {
            message.headers_mut().insert(header::ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
        }
        let answer = timeout(wait, pool.send(message, request.uri, request.http2)).await;
        let (mut head, incoming) = answer.unwrap_or(Err(FetchError::Timeout(exceeded)))?.into_parts();
        let limit = request.limit.unwrap_or(self.max_response_bytes);
        let mut body = FetchBody::incoming(incoming, request.patience, deadline, limit);
        if asks_gzip && Gunzip::take_encoding(&mut head.headers) {
            body = body.gunzipped();
        }
        Ok(FetchResponse { status: head.status, headers: head.headers, body })
    }
}

// === impl ReachPool ===

impl ReachPool {
    fn new(connector: Connector, idle_timeout: Duration) -> Self {
        let mut builder = legacy::Client::builder(TokioExecutor::new());
        let max_idle = if idle_timeout.is_zero() { 0 } else { MAX_IDLE_CONNECTIONS };
        builder
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(idle_timeout)
            .pool_max_idle_per_host(max_idle);
        let negotiated = RuntimePools::new(builder.clone(), connector.clone());
        let http2 = RuntimePools::new(builder.http2_only(true).clone(), connector.clone().tunneling());
        Self { connector, negotiated, http2 }
    }

    async fn send(
        &self,
        mut message: Message,
        to: Uri,
        http2: bool,
    ) -> Result<http::Response<Incoming>, FetchError> {
        yield_once().await;
        let proxy = if http2 { None } else { self.connector.forwarding_proxy(&to)? };
        if let Some(login) = proxy.as_ref().and_then(|proxy| proxy.login.clone()) {
            message.headers_mut().insert(header::PROXY_AUTHORIZATION, login);
        }
        *message.uri_mut() = to.clone();
        let runtime_pools = if http2 { &self.http2 } else { &self.negotiated };
        let answer =
            runtime_pools.current().request(message).await.map_err(|error| describe_error(&error, &to))?;
        if proxy.is_some() && answer.status() == StatusCode::PROXY_AUTHENTICATION_REQUIRED {
            return Err(FetchError::NotSent(needs_login("the proxy")));
        }
        Ok(answer)
    }
}

/// Removes logins and every other header that is marked as a secret, before a redirect to another origin.
fn remove_secrets(headers: &mut HeaderMap) {
    let usual = [header::AUTHORIZATION, header::COOKIE, header::PROXY_AUTHORIZATION];
    let marked = headers.iter().filter(|(_, value)| value.is_sensitive()).map(|(name, _)| name.clone());
    for name in marked.chain(usual).collect::<Vec<_>>() {
        headers.remove(name);
    }
}

fn check_uri(uri: &Uri) -> Result<(), FetchError> {
    let refuse = |why: &str| Err(FetchError::Forbidden(why.to_owned()));
    if !matches!(uri.scheme_str(), Some("http" | "https")) {
        return refuse("only http and https addresses can be called");
    }
    if uri.authority().is_none_or(|authority| authority.as_str().contains('@')) {
        return refuse("the address must name a host, and no user or password");
    }
    Ok(())
}

/// Target of a redirect response.
fn redirect_target(from: &Uri, answer: &FetchResponse) -> Result<Option<Uri>, FetchError> {
    use StatusCode as S;
    if ![S::MOVED_PERMANENTLY, S::FOUND, S::SEE_OTHER, S::TEMPORARY_REDIRECT, S::PERMANENT_REDIRECT]
        .contains(&answer.status)
    {
        return Ok(None);
    }
    let Some(target) = answer.headers.get(header::LOCATION).and_then(|value| value.to_str().ok()) else {
        return Ok(None);
    };
    let next = Url::parse(&from.to_string()).and_then(|base| base.join(target)).ok();
    let Some(next) = next.and_then(|mut url| {
        url.set_fragment(None);
        url.as_str().parse::<Uri>().ok()
    }) else {
        return Err(FetchError::Forbidden("sent on to an address that cannot be called".into()));
    };
    if from.scheme_str() == Some("https") && next.scheme_str() == Some("http") {
        return Err(FetchError::Forbidden("sent on from https to http, which gives up encryption".into()));
    }
    Ok(Some(next))
}

fn origin(uri: &Uri) -> (Option<&str>, String) {
    (uri.scheme_str(), host_and_port(uri).to_ascii_lowercase())
}

/// True if a server reports that it has not processed the request: it refused the stream, or it is closing the connection and named the
/// last stream that it processes (RFC 9113, 8.7).
fn is_refused_stream(error: &h2::Error) -> bool {
    let is_closing = error.is_go_away() && error.is_remote() && error.reason() == Some(h2::Reason::NO_ERROR);
    is_closing || error.is_reset() && error.is_remote() && error.reason() == Some(h2::Reason::REFUSED_STREAM)
}

fn describe_error(error: &legacy::Error, uri: &Uri) -> FetchError {
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        if let Some(ConnectError(known)) = inner.downcast_ref() {
            return known.clone();
        }
        if inner.downcast_ref().is_some_and(is_refused_stream) {
            return FetchError::NotSent(format!(
                "{} refused the request before it looked at it",
                host_and_port(uri)
            ));
        }
        if inner.downcast_ref().is_some_and(hyper::Error::is_canceled) {
            return closed_before_sending(uri);
        }
        cause = inner.source();
    }
    if error.is_connect() {
        return FetchError::NotSent(format!("no connection to {}", host_and_port(uri)));
    }
    // An error after a request was given to a connection names the connection.
    if error.connect_info().is_none() {
        return closed_before_sending(uri);
    }
    FetchError::Broken(format!("{} hung up before it answered", host_and_port(uri)))
}

/// The error for a connection that ended while it still had the whole request to send.
fn closed_before_sending(uri: &Uri) -> FetchError {
    FetchError::NotSent(format!("{} closed the connection before the request was sent", host_and_port(uri)))
}
