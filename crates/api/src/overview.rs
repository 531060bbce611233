//! `/api/v1/me` and `/api/v1/overview`: the caller and the state of its project.

use axum::response::Response;
use futures::FutureExt;
use rialto_admin::overview::overview as read_overview;
use rialto_api_types::overview::{CallerIdentity, ProjectOverview, UnhealthyAgent};
use rialto_model::failure::Failure;
use rialto_policy::Action;

use super::{
    ok_json,
    request::RouteRequest,
    routes::{Route, get, handler},
};

/// Routes of this resource.
pub(super) const ROUTES: &[Route] = &[
    get(
        "/api/v1/me",
        "Caller of the request and its permissions",
        "Name, kind, org, project, scopes and allowed administrative actions",
        handler!(me),
    ),
    get(
        "/api/v1/overview",
        "Overview of the project",
        "Counts of agents, skills and tools, and calls of the last hour",
        handler!(overview),
    ),
];
pub(super) async fn me(request: RouteRequest) -> Result<Response, Failure> {
    let (admin, caller) = (&request.admin, &request.caller);
    admin.engine().policies().sync().await?;
    let actions = Action::ALL.into_iter().filter(|action| action.is_admin());
    let may =
        actions.map(|action| (action.as_str().to_owned(), admin.check_admin(caller, action).is_ok().into()));
    ok_json(&CallerIdentity {
        caller: caller.id.clone(),
        kind: caller.kind,
        org: caller.scope.org.clone(),
        project: caller.scope.project.clone(),
        scopes: caller.rights.each().collect(),
        may: may.collect(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    })
}

pub(super) async fn overview(request: RouteRequest) -> Result<Response, Failure> {
    let seen = read_overview(&request.admin, &request.caller).await?;
    let unwell = seen.unwell.iter().map(|agent| UnhealthyAgent {
        agent: agent.slug.clone(),
        health: agent.health,
        last_error: agent.last_error.clone(),
    });
    ok_json(&ProjectOverview {
        agents: seen.agents,
        unwell: unwell.collect(),
        skills: seen.skills,
        tools: seen.tools,
        waiting: seen.waiting,
        calls: seen.calls,
    })
}
