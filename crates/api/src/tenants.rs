//! `/api/v1/orgs` and `/api/v1/projects`.

use axum::response::Response;
use futures::FutureExt;
use http::StatusCode;
use rialto_admin::tenants;
use rialto_api_types::{
    schema::schema_of,
    tenants::{CreatedOrg, CreatedProject, NewOrg, NewProject, OrgList, ProjectList},
};
use rialto_model::failure::Failure;

use super::{
    json_response, no_content, ok_json,
    request::RouteRequest,
    routes::{Route, delete, get, handler, post},
};

/// Query parameter for the removal of everything that belongs to an org or project.
const FORCE: &[(&str, &str)] = &[("force", "`true`: remove everything that belongs to it, too")];

/// Routes of this resource.
pub(super) const ROUTES: &[Route] = &[
    get(
        "/api/v1/orgs",
        "List orgs: all at the server's machine, else the caller's own",
        "`orgs`",
        handler!(list),
    ),
    post(
        "/api/v1/orgs",
        "Create an org, at the server's machine",
        Some(schema_of::<NewOrg>),
        (201, "Name of the org, and the token of its owner if one was named"),
        handler!(create),
    ),
    Route {
        query: FORCE,
        ..delete("/api/v1/orgs/{org}", "Remove an org, at the server's machine", handler!(remove))
    },
    get("/api/v1/projects", "List the projects of the org", "`projects`", handler!(projects)),
    post(
        "/api/v1/projects",
        "Create a project in the org",
        Some(schema_of::<NewProject>),
        (201, "Name of the project"),
        handler!(create_project),
    ),
    Route {
        query: FORCE,
        ..delete("/api/v1/projects/{project}", "Remove a project", handler!(remove_project))
    },
];

pub(super) async fn list(request: RouteRequest) -> Result<Response, Failure> {
    ok_json(&OrgList { orgs: tenants::list(&request.admin, &request.caller).await? })
}

pub(super) async fn create(request: RouteRequest) -> Result<Response, Failure> {
    let new: NewOrg = request.json()?;
    let token = tenants::create(&request.admin, &request.caller, &new).await?;
    Ok(json_response(StatusCode::CREATED, &CreatedOrg { org: new.org, owner: new.owner, token }))
}

pub(super) async fn remove(request: RouteRequest) -> Result<Response, Failure> {
    tenants::remove(&request.admin, &request.caller, request.path_param("org"), request.flag("force"))
        .await?;
    no_content()
}

pub(super) async fn projects(request: RouteRequest) -> Result<Response, Failure> {
    ok_json(&ProjectList { projects: tenants::projects(&request.admin, &request.caller).await? })
}

pub(super) async fn create_project(request: RouteRequest) -> Result<Response, Failure> {
    let new: NewProject = request.json()?;
    tenants::create_project(&request.admin, &request.caller, &new).await?;
    let org = request.caller.scope.org.clone();
    Ok(json_response(StatusCode::CREATED, &CreatedProject { org, project: new.project.into() }))
}

pub(super) async fn remove_project(request: RouteRequest) -> Result<Response, Failure> {
    let (admin, caller, name) = (&request.admin, &request.caller, request.path_param("project"));
    tenants::remove_project(admin, caller, name, request.flag("force")).await?;
    no_content()
}
