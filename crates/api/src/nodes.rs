//! `/api/v1/nodes`.

use axum::response::Response;
use futures::FutureExt;
use rialto_admin::nodes;
use rialto_api_types::nodes::NodeList;
use rialto_model::failure::Failure;

use super::{
    ok_json,
    request::RouteRequest,
    routes::{Route, delete, get, handler, post},
};

/// Routes of this resource.
pub(super) const ROUTES: &[Route] = &[
    get(
        "/api/v1/nodes",
        "List the servers that share the store; for callers of the org `default`",
        "`nodes`",
        handler!(list),
    ),
    post(
        "/api/v1/nodes/{name}/drain",
        "Drain a node: it still answers requests, but is not ready and starts no background work",
        None,
        (200, "The node"),
        handler!(drain),
    ),
    Route {
        response: (200, "The node"),
        ..delete("/api/v1/nodes/{name}/drain", "Stop draining a node", handler!(undrain))
    },
];

pub(super) async fn list(request: RouteRequest) -> Result<Response, Failure> {
    ok_json(&NodeList { nodes: nodes::list(&request.admin, &request.caller).await? })
}

pub(super) async fn drain(request: RouteRequest) -> Result<Response, Failure> {
    ok_json(&nodes::set_draining(&request.admin, &request.caller, request.path_param("name"), true).await?)
}

pub(super) async fn undrain(request: RouteRequest) -> Result<Response, Failure> {
    ok_json(&nodes::set_draining(&request.admin, &request.caller, request.path_param("name"), false).await?)
}
