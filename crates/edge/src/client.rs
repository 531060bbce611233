//! The one HTTP client that leaves the house.
//!
//! Connections are kept and shared, but never across rules: what was opened to a private address with permission is
//! not found by a request without it. A request that was never written is tried again by the pool itself; anything
//! else is reported, because only the caller knows whether it may happen twice.
//!
//! Connections are hyper's: each has a task of its own, and a pool for its rule and its runtime ([`runtime_pools`]). One that is encrypted may turn out to be
//! HTTP/2 and is shared by requests at the same time then. Requests that want HTTP/2 whatever the server says, encrypted or
//! not, have a pool of their own, because their connections speak it unasked.

mod config;
mod runtime_pools;

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
    connect::{Connector, House, NoConnection, place, system_resolver, wants_login},
    fetch::{Body, Deadline, Fetch, FetchError, Request, Response, wait_for},
    gunzip::Gunzip,
    lanes::after_the_others,
    local_fault::LocalFaultLog,
    proxy::Proxies,
    rules::Rules,
    tls::Tls,
};

pub use self::config::{Config, Identity, ProxyAddress};
pub use crate::connect::Resolver;

/// How often a GET is sent elsewhere before we give up.
const MAX_REDIRECTS: usize = 3;

/// Maximum number of unused connections kept for each server by a runtime.
const MAX_IDLE_CONNECTIONS: usize = 128;

/// What the client finds around itself.
#[derive(Default)]
pub struct Surroundings {
    /// The proxies to go through when the configuration names none.
    pub proxies: Proxies,
    /// Finds the addresses of names; none asks the system.
    pub resolver: Option<Resolver>,
}

/// The client. Cloning shares its connections.
#[derive(Clone)]
pub struct Client(Arc<Ways>);

struct Ways {
    public: Way,
    private: Way,
    max_response_bytes: usize,
}

/// The connections that one rule allows.
struct Way {
    connector: Connector,
    /// Speak HTTP/1.1, or HTTP/2 where an encrypted server chooses it.
    negotiated: RuntimePools,
    /// Speak HTTP/2 from the first byte on.
    http2: RuntimePools,
}

type Message = http::Request<Full<Bytes>>;

// === impl Client ===

impl Client {
    /// A client without connections, which goes through a proxy only if the configuration says so. Nothing is opened or
    /// read before it is needed.
    pub fn new(config: &Config) -> Self {
        Self::within(config, Surroundings::default())
    }

    /// The same, with what is around it.
    pub fn within(config: &Config, around: Surroundings) -> Self {
        let house = Arc::new(House {
            rules: Rules::new(config),
            tls: Tls::new(config),
            proxies: around.proxies.or_configured(config.proxy.as_ref().map(ProxyAddress::expose)),
            resolver: around.resolver.unwrap_or_else(system_resolver),
            patience: Duration::from_millis(config.connect_timeout_ms),
            local_faults: LocalFaultLog::default(),
        });
        let keep = Duration::from_millis(config.keep_idle_ms);
        let way = |reach| Way::new(Connector::new(reach, Arc::clone(&house)), keep);
        Self(Arc::new(Ways {
            public: way(Reach::Public),
            private: way(Reach::Private),
            max_response_bytes: config.max_response_bytes,
        }))
    }
}

impl Fetch for Client {
    fn fetch(&self, request: Request) -> BoxFuture<'static, Result<Response, FetchError>> {
        let ways = Arc::clone(&self.0);
        Box::pin(async move {
            let deadline = request.total.map(|total| Deadline { at: Instant::now() + total, total });
            if request.method == Method::GET {
                ways.follow(request, deadline).await
            } else {
                ways.once(request, deadline).await
            }
        })
    }
}

// === impl Ways ===

impl Ways {
    async fn follow(&self, mut request: Request, deadline: Option<Deadline>) -> Result<Response, FetchError> {
        for _ in 0..=MAX_REDIRECTS {
            let answer = self.once(request.clone(), deadline).await?;
            let Some(next) = redirect(&request.uri, &answer)? else { return Ok(answer) };
            if origin(&next) != origin(&request.uri) {
                forget_secrets(&mut request.headers);
            }
            request.uri = next;
        }
        Err(FetchError::Broken(format!("sent on to another address more than {MAX_REDIRECTS} times")))
    }

