//! `/api/v1/approvals`: what waits for approval, and decisions about it, for whoever a policy lets `approve_call`.

use std::sync::Arc;

use axum::{
    Router,
    body::to_bytes,
    extract::{Path, Query, Request, State, rejection::QueryRejection},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use http::{HeaderValue, StatusCode, header};
use rialto_edge::problem;
use rialto_engine::{Engine, approving::Decider};
use rialto_model::{
    approval::{Approval, ApprovalFilter},
    call::Caller,
    failure::{Failure, Kind},
    ids::ApprovalId,
    json::Json,
};
use serde::{Deserialize, Serialize};

use crate::program::Program;

/// Where it is.
pub(crate) const PATH: &str = "/api/v1/approvals";

/// The largest decision.
const LARGEST: usize = 64 * 1024;

/// Which to list.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Page {
    /// `waiting` or `all`.
    state: Option<String>,
    before: Option<String>,
    #[serde(default)]
    limit: usize,
}

/// A decision.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Body {
    reason: Option<String>,
}

/// One page of them.
#[derive(Serialize)]
struct Listed<'a> {
    approvals: Vec<Shown<'a>>,
    next: Option<ApprovalId>,
}

/// An approval for programs. A type of its own, because on the way through a `Value` numbers lose digits.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Shown<'a> {
    state: &'static str,
    #[serde(flatten)]
    approval: &'a Approval,
}

/// An approval for programs.
pub(crate) fn shown(approval: &Approval) -> Shown<'_> {
    Shown { state: approval.state(), approval }
}

/// The addresses.
pub(crate) fn router(program: &Program) -> Router {
    Router::new()
        .route(PATH, get(list))
        .route("/api/v1/approvals/{id}", get(show))
        .route("/api/v1/approvals/{id}/approve", post(approve))
        .route("/api/v1/approvals/{id}/deny", post(deny))
        .with_state(Arc::new(program.engine.clone()))
}

async fn list(
    State(engine): State<Arc<Engine>>,
    page: Result<Query<Page>, QueryRejection>,
    request: Request,
) -> Response {
    answered(listed(&engine, page, decider(&request)).await)
}

async fn listed(
    engine: &Engine,
    page: Result<Query<Page>, QueryRejection>,
    by: Result<Decider, Failure>,
) -> Result<String, Failure> {
    let by = by?;
    let Query(page) = page.map_err(|error| Failure::new(Kind::Invalid, error.body_text()))?;
    let undecided = match page.state.as_deref() {
        None | Some("waiting") => true,
        Some("all") => false,
        Some(_) => return Err(Failure::new(Kind::Invalid, "state: expected `waiting` or `all`")),
    };
    let before = page.before.map(ApprovalId::from);
    let filter = ApprovalFilter { undecided, before, limit: page.limit, ..ApprovalFilter::default() };
    let found = engine.approvals(&by, filter).await?;
    let next = found.last().map(|last| last.id.clone());
    let approvals = found.iter().map(shown).collect();
    Ok(Json::of(&Listed { approvals, next }).get().to_owned())
}

async fn show(State(engine): State<Arc<Engine>>, Path(id): Path<String>, request: Request) -> Response {
    let by = decider(&request);
    drop(request);
    let found = async { engine.approval(&by?, &id).await }.await;
    answered(found.map(|approval| Json::of(&shown(&approval)).get().to_owned()))
}

async fn approve(State(engine): State<Arc<Engine>>, Path(id): Path<String>, request: Request) -> Response {
    answered(decided(&engine, &id, request, true).await)
}

async fn deny(State(engine): State<Arc<Engine>>, Path(id): Path<String>, request: Request) -> Response {
    answered(decided(&engine, &id, request, false).await)
}

async fn decided(engine: &Engine, id: &str, request: Request, approved: bool) -> Result<String, Failure> {
    let by = decider(&request)?;
    let invalid = |message: String| Failure::new(Kind::Invalid, message);
    let body = to_bytes(request.into_body(), LARGEST).await;
    let body = body.map_err(|_| invalid("the body did not come whole, or is too large".to_owned()))?;
    let body: Body = if body.is_empty() {
        Body::default()
    } else {
        serde_json::from_slice(&body).map_err(|error| invalid(format!("the body does not fit: {error}")))?
    };
    let approval = engine.decide_on(&by, id, approved, body.reason).await?;
    Ok(Json::of(&shown(&approval)).get().to_owned())
}

fn decider(request: &Request) -> Result<Decider, Failure> {
    let caller = request.extensions().get::<Caller>().cloned();
    let unknown = || Failure::new(Kind::Unauthenticated, "this request does not say who calls");
    caller.map(Decider::Caller).ok_or_else(unknown)
}

fn answered(answer: Result<String, Failure>) -> Response {
    let json = HeaderValue::from_static("application/json");
    match answer {
        Ok(text) => (StatusCode::OK, [(header::CONTENT_TYPE, json)], text).into_response(),
        Err(failure) => problem::answer(&failure),
    }
}
