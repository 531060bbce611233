//! An A2A agent that answers at once, so that what is measured is everything but the agent.

use std::net::SocketAddr;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use rialto_model::name;
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

use crate::{child::Port, trouble::Trouble};

/// Stands in every right answer and in no request.
pub(crate) const MARK: &str = "rialto-bench-answer";

const NAME: &str = "Bench Agent";
const SKILL: &str = "echo";

/// The tool that MCP clients know the agent's one skill as.
pub(crate) fn tool() -> String {
    name::canonical(&name::agent_slug(NAME), SKILL)
}

/// About 1 KB of arguments.
pub(crate) fn arguments() -> Value {
    filling("the same few words are said once more so that the call has a body of an ordinary size ", 10)
}

/// The parameters of the A2A 0.3 `message/send` that asks for the same.
pub(crate) fn send_params() -> Value {
    json!({"message": {
        "kind": "message",
        "messageId": "bench-message",
        "role": "user",
        "skill": {"skillId": SKILL},
        "parts": [{"kind": "data", "data": arguments()}],
    }})
}

/// Serves the agent until the parent is gone.
pub(crate) async fn serve() -> Result<(), Trouble> {
    let port = Port::open().await?;
    let card = Bytes::from(card(port.address()?).to_string());
    let result = Bytes::from(format!(r#","result":{}}}"#, task()));
    port.serve(move |request| answer(request, card.clone(), result.clone())).await
}

/// The one member of a request that an agent without an opinion has to read.
#[derive(Deserialize)]
struct Asked<'a> {
    #[serde(borrow)]
    id: &'a RawValue,
}

async fn answer(request: Request<Incoming>, card: Bytes, result: Bytes) -> Response<Full<Bytes>> {
    if request.method() == Method::GET && request.uri().path() == "/.well-known/agent-card.json" {
        return json_response(card);
    }
    if request.method() != Method::POST {
        return status(StatusCode::NOT_FOUND);
    }
    let Ok(body) = request.into_body().collect().await else { return status(StatusCode::BAD_REQUEST) };
    let body = body.to_bytes();
    match serde_json::from_slice::<Asked<'_>>(&body) {
        Ok(asked) => json_response(wrap(asked.id.get(), &result)),
        Err(_) => status(StatusCode::BAD_REQUEST),
    }
}

fn wrap(id: &str, result: &[u8]) -> Bytes {
    let mut body = Vec::with_capacity(32 + id.len() + result.len());
    body.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    body.extend_from_slice(id.as_bytes());
    body.extend_from_slice(result);
    body.into()
}

/// An answer with a JSON body.
pub(crate) fn json_response(body: Bytes) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body));
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    response
}

/// An answer without a body.
pub(crate) fn status(status: StatusCode) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = status;
    response
}

fn card(address: SocketAddr) -> Value {
    json!({
        "protocolVersion": "0.3.0",
        "name": NAME,
        "description": "Answers at once, always the same.",
        "version": "1.0.0",
        "url": format!("http://{address}/"),
        "preferredTransport": "JSONRPC",
        "capabilities": {"streaming": false, "pushNotifications": false},
        "defaultInputModes": ["application/json"],
        "defaultOutputModes": ["application/json"],
        "skills": [{"id": SKILL, "name": "Echo", "description": "Answers at once.", "tags": ["bench"]}],
    })
}

fn task() -> Value {
    let mut data =
        filling("the agent has thought about it for no time at all and says what it always says ", 10);
    if let Some(members) = data.as_object_mut() {
        members.insert("mark".to_owned(), MARK.into());
    }
    json!({
        "kind": "task",
        "id": "bench-task",
        "contextId": "bench-context",
        "status": {"state": "completed", "timestamp": "2026-11-15T12:00:00.000Z"},
        "artifacts": [{
            "artifactId": "bench-artifact",
            "name": "answer",
            "parts": [{"kind": "data", "data": data}],
        }],
    })
}

fn filling(words: &str, times: usize) -> Value {
    json!({"text": words.repeat(times), "count": times, "list": [1, 2.5, true, null, "five"], "nested": {"a": {"b": "c"}}})
}
