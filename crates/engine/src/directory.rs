//! The registry as a list of things that can be called, each under the names it is known by.
//!
//! Prepared once per version of the registry, so that neither a list nor a call walks over all cards.

use std::sync::Arc;

use rialto_model::{
    agent::{Agent, Health},
    call::Target,
    card::Skill,
    ids::Scope,
    maps::FastMap,
    name,
};

/// One skill that can be called.
#[derive(Clone, Debug)]
pub struct Entry {
    /// `<agentSlug>.<skillId>`.
    pub canonical: String,
    /// `a2a_<agentSlug>_<skillId>`, with a number when another skill's alias is the same.
    pub legacy: String,
    /// Whose skill it is.
    pub agent: Arc<Agent>,
    /// The skill.
    pub skill: Arc<Skill>,
}

/// All skills of one project.
#[derive(Debug)]
pub struct Directory {
    version: u64,
    entries: Vec<Entry>,
    listed: Vec<u32>,
    by_name: FastMap<String, u32>,
}

// === impl Entry ===

impl Entry {
    /// What a call to it is made to.
    pub fn target(&self) -> Target {
        Target { agent: Arc::clone(&self.agent), skill: Some(Arc::clone(&self.skill)) }
    }
}

// === impl Directory ===

impl Directory {
    /// Prepares the directory of one project from the registry's rows.
    pub(crate) fn build(version: u64, scope: &Scope, agents: &[Arc<Agent>]) -> Self {
        let mut entries: Vec<Entry> = agents
            .iter()
            .filter(|agent| agent.scope == *scope)
            .flat_map(|agent| agent.card.skills.iter().map(move |skill| (agent, skill)))
            .map(|(agent, skill)| Entry {
                canonical: name::canonical(&agent.slug, skill.id.as_str()),
                legacy: name::legacy(&agent.slug, skill.id.as_str()),
                agent: Arc::clone(agent),
                skill: Arc::clone(skill),
            })
            .collect();
        entries.sort_by(|a, b| a.canonical.cmp(&b.canonical));
        entries.dedup_by(|a, b| a.canonical == b.canonical);
        let by_name = index(&mut entries);
        let listed = (0..).zip(&entries).filter(|(_, entry)| is_listed(entry)).map(|(at, _)| at).collect();
        Self { version, entries, listed, by_name }
    }

    /// The version of the registry this was made from.
    pub const fn version(&self) -> u64 {
        self.version
    }

    /// What a caller may be shown, ordered by canonical name: skills of agents that can be reached.
    pub fn listed(&self) -> impl Iterator<Item = &Entry> {
        self.listed.iter().filter_map(|at| self.entries.get(*at as usize))
    }

    /// All skills, listed or not, ordered by canonical name.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// How many skills are listed.
    pub const fn len(&self) -> usize {
        self.listed.len()
    }

    /// Whether nothing is listed.
    pub const fn is_empty(&self) -> bool {
        self.listed.is_empty()
    }

    /// The listed skill at a place in the order.
    pub fn at(&self, place: usize) -> Option<&Entry> {
        self.entries.get(*self.listed.get(place)? as usize)
    }

    /// The skill with that name, canonical or legacy; also of an agent that cannot be reached just now.
    pub fn find(&self, name: &str) -> Option<&Entry> {
        self.entries.get(*self.by_name.get(name)? as usize)
    }
}

fn is_listed(entry: &Entry) -> bool {
    entry.agent.health != Health::Unreachable
}

/// Both names of every skill. Canonical names are taken first, so that no alias can hide one.
fn index(entries: &mut [Entry]) -> FastMap<String, u32> {
    let mut by_name = FastMap::with_capacity_and_hasher(entries.len() * 2, Default::default());
    for (at, entry) in (0..).zip(entries.iter()) {
        by_name.insert(entry.canonical.clone(), at);
    }
    for (at, entry) in (0..).zip(entries.iter_mut()) {
        entry.legacy = name::unused(&entry.legacy, |name| by_name.contains_key(name));
        by_name.insert(entry.legacy.clone(), at);
    }
    by_name
}
