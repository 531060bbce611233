//! A server on loopback that speaks HTTP+SSE and nothing else.

use std::{collections::BTreeMap, convert::Infallible, sync::Arc};

use axum::{Router, body::Body, extract::State, response::IntoResponse, routing::get};
use bytes::Bytes;
use futures::{FutureExt, future, stream};
use http::{HeaderMap, Method, StatusCode, Uri, header};
use parking_lot::Mutex;
use rialto_http_client::{Config, HttpClient};
use rialto_model::{
    backing::{BackingEndpoint, BackingTransport, McpServerBacking, TransportSetting},
    ids::Scope,
};
use rialto_process::Launcher;
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::mpsc};

use super::*;
use crate::backend::{
    McpBackendDeps, ServerKey,
    connection::{McpConnection, ServerCompat},
    event_stream::MAX_EVENT_BYTES,
};

/// A server that has one tool, `echo`, and one stream at a time.
#[derive(Clone)]
struct SseServer(Arc<Mutex<ServerState>>);

struct ServerState {
    /// Data of the `endpoint` event.
    endpoint: String,
    /// Status of POSTs to the endpoint.
    post_status: StatusCode,
    /// Whether requests are accepted and never answered.
    is_silent: bool,
    /// Sends to the open stream; dropping it ends the stream.
    stream: Option<mpsc::UnboundedSender<String>>,
    /// Each request: method, path and `x-key` header.
    requests: Vec<String>,
}

// === impl SseServer ===

impl SseServer {
    /// Starts it; its address is the second value.
    async fn start(endpoint: &str) -> (Self, String) {
        let state = ServerState {
            endpoint: endpoint.to_owned(),
            post_status: StatusCode::ACCEPTED,
            is_silent: false,
            stream: None,
            requests: Vec::new(),
        };
        let server = Self(Arc::new(Mutex::new(state)));
        let app = Router::new()
            .route("/sse", get(Self::open).fallback(Self::refuse))
            .route("/messages", axum::routing::post(Self::take))
            .fallback(Self::refuse)
            .with_state(server.clone());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, app).await });
        (server, address)
    }

    fn note(&self, method: &Method, uri: &Uri, headers: &HeaderMap) {
        let key = headers.get("x-key").map_or("-", |key| key.to_str().unwrap());
        self.0.lock().requests.push(format!("{method} {uri} {key}"));
    }

    async fn refuse(State(server): State<Self>, method: Method, uri: Uri, headers: HeaderMap) -> StatusCode {
        server.note(&method, &uri, &headers);
        match uri.path() {
            "/sse" => StatusCode::METHOD_NOT_ALLOWED,
            "/locked" => StatusCode::UNAUTHORIZED,
            _ => StatusCode::NOT_FOUND,
        }
    }

    async fn open(State(server): State<Self>, uri: Uri, headers: HeaderMap) -> impl IntoResponse {
        server.note(&Method::GET, &uri, &headers);
        assert_eq!(headers[header::ACCEPT], "text/event-stream");
        let (sender, receiver) = mpsc::unbounded_channel();
        let mut state = server.0.lock();
        sender.send(format!("event: endpoint\ndata: {}\n\n", state.endpoint)).unwrap();
        state.stream = Some(sender);
        let events = stream::unfold(receiver, |mut receiver| async move {
            let event = receiver.recv().await?;
            Some((Ok::<_, Infallible>(Bytes::from(event)), receiver))
        });
        ([(header::CONTENT_TYPE, "text/event-stream; charset=utf-8")], Body::from_stream(events))
    }

    async fn take(
        State(server): State<Self>,
        uri: Uri,
        headers: HeaderMap,
        axum::Json(message): axum::Json<Value>,
    ) -> StatusCode {
        server.note(&Method::POST, &uri, &headers);
        let (status, is_silent) = {
            let state = server.0.lock();
            (state.post_status, state.is_silent)
        };
        let result = match message["method"].as_str() {
            Some("initialize") => json!({
                "protocolVersion": "2024-11-05", "capabilities": { "tools": {} },
                "serverInfo": { "name": "old", "version": "1" },
            }),
            Some("tools/list") => {
                json!({ "tools": [{ "name": "echo", "inputSchema": { "type": "object" } }] })
            }
            _ => json!({}),
        };
        if status.is_success() && !is_silent && !message["id"].is_null() {
            server.send(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }).to_string());
        }
        status
    }

    fn send(&self, data: &str) {
        // A comment and an event with CRLF line ends, as sse-starlette writes them.
        let _ = self
            .0
            .lock()
            .stream
            .as_ref()
            .unwrap()
            .send(format!(": hi\r\nevent: message\r\ndata: {data}\r\n\r\n"));
    }

    fn requests(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().requests)
    }
}

async fn open(url: &str, compat: &ServerCompat) -> Result<McpConnection, String> {
    let secrets: rialto_model::secret_templates::SecretResolver =
        Arc::new(|_| future::ready(Err("there are no secrets".to_owned())).boxed());
    let ports = McpBackendDeps {
        fetch: Arc::new(HttpClient::new(&Config::default())),
        launcher: Launcher::new(|_| None, Arc::clone(&secrets)),
        secrets,
        changed: Arc::new(|_, _| {}),
        sampler: Arc::new(|_, _, _| future::ready(Err("there is no model".to_owned())).boxed()),
    };
    let headers = BTreeMap::from([("x-key".to_owned(), TransportSetting::Text("k1".to_owned()))]);
    let via = BackingTransport::Http(BackingEndpoint { url: url.to_owned(), headers });
    let server = Arc::new(McpServerBacking { name: "old".to_owned(), via, sampling: None });
    let key = ServerKey { scope: Scope::default(), server, allow_private: true };
    McpConnection::open(&key, &ports, compat).await.map_err(|trouble| trouble.to_string())
}

