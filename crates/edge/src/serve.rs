//! Starts a listener and stops it without cutting anyone off.
//!
//! Nobody needs a token to open a connection, so each has its [`Deadlines`] and their number is limited ([`ConnectionLimits`]): a client
//! that is silent, or too slow, costs a descriptor for seconds, and never the last one.

mod body;
mod connections;
mod deadlines;
mod tls;
mod transport;

use std::{
    convert::Infallible,
    future::{Future, poll_fn},
    io,
    net::{IpAddr, SocketAddr},
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::Poll,
    time::Duration,
};

use axum::{
    body::Body,
    extract::Request,
    response::{IntoResponse, Response},
};
use http::{HeaderValue, StatusCode, Version, header};
use http_body::Body as _;
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::conn::auto::Builder,
};
use rialto_model::call::Caller;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tower::Service;

use self::{
    body::{TimedBody, UnreadBody, discard},
    connections::ConnectionPermit,
    deadlines::{Activity, InFlight, Observed, Verdict, Watch},
    transport::Transport,
};
pub use self::{
    connections::{ConnectionLimits, Connections, PerAddress, connections_within, raise_descriptor_limit},
    deadlines::Deadlines,
    tls::{ClientAuth, ClientCertificate, FileStamp, ServerTls, TlsConfig},
};
use crate::{
    guarded_body::GuardedBody,
    lanes::{Lanes, after_the_others},
    refusal::Refusal,
};

/// How long no connection is accepted after the system had no room for one more: first this, then twice as long each time.
const FIRST_ACCEPT_BACKOFF: Duration = Duration::from_millis(10);
const MAX_ACCEPT_BACKOFF: Duration = Duration::from_secs(1);

/// How often a client of HTTP/2 is asked whether it is still there, and how long it has to answer.
const PING_INTERVAL: Duration = Duration::from_secs(30);
const PING_TIMEOUT: Duration = Duration::from_secs(20);

/// Requests that may be open at once on a connection of HTTP/2.
const MAX_HTTP2_STREAMS: u32 = 256;

/// Bytes of a request's headers over HTTP/2.
const MAX_HEADER_LIST_BYTES: u32 = 64 * 1024;

