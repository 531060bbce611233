//! Responses to rejected requests: a status, and a body that names the fix.

use std::{borrow::Cow, time::Duration};

use axum::{
    Json,
    response::{IntoResponse, Response},
};
use http::{HeaderValue, StatusCode, header};

/// Rejected request.
#[derive(Debug)]
pub(crate) struct Rejection {
    pub(crate) status: StatusCode,
    pub(crate) error: &'static str,
    pub(crate) message: Cow<'static, str>,
    /// Seconds after which a retry may succeed.
    pub(crate) retry_after: Option<u64>,
}

// === impl Rejection ===

impl Rejection {
    pub(crate) fn new(
        status: StatusCode,
        error: &'static str,
        message: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self { status, error, message: message.into(), retry_after: None }
    }

    /// Adds `Retry-After`.
    pub(crate) fn with_retry_after(mut self, wait: Duration) -> Self {
        self.retry_after = Some((wait.as_secs() + u64::from(wait.subsec_nanos() > 0)).max(1));
        self
    }
}

impl IntoResponse for Rejection {
    fn into_response(self) -> Response {
        let mut body = serde_json::json!({ "error": self.error, "message": self.message });
        let Some(seconds) = self.retry_after else { return (self.status, Json(body)).into_response() };
        body["retryAfter"] = seconds.into();
        (self.status, [(header::RETRY_AFTER, HeaderValue::from(seconds))], Json(body)).into_response()
    }
}

/// Response for a path that does not exist, or belongs to another org.
pub(crate) fn not_found() -> Rejection {
    Rejection::new(StatusCode::NOT_FOUND, "not-found", "there is nothing at this address")
}

/// Response to a request whose token was revoked, or expired, while it was in progress.
pub(crate) fn revoked() -> Rejection {
    let message = "the token was revoked or expired while this was under way; make a new one with `rialto tokens create NAME`";
    Rejection::new(StatusCode::UNAUTHORIZED, "unauthenticated", message)
}

/// Response of a server that is stopping.
pub(crate) fn draining() -> Rejection {
    let message = "this server is stopping; ask another one, or this one when it is back";
    Rejection::new(StatusCode::SERVICE_UNAVAILABLE, "draining", message)
        .with_retry_after(Duration::from_secs(1))
}

/// Response to a caller with too many requests.
pub(crate) fn too_many_requests(wait: Duration) -> Rejection {
    let message =
        "this caller sends more requests than [limits] requests_per_second allows; wait, and send fewer";
    Rejection::new(StatusCode::TOO_MANY_REQUESTS, "too-many-requests", message).with_retry_after(wait)
}

/// Response to an address with too many wrong tokens.
pub(crate) fn too_many_attempts(wait: Duration) -> Rejection {
    let message = "too many wrong tokens came from this address; wait, and send a good one";
    Rejection::new(StatusCode::TOO_MANY_REQUESTS, "too-many-attempts", message).with_retry_after(wait)
}
