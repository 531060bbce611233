//! `/api/v1/agents`.

use axum::response::Response;
use futures::FutureExt;
use http::StatusCode;
use rialto_admin::{
    agent_scores,
    agents::{self, AgentQuery},
    refresh_job::{self, RefreshJob},
};
use rialto_api_types::{
    agents::{
        AgentCredentialRow, AgentDetail, AgentPage, AgentScore, AgentScores, CardHistory, NewAgent,
        ProbeList, RefreshProgress, RefreshRequest, RefreshSummary, RegisteredAgent, ReplacedCard,
        TrustChange,
    },
    schema::schema_of,
};
use rialto_model::{credential::Credential, failure::Failure};

use super::{
    json_response, no_content, ok_json,
    request::RouteRequest,
    routes::{PAGED, Route, delete, get, handler, post},
};

/// Default number of probes in a response.
const DEFAULT_PROBES: usize = 100;

/// Routes of this resource.
pub(super) const ROUTES: &[Route] = &[
    Route {
        query: &[
            ("q", "Words in the name, the URL or a skill"),
            ("health", "healthy, degraded, unreachable or unknown"),
            ("trust", "external, trusted or system"),
            PAGED[0],
            PAGED[1],
        ],
        ..get("/api/v1/agents", "List agents, by slug", "`agents`, `total` and `next`", handler!(list))
    },
    post(
        "/api/v1/agents",
        "Register an agent",
        Some(schema_of::<NewAgent>),
        (201, "The agent; 200 if it was registered before"),
        handler!(register),
    ),
    Route {
        query: &[("wait", "`false`: respond at once (202); `GET /api/v1/refresh` reports the progress")],
        ..post(
            "/api/v1/refresh",
            "Fetch the cards of these agents, or of all agents",
            Some(schema_of::<RefreshRequest>),
            (200, "Number of agents that answered, and the result of each"),
            handler!(refresh_all),
        )
    },
    get(
        "/api/v1/refresh",
        "Progress of the last refresh in the background",
        "`all`, `answered`, `silent`, `isOver` and `begunAt`; null if there was none since the server started",
        handler!(progress),
    ),
    get(
        "/api/v1/agents/{key}",
        "Show an agent, by slug, id, URL or name",
        "The agent, its card and the change that waits for approval",
        handler!(show),
    ),
    delete("/api/v1/agents/{key}", "Remove an agent", handler!(remove)),
    post(
        "/api/v1/agents/{key}/refresh",
        "Fetch the card of an agent",
        None,
        (200, "Result of the refresh"),
        handler!(refresh),
    ),
    post(
        "/api/v1/agents/{key}/trust",
        "Set the trust level of an agent",
        Some(schema_of::<TrustChange>),
        (200, "The agent"),
        handler!(set_trust),
    ),
    Route {
        method: "PUT",
        body: Some(schema_of::<Option<Credential>>),
        ..get(
            "/api/v1/agents/{key}/credential",
            "Set the credential that is sent to an agent; null removes it",
            "The agent",
            handler!(set_credential),
        )
    },
    post(
        "/api/v1/agents/{key}/approve",
        "Approve the changed card of an agent",
        None,
        (200, "The agent"),
        handler!(approve),
    ),
    Route {
        query: &[PAGED[0]],
        ..get(
            "/api/v1/agents/{key}/probes",
            "List the latest probes of an agent, newest first",
            "`probes`",
            handler!(probes),
        )
    },
    get(
        "/api/v1/agents/{key}/standings",
        "Learned success rates of an agent for each type of work, latest first",
        "`standings`",
        handler!(scores),
    ),
    get(
        "/api/v1/agents/{key}/history",
        "List the changes of an agent's card, newest first",
        "`history`",
        handler!(history),
    ),
];

pub(super) async fn list(request: RouteRequest) -> Result<Response, Failure> {
    let filter = AgentQuery {
        q: request.query("q").unwrap_or_default().to_owned(),
        health: request.parse_query("health", agents::parse_health)?,
        trust: request.parse_query("trust", agents::parse_trust)?,
        limit: request.limit()?,
        cursor: request.query("cursor").map(str::to_owned),
    };
    let page = agents::list(&request.admin, &request.caller, &filter).await?;
    let rows = page.agents.iter().map(|agent| agents::agent_row_for(&request.admin, &request.caller, agent));
    ok_json(&AgentPage { agents: rows.collect(), total: page.total, next: page.next })
}

pub(super) async fn register(request: RouteRequest) -> Result<Response, Failure> {
    let new: NewAgent = request.json()?;
    let (registered, policy) = agents::register(&request.admin, &request.caller, &new).await?;
    let status = if registered.created { StatusCode::CREATED } else { StatusCode::OK };
    Ok(json_response(
        status,
        &RegisteredAgent { agent: agents::agent_row(&registered.agent), allowed_by: policy },
    ))
}

