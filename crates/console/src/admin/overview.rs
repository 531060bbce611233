//! How things go: what is registered, what is not well, and what calls of the last hour were like.

use std::sync::Arc;

use rialto_api_types::overview::{AgentCounts, RecentCalls};
use rialto_engine::directory::Entry;
use rialto_model::{
    agent::{Agent, AgentTrust, Health},
    call::Caller,
    failure::Failure,
    store::TaskFilter,
    token_scopes::TokenScope,
};

use super::{agents::may_see, tools, traffic};
use crate::{Console, console::store_failure};

/// So many agents that are not well are named.
const NAMED: usize = 8;

/// How things go.
#[derive(Clone, Debug)]
pub struct Overview {
    /// How many agents there are, and how many of them are healthy and need a permit.
    pub agents: AgentCounts,
    /// Some of those that are not well.
    pub unwell: Vec<Arc<Agent>>,
    /// How many skills can be called.
    pub skills: usize,
    /// How many servers and functions are deployed.
    pub tools: usize,
    /// The caller's tasks that wait for an answer.
    pub waiting: usize,
    /// Whether the caller has called anything yet.
    pub has_called: bool,
    /// A skill that can be called: its agent's slug, and what it is called by.
    pub sample: Option<(String, String)>,
    /// What calls of the last hour were like, for whoever may read the audit trail.
    pub calls: Option<RecentCalls>,
}

/// How things go in the caller's project.
pub async fn overview(console: &Console, caller: &Caller) -> Result<Overview, Failure> {
    console.engine().sync().await?;
    let registry = console.engine().registry();
    // Whoever may not look around is told nothing of what there is.
    let looks = Console::need(caller, TokenScope::Discover).is_ok();
    let mut agents = if looks { registry.agents(&caller.scope) } else { Vec::new() };
    agents.retain(|agent| may_see(console, caller, agent));
    let directory = registry.directory(&caller.scope);
    let sees = |entry: &&Entry| looks && console.engine().may_discover(caller, &entry.target());
    let is_unwell = |agent: &&Arc<Agent>| matches!(agent.health, Health::Degraded | Health::Unreachable);
    let counts = AgentCounts {
        all: agents.len(),
        healthy: agents.iter().filter(|agent| agent.health == Health::Healthy).count(),
        unwell: agents.iter().filter(is_unwell).count(),
        external: agents.iter().filter(|agent| agent.trust == AgentTrust::External).count(),
    };
    let waiting = TaskFilter {
        caller: Some(caller.id.clone()),
        state: Some(rialto_model::task::TaskState::InputRequired),
        limit: 100,
        ..TaskFilter::default()
    };
    let waiting = console.store().tasks(&caller.scope, &waiting).await.map_err(store_failure)?.len();
    let calls = if console.sees_all(caller) { Some(traffic::calls(console, caller).await?) } else { None };
    Ok(Overview {
        agents: counts,
        unwell: agents.iter().filter(is_unwell).take(NAMED).cloned().collect(),
        skills: directory.listed().filter(sees).count(),
        tools: if looks { tools::deployed(console, caller).len() } else { 0 },
        waiting,
        has_called: has_called(console, caller).await?,
        sample: directory
            .listed()
            .find(sees)
            .map(|entry| (entry.agent.slug.clone(), entry.canonical.clone())),
        calls,
    })
}

/// Whether the caller has called anything that is still on record.
async fn has_called(console: &Console, caller: &Caller) -> Result<bool, Failure> {
    let own = TaskFilter { caller: Some(caller.id.clone()), limit: 1, ..TaskFilter::default() };
    Ok(!console.store().tasks(&caller.scope, &own).await.map_err(store_failure)?.is_empty())
}
