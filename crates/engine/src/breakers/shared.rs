//! Openings of circuit breakers, passed on to the other processes on the store.
//!
//! A process that receives one opens its own breaker of the agent for the shortest pause, and finds out with a probe of its own. If the agent
//! answers that probe, the fault is between the other process and the agent, and its openings count for nothing here for a while.

use std::{
    mem,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use rialto_model::{
    agent::Agent,
    clock::Timestamp,
    ids::AgentId,
    maps::FastMap,
    store::{BreakerOpening, OPENING_SHARED_FOR},
};
use rialto_routing::breaker::Breaker;

use super::{AgentBreaker, Breakers};

/// Time for which openings by others are ignored after the agent has answered here.
const IGNORED_FOR: Duration = Duration::from_secs(30);

/// Openings that are to be sent, and those that were received.
#[derive(Default)]
pub(super) struct OpeningExchange {
    /// Set while openings are exchanged.
    is_on: AtomicBool,
    unsent: Mutex<FastMap<AgentId, BreakerOpening>>,
    /// When the last known opening of each agent's breaker was, here or elsewhere.
    known: Mutex<FastMap<AgentId, Timestamp>>,
    /// When each agent has answered although its breaker was opened elsewhere.
    refuted: Mutex<FastMap<AgentId, Timestamp>>,
}

// === impl OpeningExchange ===

impl OpeningExchange {
    /// Has it sent that our breaker has opened. Tools and functions are each process's own.
    pub(super) fn add(&self, agent: &Arc<Agent>, (at, until): (Timestamp, Timestamp), reason: &str) {
        if self.is_on.load(Ordering::Relaxed) && agent.backing.is_agent() {
            let opening = BreakerOpening { agent: agent.id.clone(), at, until, reason: reason.to_owned() };
            self.unsent.lock().insert(agent.id.clone(), opening);
        }
    }

    /// The agent has answered here.
    pub(super) fn refute(&self, agent: &AgentId, now: Timestamp) {
        self.refuted.lock().insert(agent.clone(), now);
    }

    /// True if an opening is new and not refuted.
    fn accepts(&self, opening: &BreakerOpening, now: Timestamp) -> bool {
        let mut known = self.known.lock();
        known.retain(|_, at| now.duration_since(*at) < OPENING_SHARED_FOR * 2);
        let is_news = known.insert(opening.agent.clone(), opening.at) != Some(opening.at);
        let mut refuted = self.refuted.lock();
        refuted.retain(|_, at| now.duration_since(*at).unsigned_abs() < IGNORED_FOR);
        is_news && !refuted.contains_key(&opening.agent)
    }
}

// === impl Breakers ===

impl Breakers {
    /// Keeps openings from now on until they are taken.
    pub(crate) fn start_sharing(&self) {
        self.sharing.is_on.store(true, Ordering::Relaxed);
    }

    /// Takes the openings since the last time.
    pub(crate) fn take_openings(&self) -> Vec<BreakerOpening> {
        let openings: Vec<_> = mem::take(&mut *self.sharing.unsent.lock()).into_values().collect();
        self.sharing.known.lock().extend(openings.iter().map(|opening| (opening.agent.clone(), opening.at)));
        openings
    }

    /// Has these sent again that could not be sent.
    pub(crate) fn return_openings(&self, openings: Vec<BreakerOpening>) {
        let mut unsent = self.sharing.unsent.lock();
        for opening in openings {
            unsent.entry(opening.agent.clone()).or_insert(opening);
        }
    }

    /// Opens breakers that others have opened.
    pub(crate) fn apply_openings(&self, openings: Vec<BreakerOpening>, now: Timestamp) {
        for opening in openings {
            if !self.sharing.accepts(&opening, now) {
                continue;
            }
            let mut states = self.states.lock();
            if states.get(&opening.agent).is_some_and(|state| !state.breaker.is_closed()) {
                continue;
            }
            let pause = self.rules.pause;
            let until = opening.until.min(now.checked_add(pause).unwrap_or(now));
            tracing::info!(agent.id = %opening.agent, "another process gets no answers from agent {}: its circuit breaker is open", opening.agent);
            let breaker = Breaker::Open { until, pause };
            states.insert(opening.agent, AgentBreaker { breaker, reason: opening.reason, is_others: true });
            self.tracked.store(states.len(), Ordering::Relaxed);
        }
    }
}
