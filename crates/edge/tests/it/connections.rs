//! Connections whose clients are silent, slow, or too many.

use std::{
    convert::Infallible,
    num::NonZero,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::{Router, body::Body, response::IntoResponse, routing};
use bytes::Bytes;
use futures::{StreamExt, stream};
use http::StatusCode;
use http_body_util::Empty;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rialto_http_server::{
    listener::{ConnectionLimits, Connections, Deadlines, HttpListener, PerAddress},
    worker_threads::WorkerThreads,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::{Instant, timeout},
};

/// Timeout of tests, longer than any deadline here.
const PATIENCE: Duration = Duration::from_secs(20);

const SHORT: Duration = Duration::from_millis(200);
const LONG: Duration = Duration::from_secs(600);

const UNLIMITED: ConnectionLimits = ConnectionLimits { max: usize::MAX, per_address: PerAddress::Unlimited };

/// Server with deadlines and limits.
struct TestServer {
    address: std::net::SocketAddr,
    connections: Arc<Connections>,
    closing: Arc<AtomicBool>,
}

// === impl TestServer ===

impl TestServer {
    async fn with(deadlines: Deadlines, limits: ConnectionLimits) -> Self {
        let closing = Arc::<AtomicBool>::default();
        let listener = HttpListener::open("127.0.0.1:0").await.unwrap().with_limits(deadlines, limits);
        let listener = listener.with_closing_flag(Arc::clone(&closing));
        let (address, connections) = (listener.address(), listener.connections());
        let endless = || async {
            let pieces = stream::once(async { Ok::<_, Infallible>(Bytes::from_static(b"first\n")) });
            Body::from_stream(pieces.chain(stream::pending()))
        };
        let large = || async {
            Body::from_stream(stream::repeat_with(|| Ok::<_, Infallible>(Bytes::from(vec![b'x'; 1 << 16]))))
        };
        let app = Router::new()
            .route("/", routing::any(|body: Bytes| async move { body.len().to_string() }))
            .route("/later", routing::get(|| async { StatusCode::SERVICE_UNAVAILABLE }))
            .route(
                "/told",
                routing::get(|| async {
                    (StatusCode::TOO_MANY_REQUESTS, [("retry-after", "7")]).into_response()
                }),
            )
            .route("/endless", routing::get(endless))
            .route("/large", routing::get(large));
        let workers = WorkerThreads::start(NonZero::new(2).unwrap()).unwrap();
        tokio::spawn(listener.serve(move |_| app.clone(), workers, std::future::pending()));
        Self { address, connections, closing }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Opens a connection and sends this.
    async fn sending(&self, bytes: &str) -> TcpStream {
        let mut stream = self.connect().await;
        stream.write_all(bytes.as_bytes()).await.unwrap();
        stream
    }
}

/// Everything that comes until the server hangs up, and how long that takes.
async fn rest(stream: &mut TcpStream) -> (String, Duration) {
    let (begun, mut bytes) = (Instant::now(), Vec::new());
    // A server that hangs up on unread bytes resets the connection.
    let ended = timeout(PATIENCE, stream.read_to_end(&mut bytes)).await;
    assert!(ended.is_ok(), "the server does not hang up");
    (String::from_utf8(bytes).unwrap(), begun.elapsed())
}

/// The head and body of one response on a connection that stays open.
async fn answer(stream: &mut TcpStream, last: &str) -> String {
    let mut text = String::new();
    while !text.ends_with(last) {
        text.push(char::from(timeout(PATIENCE, stream.read_u8()).await.unwrap().unwrap()));
    }
    text
}

const fn slow_except_head() -> Deadlines {
    Deadlines { head: SHORT, body: LONG, idle: LONG, write: LONG }
}

#[tokio::test]
async fn each_connection_stays_with_a_thread_unless_all_share_one_runtime() {
    let pinned = WorkerThreads::start(NonZero::new(2).unwrap()).unwrap();
    let shared = WorkerThreads::shared(tokio::runtime::Handle::current());
    for (workers, connections) in [(pinned, vec![1, 1]), (shared, vec![2])] {
        let listener = HttpListener::open("127.0.0.1:0").await.unwrap();
        let address = listener.address();
        let app = Router::new().route("/", routing::any(|| async { "0" }));
        tokio::spawn(listener.serve(move |_| app.clone(), workers.clone(), std::future::pending()));
        let mut streams =
            [TcpStream::connect(address).await.unwrap(), TcpStream::connect(address).await.unwrap()];
        for stream in &mut streams {
            stream.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
            answer(stream, "\r\n\r\n0").await;
        }
        assert_eq!(workers.connections(), connections);
    }
}

#[tokio::test]
async fn a_silent_connection_is_closed() {
    let server = TestServer::with(slow_except_head(), UNLIMITED).await;
    let (text, after) = rest(&mut server.connect().await).await;
    assert_eq!(text, "");
    assert!(after >= SHORT, "{after:?}");
    // The client reads the end of the connection just before the server counts it.
    let counted = async {
        while server.connections.open() > 0 {
            tokio::time::sleep(SHORT / 20).await;
        }
    };
    tokio::time::timeout(PATIENCE, counted).await.unwrap();
}

#[tokio::test]
async fn half_a_request_line_is_not_waited_for() {
    let server = TestServer::with(slow_except_head(), UNLIMITED).await;
    assert_eq!(rest(&mut server.sending("GET / HT").await).await.0, "");
    // The preface of HTTP/2 and nothing after it is no request either.
    let (text, _) = rest(&mut server.sending("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await).await;
    assert!(!text.contains("HTTP/1.1"), "{text}");
}

#[tokio::test]
async fn headers_that_never_end_are_not_waited_for() {
    let server = TestServer::with(slow_except_head(), UNLIMITED).await;
    let mut stream = server.sending("GET / HTTP/1.1\r\nhost: localhost\r\n").await;
    let begun = Instant::now();
    // Each arrives well within the deadline; all of them together do not.
    while stream.write_all(b"x-more: 1\r\n").await.is_ok() && begun.elapsed() < PATIENCE {
        tokio::time::sleep(SHORT / 10).await;
    }
    assert!(begun.elapsed() < PATIENCE / 2, "the server hangs up");
}

#[tokio::test]
async fn the_second_head_of_a_connection_has_the_same_deadline() {
    let server = TestServer::with(slow_except_head(), UNLIMITED).await;
    let mut stream = server.sending("GET / HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    answer(&mut stream, "\r\n\r\n0").await;
    // Idle for longer than a head may take: that is another deadline.
    assert!(timeout(3 * SHORT, stream.read_u8()).await.is_err(), "it stays open");
    stream.write_all(b"GET / HT").await.unwrap();
    assert_eq!(rest(&mut stream).await.0, "");
}

#[tokio::test]
async fn an_idle_connection_is_closed_and_one_with_a_stream_is_not() {
    let deadlines = Deadlines { head: LONG, body: LONG, idle: SHORT, write: LONG };
    let server = TestServer::with(deadlines, UNLIMITED).await;
    let mut streaming = server.sending("GET /endless HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    answer(&mut streaming, "first\n\r\n").await;
    let mut idle = server.sending("GET / HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    answer(&mut idle, "\r\n\r\n0").await;
    let (text, after) = rest(&mut idle).await;
    assert_eq!(text, "");
    assert!(after >= SHORT / 2, "{after:?}");
    assert!(timeout(5 * SHORT, streaming.read_u8()).await.is_err(), "the stream goes on");
}

#[tokio::test]
async fn a_body_that_comes_too_slowly_is_refused() {
    let deadlines = Deadlines { head: LONG, body: SHORT, idle: LONG, write: LONG };
    let server = TestServer::with(deadlines, UNLIMITED).await;
    let mut whole =
        server.sending("POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 3\r\n\r\nabc").await;
    assert!(answer(&mut whole, "\r\n\r\n3").await.starts_with("HTTP/1.1 200"));
    let head = "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000\r\n\r\nabc";
    let mut slow = server.sending(head).await;
    let (text, after) = rest(&mut slow).await;
    assert!(text.starts_with("HTTP/1.1 408") && text.contains("body_timeout_ms"), "{text}");
    assert!(after >= SHORT, "{after:?}");
    // Bytes one by one do not help.
    let mut slow = server.sending(head).await;
    let begun = Instant::now();
    while slow.write_all(b"x").await.is_ok() && begun.elapsed() < PATIENCE {
        tokio::time::sleep(SHORT / 10).await;
    }
    assert!(begun.elapsed() < PATIENCE / 2, "the server hangs up");
}

#[tokio::test]
async fn a_response_that_is_not_read_ends_its_connection() {
    let deadlines = Deadlines { head: LONG, body: LONG, idle: LONG, write: SHORT };
    let server = TestServer::with(deadlines, UNLIMITED).await;
    let _silent = server.sending("GET /large HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    let gone = async {
        while server.connections.open() == 0 {
            tokio::time::sleep(SHORT / 20).await;
        }
        while server.connections.open() > 0 {
            tokio::time::sleep(SHORT / 20).await;
        }
    };
    timeout(PATIENCE, gone).await.expect("the connection ends");
}

#[tokio::test]
async fn a_connection_beyond_the_maximum_gets_retry_after() {
    let limits = ConnectionLimits { max: 3, per_address: PerAddress::Unlimited };
    let server = TestServer::with(Deadlines { idle: LONG, ..slow_except_head() }, limits).await;
    let request = "GET / HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let mut kept = server.sending(request).await;
    answer(&mut kept, "\r\n\r\n0").await;
    let _silent = [server.connect().await, server.connect().await];
    let mut refused = server.connect().await;
    let (text, _) = rest(&mut refused).await;
    assert!(text.starts_with("HTTP/1.1 503") && text.contains("Retry-After: 1\r\n"), "{text}");
    assert!(server.connections.refused() >= 1);
    kept.write_all(request.as_bytes()).await.unwrap();
    assert!(answer(&mut kept, "\r\n\r\n0").await.starts_with("HTTP/1.1 200"), "those who are in stay in");
    // The silent ones are closed in time, and there is room again.
    let served = async {
        loop {
            let mut next = server.connect().await;
            let _ = next.write_all(request.as_bytes()).await;
            let mut first = [0; 12];
            if next.read_exact(&mut first).await.is_ok() && &first == b"HTTP/1.1 200" {
                return;
            }
        }
    };
    timeout(PATIENCE, served).await.expect("there is room again");
}

#[tokio::test]
async fn one_address_has_its_own_maximum() {
    let limits = ConnectionLimits { max: 100, per_address: PerAddress::Max(2) };
    let server = TestServer::with(slow_except_head(), limits).await;
    let _silent = [server.connect().await, server.connect().await];
    assert!(rest(&mut server.connect().await).await.0.starts_with("HTTP/1.1 503"));
    // Another address of this machine has its own.
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.2:0".parse().unwrap()).unwrap();
    let mut other = socket.connect(server.address).await.unwrap();
    other.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    assert!(answer(&mut other, "\r\n\r\n0").await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn every_answer_that_says_later_says_when() {
    let server = TestServer::with(Deadlines::default(), UNLIMITED).await;
    for (path, expected) in [("/later", "retry-after: 1\r\n"), ("/told", "retry-after: 7\r\n")] {
        let mut stream = server.sending(&format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n")).await;
        let head = answer(&mut stream, "\r\n\r\n").await;
        assert!(head.contains(expected), "{head}");
    }
    let mut fine = server.sending("GET / HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    assert!(!answer(&mut fine, "\r\n\r\n").await.contains("retry-after"));
}

#[tokio::test]
async fn a_server_that_is_about_to_stop_answers_and_then_closes_each_connection() {
    const REQUEST: &str = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let served = TestServer::with(Deadlines::default(), UNLIMITED).await;
    let mut stream = served.sending(REQUEST).await;
    let before = answer(&mut stream, "\r\n\r\n0").await;
    assert!(!before.to_ascii_lowercase().contains("connection: close"), "{before}");
    served.closing.store(true, Ordering::Relaxed);
    // A request may be on its way on a connection that is idle, so it is still answered.
    stream.write_all(REQUEST.as_bytes()).await.unwrap();
    let (last, _) = rest(&mut stream).await;
    assert!(last.starts_with("HTTP/1.1 200") && last.contains("connection: close"), "{last}");
}

#[tokio::test]
async fn a_server_that_is_about_to_stop_ends_connections_of_http2_after_their_open_requests() {
    let served = TestServer::with(Deadlines::default(), UNLIMITED).await;
    let stream = TokioIo::new(served.connect().await);
    let (mut sender, connection) =
        http2::handshake::<_, _, Empty<Bytes>>(TokioExecutor::new(), stream).await.unwrap();
    let ended = tokio::spawn(connection);
    let request = || http::Request::get("http://localhost/").body(Empty::new()).unwrap();
    assert_eq!(sender.send_request(request()).await.unwrap().status(), StatusCode::OK);
    assert!(!ended.is_finished());
    served.closing.store(true, Ordering::Relaxed);
    assert_eq!(sender.send_request(request()).await.unwrap().status(), StatusCode::OK);
    // The client was told to go away, so the connection ends by itself.
    assert!(timeout(PATIENCE, ended).await.unwrap().unwrap().is_ok());
}
