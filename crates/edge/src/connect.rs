//! Opens connections, and looks at every address first.
//!
//! The check stands between name resolution and the TCP handshake, on the very addresses that are then called: a name
//! that resolves to something else a moment later gains nothing.

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

pub(crate) use self::stream::Stream;
use self::stream::Transport;
use crate::{
    address::Reach,
    fetch::{FetchError, human},
    local_fault::{self, LocalFaultLog},
    proxy::{Proxies, Proxy},
    rules::{Rules, address_in, port},
    tls::Tls,
};

/// Finds the addresses of a name.
pub type Resolver = Arc<dyn Fn(&str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> + Send + Sync>;

/// Opens connections under one rule. Connections opened under different rules never meet in one pool.
#[derive(Clone)]
pub(crate) struct Connector {
    tcp: HttpConnector<Checked>,
    /// To a proxy, which may be called wherever it is.
    to_proxy: HttpConnector<Checked>,
    reach: Reach,
    house: Arc<House>,
    /// Whether a proxy is to lead to plain addresses too, because it would not understand what is said there.
    tunnels: bool,
}

/// What all connectors share.
pub(crate) struct House {
    pub(crate) rules: Rules,
    pub(crate) tls: Tls,
    pub(crate) proxies: Proxies,
    pub(crate) resolver: Resolver,
    pub(crate) patience: Duration,
    pub(crate) local_faults: LocalFaultLog,
}

/// Why there is no connection. It travels through the client's own errors and is found again at the other end.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct NoConnection(pub(crate) FetchError);

/// A resolver that answers with nothing that may not be called.
#[derive(Clone)]
struct Checked {
    reach: Reach,
    resolver: Resolver,
}

type Cause = Box<dyn Error + Send + Sync>;

// === impl Connector ===

impl Connector {
    pub(crate) fn new(reach: Reach, house: Arc<House>) -> Self {
        let tcp = |reach| {
            let resolver = Arc::clone(&house.resolver);
            let mut tcp = HttpConnector::new_with_resolver(Checked { reach, resolver });
            tcp.enforce_http(false);
            tcp.set_nodelay(true);
            tcp.set_keepalive(Some(Duration::from_secs(60)));
            tcp
        };
        Self { tcp: tcp(reach), to_proxy: tcp(Reach::Private), reach, house, tunnels: false }
    }

    /// The same, for what proxies do not speak.
    pub(crate) fn tunneling(self) -> Self {
        Self { tunnels: true, ..self }
    }

    /// The proxy that forwards requests to `to`, if there is one. Encrypted requests go through a tunnel instead.
    pub(crate) fn forwarding_proxy(&self, to: &Uri) -> Result<Option<Proxy>, FetchError> {
        if self.is_forwardable(to) { self.house.proxies.to(to) } else { Ok(None) }
    }

    /// True if a proxy before `to` would forward each request, and not open a tunnel.
    fn is_forwardable(&self, to: &Uri) -> bool {
        to.scheme() == Some(&Scheme::HTTP) && !self.tunnels
    }

    async fn open(self, to: Uri) -> Result<Stream, FetchError> {
        let place = place(&to);
        self.house.rules.check(&to)?;
        if let Some(address) = to.host().and_then(address_in) {
            check(self.reach, address)?;
        }
        let house = Arc::clone(&self.house);
        let patience = house.patience;
        let opening = async {
            match self.house.proxies.to(&to)? {
                None => {
                    let opened = self.directly(to).await;
                    opened.map(Stream::to_server).map_err(|cause| explain(&*cause, &place))
                }
                Some(proxy) => self.through(proxy, to).await,
            }
        };
        let late = || FetchError::NotSent(format!("no connection to {place} within {}", human(patience)));
        let opened = timeout(patience, opening).await.unwrap_or_else(|_| Err(late()));
        if let Err(FetchError::Local(fault)) = &opened {
            house.local_faults.add(fault);
        }
        opened
    }

    async fn directly(mut self, to: Uri) -> Result<Transport, Cause> {
        if to.scheme() == Some(&Scheme::HTTP) {
            return self.tcp.call(to).await.map(MaybeHttpsStream::Http).map_err(Cause::from);
        }
        let config = self.tls(&to)?;
        HttpsConnector::from((self.tcp, config)).call(to).await
    }

    async fn through(mut self, proxy: Proxy, to: Uri) -> Result<Stream, FetchError> {
        self.look_behind(&to).await?;
        let name = format!("the proxy {}", place(&proxy.uri));
        let is_plain = to.scheme() == Some(&Scheme::HTTP);
        let opened = if self.is_forwardable(&to) {
            let opened = self.to_proxy.call(proxy.uri).await;
            opened.map(|io| Stream::to_proxy(MaybeHttpsStream::Http(io))).map_err(Cause::from)
        } else {
            let config = if is_plain { None } else { Some(self.tls(&to).map_err(|NoConnection(why)| why)?) };
            let tunnel = Tunnel::new(proxy.uri, self.to_proxy);
            let mut tunnel = match proxy.login {
                Some(login) => tunnel.with_auth(login),
                None => tunnel,
            };
            let opened = match config {
                None => tunnel.call(with_port(&to)).await.map(MaybeHttpsStream::Http).map_err(Cause::from),
                Some(config) => HttpsConnector::from((tunnel, config)).call(to.clone()).await,
            };
            opened.map(Stream::to_server)
        };
        opened.map_err(|cause| explain_proxy(&*cause, &name, &place(&to)))
    }

    /// Behind a proxy a name is looked at as far as it is known here.
    async fn look_behind(&self, to: &Uri) -> Result<(), FetchError> {
        let host = to.host().unwrap_or_default();
        if address_in(host).is_some() {
            return Ok(());
        }
        let known = (self.house.resolver)(host).await.unwrap_or_default();
        known.into_iter().try_for_each(|address| check(self.reach, address))
    }

    fn tls(&self, to: &Uri) -> Result<Arc<rustls::ClientConfig>, NoConnection> {
        let made = self.house.tls.config(to.host().unwrap_or_default());
        made.map_err(|why| NoConnection(FetchError::Local(why)))
    }
}

impl Service<Uri> for Connector {
    type Response = Stream;
    type Error = NoConnection;
    type Future = BoxFuture<'static, Result<Stream, NoConnection>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), NoConnection>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let connector = self.clone();
        Box::pin(async move { connector.open(to).await.map_err(NoConnection) })
    }
}

