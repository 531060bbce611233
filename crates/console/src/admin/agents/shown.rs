//! Agents, as programs are told of them.

use rialto_engine::registry::{Refreshed, RegistryError};
use rialto_model::{agent::Agent, call::Caller, name};
use rialto_policy::Action;
use serde_json::{Value, json};

use crate::Console;

/// An agent for programs. Credentials are named, never shown.
pub fn row(agent: &Agent) -> Value {
    let skills = agent.card.skills.iter().map(|skill| {
        let id = skill.id.as_str();
        json!({
            "id": id,
            "name": name::canonical(&agent.slug, id),
            "legacyAlias": name::legacy(&agent.slug, id),
            "description": skill.description,
            "tags": skill.tags,
            "inputSchema": skill.input_schema,
        })
    });
    json!({
        "id": agent.id,
        "name": agent.card.name,
        "slug": agent.slug,
        "url": agent.url,
        "trust": agent.trust,
        "health": agent.health,
        "signature": agent.signature,
        "skills": skills.collect::<Vec<_>>(),
        "interfaces": agent.card.interfaces,
        "credential": agent.credential,
        "registeredAt": agent.registered_at,
        "lastFetchedAt": agent.last_fetched_at,
        "lastSeenAt": agent.last_seen_at,
        "lastError": agent.last_error,
        "timeoutMs": agent.timeout_ms,
        "version": agent.version,
        "changeHeld": agent.pending.is_some(),
        "warnings": agent.card.warnings(),
    })
}

/// The same for this caller: where secrets come from is for those who may administer.
pub(crate) fn row_for(console: &Console, caller: &Caller, agent: &Agent) -> Value {
    let mut row = row(agent);
    if console.may(caller, Action::AdminAgents).is_err() {
        row["credential"] = Value::Null;
    }
    row
}

/// State of an agent's circuit breaker in the process that answers.
pub(crate) fn breaker(console: &Console, agent: &Agent) -> Value {
    let breaker = console.engine().breaker(&agent.id);
    json!({
        "state": breaker.state,
        "until": breaker.until,
        "recentFailures": breaker.recent_failures,
        "opened": breaker.opened,
        "reason": breaker.reason,
    })
}

/// How an agent's secret is shown and where it comes from, for those who may administer.
pub(crate) fn credential_of(console: &Console, caller: &Caller, agent: &Agent) -> Option<String> {
    console.may(caller, Action::AdminAgents).ok().and_then(|()| console.office().credential(agent))
}

/// How an agent's secret is shown, or why it cannot be; for those who may administer.
pub(crate) fn scheme_of(console: &Console, caller: &Caller, agent: &Agent) -> Option<String> {
    console.may(caller, Action::AdminAgents).ok().and_then(|()| console.office().shown_as(agent))
}

/// What became of a refresh of one among many, for programs.
pub fn came(slug: &str, came: &Result<Refreshed, RegistryError>) -> Value {
    match came {
        Ok(came) => refreshed(came),
        Err(error) => json!({ "agent": slug, "outcome": "failed", "error": error.to_string() }),
    }
}

/// What became of a refresh, for programs.
pub fn refreshed(refreshed: &Refreshed) -> Value {
    match refreshed {
        Refreshed::Unchanged(agent) => json!({ "agent": agent.slug, "outcome": "unchanged" }),
        Refreshed::Changed(agent, diff) => {
            json!({ "agent": agent.slug, "outcome": "changed", "changes": diff })
        }
        Refreshed::Held(agent, diff) => json!({ "agent": agent.slug, "outcome": "held", "changes": diff }),
    }
}
