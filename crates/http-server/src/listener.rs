//! HTTP listener with graceful shutdown.
//!
//! Anyone can open a connection, so each has its [`Deadlines`] and their number is limited ([`ConnectionLimits`]): a client that is silent
//! or too slow costs a descriptor for seconds, and never the last one.

mod connections;
mod deadlines;
mod request_body;
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
    connections::ConnectionPermit,
    deadlines::{ConnectionActivity, DeadlineAction, DeadlineWatch, InFlightRequest, ObservedStream},
    request_body::{TimedBody, UnreadBody, discard},
    transport::ServerStream,
};
pub use self::{
    connections::{ConnectionLimits, Connections, PerAddress, max_connections_for, raise_descriptor_limit},
    deadlines::Deadlines,
    tls::{ClientCertificate, ClientCertificateMode, FileStamp, ServerTls, TlsConfig},
};
use crate::{guarded_body::GuardedBody, rejection::Rejection, worker_threads::WorkerThreads};
use rialto_http_client::yield_once::yield_once;

/// Backoff after a failed accept: first this, then twice as long each time.
const FIRST_ACCEPT_BACKOFF: Duration = Duration::from_millis(10);
const MAX_ACCEPT_BACKOFF: Duration = Duration::from_secs(1);

/// Interval of HTTP/2 pings, and the time a client has to answer one.
const PING_INTERVAL: Duration = Duration::from_secs(30);
const PING_TIMEOUT: Duration = Duration::from_secs(20);

/// Maximum number of concurrent requests of an HTTP/2 connection.
const MAX_HTTP2_STREAMS: u32 = 256;

/// Maximum bytes of a request's headers over HTTP/2.
const MAX_HEADER_LIST_BYTES: u32 = 64 * 1024;

/// Response to a connection beyond the maximum.
const TOO_MANY_CONNECTIONS_RESPONSE: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\n\
    Content-Type: application/json\r\nContent-Length: 113\r\n\r\n\
    {\"error\":\"too-many-connections\",\"message\":\"this server has as many connections as it may; try again in a moment\"}";

/// Bound listener: its port is known, nothing is served yet.
pub struct HttpListener {
    listener: TcpListener,
    address: SocketAddr,
    deadlines: Deadlines,
    connections: Arc<Connections>,
    tls: Option<Arc<ServerTls>>,
    closing: Arc<AtomicBool>,
}

/// Peer of a connection.
#[derive(Clone, Debug)]
pub struct ConnectionPeer {
    /// IP address.
    pub address: IpAddr,
    /// Caller of its client certificate.
    pub certified: Option<Arc<Caller>>,
}

/// Failure to bind an address.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}; choose another address or stop what listens there")]
pub struct BindError {
    address: String,
    source: io::Error,
}

/// Open connections, and the signal for them to end.
#[derive(Clone)]
struct OpenConnections {
    tasks: TaskTracker,
    is_stopping: Arc<AtomicBool>,
    stopping: CancellationToken,
    deadlines: Deadlines,
    tls: Option<Arc<ServerTls>>,
    /// True while clients are asked to open no further requests on their connections.
    closing: Arc<AtomicBool>,
}

// === impl HttpListener ===

impl HttpListener {
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

    /// Sets deadlines and limits.
    #[must_use]
    pub fn with_limits(self, deadlines: Deadlines, limits: ConnectionLimits) -> Self {
        Self { deadlines, connections: Connections::new(limits), ..self }
    }

    /// Serves over TLS.
    #[must_use]
    pub fn with_tls(self, tls: Arc<ServerTls>) -> Self {
        Self { tls: Some(tls), ..self }
    }

    /// Sets the closing flag: while it is true, each response ends its connection (`Connection: close`, or GOAWAY over HTTP/2), so that
    /// clients and load balancers connect elsewhere. Idle connections stay: a request may be on its way.
    #[must_use]
    pub fn with_closing_flag(self, closing: Arc<AtomicBool>) -> Self {
        Self { closing, ..self }
    }

    /// Address it listens on.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Open connections, to count them.
    pub fn connections(&self) -> Arc<Connections> {
        Arc::clone(&self.connections)
    }

    /// Serves the service that `app_for` makes for each connection, on `workers`, until `stop` resolves; then takes no more requests and
    /// returns when the open ones are answered.
    pub async fn serve<A, F>(self, app_for: F, workers: WorkerThreads, stop: impl Future<Output = ()> + Send)
    where
        F: Fn(ConnectionPeer) -> A + Send + Sync + 'static,
        A: Service<Request, Response = Response, Error = Infallible> + Clone + Send + 'static,
        A::Future: Send,
    {
        let (tasks, is_stopping, stopping) = (TaskTracker::new(), Arc::default(), CancellationToken::new());
        let open = OpenConnections {
            tasks,
            is_stopping,
            stopping,
            deadlines: self.deadlines,
            tls: self.tls,
            closing: self.closing,
        };
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
                        Some(permit) => open.spawn((stream, peer.ip()), permit, &app_for, &workers),
                        None => reject(&stream, open.tls.is_some()),
                    }
                }
                Err(error) if is_client_gone(&error) => {}
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
        open.close().await;
    }
}

