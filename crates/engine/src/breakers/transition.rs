//! Transitions of a breaker, as they are logged and put on record.
//!
//! An operator must not have to guess from missing calls that an agent gets none: each transition is a record of the audit log, so that
//! webhooks and followers of the log receive it.

use rialto_model::{
    agent::Agent,
    audit_event::{AuditPhase, SkillInvocation},
    clock::Timestamp,
    json::Json,
};
use rialto_routing::breaker::Breaker;
use serde::Serialize;

use crate::journal::TaskJournal;

/// Name in the place of a caller on these records.
const OURSELVES: &str = "rialto";

/// Transition of a breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BreakerTransition {
    /// The agent gets no calls until then.
    Open(Timestamp),
    /// It gets one call, as a probe.
    HalfOpen,
    /// It gets calls again.
    Closed,
}

/// Arguments on the record.
#[derive(Serialize)]
struct TransitionFacts<'a> {
    agent: &'a str,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<Timestamp>,
}

// === impl BreakerTransition ===

impl BreakerTransition {
    /// Transition between two states, if they differ in that.
    pub(super) fn between(before: Breaker, after: Breaker, now: Timestamp) -> Option<Self> {
        match (before, after) {
            (Breaker::Closed(_) | Breaker::HalfOpen { .. }, Breaker::Open { until, .. }) if until > now => {
                Some(Self::Open(until))
            }
            (Breaker::Open { .. }, Breaker::HalfOpen { .. }) => Some(Self::HalfOpen),
            (Breaker::Open { .. } | Breaker::HalfOpen { .. }, Breaker::Closed(_)) => Some(Self::Closed),
            _ => None,
        }
    }

    /// Logs it and puts it on record.
    pub(super) async fn record(self, journal: &TaskJournal, agent: &Agent) {
        self.log(agent);
        journal.note(self.verb(agent), AuditPhase::Breaker).await;
    }

    const fn state(self) -> &'static str {
        match self {
            Self::Open(_) => "open",
            Self::HalfOpen => "half-open",
            Self::Closed => "closed",
        }
    }

    fn log(self, agent: &Agent) {
        let (id, slug) = (&agent.id, &agent.slug);
        match self {
            Self::Open(until) => {
                tracing::warn!(agent.id = %id, "agent {slug} fails and gets no calls until {until}: its circuit breaker is open");
            }
            Self::HalfOpen => {
                tracing::info!(agent.id = %id, "agent {slug} gets one call as a probe: its circuit breaker is half-open");
            }
            Self::Closed => {
                tracing::info!(agent.id = %id, "agent {slug} answers again: its circuit breaker is closed");
            }
        }
    }

    fn verb(self, agent: &Agent) -> SkillInvocation {
        let until = if let Self::Open(until) = self { Some(until) } else { None };
        let name = format!("breaker.{}", self.state());
        SkillInvocation {
            legacy_alias: name.clone(),
            verb: name,
            org_id: agent.scope.org.shared(),
            agent_card_id: agent.id.shared(),
            agent_url: agent.url.clone(),
            skill_id: "".into(),
            session_id: "".into(),
            args: Json::encode(&TransitionFacts { agent: &agent.slug, state: self.state(), until }),
            caller: OURSELVES.into(),
            task_id: "".into(),
            door: None,
            trace: None,
        }
    }
}