// === impl Checked ===

impl Service<Name> for Checked {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = NoConnection;
    type Future = BoxFuture<'static, Result<Self::Response, NoConnection>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), NoConnection>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let (reach, found) = (self.reach, (self.resolver)(name.as_str()));
        Box::pin(async move { resolve(reach, name.as_str(), found).await.map_err(NoConnection) })
    }
}

/// Asks the system.
pub(crate) fn system_resolver() -> Resolver {
    Arc::new(|name| {
        let name = name.to_owned();
        Box::pin(async move {
            let found = tokio::net::lookup_host((name, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    })
}

/// One forbidden address among several is enough to refuse: which of them is called must not be a matter of luck.
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
        check(reach, *address)?;
    }
    let found: Vec<_> = found.into_iter().map(|address| SocketAddr::new(address, 0)).collect();
    Ok(found.into_iter())
}

fn check(reach: Reach, address: IpAddr) -> Result<(), FetchError> {
    let Some(why) = reach.forbids(address) else { return Ok(()) };
    let fix = if Reach::Private.forbids(address).is_none() {
        "; allow private addresses for this agent to call it"
    } else {
        ""
    };
    Err(FetchError::Forbidden(format!("{address} is {why}{fix}")))
}

/// The same place with its port written out: a tunnel's usual one is that of https.
fn with_port(to: &Uri) -> Uri {
    Uri::builder().scheme(Scheme::HTTP).authority(place(to)).path_and_query("/").build().unwrap_or_default()
}

/// `host:port`, as people write it.
pub(crate) fn place(uri: &Uri) -> String {
    format!("{}:{}", uri.host().unwrap_or_default(), port(uri))
}

/// Finds the cause that a person can do something about.
fn explain(error: &(dyn Error + 'static), place: &str) -> FetchError {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(NoConnection(known)) = error.downcast_ref() {
            return known.clone();
        }
        if let Some(tls) = error.downcast_ref::<rustls::Error>() {
            return FetchError::NotSent(format!("no encrypted connection to {place}: {tls}"));
        }
        if let Some(known) = error.downcast_ref().and_then(|io| explain_io(io, place)) {
            return known;
        }
        cause = error.source();
    }
    FetchError::NotSent(format!("no connection to {place}"))
}

/// What went wrong on the way to, or at, a proxy.
fn explain_proxy(error: &(dyn Error + 'static), proxy: &str, place: &str) -> FetchError {
    let mut cause = Some(error);
    while let Some(inner) = cause {
        if let Some(tunnel) = inner.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            return explain_proxy(tunnel, proxy, place);
        }
        let said = inner.to_string();
        if said.starts_with("tunnel error: proxy authorization required") {
            return FetchError::NotSent(wants_login(proxy));
        }
        if said.starts_with("tunnel error: unsuccessful") {
            return FetchError::NotSent(format!("{proxy} does not lead to {place}"));
        }
        cause = inner.source();
    }
    match explain(error, proxy) {
        FetchError::NotSent(why) if why.contains(proxy) => FetchError::NotSent(why),
        FetchError::NotSent(why) => FetchError::NotSent(format!("{why} (through {proxy})")),
        known => known,
    }
}

pub(crate) fn wants_login(proxy: &str) -> String {
    format!("{proxy} wants a login; write it into the proxy's address: http://user:password@host:port")
}

fn explain_io(io: &io::Error, place: &str) -> Option<FetchError> {
    use io::ErrorKind::{
        ConnectionRefused, ConnectionReset, HostUnreachable, NetworkUnreachable, TimedOut, UnexpectedEof,
    };
    if let Some(inner) = io.get_ref() {
        return Some(explain(inner, place));
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
