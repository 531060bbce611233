//! Pending calls: calls that wait for an answer of their caller.
//!
//! They live in this process: the server waits on a connection of this process. An answer after a restart fails, because the call is
//! gone.

use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use rmcp::model::JsonObject;
use serde_json::Value;
use tokio::{sync::oneshot, time::Instant};

use crate::{question::ServerQuestion, tool_call::OpenRequest};

/// Maximum time for which a question waits.
const MAX_WAIT: Duration = Duration::from_secs(3_600);

/// Maximum number of pending calls; the next one is rejected.
const MAX_PENDING_CALLS: usize = 10_000;

/// Pending calls by handle.
#[derive(Clone, Default)]
pub(crate) struct PendingCalls(Arc<Mutex<HashMap<String, (Instant, PendingCall)>>>);

/// Call that waits for an answer.
pub(crate) struct PendingCall {
    /// Questions to answer.
    pub(crate) questions: Vec<ServerQuestion>,
    /// Next step after the answer.
    pub(crate) onward: Continuation,
}

/// Continuation of a call after its questions are answered.
pub(crate) enum Continuation {
    /// Answer the server's request; the call then continues.
    Same {
        /// Open request of the call.
        underway: Box<OpenRequest>,
        /// Sender of the answer.
        answer: oneshot::Sender<Value>,
    },
    /// Call the tool again.
    Again {
        /// Arguments of the tool.
        arguments: JsonObject,
        /// Opaque state of the server.
        state: Option<String>,
        /// Answers received so far.
        given: crate::question::ElicitationAnswers,
        /// True when the answers are sent with the call.
        takes_answers: bool,
    },
}

// === impl PendingCalls ===

impl PendingCalls {
    /// Stores a call until its answer arrives; false when the limit is reached.
    pub(crate) fn hold(&self, handle: &str, held: PendingCall) -> bool {
        {
            let mut waiting = self.0.lock();
            if waiting.len() >= MAX_PENDING_CALLS {
                return false;
            }
            waiting.insert(handle.to_owned(), (Instant::now(), held));
        }
        let (waiting, handle) = (Arc::downgrade(&self.0), handle.to_owned());
        tokio::spawn(async move {
            tokio::time::sleep(MAX_WAIT).await;
            let Some(waiting) = waiting.upgrade() else { return };
            let mut waiting = waiting.lock();
            // The same call may have been answered and be waiting again.
            if waiting.get(&handle).is_some_and(|(since, _)| since.elapsed() >= MAX_WAIT) {
                let given_up = waiting.remove(&handle);
                drop(waiting);
                drop(given_up);
            }
        });
        true
    }

    /// Removes the pending call with that handle.
    pub(crate) fn take(&self, handle: &str) -> Option<PendingCall> {
        self.0.lock().remove(handle).map(|(_, held)| held)
    }

    /// True when a call with that handle is pending.
    pub(crate) fn holds(&self, handle: &str) -> bool {
        self.0.lock().contains_key(handle)
    }

    /// Drops all pending calls.
    pub(crate) fn clear(&self) {
        let all = std::mem::take(&mut *self.0.lock());
        drop(all);
    }
}
