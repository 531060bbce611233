//! How a breaker has turned, as it is put on record.
//!
//! Who watches an agent must not have to guess from missing calls that it is left alone: each turn is a record of the audit
//! trail, so that webhooks and whoever follows the trail hear of it.

use rialto_model::{
    agent::Agent,
    clock::Timestamp,
    json::Json,
    verb::{Phase, Verb},
};
use rialto_route::breaker::Breaker;
use serde::Serialize;

use crate::engine::Engine;

/// Who is named where records name a caller.
const OURSELVES: &str = "rialto";

/// A turn of a breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turned {
    /// The agent gets no work until then.
    Open(Timestamp),
    /// It gets one task, to see.
    HalfOpen,
    /// It gets work again.
    Closed,
}

/// What is on record beside the agent's id.
#[derive(Serialize)]
struct Facts<'a> {
    agent: &'a str,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<Timestamp>,
}

// === impl Turned ===

impl Turned {
    /// The turn between two states, if it is one.
    pub(super) fn between(before: Breaker, after: Breaker, now: Timestamp) -> Option<Self> {
        match (before, after) {
            (Breaker::Closed { .. } | Breaker::HalfOpen { .. }, Breaker::Open { until, .. })
                if until > now =>
            {
                Some(Self::Open(until))
            }
            (Breaker::Open { .. }, Breaker::HalfOpen { .. }) => Some(Self::HalfOpen),
            (Breaker::Open { .. } | Breaker::HalfOpen { .. }, Breaker::Closed { .. }) => Some(Self::Closed),
            _ => None,
        }
    }

    const fn state(self) -> &'static str {
        match self {
            Self::Open(_) => "open",
            Self::HalfOpen => "half-open",
            Self::Closed => "closed",
        }
    }

    pub(super) fn log(self, agent: &Agent) {
        let (id, slug) = (&agent.id, &agent.slug);
        match self {
            Self::Open(until) => {
                tracing::warn!(agent.id = %id, "agent {slug} could not be reached and gets no work until {until}");
            }
            Self::HalfOpen => {
                tracing::info!(agent.id = %id, "agent {slug} gets one task, to see whether it can be reached again");
            }
            Self::Closed => tracing::info!(agent.id = %id, "agent {slug} can be reached again"),
        }
    }

    fn verb(self, agent: &Agent) -> Verb {
        let until = if let Self::Open(until) = self { Some(until) } else { None };
        let name = format!("breaker.{}", self.state());
        Verb {
            legacy_alias: name.clone(),
            verb: name,
            org_id: agent.scope.org.shared(),
            agent_card_id: agent.id.shared(),
            agent_url: agent.url.clone(),
            skill_id: "".into(),
            session_id: "".into(),
            args: Json::of(&Facts { agent: &agent.slug, state: self.state(), until }),
            caller: OURSELVES.into(),
            task_id: "".into(),
            door: None,
            trace: None,
        }
    }
}

// === impl Engine ===

impl Engine {
    /// Puts a turn on record.
    pub(super) async fn note_turn(&self, agent: &Agent, turned: Turned) {
        self.inner().journal.note(turned.verb(agent), Phase::Breaker).await;
    }
}
