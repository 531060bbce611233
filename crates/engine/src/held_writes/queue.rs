//! Queue of held writes: in order within a task, in turns among tasks.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32},
    },
};

use parking_lot::Mutex;
use rialto_model::{
    audit_event::AuditEvent,
    event::Event,
    ids::TaskId,
    maps::FastMap,
    store::{StoreError, TaskAppend},
};
use tokio::{sync::oneshot, time::Instant};

use super::Unsent;

/// Approximate size of a task's head, and of an audit record without its arguments.
const HEAD_BYTES: usize = 512;

/// Writes that must not overtake one another.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum QueueKey {
    /// Those of one task.
    Task(TaskId),
    /// Audit records without a task.
    Audit,
    /// The end of a task whose call was not made.
    Unsent(TaskId),
}

/// One write that waits.
#[derive(Clone)]
pub(super) enum HeldItem {
    Entry(Arc<HeldEntry>),
    Audit(Arc<HeldAudit>),
    Unsent(Arc<Unsent>),
}

/// Sends the outcome of a write to the run that waits for it.
pub(super) type WriteReport = oneshot::Sender<Result<Vec<Event>, StoreError>>;

/// Events of a task.
pub(super) struct HeldEntry {
    pub(super) entry: TaskAppend,
    pub(super) is_spilled: AtomicBool,
    /// How often it failed while others were written.
    pub(super) refusals: AtomicU32,
    done: Mutex<Option<WriteReport>>,
    bytes: usize,
}

/// Audit records, and those among them that subscribers have not received yet.
pub(super) struct HeldAudit {
    pub(super) records: Vec<AuditEvent>,
    pub(super) published: Vec<AuditEvent>,
    pub(super) bytes: usize,
}

/// Everything that waits.
#[derive(Default)]
pub(super) struct Queue {
    groups: FastMap<QueueKey, ReadyGroup>,
    /// Those that nobody writes just now, the next first.
    order: VecDeque<QueueKey>,
    bytes: usize,
    audit_bytes: usize,
    writes: usize,
    /// When the first write came of those that wait for the store; none while there are none.
    away_since: Option<Instant>,
    is_draining: bool,
}

type ReadyGroup = VecDeque<HeldItem>;

// === impl HeldEntry ===

impl HeldEntry {
    pub(super) fn new(entry: TaskAppend, done: WriteReport) -> Self {
        let bytes = HEAD_BYTES
            + entry.events.iter().map(Event::size).sum::<usize>()
            + entry.audit.iter().map(audit_size).sum::<usize>();
        Self {
            entry,
            is_spilled: AtomicBool::new(false),
            refusals: AtomicU32::new(0),
            done: Mutex::new(Some(done)),
            bytes,
        }
    }

    /// Reports the outcome to the run that waits for it.
    pub(super) fn report(&self, written: Result<Vec<Event>, StoreError>) {
        if let Some(done) = self.done.lock().take() {
            let _ = done.send(written);
        }
    }
}

// === impl HeldAudit ===

impl HeldAudit {
    pub(super) fn new(records: Vec<AuditEvent>, published: Vec<AuditEvent>) -> Self {
        let bytes = records.iter().chain(&published).map(audit_size).sum();
        Self { records, published, bytes }
    }
}

// === impl HeldItem ===

impl HeldItem {
    fn bytes(&self) -> usize {
        match self {
            Self::Entry(entry) => entry.bytes,
            Self::Audit(audit) => audit.bytes,
            Self::Unsent(_) => HEAD_BYTES,
        }
    }

    fn due_at(&self) -> Option<Instant> {
        match self {
            Self::Unsent(unsent) => unsent.due_at(),
            Self::Entry(_) | Self::Audit(_) => None,
        }
    }
}

// === impl Queue ===

