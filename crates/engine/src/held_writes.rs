//! Writes that the store could not take are held, and written when it is back.
//!
//! What an agent has said cannot be asked for again, so an outage of the store must not lose it. A write that fails because the
//! store is not available waits here: those of one task in their order, all of them within a bound of bytes. One worker tries
//! again with backoff, so that everything is recorded within seconds of the store's return, and publishes it then. Whoever
//! cares about the outcome has a [`HeldWrite`].
//!
//! Because an attempt may have been done though nobody heard of it, a write that finds its own events in the store counts as
//! written. While the store is away held results are also in a file of the data folder ([`spill`]), so that the end of the
//! process does not lose them.

mod queue;
mod spill;
mod unsent;
mod worker;

use std::{
    path::PathBuf,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::{Context, Poll},
};

use parking_lot::Mutex;
use rialto_model::{
    audit_event::AuditEvent,
    clock::Clock,
    event::Event,
    ids::TaskId,
    store::{Store, StoreError, TaskAppend},
};
use tokio::{runtime::Handle, sync::oneshot};

pub(crate) use self::unsent::{Unsent, UnsentStart};
use self::{
    queue::{HeldAudit, HeldEntry, HeldItem, Queue, QueueKey},
    spill::Spill,
};
use crate::{bus::Bus, task_subscription::TaskListeners};

/// Share of the bytes that audit records without a task may take: results come first.
const AUDIT_SHARE: usize = 4;

/// What waits to be written.
#[derive(Clone)]
pub(crate) struct HeldWrites(Arc<HeldQueueState>);

struct HeldQueueState {
    store: Arc<dyn Store>,
    bus: Arc<Bus>,
    listeners: Arc<TaskListeners>,
    clock: Arc<dyn Clock>,
    max_bytes: usize,
    queue: Mutex<Queue>,
    spill: Spill,
    /// Whether anything is held: asked for every write.
    is_holding: AtomicBool,
    lost_audit_records: AtomicU64,
}

/// Outcome of one write that is held: the events that are recorded, or why they never will be.
pub(crate) struct HeldWrite(oneshot::Receiver<Result<Vec<Event>, StoreError>>);

/// Counts of what is held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeldCounts {
    /// Writes to tasks that wait for the store.
    pub writes: usize,
    /// Bytes of everything that waits.
    pub bytes: usize,
    /// Audit records that were lost since the start, because too many waited or the store refused them.
    pub lost_audit_records: u64,
}

// === impl HeldWrites ===

impl HeldWrites {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        (bus, listeners): (Arc<Bus>, Arc<TaskListeners>),
        clock: Arc<dyn Clock>,
        max_bytes: usize,
    ) -> Self {
        Self(Arc::new(HeldQueueState {
            store,
            bus,
            listeners,
            clock,
            max_bytes,
            queue: Mutex::default(),
            spill: Spill::default(),
            is_holding: AtomicBool::new(false),
            lost_audit_records: AtomicU64::new(0),
        }))
    }

    /// Keeps a copy of held results in a file of this folder.
    pub(crate) fn spill_in(&self, folder: PathBuf) {
        self.0.spill.set_folder(folder);
    }

    /// Whether writes of a task wait: a later one must wait behind them.
    pub(crate) fn has(&self, task: &TaskId) -> bool {
        self.0.is_holding.load(Ordering::Acquire) && self.0.queue.lock().has(task)
    }

    /// Whether more may be read from agents.
    pub(crate) fn has_room(&self) -> bool {
        self.0.queue.lock().bytes() < self.0.max_bytes
    }

    /// Holds events of a task. They have happened, so they are taken however much is held.
    pub(crate) fn hold(&self, entry: TaskAppend, cause: Option<&StoreError>) -> HeldWrite {
        let (done, written) = oneshot::channel();
        let key = QueueKey::Task(entry.head.id.clone());
        self.push(key, HeldItem::Entry(Arc::new(HeldEntry::new(entry, done))), cause);
        HeldWrite(written)
    }

    /// Holds audit records that belong to no write of a task, as far as there is room.
    pub(crate) fn hold_audit(
        &self,
        records: Vec<AuditEvent>,
        published: Vec<AuditEvent>,
        cause: &StoreError,
    ) {
        let audit = HeldAudit::new(records, published);
        if self.0.queue.lock().audit_bytes() + audit.bytes > self.0.max_bytes / AUDIT_SHARE {
            self.0.lose(audit.records.len(), cause);
            return;
        }
        self.push(QueueKey::Audit, HeldItem::Audit(Arc::new(audit)), Some(cause));
    }

    /// Sees to it that a task whose beginning may be in the store, though its call was not made, does not stay open.
    pub(crate) fn end_unsent(&self, unsent: Unsent) {
        self.push(QueueKey::Unsent(unsent.task.clone()), HeldItem::Unsent(Arc::new(unsent)), None);
    }

    /// Counts of what is held.
    pub(crate) fn counts(&self) -> HeldCounts {
        let queue = self.0.queue.lock();
        HeldCounts {
            writes: queue.writes(),
            bytes: queue.bytes(),
            lost_audit_records: self.0.lost_audit_records.load(Ordering::Relaxed),
        }
    }

    /// Writes what is held to the file in the data folder now: this process ends.
    pub(crate) async fn flush_spill(&self) {
        worker::flush(&self.0).await;
    }

    /// Records what processes held that are gone.
    pub(crate) async fn recover(&self) -> Result<(), StoreError> {
        worker::recover(&self.0).await
    }

    fn push(&self, key: QueueKey, item: HeldItem, cause: Option<&StoreError>) {
        let (starts, is_news) = {
            let mut queue = self.0.queue.lock();
            let was_away = queue.is_away();
            self.0.is_holding.store(true, Ordering::Release);
            (queue.push(key, item), !was_away && queue.is_away())
        };
        if let Some(error) = cause.filter(|_| is_news) {
            tracing::error!(
                error = error as &dyn std::error::Error,
                "the store is not available; results are held and recorded when it is back: {error}"
            );
        }
        if !starts {
            return;
        }
        match Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn(worker::drain(Arc::clone(&self.0)))),
            // Nobody drives anything any more: what is held is in the file, or lost with the process.
            Err(_) => self.0.queue.lock().stop_draining(),
        }
    }
}

// === impl Shared ===

impl HeldQueueState {
    fn lose(&self, records: usize, cause: &StoreError) {
        let lost = u64::try_from(records).unwrap_or(u64::MAX);
        let before = self.lost_audit_records.fetch_add(lost, Ordering::Relaxed);
        if before == 0 {
            tracing::error!(
                error = cause as &dyn std::error::Error,
                "audit records are lost: too many wait for the store; rialto_audit_records_lost_total counts them"
            );
        }
    }
}

// === impl HeldWrite ===

impl Future for HeldWrite {
    type Output = Result<Vec<Event>, StoreError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let ended = || StoreError::Unavailable("this process ends".into());
        Pin::new(&mut self.0).poll(context).map(|written| written.unwrap_or_else(|_| Err(ended())))
    }
}
