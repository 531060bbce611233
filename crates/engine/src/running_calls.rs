//! Calls in progress in this process, and their end when it stops.
//!
//! At shutdown calls first get time to finish, and those that do not are detached. A detached call is not cancelled: its caller gets the id
//! of the task, the journal has the agent's name for it, and the next process that is asked for the task asks the agent.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use parking_lot::Mutex;
use rialto_model::{failure::Failure, ids::TaskId, maps::FastMap};
use tokio_util::{
    sync::CancellationToken,
    task::{TaskTracker, task_tracker::TaskTrackerToken},
};

use crate::{held_writes::HeldCounts, journal::TaskJournal, limits};

/// Time that detached calls have to record that.
const DETACH_TIMEOUT: Duration = Duration::from_secs(2);

/// Table of the calls in progress in this process.
pub struct RunningCalls {
    journal: TaskJournal,
    calls: Mutex<FastMap<TaskId, CancellationToken>>,
    tracker: TaskTracker,
    is_stopping: AtomicBool,
}

// === impl RunningCalls ===

impl RunningCalls {
    pub(crate) fn new(journal: TaskJournal) -> Self {
        Self {
            journal,
            calls: Mutex::default(),
            tracker: TaskTracker::new(),
            is_stopping: AtomicBool::new(false),
        }
    }

    /// Number of calls in progress in this process, detached ones included.
    pub fn count(&self) -> usize {
        self.tracker.len()
    }

    /// True if a call of this task is in progress in this process.
    pub fn contains(&self, task: &TaskId) -> bool {
        self.calls.lock().contains_key(task)
    }

    /// True if this process is stopping and takes no more calls.
    pub fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Relaxed)
    }

    /// Number of results that wait for the store.
    pub fn held_counts(&self) -> HeldCounts {
        self.journal.held_counts()
    }

    /// Waits until the calls in progress have ended, at most for `timeout`.
    pub async fn drain(&self, timeout: Duration) {
        self.tracker.close();
        let _ = tokio::time::timeout(timeout, self.tracker.wait()).await;
    }

    /// Takes no more calls, and detaches those in progress from their callers.
    pub async fn detach_all(&self) {
        self.is_stopping.store(true, Ordering::SeqCst);
        let calls: Vec<_> = self.calls.lock().values().cloned().collect();
        if !calls.is_empty() {
            tracing::warn!("{} calls did not end in time and are detached from their callers", calls.len());
        }
        for call in calls {
            call.cancel();
        }
        self.drain(DETACH_TIMEOUT).await;
        self.journal.flush_held().await;
    }

    /// Adds a call. At shutdown it is cancelled at once, because it may come after the others were detached.
    pub(crate) fn insert(&self, task: TaskId, cancel: &CancellationToken) {
        self.calls.lock().insert(task, cancel.clone());
        if self.is_stopping() {
            cancel.cancel();
        }
    }

    pub(crate) fn remove(&self, task: &TaskId) {
        self.calls.lock().remove(task);
    }

    /// Cancels the call of a task, if it is in progress in this process.
    pub(crate) fn cancel(&self, task: &TaskId) {
        if let Some(call) = self.calls.lock().get(task) {
            call.cancel();
        }
    }

    /// Token that [`RunningCalls::drain`] waits for.
    pub(crate) fn track(&self) -> TaskTrackerToken {
        self.tracker.token()
    }

    /// Tracker of background work that [`RunningCalls::drain`] waits for.
    pub(crate) const fn tracker(&self) -> &TaskTracker {
        &self.tracker
    }
}

/// Failure of a call that arrives during shutdown.
pub(crate) fn stopping() -> Failure {
    limits::busy("this server is stopping and takes no more calls; call again when it is back", 1)
}
