//! All rows, as they were at one moment.
//!
//! A change makes a new value, because whoever reads has no time to wait. With many agents there are many changes (each
//! first probe is one), so a row is found by its id and put where it was: what is copied is one of many short lists of
//! pointers, and nothing is searched or compared with all others.

use std::sync::{Arc, OnceLock};

use rialto_model::{
    agent::{Agent, AgentTrust, Health, RowStorage},
    backing::Backing,
    card::Card,
    credential::Credential,
    ids::{AgentId, Scope},
    maps::FastMap,
};

/// So many rows lie in one piece.
const PIECE: usize = 128;

/// The rows.
#[derive(Clone, Default)]
pub(super) struct RegistrySnapshot {
    /// The store's generation that they are of; none before they were read for the first time.
    pub(super) generation: Option<u64>,
    /// In pieces: a change copies the one that the row is in, and not all of them.
    pieces: Vec<Arc<[Arc<Agent>]>>,
    /// Where each of them is. It is the same as long as none comes, goes or is called otherwise.
    places: Arc<SlugIndex>,
}

#[derive(Default)]
struct SlugIndex {
    by_id: FastMap<AgentId, usize>,
    /// A slug is somebody's in each project. Made when somebody first asks: rows often come one after the other, and meanwhile
    /// nobody does.
    by_slug: OnceLock<FastMap<String, Vec<usize>>>,
}

/// Fields of a row that a list of tools, a permission or a call depends on. Directories hold rows, so they are rebuilt when one
/// of these changes: a call goes out with the credential of the row that its directory holds.
#[derive(PartialEq)]
struct VisibleAgent<'a> {
    id: &'a AgentId,
    slug: &'a str,
    card: *const Card,
    trust: AgentTrust,
    is_gone: bool,
    backing: &'a Backing,
    timeout_ms: Option<u64>,
    credential: Option<&'a Credential>,
    allow_private: bool,
}

// === impl Live ===

impl RegistrySnapshot {
    pub(super) fn new(generation: Option<u64>, agents: &[Arc<Agent>]) -> Self {
        let by_id = agents.iter().enumerate().map(|(place, row)| (row.id.clone(), place)).collect();
        let pieces = agents.chunks(PIECE).map(Arc::from).collect();
        Self { generation, pieces, places: Arc::new(SlugIndex { by_id, by_slug: OnceLock::new() }) }
    }

    /// All of them.
    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<Agent>> {
        self.pieces.iter().flat_map(|piece| piece.iter())
    }

    /// The one with that id.
    pub(super) fn get(&self, id: &AgentId) -> Option<&Arc<Agent>> {
        self.at(*self.places.by_id.get(id)?)
    }

    /// The one with that slug.
    pub(super) fn by_slug(&self, scope: &Scope, slug: &str) -> Option<&Arc<Agent>> {
        let by_slug = self.places.by_slug.get_or_init(|| {
            let mut by_slug = FastMap::<String, Vec<usize>>::default();
            for (place, row) in self.all().enumerate() {
                by_slug.entry(row.slug.clone()).or_default().push(place);
            }
            by_slug
        });
        let places = by_slug.get(slug)?;
        places.iter().filter_map(|place| self.at(*place)).find(|row| row.scope == *scope)
    }

    /// The same with this row in place of the one it was, or with one more. A row of a session hides a stored one of the
    /// same place.
    pub(super) fn with(&self, row: Arc<Agent>) -> Self {
        let is_called_the_same = |known: &Arc<Agent>| known.slug == row.slug && known.scope == row.scope;
        let place =
            self.places.by_id.get(&row.id).filter(|place| self.at(**place).is_some_and(is_called_the_same));
        if let Some(place) = place {
            return self.with_at(*place, row);
        }
        let is_hidden = |other: &Arc<Agent>| row.keep == RowStorage::Session && is_same_place(other, &row);
        let others = self.all().filter(|other| other.id != row.id && !is_hidden(other)).cloned();
        let mut agents: Vec<_> = others.collect();
        agents.push(row);
        Self::new(self.generation, &agents)
    }

