//! `/api/v1/tools`: MCP servers and functions.

use axum::response::Response;
use futures::FutureExt;
use http::StatusCode;
use rialto_admin::tools::{self, deployment_row};
use rialto_api_types::{schema::schema_of, tools::NewDeployment};
use rialto_model::failure::Failure;

use super::{
    json_response, no_content, ok_json,
    request::RouteRequest,
    routes::{Route, delete, get, handler, post},
};

/// Routes of this resource.
pub(super) const ROUTES: &[Route] = &[
    get("/api/v1/tools", "List MCP servers and functions", "The deployments", handler!(list)),
    post(
        "/api/v1/tools",
        "Add an MCP server or a function",
        Some(schema_of::<NewDeployment>),
        (201, "The deployment; 200 if it existed before"),
        handler!(deploy),
    ),
    get(
        "/api/v1/tools/{name}",
        "Show an MCP server or a function, by its name or the name of a tool",
        "The deployment",
        handler!(show),
    ),
    delete("/api/v1/tools/{name}", "Remove an MCP server or a function", handler!(remove)),
];

pub(super) async fn list(request: RouteRequest) -> Result<Response, Failure> {
    let rows = tools::list(&request.admin, &request.caller).await?;
    let registry = request.admin.engine().registry();
    ok_json(&rows.iter().map(|row| deployment_row(registry, row)).collect::<Vec<_>>())
}

pub(super) async fn show(request: RouteRequest) -> Result<Response, Failure> {
    let row = tools::find(&request.admin, &request.caller, request.path_param("name")).await?;
    ok_json(&deployment_row(request.admin.engine().registry(), &row))
}

pub(super) async fn deploy(request: RouteRequest) -> Result<Response, Failure> {
    let registered = tools::deploy(&request.admin, &request.caller, request.body_text()?).await?;
    let status = if registered.created { StatusCode::CREATED } else { StatusCode::OK };
    Ok(json_response(status, &deployment_row(request.admin.engine().registry(), &registered.agent)))
}

pub(super) async fn remove(request: RouteRequest) -> Result<Response, Failure> {
    tools::remove(&request.admin, &request.caller, request.path_param("name")).await?;
    no_content()
}
