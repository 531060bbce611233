//! An A2A agent that answers at once, so that what is measured is everything but the agent.

use std::net::SocketAddr;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use rialto_model::name;
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};
use tokio::sync::watch;

use crate::{child::ChildPort, error::BenchError, load};

/// Marker contained in every correct response and in no request.
pub(crate) const MARK: &str = "rialto-bench-answer";

const NAME: &str = "Bench Agent";
const SKILL: &str = "echo";

/// The tool that MCP clients know the agent's one skill as.
pub(crate) fn tool_name() -> String {
    name::canonical(&name::agent_slug(NAME), SKILL)
}

/// About 1 KB of arguments.
pub(crate) fn sample_arguments() -> Value {
    filler_text("the same few words are said once more so that the call has a body of an ordinary size ", 10)
}

/// Parameters of an equivalent A2A 0.3 `message/send`.
pub(crate) fn send_params() -> Value {
    json!({"message": {
        "kind": "message",
        "messageId": "bench-message",
        "role": "user",
        "skill": {"skillId": SKILL},
        "parts": [{"kind": "data", "data": sample_arguments()}],
    }})
}

/// Path of the agent on Rialto's A2A endpoint.
pub(crate) fn relay_url() -> String {
    format!("/a2a/agents/{}", name::agent_slug(NAME))
}

/// Parameters of an equivalent A2A 1.0 `SendMessage`. Each message has an id of its own, so that it is not deduplicated.
pub(crate) fn relay_params(at_once: bool) -> Value {
    json!({
        "message": {
            "messageId": load::NAME_PLACEHOLDER,
            "role": "ROLE_USER",
            "parts": [{"data": sample_arguments()}],
        },
        "configuration": {"returnImmediately": at_once},
        "metadata": {"skillId": SKILL},
    })
}

/// Behaviour of the agent.
#[derive(clap::Args, Clone, Copy)]
pub(crate) struct AgentArgs {
    /// Delay all responses until a request for `/finish`.
    #[arg(long)]
    holding: bool,
}

/// Path that releases delayed responses.
pub(crate) const FINISH: &str = "/finish";

/// Serves the agent until the parent is gone.
pub(crate) async fn serve(args: AgentArgs) -> Result<(), BenchError> {
    let port = ChildPort::open().await?;
    let card = Bytes::from(agent_card(port.local_addr()?).to_string());
    let result = Bytes::from(format!(r#","result":{}}}"#, sample_task()));
    let held = args.holding.then(|| watch::Sender::new(false));
    port.serve(move |request| delayed_answer(request, held.clone(), card.clone(), result.clone())).await
}

async fn delayed_answer(
    request: Request<Incoming>,
    held: Option<watch::Sender<bool>>,
    card: Bytes,
    result: Bytes,
) -> Response<Full<Bytes>> {
    if let Some(held) = held {
        if request.uri().path() == FINISH {
            held.send_replace(true);
            return status_response(StatusCode::OK);
        }
        if request.method() == Method::POST {
            // We hold the other end ourselves, so it cannot be gone.
            let _ = held.subscribe().wait_for(|is_over| *is_over).await;
        }
    }
    answer(request, card, result).await
}

/// The one member of a request that an agent without an opinion has to read.
#[derive(Deserialize)]
struct RequestId<'a> {
    #[serde(borrow)]
    id: &'a RawValue,
}

async fn answer(request: Request<Incoming>, card: Bytes, result: Bytes) -> Response<Full<Bytes>> {
    if request.method() == Method::GET && request.uri().path() == "/.well-known/agent-card.json" {
        return json_response(card);
    }
    if request.method() != Method::POST {
        return status_response(StatusCode::NOT_FOUND);
    }
    let Ok(body) = request.into_body().collect().await else {
        return status_response(StatusCode::BAD_REQUEST);
    };
    let body = body.to_bytes();
    match serde_json::from_slice::<RequestId<'_>>(&body) {
        Ok(asked) => json_response(wrap_result(asked.id.get(), &result)),
        Err(_) => status_response(StatusCode::BAD_REQUEST),
    }
}

fn wrap_result(id: &str, result: &[u8]) -> Bytes {
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
pub(crate) fn status_response(status: StatusCode) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = status;
    response
}

fn agent_card(address: SocketAddr) -> Value {
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

fn sample_task() -> Value {
    let mut data =
        filler_text("the agent has thought about it for no time at all and says what it always says ", 10);
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

fn filler_text(words: &str, times: usize) -> Value {
    json!({"text": words.repeat(times), "count": times, "list": [1, 2.5, true, null, "five"], "nested": {"a": {"b": "c"}}})
}
