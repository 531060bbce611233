//! Write buffer: makes journal writes durable in a file before their group commit to SQLite.
//!
//! A commit writes whole pages, however little is in it, and a short call would cause two: one before it leaves, one when its
//! answer is there. So a new task is first appended to a memory-mapped file beside the database, and so are its events until
//! it is flushed. Many times a second all finished tasks are flushed to the database in one commit, each in its last state. A
//! task that is in the database already is written there.
//!
//! The guarantee is that of the database: what is acknowledged survives the death of this process, because the process that
//! opens the store next flushes the buffers of dead ones ([`recovery`]). Readers in this process flush the buffer first; those
//! in other processes wait for that ([`other_writers`]).
//!
//! Its saving is not measured on the present code; `rialto-bench bridge` with and without the switch tells.
//! `[store] write_buffer = false` turns it off, and so does [`Durability::Full`]. The header of each file counts what was written, so a
//! test can tell that it was used.
//!
//! [`Durability::Full`]: crate::Durability::Full

pub(super) mod other_writers;
mod pending_tasks;
pub(super) mod recovery;
mod segment;

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::{Condvar, Mutex};
use rialto_model::{ids::fresh, store::StoreError};
use rusqlite::Connection;

pub(super) use self::pending_tasks::{FlushBatch, PendingTask};
use self::{pending_tasks::PendingTasks, segment::Segment};
use super::{
    journal_record::{JournalRecord, RecordSubject, TaskVersion, parse_subject},
    meta,
};
use crate::{error::DatabaseError, generation::GenerationCounter};

/// Records are flushed this long after the first of them.
const FLUSH_DELAY: Duration = Duration::from_millis(20);

/// A task that has begun less than this ago is kept for the next batch while it is open.
const MIN_TASK_AGE: Duration = Duration::from_millis(250);

/// Bytes of records from which they are flushed at once.
const FLUSH_BYTES: usize = 3 << 18;

/// Maximum memory of a batch that is used again.
const MAX_SPARE_BYTES: usize = 1 << 20;

/// Bytes of records from which writes go to the database: records are made faster than they can be flushed.
const MAX_BUFFERED_BYTES: usize = 2 << 20;

/// Prefix of the files; a fresh id and the suffix of the segment follow.
const FILE_PREFIX: &str = "daybook-";

/// The records of this process.
pub(super) struct WriteBuffer {
    folder: PathBuf,
    name: String,
    generation: Arc<GenerationCounter>,
    batch: Mutex<OpenBatch>,
    wakeup: Condvar,
}

/// Result of a write to the buffer.
pub(super) enum BufferOutcome {
    /// It is buffered, or refused.
    Done(Result<(), StoreError>),
    /// It must be written to the database.
    NeedsDatabase(JournalRecord),
}

/// Tasks that a flush takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FlushScope {
    /// To flush what is finished.
    Finished,
    /// To flush everything, for a reader.
    Everything,
}

/// Records that are not flushed yet.
struct OpenBatch {
    /// One is written to while the other is being flushed. They are made for the first record.
    segments: Option<[Segment; 2]>,
    current: usize,
    /// The number of the last record.
    number: u64,
    tasks: PendingTasks,
    /// An empty batch, to be used next.
    spare: PendingTasks,
    bytes: usize,
    /// No task up to this one is new; whether it is there only the database knows.
    newest: String,
    /// True if a batch is on its way into the database.
    is_flushing: bool,
    /// True if to flush without waiting for more.
    is_urgent: bool,
    is_closed: bool,
}

// === impl WriteBuffer ===

impl WriteBuffer {
    /// An empty write buffer for the database in `folder`, whose newest task is `newest`.
    pub(super) fn new(folder: &Path, generation: Arc<GenerationCounter>, newest: String) -> Self {
        let batch = OpenBatch {
            segments: None,
            current: 0,
            number: 0,
            tasks: PendingTasks::default(),
            spare: PendingTasks::default(),
            bytes: 0,
            newest,
            is_flushing: false,
            is_urgent: false,
            is_closed: false,
        };
        let name = format!("{FILE_PREFIX}{}", fresh());
        Self { folder: folder.to_owned(), name, generation, batch: Mutex::new(batch), wakeup: Condvar::new() }
    }

    /// The name under which the database knows how far it was flushed.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Location of the database.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Records what is to be written, if it belongs here. Writing to the file is a copy in memory.
    pub(super) fn record(&self, mut record: JournalRecord) -> BufferOutcome {
        if let Err(error) = segment::write_header(record.bytes_mut()) {
            return BufferOutcome::Done(Err(self.write_error(error).into()));
        }
        let mut batch = self.batch.lock();
        segment::write_number(record.bytes_mut(), batch.number + 1);
        let Some(about) = parse_subject(record.bytes()).filter(|about| batch.accepts(about)) else {
            return BufferOutcome::NeedsDatabase(record);
        };
        if let Err(refusal) = batch.tasks.check(&about) {
            return BufferOutcome::Done(Err(refusal));
        }
        let is_first = batch.tasks.is_empty();
        if let Err(error) = self.append_record(&mut batch, record.bytes(), about) {
            return BufferOutcome::Done(Err(self.write_error(error).into()));
        }
        if is_first || (batch.bytes >= FLUSH_BYTES && !batch.is_urgent) {
            batch.is_urgent = batch.bytes >= FLUSH_BYTES;
            drop(batch);
            self.wakeup.notify_one();
        }
        BufferOutcome::Done(Ok(()))
    }

