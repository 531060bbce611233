//! Calls of a router without a connection.

use axum::{Router, extract::Request, response::Response};
use tower::ServiceExt;

/// Sends a request to a router. It does not pass admission: the sender puts the caller into its extensions.
pub async fn call(router: Router, request: Request) -> Response {
    router.oneshot(request).await.unwrap_or_else(|never| match never {})
}
