//! Failures in plain HTTP: a status, and a body of RFC 9457 with our code and class.

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, header};
use rialto_model::{failure::Failure, json::Json};
use serde_json::{Value, json};

use crate::status;

/// Renders a failure.
pub fn respond(failure: &Failure) -> Response {
    let status = status::from_kind(failure.kind);
    let mut body = json!({
        "title": failure.kind.class(),
        "status": status.as_u16(),
        "detail": failure.message,
        "code": failure.kind.rpc_code(),
        "class": failure.kind.class(),
    });
    let data = failure.data.as_ref().map(Json::value);
    let wait = data.as_ref().and_then(|data| data["retryAfter"].as_u64());
    if let (Some(Value::Object(data)), Some(body)) = (data, body.as_object_mut()) {
        for (name, value) in data {
            body.entry(name).or_insert(value);
        }
    }
    let kind = HeaderValue::from_static("application/problem+json");
    let mut response = (status, [(header::CONTENT_TYPE, kind)], body.to_string()).into_response();
    if let Some(seconds) = wait {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}
