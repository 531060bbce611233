//! Opens connections, and looks at every address first.
//!
//! The check stands between name resolution and the TCP handshake, on the very addresses that are then called: a name
//! that resolves to something else a moment later gains nothing. Encryption is set up when the first `https` address
//! is called, because a gateway that only talks to its neighbours should not pay for it at every start.

use std::{
    error::Error,
    io,
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    sync::{Arc, OnceLock},
    task::{Context, Poll},
    time::Duration,
};

use futures::future::BoxFuture;
use http::Uri;
use hyper_rustls::{ConfigBuilderExt, HttpsConnector, MaybeHttpsStream};
use hyper_util::{
    client::legacy::connect::{HttpConnector, dns::Name},
    rt::TokioIo,
};
use rustls::{
    ClientConfig, RootCertStore,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, pem::PemObject},
};
use tokio::{net::TcpStream, time::timeout};
use tower::Service;

use crate::{
    address::Reach,
    fetch::{FetchError, human},
};

/// A connection, encrypted or not.
pub(crate) type Stream = MaybeHttpsStream<TokioIo<TcpStream>>;

/// Opens connections under one rule. Connections opened under different rules never meet in one pool.
#[derive(Clone)]
pub(crate) struct Connector {
    tcp: HttpConnector<Resolver>,
    reach: Reach,
    tls: Arc<Tls>,
    patience: Duration,
}

/// What encryption needs, made at first use.
pub(crate) struct Tls {
    ca_file: Option<PathBuf>,
    config: OnceLock<Result<Arc<ClientConfig>, String>>,
}

/// Why there is no connection. It travels through the client's own errors and is found again at the other end.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct NoConnection(pub(crate) FetchError);

#[derive(Clone, Copy)]
struct Resolver(Reach);

type Cause = Box<dyn Error + Send + Sync>;

// === impl Connector ===

impl Connector {
    pub(crate) fn new(reach: Reach, tls: Arc<Tls>, patience: Duration) -> Self {
        let mut tcp = HttpConnector::new_with_resolver(Resolver(reach));
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_keepalive(Some(Duration::from_secs(60)));
        Self { tcp, reach, tls, patience }
    }

    pub(crate) async fn open(mut self, to: Uri) -> Result<Stream, FetchError> {
        let place = place(&to);
        if let Some(address) = literal(&to) {
            check(self.reach, address)?;
        }
        let opening = async {
            if to.scheme() == Some(&http::uri::Scheme::HTTP) {
                return self.tcp.call(to).await.map(MaybeHttpsStream::Http).map_err(Cause::from);
            }
            let config = self.tls.config().map_err(|why| NoConnection(FetchError::NotSent(why)))?;
            HttpsConnector::from((self.tcp, config)).call(to).await
        };
        match timeout(self.patience, opening).await {
            Ok(opened) => opened.map_err(|cause| explain(&*cause, &place)),
            Err(_) => {
                Err(FetchError::NotSent(format!("no connection to {place} within {}", human(self.patience))))
            }
        }
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

// === impl Tls ===

impl Tls {
    pub(crate) const fn new(ca_file: Option<PathBuf>) -> Self {
        Self { ca_file, config: OnceLock::new() }
    }

    fn config(&self) -> Result<Arc<ClientConfig>, String> {
        self.config.get_or_init(|| self.build().map(Arc::new)).clone()
    }

    fn build(&self) -> Result<ClientConfig, String> {
        let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| format!("encryption is not available: {error}"))?;
        let builder = match &self.ca_file {
            None => builder.with_webpki_roots(),
            Some(path) => builder.with_root_certificates(
                roots(path)
                    .map_err(|why| format!("cannot read certificates from {}: {why}", path.display()))?,
            ),
        };
        let mut config = builder.with_no_client_auth();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(config)
    }
}

fn roots(path: &std::path::Path) -> Result<RootCertStore, Cause> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(path)? {
        roots.add(certificate?)?;
    }
    Ok(roots)
}

// === impl Resolver ===

impl Service<Name> for Resolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = NoConnection;
    type Future = BoxFuture<'static, Result<Self::Response, NoConnection>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), NoConnection>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let reach = self.0;
        Box::pin(async move { resolve(reach, name.as_str()).await.map_err(NoConnection) })
    }
}

/// One forbidden address among several is enough to refuse: which of them is called must not be a matter of luck.
async fn resolve(reach: Reach, name: &str) -> Result<std::vec::IntoIter<SocketAddr>, FetchError> {
    let unknown = || FetchError::NotSent(format!("no address is known for {name}"));
    let found: Vec<_> = tokio::net::lookup_host((name, 0)).await.map_err(|_| unknown())?.collect();
    if found.is_empty() {
        return Err(unknown());
    }
    for address in &found {
        check(reach, address.ip())?;
    }
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

/// The address in a URI that names none by name.
fn literal(uri: &Uri) -> Option<IpAddr> {
    uri.host()?.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

/// `host:port`, as people write it.
pub(crate) fn place(uri: &Uri) -> String {
    let host = uri.host().unwrap_or_default();
    let port = uri.port_u16().unwrap_or(if uri.scheme_str() == Some("https") { 443 } else { 80 });
    format!("{host}:{port}")
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

fn explain_io(io: &io::Error, place: &str) -> Option<FetchError> {
    use io::ErrorKind::{
        ConnectionRefused, ConnectionReset, HostUnreachable, NetworkUnreachable, TimedOut, UnexpectedEof,
    };
    if let Some(inner) = io.get_ref() {
        return Some(explain(inner, place));
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
