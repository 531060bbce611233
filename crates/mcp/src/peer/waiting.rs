//! Calls that wait for an answer from whoever made them.
//!
//! They live in this process: a server that waits for an answer waits on a connection of ours. Whoever answers after a restart
//! is told that the call is gone.

use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use rmcp::model::JsonObject;
use serde_json::Value;
use tokio::{sync::oneshot, time::Instant};

use super::{question::Question, work::Underway};

/// How long a question may wait.
const PATIENCE: Duration = Duration::from_secs(3_600);

/// So many may wait at once; the next one is refused.
const MOST: usize = 10_000;

/// The calls that wait, by their handles.
#[derive(Clone, Default)]
pub(super) struct Waiting(Arc<Mutex<HashMap<String, (Instant, Held)>>>);

/// A call that waits.
pub(super) struct Held {
    /// What for.
    pub(super) questions: Vec<Question>,
    /// How it goes on.
    pub(super) onward: Onward,
}

/// How a call goes on once its questions are answered.
pub(super) enum Onward {
    /// The server is told the answer to its question, and goes on.
    Same {
        /// The call.
        underway: Box<Underway>,
        /// Where the answer goes.
        answer: oneshot::Sender<Value>,
    },
    /// The tool is called again.
    Again {
        /// With these arguments.
        arguments: JsonObject,
        /// And the server's own note.
        state: Option<String>,
        /// Answers that are there already.
        given: super::question::Answers,
        /// Whether the answers go with it.
        takes_answers: bool,
    },
}

// === impl Waiting ===

impl Waiting {
    /// Keeps a call until its answer comes; false when too many wait.
    pub(super) fn hold(&self, handle: &str, held: Held) -> bool {
        {
            let mut waiting = self.0.lock();
            if waiting.len() >= MOST {
                return false;
            }
            waiting.insert(handle.to_owned(), (Instant::now(), held));
        }
        let (waiting, handle) = (Arc::downgrade(&self.0), handle.to_owned());
        tokio::spawn(async move {
            tokio::time::sleep(PATIENCE).await;
            let Some(waiting) = waiting.upgrade() else { return };
            let mut waiting = waiting.lock();
            // The same call may have been answered and have asked again meanwhile.
            if waiting.get(&handle).is_some_and(|(since, _)| since.elapsed() >= PATIENCE) {
                let given_up = waiting.remove(&handle);
                drop(waiting);
                drop(given_up);
            }
        });
        true
    }

    /// The call with that handle, if it waits.
    pub(super) fn take(&self, handle: &str) -> Option<Held> {
        self.0.lock().remove(handle).map(|(_, held)| held)
    }

    /// Whether a call with that handle waits.
    pub(super) fn holds(&self, handle: &str) -> bool {
        self.0.lock().contains_key(handle)
    }

    /// Lets go of all.
    pub(super) fn clear(&self) {
        let all = std::mem::take(&mut *self.0.lock());
        drop(all);
    }
}
