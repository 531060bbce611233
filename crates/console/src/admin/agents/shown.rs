//! Agents as the API describes them.

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

use crate::Console;

/// Row of an agent. Credentials are named, never shown.
pub fn row(agent: &Agent) -> AgentRow {
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

/// Row of an agent for this caller: where secrets come from is for those who may administer.
pub(crate) fn row_for(console: &Console, caller: &Caller, agent: &Agent) -> AgentRow {
    let may_administer = console.may(caller, Action::AdminAgents).is_ok();
    let row = row(agent);
    AgentRow { credential: row.credential.filter(|_| may_administer), ..row }
}

/// Members of an agent that a list leaves out.
pub(crate) fn facts(console: &Console, caller: &Caller, agent: &Agent) -> AgentFacts {
    AgentFacts {
        card: agent.card.raw.clone(),
        shown_as: credential_of(console, caller, agent),
        scheme: scheme_of(console, caller, agent),
        pending: super::pending(agent).map(card_changes),
        breaker: Some(breaker(console, agent)),
    }
}

/// State of an agent's circuit breaker in the process that answers.
fn breaker(console: &Console, agent: &Agent) -> CircuitBreakerRow {
    let breaker = console.engine().calls().breaker_status(&agent.id);
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

/// Source of an agent's secret and its form, for those who may administer.
pub(crate) fn credential_of(console: &Console, caller: &Caller, agent: &Agent) -> Option<String> {
    console.may(caller, Action::AdminAgents).ok().and_then(|()| console.office().credential(agent))
}

/// Form in which an agent's secret is sent, or why it cannot be; for those who may administer.
fn scheme_of(console: &Console, caller: &Caller, agent: &Agent) -> Option<String> {
    console.may(caller, Action::AdminAgents).ok().and_then(|()| console.office().shown_as(agent))
}

/// Result of fetching the card of one agent among many.
pub fn refresh_result(slug: &str, refreshed: &Result<Refreshed, RegistryError>) -> CardRefresh {
    match refreshed {
        Ok(refreshed) => card_refresh(refreshed),
        Err(error) => {
            CardRefresh { error: Some(error.to_string()), ..unchanged(slug, RefreshOutcome::Failed) }
        }
    }
}

/// Result of fetching the card of an agent.
pub fn card_refresh(refreshed: &Refreshed) -> CardRefresh {
    let changed = |agent: &Agent, outcome, diff: &CardDiff| CardRefresh {
        changes: Some(card_changes(diff.clone())),
        ..unchanged(&agent.slug, outcome)
    };
    match refreshed {
        Refreshed::Unchanged(agent) => unchanged(&agent.slug, RefreshOutcome::Unchanged),
        Refreshed::Changed(agent, diff) => changed(agent, RefreshOutcome::Changed, diff),
        Refreshed::Held(agent, diff) => changed(agent, RefreshOutcome::Held, diff),
    }
}

fn unchanged(slug: &str, outcome: RefreshOutcome) -> CardRefresh {
    CardRefresh { agent: slug.to_owned(), outcome, changes: None, error: None }
}

/// Difference between two cards.
pub(crate) fn card_changes(diff: CardDiff) -> CardChanges {
    let changed = diff.changed.into_iter().map(|change| CardChange {
        of: change.of,
        member: change.member.into_owned(),
        before: change.before,
        after: change.after,
    });
    CardChanges { added: diff.added, removed: diff.removed, changed: changed.collect() }
}
