//! API representation of agents.

use rialto_api_types::agents::{
    AgentFacts, AgentRow, CardChange, CardChanges, CardRefresh, CircuitBreakerRow, CircuitState,
    RefreshOutcome, SkillRow,
};
use rialto_engine::{
    diff::CardDiff,
    registry::{Refreshed, RegistryError},
};
use rialto_model::{agent::Agent, call::Caller, card::Skill, name};
use rialto_policy::Action;

use crate::Administration;

/// Row of an agent. Credentials are shown by their source only.
pub fn agent_row(agent: &Agent) -> AgentRow {
    AgentRow {
        id: agent.id.clone(),
        name: agent.card.name.clone(),
        slug: agent.slug.clone(),
        url: agent.url.clone(),
        trust: agent.trust,
        health: agent.health,
        signature: agent.signature,
        skills: agent.card.skills.iter().map(|skill| skill_row(agent, skill)).collect(),
        interfaces: agent.card.interfaces.clone(),
        credential: agent.credential.clone(),
        registered_at: agent.registered_at,
        last_fetched_at: agent.last_fetched_at,
        last_seen_at: agent.last_seen_at,
        last_error: agent.last_error.clone(),
        timeout_ms: agent.timeout_ms,
        version: agent.version,
        change_held: agent.pending.is_some(),
        warnings: agent.card.warnings(),
    }
}

fn skill_row(agent: &Agent, skill: &Skill) -> SkillRow {
    let id = skill.id.as_str();
    SkillRow {
        id: id.to_owned(),
        name: name::canonical(&agent.slug, id),
        legacy_alias: name::legacy(&agent.slug, id),
        description: skill.description.clone(),
        tags: skill.tags.clone(),
        input_schema: skill.input_schema.clone(),
    }
}

/// Row of an agent for this caller. The source of its secret is shown only with permission to administer agents.
pub fn agent_row_for(admin: &Administration, caller: &Caller, agent: &Agent) -> AgentRow {
    let may_administer = admin.check_admin(caller, Action::AdminAgents).is_ok();
    let row = agent_row(agent);
    AgentRow { credential: row.credential.filter(|_| may_administer), ..row }
}

/// Members of an agent that a list leaves out.
pub fn agent_facts(admin: &Administration, caller: &Caller, agent: &Agent) -> AgentFacts {
    AgentFacts {
        card: agent.card.raw.clone(),
        shown_as: describe_credential(admin, caller, agent),
        scheme: describe_auth_scheme(admin, caller, agent),
        pending: super::pending_changes(agent).map(card_changes),
        breaker: Some(circuit_breaker(admin, agent)),
    }
}

/// State of an agent's circuit breaker in the process that answers.
fn circuit_breaker(admin: &Administration, agent: &Agent) -> CircuitBreakerRow {
    let breaker = admin.engine().calls().breaker_status(&agent.id);
    let state = match breaker.state {
        "open" => CircuitState::Open,
        "half-open" => CircuitState::HalfOpen,
        _ => CircuitState::Closed,
    };
    CircuitBreakerRow {
        state,
        until: breaker.until,
        recent_failures: breaker.recent_failures,
        opened: breaker.opened,
        reason: breaker.reason,
    }
}

/// Scheme and source of an agent's credential, for callers with permission to administer agents.
pub fn describe_credential(admin: &Administration, caller: &Caller, agent: &Agent) -> Option<String> {
    admin.check_admin(caller, Action::AdminAgents).ok().and_then(|()| admin.host().describe_credential(agent))
}

/// Form in which an agent's secret is sent, or the reason why it cannot be; for callers with permission to administer agents.
fn describe_auth_scheme(admin: &Administration, caller: &Caller, agent: &Agent) -> Option<String> {
    admin
        .check_admin(caller, Action::AdminAgents)
        .ok()
        .and_then(|()| admin.host().describe_auth_scheme(agent))
}

/// Result of fetching the card of one agent among many.
pub fn refresh_result(slug: &str, refreshed: &Result<Refreshed, RegistryError>) -> CardRefresh {
    match refreshed {
        Ok(refreshed) => card_refresh(refreshed),
        Err(error) => CardRefresh {
            error: Some(error.to_string()),
            ..refresh_without_changes(slug, RefreshOutcome::Failed)
        },
    }
}

/// Result of fetching the card of an agent.
pub fn card_refresh(refreshed: &Refreshed) -> CardRefresh {
    let changed = |agent: &Agent, outcome, diff: &CardDiff| CardRefresh {
        changes: Some(card_changes(diff.clone())),
        ..refresh_without_changes(&agent.slug, outcome)
    };
    match refreshed {
        Refreshed::Unchanged(agent) => refresh_without_changes(&agent.slug, RefreshOutcome::Unchanged),
        Refreshed::Changed(agent, diff) => changed(agent, RefreshOutcome::Changed, diff),
        Refreshed::Held(agent, diff) => changed(agent, RefreshOutcome::Held, diff),
    }
}

fn refresh_without_changes(slug: &str, outcome: RefreshOutcome) -> CardRefresh {
    CardRefresh { agent: slug.to_owned(), outcome, changes: None, error: None }
}

/// Difference between two cards.
pub fn card_changes(diff: CardDiff) -> CardChanges {
    let changed = diff.changed.into_iter().map(|change| CardChange {
        of: change.of,
        member: change.member.into_owned(),
        before: change.before,
        after: change.after,
    });
    CardChanges { added: diff.added, removed: diff.removed, changed: changed.collect() }
}
