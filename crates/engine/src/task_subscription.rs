//! Hearing of a task's events, each once and in order, however slow the listener is.
//!
//! What is heard is always in the store already. While a task runs in this process its last events are also at hand, so
//! that most listeners never read the store; one that has fallen behind does. Because a task may run elsewhere, one of all who
//! listen to it here looks into the store now and then, and shows the others what it found.

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
    event::{Event, RecordedEvent},
    failure::Failure,
    ids::TaskId,
    maps::FastMap,
    store::{Store, StoreError},
};
use tokio::{sync::watch, time::Instant};

use crate::store_failure::read_failure;

/// So many events of a task are at hand; whoever is further behind reads the store.
const AT_HAND: usize = 256;

/// How often to look for events that other processes have written.
const LOOK: Duration = Duration::from_millis(500);

/// Whoever listens to tasks in this process.
#[derive(Default)]
pub(crate) struct TaskListeners {
    /// How many there are: asked on the road of every call.
    count: AtomicUsize,
    tasks: Mutex<FastMap<TaskId, ListenedTask>>,
}

struct ListenedTask {
    channel: Arc<TaskChannel>,
    listeners: usize,
}

struct TaskChannel {
    /// Without gaps, the newest last.
    recent: Mutex<VecDeque<RecordedEvent>>,
    version: watch::Sender<u64>,
    /// When somebody last looked for events that other processes have written.
    looked_at: Mutex<Instant>,
}

/// Hears of one task's events, each once and in order.
pub struct Following {
    store: Arc<dyn Store>,
    listeners: Arc<TaskListeners>,
    task: TaskId,
    channel: Arc<TaskChannel>,
    version: watch::Receiver<u64>,
    /// The last event that was handed out.
    seen: u64,
}

// === impl Listeners ===

impl TaskListeners {
    /// Whether anybody listens to anything.
    pub(crate) fn are_there(&self) -> bool {
        self.count.load(Ordering::SeqCst) > 0
    }

    /// Tells of events that were written behind version `expected`. Without them whoever listens looks for itself.
    pub(crate) fn tell(&self, task: &TaskId, expected: u64, at: Timestamp, events: Option<Vec<Event>>) {
        let Some(channel) = self.tasks.lock().get(task).map(|listened| Arc::clone(&listened.channel)) else {
            return;
        };
        match events {
            Some(events) => {
                channel.show((expected + 1..).zip(events).map(|(seq, event)| RecordedEvent {
                    seq,
                    at,
                    event,
                }));
            }
            None => channel.tell(expected + 1),
        }
    }

