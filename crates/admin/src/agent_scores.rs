//! Learned success rates of agents for each type of work.

use std::collections::BTreeMap;

use jiff::SignedDuration;
use rialto_model::{
    agent::Agent,
    call::Caller,
    failure::Failure,
    ids::AgentId,
    routing::{ActivityWindow, BetaDistribution, Dispatch, RoutingStatsQuery},
    token_scopes::TokenScope,
};

use super::dispatches;
use crate::{
    Administration,
    administration::{require_right_or_admin, store_failure},
};

/// Maximum number of types of work, and of agents for each.
const MAX_WORK_TYPES: usize = 6;
const MAX_AGENTS: usize = 8;

/// Maximum number of types of work of an agent, and of decisions of a caller, that are scanned.
const MAX_SCANNED: usize = 200;

/// Learned success rates for one type of work.
#[derive(Clone, Debug)]
pub struct WorkTypeScores {
    /// Type of work.
    pub work_type: String,
    /// Success rates of its candidates, by slug.
    pub agents: BTreeMap<String, BetaDistribution>,
}

/// Success rates of one agent for each observed type of work, latest first. Without permission to read the audit log, only the types of
/// work that the caller dispatched itself are included.
pub async fn scores_of_agent(
    admin: &Administration,
    caller: &Caller,
    agent: &Agent,
) -> Result<Vec<WorkTypeScores>, Failure> {
    if require_right_or_admin(caller, TokenScope::Call).is_err() {
        return Ok(Vec::new());
    }
    let org = &caller.scope.org;
    let mut works = admin.store().success_rates(org, &agent.id, MAX_SCANNED).await.map_err(store_failure)?;
    if !admin.sees_all_callers(caller) {
        let filter =
            dispatches::DispatchQuery { limit: Some(MAX_SCANNED), ..dispatches::DispatchQuery::default() };
        let (own, _) = dispatches::list(admin, caller, &filter).await?;
        works.retain(|(work, _)| own.iter().any(|dispatch| dispatch.work.work_type == *work));
    }
    let scores = works.into_iter().take(MAX_WORK_TYPES).map(|(work_type, posterior)| {
        let agents = BTreeMap::from([(agent.slug.clone(), posterior.beta())]);
        WorkTypeScores { work_type, agents }
    });
    Ok(scores.collect())
}

/// Success rates of the candidates of these routing decisions.
pub async fn scores_of_candidates(
    admin: &Administration,
    caller: &Caller,
    made: &[Dispatch],
) -> Result<Vec<WorkTypeScores>, Failure> {
    let mut considered: BTreeMap<&str, BTreeMap<&AgentId, &str>> = BTreeMap::new();
    for dispatch in made {
        for candidate in &dispatch.candidates {
            let agents = considered.entry(dispatch.work.work_type.as_str()).or_default();
            if agents.len() < MAX_AGENTS {
                agents.insert(&candidate.agent_id, candidate.agent.as_str());
            }
        }
    }
    let now = admin.engine().now();
    let window =
        ActivityWindow { now, since: now.checked_sub(SignedDuration::from_hours(24)).unwrap_or(now) };
    let mut scores = Vec::new();
    for (work_type, names) in considered.into_iter().take(MAX_WORK_TYPES) {
        let query = RoutingStatsQuery {
            org: caller.scope.org.clone(),
            work_type: work_type.to_owned(),
            agents: names.keys().map(|id| (*id).clone()).collect(),
            window,
        };
        let standings = admin.store().routing_stats(&query).await.map_err(store_failure)?;
        let agents = names.into_iter().filter_map(|(id, name)| {
            standings.get(id).map(|standing| (name.to_owned(), standing.posterior.beta()))
        });
        scores.push(WorkTypeScores { work_type: work_type.to_owned(), agents: agents.collect() });
    }
    Ok(scores)
}
