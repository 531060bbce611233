//! State of an agent between calls: its endpoints, the one that works, and its slots.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use parking_lot::RwLock;
use rialto_model::{
    agent::Agent,
    card::{Card, Dialect},
    credential::Credential,
    failure::{Failure, FailureKind},
    ids::AgentId,
    maps::FastMap,
};

use crate::{
    credential::CredentialCache,
    endpoints::{AgentEndpoint, routes},
    slots::SlotPool,
};

/// Maximum number of agents with state; the least recently called are dropped beyond it.
const MAX_AGENTS: usize = 20_000;

/// State of one agent.
pub(crate) struct AgentLink {
    card: Arc<Card>,
    url: String,
    speaks: Option<Dialect>,
    credential: Option<Credential>,
    routes: Result<Vec<AgentEndpoint>, String>,
    /// Index of the endpoint that worked last.
    current: AtomicUsize,
    /// True when the agent supports streaming, according to its card and to experience.
    streams: AtomicBool,
    slots: Arc<SlotPool>,
    /// Cached credentials for the agent.
    pub(crate) shown: CredentialCache,
}

/// State of all agents.
pub(crate) struct AgentLinks {
    known: RwLock<FastMap<AgentId, Arc<AgentLink>>>,
    max_in_flight: usize,
    max_detached: usize,
}

// === impl AgentLinks ===

impl AgentLinks {
    pub(crate) fn new(max_in_flight: usize, max_detached: usize) -> Self {
        Self { known: RwLock::default(), max_in_flight: max_in_flight.max(1), max_detached }
    }

    /// State of `agent` for its current registration.
    pub(crate) fn to(&self, agent: &Agent) -> Arc<AgentLink> {
        let known = self.known.read().get(&agent.id).cloned();
        match known {
            Some(line) if line.fits(agent) => line,
            known => self.renew(agent, known.as_deref()),
        }
    }

    fn renew(&self, agent: &Agent, old: Option<&AgentLink>) -> Arc<AgentLink> {
        let slots = old.map_or_else(
            || SlotPool::new(self.max_in_flight, self.max_detached),
            |old| Arc::clone(&old.slots),
        );
        let line = AgentLink::new(agent, slots);
        // Learned facts stay valid for as long as the agent's card is unchanged.
        if let Some(old) = old.filter(|old| *old.card == *agent.card && old.speaks == line.speaks) {
            line.current.store(old.current.load(Ordering::Relaxed), Ordering::Relaxed);
            line.streams.store(old.streams.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        let line = Arc::new(line);
        let mut known = self.known.write();
        if known.len() >= MAX_AGENTS {
            known.retain(|_, line| Arc::strong_count(line) > 1);
        }
        known.insert(agent.id.clone(), Arc::clone(&line));
        line
    }
}

// === impl AgentLink ===

impl AgentLink {
    fn new(agent: &Agent, slots: Arc<SlotPool>) -> Self {
        Self {
            card: Arc::clone(&agent.card),
            url: agent.url.clone(),
            speaks: agent.speaks,
            credential: agent.credential.clone(),
            routes: routes(agent),
            current: AtomicUsize::new(0),
            streams: AtomicBool::new(agent.card.streaming),
            slots,
            shown: CredentialCache::default(),
        }
    }

    fn fits(&self, agent: &Agent) -> bool {
        Arc::ptr_eq(&self.card, &agent.card)
            && self.speaks == agent.speaks
            && self.url == agent.url
            && self.credential == agent.credential
    }

    /// Endpoints to try, starting with the one that worked last; each dialect once.
    pub(crate) fn ways(&self) -> Result<impl Iterator<Item = (usize, &AgentEndpoint)>, Failure> {
        let routes =
            self.routes.as_ref().map_err(|why| Failure::new(FailureKind::PeerUnreachable, why.clone()))?;
        let first = self.current.load(Ordering::Relaxed).min(routes.len() - 1);
        let rest = (0..routes.len()).filter(move |&at| at != first);
        let mut tried = [false; 4];
        Ok(std::iter::once(first)
            .chain(rest)
            .map(|at| (at, &routes[at]))
            .filter(move |(_, route)| !std::mem::replace(&mut tried[route.dialect as usize], true)))
    }

    /// Records that the endpoint at `at` works; true if that is new.
    pub(crate) fn settle(&self, at: usize) -> bool {
        self.current.swap(at, Ordering::Relaxed) != at
    }

    pub(crate) fn streams(&self) -> bool {
        self.streams.load(Ordering::Relaxed)
    }

    /// Records that the agent does not stream, whatever its card says.
    pub(crate) fn give_up_streams(&self) {
        self.streams.store(false, Ordering::Relaxed);
    }

    /// Concurrency slots of the agent.
    pub(crate) const fn slots(&self) -> &Arc<SlotPool> {
        &self.slots
    }
}