    /// Returns whether there are records that the database does not have yet.
    pub(super) fn has_unflushed(&self) -> bool {
        let batch = self.batch.lock();
        batch.is_flushing || !batch.tasks.is_empty()
    }

    /// Begins a new batch and hands the full one over; none when nothing is in it. Tasks that will soon be over are kept
    /// for the new batch, unless a reader waits for them.
    pub(super) fn start_flush(&self, scope: FlushScope) -> Option<FlushBatch> {
        let mut batch = self.batch.lock();
        if batch.tasks.is_empty() {
            return None;
        }
        let spare = std::mem::take(&mut batch.spare);
        let mut tasks = std::mem::replace(&mut batch.tasks, spare);
        let up_to = batch.number;
        batch.current ^= 1;
        (batch.bytes, batch.is_urgent, batch.is_flushing) = (0, false, true);
        if let (FlushScope::Finished, Some(moment)) = (scope, Instant::now().checked_sub(MIN_TASK_AGE)) {
            tasks.move_recent(moment, &mut batch.tasks);
            if let Err(error) = batch.copy() {
                // They stand on the old batch, which is not cleared before they are flushed.
                tracing::warn!("a page of {} could not be begun: {error}", self.name);
                batch.bytes = 0;
                tasks.append_all(&std::mem::take(&mut batch.tasks));
            }
        }
        if let Some(newest) = tasks.newest().filter(|newest| **newest > *batch.newest) {
            batch.newest = newest.to_owned();
        }
        Some(tasks.into_flush_batch(up_to))
    }

    /// A copy of the batch that records are made on.
    pub(super) fn copy_batch(&self) -> FlushBatch {
        let batch = self.batch.lock();
        let mut copy = PendingTasks::default();
        copy.append_all(&batch.tasks);
        copy.into_flush_batch(batch.number)
    }

    /// Forgets the batch that was handed over: it is in the database. Its memory serves the next one.
    pub(super) fn finish_flush(&self, flushing: FlushBatch) {
        let spare = flushing.into_spare(MAX_SPARE_BYTES);
        let mut batch = self.batch.lock();
        batch.spare = spare;
        let old = batch.current ^ 1;
        if let Some(segments) = &mut batch.segments {
            segments[old].clear();
        }
        batch.is_flushing = false;
    }

    /// Waits until there is something to flush, and then a moment longer for more. False when all is over.
    pub(super) fn wait_for_flush(&self) -> bool {
        let mut batch = self.batch.lock();
        self.wakeup.wait_while(&mut batch, |batch| batch.tasks.is_empty() && !batch.is_closed);
        self.wakeup.wait_while_for(&mut batch, |batch| !batch.is_urgent && !batch.is_closed, FLUSH_DELAY);
        !batch.is_closed
    }

    /// Takes no more records.
    pub(super) fn close(&self) {
        self.batch.lock().is_closed = true;
        self.wakeup.notify_one();
    }

    /// Removes the files and what the database knows of them. To be called when everything is flushed and nothing more is
    /// buffered. Should it not work out, the next process finds them and has nothing to flush.
    pub(super) fn remove(&self, connection: &Connection) {
        let mut batch = self.batch.lock();
        if !batch.tasks.is_empty() || batch.is_flushing || batch.segments.take().is_none() {
            return;
        }
        let removed = segment::remove_files(&self.folder, &self.name).map_err(|error| error.to_string());
        let forget = || meta::forget_write_buffer(connection, &self.name).map_err(|error| error.to_string());
        if let Err(error) = removed.and_then(|()| forget()) {
            tracing::debug!("{} is left to the next process: {error}", self.name);
        }
    }

    fn append_record(
        &self,
        batch: &mut OpenBatch,
        record: &[u8],
        about: RecordSubject<'_>,
    ) -> io::Result<()> {
        let segments = match &mut batch.segments {
            Some(segments) => segments,
            // Nobody may look for dead processes' files between the making of ours and their lock.
            none => {
                none.insert(self.generation.with_lock(|| segment::create_files(&self.folder, &self.name))??)
            }
        };
        segments[batch.current].write(record)?;
        batch.number += 1;
        batch.bytes += record.len();
        batch.tasks.add(record, Some(about));
        Ok(())
    }

    fn write_error(&self, error: io::Error) -> DatabaseError {
        let what = format!(
            "{} in {} could not be written; see what is wrong with the disk",
            self.name,
            self.folder.display()
        );
        DatabaseError::new(what, error)
    }
}

// === impl OpenBatch ===

impl OpenBatch {
    fn accepts(&self, about: &RecordSubject<'_>) -> bool {
        let has_room = !self.is_closed && self.bytes < MAX_BUFFERED_BYTES;
        match about {
            RecordSubject::Open(TaskVersion { task, .. }) => {
                has_room && (**task > *self.newest || self.tasks.has(task)) && self.tasks.has_room(task)
            }
            // However full the batch is: the database does not know a task that stands here.
            RecordSubject::Append(TaskVersion { task, .. }, _) => self.tasks.has(task),
            RecordSubject::Audit => has_room,
        }
    }

    /// Writes what is kept from the batch before to the new one, under new numbers.
    fn copy(&mut self) -> io::Result<()> {
        self.tasks.for_each_mut(|record| {
            self.number += 1;
            segment::write_number(record, self.number);
        });
        self.bytes = 0;
        for record in self.tasks.records() {
            self.bytes += record.len();
            if let Some(segments) = &mut self.segments {
                segments[self.current].write(record)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