impl Queue {
    pub(super) fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    pub(super) fn has(&self, task: &TaskId) -> bool {
        self.groups.contains_key(&QueueKey::Task(task.clone()))
    }

    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) const fn audit_bytes(&self) -> usize {
        self.audit_bytes
    }

    pub(super) const fn writes(&self) -> usize {
        self.writes
    }

    /// Whether writes wait for the store. Tasks that are only looked for do not count.
    pub(super) const fn is_away(&self) -> bool {
        self.away_since.is_some()
    }

    /// Notes that the store has taken all writes, and answers since when they had waited.
    pub(super) fn note_return(&mut self) -> Option<Instant> {
        if self.writes > 0 || self.audit_bytes > 0 { None } else { self.away_since.take() }
    }

    /// Adds a write behind the others of its key. Answers whether nobody works on the queue yet.
    pub(super) fn push(&mut self, key: QueueKey, item: HeldItem) -> bool {
        self.count(&item, true);
        if !matches!(item, HeldItem::Unsent(_)) {
            self.away_since.get_or_insert_with(Instant::now);
        }
        let order = &mut self.order;
        let group = self.groups.entry(key.clone()).or_insert_with(|| {
            order.push_back(key);
            ReadyGroup::new()
        });
        group.push_back(item);
        !std::mem::replace(&mut self.is_draining, true)
    }

    /// Takes the next keys to write, at most so many. Each is nobody else's until [`Queue::release`].
    pub(super) fn take(&mut self, max: usize, now: Instant) -> Vec<QueueKey> {
        let mut taken = Vec::new();
        for _ in 0..self.order.len() {
            let Some(key) = self.order.pop_front() else { break };
            let due_at = self.groups.get(&key).and_then(ReadyGroup::front).and_then(HeldItem::due_at);
            if taken.len() < max && due_at.is_none_or(|due_at| due_at <= now) {
                taken.push(key);
            } else {
                self.order.push_back(key);
            }
        }
        taken
    }

    /// The first writes of a key, at most so many.
    pub(super) fn front(&self, key: &QueueKey, max: usize) -> Vec<HeldItem> {
        self.groups.get(key).into_iter().flatten().take(max).cloned().collect()
    }

    /// Removes the first writes of a key: they are done.
    pub(super) fn pop(&mut self, key: &QueueKey, count: usize) {
        let Some(group) = self.groups.get_mut(key) else { return };
        let done: Vec<_> = group.drain(..count.min(group.len())).collect();
        for item in done {
            self.count(&item, false);
        }
    }

    /// Puts a key back in line, or forgets it when nothing of it waits.
    pub(super) fn release(&mut self, key: QueueKey) {
        if self.groups.get(&key).is_some_and(ReadyGroup::is_empty) {
            self.groups.remove(&key);
        } else {
            self.order.push_back(key);
        }
    }

    /// When the next write is due, of those that are not due yet.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.order.iter().filter_map(|key| self.groups.get(key)?.front()?.due_at()).min()
    }

    /// Stops when nothing waits, and says whether it does.
    pub(super) fn finish(&mut self) -> bool {
        if self.is_empty() {
            self.stop_draining();
        }
        self.is_empty()
    }

    pub(super) const fn stop_draining(&mut self) {
        self.is_draining = false;
    }

    /// All events of tasks that wait, in their order within each task.
    pub(super) fn entries(&self) -> impl Iterator<Item = &Arc<HeldEntry>> {
        self.groups.values().flatten().filter_map(|item| match item {
            HeldItem::Entry(entry) => Some(entry),
            HeldItem::Audit(_) | HeldItem::Unsent(_) => None,
        })
    }

    fn count(&mut self, item: &HeldItem, is_added: bool) {
        let change = |count: &mut usize, by: usize| {
            *count = if is_added { count.saturating_add(by) } else { count.saturating_sub(by) };
        };
        change(&mut self.bytes, item.bytes());
        match item {
            HeldItem::Audit(audit) => change(&mut self.audit_bytes, audit.bytes),
            HeldItem::Entry(_) => change(&mut self.writes, 1),
            HeldItem::Unsent(_) => {}
        }
    }
}

fn audit_size(record: &AuditEvent) -> usize {
    HEAD_BYTES + record.verb.args.get().len()
}