async fn until_closed(connection: &McpConnection) {
    let closed = async {
        while connection.is_open() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(Duration::from_secs(20), closed).await.unwrap();
}

#[tokio::test]
async fn a_server_that_refuses_streamable_http_is_reached_over_http_sse_with_the_configured_headers() {
    let (server, address) = SseServer::start("/messages?session=7").await;
    let connection = open(&format!("{address}/sse"), &ServerCompat::default()).await.unwrap();
    assert_eq!(connection.card().await.unwrap().skills.len(), 1);
    let post = "POST /messages?session=7 k1";
    let expected = ["POST /sse k1", "POST /sse k1", "GET /sse k1", post, post, post];
    assert_eq!(server.requests(), expected, "discover, initialize, then the stream and three messages");
}

#[tokio::test]
async fn a_broken_stream_ends_the_connection_and_the_next_one_needs_no_detection() {
    let (server, address) = SseServer::start("/messages").await;
    let (url, compat) = (format!("{address}/sse"), ServerCompat::default());
    let connection = open(&url, &compat).await.unwrap();
    assert!(connection.is_open());
    server.0.lock().stream = None;
    until_closed(&connection).await;
    server.requests();
    let connection = open(&url, &compat).await.unwrap();
    assert_eq!(connection.card().await.unwrap().skills.len(), 1);
    assert_eq!(server.requests()[0], "GET /sse k1");
}

#[tokio::test]
async fn messages_are_never_posted_to_another_origin() {
    let (other, elsewhere) = SseServer::start("/messages").await;
    let (server, address) = SseServer::start(&format!("{elsewhere}/messages")).await;
    let refused = open(&format!("{address}/sse"), &ServerCompat::default()).await.err().unwrap();
    assert!(refused.contains("another origin"), "{refused}");
    assert_eq!(server.requests().len(), 3);
    assert_eq!(other.requests(), [""; 0]);
}

#[test]
fn an_endpoint_is_resolved_against_the_address_of_the_server() {
    let resolved =
        |reference| resolve_endpoint("https://a.example/x/sse", reference).map(|uri| uri.to_string());
    for (reference, expected) in [
        ("/messages/?s=1", "https://a.example/messages/?s=1"),
        ("messages", "https://a.example/x/messages"),
        ("?s=1", "https://a.example/x/sse?s=1"),
        ("https://a.example:443/m", "https://a.example/m"),
    ] {
        assert_eq!(resolved(reference).unwrap(), expected);
    }
    for foreign in ["http://a.example/m", "https://a.example:444/m", "//b.example/m", "https://a.example.b/m"]
    {
        assert!(matches!(resolved(foreign), Err(SseTransportError::ForeignEndpoint)), "{foreign}");
    }
}

#[tokio::test]
async fn an_address_that_serves_neither_transport_says_both_reasons() {
    let (server, address) = SseServer::start("/messages").await;
    let refused = open(&format!("{address}/nothing"), &ServerCompat::default()).await.err().unwrap();
    assert_eq!(
        refused,
        "it answered with HTTP status 404; it does not offer the older HTTP+SSE transport either: it answered with HTTP status 404"
    );
    assert_eq!(server.requests().len(), 3);
}

#[tokio::test]
async fn a_session_that_the_server_does_not_know_any_more_ends_the_connection() {
    let (server, address) = SseServer::start("/messages").await;
    let connection = open(&format!("{address}/sse"), &ServerCompat::default()).await.unwrap();
    server.0.lock().post_status = StatusCode::INTERNAL_SERVER_ERROR;
    let failed = connection.card().await.unwrap_err().to_string();
    assert!(failed.contains("it answered with HTTP status 500"), "{failed}");
    assert!(connection.is_open(), "an error of one request is not the end");
    server.0.lock().post_status = StatusCode::NOT_FOUND;
    connection.card().await.unwrap_err();
    until_closed(&connection).await;
}

#[tokio::test]
async fn an_event_beyond_the_limit_ends_the_connection() {
    let (server, address) = SseServer::start("/messages").await;
    let connection = open(&format!("{address}/sse"), &ServerCompat::default()).await.unwrap();
    server.send(&"no message".repeat(10));
    assert_eq!(connection.card().await.unwrap().skills.len(), 1, "what is no message is skipped");
    server.send(&"x".repeat(MAX_EVENT_BYTES + 1));
    until_closed(&connection).await;
}

#[tokio::test]
async fn a_request_under_way_fails_when_the_stream_breaks() {
    let (server, address) = SseServer::start("/messages").await;
    let connection = open(&format!("{address}/sse"), &ServerCompat::default()).await.unwrap();
    server.requests();
    server.0.lock().is_silent = true;
    let breaking = async {
        while server.0.lock().requests.is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        server.0.lock().stream = None;
    };
    let (listed, ()) =
        timeout(Duration::from_secs(20), future::join(connection.card(), breaking)).await.unwrap();
    assert_eq!(listed.unwrap_err().to_string(), "the connection broke before it had answered");
}

#[tokio::test]
async fn a_refused_credential_is_no_reason_to_try_the_older_transport() {
    let (server, address) = SseServer::start("/messages").await;
    let refused = open(&format!("{address}/locked"), &ServerCompat::default()).await.err().unwrap();
    assert_eq!(refused, "it answered with HTTP status 401");
    assert!(server.requests().iter().all(|request| request == "POST /locked k1"));
}
