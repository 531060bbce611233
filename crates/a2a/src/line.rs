//! What is remembered of an agent between calls: the ways to reach it, which of them works, and how busy it is.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use parking_lot::RwLock;
use rialto_model::{
    agent::Agent,
    card::{Card, Dialect},
    credential::Credential,
    failure::{Failure, Kind},
    ids::AgentId,
    maps::FastMap,
};

use crate::{
    credential::Kept,
    route::{Route, routes},
    slots::SlotPool,
};

/// Lines to agents that nobody has called for long are given up beyond this many.
const MANY: usize = 20_000;

/// The line to one agent.
pub(crate) struct Line {
    card: Arc<Card>,
    url: String,
    speaks: Option<Dialect>,
    credential: Option<Credential>,
    routes: Result<Vec<Route>, String>,
    /// The route that worked last.
    current: AtomicUsize,
    /// Whether the agent streams, as its card says and as it turned out.
    streams: AtomicBool,
    slots: Arc<SlotPool>,
    /// What the agent is shown.
    pub(crate) shown: Kept,
}

/// The lines to all agents.
pub(crate) struct Lines {
    known: RwLock<FastMap<AgentId, Arc<Line>>>,
    max_in_flight: usize,
    max_detached: usize,
}

// === impl Lines ===

impl Lines {
    pub(crate) fn new(max_in_flight: usize, max_detached: usize) -> Self {
        Self { known: RwLock::default(), max_in_flight: max_in_flight.max(1), max_detached }
    }

    /// The line to `agent` as it is registered now.
    pub(crate) fn to(&self, agent: &Agent) -> Arc<Line> {
        let known = self.known.read().get(&agent.id).cloned();
        match known {
            Some(line) if line.fits(agent) => line,
            known => self.renew(agent, known.as_deref()),
        }
    }

    fn renew(&self, agent: &Agent, old: Option<&Line>) -> Arc<Line> {
        let slots = old.map_or_else(
            || SlotPool::new(self.max_in_flight, self.max_detached),
            |old| Arc::clone(&old.slots),
        );
        let line = Line::new(agent, slots);
        // What was learned is true for as long as the agent shows the same card.
        if let Some(old) = old.filter(|old| *old.card == *agent.card && old.speaks == line.speaks) {
            line.current.store(old.current.load(Ordering::Relaxed), Ordering::Relaxed);
            line.streams.store(old.streams.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        let line = Arc::new(line);
        let mut known = self.known.write();
        if known.len() >= MANY {
            known.retain(|_, line| Arc::strong_count(line) > 1);
        }
        known.insert(agent.id.clone(), Arc::clone(&line));
        line
    }
}

// === impl Line ===

impl Line {
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
            shown: Kept::default(),
        }
    }

    fn fits(&self, agent: &Agent) -> bool {
        Arc::ptr_eq(&self.card, &agent.card)
            && self.speaks == agent.speaks
            && self.url == agent.url
            && self.credential == agent.credential
    }

    /// The ways to try, beginning with the one that worked last; each dialect once.
    pub(crate) fn ways(&self) -> Result<impl Iterator<Item = (usize, &Route)>, Failure> {
        let routes = self.routes.as_ref().map_err(|why| Failure::new(Kind::PeerUnreachable, why.clone()))?;
        let first = self.current.load(Ordering::Relaxed).min(routes.len() - 1);
        let rest = (0..routes.len()).filter(move |&at| at != first);
        let mut tried = [false; 4];
        Ok(std::iter::once(first)
            .chain(rest)
            .map(|at| (at, &routes[at]))
            .filter(move |(_, route)| !std::mem::replace(&mut tried[route.dialect as usize], true)))
    }

    /// Remembers that the route at `at` works; answers whether that is news.
    pub(crate) fn settle(&self, at: usize) -> bool {
        self.current.swap(at, Ordering::Relaxed) != at
    }

    pub(crate) fn streams(&self) -> bool {
        self.streams.load(Ordering::Relaxed)
    }

    /// Remembers that the agent does not stream, whatever its card says.
    pub(crate) fn give_up_streams(&self) {
        self.streams.store(false, Ordering::Relaxed);
    }

    /// Slots of the agent.
    pub(crate) const fn slots(&self) -> &Arc<SlotPool> {
        &self.slots
    }
}
