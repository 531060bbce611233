//! Outbound connections, with a check of every address before the TCP handshake.
//!
//! The check runs between name resolution and connect, on exactly the addresses that are then called. A name that resolves to another
//! address a moment later gains nothing.

mod stream;

use std::{
    error::Error,
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures::future::BoxFuture;
use http::{Uri, uri::Scheme};
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::client::legacy::connect::{HttpConnector, dns::Name, proxy::Tunnel};
use tokio::time::timeout;
use tower::Service;

pub(crate) use self::stream::OutboundStream;
use self::stream::TcpOrTls;
use crate::{
    address::Reach,
    egress_rules::{EgressRules, parse_ip_host, port_or_default},
    fetch::{FetchError, format_duration},
    local_fault::{self, LocalFaultLog},
    proxy::{ProxyRules, SelectedProxy},
    tls::ClientTls,
};

/// Function that resolves a host name.
pub type DnsResolver = Arc<dyn Fn(&str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> + Send + Sync>;

/// Opens connections for one [`Reach`]. Connections of different reach are never in one pool.
#[derive(Clone)]
pub(crate) struct Connector {
    tcp: HttpConnector<CheckedResolver>,
    /// Connector to a proxy, which may have any address.
    to_proxy: HttpConnector<CheckedResolver>,
    reach: Reach,
    shared: Arc<ConnectorShared>,
    /// True if plain addresses are reached through a tunnel too, because a forwarding proxy would not understand the protocol.
    tunnels: bool,
}

/// State shared by all connectors.
pub(crate) struct ConnectorShared {
    pub(crate) rules: EgressRules,
    pub(crate) tls: ClientTls,
    pub(crate) proxies: ProxyRules,
    pub(crate) resolver: DnsResolver,
    pub(crate) connect_timeout: Duration,
    pub(crate) local_faults: LocalFaultLog,
}

/// Error of a failed connect. It travels through hyper's errors and is downcast at the other end.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct ConnectError(pub(crate) FetchError);

/// DNS resolver that returns only addresses that may be called.
#[derive(Clone)]
struct CheckedResolver {
    reach: Reach,
    resolver: DnsResolver,
}

type Cause = Box<dyn Error + Send + Sync>;

// === impl Connector ===

impl Connector {
    pub(crate) fn new(reach: Reach, shared: Arc<ConnectorShared>) -> Self {
        let tcp = |reach| {
            let resolver = Arc::clone(&shared.resolver);
            let mut tcp = HttpConnector::new_with_resolver(CheckedResolver { reach, resolver });
            tcp.enforce_http(false);
            tcp.set_nodelay(true);
            tcp.set_keepalive(Some(Duration::from_secs(60)));
            tcp
        };
        Self { tcp: tcp(reach), to_proxy: tcp(Reach::Private), reach, shared, tunnels: false }
    }

    /// Reaches every address through a tunnel, for protocols that proxies do not forward.
    pub(crate) fn tunneling(self) -> Self {
        Self { tunnels: true, ..self }
    }

    /// Proxy that forwards requests to `to`, if there is one. Encrypted requests go through a tunnel instead.
    pub(crate) fn forwarding_proxy(&self, to: &Uri) -> Result<Option<SelectedProxy>, FetchError> {
        if self.is_forwardable(to) { self.shared.proxies.for_uri(to) } else { Ok(None) }
    }

    /// True if a proxy before `to` would forward each request, and not open a tunnel.
    fn is_forwardable(&self, to: &Uri) -> bool {
        to.scheme() == Some(&Scheme::HTTP) && !self.tunnels
    }

    async fn open(self, to: Uri) -> Result<OutboundStream, FetchError> {
        let place = host_and_port(&to);
        self.shared.rules.check(&to)?;
        if let Some(address) = to.host().and_then(parse_ip_host) {
            check_address(self.reach, address)?;
        }
        let shared = Arc::clone(&self.shared);
        let limit = shared.connect_timeout;
        let opening = async {
            match self.shared.proxies.for_uri(&to)? {
                None => {
                    let opened = self.open_direct(to).await;
                    opened.map(OutboundStream::to_server).map_err(|cause| describe_error(&*cause, &place))
                }
                Some(proxy) => self.open_through_proxy(proxy, to).await,
            }
        };
        let timed_out =
            || FetchError::NotSent(format!("no connection to {place} within {}", format_duration(limit)));
        let opened = timeout(limit, opening).await.unwrap_or_else(|_| Err(timed_out()));
        if let Err(FetchError::Local(fault)) = &opened {
            shared.local_faults.add(fault);
        }
        opened
    }

    async fn open_direct(mut self, to: Uri) -> Result<TcpOrTls, Cause> {
        if to.scheme() == Some(&Scheme::HTTP) {
            return self.tcp.call(to).await.map(MaybeHttpsStream::Http).map_err(Cause::from);
        }
        let config = self.tls(&to)?;
        HttpsConnector::from((self.tcp, config)).call(to).await
    }

    async fn open_through_proxy(
        mut self,
        proxy: SelectedProxy,
        to: Uri,
    ) -> Result<OutboundStream, FetchError> {
        self.check_behind_proxy(&to).await?;
        let name = format!("the proxy {}", host_and_port(&proxy.uri));
        let is_plain = to.scheme() == Some(&Scheme::HTTP);
        let opened = if self.is_forwardable(&to) {
            let opened = self.to_proxy.call(proxy.uri).await;
            opened.map(|io| OutboundStream::to_proxy(MaybeHttpsStream::Http(io))).map_err(Cause::from)
        } else {
            let config = if is_plain { None } else { Some(self.tls(&to).map_err(|ConnectError(why)| why)?) };
            let tunnel = Tunnel::new(proxy.uri, self.to_proxy);
            let mut tunnel = match proxy.login {
                Some(login) => tunnel.with_auth(login),
                None => tunnel,
            };
            let opened = match config {
                None => tunnel.call(with_port(&to)).await.map(MaybeHttpsStream::Http).map_err(Cause::from),
                Some(config) => HttpsConnector::from((tunnel, config)).call(to.clone()).await,
            };
            opened.map(OutboundStream::to_server)
        };
        opened.map_err(|cause| describe_proxy_error(&*cause, &name, &host_and_port(&to)))
    }

    /// Checks the addresses of a name that is called through a proxy, as far as this machine can resolve it.
    async fn check_behind_proxy(&self, to: &Uri) -> Result<(), FetchError> {
        let host = to.host().unwrap_or_default();
        if parse_ip_host(host).is_some() {
            return Ok(());
        }
        let known = (self.shared.resolver)(host).await.unwrap_or_default();
        known.into_iter().try_for_each(|address| check_address(self.reach, address))
    }

    fn tls(&self, to: &Uri) -> Result<Arc<rustls::ClientConfig>, ConnectError> {
        let config = self.shared.tls.config(to.host().unwrap_or_default());
        config.map_err(|why| ConnectError(FetchError::Local(why)))
    }
}

impl Service<Uri> for Connector {
    type Response = OutboundStream;
    type Error = ConnectError;
    type Future = BoxFuture<'static, Result<OutboundStream, ConnectError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ConnectError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let connector = self.clone();
        Box::pin(async move { connector.open(to).await.map_err(ConnectError) })
    }
}

// === impl CheckedResolver ===

impl Service<Name> for CheckedResolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = ConnectError;
    type Future = BoxFuture<'static, Result<Self::Response, ConnectError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ConnectError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let (reach, found) = (self.reach, (self.resolver)(name.as_str()));
        Box::pin(async move { resolve(reach, name.as_str(), found).await.map_err(ConnectError) })
    }
}

