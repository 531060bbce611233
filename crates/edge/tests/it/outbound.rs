use std::{sync::atomic::Ordering, time::Duration};

use axum::{Router, body::Body, routing};
use bytes::Bytes;
use futures::stream;
use http::{HeaderValue, Method, StatusCode, header};
use rialto_http_client::{
    Config, HttpClient,
    address::Reach,
    fetch::{Fetch, FetchError, FetchRequest},
};
use tokio::{io::AsyncWriteExt, sync::mpsc};

use crate::server::{Server, client, fetch, get, read_head, text};

fn echo() -> Router {
    Router::new().route("/", routing::get("hello").post(|body: String| async { body }))
}

/// A body in two pieces with a pause between them.
fn slow_body(pause: Duration) -> Body {
    Body::from_stream(stream::unfold(0, move |n| async move {
        if n == 1 {
            tokio::time::sleep(pause).await;
        }
        (n < 2).then(|| (Ok::<_, std::io::Error>(Bytes::from_static(b"piece ")), n + 1))
    }))
}

async fn stalling() -> Server {
    let never = || async { std::future::pending::<()>().await };
    let slow = || async { slow_body(Duration::from_secs(60)) };
    Server::start(Router::new().route("/never", routing::get(never)).route("/slow", routing::get(slow))).await
}

#[tokio::test]
async fn a_body_comes_back_whole() {
    let server = Server::start(echo()).await;
    let mut request = FetchRequest::new(Method::POST, server.uri("/"));
    request.reach = Reach::Private;
    request.body = Bytes::from_static(b"there and back");
    assert_eq!(text(fetch(request).await.unwrap()).await, "there and back");
}

/// The body "there and back" as gzip has it.
fn gzipped() -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    std::io::Write::write_all(&mut encoder, b"there and back").unwrap();
    encoder.finish().unwrap()
}

#[tokio::test]
async fn gzip_is_asked_for_and_read() {
    let packed = |headers: http::HeaderMap| async move {
        assert_eq!(headers["accept-encoding"], "gzip");
        ([(http::header::CONTENT_ENCODING, "gzip")], gzipped())
    };
    let cut = || async {
        let mut bytes = gzipped();
        bytes.truncate(bytes.len() - 9);
        ([(http::header::CONTENT_ENCODING, "gzip")], bytes)
    };
    let router = Router::new().route("/", routing::get(packed)).route("/cut", routing::get(cut));
    let server = Server::start(router).await;
    let answer = fetch(get(server.uri("/"))).await.unwrap();
    assert!(!answer.headers.contains_key("content-encoding"));
    assert_eq!(text(answer).await, "there and back");
    let cut = fetch(get(server.uri("/cut"))).await.unwrap().body.read().await.unwrap_err();
    assert_eq!(cut, FetchError::Broken("the compressed answer is damaged or cut off".into()));
}

#[tokio::test]
async fn a_gzip_body_may_not_become_larger_than_the_limit() {
    let packed = || async {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        std::io::Write::write_all(&mut encoder, &vec![0; 1 << 20]).unwrap();
        ([(http::header::CONTENT_ENCODING, "gzip")], encoder.finish().unwrap())
    };
    let server = Server::start(Router::new().route("/", routing::get(packed))).await;
    let mut request = get(server.uri("/"));
    request.limit = Some(100_000);
    let error = fetch(request).await.unwrap().body.read().await.unwrap_err();
    assert_eq!(error, FetchError::TooLarge(100_000));
}

