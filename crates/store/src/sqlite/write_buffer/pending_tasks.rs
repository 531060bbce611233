//! Tasks of a batch and their records.
//!
//! The records of a batch are copied into a few large pieces of memory, which are used again for a later batch: what many threads
//! have made record by record would otherwise be given back record by record by the one that writes.

use std::{hash::BuildHasher, time::Instant};

use rialto_model::{maps::FastMap, store::StoreError};

use crate::sqlite::journal_record::{RecordSubject, TaskVersion, parse_subject};

/// Size of a chunk of memory, unless a single record needs more.
const CHUNK_BYTES: usize = 1 << 17;

/// Tasks and records of a batch.
#[derive(Default)]
pub(super) struct PendingTasks {
    /// Records, one behind the other. A piece does not grow: that would copy it.
    chunks: Vec<Vec<u8>>,
    /// The piece that is being filled. Those behind it are empty.
    current: usize,
    records: Vec<RecordSpan>,
    /// Tasks by the hash of their tasks' ids. Of two tasks with one hash only the first is here.
    index: FastMap<u64, usize>,
    tasks: Vec<PendingTask>,
}

/// A batch that leaves for the database.
pub(in crate::sqlite) struct FlushBatch {
    tasks: PendingTasks,
    /// The number of the last record in it.
    pub(in crate::sqlite) up_to: u64,
}

/// A task that the database does not know yet.
pub(in crate::sqlite) struct PendingTask {
    first: usize,
    last: usize,
    version: u64,
    is_open: bool,
    started_at: Instant,
}

/// Position of a record.
#[derive(Clone, Copy)]
struct RecordSpan {
    chunk: usize,
    begin: usize,
    end: usize,
    /// The next one of the same task.
    next: Option<usize>,
}

// === impl PendingTasks ===

impl PendingTasks {
    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    pub(super) fn has(&self, task: &str) -> bool {
        self.find(task).is_some()
    }

    /// The task that sorts last.
    pub(super) fn newest(&self) -> Option<&str> {
        self.tasks.iter().filter_map(|pending| self.task(pending)).max()
    }

    /// Returns whether there is room for this task: its hash is nobody else's.
    pub(super) fn has_room(&self, task: &str) -> bool {
        !self.index.contains_key(&self.hash(task)) || self.has(task)
    }

    /// Returns whether it may be added, as the database would see it.
    pub(super) fn check(&self, about: &RecordSubject<'_>) -> Result<(), StoreError> {
        match about {
            RecordSubject::Open(brief) if self.has(brief.task) => {
                Err(StoreError::Taken(format!("the task id {}", brief.task)))
            }
            RecordSubject::Append(brief, expected) => {
                let pending = self.find(brief.task).and_then(|position| self.tasks.get(position));
                if pending.is_some_and(|pending| pending.version == *expected) {
                    Ok(())
                } else {
                    Err(StoreError::Conflict)
                }
            }
            RecordSubject::Open(_) | RecordSubject::Audit => Ok(()),
        }
    }

    /// Adds what was checked.
    pub(super) fn add(&mut self, record: &[u8], about: Option<RecordSubject<'_>>) {
        self.add_started_at(record, about, Instant::now());
    }

    /// Takes out the tasks that will soon be over, open ones that have begun after `moment`, to be kept for the next
    /// batch, which is `recent`.
    pub(super) fn move_recent(&mut self, moment: Instant, recent: &mut Self) {
        let is_recent = |pending: &PendingTask| pending.is_open && pending.started_at > moment;
        let mut moving: Vec<(usize, Instant)> = Vec::new();
        for pending in self.tasks.iter().filter(|pending| is_recent(pending)) {
            moving.extend(self.positions_of(pending).map(|at| (at, pending.started_at)));
        }
        moving.sort_unstable();
        for (at, started_at) in moving {
            let record = self.record(at);
            recent.add_started_at(record, parse_subject(record), started_at);
            if let Some(span) = self.records.get_mut(at) {
                (span.begin, span.end) = (0, 0);
            }
        }
        self.tasks.retain(|pending| !is_recent(pending));
    }

    /// Takes all of another batch.
    pub(super) fn append_all(&mut self, recent: &Self) {
        for record in recent.records() {
            self.add(record, parse_subject(record));
        }
    }

    /// Shows each record to `change`, in order.
    pub(super) fn for_each_mut(&mut self, mut change: impl FnMut(&mut [u8])) {
        for span in &self.records {
            let chunk = self.chunks.get_mut(span.chunk);
            if let Some(record) = chunk.and_then(|chunk| chunk.get_mut(span.begin..span.end)) {
                change(record);
            }
        }
    }

