//! Dispatch: selection of an agent for work that names none.
//!
//! [`select_agent`] finds the candidates and scores them, [`attempts`] calls them one after the other and learns from the outcome. Here is
//! what both share between two decisions: the index of agents by skill.

mod attempts;
pub mod config;
mod dispatch;
mod federation;
mod select_agent;

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicI64, Ordering},
};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use rand::{Rng, SeedableRng, rngs::StdRng};
use rialto_model::{
    clock::Timestamp,
    failure::{Failure, FailureKind},
    ids::Scope,
};
use rialto_routing::skill_index::SkillIndex;

pub(crate) use self::attempts::{AttemptEnd, DispatchAttempt};
pub use self::{
    config::Config,
    dispatch::{Assigned, DispatchRequest, DispatchService},
    federation::{Lookup, Mesh, Proposal},
};
use crate::registry::Registry;

/// Maximum number of projects whose indexes are kept; one more removes the oldest.
const MAX_INDEXES: usize = 64;

/// Range of seeds: they fit into the numbers of every language that reads JSON.
const SEED_RANGE: u64 = 1 << 53;

/// Interval of searches for tasks whose end was not recorded as an outcome, in milliseconds.
const LEARN_INTERVAL_MS: i64 = 1_000;

/// State between decisions: indexes of agents by skill, seeds, the other registry.
pub(crate) struct Router {
    pub(crate) config: Config,
    indexes: ArcSwap<Vec<(Scope, Arc<SkillIndex>)>>,
    /// Locked while an index is built: one at a time.
    building: tokio::sync::Mutex<()>,
    seeds: Mutex<StdRng>,
    learned_at: AtomicI64,
    /// Another registry.
    mesh: OnceLock<Mesh>,
}

// === impl Router ===

impl Router {
    pub(crate) fn new(config: Config) -> Self {
        let seeds = config.seed.map_or_else(|| StdRng::seed_from_u64(rand::random()), StdRng::seed_from_u64);
        Self {
            config,
            indexes: ArcSwap::from_pointee(Vec::new()),
            building: tokio::sync::Mutex::new(()),
            seeds: Mutex::new(seeds),
            learned_at: AtomicI64::new(0),
            mesh: OnceLock::new(),
        }
    }

    /// Index of the agents of a project by skill. When the registry has changed, the first request rebuilds it;
    /// others use the old one until then. It only selects candidates: their rows are read live.
    pub(crate) async fn index(
        &self,
        registry: &Arc<Registry>,
        scope: &Scope,
    ) -> Result<Arc<SkillIndex>, Failure> {
        let known = self.find_index(scope);
        if let Some(known) = known.as_ref().filter(|known| known.version() == registry.version()) {
            return Ok(Arc::clone(known));
        }
        let _making = match (self.building.try_lock(), known) {
            (Ok(building), _) => building,
            (Err(_), Some(known)) => return Ok(known),
            (Err(_), None) => self.building.lock().await,
        };
        // The version is read before the rows: an index may be newer than it says, never older.
        let version = registry.version();
        if let Some(made) = self.find_index(scope).filter(|made| made.version() == version) {
            return Ok(made);
        }
        let (registry, of) = (Arc::clone(registry), scope.clone());
        let made = tokio::task::spawn_blocking(move || SkillIndex::new(version, registry.agents(&of))).await;
        let made =
            made.map_err(|_| Failure::new(FailureKind::Internal, "the choice was cut off; try again"))?;
        let made = Arc::new(made);
        self.indexes.rcu(|kept| {
            let others = kept.iter().filter(|(of, _)| of != scope).cloned();
            let mut kept: Vec<_> = others.chain([(scope.clone(), Arc::clone(&made))]).collect();
            kept.drain(..kept.len().saturating_sub(MAX_INDEXES));
            kept
        });
        Ok(made)
    }

    fn find_index(&self, scope: &Scope) -> Option<Arc<SkillIndex>> {
        self.indexes.load().iter().find(|(of, _)| of == scope).map(|(_, index)| Arc::clone(index))
    }

    /// Seed of the samples of the next decision.
    fn next_seed(&self) -> u64 {
        self.seeds.lock().next_u64() % SEED_RANGE
    }

    /// True if the next search for unrecorded outcomes is due.
    fn is_due(&self, now: Timestamp) -> bool {
        let (now, before) = (now.as_millisecond(), self.learned_at.load(Ordering::Relaxed));
        now - before >= LEARN_INTERVAL_MS
            && self.learned_at.compare_exchange(before, now, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}
