//! Choosing who does some work, and what is remembered for it.
//!
//! [`deciding`] finds out who could do it and weighs them, [`routed`] gives the work away and sees to what comes of it. Here is
//! what both need between two decisions: the agents by what they can do.

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
use rialto_route::skills::SkillIndex;

pub(crate) use self::attempts::{AttemptEnd, DispatchAttempt};
pub use self::{
    config::Config,
    dispatch::{Assigned, DispatchRequest},
    federation::{Lookup, Mesh, Proposal},
};
use crate::registry::Registry;

/// Indexes are kept for so many projects; one more forgets the oldest.
const KEPT: usize = 64;

/// A seed fits into the numbers of every language that reads JSON.
const SEEDS: u64 = 1 << 53;

/// How often plays are looked for that have ended unheard, in milliseconds.
const LOOK: i64 = 1_000;

/// What is remembered between decisions.
pub(crate) struct Router {
    pub(crate) config: Config,
    indexes: ArcSwap<Vec<(Scope, Arc<SkillIndex>)>>,
    /// Held by whoever makes an index: one at a time.
    making: tokio::sync::Mutex<()>,
    seeds: Mutex<StdRng>,
    looked_at: AtomicI64,
    /// A registry elsewhere.
    mesh: OnceLock<Mesh>,
}

// === impl Router ===

impl Router {
    pub(crate) fn new(config: Config) -> Self {
        let seeds = config.seed.map_or_else(|| StdRng::seed_from_u64(rand::random()), StdRng::seed_from_u64);
        Self {
            config,
            indexes: ArcSwap::from_pointee(Vec::new()),
            making: tokio::sync::Mutex::new(()),
            seeds: Mutex::new(seeds),
            looked_at: AtomicI64::new(0),
            mesh: OnceLock::new(),
        }
    }

    /// The agents of a project by what they can do. When the registry has changed, whoever comes first makes the index anew;
    /// others go by the one before until it is there. Nothing depends on it but who is considered: rows are read live.
    pub(crate) async fn index(
        &self,
        registry: &Arc<Registry>,
        scope: &Scope,
    ) -> Result<Arc<SkillIndex>, Failure> {
        let known = self.known(scope);
        if let Some(known) = known.as_ref().filter(|known| known.version() == registry.version()) {
            return Ok(Arc::clone(known));
        }
        let _making = match (self.making.try_lock(), known) {
            (Ok(making), _) => making,
            (Err(_), Some(known)) => return Ok(known),
            (Err(_), None) => self.making.lock().await,
        };
        // The version is read before the rows: an index may be newer than it says, never older.
        let version = registry.version();
        if let Some(made) = self.known(scope).filter(|made| made.version() == version) {
            return Ok(made);
        }
        let (registry, of) = (Arc::clone(registry), scope.clone());
        let made = tokio::task::spawn_blocking(move || SkillIndex::of(version, registry.agents(&of))).await;
        let made =
            made.map_err(|_| Failure::new(FailureKind::Internal, "the choice was cut off; try again"))?;
        let made = Arc::new(made);
        self.indexes.rcu(|kept| {
            let others = kept.iter().filter(|(of, _)| of != scope).cloned();
            let mut kept: Vec<_> = others.chain([(scope.clone(), Arc::clone(&made))]).collect();
            kept.drain(..kept.len().saturating_sub(KEPT));
            kept
        });
        Ok(made)
    }

    fn known(&self, scope: &Scope) -> Option<Arc<SkillIndex>> {
        self.indexes.load().iter().find(|(of, _)| of == scope).map(|(_, index)| Arc::clone(index))
    }

    /// What the draws of the next decision are made from.
    fn next_seed(&self) -> u64 {
        self.seeds.lock().next_u64() % SEEDS
    }

    /// Whether it is time to look for plays that have ended unheard.
    fn is_due(&self, now: Timestamp) -> bool {
        let (now, before) = (now.as_millisecond(), self.looked_at.load(Ordering::Relaxed));
        now - before >= LOOK
            && self.looked_at.compare_exchange(before, now, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}
