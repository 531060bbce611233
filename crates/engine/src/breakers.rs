//! Circuit breakers of all agents, fed by every call.
//!
//! [`BreakerPeer`] stands before the backends: it refuses calls to an agent whose breaker is open, lets one through as a probe when
//! the pause is over, and counts how calls begin. Faults of this process (no file descriptors, no DNS) say nothing about the agent and
//! are not counted. Each process counts for itself; that a breaker has opened is passed on to the other processes on the store ([`shared`]).

mod shared;
mod transition;
mod watched_call;

use std::{
    hash::{BuildHasher, RandomState},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use futures::{
    FutureExt, StreamExt,
    future::BoxFuture,
    stream::{self, BoxStream},
};
use parking_lot::Mutex;
use rialto_model::{
    agent::Agent,
    call::{Call, Caller, CancelRequest, FollowRequest},
    clock::Timestamp,
    event::Event,
    failure::{Failure, FailureKind},
    ids::AgentId,
    json::Json,
    maps::FastMap,
};
use rialto_policy::Permitted;
use rialto_routing::breaker::{Breaker, BreakerEvent, BreakerRules};
use serde::Deserialize;
use serde_json::json;

pub(crate) use self::transition::BreakerTransition;
use self::{shared::OpeningExchange, watched_call::WatchedCall};
use crate::{journal::TaskJournal, peer::Peer};

/// Breakers of agents that failed lately. Agents that answer have none.
pub(crate) struct Breakers {
    rules: BreakerRules,
    hasher: RandomState,
    states: Mutex<FastMap<AgentId, AgentBreaker>>,
    /// Number of `states`, so that a call to an agent that answers takes no lock while nothing fails.
    tracked: AtomicUsize,
    /// Number of openings of each agent's breaker in this process.
    opened: Mutex<FastMap<AgentId, u64>>,
    sharing: OpeningExchange,
}

/// Breaker of an agent that failed lately.
struct AgentBreaker {
    breaker: Breaker,
    /// Message of the last failure, for callers that are refused because of it.
    reason: String,
    /// Set if another process has opened it.
    is_others: bool,
}

/// State of one agent's breaker, as people and programs see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BreakerStatus {
    /// `closed`, `open` or `half-open`.
    pub state: &'static str,
    /// Time until which no call goes through, if there is one.
    pub until: Option<Timestamp>,
    /// Failed calls in the present time window, while it is closed.
    pub recent_failures: u32,
    /// Number of openings in this process.
    pub opened: u64,
    /// Message of the last failure.
    pub reason: Option<String>,
}

/// Backend with circuit breakers in front.
pub(crate) struct BreakerPeer {
    pub(crate) peer: Arc<dyn Peer>,
    pub(crate) breakers: Arc<Breakers>,
    pub(crate) journal: TaskJournal,
}

/// Facts of a failure that say how far its request got.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct FailureFacts {
    status: Option<u16>,
    grpc_status: Option<u16>,
    broken: bool,
}

/// Beyond this many agents, counts of agents whose breakers are closed are dropped.
const MAX_TRACKED: usize = 20_000;

/// gRPC's status UNAVAILABLE.
const GRPC_UNAVAILABLE: u16 = 14;

// === impl Breakers ===

impl Breakers {
    pub(crate) fn new(rules: BreakerRules) -> Arc<Self> {
        Arc::new(Self {
            rules,
            hasher: RandomState::new(),
            states: Mutex::default(),
            tracked: AtomicUsize::new(0),
            opened: Mutex::default(),
            sharing: OpeningExchange::default(),
        })
    }

    /// Time until which an agent gets no calls, if there is one.
    pub(crate) fn blocked_until(&self, agent: &AgentId, now: Timestamp) -> Option<Timestamp> {
        if self.is_empty() {
            return None;
        }
        self.states.lock().get(agent).and_then(|state| state.breaker.blocked_until(now))
    }

    /// Refuses a call to an agent whose breaker is open.
    pub(crate) fn check(&self, agent: &Agent, now: Timestamp) -> Result<(), Failure> {
        if self.is_empty() || !agent.backing.is_agent() {
            return Ok(());
        }
        let states = self.states.lock();
        let Some(state) = states.get(&agent.id) else { return Ok(()) };
        match state.breaker.blocked_until(now) {
            Some(until) => Err(refusal(agent, &state.reason, until, now)),
            None => Ok(()),
        }
    }

    /// State of an agent's breaker.
    pub(crate) fn status(&self, agent: &AgentId, now: Timestamp) -> BreakerStatus {
        let opened = self.opened.lock().get(agent).copied().unwrap_or_default();
        let states = self.states.lock();
        let state = states.get(agent);
        let breaker = state.map(|state| state.breaker).unwrap_or_default();
        let recent_failures = if let Breaker::Closed(window) = breaker { window.failures() } else { 0 };
        BreakerStatus {
            state: breaker.name(),
            until: breaker.blocked_until(now),
            recent_failures,
            opened,
            reason: state.map(|state| state.reason.clone()),
        }
    }

    fn is_empty(&self) -> bool {
        self.tracked.load(Ordering::Relaxed) == 0
    }

    /// Lets a call go, or refuses it. A call that goes while the breaker is open is its probe, and makes it half-open.
    fn admit(&self, agent: &Agent, now: Timestamp) -> Result<Option<BreakerTransition>, Failure> {
        if self.is_empty() {
            return Ok(None);
        }
        let mut states = self.states.lock();
        let Some(state) = states.get_mut(&agent.id).filter(|state| !state.breaker.is_closed()) else {
            return Ok(None);
        };
        if let Some(until) = state.breaker.blocked_until(now) {
            if !agent.backing.is_agent() {
                return Ok(None);
            }
            return Err(refusal(agent, &state.reason, until, now));
        }
        state.breaker = state.breaker.after(BreakerEvent::Sent, 0, now, &self.rules);
        Ok(Some(BreakerTransition::HalfOpen))
    }

