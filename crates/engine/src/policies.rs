//! The active policy set and how it is reloaded.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use arc_swap::{ArcSwap, Guard};
use futures::future::BoxFuture;
use rialto_model::{failure::Failure, store::StoreError};
use rialto_policy::{Policy, PolicyError};
use tokio::{
    sync::{Mutex, watch},
    time::timeout,
};

use crate::{registry::Registry, store_deadline::no_answer, store_failure::store_failure};

/// Loads the policies from files and store.
pub type PolicyLoader =
    Box<dyn Fn() -> BoxFuture<'static, Result<Result<Policy, PolicyError>, StoreError>> + Send + Sync>;

/// Proof that this process was synchronised with the store.
///
/// A server that resolves names for a request has synchronised already; with the proof the call does not do it again.
#[derive(Clone, Copy, Debug)]
pub struct StoreSync(());

/// The active policy set: decides, and is reloaded when another process has changed policies.
pub struct PolicyService {
    pub(crate) registry: Arc<Registry>,
    active: ArcSwap<Policy>,
    loader: Option<PolicyLoader>,
    /// Longest time that a reload may take.
    reload_timeout: Option<Duration>,
    /// True if a decision evaluates only the policies that can apply to it.
    is_indexed: bool,
    /// Serialises reloads: an earlier policy set never replaces a later one.
    reload_lock: Mutex<()>,
    /// Number of changes by other processes ([`Registry::surprises`]) that the last reload includes.
    reloaded_at: AtomicU64,
    reload_count: AtomicU64,
    /// Mark of the active set, for subscribers.
    marks: watch::Sender<u64>,
    /// Set when the last reload found invalid policies.
    is_behind: AtomicBool,
}

// === impl PolicyService ===

impl PolicyService {
    pub(crate) fn new(
        registry: Arc<Registry>,
        first: Policy,
        loader: Option<PolicyLoader>,
        (is_indexed, reload_timeout): (bool, Option<Duration>),
    ) -> Self {
        let first = first.with_index(is_indexed);
        Self {
            marks: watch::Sender::new(first.fingerprint()),
            registry,
            active: ArcSwap::from_pointee(first),
            loader,
            reload_timeout,
            is_indexed,
            reload_lock: Mutex::default(),
            reloaded_at: AtomicU64::new(0),
            reload_count: AtomicU64::new(0),
            is_behind: AtomicBool::new(false),
        }
    }

    /// The active policy set, for one decision.
    pub(crate) fn load(&self) -> Guard<Arc<Policy>> {
        self.active.load()
    }

    /// Subscribes to the mark of the active set.
    pub(crate) fn watch(&self) -> watch::Receiver<u64> {
        self.marks.subscribe()
    }

    /// Loads the policies again. Invalid policies are not taken: the active set stays.
    async fn load_again(&self) -> Result<(), StoreError> {
        let Some(load) = &self.loader else { return Ok(()) };
        let _turn = self.reload_lock.lock().await;
        let read = load().await?;
        self.reload_count.fetch_add(1, Ordering::AcqRel);
        self.is_behind.store(read.is_err(), Ordering::Relaxed);
        match read {
            Ok(policy) => {
                let mark = policy.fingerprint();
                self.active.store(Arc::new(policy.with_index(self.is_indexed)));
                self.marks.send_if_modified(|known| std::mem::replace(known, mark) != mark);
            }
            Err(error) => {
                tracing::error!("the policies were not reloaded, the ones before stay in force: {error}");
            }
        }
        Ok(())
    }

    /// The active policy set.
    pub fn active(&self) -> Arc<Policy> {
        self.active.load_full()
    }

    /// Synchronises this process with the store: reloads registry rows and policies that other processes have changed.
    ///
    /// Policies are reloaded only after a change by another process: a row that this process wrote says nothing about them, and probes
    /// write many.
    pub async fn sync(&self) -> Result<StoreSync, Failure> {
        self.registry.sync().await.map_err(store_failure)?;
        let surprises = self.registry.surprises();
        if self.reloaded_at.load(Ordering::Acquire) != surprises {
            // In this order: a call that comes meanwhile must not be decided by the old policies.
            Box::pin(self.reload()).await?;
            self.reloaded_at.store(surprises, Ordering::Release);
        }
        Ok(StoreSync(()))
    }

    /// Reloads the policies. Invalid policies are not taken. A store that does not answer is a failure, and the request that needs the
    /// policies does not continue.
    pub async fn reload(&self) -> Result<(), Failure> {
        let reload = self.load_again();
        let reloaded = match self.reload_timeout {
            Some(limit) => timeout(limit, reload).await.unwrap_or_else(|_| Err(no_answer("policies", limit))),
            None => reload.await,
        };
        reloaded.map_err(store_failure)
    }

    /// Number of reloads so far.
    pub fn reload_count(&self) -> u64 {
        self.reload_count.load(Ordering::Acquire)
    }

    /// True if the active set is the stored one: invalid policies are not taken.
    pub fn is_up_to_date(&self) -> bool {
        !self.is_behind.load(Ordering::Relaxed)
    }
}
