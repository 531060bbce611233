//! Result of a task in plain HTTP.
//!
//! A single data part is sent as that JSON; a single text as text, or as a JSON string for a client that accepts JSON only; anything else
//! as a list of parts in A2A 1.0 form.

use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use rialto_model::{
    a2a_json::{MessageJson, PartJson},
    json::Json,
    message::{Content, Part},
    task::Task,
};
use serde_json::json;

/// Header with the id of the task.
const TASK_HEADER: HeaderName = HeaderName::from_static("rialto-task");

/// Renders a task for a request with these headers.
pub(crate) fn render_task(task: &Task, request_headers: &HeaderMap) -> Response {
    let mut response = if task.head.state.is_waiting() {
        render_question(task)
    } else {
        render_result(task, request_headers)
    };
    if let Ok(id) = HeaderValue::from_str(task.head.id.as_str()) {
        response.headers_mut().insert(TASK_HEADER, id);
    }
    rialto_http_server::guardrail_header::insert(response.headers_mut(), task.guardrail().as_ref());
    response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

fn render_result(task: &Task, request_headers: &HeaderMap) -> Response {
    let made = task.artifacts.iter().flat_map(|artifact| &artifact.parts);
    let said = task.message.iter().filter(|_| task.artifacts.is_empty()).flat_map(|message| &message.parts);
    let parts: Vec<&Part> = made.chain(said).collect();
    match parts.as_slice() {
        [] => json_response(StatusCode::OK, "null".to_owned()),
        [Part { content: Content::Data(data), .. }] => json_response(StatusCode::OK, data.get().to_owned()),
        [Part { content: Content::Text(text), .. }] if wants_json(request_headers) => {
            json_response(StatusCode::OK, Json::encode(text).get().to_owned())
        }
        [Part { content: Content::Text(text), .. }] => {
            let kind = HeaderValue::from_static("text/plain; charset=utf-8");
            ([(header::CONTENT_TYPE, kind)], text.clone()).into_response()
        }
        parts => {
            let shown: Vec<PartJson<'_>> = parts.iter().map(|part| PartJson(part)).collect();
            json_response(StatusCode::OK, Json::encode(&shown).get().to_owned())
        }
    }
}

/// Renders a task that waits for its caller: not done, and not an error.
fn render_question(task: &Task) -> Response {
    let body = json!({
        "taskId": task.head.id,
        "contextId": task.head.remote.context_id,
        "state": task.head.state,
        "message": task.message.as_ref().map(MessageJson),
    });
    json_response(StatusCode::ACCEPTED, body.to_string())
}

fn json_response(status: StatusCode, text: String) -> Response {
    (status, [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], text).into_response()
}

/// True if the client accepts JSON and not plain text.
fn wants_json(request_headers: &HeaderMap) -> bool {
    let accepted =
        request_headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    accepted.contains("application/json") && !accepted.contains("text/plain")
}