pub(super) async fn show(request: RouteRequest) -> Result<Response, Failure> {
    let agent = agents::find(&request.admin, &request.caller, request.path_param("key")).await?;
    let row = agents::agent_row_for(&request.admin, &request.caller, &agent);
    ok_json(&AgentDetail { agent: row, facts: agents::agent_facts(&request.admin, &request.caller, &agent) })
}

pub(super) async fn remove(request: RouteRequest) -> Result<Response, Failure> {
    agents::remove(&request.admin, &request.caller, request.path_param("key")).await?;
    no_content()
}

pub(super) async fn refresh(request: RouteRequest) -> Result<Response, Failure> {
    let refreshed = agents::refresh(&request.admin, &request.caller, request.path_param("key")).await?;
    ok_json(&agents::card_refresh(&refreshed))
}

pub(super) async fn refresh_all(request: RouteRequest) -> Result<Response, Failure> {
    let RefreshRequest { agents: keys } = request.json_or_default()?;
    let slugs = find_slugs(&request, &keys).await?;
    if request.query("wait") == Some("false") {
        let job = refresh_job::start(&request.admin, &request.caller, &slugs).await?;
        return Ok(json_response(StatusCode::ACCEPTED, &refresh_progress(&job)));
    }
    let refreshed = agents::refresh_each(&request.admin, &request.caller, &slugs).await?;
    let failed = refreshed.iter().filter(|(_, result)| result.is_err()).count();
    let outcomes = refreshed.iter().map(|(slug, result)| agents::refresh_result(slug, result)).collect();
    ok_json(&RefreshSummary { refreshed: refreshed.len() - failed, failed, outcomes })
}

pub(super) async fn progress(request: RouteRequest) -> Result<Response, Failure> {
    let job = refresh_job::latest(&request.admin, &request.caller).await?;
    ok_json(&job.as_deref().map(refresh_progress))
}

pub(super) async fn scores(request: RouteRequest) -> Result<Response, Failure> {
    let agent = agents::find(&request.admin, &request.caller, request.path_param("key")).await?;
    let known = agent_scores::scores_of_agent(&request.admin, &request.caller, &agent).await?;
    let scores = known.iter().flat_map(|known| known.agents.values().map(|beta| (&known.work_type, beta)));
    let scores = scores.map(|(work_type, beta)| AgentScore {
        work_type: work_type.clone(),
        alpha: beta.alpha,
        beta: beta.beta,
        observed: beta.observed,
    });
    ok_json(&AgentScores { standings: scores.collect() })
}

/// Slugs of agents, which are named by slug, id, URL or name.
async fn find_slugs(request: &RouteRequest, keys: &[String]) -> Result<Vec<String>, Failure> {
    let mut slugs = Vec::new();
    for key in keys {
        slugs.push(agents::find(&request.admin, &request.caller, key).await?.slug.clone());
    }
    Ok(slugs)
}

fn refresh_progress(job: &RefreshJob) -> RefreshProgress {
    let (answered, silent) = job.counts();
    RefreshProgress { all: job.all, answered, silent, is_over: job.is_over(), begun_at: job.started_at }
}

pub(super) async fn set_credential(request: RouteRequest) -> Result<Response, Failure> {
    let wanted: Option<Credential> = request.json()?;
    let key = request.path_param("key");
    let agent = agents::set_credential(&request.admin, &request.caller, key, wanted.as_ref()).await?;
    let shown_as = agents::describe_credential(&request.admin, &request.caller, &agent);
    ok_json(&AgentCredentialRow { agent: agents::agent_row(&agent), shown_as })
}

pub(super) async fn set_trust(request: RouteRequest) -> Result<Response, Failure> {
    let TrustChange { trust } = request.json()?;
    let agent = agents::set_trust(&request.admin, &request.caller, request.path_param("key"), &trust).await?;
    ok_json(&agents::agent_row(&agent))
}

pub(super) async fn approve(request: RouteRequest) -> Result<Response, Failure> {
    let agent = agents::approve(&request.admin, &request.caller, request.path_param("key")).await?;
    ok_json(&agents::agent_row(&agent))
}

pub(super) async fn probes(request: RouteRequest) -> Result<Response, Failure> {
    let agent = agents::find(&request.admin, &request.caller, request.path_param("key")).await?;
    let limit = request.limit()?.unwrap_or(DEFAULT_PROBES);
    ok_json(&ProbeList { probes: agents::probes(&request.admin, &agent, limit).await? })
}

pub(super) async fn history(request: RouteRequest) -> Result<Response, Failure> {
    let agent = agents::find(&request.admin, &request.caller, request.path_param("key")).await?;
    let history = agents::history(&request.admin, &agent).await?;
    let replaced = history
        .into_iter()
        .map(|old| ReplacedCard { replaced_at: old.at, changes: agents::card_changes(old.diff) });
    let pending = agents::pending_changes(&agent).map(agents::card_changes);
    ok_json(&CardHistory { history: replaced.collect(), pending })
}
