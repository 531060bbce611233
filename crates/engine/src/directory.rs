//! The registry as a list of things that can be called, each under the names it is known by.
//!
//! An agent's skill is called `<agentSlug>.<skillId>`. What is deployed has one name everywhere: a function its own, a tool
//! of an MCP server the tool's. Where two have the same name, the first keeps it (functions before servers, then the order
//! in which they came) and the other is called `<server>.<tool>`, which always works too.
//!
//! Prepared once per version of the registry, so that neither a list nor a call walks over all cards.

use std::{collections::HashSet, sync::Arc};

use rialto_model::{
    agent::{Agent, Health},
    backing::Backing,
    call::CallTarget,
    card::Skill,
    ids::Scope,
    maps::FastMap,
    name,
};

/// Names that belong to Rialto's own tools at the MCP door.
pub const RESERVED: [&str; 13] = [
    "load_agent",
    "list_agents",
    "send_message",
    "get_task",
    "cancel_task",
    "search_tools",
    "describe_tool",
    "call_tool",
    "dispatch",
    "invoke_a2a",
    "mesh_resolve",
    "orchestrate_workflow",
    "execute_dag",
];

/// One skill that can be called.
#[derive(Clone, Debug)]
pub struct Entry {
    /// `<agentSlug>.<skillId>`, or what something deployed is called.
    pub canonical: String,
    /// `a2a_<agentSlug>_<skillId>`, with a number when another skill's alias is the same; for what is deployed, the canonical
    /// name without dots.
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
    pub fn target(&self) -> CallTarget {
        CallTarget { agent: Arc::clone(&self.agent), skill: Some(Arc::clone(&self.skill)) }
    }
}

// === impl Directory ===

impl Directory {
    /// Prepares the directory of one project from the registry's rows.
    pub(crate) fn build<'a>(
        version: u64,
        scope: &Scope,
        agents: impl Iterator<Item = &'a Arc<Agent>>,
    ) -> Self {
        let rows: Vec<&Arc<Agent>> = agents.filter(|agent| agent.scope == *scope).collect();
        let mut entries: Vec<Entry> = rows
            .iter()
            .filter(|agent| agent.backing.is_agent())
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
        add_deployed(&mut entries, rows);
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

/// Gives what is deployed its names, first come first served.
fn add_deployed(entries: &mut Vec<Entry>, mut rows: Vec<&Arc<Agent>>) {
    rows.retain(|row| !row.backing.is_agent());
    if rows.is_empty() {
        return;
    }
    rows.sort_by_key(|row| (matches!(row.backing, Backing::Mcp(_)), &row.id));
    let mut taken: HashSet<String> = entries.iter().map(|entry| entry.canonical.clone()).collect();
    taken.extend(RESERVED.map(str::to_owned));
    for row in rows {
        for skill in &row.card.skills {
            let own = skill.id.as_str();
            let called = if taken.contains(own) {
                name::unused(&name::canonical(&row.slug, own), |name| taken.contains(name))
            } else {
                own.to_owned()
            };
            taken.insert(called.clone());
            entries.push(Entry {
                legacy: name::plain(&called),
                agent: Arc::clone(row),
                skill: Arc::new(Skill { called: Some(called.as_str().into()), ..Skill::clone(skill) }),
                canonical: called,
            });
        }
    }
    entries.sort_by(|a, b| a.canonical.cmp(&b.canonical));
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
    for (at, entry) in (0..).zip(entries.iter()).filter(|(_, entry)| !entry.agent.backing.is_agent()) {
        by_name.entry(name::canonical(&entry.agent.slug, entry.skill.id.as_str())).or_insert(at);
    }
    for (at, entry) in (0..).zip(entries.iter_mut()) {
        if entry.legacy == entry.canonical {
            continue;
        }
        entry.legacy = name::unused(&entry.legacy, |name| by_name.contains_key(name));
        by_name.insert(entry.legacy.clone(), at);
    }
    by_name
}
