//! How trouble that somebody else had becomes trouble of a command: the same kind, the same words.

use http::StatusCode;
use rialto_model::{
    failure::{Failure, FailureKind},
    json::{Extra, Json},
};
use serde::Deserialize;

use super::question::Answer;

/// The members of a problem that are not facts of its failure.
const FRAME: [&str; 6] = ["type", "title", "status", "detail", "code", "class"];

/// What the gate says to those who come no further.
#[derive(Deserialize)]
struct Refusal {
    error: String,
    message: String,
}

/// Whether an answer is a problem of RFC 9457.
pub(super) fn is_problem(answer: &Answer) -> bool {
    answer.media.starts_with("application/problem+json")
}

/// Whether a server says that it has no such route: a later one may.
pub(super) fn is_unknown_route(answer: &Answer) -> bool {
    let said: Extra = serde_json::from_slice(&answer.body).unwrap_or_default();
    said.get("title").and_then(|title| title.read::<String>().ok()).as_deref() == Some("unknown-route")
}

/// Whether an answer is one of the gate's.
pub(super) fn is_refusal(answer: &Answer) -> bool {
    refusal(answer).is_some()
}

/// Why somebody came no further than the gate.
pub(super) fn refusal(answer: &Answer) -> Option<String> {
    let refusal: Refusal = serde_json::from_slice(&answer.body).ok()?;
    (!refusal.error.is_empty()).then_some(refusal.message)
}

/// The failure that an answer tells of.
pub(super) fn told(answer: &Answer) -> Failure {
    let mut said: Extra = serde_json::from_slice(&answer.body).unwrap_or_default();
    let text = |said: &Extra, name: &str| said.get(name).and_then(|value| value.read::<String>().ok());
    let kind = text(&said, "class").and_then(|class| FailureKind::of_class(&class));
    let message = text(&said, "detail").or_else(|| text(&said, "message"));
    let message = message.unwrap_or_else(|| format!("answered with HTTP {}", answer.status.as_u16()));
    let failure = Failure::new(kind.unwrap_or_else(|| kind_of(answer.status)), message);
    let frame = if is_problem(answer) { &FRAME[..] } else { &["error", "message"] };
    frame.iter().for_each(|name| drop(said.take(name)));
    if said.is_empty() { failure } else { failure.with_data(Json::encode(&said)) }
}

/// The kind of trouble that a status means when nothing else says so.
pub(super) fn kind_of(status: StatusCode) -> FailureKind {
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
        let (head, body) = rialto_edge::problem::answer(failure).into_parts();
        let body = to_bytes(body, usize::MAX).await.unwrap();
        told(&Answer { status: head.status, media: "application/problem+json".to_owned(), body })
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
        let answer =
            Answer { status: StatusCode::SERVICE_UNAVAILABLE, media: "application/json".to_owned(), body };
        let failure = told(&answer);
        assert_eq!((failure.kind, failure.message.as_str()), (FailureKind::Busy, "it is stopping"));
        assert_eq!(failure.data.unwrap().get(), r#"{"retryAfter":1}"#);
    }
}