    async fn once(&self, request: Request, deadline: Option<Deadline>) -> Result<Response, FetchError> {
        check(&request.uri)?;
        let (wait, blame) = wait_for(request.patience, deadline);
        let way = match request.reach {
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
        let answer = timeout(wait, way.send(message, request.uri, request.http2)).await;
        let (mut head, incoming) = answer.unwrap_or(Err(FetchError::Timeout(blame)))?.into_parts();
        let limit = request.limit.unwrap_or(self.max_response_bytes);
        let mut body = Body::incoming(incoming, request.patience, deadline, limit);
        if asks_gzip && Gunzip::take_encoding(&mut head.headers) {
            body = body.gunzipped();
        }
        Ok(Response { status: head.status, headers: head.headers, body })
    }
}

// === impl Way ===

impl Way {
    fn new(connector: Connector, keep: Duration) -> Self {
        let mut pool = legacy::Client::builder(TokioExecutor::new());
        let max_idle = if keep.is_zero() { 0 } else { MAX_IDLE_CONNECTIONS };
        pool.pool_timer(TokioTimer::new()).pool_idle_timeout(keep).pool_max_idle_per_host(max_idle);
        let negotiated = RuntimePools::new(pool.clone(), connector.clone());
        let http2 = RuntimePools::new(pool.http2_only(true).clone(), connector.clone().tunneling());
        Self { connector, negotiated, http2 }
    }

    async fn send(
        &self,
        mut message: Message,
        to: Uri,
        http2: bool,
    ) -> Result<http::Response<Incoming>, FetchError> {
        after_the_others().await;
        let proxy = if http2 { None } else { self.connector.forwarding_proxy(&to)? };
        if let Some(login) = proxy.as_ref().and_then(|proxy| proxy.login.clone()) {
            message.headers_mut().insert(header::PROXY_AUTHORIZATION, login);
        }
        *message.uri_mut() = to.clone();
        let pools = if http2 { &self.http2 } else { &self.negotiated };
        let answer = pools.current().request(message).await.map_err(|error| explain(&error, &to))?;
        if proxy.is_some() && answer.status() == StatusCode::PROXY_AUTHENTICATION_REQUIRED {
            return Err(FetchError::NotSent(wants_login("the proxy")));
        }
        Ok(answer)
    }
}

/// What was meant for one place is not shown at another: logins, and whatever else is marked as a secret.
fn forget_secrets(headers: &mut HeaderMap) {
    let usual = [header::AUTHORIZATION, header::COOKIE, header::PROXY_AUTHORIZATION];
    let marked = headers.iter().filter(|(_, value)| value.is_sensitive()).map(|(name, _)| name.clone());
    for name in marked.chain(usual).collect::<Vec<_>>() {
        headers.remove(name);
    }
}

fn check(uri: &Uri) -> Result<(), FetchError> {
    let refuse = |why: &str| Err(FetchError::Forbidden(why.to_owned()));
    if !matches!(uri.scheme_str(), Some("http" | "https")) {
        return refuse("only http and https addresses can be called");
    }
    if uri.authority().is_none_or(|authority| authority.as_str().contains('@')) {
        return refuse("the address must name a host, and no user or password");
    }
    Ok(())
}

/// Where an answer sends us, if it does.
fn redirect(from: &Uri, answer: &Response) -> Result<Option<Uri>, FetchError> {
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
    (uri.scheme_str(), place(uri).to_ascii_lowercase())
}

/// Whether a server says that it has not processed the request: it refused the stream, or is closing the connection and named the last
/// stream that it processes (RFC 9113, 8.7).
fn is_refused_stream(error: &h2::Error) -> bool {
    let is_closing = error.is_go_away() && error.is_remote() && error.reason() == Some(h2::Reason::NO_ERROR);
    is_closing || error.is_reset() && error.is_remote() && error.reason() == Some(h2::Reason::REFUSED_STREAM)
}

fn explain(error: &legacy::Error, uri: &Uri) -> FetchError {
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        if let Some(NoConnection(known)) = inner.downcast_ref() {
            return known.clone();
        }
        if inner.downcast_ref().is_some_and(is_refused_stream) {
            return FetchError::NotSent(format!("{} refused the request before it looked at it", place(uri)));
        }
        if inner.downcast_ref().is_some_and(hyper::Error::is_canceled) {
            return closed_before_sending(uri);
        }
        cause = inner.source();
    }
    if error.is_connect() {
        return FetchError::NotSent(format!("no connection to {}", place(uri)));
    }
    // An error after a request was given to a connection says to which.
    if error.connect_info().is_none() {
        return closed_before_sending(uri);
    }
    FetchError::Broken(format!("{} hung up before it answered", place(uri)))
}

/// The error for a connection that ended while it still had the whole request to send.
fn closed_before_sending(uri: &Uri) -> FetchError {
    FetchError::NotSent(format!("{} closed the connection before the request was sent", place(uri)))
}
