//! Failures in error responses: kind, message and facts are retained.

use http::StatusCode;
use rialto_model::{
    failure::{Failure, FailureKind},
    json::{Extra, Json},
};
use serde::Deserialize;

use super::request::ApiResponse;

/// The members of a problem that are not facts of its failure.
const PROBLEM_MEMBERS: [&str; 6] = ["type", "title", "status", "detail", "code", "class"];

/// Error response of admission.
#[derive(Deserialize)]
struct GateRefusal {
    error: String,
    message: String,
}

/// True if a response is a problem of RFC 9457.
pub(super) fn is_problem(answer: &ApiResponse) -> bool {
    answer.media.starts_with("application/problem+json")
}

/// True if a server has no such route; a later version may.
pub(super) fn is_unknown_route(answer: &ApiResponse) -> bool {
    let said: Extra = serde_json::from_slice(&answer.body).unwrap_or_default();
    said.get("title").and_then(|title| title.read::<String>().ok()).as_deref() == Some("unknown-route")
}

/// True if a response is from admission.
pub(super) fn is_gate_refusal(answer: &ApiResponse) -> bool {
    gate_refusal(answer).is_some()
}

/// Reason that admission rejected a request.
pub(super) fn gate_refusal(answer: &ApiResponse) -> Option<String> {
    let refusal: GateRefusal = serde_json::from_slice(&answer.body).ok()?;
    (!refusal.error.is_empty()).then_some(refusal.message)
}

/// Failure described by a response.
pub(super) fn parse_failure(answer: &ApiResponse) -> Failure {
    let mut said: Extra = serde_json::from_slice(&answer.body).unwrap_or_default();
    let text = |said: &Extra, name: &str| said.get(name).and_then(|value| value.read::<String>().ok());
    let kind = text(&said, "class").and_then(|class| FailureKind::of_class(&class));
    let message = text(&said, "detail").or_else(|| text(&said, "message"));
    let message = message.unwrap_or_else(|| format!("answered with HTTP {}", answer.status.as_u16()));
    let failure = Failure::new(kind.unwrap_or_else(|| kind_from_status(answer.status)), message);
    let frame = if is_problem(answer) { &PROBLEM_MEMBERS[..] } else { &["error", "message"] };
    frame.iter().for_each(|name| drop(said.take(name)));
    if said.is_empty() { failure } else { failure.with_data(Json::encode(&said)) }
}

/// Kind of failure for a status without further details.
pub(super) fn kind_from_status(status: StatusCode) -> FailureKind {
    match status {
        StatusCode::UNAUTHORIZED => FailureKind::Unauthenticated,
        StatusCode::FORBIDDEN | StatusCode::MISDIRECTED_REQUEST => FailureKind::Denied,
        StatusCode::NOT_FOUND => FailureKind::NotFound,
        StatusCode::CONFLICT => FailureKind::Conflict,
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => FailureKind::Busy,
        status if status.is_client_error() => FailureKind::Invalid,
        _ => FailureKind::PeerUnreachable,
    }
}

#[cfg(test)]
mod tests {
    use axum::body::{Bytes, to_bytes};

    use super::*;

    async fn there_and_back(failure: &Failure) -> Failure {
        let (head, body) = rialto_http_server::problem::respond(failure).into_parts();
        let body = to_bytes(body, usize::MAX).await.unwrap();
        parse_failure(&ApiResponse {
            status: head.status,
            media: "application/problem+json".to_owned(),
            body,
        })
    }

    #[tokio::test]
    async fn every_kind_of_failure_comes_back_as_it_was() {
        for kind in FailureKind::ALL {
            let plain = Failure::new(kind, "so \"it\" went");
            assert_eq!(there_and_back(&plain).await, plain);
            let data = Json::parse(r#"{"path":"/a","near":["x","y"],"retryAfter":3}"#).unwrap();
            let full = plain.with_data(data);
            assert_eq!(there_and_back(&full).await, full);
        }
    }

    #[test]
    fn a_refusal_of_the_gate_is_told_in_its_own_words() {
        let body = Bytes::from_static(br#"{"error":"draining","message":"it is stopping","retryAfter":1}"#);
        let answer = ApiResponse {
            status: StatusCode::SERVICE_UNAVAILABLE,
            media: "application/json".to_owned(),
            body,
        };
        let failure = parse_failure(&answer);
        assert_eq!((failure.kind, failure.message.as_str()), (FailureKind::Busy, "it is stopping"));
        assert_eq!(failure.data.unwrap().get(), r#"{"retryAfter":1}"#);
    }
}
