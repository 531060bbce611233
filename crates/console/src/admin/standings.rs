//! How well agents do each type of work, as things stand now.

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
use crate::{Console, console::store_failure};

/// So many types of work, and so many agents of each, are looked at.
const WORKS: usize = 6;
const AGENTS: usize = 8;

/// So many types of work of one agent, and choices of one caller, are read to find those.
const LOOKED_AT: usize = 200;

/// What is known about one type of work.
#[derive(Clone, Debug)]
pub struct Known {
    /// The type.
    pub work_type: String,
    /// Those who were considered for it lately, by name.
    pub agents: BTreeMap<String, BetaDistribution>,
}

/// What is known of how well one agent does each type of work that it was observed at, what it was observed at last first. Whoever
/// sees only its own choices is told of the types of work that it gave away itself.
pub async fn of_agent(console: &Console, caller: &Caller, agent: &Agent) -> Result<Vec<Known>, Failure> {
    if Console::need(caller, TokenScope::Call).is_err() {
        return Ok(Vec::new());
    }
    let org = &caller.scope.org;
    let mut works = console.store().success_rates(org, &agent.id, LOOKED_AT).await.map_err(store_failure)?;
    if !console.sees_all(caller) {
        let filter = dispatches::Filter { limit: Some(LOOKED_AT), ..dispatches::Filter::default() };
        let (own, _) = dispatches::list(console, caller, &filter).await?;
        works.retain(|(work, _)| own.iter().any(|choice| choice.work.work_type == *work));
    }
    let known = works.into_iter().take(WORKS).map(|(work_type, posterior)| {
        let agents = BTreeMap::from([(agent.slug.clone(), posterior.beta())]);
        Known { work_type, agents }
    });
    Ok(known.collect())
}

/// What is known about those who were considered in these choices, which the caller may see.
pub async fn of(console: &Console, caller: &Caller, choices: &[Dispatch]) -> Result<Vec<Known>, Failure> {
    let mut considered: BTreeMap<&str, BTreeMap<&AgentId, &str>> = BTreeMap::new();
    for choice in choices {
        for candidate in &choice.candidates {
            let agents = considered.entry(choice.work.work_type.as_str()).or_default();
            if agents.len() < AGENTS {
                agents.insert(&candidate.agent_id, candidate.agent.as_str());
            }
        }
    }
    let now = console.engine().now();
    let window =
        ActivityWindow { now, since: now.checked_sub(SignedDuration::from_hours(24)).unwrap_or(now) };
    let mut known = Vec::new();
    for (work_type, names) in considered.into_iter().take(WORKS) {
        let query = RoutingStatsQuery {
            org: caller.scope.org.clone(),
            work_type: work_type.to_owned(),
            agents: names.keys().map(|id| (*id).clone()).collect(),
            window,
        };
        let standings = console.store().routing_stats(&query).await.map_err(store_failure)?;
        let agents = names.into_iter().filter_map(|(id, name)| {
            standings.get(id).map(|standing| (name.to_owned(), standing.posterior.beta()))
        });
        known.push(Known { work_type: work_type.to_owned(), agents: agents.collect() });
    }
    Ok(known)
}