/// Resolver of the operating system.
pub(crate) fn system_resolver() -> DnsResolver {
    Arc::new(|name| {
        let name = name.to_owned();
        Box::pin(async move {
            let found = tokio::net::lookup_host((name, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    })
}

/// Resolves a name. One forbidden address among several is enough to refuse it: which one is called must not be random.
async fn resolve(
    reach: Reach,
    name: &str,
    found: BoxFuture<'static, io::Result<Vec<IpAddr>>>,
) -> Result<std::vec::IntoIter<SocketAddr>, FetchError> {
    let unknown = || FetchError::NotSent(format!("no address is known for {name}"));
    let found = found.await.map_err(|error| {
        local_fault::describe_lookup(name, &error).map_or_else(unknown, FetchError::Local)
    })?;
    if found.is_empty() {
        return Err(unknown());
    }
    for address in &found {
        check_address(reach, *address)?;
    }
    let found: Vec<_> = found.into_iter().map(|address| SocketAddr::new(address, 0)).collect();
    Ok(found.into_iter())
}

fn check_address(reach: Reach, address: IpAddr) -> Result<(), FetchError> {
    let Some(why) = reach.forbids(address) else { return Ok(()) };
    let fix = if Reach::Private.forbids(address).is_none() {
        "; allow private addresses for this agent to call it"
    } else {
        ""
    };
    Err(FetchError::Forbidden(format!("{address} is {why}{fix}")))
}

/// Adds the port to an address: a tunnel's default is that of https.
fn with_port(to: &Uri) -> Uri {
    Uri::builder()
        .scheme(Scheme::HTTP)
        .authority(host_and_port(to))
        .path_and_query("/")
        .build()
        .unwrap_or_default()
}

/// `host:port` of an address.
pub(crate) fn host_and_port(uri: &Uri) -> String {
    format!("{}:{}", uri.host().unwrap_or_default(), port_or_default(uri))
}

/// Describes the cause that a person can act on.
fn describe_error(error: &(dyn Error + 'static), place: &str) -> FetchError {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(ConnectError(known)) = error.downcast_ref() {
            return known.clone();
        }
        if let Some(tls) = error.downcast_ref::<rustls::Error>() {
            return FetchError::NotSent(format!("no encrypted connection to {place}: {tls}"));
        }
        if let Some(known) = error.downcast_ref().and_then(|io| describe_io_error(io, place)) {
            return known;
        }
        cause = error.source();
    }
    FetchError::NotSent(format!("no connection to {place}"))
}

/// Describes a failure on the way to, or at, a proxy.
fn describe_proxy_error(error: &(dyn Error + 'static), proxy: &str, place: &str) -> FetchError {
    let mut cause = Some(error);
    while let Some(inner) = cause {
        if let Some(tunnel) = inner.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            return describe_proxy_error(tunnel, proxy, place);
        }
        let message = inner.to_string();
        if message.starts_with("tunnel error: proxy authorization required") {
            return FetchError::NotSent(needs_login(proxy));
        }
        if message.starts_with("tunnel error: unsuccessful") {
            return FetchError::NotSent(format!("{proxy} does not lead to {place}"));
        }
        cause = inner.source();
    }
    match describe_error(error, proxy) {
        FetchError::NotSent(why) if why.contains(proxy) => FetchError::NotSent(why),
        FetchError::NotSent(why) => FetchError::NotSent(format!("{why} (through {proxy})")),
        known => known,
    }
}

pub(crate) fn needs_login(proxy: &str) -> String {
    format!("{proxy} wants a login; write it into the proxy's address: http://user:password@host:port")
}

fn describe_io_error(io: &io::Error, place: &str) -> Option<FetchError> {
    use io::ErrorKind::{
        ConnectionRefused, ConnectionReset, HostUnreachable, NetworkUnreachable, TimedOut, UnexpectedEof,
    };
    if let Some(inner) = io.get_ref() {
        return Some(describe_error(inner, place));
    }
    if let Some(fault) = local_fault::describe_io(io) {
        return Some(FetchError::Local(fault));
    }
    let text = match io.kind() {
        ConnectionRefused => format!("connection refused by {place}"),
        HostUnreachable | NetworkUnreachable => format!("no route to {place}"),
        TimedOut => format!("no answer from {place}"),
        ConnectionReset | UnexpectedEof => format!("{place} hung up at once"),
        _ => return None,
    };
    Some(FetchError::NotSent(text))
}
