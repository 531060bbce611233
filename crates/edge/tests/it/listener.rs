use std::{collections::BTreeSet, num::NonZero, sync::Arc};

use axum::{Router, routing};
use http::{HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use rialto_http_client::{
    address::Reach,
    fetch::{Fetch, FetchRequest},
};
use rialto_http_server::{
    admission::AdmissionLayer, auth::Authentication, host_check::HostCheck, listener::HttpListener,
    worker_threads::WorkerThreads,
};
use rialto_model::call::Caller;
use tokio::{io::AsyncWriteExt, net::TcpStream};

use crate::server::{Server, client, fetch, get, read_head, text};

async fn guarded(hosts: &[&str]) -> Server {
    let hosts: Vec<_> = hosts.iter().map(|&host| host.to_owned()).collect();
    let router = Router::new().route("/", routing::any(|body: String| async move { body.len().to_string() }));
    let open = Authentication::Open(Caller::user("me"));
    Server::start(router.layer(AdmissionLayer::new(HostCheck::new(&hosts, 10), open))).await
}

/// The status line that answers `request`, as it stands.
async fn status_of(server: &Server, request: &str) -> String {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    read_head(&mut stream).await.unwrap().lines().next().unwrap().to_owned()
}

async fn status_with(server: &Server, name: HeaderName, value: &'static str) -> StatusCode {
    fetch(get(server.uri("/")).header(name, HeaderValue::from_static(value))).await.unwrap().status
}

#[tokio::test]
async fn a_request_for_another_host_is_rejected() {
    let server = guarded(&[]).await;
    assert_eq!(fetch(get(server.uri("/"))).await.unwrap().status, StatusCode::OK);
    for (host, status) in [
        ("localhost:7777", StatusCode::OK),
        ("LOCALHOST", StatusCode::OK),
        ("[::1]:80", StatusCode::OK),
        ("evil.example", StatusCode::MISDIRECTED_REQUEST),
        ("localhost.evil.example", StatusCode::MISDIRECTED_REQUEST),
    ] {
        assert_eq!(status_with(&server, header::HOST, host).await, status, "{host}");
    }
}

#[tokio::test]
async fn a_page_of_another_origin_is_rejected() {
    let server = guarded(&["Bridge.Example:443"]).await;
    for (origin, status) in [
        ("https://bridge.example", StatusCode::OK),
        ("https://BRIDGE.example:443", StatusCode::OK),
        ("https://BRIDGE.example:8443", StatusCode::FORBIDDEN),
        ("https://evil.example", StatusCode::FORBIDDEN),
        ("null", StatusCode::FORBIDDEN),
    ] {
        assert_eq!(status_with(&server, header::ORIGIN, origin).await, status, "{origin}");
    }
}

#[tokio::test]
async fn without_authentication_a_page_of_another_local_port_is_rejected_unless_it_is_configured() {
    let (server, configured) = (guarded(&[]).await, guarded(&["localhost:3000", "tools.example"]).await);
    let own = format!("http://localhost:{}", server.address.port());
    for (server, origin, status) in [
        (&server, own.leak() as &'static str, StatusCode::OK),
        (&server, "http://localhost:3000", StatusCode::FORBIDDEN),
        (&server, "http://127.0.0.1", StatusCode::FORBIDDEN),
        (&configured, "http://localhost:3000", StatusCode::OK),
        (&configured, "http://localhost:3001", StatusCode::FORBIDDEN),
        (&configured, "http://tools.example:7000", StatusCode::OK),
    ] {
        assert_eq!(status_with(server, header::ORIGIN, origin).await, status, "{origin}");
    }
}

#[tokio::test]
async fn a_server_for_every_name_answers_to_every_name() {
    let server = guarded(&["*"]).await;
    assert_eq!(status_with(&server, header::HOST, "anything.example").await, StatusCode::OK);
}

#[tokio::test]
async fn a_body_over_the_limit_is_rejected() {
    let server = guarded(&[]).await;
    for (body, status) in [("0123456789", StatusCode::OK), ("0123456789a", StatusCode::PAYLOAD_TOO_LARGE)] {
        let mut request = FetchRequest::new(Method::POST, server.uri("/"));
        request.reach = Reach::Private;
        request.body = body.into();
        assert_eq!(fetch(request).await.unwrap().status, status, "{body}");
    }
}

#[tokio::test]
async fn a_body_of_unknown_length_is_cut_off_at_the_limit() {
    let server = guarded(&[]).await;
    let start = "POST / HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n";
    let fits = format!("{start}\r\na\r\n0123456789\r\n0\r\n\r\n");
    assert_eq!(status_of(&server, &fits).await, "HTTP/1.1 200 OK");
    for claim in ["", "content-length: 3\r\n"] {
        let over = format!("{start}{claim}\r\nb\r\n0123456789a\r\n0\r\n\r\n");
        assert_eq!(status_of(&server, &over).await, "HTTP/1.1 413 Payload Too Large", "{claim}");
    }
}

#[tokio::test]
async fn a_refusal_names_the_fix() {
    let server = guarded(&[]).await;
    let host = HeaderValue::from_static("evil.example");
    let answer = fetch(get(server.uri("/")).header(header::HOST, host)).await.unwrap();
    assert_eq!(answer.headers[header::CONTENT_TYPE], "application/json");
    assert_eq!(
        text(answer).await,
        r#"{"error":"host-not-allowed","message":"this server does not answer to that Host; add the name to `allowed_hosts`"}"#
    );
}

#[tokio::test]
async fn a_listener_that_stops_answers_requests_in_progress() {
    let listener = HttpListener::open("127.0.0.1:0").await.unwrap();
    let uri = format!("http://{}/", listener.address()).parse().unwrap();
    let begun = Arc::new(tokio::sync::Notify::new());
    let begins = Arc::clone(&begun);
    let slow = move || async move {
        begun.notify_one();
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        "done"
    };
    let slow = Router::new().route("/", routing::get(slow));
    let serving = tokio::spawn(
        listener.serve(move |_| slow.clone(), workers(1), async move { begins.notified().await }),
    );
    assert_eq!(text(client().fetch(get(uri)).await.unwrap()).await, "done");
    serving.await.unwrap();
}

fn workers(number: usize) -> WorkerThreads {
    WorkerThreads::start(NonZero::new(number).unwrap()).unwrap()
}

/// A server on two lanes that answers every request with the name of the thread that it was answered on.
async fn naming_its_threads() -> Uri {
    let listener = HttpListener::open("127.0.0.1:0").await.unwrap();
    let uri = format!("http://{}/", listener.address()).parse().unwrap();
    let name = || async { std::thread::current().name().unwrap_or_default().to_owned() };
    let app = Router::new().route("/", routing::any(name));
    tokio::spawn(
        async move { listener.serve(move |_| app.clone(), workers(2), std::future::pending()).await },
    );
    uri
}

#[tokio::test]
async fn a_connection_stays_with_its_thread_and_the_next_one_goes_to_another() {
    let uri = naming_its_threads().await;
    let (first, second) = (client(), client());
    let mut met = Vec::new();
    for client in [&first, &second, &first, &second] {
        met.push(text(client.fetch(get(uri.clone())).await.unwrap()).await);
    }
    assert_eq!(met, ["rialto-worker-0", "rialto-worker-1", "rialto-worker-0", "rialto-worker-1"]);
}

#[tokio::test]
async fn the_requests_of_one_http2_connection_are_shared_out() {
    let uri = naming_its_threads().await;
    let client = client();
    let mut met = BTreeSet::new();
    for _ in 0..2 {
        let request = FetchRequest { http2: true, ..get(uri.clone()) };
        met.insert(text(client.fetch(request).await.unwrap()).await);
    }
    assert_eq!(met.into_iter().collect::<Vec<_>>(), ["rialto-worker-0", "rialto-worker-1"]);
}

#[tokio::test]
async fn a_taken_address_is_named() {
    let listener = HttpListener::open("127.0.0.1:0").await.unwrap();
    let address = listener.address().to_string();
    let error = HttpListener::open(&address).await.err().unwrap();
    assert!(error.to_string().contains(&address));
}
