//! Asks what is behind a door from inside the house: the same answers, without a connection.

use axum::{Router, extract::Request, response::Response};
use tower::ServiceExt;

/// Has a router answer a request. No gate has looked at it: whoever asks says in its extensions who that is.
pub async fn ask(router: Router, request: Request) -> Response {
    router.oneshot(request).await.unwrap_or_else(|never| match never {})
}