    /// All records, in order.
    pub(super) fn records(&self) -> impl Iterator<Item = &[u8]> {
        self.records.iter().filter_map(|span| self.at(span))
    }

    pub(super) const fn into_flush_batch(self, up_to: u64) -> FlushBatch {
        FlushBatch { tasks: self, up_to }
    }

    fn add_started_at(&mut self, record: &[u8], about: Option<RecordSubject<'_>>, started_at: Instant) {
        let at = self.records.len();
        match about {
            Some(RecordSubject::Open(TaskVersion { task, version, is_open })) => {
                self.index.insert(self.hash(task), self.tasks.len());
                self.tasks.push(PendingTask { first: at, last: at, version, is_open, started_at });
            }
            Some(RecordSubject::Append(TaskVersion { task, version, is_open }, _)) => {
                let position = self.find(task);
                if let Some(pending) = position.and_then(|position| self.tasks.get_mut(position)) {
                    if let Some(before) = self.records.get_mut(pending.last) {
                        before.next = Some(at);
                    }
                    (pending.last, pending.version, pending.is_open) = (at, version, is_open);
                }
            }
            Some(RecordSubject::Audit) | None => {}
        }
        let span = self.store_bytes(record);
        self.records.push(span);
    }

    /// Copies a record to where there is room for it.
    fn store_bytes(&mut self, record: &[u8]) -> RecordSpan {
        let fits = |chunk: &Vec<u8>| chunk.capacity() - chunk.len() >= record.len();
        if !self.chunks.get(self.current).is_some_and(fits) {
            let next = self.chunks.iter().position(|chunk| chunk.is_empty() && fits(chunk));
            self.current = next.unwrap_or_else(|| {
                self.chunks.push(Vec::with_capacity(record.len().max(CHUNK_BYTES)));
                self.chunks.len() - 1
            });
        }
        let mut span = RecordSpan { chunk: self.current, begin: 0, end: 0, next: None };
        if let Some(chunk) = self.chunks.get_mut(self.current) {
            span.begin = chunk.len();
            chunk.extend_from_slice(record);
            span.end = chunk.len();
        }
        span
    }

    /// Position of a task.
    fn find(&self, task: &str) -> Option<usize> {
        let position = *self.index.get(&self.hash(task))?;
        let pending = self.tasks.get(position)?;
        (self.task(pending) == Some(task)).then_some(position)
    }

    fn hash(&self, task: &str) -> u64 {
        self.index.hasher().hash_one(task)
    }

    fn task(&self, pending: &PendingTask) -> Option<&str> {
        parse_subject(self.record(pending.first))?.task()
    }

    fn record(&self, at: usize) -> &[u8] {
        self.records.get(at).and_then(|span| self.at(span)).unwrap_or_default()
    }

    fn at(&self, span: &RecordSpan) -> Option<&[u8]> {
        self.chunks.get(span.chunk)?.get(span.begin..span.end)
    }

    fn positions_of(&self, pending: &PendingTask) -> impl Iterator<Item = usize> + Clone + '_ {
        std::iter::successors(Some(pending.first), |at| self.records.get(*at)?.next)
    }

    /// Clears the batch and keeps memory for `most` bytes of records.
    fn clear(&mut self, most: usize) {
        self.chunks.retain(|chunk| chunk.capacity() == CHUNK_BYTES);
        self.chunks.truncate(most / CHUNK_BYTES);
        self.chunks.iter_mut().for_each(Vec::clear);
        self.current = 0;
        self.records.clear();
        self.index.clear();
        self.tasks.clear();
    }
}

// === impl FlushBatch ===

impl FlushBatch {
    /// All records, in order.
    pub(in crate::sqlite) fn records(&self) -> impl Iterator<Item = &[u8]> {
        self.tasks.records()
    }

    /// The tasks, in the order they were opened.
    pub(in crate::sqlite) fn tasks(&self) -> &[PendingTask] {
        &self.tasks.tasks
    }

    /// The id of a task.
    pub(in crate::sqlite) fn task(&self, pending: &PendingTask) -> &str {
        self.tasks.task(pending).unwrap_or_default()
    }

    /// The records of a task, in order.
    pub(in crate::sqlite) fn records_of(&self, pending: &PendingTask) -> impl Iterator<Item = &[u8]> + Clone {
        self.tasks.positions_of(pending).map(|at| self.tasks.record(at))
    }

    /// An empty batch in the same memory, or in so much of it.
    pub(super) fn into_spare(mut self, most: usize) -> PendingTasks {
        self.tasks.clear(most);
        self.tasks
    }
}
