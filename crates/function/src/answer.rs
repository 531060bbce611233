//! What a task brought, in plain HTTP.
//!
//! One piece of data is that JSON; one text is that text, or a JSON text for whoever wants JSON; whatever is more than
//! that is a list of parts in A2A 1.0's shape.

use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use rialto_model::{
    a2a_json::{MessageJson, PartJson},
    json::Json,
    message::{Content, Part},
    task::Task,
};
use serde_json::json;

/// Says which task it was.
const TASK: HeaderName = HeaderName::from_static("rialto-task");

/// The answer to whoever called, with the headers that it sent.
pub(crate) fn of_task(task: &Task, asked: &HeaderMap) -> Response {
    let mut response = if task.head.state.is_waiting() { question(task) } else { outcome(task, asked) };
    if let Ok(id) = HeaderValue::from_str(task.head.id.as_str()) {
        response.headers_mut().insert(TASK, id);
    }
    rialto_edge::warning::put(response.headers_mut(), task.guardrail().as_ref());
    response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

fn outcome(task: &Task, asked: &HeaderMap) -> Response {
    let made = task.artifacts.iter().flat_map(|artifact| &artifact.parts);
    let said = task.message.iter().filter(|_| task.artifacts.is_empty()).flat_map(|message| &message.parts);
    let parts: Vec<&Part> = made.chain(said).collect();
    match parts.as_slice() {
        [] => json_answer(StatusCode::OK, "null".to_owned()),
        [Part { content: Content::Data(data), .. }] => json_answer(StatusCode::OK, data.get().to_owned()),
        [Part { content: Content::Text(text), .. }] if wants_json(asked) => {
            json_answer(StatusCode::OK, Json::encode(text).get().to_owned())
        }
        [Part { content: Content::Text(text), .. }] => {
            let kind = HeaderValue::from_static("text/plain; charset=utf-8");
            ([(header::CONTENT_TYPE, kind)], text.clone()).into_response()
        }
        parts => {
            let shown: Vec<PartJson<'_>> = parts.iter().map(|part| PartJson(part)).collect();
            json_answer(StatusCode::OK, Json::encode(&shown).get().to_owned())
        }
    }
}

/// A task that waits for its caller: not done, and not an error.
fn question(task: &Task) -> Response {
    let body = json!({
        "taskId": task.head.id,
        "contextId": task.head.remote.context_id,
        "state": task.head.state,
        "message": task.message.as_ref().map(MessageJson),
    });
    json_answer(StatusCode::ACCEPTED, body.to_string())
}

fn json_answer(status: StatusCode, text: String) -> Response {
    (status, [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], text).into_response()
}

/// Whether JSON is asked for and plain text is not.
fn wants_json(asked: &HeaderMap) -> bool {
    let accepted = asked.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    accepted.contains("application/json") && !accepted.contains("text/plain")
}
