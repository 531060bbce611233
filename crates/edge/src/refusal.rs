//! How a request is turned away before any protocol has seen it: a status, and a body that names the fix.

use std::{borrow::Cow, time::Duration};

use axum::{
    Json,
    response::{IntoResponse, Response},
};
use http::{HeaderValue, StatusCode, header};

/// A request turned away.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    pub(crate) error: &'static str,
    pub(crate) message: Cow<'static, str>,
    /// In how many seconds to try again, if that helps.
    pub(crate) retry_after: Option<u64>,
}

// === impl Refusal ===

impl Refusal {
    pub(crate) fn new(
        status: StatusCode,
        error: &'static str,
        message: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self { status, error, message: message.into(), retry_after: None }
    }

    /// The same, and it says that after `wait` there may be another answer.
    pub(crate) fn for_now(mut self, wait: Duration) -> Self {
        self.retry_after = Some((wait.as_secs() + u64::from(wait.subsec_nanos() > 0)).max(1));
        self
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut body = serde_json::json!({ "error": self.error, "message": self.message });
        let Some(seconds) = self.retry_after else { return (self.status, Json(body)).into_response() };
        body["retryAfter"] = seconds.into();
        (self.status, [(header::RETRY_AFTER, HeaderValue::from(seconds))], Json(body)).into_response()
    }
}

/// The answer where nothing is, or nothing of this caller's.
pub(crate) fn nothing_here() -> Refusal {
    Refusal::new(StatusCode::NOT_FOUND, "not-found", "there is nothing at this address")
}

/// The answer of a server that is told to stop.
/// A token that was revoked, or expired, while its request was under way.
pub(crate) fn revoked() -> Refusal {
    let message = "the token was revoked or expired while this was under way; make a new one with `rialto tokens create NAME`";
    Refusal::new(StatusCode::UNAUTHORIZED, "unauthenticated", message)
}

pub(crate) fn draining() -> Refusal {
    let message = "this server is stopping; ask another one, or this one when it is back";
    Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "draining", message).for_now(Duration::from_secs(1))
}

/// The answer to a caller who comes too often.
pub(crate) fn too_many_requests(wait: Duration) -> Refusal {
    let message =
        "this caller sends more requests than [limits] requests_per_second allows; wait, and send fewer";
    Refusal::new(StatusCode::TOO_MANY_REQUESTS, "too-many-requests", message).for_now(wait)
}

/// The answer to an address that shows wrong tokens.
pub(crate) fn too_many_attempts(wait: Duration) -> Refusal {
    let message = "too many wrong tokens came from this address; wait, and send a good one";
    Refusal::new(StatusCode::TOO_MANY_REQUESTS, "too-many-attempts", message).for_now(wait)
}
