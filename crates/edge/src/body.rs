//! The whole body of a request, as far as the gate lets it in.

use axum::{
    body::{Body, to_bytes},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use http::StatusCode;
use http_body_util::LengthLimitError;

use crate::refusal::Refusal;

/// Reads a body to its end. The gate has put a limit around it; the answer to a body beyond it, or to one that breaks off,
/// is the error.
pub async fn whole(body: Body) -> Result<Bytes, Response> {
    to_bytes(body, usize::MAX).await.map_err(|error| not_whole(&error).into_response())
}

fn not_whole(error: &axum::Error) -> Refusal {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if error.is::<LengthLimitError>() {
            let message = "the body is larger than [server] max_body_bytes allows";
            return Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", message);
        }
        cause = error.source();
    }
    let message = "the body broke off, or its pieces are not as its head says; send it again";
    Refusal::new(StatusCode::BAD_REQUEST, "incomplete-body", message)
}
