//! gRPC clients of the A2A door: one that leaves nothing to an SDK, and the SDKs.

use std::process::Command;

use http::{HeaderName, HeaderValue, Method, header};
use rialto_a2a_codec::{
    error::RpcError,
    grpc::{self, GrpcCall, GrpcStatus, frame::Frames},
    rpc,
    wire::Wire,
};
use rialto_http_client::{
    Config, HttpClient,
    address::Reach,
    fetch::{Fetch, FetchRequest},
};
use serde_json::{Value, json};

use super::{agent::SampleAgent, interop, process::ChildProcess, rialto::Rialto, server::ServerProcess};

/// A server with an agent behind it.
pub(crate) fn house() -> (Rialto, SampleAgent, ServerProcess) {
    let (rialto, agent) = (Rialto::fresh(), SampleAgent::named("Desk"));
    agent.learn("later");
    rialto.trust(&agent.url);
    let server = rialto.serve(&[]);
    (rialto, agent, server)
}

/// A message for a skill in 1.0, with its arguments.
pub(crate) fn said(id: &str, skill: &str, data: &Value) -> Value {
    let message = json!({ "messageId": id, "role": "ROLE_USER", "parts": [{ "data": data }] });
    json!({ "message": message, "metadata": { "skillId": skill } })
}

/// What came of one call.
#[derive(Debug)]
pub(crate) struct GrpcResponse {
    /// The HTTP status.
    pub(crate) http: u16,
    /// gRPC's status, if there was one.
    pub(crate) status: Option<GrpcStatus>,
    /// The messages, as JSON.
    pub(crate) messages: Vec<Value>,
    /// What guardrails warn of, in the headers.
    pub(crate) warning: Option<String>,
}

/// An official SDK as a client, driven over JSON lines. See `interop/README.md`.
pub(crate) struct GrpcClient(ChildProcess);

// === impl GrpcResponse ===

impl GrpcResponse {
    /// The one message of a call that went well.
    #[track_caller]
    pub(crate) fn result(self) -> Value {
        let mut messages = self.events();
        assert_eq!(messages.len(), 1, "{messages:?}");
        messages.remove(0)
    }

    /// All messages of a call that went well.
    #[track_caller]
    pub(crate) fn events(self) -> Vec<Value> {
        assert!(self.status.as_ref().is_some_and(GrpcStatus::is_ok), "{self:?}");
        self.messages
    }

    /// The number and the error of a call that did not.
    #[track_caller]
    pub(crate) fn error(self) -> (u32, RpcError) {
        let status = self.status.as_ref().filter(|status| !status.is_ok());
        let status = status.unwrap_or_else(|| panic!("it went well: {self:?}"));
        (status.number, status.error())
    }
}

/// Calls a method; its name and parameters are those of 1.0's JSON-RPC.
#[track_caller]
pub(crate) fn call(server: &ServerProcess, wire: Wire, method: &str, params: &Value) -> GrpcResponse {
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
    let request = rpc::decode_request(request.as_bytes()).unwrap().request;
    let GrpcCall { path, body } = grpc::encode(wire, &request).unwrap();
    send(server, &path, body, &[])
}

/// Sends a body to a path, with the server's token and these headers.
pub(crate) fn send(
    server: &ServerProcess,
    path: &str,
    body: Vec<u8>,
    headers: &[(&'static str, &'static str)],
) -> GrpcResponse {
    let mut request = FetchRequest::new(Method::POST, format!("{}{path}", server.url).parse().unwrap());
    request.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    if let Some(token) = &server.token {
        request.headers.insert(header::AUTHORIZATION, format!("Bearer {token}").parse().unwrap());
    }
    for &(name, value) in headers {
        request.headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    request.http2 = true;
    request.reach = Reach::Private;
    request.body = body.into();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(exchange(request, path))
}

async fn exchange(request: FetchRequest, path: &str) -> GrpcResponse {
    let mut answer = HttpClient::new(&Config::default()).fetch(request).await.unwrap();
    let warning = answer.headers.get("x-rialto-guardrail").map(|value| value.to_str().unwrap().to_owned());
    let mut told = GrpcResponse {
        http: answer.status.as_u16(),
        status: GrpcStatus::read(&answer.headers),
        messages: Vec::new(),
        warning,
    };
    let mut frames = Frames::new(usize::MAX);
    while let Some(piece) = answer.body.chunk().await.unwrap() {
        if told.http == 200 {
            frames.feed(&piece);
        }
    }
    while let Some(message) = frames.next_message().unwrap() {
        let (wire, operation) = grpc::place(path).unwrap();
        let text = grpc::answer_text(wire, operation, &message).unwrap();
        told.messages.push(serde_json::from_str(&text).unwrap());
    }
    assert!(!frames.is_cut());
    told.status = told.status.or_else(|| answer.body.trailers().and_then(GrpcStatus::read));
    told
}

// === impl GrpcClient ===

impl GrpcClient {
    /// The client `a2a_grpc_1_3` or `a2a_grpc_0_3`, with this token.
    pub(crate) fn start(name: &str, server: &ServerProcess, token: Option<&str>) -> Self {
        let target = server.url.strip_prefix("http://").unwrap();
        let mut command = Command::new(interop());
        command.args([name, "--target", target]);
        command.args(token.iter().flat_map(|token| ["--token", token]));
        Self(ChildProcess::start(name, &mut command))
    }

    /// The answer to one call: `result` or `error`.
    #[track_caller]
    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.begin(method, params);
        self.line()
    }

    /// All lines of a stream, the last of which is `end` or `error`.
    #[track_caller]
    pub(crate) fn stream(&mut self, method: &str, params: &Value) -> Vec<Value> {
        self.begin(method, params);
        let mut lines = Vec::new();
        loop {
            lines.push(self.line());
            if lines.last().is_some_and(|line| line.get("event").is_none()) {
                return lines;
            }
        }
    }

    fn begin(&mut self, method: &str, params: &Value) {
        self.0.say(json!({ "method": method, "params": params }).to_string().as_bytes());
    }

    #[track_caller]
    fn line(&self) -> Value {
        serde_json::from_str(&self.0.line().expect("the client has ended")).unwrap()
    }
}
