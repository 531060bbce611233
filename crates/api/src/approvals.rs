//! `/api/v1/approvals`.

use axum::response::Response;
use futures::FutureExt;
use rialto_admin::approvals::{self, ApprovalQuery};
use rialto_api_types::{
    approvals::{ApprovalPage, ApprovalRow, DecisionReason},
    schema::schema_of,
};
use rialto_model::{failure::Failure, ids::ApprovalId};

use super::{
    ok_json,
    request::RouteRequest,
    routes::{PAGED, Route, get, handler, post},
};

/// Routes of this resource.
pub(super) const ROUTES: &[Route] = &[
    Route {
        query: &[("state", "`waiting`, or `all`"), PAGED[0], PAGED[1], PAGED[2]],
        ..get("/api/v1/approvals", "List approvals, newest first", "`approvals` and `next`", handler!(list))
    },
    get("/api/v1/approvals/{id}", "Show an approval", "The approval", handler!(show)),
    post(
        "/api/v1/approvals/{id}/approve",
        "Approve a call",
        Some(schema_of::<DecisionReason>),
        (200, "The approval"),
        handler!(approve),
    ),
    post(
        "/api/v1/approvals/{id}/deny",
        "Deny a call",
        Some(schema_of::<DecisionReason>),
        (200, "The approval"),
        handler!(deny),
    ),
];

pub(super) async fn list(request: RouteRequest) -> Result<Response, Failure> {
    let state = request.parse_query("state", |text| match text {
        "waiting" => Some(false),
        "all" => Some(true),
        _ => None,
    })?;
    let filter = ApprovalQuery {
        all: state.unwrap_or(false),
        limit: request.limit()?,
        cursor: request.cursor().map(ApprovalId::from),
    };
    let (found, next) = approvals::page(&request.admin, &request.caller, &filter).await?;
    ok_json(&ApprovalPage { approvals: found.into_iter().map(ApprovalRow::from).collect(), next })
}

pub(super) async fn show(request: RouteRequest) -> Result<Response, Failure> {
    let approval = approvals::show(&request.admin, &request.caller, request.path_param("id")).await?;
    ok_json(&ApprovalRow::from(approval))
}

pub(super) async fn approve(request: RouteRequest) -> Result<Response, Failure> {
    decide(&request, true).await
}

pub(super) async fn deny(request: RouteRequest) -> Result<Response, Failure> {
    decide(&request, false).await
}

async fn decide(request: &RouteRequest, approved: bool) -> Result<Response, Failure> {
    let DecisionReason { reason } = request.json_or_default()?;
    let (admin, caller, id) = (&request.admin, &request.caller, request.path_param("id"));
    let approval = approvals::decide(admin, caller, id, approved, reason).await?;
    ok_json(&ApprovalRow::from(approval))
}
