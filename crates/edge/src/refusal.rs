//! How a request is turned away before any protocol has seen it: a status, and a body that names the fix.

use std::borrow::Cow;

use axum::{
    Json,
    response::{IntoResponse, Response},
};
use http::StatusCode;

/// A request turned away.
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    pub(crate) error: &'static str,
    pub(crate) message: Cow<'static, str>,
}

// === impl Refusal ===

impl Refusal {
    pub(crate) fn new(
        status: StatusCode,
        error: &'static str,
        message: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self { status, error, message: message.into() }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let body = serde_json::json!({ "error": self.error, "message": self.message });
        (self.status, Json(body)).into_response()
    }
}
