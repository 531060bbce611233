//! How an engine comes to its end: calls under way first finish, and those that do not are handed back.
//!
//! A call that is handed back is not called off. Its caller gets the task's id, the journal keeps what the agent calls the
//! task, and whoever asks for it later, in another process, asks the agent.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use rialto_model::failure::Failure;

use crate::{
    engine::{Engine, EngineInner},
    limits,
};

/// How long calls that are handed back may take to write that down.
const WRITING: Duration = Duration::from_secs(2);

// === impl Engine ===

impl Engine {
    /// How many calls run in this process, those included that nobody waits for any more.
    pub fn in_flight(&self) -> usize {
        self.inner().tracker.len()
    }

    /// Whether this process ends and takes no more calls.
    pub fn is_closing(&self) -> bool {
        self.inner().is_closing()
    }

    /// Lets what runs come to its end, at most until `patience` is over.
    pub async fn drain(&self, patience: Duration) {
        self.inner().tracker.close();
        let _ = tokio::time::timeout(patience, self.inner().tracker.wait()).await;
    }

    /// Takes no more calls, and hands those that run back to their callers.
    pub async fn hand_back(&self) {
        let inner = self.inner();
        inner.closing.store(true, Ordering::SeqCst);
        let running: Vec<_> = inner.running.lock().values().cloned().collect();
        if !running.is_empty() {
            tracing::warn!(
                "{} calls did not end in time and are handed back to their callers",
                running.len()
            );
        }
        for call in running {
            call.cancel();
        }
        self.drain(WRITING).await;
        inner.journal.flush_held().await;
    }
}

// === impl Inner ===

impl EngineInner {
    /// Whether what runs is handed back.
    pub(crate) fn is_closing(self: &Arc<Self>) -> bool {
        self.closing.load(Ordering::Relaxed)
    }
}

/// What somebody is told who calls too late.
pub(crate) fn closed() -> Failure {
    limits::busy("this server is stopping and takes no more calls; call again when it is back", 1)
}