#[tokio::test]
async fn connections_are_kept_for_the_next_request() {
    let server = Server::start(echo()).await;
    let client = client();
    for _ in 0..5 {
        text(client.fetch(get(server.uri("/"))).await.unwrap()).await;
    }
    assert_eq!(server.connections.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_request_names_its_path_first_and_its_host_in_a_header() {
    let (tell, mut told) = mpsc::unbounded_channel();
    let server = Server::handling(move |mut stream| {
        let tell = tell.clone();
        async move {
            while let Some(head) = read_head(&mut stream).await {
                tell.send(head).unwrap();
                stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.unwrap();
            }
        }
    })
    .await;
    let client = client();
    for (path, line) in
        [("", "GET / HTTP/1.1"), ("?y", "GET /?y HTTP/1.1"), ("/x?y=z", "GET /x?y=z HTTP/1.1")]
    {
        client.fetch(get(server.uri(path))).await.unwrap();
        let head = told.recv().await.unwrap();
        let named = format!("\r\nhost: {}\r\n", server.address);
        assert!(head.starts_with(&format!("{line}\r\n")) && head.contains(&named), "{head}");
    }
    let given = HeaderValue::from_static("given.example");
    client.fetch(get(server.uri("/")).header(header::HOST, given)).await.unwrap();
    let head = told.recv().await.unwrap();
    assert!(head.contains("\r\nhost: given.example\r\n") && head.matches("host: ").count() == 1, "{head}");
}

#[tokio::test]
async fn a_private_address_is_refused_unless_it_is_meant() {
    let server = Server::start(echo()).await;
    let client = client();
    text(client.fetch(get(server.uri("/"))).await.unwrap()).await;
    // The connection of the first request is still open; the second must not find it.
    let mut request = get(server.uri("/"));
    request.reach = Reach::Public;
    let error = client.fetch(request).await.unwrap_err();
    assert!(error.is_surely_not_sent());
    assert_eq!(
        error.to_string(),
        "127.0.0.1 is a loopback address; allow private addresses for this agent to call it"
    );
}

#[tokio::test]
async fn a_name_that_resolves_to_a_private_address_is_refused() {
    for host in ["localhost", "127.1", "[::1]", "[::ffff:127.0.0.1]", "0x7f000001"] {
        let request = FetchRequest::new(Method::GET, format!("http://{host}:9/").parse().unwrap());
        let error = fetch(request).await.unwrap_err();
        assert!(matches!(error, FetchError::Forbidden(_)), "{host}: {error}");
    }
}

#[tokio::test]
async fn only_http_without_a_password_is_called() {
    for uri in ["ftp://127.0.0.1/", "http://user:pass@127.0.0.1/", "/relative"] {
        let error = fetch(get(uri.parse().unwrap())).await.unwrap_err();
        assert!(matches!(error, FetchError::Forbidden(_)), "{uri}: {error}");
    }
}

#[tokio::test]
async fn a_refused_connection_is_described() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error = fetch(get(format!("http://{free}/").parse().unwrap())).await.unwrap_err();
    assert!(error.is_surely_not_sent());
    assert_eq!(error.to_string(), format!("connection refused by {free}"));
}

#[tokio::test]
async fn an_unknown_name_is_described() {
    let error = fetch(get("http://nobody.invalid/".parse().unwrap())).await.unwrap_err();
    assert_eq!(error, FetchError::NotSent("no address is known for nobody.invalid".into()));
}

#[tokio::test]
async fn a_server_that_does_not_answer_times_out() {
    let mut request = get(stalling().await.uri("/never"));
    request.patience = Duration::from_millis(50);
    assert_eq!(fetch(request).await.unwrap_err().to_string(), "took longer than 50 ms to answer");
}

#[tokio::test]
async fn a_body_that_stalls_times_out() {
    let mut request = get(stalling().await.uri("/slow"));
    request.patience = Duration::from_millis(100);
    let mut body = fetch(request).await.unwrap().body;
    assert_eq!(body.chunk().await.unwrap().unwrap(), "piece ");
    assert_eq!(body.chunk().await.unwrap_err(), FetchError::Timeout(Duration::from_millis(100)));
}

#[tokio::test]
async fn the_whole_exchange_has_a_deadline_of_its_own() {
    let mut request = get(stalling().await.uri("/slow"));
    request.total = Some(Duration::from_millis(100));
    let error = fetch(request).await.unwrap().body.read().await.unwrap_err();
    assert_eq!(error, FetchError::Timeout(Duration::from_millis(100)));
}

#[tokio::test]
async fn an_answer_may_be_as_large_as_the_limit_and_no_larger() {
    let announced = || async { "x".repeat(1000) };
    let streamed = || async { slow_body(Duration::ZERO) };
    let routes = Router::new().route("/a", routing::get(announced)).route("/s", routing::get(streamed));
    let server = Server::start(routes).await;
    for (path, size) in [("/a", 1000), ("/s", 12)] {
        for (limit, fits) in [(size, true), (size - 1, false)] {
            let mut request = get(server.uri(path));
            request.limit = Some(limit);
            let read = fetch(request).await.unwrap().body.read().await;
            assert_eq!(read.is_ok(), fits, "{path} with {limit}: {read:?}");
        }
    }
}

#[tokio::test]
async fn a_client_has_a_limit_for_all_answers() {
    let server = Server::start(Router::new().route("/", routing::get(|| async { "x".repeat(1000) }))).await;
    let client = HttpClient::new(&Config { max_response_bytes: 999, ..Config::default() });
    let answer = client.fetch(get(server.uri("/"))).await.unwrap();
    assert_eq!(answer.body.read().await.unwrap_err(), FetchError::TooLarge(999));
}

#[tokio::test]
async fn a_server_that_closes_the_connection_may_have_received_the_request() {
    let server = Server::raw(b"").await;
    let error = fetch(get(server.uri("/"))).await.unwrap_err();
    assert!(matches!(error, FetchError::Broken(_)), "{error:?}");
    assert!(!error.is_surely_not_sent());
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_not_taken_for_whole() {
    let server = Server::raw(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nonly this").await;
    let answer = fetch(get(server.uri("/"))).await.unwrap();
    assert_eq!(answer.status, StatusCode::OK);
    assert!(matches!(answer.body.read().await, Err(FetchError::Broken(_))));
}