    fn attach(&self, task: &TaskId, seen: u64) -> Arc<TaskChannel> {
        let mut tasks = self.tasks.lock();
        let listened = tasks
            .entry(task.clone())
            .or_insert_with(|| ListenedTask { channel: Arc::new(TaskChannel::new(seen)), listeners: 0 });
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

impl TaskChannel {
    fn new(seen: u64) -> Self {
        let looked_at = Mutex::new(Instant::now());
        Self { recent: Mutex::default(), version: watch::Sender::new(seen), looked_at }
    }

    /// Puts events at hand that are in the store, those that are not there yet, and tells of them.
    fn show(&self, events: impl Iterator<Item = RecordedEvent>) {
        let mut recent = self.recent.lock();
        for recorded in events {
            match recent.back().map(|last| last.seq + 1) {
                Some(next) if recorded.seq < next => continue,
                Some(next) if recorded.seq > next => recent.clear(),
                _ => {}
            }
            recent.push_back(recorded);
        }
        let too_many = recent.len().saturating_sub(AT_HAND);
        recent.drain(..too_many);
        let last = recent.back().map_or(0, |last| last.seq);
        drop(recent);
        self.tell(last);
    }

    /// Tells that the task has come so far.
    fn tell(&self, version: u64) {
        self.version.send_modify(|known| *known = version.max(*known));
    }

    /// Whether it is time to look for events of other processes; for one of all who ask.
    fn may_look(&self) -> bool {
        let mut looked_at = self.looked_at.lock();
        let is_time = looked_at.elapsed() >= LOOK;
        if is_time {
            *looked_at = Instant::now();
        }
        is_time
    }

    /// What follows on `seen` and is at hand; nothing if the next event is not.
    fn behind(&self, seen: u64) -> Vec<RecordedEvent> {
        let recent = self.recent.lock();
        let Some(first) = recent.iter().position(|recorded| recorded.seq == seen + 1) else {
            return Vec::new();
        };
        recent.iter().skip(first).cloned().collect()
    }
}

// === impl Following ===

impl Following {
    pub(crate) fn new(store: Arc<dyn Store>, listeners: Arc<TaskListeners>, task: TaskId, seen: u64) -> Self {
        let channel = listeners.attach(&task, seen);
        let version = channel.version.subscribe();
        Self { store, listeners, task, channel, version, seen }
    }

    /// The task.
    pub const fn task(&self) -> &TaskId {
        &self.task
    }

    /// Waits for what happens next; never nothing. What was waited for in vain can be waited for again.
    pub async fn next(&mut self) -> Result<Vec<RecordedEvent>, Failure> {
        loop {
            let at_hand = self.channel.behind(self.seen);
            if !at_hand.is_empty() {
                return Ok(self.hand_out(at_hand));
            }
            let is_behind = *self.version.borrow_and_update() > self.seen;
            if !is_behind {
                // An error would say that nobody tells any more, but we hold the channel ourselves.
                let is_told = tokio::time::timeout(LOOK, self.version.changed()).await.is_ok();
                if is_told || !self.channel.may_look() {
                    continue;
                }
            }
            let read = match self.store.events(&self.task, self.seen).await {
                // It goes on when the store is back.
                Err(StoreError::Unavailable(_)) => {
                    tokio::time::sleep(LOOK).await;
                    continue;
                }
                read => read.map_err(read_failure)?,
            };
            if !read.is_empty() {
                if !is_behind {
                    self.channel.show(read.iter().cloned());
                }
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

    fn hand_out(&mut self, events: Vec<RecordedEvent>) -> Vec<RecordedEvent> {
        self.seen = events.last().map_or(self.seen, |last| last.seq);
        events
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        self.listeners.detach(&self.task);
    }
}

#[cfg(test)]
mod tests {
    use rialto_model::event::EventAside;

    use super::*;

    fn events(numbers: std::ops::RangeInclusive<u64>) -> impl Iterator<Item = RecordedEvent> {
        numbers.map(|seq| {
            let event = Event::Progress { working: true, message: None, aside: EventAside::default() };
            RecordedEvent { seq, at: Timestamp::UNIX_EPOCH, event }
        })
    }

    fn at_hand(channel: &TaskChannel, seen: u64) -> Vec<u64> {
        channel.behind(seen).iter().map(|recorded| recorded.seq).collect()
    }

    #[test]
    fn what_is_shown_twice_is_at_hand_once_and_a_gap_begins_anew() {
        let channel = TaskChannel::new(0);
        channel.show(events(1..=3));
        channel.show(events(2..=5));
        assert_eq!(at_hand(&channel, 0), [1, 2, 3, 4, 5]);
        channel.show(events(8..=9));
        assert!(at_hand(&channel, 5).is_empty(), "the next one is not at hand");
        assert_eq!(at_hand(&channel, 7), [8, 9]);
        channel.show(events(10..=1_000));
        assert_eq!(at_hand(&channel, 998), [999, 1_000]);
        assert_eq!(channel.recent.lock().len(), AT_HAND);
        assert_eq!(*channel.version.borrow(), 1_000);
    }

    #[tokio::test]
    async fn of_all_who_listen_one_looks_now_and_then() {
        let channel = TaskChannel::new(0);
        assert!(!channel.may_look(), "somebody has just read the task");
        *channel.looked_at.lock() -= LOOK;
        assert!(channel.may_look());
        assert!(!channel.may_look());
    }
}
