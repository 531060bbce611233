//! The policies in force, and how they come to be others.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use arc_swap::{ArcSwap, Guard};
use futures::future::BoxFuture;
use rialto_model::{failure::Failure, store::StoreError};
use rialto_policy::{Policy, PolicyError};
use tokio::{
    sync::{Mutex, watch},
    time::timeout,
};

use crate::{
    engine::{Engine, store_failure},
    store_deadline::no_answer,
};

/// Reads the policies from wherever they are kept.
pub type PolicyLoader =
    Box<dyn Fn() -> BoxFuture<'static, Result<Result<Policy, PolicyError>, StoreError>> + Send + Sync>;

/// Those in force.
pub(crate) struct ActivePolicies {
    in_force: ArcSwap<Policy>,
    loader: Option<PolicyLoader>,
    /// Whether a request evaluates only the policies that can apply to it.
    is_indexed: bool,
    /// One reads them, the others wait for it: what was read earlier never takes the place of what was read later.
    turn: Mutex<()>,
    /// How many changes from elsewhere had been seen when they were last read.
    read_at: AtomicU64,
    /// How often they were read.
    reads: AtomicU64,
    /// The mark of those in force, for those who want to hear when it is another.
    marks: watch::Sender<u64>,
    /// Whether those that were last read did not hold up.
    is_behind: AtomicBool,
}

// === impl Policies ===

impl ActivePolicies {
    pub(crate) fn new(first: Policy, loader: Option<PolicyLoader>, is_indexed: bool) -> Self {
        let first = first.with_index(is_indexed);
        Self {
            marks: watch::Sender::new(first.fingerprint()),
            in_force: ArcSwap::from_pointee(first),
            loader,
            is_indexed,
            turn: Mutex::default(),
            read_at: AtomicU64::new(0),
            reads: AtomicU64::new(0),
            is_behind: AtomicBool::new(false),
        }
    }

    /// To be asked at once.
    pub(crate) fn load(&self) -> Guard<Arc<Policy>> {
        self.in_force.load()
    }

    /// Hears of the marks of those in force.
    pub(crate) fn watch(&self) -> watch::Receiver<u64> {
        self.marks.subscribe()
    }

    /// Reads them again. Policies that do not hold up are not taken: the old ones stay in force.
    async fn reload(&self) -> Result<(), StoreError> {
        let Some(load) = &self.loader else { return Ok(()) };
        let _turn = self.turn.lock().await;
        let read = load().await?;
        self.reads.fetch_add(1, Ordering::AcqRel);
        self.is_behind.store(read.is_err(), Ordering::Relaxed);
        match read {
            Ok(policy) => {
                let mark = policy.fingerprint();
                self.in_force.store(Arc::new(policy.with_index(self.is_indexed)));
                self.marks.send_if_modified(|known| std::mem::replace(known, mark) != mark);
            }
            Err(error) => {
                tracing::error!("the policies were not reloaded, the ones before stay in force: {error}");
            }
        }
        Ok(())
    }
}

// === impl Engine ===

impl Engine {
    /// Who may do what, just now.
    pub fn policy(&self) -> Arc<Policy> {
        self.inner().policies.in_force.load_full()
    }

    /// Sees to it that what any process has changed is seen here.
    ///
    /// Policies are read again only after a change that came from elsewhere: a row that we wrote ourselves says
    /// nothing about them, and probes write many.
    pub async fn sync(&self) -> Result<(), Failure> {
        let (registry, policies) = (self.registry(), &self.inner().policies);
        registry.sync().await.map_err(store_failure)?;
        let surprises = registry.surprises();
        if policies.read_at.load(Ordering::Acquire) != surprises {
            // Read first, then say so: a call that comes meanwhile must not go by the old ones.
            Box::pin(self.reload_policy()).await?;
            policies.read_at.store(surprises, Ordering::Release);
        }
        Ok(())
    }

    /// Reads the policies again. Those that do not hold up are not taken. When it is not known what they are, because the store
    /// does not say, that is a failure, and whoever asks does not go on.
    pub async fn reload_policy(&self) -> Result<(), Failure> {
        let reload = self.inner().policies.reload();
        let reloaded = match self.config().store_timeout() {
            Some(limit) => timeout(limit, reload).await.unwrap_or_else(|_| Err(no_answer("policies", limit))),
            None => reload.await,
        };
        reloaded.map_err(store_failure)
    }

    /// How often the policies were read again: for whoever watches what they are read from, and is not the only one who has them
    /// read.
    pub fn policy_reads(&self) -> u64 {
        self.inner().policies.reads.load(Ordering::Acquire)
    }

    /// Whether the policies in force are those that are kept: ones that do not hold up are not taken.
    pub fn policies_are_sound(&self) -> bool {
        !self.inner().policies.is_behind.load(Ordering::Relaxed)
    }
}
