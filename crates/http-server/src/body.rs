//! Request bodies, read as a whole.

use axum::{
    body::{Body, to_bytes},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use http::StatusCode;
use http_body_util::LengthLimitError;

use crate::rejection::Rejection;

/// Reads a body to its end. Admission limits its size; the error is the response to a body that is too large or incomplete.
pub async fn read_to_end(body: Body) -> Result<Bytes, Response> {
    to_bytes(body, usize::MAX).await.map_err(|error| rejection(&error).into_response())
}

fn rejection(error: &axum::Error) -> Rejection {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if error.is::<LengthLimitError>() {
            let message = "the body is larger than [server] max_body_bytes allows";
            return Rejection::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", message);
        }
        cause = error.source();
    }
    let message = "the body broke off, or its pieces are not as its head says; send it again";
    Rejection::new(StatusCode::BAD_REQUEST, "incomplete-body", message)
}