    /// Counts how a call began, and returns the transition of the breaker, if there is one.
    fn report(
        &self,
        call: &CallFacts,
        signal: BreakerEvent,
        reason: &str,
        now: Timestamp,
    ) -> Option<BreakerTransition> {
        if self.is_empty() && !signal.is_failure() {
            return None;
        }
        let mut states = self.states.lock();
        let known = states.get(&call.agent.id).map(|state| state.breaker);
        let before = known.unwrap_or_default();
        // Only its probe says how an agent fares whose breaker is not closed; the others were sent before it opened.
        if !call.is_probe && !before.is_closed() && signal != BreakerEvent::Reached {
            return None;
        }
        let after = before.after(signal, call.caller, now, &self.rules);
        let is_others = states.get(&call.agent.id).is_some_and(|state| state.is_others);
        if after == Breaker::default() {
            states.remove(&call.agent.id);
        } else if let Some(state) = states.get_mut(&call.agent.id) {
            state.breaker = after;
            if signal.is_failure() {
                reason.clone_into(&mut state.reason);
                state.is_others = false;
            }
        } else {
            if states.len() >= MAX_TRACKED {
                states.retain(|_, state| !state.breaker.is_closed());
            }
            let state = AgentBreaker { breaker: after, reason: reason.to_owned(), is_others: false };
            states.insert(call.agent.id.clone(), state);
        }
        self.tracked.store(states.len(), Ordering::Relaxed);
        drop(states);
        let transition = BreakerTransition::between(before, after, now)?;
        if is_others && matches!(transition, BreakerTransition::Closed) {
            self.sharing.refute(&call.agent.id, now);
        }
        if let BreakerTransition::Open(until) = transition {
            self.sharing.add(&call.agent, (now, until), reason);
            let mut opened = self.opened.lock();
            if opened.len() >= MAX_TRACKED {
                opened.clear();
            }
            *opened.entry(call.agent.id.clone()).or_default() += 1;
        }
        Some(transition)
    }

    fn hash_caller(&self, caller: &Caller) -> u64 {
        self.hasher.hash_one((caller.scope.org.as_str(), caller.id.as_str()))
    }
}

/// A call as breakers know it.
struct CallFacts {
    agent: Arc<Agent>,
    caller: u64,
    is_probe: bool,
}

// === impl BreakerPeer ===

impl Peer for BreakerPeer {
    fn send(&self, call: Permitted<Call>) -> BoxStream<'static, Event> {
        let said = call.get();
        let agent = &said.target.agent;
        let admitted = match self.breakers.admit(agent, self.journal.now()) {
            Ok(admitted) => admitted,
            Err(refusal) => return stream::iter([Event::failed(refusal)]).boxed(),
        };
        let facts = CallFacts {
            agent: Arc::clone(agent),
            caller: self.breakers.hash_caller(&said.caller),
            is_probe: admitted.is_some(),
        };
        let (breakers, journal) = (Arc::clone(&self.breakers), self.journal.clone());
        WatchedCall::new(self.peer.send(call), facts, breakers, journal, admitted).boxed()
    }

    fn follow(&self, follow: Permitted<FollowRequest>) -> BoxStream<'static, Result<Event, Failure>> {
        self.peer.follow(follow)
    }

    fn cancel(&self, cancel: Permitted<CancelRequest>) -> BoxFuture<'static, Result<Vec<Event>, Failure>> {
        self.peer.cancel(cancel).boxed()
    }
}

/// Signal that the first event of a call is to its agent's breaker.
fn signal_of(agent: &Agent, event: &Event) -> BreakerEvent {
    let Event::Failed { failure, .. } = event else { return BreakerEvent::Reached };
    match failure.kind {
        FailureKind::PeerUnreachable if failure.is_not_sent() => BreakerEvent::NoConnection,
        FailureKind::PeerUnreachable => {
            let facts = failure.data.as_ref().and_then(|data| data.read::<FailureFacts>().ok());
            let facts = facts.unwrap_or_default();
            match (facts.status, facts.grpc_status) {
                (Some(502..=504), _) | (_, Some(GRPC_UNAVAILABLE)) => BreakerEvent::Unavailable,
                (Some(_), _) | (_, Some(_)) => BreakerEvent::Reached,
                (None, None) if facts.broken || !agent.backing.is_agent() => BreakerEvent::Unavailable,
                // No credential, no usable address: nothing was asked of the agent.
                (None, None) => BreakerEvent::Nothing,
            }
        }
        FailureKind::PeerGarbled | FailureKind::PeerFailed | FailureKind::Invalid | FailureKind::NotFound => {
            BreakerEvent::Reached
        }
        FailureKind::Unauthenticated
        | FailureKind::Denied
        | FailureKind::Blocked
        | FailureKind::Conflict
        | FailureKind::Busy
        | FailureKind::PeerTimeout
        | FailureKind::Unsupported
        | FailureKind::StoreUnavailable
        | FailureKind::Internal => BreakerEvent::Nothing,
    }
}

fn refusal(agent: &Agent, reason: &str, until: Timestamp, now: Timestamp) -> Failure {
    let millis = until.as_millisecond().saturating_sub(now.as_millisecond()).max(1);
    let slug = &agent.slug;
    let message = format!(
        "agent {slug} gets no calls for {millis} ms, because its circuit breaker is open: {reason}; try again after that"
    );
    let seconds = millis.saturating_add(999) / 1_000;
    let data = json!({ "notSent": true, "retryAfter": seconds });
    Failure::new(FailureKind::PeerUnreachable, message).with_data(Json::encode(&data))
}