// === impl OpenConnections ===

impl OpenConnections {
    /// Serves a connection on the worker with the fewest.
    fn spawn<A, F>(
        &self,
        (stream, address): (TcpStream, IpAddr),
        permit: ConnectionPermit,
        app_for: &Arc<F>,
        workers: &WorkerThreads,
    ) where
        F: Fn(ConnectionPeer) -> A + Send + Sync + 'static,
        A: Service<Request, Response = Response, Error = Infallible> + Clone + Send + 'static,
        A::Future: Send,
    {
        // A stream that does not take the option still works, only slower.
        let _ = stream.set_nodelay(true);
        // The worker's own runtime polls it from now on.
        let (Some((worker, slot)), Ok(stream)) = (workers.least_loaded(), stream.into_std()) else { return };
        let (open, workers, app_for) = (self.clone(), workers.clone(), Arc::clone(app_for));
        let connection = async move {
            if let Ok(stream) = TcpStream::from_std(stream)
                && let Some((stream, certified)) = open.transport(stream).await
            {
                let app = app_for(ConnectionPeer { address, certified });
                Box::pin(serve_connection(stream, app, workers, open)).await;
            }
            drop((slot, permit));
        };
        self.tasks.spawn_on(connection, worker);
    }

    /// Stream of a connection, after the TLS handshake if there is one, and the caller of its certificate.
    async fn transport(&self, stream: TcpStream) -> Option<(ServerStream, Option<Arc<Caller>>)> {
        let Some(tls) = &self.tls else { return Some((ServerStream::Plain(stream), None)) };
        let handshake = tokio::time::timeout(self.deadlines.head, tls.acceptor().accept(stream));
        let accepted = tokio::select! {
            accepted = handshake => accepted,
            () = self.stopping.cancelled() => return None,
        };
        match accepted {
            Ok(Ok(stream)) => {
                let caller = tls.caller_of(stream.get_ref().1.peer_certificates());
                Some((ServerStream::ClientTls(Box::new(stream)), caller.map(Arc::new)))
            }
            Ok(Err(error)) => {
                tracing::debug!("a TLS handshake failed: {error}");
                None
            }
            Err(_) => None,
        }
    }

