//! Hearing of a task's events, each once and in order, however slow the listener is.
//!
//! What is heard is always in the store already. While a task runs in this process its last events are also at hand, so
//! that most listeners never read the store; one that has fallen behind, and one whose task runs elsewhere, does.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use rialto_model::{
    clock::Timestamp,
    event::{Event, Recorded},
    failure::Failure,
    ids::TaskId,
    maps::FastMap,
    store::Store,
};
use tokio::sync::watch;

use crate::engine::store_failure;

/// So many events of a task are at hand; whoever is further behind reads the store.
const AT_HAND: usize = 256;

/// How often to look for events that other processes have written.
const LOOK: Duration = Duration::from_millis(500);

/// Whoever listens to tasks in this process.
#[derive(Default)]
pub(crate) struct Listeners {
    /// How many there are: asked on the road of every call.
    count: AtomicUsize,
    tasks: Mutex<FastMap<TaskId, Listened>>,
}

struct Listened {
    channel: Arc<Channel>,
    listeners: usize,
}

struct Channel {
    recent: Mutex<VecDeque<Recorded>>,
    version: watch::Sender<u64>,
}

/// Hears of one task's events, each once and in order.
pub struct Following {
    store: Arc<dyn Store>,
    listeners: Arc<Listeners>,
    task: TaskId,
    channel: Arc<Channel>,
    version: watch::Receiver<u64>,
    /// The last event that was handed out.
    seen: u64,
}

// === impl Listeners ===

impl Listeners {
    /// Whether anybody listens to anything.
    pub(crate) fn are_there(&self) -> bool {
        self.count.load(Ordering::SeqCst) > 0
    }

    /// Tells of events that were written behind version `expected`. Without them whoever listens looks for itself.
    pub(crate) fn tell(&self, task: &TaskId, expected: u64, at: Timestamp, events: Option<Vec<Event>>) {
        let Some(channel) = self.tasks.lock().get(task).map(|listened| Arc::clone(&listened.channel)) else {
            return;
        };
        let mut version = expected + 1;
        if let Some(events) = events {
            version = expected + events.len() as u64;
            let mut recent = channel.recent.lock();
            recent.extend((expected + 1..).zip(events).map(|(seq, event)| Recorded { seq, at, event }));
            let too_many = recent.len().saturating_sub(AT_HAND);
            recent.drain(..too_many);
        }
        channel.version.send_modify(|known| *known = version.max(*known));
    }

    fn attach(&self, task: &TaskId, seen: u64) -> Arc<Channel> {
        let mut tasks = self.tasks.lock();
        let listened = tasks.entry(task.clone()).or_insert_with(|| Listened {
            channel: Arc::new(Channel { recent: Mutex::default(), version: watch::Sender::new(seen) }),
            listeners: 0,
        });
        listened.listeners += 1;
        self.count.fetch_add(1, Ordering::SeqCst);
        Arc::clone(&listened.channel)
    }

    fn detach(&self, task: &TaskId) {
        let mut tasks = self.tasks.lock();
        self.count.fetch_sub(1, Ordering::SeqCst);
        if let Some(listened) = tasks.get_mut(task) {
            listened.listeners -= 1;
            if listened.listeners == 0 {
                tasks.remove(task);
            }
        }
    }
}

// === impl Channel ===

impl Channel {
    /// What follows on `seen` and is at hand; nothing if the next event is not.
    fn behind(&self, seen: u64) -> Vec<Recorded> {
        let recent = self.recent.lock();
        let Some(first) = recent.iter().position(|recorded| recorded.seq == seen + 1) else {
            return Vec::new();
        };
        recent.iter().skip(first).cloned().collect()
    }
}

// === impl Following ===

impl Following {
    pub(crate) fn new(store: Arc<dyn Store>, listeners: Arc<Listeners>, task: TaskId, seen: u64) -> Self {
        let channel = listeners.attach(&task, seen);
        let version = channel.version.subscribe();
        Self { store, listeners, task, channel, version, seen }
    }

    /// The task.
    pub const fn task(&self) -> &TaskId {
        &self.task
    }

    /// Waits for what happens next; never nothing. What was waited for in vain can be waited for again.
    pub async fn next(&mut self) -> Result<Vec<Recorded>, Failure> {
        loop {
            let at_hand = self.channel.behind(self.seen);
            if !at_hand.is_empty() {
                return Ok(self.hand_out(at_hand));
            }
            let is_behind = *self.version.borrow_and_update() > self.seen;
            let waited = async {
                if !is_behind {
                    // An error would say that nobody tells any more, but we hold the channel ourselves.
                    let _ = tokio::time::timeout(LOOK, self.version.changed()).await;
                }
            };
            waited.await;
            if !self.channel.behind(self.seen).is_empty() {
                continue;
            }
            let read = self.store.events(&self.task, self.seen).await.map_err(store_failure)?;
            if !read.is_empty() {
                return Ok(self.hand_out(read));
            }
            if is_behind {
                // The store does not show yet what was written a moment ago.
                tokio::task::yield_now().await;
            }
        }
    }

    /// Hears nothing of what is known already.
    pub(crate) fn skip_to(&mut self, version: u64) {
        self.seen = self.seen.max(version);
    }

    fn hand_out(&mut self, events: Vec<Recorded>) -> Vec<Recorded> {
        self.seen = events.last().map_or(self.seen, |last| last.seq);
        events
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        self.listeners.detach(&self.task);
    }
}
