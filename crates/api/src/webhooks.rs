//! `/api/v1/webhooks`.

use axum::response::Response;
use futures::FutureExt;
use http::StatusCode;
use rialto_admin::webhooks::{self, webhook_row};
use rialto_api_types::{
    schema::schema_of,
    webhooks::{CreatedWebhook, NewWebhook, WebhookList},
};
use rialto_model::failure::Failure;

use super::{
    json_response, ok_json,
    request::RouteRequest,
    routes::{Route, delete, get, handler, post},
};

/// Routes of this resource.
pub(super) const ROUTES: &[Route] = &[
    get("/api/v1/webhooks", "List webhooks with their delivery state", "`webhooks`", handler!(list)),
    post(
        "/api/v1/webhooks",
        "Add a webhook; its key is shown once",
        Some(schema_of::<NewWebhook>),
        (201, "The webhook, and its key as `secret`"),
        handler!(add),
    ),
    Route {
        response: (200, "The removed webhook"),
        ..delete("/api/v1/webhooks/{id}", "Remove a webhook", handler!(remove))
    },
    post(
        "/api/v1/webhooks/{id}/test",
        "Send a test event to a webhook now",
        None,
        (200, "The webhook"),
        handler!(test),
    ),
    post(
        "/api/v1/webhooks/{id}/retry",
        "Retry a webhook that failed or was disabled",
        None,
        (200, "The webhook"),
        handler!(retry),
    ),
];
pub(super) async fn list(request: RouteRequest) -> Result<Response, Failure> {
    let found = webhooks::list(&request.admin, &request.caller).await?;
    ok_json(&WebhookList { webhooks: found.iter().map(webhook_row).collect() })
}

pub(super) async fn add(request: RouteRequest) -> Result<Response, Failure> {
    let new: NewWebhook = request.json()?;
    let (webhook, key) = webhooks::add(&request.admin, &request.caller, &new).await?;
    Ok(json_response(StatusCode::CREATED, &CreatedWebhook { row: webhook_row(&webhook), secret: key }))
}

pub(super) async fn remove(request: RouteRequest) -> Result<Response, Failure> {
    let webhook = webhooks::remove(&request.admin, &request.caller, request.path_param("id")).await?;
    ok_json(&webhook_row(&webhook))
}

pub(super) async fn test(request: RouteRequest) -> Result<Response, Failure> {
    ok_json(&webhook_row(&webhooks::test(&request.admin, &request.caller, request.path_param("id")).await?))
}

pub(super) async fn retry(request: RouteRequest) -> Result<Response, Failure> {
    ok_json(&webhook_row(&webhooks::retry(&request.admin, &request.caller, request.path_param("id")).await?))
}
