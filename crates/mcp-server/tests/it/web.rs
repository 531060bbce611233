//! A client over HTTP, without a network: requests go straight into the router.

use axum::{Extension, Router, body::Body};
use http::{Method, Request, StatusCode};
use http_body_util::BodyExt;
use rialto_model::call::Caller;
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::{
    house::{House, ann, within},
    lines::modern,
};

/// A web client and what it has in mind.
#[derive(Clone)]
pub(crate) struct Web {
    pub(crate) router: Router,
    pub(crate) path: String,
    pub(crate) client: &'static str,
    pub(crate) session: Option<String>,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) kind: String,
    pub(crate) session: Option<String>,
    /// The messages of a stream, or the one message of a plain answer.
    pub(crate) messages: Vec<Value>,
    pub(crate) text: String,
}

/// A stream that is still open.
pub(crate) struct Open {
    body: Body,
    read: String,
}

impl Web {
    /// A client whose requests are ann's.
    pub(crate) fn new(house: &House) -> Self {
        Self::of(house, ann())
    }

    pub(crate) fn of(house: &House, caller: Caller) -> Self {
        Self::on(house.door.router(house.stop.clone()), caller)
    }

    /// A client of a router that others use too.
    pub(crate) fn on(router: Router, caller: Caller) -> Self {
        Self { router: router.layer(Extension(caller)), path: "/mcp".into(), client: "test", session: None }
    }

    /// A client that nobody has authenticated.
    pub(crate) fn stranger(house: &House) -> Self {
        let router = house.door.router(house.stop.clone());
        Self { router, path: "/mcp".into(), client: "test", session: None }
    }

    /// Asks in protocol version 2026-07-28.
    pub(crate) async fn ask(&self, method: &str, params: Value) -> Reply {
        self.ask_with(method, params, json!({})).await
    }

    /// Asks in protocol version 2026-07-28, with more in `_meta`.
    pub(crate) async fn ask_with(&self, method: &str, params: Value, meta: Value) -> Reply {
        let response = self.send(self.modern(method, params, meta)).await;
        read(response).await
    }

    /// Asks and reads only what comes by and by.
    pub(crate) async fn open(&self, method: &str, params: Value, meta: Value) -> Open {
        Open { body: self.send(self.modern(method, params, meta)).await.into_body(), read: String::new() }
    }

    /// Calls a tool in protocol version 2026-07-28 and expects a result.
    pub(crate) async fn call(&self, tool: &str, args: Value) -> Value {
        let reply = self.ask("tools/call", json!({ "name": tool, "arguments": args })).await;
        assert_eq!(reply.status, StatusCode::OK, "{}", reply.text);
        reply.only()
    }

    pub(crate) fn modern(&self, method: &str, mut params: Value, meta: Value) -> Request<Body> {
        let name = params["name"]
            .as_str()
            .or(params["taskId"].as_str())
            .or(params["uri"].as_str())
            .map(str::to_owned);
        params["_meta"] = modern(self.client, meta);
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let request = self.post().header("mcp-protocol-version", "2026-07-28").header("mcp-method", method);
        let request = match name {
            Some(name) => request.header("mcp-name", name),
            None => request,
        };
        request.body(Body::from(body.to_string())).unwrap()
    }

    /// Shakes hands in a protocol version before 2026-07-28.
    pub(crate) async fn initialize(&mut self, version: &str) -> Value {
        self.initialize_with(version, json!({})).await
    }

    /// Shakes hands and says what it can do.
    pub(crate) async fn initialize_with(&mut self, version: &str, capabilities: Value) -> Value {
        let params = json!({
            "protocolVersion": version, "capabilities": capabilities,
            "clientInfo": { "name": self.client, "version": "1" },
        });
        let reply = self.ask_legacy("initialize", params).await;
        assert_eq!(reply.status, StatusCode::OK, "{}", reply.text);
        self.session.clone_from(&reply.session);
        let done = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        assert_eq!(self.say(&done).await.status, StatusCode::ACCEPTED);
        reply.only()
    }

    /// Asks in the session, or without one.
    pub(crate) async fn ask_legacy(&self, method: &str, params: Value) -> Reply {
        self.say(&json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })).await
    }

    pub(crate) async fn say(&self, message: &Value) -> Reply {
        read(self.send(self.legacy(message)).await).await
    }

    pub(crate) fn legacy(&self, message: &Value) -> Request<Body> {
        let request = match &self.session {
            Some(id) => self.post().header("mcp-session-id", id),
            None => self.post(),
        };
        request.body(Body::from(message.to_string())).unwrap()
    }

    /// Asks in the session and reads only what comes by and by.
    pub(crate) async fn open_legacy(&self, message: &Value) -> Open {
        Open { body: self.send(self.legacy(message)).await.into_body(), read: String::new() }
    }

    /// Opens the stream on which a server of a version before 2026-07-28 speaks up.
    pub(crate) async fn listen(&self) -> Open {
        let request = Request::builder()
            .uri(&self.path)
            .header("host", "localhost")
            .header("accept", "text/event-stream")
            .header("mcp-session-id", self.session.as_deref().unwrap_or_default())
            .body(Body::empty());
        let response = self.send(request.unwrap()).await;
        assert_eq!(response.status(), StatusCode::OK);
        Open { body: response.into_body(), read: String::new() }
    }

    pub(crate) fn post(&self) -> http::request::Builder {
        Request::builder()
            .method(Method::POST)
            .uri(&self.path)
            .header("host", "localhost")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> http::Response<Body> {
        within(self.router.clone().oneshot(request)).await.unwrap()
    }
}

impl Reply {
    /// The last message, which is the answer.
    pub(crate) fn only(&self) -> Value {
        self.messages.last().cloned().unwrap_or_else(|| panic!("no message in {:?}", self.text))
    }
}

impl Open {
    /// The next message.
    pub(crate) async fn hear(&mut self) -> Value {
        loop {
            if let Some((event, rest)) = self.read.split_once("\n\n") {
                let (event, rest) = (event.to_owned(), rest.to_owned());
                self.read = rest;
                if let Some(message) = message_of(&event) {
                    return message;
                }
                continue;
            }
            let frame = within(self.body.frame()).await.expect("more of the stream").unwrap();
            self.read.push_str(std::str::from_utf8(frame.data_ref().unwrap()).unwrap());
        }
    }

    /// Whether the stream now ends without another message.
    pub(crate) async fn ends(mut self) -> bool {
        within(self.body.frame()).await.is_none()
    }
}

pub(crate) async fn read(response: http::Response<Body>) -> Reply {
    let header = |name: &str| {
        response.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
    };
    let (status, kind) = (response.status(), header("content-type"));
    let session = Some(header("mcp-session-id")).filter(|id| !id.is_empty());
    let bytes = within(response.into_body().collect()).await.unwrap().to_bytes();
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    let messages = if kind.starts_with("text/event-stream") {
        text.split("\n\n").filter_map(message_of).collect()
    } else {
        serde_json::from_str(&text).into_iter().collect()
    };
    Reply { status, kind, session, messages, text }
}

fn message_of(event: &str) -> Option<Value> {
    let data: Vec<&str> = event.lines().filter_map(|line| line.strip_prefix("data:")).collect();
    if data.is_empty() {
        return None;
    }
    // An empty event would break old clients; it must never be sent.
    Some(serde_json::from_str(&data.join("\n")).unwrap_or_else(|_| panic!("not a message: {event:?}")))
}
