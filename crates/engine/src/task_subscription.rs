//! Subscription to a task's events, each once and in order, however slow the subscriber is.
//!
//! Published events are in the store already. While a task runs in this process its last events are also in memory, so
//! that most subscribers never read the store; one that has fallen behind does. Because a task may run in another process, one of its
//! subscribers here polls the store, and shares what it found with the others.

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

/// Maximum number of events of a task in memory; a subscriber that is further behind reads the store.
const MAX_RECENT_EVENTS: usize = 256;

/// Interval of polls for events that other processes have written.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Subscribers to tasks in this process.
#[derive(Default)]
pub(crate) struct TaskListeners {
    /// Number of subscribers: read in every call.
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
    /// Time of the last poll for events that other processes have written.
    polled_at: Mutex<Instant>,
}

/// Subscription to one task's events, each once and in order.
pub struct TaskSubscription {
    store: Arc<dyn Store>,
    listeners: Arc<TaskListeners>,
    task: TaskId,
    channel: Arc<TaskChannel>,
    version: watch::Receiver<u64>,
    /// The last event that was handed out.
    seen: u64,
}

// === impl TaskListeners ===

impl TaskListeners {
    /// True if there is any subscriber.
    pub(crate) fn has_any(&self) -> bool {
        self.count.load(Ordering::SeqCst) > 0
    }

    /// Publishes events that were recorded after version `expected`. Without them subscribers read the store.
    pub(crate) fn publish(&self, task: &TaskId, expected: u64, at: Timestamp, events: Option<Vec<Event>>) {
        let Some(channel) = self.tasks.lock().get(task).map(|listened| Arc::clone(&listened.channel)) else {
            return;
        };
        match events {
            Some(events) => {
                channel.add((expected + 1..).zip(events).map(|(seq, event)| RecordedEvent {
                    seq,
                    at,
                    event,
                }));
            }
            None => channel.set_version(expected + 1),
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

// === impl TaskChannel ===

impl TaskChannel {
    fn new(seen: u64) -> Self {
        let polled_at = Mutex::new(Instant::now());
        Self { recent: Mutex::default(), version: watch::Sender::new(seen), polled_at }
    }

    /// Adds events of the store that are not in memory yet, and wakes the subscribers.
    fn add(&self, events: impl Iterator<Item = RecordedEvent>) {
        let mut recent = self.recent.lock();
        for recorded in events {
            match recent.back().map(|last| last.seq + 1) {
                Some(next) if recorded.seq < next => continue,
                Some(next) if recorded.seq > next => recent.clear(),
                _ => {}
            }
            recent.push_back(recorded);
        }
        let too_many = recent.len().saturating_sub(MAX_RECENT_EVENTS);
        recent.drain(..too_many);
        let last = recent.back().map_or(0, |last| last.seq);
        drop(recent);
        self.set_version(last);
    }

    /// Wakes the subscribers at a new version of the task.
    fn set_version(&self, version: u64) {
        self.version.send_modify(|known| *known = version.max(*known));
    }

    /// True if a poll for events of other processes is due; for one of all subscribers that ask.
    fn is_poll_due(&self) -> bool {
        let mut polled_at = self.polled_at.lock();
        let is_time = polled_at.elapsed() >= POLL_INTERVAL;
        if is_time {
            *polled_at = Instant::now();
        }
        is_time
    }

    /// Events after `seen` in memory; none if the next one is not there.
    fn events_after(&self, seen: u64) -> Vec<RecordedEvent> {
        let recent = self.recent.lock();
        let Some(first) = recent.iter().position(|recorded| recorded.seq == seen + 1) else {
            return Vec::new();
        };
        recent.iter().skip(first).cloned().collect()
    }
}

// === impl TaskSubscription ===

impl TaskSubscription {
    pub(crate) fn new(store: Arc<dyn Store>, listeners: Arc<TaskListeners>, task: TaskId, seen: u64) -> Self {
        let channel = listeners.attach(&task, seen);
        let version = channel.version.subscribe();
        Self { store, listeners, task, channel, version, seen }
    }

    /// The task.
    pub const fn task(&self) -> &TaskId {
        &self.task
    }

    /// Waits for the next events; never none. Waiting can be interrupted and started again.
    pub async fn next(&mut self) -> Result<Vec<RecordedEvent>, Failure> {
        loop {
            let recent = self.channel.events_after(self.seen);
            if !recent.is_empty() {
                return Ok(self.mark_seen(recent));
            }
            let is_behind = *self.version.borrow_and_update() > self.seen;
            if !is_behind {
                // An error would mean that the sender is gone, but the subscription holds the channel itself.
                let is_told = tokio::time::timeout(POLL_INTERVAL, self.version.changed()).await.is_ok();
                if is_told || !self.channel.is_poll_due() {
                    continue;
                }
            }
            let read = match self.store.events(&self.task, self.seen).await {
                // It continues when the store is back.
                Err(StoreError::Unavailable(_)) => {
                    tokio::time::sleep(POLL_INTERVAL).await;
                    continue;
                }
                read => read.map_err(read_failure)?,
            };
            if !read.is_empty() {
                if !is_behind {
                    self.channel.add(read.iter().cloned());
                }
                return Ok(self.mark_seen(read));
            }
            if is_behind {
                // The store does not return yet what was recorded a moment ago.
                tokio::task::yield_now().await;
            }
        }
    }

    /// Skips events up to this version.
    pub(crate) fn skip_to(&mut self, version: u64) {
        self.seen = self.seen.max(version);
    }

    fn mark_seen(&mut self, events: Vec<RecordedEvent>) -> Vec<RecordedEvent> {
        self.seen = events.last().map_or(self.seen, |last| last.seq);
        events
    }
}

impl Drop for TaskSubscription {
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

    fn recent(channel: &TaskChannel, seen: u64) -> Vec<u64> {
        channel.events_after(seen).iter().map(|recorded| recorded.seq).collect()
    }

    #[test]
    fn an_event_that_is_added_twice_is_kept_once_and_a_gap_starts_anew() {
        let channel = TaskChannel::new(0);
        channel.add(events(1..=3));
        channel.add(events(2..=5));
        assert_eq!(recent(&channel, 0), [1, 2, 3, 4, 5]);
        channel.add(events(8..=9));
        assert!(recent(&channel, 5).is_empty(), "the next one is not at hand");
        assert_eq!(recent(&channel, 7), [8, 9]);
        channel.add(events(10..=1_000));
        assert_eq!(recent(&channel, 998), [999, 1_000]);
        assert_eq!(channel.recent.lock().len(), MAX_RECENT_EVENTS);
        assert_eq!(*channel.version.borrow(), 1_000);
    }

    #[tokio::test]
    async fn one_of_all_subscribers_polls_the_store() {
        let channel = TaskChannel::new(0);
        assert!(!channel.is_poll_due(), "somebody has just read the task");
        *channel.polled_at.lock() -= POLL_INTERVAL;
        assert!(channel.is_poll_due());
        assert!(!channel.is_poll_due());
    }
}
