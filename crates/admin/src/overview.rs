//! Overview of a project: agents, skills and the calls of the last hour.

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
use crate::{
    Administration,
    administration::{require_right_or_admin, store_failure},
};

/// Maximum number of unhealthy agents in the overview.
const MAX_UNHEALTHY_AGENTS: usize = 8;

/// Overview of a project.
#[derive(Clone, Debug)]
pub struct Overview {
    /// Numbers of agents.
    pub agents: AgentCounts,
    /// Some of the unhealthy agents.
    pub unwell: Vec<Arc<Agent>>,
    /// Number of skills that can be called.
    pub skills: usize,
    /// Number of MCP servers and functions.
    pub tools: usize,
    /// Number of the caller's tasks that need input.
    pub waiting: usize,
    /// Whether the caller has made a call.
    pub has_called: bool,
    /// Slug of an agent and name of one of its skills, as a sample.
    pub sample: Option<(String, String)>,
    /// Calls of the last hour, with permission to read the audit log.
    pub calls: Option<RecentCalls>,
}

/// Overview of the caller's project.
pub async fn overview(admin: &Administration, caller: &Caller) -> Result<Overview, Failure> {
    admin.engine().policies().sync().await?;
    let registry = admin.engine().registry();
    // Without the right to discover, agents and skills are not counted.
    let may_discover = require_right_or_admin(caller, TokenScope::Discover).is_ok();
    let mut agents = if may_discover { registry.agents(&caller.scope) } else { Vec::new() };
    agents.retain(|agent| may_see(admin, caller, agent));
    let directory = registry.directory(&caller.scope);
    let sees =
        |entry: &&Entry| may_discover && admin.engine().policies().may_discover(caller, &entry.target());
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
    let waiting = admin.store().tasks(&caller.scope, &waiting).await.map_err(store_failure)?.len();
    let calls =
        if admin.sees_all_callers(caller) { Some(traffic::recent_calls(admin, caller).await?) } else { None };
    Ok(Overview {
        agents: counts,
        unwell: agents.iter().filter(is_unwell).take(MAX_UNHEALTHY_AGENTS).cloned().collect(),
        skills: directory.listed().filter(sees).count(),
        tools: if may_discover { tools::deployments(admin, caller).len() } else { 0 },
        waiting,
        has_called: has_called(admin, caller).await?,
        sample: directory
            .listed()
            .find(sees)
            .map(|entry| (entry.agent.slug.clone(), entry.canonical.clone())),
        calls,
    })
}

/// Whether the caller has a task in the store.
async fn has_called(admin: &Administration, caller: &Caller) -> Result<bool, Failure> {
    let own = TaskFilter { caller: Some(caller.id.clone()), limit: 1, ..TaskFilter::default() };
    Ok(!admin.store().tasks(&caller.scope, &own).await.map_err(store_failure)?.is_empty())
}