    async fn close(&self) {
        self.is_stopping.store(true, Ordering::Release);
        self.stopping.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

/// Answers a connection beyond the maximum, as far as that needs no waiting.
fn reject(stream: &TcpStream, is_encrypted: bool) {
    if !is_encrypted {
        let _ = stream.try_write(TOO_MANY_CONNECTIONS_RESPONSE);
    }
}

/// True if only the client is gone.
fn is_client_gone(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

async fn serve_connection<A>(stream: ServerStream, app: A, workers: WorkerThreads, open: OpenConnections)
where
    A: Service<Request, Response = Response, Error = Infallible> + Clone + Send + 'static,
    A::Future: Send,
{
    let activity = Arc::<ConnectionActivity>::default();
    let stream = TokioIo::new(ObservedStream::new(stream, Arc::clone(&activity)));
    let mut watch = DeadlineWatch::new(Arc::clone(&activity), open.deadlines);
    let (body_limit, tasks) = (open.deadlines.body, open.tasks.clone());
    let (closing, http2) = (Arc::clone(&open.closing), Arc::clone(&activity));
    // The service is always ready, so it is not polled for readiness.
    let app = service_fn(move |request: http::Request<Incoming>| {
        let in_flight = activity.begin(request.version());
        let has_rest = request.version() == Version::HTTP_2 && !request.body().is_end_stream();
        let unread = has_rest.then(Arc::<UnreadBody>::default);
        let timed = |body| {
            let body = TimedBody::new(body, body_limit, Arc::clone(&activity));
            Body::new(match &unread {
                Some(unread) => body.with_rest_to(Arc::clone(unread)),
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
            yield_once().await;
            Ok::<_, Infallible>(finish_response(answer, in_flight, closing.load(Ordering::Relaxed)))
        }
    });
    let builder = builder(workers);
    let mut connection = pin!(builder.serve_connection(stream, app));
    let (mut stopping, mut is_registered, mut is_closing) = (pin!(open.stopping.cancelled()), false, false);
    let served = poll_fn(|cx| {
        // Polled once, to be woken. Polled with each connection's every wakeup, it would be a lock that all share.
        if !is_registered {
            is_registered = true;
            let _ = stopping.as_mut().poll(cx);
        }
        let is_stopping = open.is_stopping.load(Ordering::Acquire)
            || open.closing.load(Ordering::Relaxed) && http2.is_http2();
        if !is_closing && is_stopping {
            is_closing = true;
            connection.as_mut().graceful_shutdown();
        }
        match watch.poll(cx) {
            DeadlineAction::Keep => {}
            DeadlineAction::Close => connection.as_mut().graceful_shutdown(),
            DeadlineAction::Abort => return Poll::Ready(Ok(())),
        }
        connection.as_mut().poll(cx)
    });
    if let Err(error) = served.await {
        tracing::trace!("a connection ended: {error}");
    }
}

/// Protocol settings. The deadlines of HTTP/1 are [`DeadlineWatch`]'s: hyper's own would make a timer for each request.
fn builder(workers: WorkerThreads) -> Builder<WorkerThreads> {
    let mut builder = Builder::new(workers);
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

/// Finishes a response: `Retry-After` where it is missing, and `Connection: close` while the server is closing. Its request is in flight
/// until it is sent.
fn finish_response(
    mut answer: Response,
    in_flight: InFlightRequest,
    is_closing: bool,
) -> http::Response<GuardedBody<InFlightRequest>> {
    if in_flight.0.is_body_late.load(Ordering::Relaxed) {
        in_flight.0.is_body_late.store(false, Ordering::Relaxed);
        let message = "the body did not arrive in time; send it faster, or raise [server] body_timeout_ms";
        answer = Rejection::new(StatusCode::REQUEST_TIMEOUT, "body-timeout", message).into_response();
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
    use super::TOO_MANY_CONNECTIONS_RESPONSE;

    #[test]
    fn the_answer_to_one_connection_too_many_is_as_long_as_it_says() {
        let text = std::str::from_utf8(TOO_MANY_CONNECTIONS_RESPONSE).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("Content-Length: {}", body.len())), "{} bytes", body.len());
        assert!(serde_json::from_str::<serde_json::Value>(body).is_ok());
    }
}
