//! `/api/v1/agents`.

use axum::response::Response;
use http::StatusCode;
use rialto_model::failure::Failure;
use serde::Deserialize;
use serde_json::json;

use super::{asking::Asking, done, good, told};
use crate::admin::agents::{self, Filter, Wanted};

/// How many probes are told when nobody says.
const PROBES: usize = 100;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Trust {
    trust: String,
}

pub(super) async fn list(asking: Asking) -> Result<Response, Failure> {
    let filter = Filter {
        q: asking.query("q").unwrap_or_default().to_owned(),
        health: asking.read_query("health", agents::health)?,
        trust: asking.read_query("trust", agents::level)?,
        limit: asking.limit()?,
        cursor: asking.query("cursor").map(str::to_owned),
    };
    let page = agents::list(&asking.console, &asking.caller, &filter).await?;
    let rows: Vec<_> =
        page.agents.iter().map(|agent| agents::row_for(&asking.console, &asking.caller, agent)).collect();
    good(&json!({ "agents": rows, "total": page.total, "next": page.next }))
}

pub(super) async fn register(asking: Asking) -> Result<Response, Failure> {
    let wanted: Wanted = asking.json()?;
    let registered = agents::register(&asking.console, &asking.caller, &wanted).await?;
    let status = if registered.created { StatusCode::CREATED } else { StatusCode::OK };
    Ok(told(status, &agents::row(&registered.agent)))
}

pub(super) async fn show(asking: Asking) -> Result<Response, Failure> {
    let agent = agents::find(&asking.console, &asking.caller, asking.part("key")).await?;
    let mut row = agents::row_for(&asking.console, &asking.caller, &agent);
    row["card"] = agent.card.raw.value();
    row["shownAs"] = json!(agents::credential_of(&asking.console, &asking.caller, &agent));
    row["pending"] = json!(agents::pending(&agent));
    good(&row)
}

pub(super) async fn remove(asking: Asking) -> Result<Response, Failure> {
    agents::remove(&asking.console, &asking.caller, asking.part("key")).await?;
    done()
}

pub(super) async fn refresh(asking: Asking) -> Result<Response, Failure> {
    let came = agents::refresh(&asking.console, &asking.caller, asking.part("key")).await?;
    good(&agents::refreshed(&came))
}

pub(super) async fn refresh_all(asking: Asking) -> Result<Response, Failure> {
    let (answered, silent) = agents::refresh_all(&asking.console, &asking.caller, &[]).await?;
    good(&json!({ "refreshed": answered, "failed": silent }))
}

pub(super) async fn trust(asking: Asking) -> Result<Response, Failure> {
    let Trust { trust } = asking.json()?;
    let agent = agents::trust(&asking.console, &asking.caller, asking.part("key"), &trust).await?;
    good(&agents::row(&agent))
}

pub(super) async fn approve(asking: Asking) -> Result<Response, Failure> {
    let agent = agents::approve(&asking.console, &asking.caller, asking.part("key")).await?;
    good(&agents::row(&agent))
}

pub(super) async fn probes(asking: Asking) -> Result<Response, Failure> {
    let agent = agents::find(&asking.console, &asking.caller, asking.part("key")).await?;
    let limit = asking.limit()?.unwrap_or(PROBES);
    good(&json!({ "probes": agents::probes(&asking.console, &agent, limit).await? }))
}

pub(super) async fn history(asking: Asking) -> Result<Response, Failure> {
    let agent = agents::find(&asking.console, &asking.caller, asking.part("key")).await?;
    let history = agents::history(&asking.console, &agent).await?;
    let told: Vec<_> =
        history.iter().map(|old| json!({ "replacedAt": old.at, "changes": old.diff })).collect();
    good(&json!({ "history": told, "pending": agents::pending(&agent) }))
}
