//! `/api/v1/secrets`.

use axum::response::Response;
use futures::FutureExt;
use rialto_admin::secrets;
use rialto_api_types::{
    schema::schema_of,
    secrets::{RemovedSecret, SavedSecret, SecretList, SecretValue},
};
use rialto_model::{credential::Secret, failure::Failure};

use super::{
    ok_json,
    request::RouteRequest,
    routes::{Route, delete, get, handler},
};

/// Routes of this resource.
pub(super) const ROUTES: &[Route] = &[
    get("/api/v1/secrets", "List secrets, without their values", "`secrets`", handler!(list)),
    Route {
        method: "PUT",
        body: Some(schema_of::<SecretValue>),
        ..get(
            "/api/v1/secrets/{name}",
            "Save a secret, encrypted; it cannot be read back",
            "Name of the secret",
            handler!(set),
        )
    },
    Route {
        response: (200, "Agents that use the secret"),
        ..delete("/api/v1/secrets/{name}", "Remove a secret", handler!(remove))
    },
];
pub(super) async fn list(request: RouteRequest) -> Result<Response, Failure> {
    ok_json(&SecretList { secrets: secrets::list(&request.admin, &request.caller).await? })
}

pub(super) async fn set(request: RouteRequest) -> Result<Response, Failure> {
    let SecretValue { value } = request.json()?;
    let name = request.path_param("name");
    secrets::set(&request.admin, &request.caller, name, &Secret::from(value)).await?;
    ok_json(&SavedSecret { name: name.to_owned() })
}

pub(super) async fn remove(request: RouteRequest) -> Result<Response, Failure> {
    let name = request.path_param("name");
    let used_by = secrets::remove(&request.admin, &request.caller, name).await?;
    ok_json(&RemovedSecret { name: name.to_owned(), used_by })
}
