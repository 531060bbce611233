//! How a request is turned away before any protocol has seen it: a status, and a body that names the fix.

use std::{borrow::Cow, time::Duration};

use axum::{
    Json,
    response::{IntoResponse, Response},
};
use http::{HeaderValue, StatusCode, header};

/// A request turned away.
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

    /// The same, for now: after `wait` it may be another answer.
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
