//! `/api/v1/agents`.

use axum::response::Response;
use http::StatusCode;
use rialto_api_types::agents::{
    AgentCredentialRow, AgentDetail, AgentPage, AgentScore, AgentScores, CardHistory, NewAgent, ProbeList,
    RefreshProgress, RefreshRequest, RefreshSummary, RegisteredAgent, ReplacedCard, TrustChange,
};
use rialto_model::{credential::Credential, failure::Failure};

use super::{asking::Asking, done, good, told};
use crate::admin::{
    agents::{self, Filter},
    refreshing::{self, Round},
    standings,
};

/// How many probes are told when nobody says.
const PROBES: usize = 100;

pub(super) async fn list(asking: Asking) -> Result<Response, Failure> {
    let filter = Filter {
        q: asking.query("q").unwrap_or_default().to_owned(),
        health: asking.read_query("health", agents::health)?,
        trust: asking.read_query("trust", agents::level)?,
        limit: asking.limit()?,
        cursor: asking.query("cursor").map(str::to_owned),
    };
    let page = agents::list(&asking.console, &asking.caller, &filter).await?;
    let rows = page.agents.iter().map(|agent| agents::row_for(&asking.console, &asking.caller, agent));
    good(&AgentPage { agents: rows.collect(), total: page.total, next: page.next })
}

pub(super) async fn register(asking: Asking) -> Result<Response, Failure> {
    let new: NewAgent = asking.json()?;
    let (registered, policy) = agents::register(&asking.console, &asking.caller, &new).await?;
    let status = if registered.created { StatusCode::CREATED } else { StatusCode::OK };
    Ok(told(status, &RegisteredAgent { agent: agents::row(&registered.agent), allowed_by: policy }))
}

pub(super) async fn show(asking: Asking) -> Result<Response, Failure> {
    let agent = agents::find(&asking.console, &asking.caller, asking.part("key")).await?;
    let row = agents::row_for(&asking.console, &asking.caller, &agent);
    good(&AgentDetail { agent: row, facts: agents::facts(&asking.console, &asking.caller, &agent) })
}

pub(super) async fn remove(asking: Asking) -> Result<Response, Failure> {
    agents::remove(&asking.console, &asking.caller, asking.part("key")).await?;
    done()
}

pub(super) async fn refresh(asking: Asking) -> Result<Response, Failure> {
    let came = agents::refresh(&asking.console, &asking.caller, asking.part("key")).await?;
    good(&agents::card_refresh(&came))
}

pub(super) async fn refresh_all(asking: Asking) -> Result<Response, Failure> {
    let RefreshRequest { agents: picked } = asking.json_if_any()?;
    let slugs = slugs(&asking, &picked).await?;
    if asking.query("wait") == Some("false") {
        let round = refreshing::begin(&asking.console, &asking.caller, &slugs).await?;
        return Ok(told(StatusCode::ACCEPTED, &how_far(&round)));
    }
    let came = agents::refresh_each(&asking.console, &asking.caller, &slugs).await?;
    let failed = came.iter().filter(|(_, came)| came.is_err()).count();
    let outcomes = came.iter().map(|(slug, came)| agents::refresh_result(slug, came)).collect();
    good(&RefreshSummary { refreshed: came.len() - failed, failed, outcomes })
}

pub(super) async fn progress(asking: Asking) -> Result<Response, Failure> {
    let round = refreshing::last(&asking.console, &asking.caller).await?;
    good(&round.as_deref().map(how_far))
}

pub(super) async fn standings(asking: Asking) -> Result<Response, Failure> {
    let agent = agents::find(&asking.console, &asking.caller, asking.part("key")).await?;
    let known = standings::of_agent(&asking.console, &asking.caller, &agent).await?;
    let scores = known.iter().flat_map(|known| known.agents.values().map(|beta| (&known.work_type, beta)));
    let scores = scores.map(|(work_type, beta)| AgentScore {
        work_type: work_type.clone(),
        alpha: beta.alpha,
        beta: beta.beta,
        observed: beta.observed,
    });
    good(&AgentScores { standings: scores.collect() })
}

/// The agents that are meant: by slug, id, URL or name.
async fn slugs(asking: &Asking, picked: &[String]) -> Result<Vec<String>, Failure> {
    let mut slugs = Vec::new();
    for key in picked {
        slugs.push(agents::find(&asking.console, &asking.caller, key).await?.slug.clone());
    }
    Ok(slugs)
}

fn how_far(round: &Round) -> RefreshProgress {
    let (answered, silent) = round.counts();
    RefreshProgress { all: round.all, answered, silent, is_over: round.is_over(), begun_at: round.begun }
}

pub(super) async fn credential(asking: Asking) -> Result<Response, Failure> {
    let wanted: Option<Credential> = asking.json()?;
    let key = asking.part("key");
    let agent = agents::set_credential(&asking.console, &asking.caller, key, wanted.as_ref()).await?;
    let shown_as = agents::credential_of(&asking.console, &asking.caller, &agent);
    good(&AgentCredentialRow { agent: agents::row(&agent), shown_as })
}

pub(super) async fn trust(asking: Asking) -> Result<Response, Failure> {
    let TrustChange { trust } = asking.json()?;
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
    good(&ProbeList { probes: agents::probes(&asking.console, &agent, limit).await? })
}

pub(super) async fn history(asking: Asking) -> Result<Response, Failure> {
    let agent = agents::find(&asking.console, &asking.caller, asking.part("key")).await?;
    let history = agents::history(&asking.console, &agent).await?;
    let replaced = history
        .into_iter()
        .map(|old| ReplacedCard { replaced_at: old.at, changes: agents::card_changes(old.diff) });
    let pending = agents::pending(&agent).map(agents::card_changes);
    good(&CardHistory { history: replaced.collect(), pending })
}
