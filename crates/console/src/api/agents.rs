//! `/api/v1/agents`.

use axum::response::Response;
use http::StatusCode;
use rialto_model::{credential::Credential, failure::Failure};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{asking::Asking, done, good, told};
use crate::admin::{
    agents::{self, Filter, Wanted},
    refreshing::{self, Round},
    standings,
};

/// How many probes are told when nobody says.
const PROBES: usize = 100;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Trust {
    trust: String,
}

/// Whose cards are meant; all of them where nobody is named.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Picked {
    agents: Vec<String>,
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
    let (registered, policy) = agents::register(&asking.console, &asking.caller, &wanted).await?;
    let status = if registered.created { StatusCode::CREATED } else { StatusCode::OK };
    let mut row = agents::row(&registered.agent);
    if let Some(policy) = policy {
        row["allowedBy"] = json!(policy);
    }
    Ok(told(status, &row))
}

pub(super) async fn show(asking: Asking) -> Result<Response, Failure> {
    let agent = agents::find(&asking.console, &asking.caller, asking.part("key")).await?;
    let mut row = agents::row_for(&asking.console, &asking.caller, &agent);
    row["card"] = agent.card.raw.value();
    row["shownAs"] = json!(agents::credential_of(&asking.console, &asking.caller, &agent));
    row["scheme"] = json!(agents::scheme_of(&asking.console, &asking.caller, &agent));
    row["pending"] = json!(agents::pending(&agent));
    row["breaker"] = agents::breaker(&asking.console, &agent);
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
    let Picked { agents: picked } = asking.json_if_any()?;
    let slugs = slugs(&asking, &picked).await?;
    if asking.query("wait") == Some("false") {
        let round = refreshing::begin(&asking.console, &asking.caller, &slugs).await?;
        return Ok(told(StatusCode::ACCEPTED, &how_far(&round)));
    }
    let came = agents::refresh_each(&asking.console, &asking.caller, &slugs).await?;
    let failed = came.iter().filter(|(_, came)| came.is_err()).count();
    let outcomes: Vec<_> = came.iter().map(|(slug, came)| agents::came(slug, came)).collect();
    good(&json!({ "refreshed": came.len() - failed, "failed": failed, "outcomes": outcomes }))
}

pub(super) async fn progress(asking: Asking) -> Result<Response, Failure> {
    let round = refreshing::last(&asking.console, &asking.caller).await?;
    good(&round.as_deref().map(how_far))
}

pub(super) async fn standings(asking: Asking) -> Result<Response, Failure> {
    let agent = agents::find(&asking.console, &asking.caller, asking.part("key")).await?;
    let known = standings::of_agent(&asking.console, &asking.caller, &agent).await?;
    let told = known.iter().flat_map(|known| known.agents.values().map(|beta| (&known.work_type, beta)));
    let told = told.map(|(work, beta)| {
        json!({ "workType": work, "alpha": beta.alpha, "beta": beta.beta, "observed": beta.observed })
    });
    good(&json!({ "standings": told.collect::<Vec<_>>() }))
}

/// The agents that are meant: by slug, id, URL or name.
async fn slugs(asking: &Asking, picked: &[String]) -> Result<Vec<String>, Failure> {
    let mut slugs = Vec::new();
    for key in picked {
        slugs.push(agents::find(&asking.console, &asking.caller, key).await?.slug.clone());
    }
    Ok(slugs)
}

fn how_far(round: &Round) -> Value {
    let (answered, silent) = round.counts();
    json!({
        "all": round.all, "answered": answered, "silent": silent, "isOver": round.is_over(), "begunAt": round.begun,
    })
}

pub(super) async fn credential(asking: Asking) -> Result<Response, Failure> {
    let wanted: Option<Credential> = asking.json()?;
    let key = asking.part("key");
    let agent = agents::set_credential(&asking.console, &asking.caller, key, wanted.as_ref()).await?;
    let mut row = agents::row(&agent);
    row["shownAs"] = json!(agents::credential_of(&asking.console, &asking.caller, &agent));
    good(&row)
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