    /// The same without this one.
    pub(super) fn without(&self, id: &AgentId) -> Self {
        let others: Vec<_> = self.all().filter(|row| row.id != *id).cloned().collect();
        Self::new(self.generation, &others)
    }

    fn at(&self, place: usize) -> Option<&Arc<Agent>> {
        self.pieces.get(place / PIECE)?.get(place % PIECE)
    }

    fn with_at(&self, place: usize, row: Arc<Agent>) -> Self {
        let mut changed = self.clone();
        if let Some(piece) = changed.pieces.get_mut(place / PIECE) {
            let mut rows = piece.to_vec();
            if let Some(slot) = rows.get_mut(place % PIECE) {
                *slot = row;
            }
            *piece = rows.into();
        }
        changed
    }

    /// Whether nobody could tell these from the others.
    pub(super) fn looks_like(&self, other: &Self) -> bool {
        let is_same = |row: &Arc<Agent>| other.get(&row.id).is_some_and(|known| look(known) == look(row));
        self.places.by_id.len() == other.places.by_id.len() && self.all().all(is_same)
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

fn look(row: &Agent) -> VisibleAgent<'_> {
    VisibleAgent {
        id: &row.id,
        slug: &row.slug,
        card: Arc::as_ptr(&row.card),
        trust: row.trust,
        is_gone: row.health == Health::Unreachable,
        backing: &row.backing,
        timeout_ms: row.timeout_ms,
        credential: row.credential.as_ref(),
        allow_private: row.allow_private,
    }
}

#[cfg(test)]
mod tests {
    use rialto_testkit::store_suite::agent;

    use super::*;

    fn row(n: usize) -> Arc<Agent> {
        let mut row = agent(&format!("agt_{n}"));
        (row.slug, row.url) = (format!("slug_{n}"), format!("http://a{n}.example"));
        Arc::new(row)
    }

    fn ids(live: &RegistrySnapshot) -> Vec<String> {
        live.all().map(|row| row.id.as_str().to_owned()).collect()
    }

    #[test]
    fn a_row_is_found_and_changed_in_whichever_piece_it_lies() {
        let rows: Vec<_> = (0..3 * PIECE + 1).map(row).collect();
        let before = RegistrySnapshot::new(Some(1), &rows);
        let mut live = before.clone();
        for n in [0, PIECE - 1, PIECE, 3 * PIECE] {
            let changed = Agent { timeout_ms: Some(7), ..Agent::clone(&rows[n]) };
            live = live.with(Arc::new(changed));
            assert_eq!(live.get(&rows[n].id).unwrap().timeout_ms, Some(7));
            assert_eq!(live.by_slug(&rows[n].scope, &rows[n].slug).unwrap().id, rows[n].id);
        }
        assert_eq!(ids(&live), ids(&before), "all are where they were");
        assert!(
            before.all().all(|row| row.timeout_ms != Some(7)),
            "who reads the old ones sees the old ones"
        );
        assert!(!live.looks_like(&before) && live.looks_like(&live.clone()));
    }

    #[test]
    fn a_row_that_comes_goes_or_is_called_otherwise_is_found_as_it_is() {
        let live = RegistrySnapshot::new(Some(1), &[row(1), row(2)]).with(row(3));
        assert_eq!(ids(&live).len(), 3);
        let renamed = Agent { slug: "other".to_owned(), ..Agent::clone(&row(2)) };
        let scope = renamed.scope.clone();
        let live = live.with(Arc::new(renamed)).without(&row(1).id);
        assert_eq!(live.by_slug(&scope, "other").unwrap().id, row(2).id);
        assert!(live.by_slug(&scope, "slug_2").is_none() && live.by_slug(&scope, "slug_1").is_none());
        assert_eq!(ids(&live).len(), 2);
    }
}
