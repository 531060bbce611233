//! The pages that watch over a server: `/healthz`, `/readyz` and `/metrics`.

use std::sync::Arc;

use axum::{
    Extension, Json, Router,
    response::{IntoResponse, Response},
    routing::get,
};
use http::{StatusCode, header};
use rialto_model::{call::Caller, ids::Scope};
use serde_json::json;

use super::{metrics::Metrics, ready::Readiness};

/// Whether the process is up.
pub(crate) const HEALTH: &str = "/healthz";
/// Whether it should be sent calls.
pub(crate) const READY: &str = "/readyz";
/// Its numbers.
pub(crate) const METRICS: &str = "/metrics";

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The pages. Who may see them is the gate's business, but for one thing: the numbers are those of all orgs.
pub(crate) fn router(metrics: Metrics, readiness: Readiness) -> Router {
    let metrics = Arc::new(metrics);
    Router::new()
        .route(HEALTH, get(|| async { "ok\n" }))
        .route(READY, get(move || ready(readiness.clone())))
        .route(METRICS, get(move |caller: Option<Extension<Caller>>| show(Arc::clone(&metrics), caller)))
}

async fn ready(readiness: Readiness) -> Response {
    let lacks = readiness.lacks().await;
    let status = if lacks.is_empty() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let reasons: Vec<_> =
        lacks.iter().map(|lack| json!({ "check": lack.check, "message": lack.message })).collect();
    (status, Json(json!({ "ready": lacks.is_empty(), "reasons": reasons }))).into_response()
}

async fn show(metrics: Arc<Metrics>, caller: Option<Extension<Caller>>) -> Response {
    if caller.is_some_and(|Extension(caller)| caller.scope.org != Scope::default().org) {
        let message = "the numbers are those of all orgs; ask with a token of the org `default`";
        let body = json!({ "error": "not-yours", "message": message });
        return (StatusCode::FORBIDDEN, Json(body)).into_response();
    }
    match metrics.page() {
        Ok(page) => ([(header::CONTENT_TYPE, OPEN_METRICS)], page).into_response(),
        Err(error) => {
            tracing::error!("the numbers could not be written: {error}");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}
