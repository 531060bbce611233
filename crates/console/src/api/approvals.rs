//! `/api/v1/approvals`.

use axum::response::Response;
use rialto_api_types::approvals::{ApprovalPage, ApprovalRow, DecisionReason};
use rialto_model::{failure::Failure, ids::ApprovalId};

use super::{asking::Asking, good};
use crate::admin::approvals::{self, Filter};

pub(super) async fn list(asking: Asking) -> Result<Response, Failure> {
    let state = asking.read_query("state", |text| match text {
        "waiting" => Some(false),
        "all" => Some(true),
        _ => None,
    })?;
    let filter = Filter {
        all: state.unwrap_or(false),
        limit: asking.limit()?,
        cursor: asking.cursor().map(ApprovalId::from),
    };
    let (found, next) = approvals::page(&asking.console, &asking.caller, &filter).await?;
    good(&ApprovalPage { approvals: found.into_iter().map(ApprovalRow::from).collect(), next })
}

pub(super) async fn show(asking: Asking) -> Result<Response, Failure> {
    let approval = approvals::show(&asking.console, &asking.caller, asking.part("id")).await?;
    good(&ApprovalRow::from(approval))
}

pub(super) async fn approve(asking: Asking) -> Result<Response, Failure> {
    decide(&asking, true).await
}

pub(super) async fn deny(asking: Asking) -> Result<Response, Failure> {
    decide(&asking, false).await
}

async fn decide(asking: &Asking, approved: bool) -> Result<Response, Failure> {
    let DecisionReason { reason } = asking.json_if_any()?;
    let (console, caller, id) = (&asking.console, &asking.caller, asking.part("id"));
    let approval = approvals::decide(console, caller, id, approved, reason).await?;
    good(&ApprovalRow::from(approval))
}