/// The answer to a connection that is one too many.
const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\n\
    Content-Type: application/json\r\nContent-Length: 113\r\n\r\n\
    {\"error\":\"too-many-connections\",\"message\":\"this server has as many connections as it may; try again in a moment\"}";

/// A bound listener: its port is known, nobody is served yet.
pub struct Door {
    listener: TcpListener,
    address: SocketAddr,
    deadlines: Deadlines,
    connections: Arc<Connections>,
    tls: Option<Arc<ServerTls>>,
    closing: Arc<AtomicBool>,
}

/// Who is at the other end of a connection.
#[derive(Clone, Debug)]
pub struct ConnectionPeer {
    /// Its address.
    pub address: IpAddr,
    /// The caller that its certificate stands for.
    pub certified: Option<Arc<Caller>>,
}

/// Why nothing could be bound.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}; choose another address or stop what listens there")]
pub struct BindError {
    address: String,
    source: io::Error,
}

/// The connections that are open, and the word that they shall come to an end.
#[derive(Clone)]
struct Open {
    tasks: TaskTracker,
    is_over: Arc<AtomicBool>,
    over: CancellationToken,
    deadlines: Deadlines,
    tls: Option<Arc<ServerTls>>,
    /// Whether clients are asked to open no further requests on their connections.
    closing: Arc<AtomicBool>,
}

// === impl Door ===

impl Door {
    /// Binds `address` (`host:port`; port 0 takes any free one).
    pub async fn open(address: &str) -> Result<Self, BindError> {
        let bound = async {
            let listener = TcpListener::bind(address).await?;
            let address = listener.local_addr()?;
            let (deadlines, connections) =
                (Deadlines::default(), Connections::new(ConnectionLimits::default()));
            Ok(Self { listener, address, deadlines, connections, tls: None, closing: Arc::default() })
        };
        bound.await.map_err(|source| BindError { address: address.to_owned(), source })
    }

    /// The same with these deadlines and limits.
    #[must_use]
    pub fn limited(self, deadlines: Deadlines, limits: ConnectionLimits) -> Self {
        Self { deadlines, connections: Connections::new(limits), ..self }
    }

    /// The same over TLS.
    #[must_use]
    pub fn encrypted(self, tls: Arc<ServerTls>) -> Self {
        Self { tls: Some(tls), ..self }
    }

    /// The same; while `closing` is true, each response ends its connection (`Connection: close`, or GOAWAY over HTTP/2), so that
    /// clients and load balancers connect elsewhere. Idle connections stay: a request may be on its way.
    #[must_use]
    pub fn closing_while(self, closing: Arc<AtomicBool>) -> Self {
        Self { closing, ..self }
    }

    /// Where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The connections that are open, to count them.
    pub fn connections(&self) -> Arc<Connections> {
        Arc::clone(&self.connections)
    }

    /// Serves what `app_for` makes for each connection, on `lanes`, until `stop` is done; then takes no more
    /// requests and returns when the open ones are answered.
    pub async fn serve<A, F>(self, app_for: F, lanes: Lanes, stop: impl Future<Output = ()> + Send)
    where
        F: Fn(ConnectionPeer) -> A + Send + Sync + 'static,
        A: Service<Request, Response = Response, Error = Infallible> + Clone + Send + 'static,
        A::Future: Send,
    {
        let (tasks, is_over, over) = (TaskTracker::new(), Arc::default(), CancellationToken::new());
        let open =
            Open { tasks, is_over, over, deadlines: self.deadlines, tls: self.tls, closing: self.closing };
        let (app_for, mut stop, mut backoff) = (Arc::new(app_for), pin!(stop), None);
        loop {
            let next = async {
                if let Some(wait) = backoff {
                    tokio::time::sleep(wait).await;
                }
                self.listener.accept().await
            };
            let accepted = tokio::select! {
                accepted = next => accepted,
                () = &mut stop => break,
            };
            match accepted {
                Ok((stream, peer)) => {
                    backoff = None;
                    match self.connections.admit(peer.ip()) {
                        Some(permit) => open.begin((stream, peer.ip()), permit, &app_for, &lanes),
                        None => turn_away(&stream, open.tls.is_some()),
                    }
                }
                Err(error) if is_gone(&error) => {}
                Err(error) => {
                    if backoff.is_none() {
                        tracing::error!(
                            "no connection could be accepted: {error}; raise the limit of open files (ulimit -n)"
                        );
                    }
                    let next = backoff.map_or(FIRST_ACCEPT_BACKOFF, |before| before * 2);
                    backoff = Some(next.min(MAX_ACCEPT_BACKOFF));
                }
            }
        }
        drop(self.listener);
        open.end().await;
    }
}

// === impl Open ===

impl Open {
    /// Has a connection served on one of the lanes.
    fn begin<A, F>(
        &self,
        (stream, address): (TcpStream, IpAddr),
        permit: ConnectionPermit,
        app_for: &Arc<F>,
        lanes: &Lanes,
    ) where
        F: Fn(ConnectionPeer) -> A + Send + Sync + 'static,
        A: Service<Request, Response = Response, Error = Infallible> + Clone + Send + 'static,
        A::Future: Send,
    {
        // A stream that does not take the option still works, only slower.
        let _ = stream.set_nodelay(true);
        // It is heard on the lane's own thread from now on.
        let (Some((lane, seat)), Ok(stream)) = (lanes.emptiest(), stream.into_std()) else { return };
        let (open, lanes, app_for) = (self.clone(), lanes.clone(), Arc::clone(app_for));
        let connection = async move {
            if let Ok(stream) = TcpStream::from_std(stream)
                && let Some((stream, certified)) = open.transport(stream).await
            {
                let app = app_for(ConnectionPeer { address, certified });
                Box::pin(serve_one(stream, app, lanes, open)).await;
            }
            drop((seat, permit));
        };
        self.tasks.spawn_on(connection, lane);
    }

    /// The bytes of a connection, after the handshake of TLS if there is one, and the caller that came with a certificate.
    async fn transport(&self, stream: TcpStream) -> Option<(Transport, Option<Arc<Caller>>)> {
        let Some(tls) = &self.tls else { return Some((Transport::Plain(stream), None)) };
        let handshake = tokio::time::timeout(self.deadlines.head, tls.acceptor().accept(stream));
        let accepted = tokio::select! {
            accepted = handshake => accepted,
            () = self.over.cancelled() => return None,
        };
        match accepted {
            Ok(Ok(stream)) => {
                let caller = tls.caller(stream.get_ref().1.peer_certificates());
                Some((Transport::Tls(Box::new(stream)), caller.map(Arc::new)))
            }
            Ok(Err(error)) => {
                tracing::debug!("a TLS handshake failed: {error}");
                None
            }
            Err(_) => None,
        }
    }

    async fn end(&self) {
        self.is_over.store(true, Ordering::Release);
        self.over.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

/// Answers a connection that is one too many, as far as that can be done without waiting.
fn turn_away(stream: &TcpStream, is_encrypted: bool) {
    if !is_encrypted {
        let _ = stream.try_write(FULL);
    }
}

/// Whether it is only the one who wanted to come in that is gone again.
fn is_gone(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

async fn serve_one<A>(stream: Transport, app: A, lanes: Lanes, open: Open)
where
    A: Service<Request, Response = Response, Error = Infallible> + Clone + Send + 'static,
    A::Future: Send,
{
    let activity = Arc::<Activity>::default();
    let stream = TokioIo::new(Observed::new(stream, Arc::clone(&activity)));
    let mut watch = Watch::new(Arc::clone(&activity), open.deadlines);
    let (body_limit, tasks) = (open.deadlines.body, open.tasks.clone());
    let (closing, http2) = (Arc::clone(&open.closing), Arc::clone(&activity));
    // What is served here is always ready, so it need not be asked whether it is.
    let app = service_fn(move |request: http::Request<Incoming>| {
        let in_flight = activity.begin(request.version());
        let has_rest = request.version() == Version::HTTP_2 && !request.body().is_end_stream();
        let unread = has_rest.then(Arc::<UnreadBody>::default);
        let timed = |body| {
            let body = TimedBody::new(body, body_limit, Arc::clone(&activity));
            Body::new(match &unread {
                Some(unread) => body.leaving_rest_to(Arc::clone(unread)),
                None => body,
            })
        };
        let answer = app.clone().call(request.map(timed));
        let tasks = has_rest.then(|| tasks.clone());
        let closing = Arc::clone(&closing);
        async move {
            let Ok(answer) = answer.await;
            if let (Some(rest), Some(tasks)) = (unread.and_then(|unread| unread.take()), tasks) {
                tasks.spawn(discard(rest));
            }
            after_the_others().await;
            Ok::<_, Infallible>(finish(answer, in_flight, closing.load(Ordering::Relaxed)))
        }
    });
    let builder = builder(lanes);
    let mut connection = pin!(builder.serve_connection(stream, app));
    let (mut over, mut listens, mut is_told) = (pin!(open.over.cancelled()), false, false);
    let served = poll_fn(|cx| {
        // It has to be asked for once, to be woken; asked at every turn of each connection it would be a lock that all share.
        if !listens {
            listens = true;
            let _ = over.as_mut().poll(cx);
        }
        let is_over =
            open.is_over.load(Ordering::Acquire) || open.closing.load(Ordering::Relaxed) && http2.is_http2();
        if !is_told && is_over {
            is_told = true;
            connection.as_mut().graceful_shutdown();
        }
        match watch.poll(cx) {
            Verdict::Stays => {}
            Verdict::Closes => connection.as_mut().graceful_shutdown(),
            Verdict::Ends => return Poll::Ready(Ok(())),
        }
        connection.as_mut().poll(cx)
    });
    if let Err(error) = served.await {
        tracing::trace!("a connection ended: {error}");
    }
}

/// HTTP/1 and HTTP/2. The deadlines of HTTP/1 are [`Watch`]'s: hyper's own would make a timer for each request.
fn builder(lanes: Lanes) -> Builder<Lanes> {
    let mut builder = Builder::new(lanes);
    builder.http1().header_read_timeout(None);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_TIMEOUT)
        .max_concurrent_streams(MAX_HTTP2_STREAMS)
        .max_header_list_size(MAX_HEADER_LIST_BYTES);
    builder
}

/// A response as it leaves: one that says "later" says when, and its request is in flight until it is written. While the server is
/// closing, it is the last one of its connection.
fn finish(
    mut answer: Response,
    in_flight: InFlight,
    is_closing: bool,
) -> http::Response<GuardedBody<InFlight>> {
    if in_flight.0.is_body_late.load(Ordering::Relaxed) {
        in_flight.0.is_body_late.store(false, Ordering::Relaxed);
        let message = "the body did not arrive in time; send it faster, or raise [server] body_timeout_ms";
        answer = Refusal::new(StatusCode::REQUEST_TIMEOUT, "body-timeout", message).into_response();
        answer.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    if is_closing && !in_flight.0.is_http2() {
        answer.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    let is_later = matches!(answer.status(), StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE);
    if is_later && !answer.headers().contains_key(header::RETRY_AFTER) {
        answer.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
    answer.map(|body| GuardedBody::new(body, in_flight))
}

#[cfg(test)]
mod tests {
    use super::FULL;

    #[test]
    fn the_answer_to_one_connection_too_many_is_as_long_as_it_says() {
        let text = std::str::from_utf8(FULL).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("Content-Length: {}", body.len())), "{} bytes", body.len());
        assert!(serde_json::from_str::<serde_json::Value>(body).is_ok());
    }
}
