//! Monitoring endpoints: `/healthz`, `/readyz` and `/metrics`.

use std::sync::Arc;

use axum::{
    Extension, Json, Router,
    response::{IntoResponse, Response},
    routing::get,
};
use http::{StatusCode, header};
use rialto_model::{call::Caller, ids::Scope};
use serde_json::json;

use super::{metrics::MetricsRegistry, readiness::Readiness};

/// Path of the liveness endpoint.
pub const HEALTH_PATH: &str = "/healthz";
/// Path of the readiness endpoint.
pub const READY_PATH: &str = "/readyz";
/// Path of the metrics.
pub const METRICS_PATH: &str = "/metrics";

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Routes of the monitoring endpoints. Admission decides who may read them, except for one rule: the metrics cover all orgs, so only callers
/// of the org `default` may read them.
pub fn monitoring_router(metrics: MetricsRegistry, readiness: Readiness) -> Router {
    let metrics = Arc::new(metrics);
    Router::new()
        .route(HEALTH_PATH, get(|| async { "ok\n" }))
        .route(READY_PATH, get(move || handle_ready(readiness.clone())))
        .route(
            METRICS_PATH,
            get(move |caller: Option<Extension<Caller>>| handle_metrics(Arc::clone(&metrics), caller)),
        )
}

async fn handle_ready(readiness: Readiness) -> Response {
    let lacks = readiness.missing_parts().await;
    let status = if lacks.is_empty() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let reasons: Vec<_> =
        lacks.iter().map(|lack| json!({ "check": lack.check, "message": lack.message })).collect();
    (status, Json(json!({ "ready": lacks.is_empty(), "reasons": reasons }))).into_response()
}

async fn handle_metrics(metrics: Arc<MetricsRegistry>, caller: Option<Extension<Caller>>) -> Response {
    if caller.is_some_and(|Extension(caller)| caller.scope.org != Scope::default().org) {
        let message = "metrics cover all orgs; use a token of the org `default`";
        let body = json!({ "error": "not-yours", "message": message });
        return (StatusCode::FORBIDDEN, Json(body)).into_response();
    }
    match metrics.render() {
        Ok(page) => ([(header::CONTENT_TYPE, OPEN_METRICS)], page).into_response(),
        Err(error) => {
            tracing::error!("the numbers could not be written: {error}");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}
