//! `/api/v1/audit` and `/api/v1/costs`.

use axum::response::Response;
use futures::FutureExt;
use rialto_admin::{
    audit::{self, AuditQuery},
    costs,
};
use rialto_api_types::audit::{AuditPage, AuditRecord, AuditVerification};
use rialto_model::failure::Failure;

use super::{
    ok_json,
    request::RouteRequest,
    routes::{PAGED, Route, get, handler},
};

/// Routes of this resource.
pub(super) const ROUTES: &[Route] = &[
    Route {
        query: &[
            ("since", "Time, or how long ago: 2h"),
            ("until", "Time, or how long ago: 2h"),
            ("agent", "Only records about this agent"),
            ("caller", "Only records of this caller"),
            ("task", "Only records about this task"),
            ("outcome", "completed, failed or denied"),
            ("admin", "true: only administrative operations"),
            PAGED[0],
            PAGED[1],
        ],
        ..get("/api/v1/audit", "Search the audit log, newest first", "`records` and `next`", handler!(search))
    },
    get(
        "/api/v1/audit/verify",
        "Verify the audit log against its seals",
        "Result of the verification",
        handler!(verify),
    ),
    Route {
        query: &[
            ("since", "Time, or how long ago: 2h"),
            ("until", "Time, or how long ago: 2h"),
            ("agent", "Only calls of this agent"),
            ("caller", "Only calls by this caller"),
            ("by", "One sum for each agent, skill, caller or day"),
        ],
        ..get("/api/v1/costs", "Sum up the costs of completed calls", "`sums` and `total`", handler!(costs))
    },
];
pub(super) async fn search(request: RouteRequest) -> Result<Response, Failure> {
    let filter = AuditQuery {
        limit: request.limit()?,
        cursor: request.parse_query("cursor", |text| text.parse().ok())?,
        ..AuditQuery::from_params(|name| request.query(name))
    };
    let page = audit::search(&request.admin, &request.caller, &filter).await?;
    ok_json(&AuditPage { records: page.records.iter().map(AuditRecord::from).collect(), next: page.next })
}

pub(super) async fn verify(request: RouteRequest) -> Result<Response, Failure> {
    ok_json(&AuditVerification::from(audit::verify(&request.admin, &request.caller).await?))
}

pub(super) async fn costs(request: RouteRequest) -> Result<Response, Failure> {
    let text = |name| request.query(name).map(str::to_owned);
    let filter = costs::CostReportQuery {
        since: text("since"),
        until: text("until"),
        agent: text("agent"),
        caller: text("caller"),
        by: request.parse_query("by", costs::parse_grouping)?.unwrap_or_default(),
    };
    ok_json(&costs::cost_report(&request.admin, &request.caller, &filter).await?)
}
