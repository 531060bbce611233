//! The rest of `/api/v1`: how things go, the audit trail, tokens, and the document of all of it.

use axum::response::Response;
use http::StatusCode;
use rialto_model::{failure::Failure, store::Verdict};
use serde::Serialize;
use serde_json::json;

use super::{asking::Asking, done, good, openapi::document, told};
use crate::admin::{
    audit::{self, Filter, Record},
    overview::overview as look,
    tokens,
};

/// Arguments keep their digits only in a type of its own.
#[derive(Serialize)]
struct Records<'a> {
    records: Vec<Record<'a>>,
    next: Option<u64>,
}

pub(super) async fn openapi(_: Asking) -> Result<Response, Failure> {
    good(&document())
}

pub(super) async fn overview(asking: Asking) -> Result<Response, Failure> {
    let seen = look(&asking.console, &asking.caller).await?;
    let unwell: Vec<_> = seen
        .unwell
        .iter()
        .map(|agent| json!({ "agent": agent.slug, "health": agent.health, "lastError": agent.last_error }))
        .collect();
    good(&json!({
        "agents": seen.agents,
        "unwell": unwell,
        "skills": seen.skills,
        "tools": seen.tools,
        "waiting": seen.waiting,
        "calls": seen.calls,
    }))
}

pub(super) async fn audit(asking: Asking) -> Result<Response, Failure> {
    let text = |name| asking.query(name).map(str::to_owned);
    let filter = Filter {
        since: text("since"),
        until: text("until"),
        agent: text("agent"),
        caller: text("caller"),
        task: text("task"),
        outcome: text("outcome"),
        limit: asking.limit()?,
        cursor: asking.read_query("cursor", |text| text.parse().ok())?,
    };
    let page = audit::search(&asking.console, &asking.caller, &filter).await?;
    good(&Records { records: page.records.iter().map(Record::of).collect(), next: page.next })
}

pub(super) async fn verify(asking: Asking) -> Result<Response, Failure> {
    good(&match audit::verify(&asking.console, &asking.caller).await? {
        Verdict::Sound { records, last, seal } => {
            json!({ "sound": true, "records": records, "last": last, "seal": seal })
        }
        Verdict::Broken { record, why } => json!({ "sound": false, "record": record, "why": why }),
    })
}

pub(super) async fn tokens(asking: Asking) -> Result<Response, Failure> {
    let now = asking.console.engine().now();
    let tokens = tokens::list(&asking.console, &asking.caller).await?;
    let tokens: Vec<_> = tokens.iter().map(|token| tokens::shown(token, now)).collect();
    good(&json!({ "tokens": tokens }))
}

pub(super) async fn create_token(asking: Asking) -> Result<Response, Failure> {
    let wanted: tokens::Wanted = asking.json()?;
    let (row, token) = tokens::create(&asking.console, &asking.caller, &wanted).await?;
    let mut shown = tokens::shown(&row, asking.console.engine().now());
    shown["token"] = json!(token);
    Ok(told(StatusCode::CREATED, &shown))
}

pub(super) async fn revoke_token(asking: Asking) -> Result<Response, Failure> {
    tokens::revoke(&asking.console, &asking.caller, asking.part("id")).await?;
    done()
}
