//! All rows, as they were at one moment.
//!
//! A change makes a new value, because whoever reads has no time to wait. With many agents there are many changes (each
//! first probe is one), so a row is found by its id and put where it was: what is copied is a list of pointers, and nothing
//! is searched or compared with all others.

use std::sync::Arc;

use rialto_model::{
    agent::{Agent, Health, Keep, Trust},
    card::Card,
    deployed::Backing,
    ids::AgentId,
    maps::FastMap,
};

/// The rows.
#[derive(Clone, Default)]
pub(super) struct Live {
    /// The store's generation that they are of; none before they were read for the first time.
    pub(super) generation: Option<u64>,
    agents: Vec<Arc<Agent>>,
    /// Where each of them is. It is the same as long as none comes or goes.
    places: Arc<FastMap<AgentId, usize>>,
}

/// What a row looks like from outside: what a list of tools, a permission or the way of a call may depend on. Directories hold
/// rows, so they are made anew when one of these is another.
type Look<'a> = (&'a AgentId, &'a str, *const Card, Trust, bool, &'a Backing, Option<u64>);

// === impl Live ===

impl Live {
    pub(super) fn new(generation: Option<u64>, agents: Vec<Arc<Agent>>) -> Self {
        let places = agents.iter().enumerate().map(|(place, row)| (row.id.clone(), place)).collect();
        Self { generation, agents, places: Arc::new(places) }
    }

    /// All of them.
    pub(super) fn all(&self) -> &[Arc<Agent>] {
        &self.agents
    }

    /// The one with that id.
    pub(super) fn get(&self, id: &AgentId) -> Option<&Arc<Agent>> {
        self.agents.get(*self.places.get(id)?)
    }

    /// The same with this row in place of the one it was, or with one more. A row of a session hides a stored one of the
    /// same place.
    pub(super) fn with(&self, row: Arc<Agent>) -> Self {
        let mut changed = self.clone();
        match self.places.get(&row.id).and_then(|place| changed.agents.get_mut(*place)) {
            Some(slot) => {
                *slot = row;
                changed
            }
            None => {
                changed.agents.retain(|other| row.keep != Keep::Session || !is_same_place(other, &row));
                changed.agents.push(row);
                Self::new(self.generation, changed.agents)
            }
        }
    }

    /// The same without this one.
    pub(super) fn without(&self, id: &AgentId) -> Self {
        let others = self.agents.iter().filter(|row| row.id != *id).cloned().collect();
        Self::new(self.generation, others)
    }

    /// Whether nobody could tell these from the others.
    pub(super) fn looks_like(&self, other: &Self) -> bool {
        let is_same = |row: &Arc<Agent>| other.get(&row.id).is_some_and(|known| look(known) == look(row));
        self.agents.len() == other.agents.len() && self.agents.iter().all(is_same)
    }
}

/// Whether nobody could tell a row from what it was before.
pub(super) fn looks_the_same(a: &Agent, b: &Agent) -> bool {
    look(a) == look(b)
}

/// Whether both are of one project and address.
pub(super) fn is_same_place(a: &Agent, b: &Agent) -> bool {
    a.scope == b.scope && a.url == b.url
}

fn look(row: &Agent) -> Look<'_> {
    let is_gone = row.health == Health::Unreachable;
    (&row.id, &row.slug, Arc::as_ptr(&row.card), row.trust, is_gone, &row.backing, row.timeout_ms)
}
