//! Write buffers of other live processes: a reader waits until their records are in the database.

use std::{
    collections::BTreeSet,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use rusqlite::Connection;

use super::segment;
use crate::sqlite::{
    journal_record::{RecordSubject, parse_subject},
    meta,
};

/// Interval of polls.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// Maximum wait. A process that was stopped in the middle must not stop the others.
pub(in crate::sqlite) const WAIT_TIMEOUT: Duration = Duration::from_millis(500);

/// Flush state of the other writers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sqlite) enum FlushState {
    /// All that they had acknowledged can be read.
    Flushed,
    /// One of them is dead, and its records wait to be adopted.
    Orphan,
    /// One of them lives and has not written its records to the database in time.
    Late,
}

/// Records of another process that are not flushed.
struct UnflushedTasks {
    /// The number of the last one.
    last: u64,
    /// The tasks they are about.
    tasks: BTreeSet<String>,
}

/// Waits until what other processes have acknowledged by now can be read, for at most `patience`. Blocks.
pub(in crate::sqlite) fn wait_for_flush(
    connection: &Connection,
    folder: &Path,
    own: &str,
    timeout: Duration,
) -> rusqlite::Result<FlushState> {
    let deadline = Instant::now() + timeout;
    let mut found = FlushState::Flushed;
    for name in segment::list_buffers(folder).unwrap_or_default() {
        if name == own {
            continue;
        }
        let Some(mut waiting) = UnflushedTasks::read(connection, folder, &name)? else { continue };
        while !waiting.is_flushed(connection, folder, &name)? {
            if Instant::now() >= deadline {
                found = FlushState::Late;
                break;
            }
            match segment::is_orphaned(folder, &name) {
                Ok(true) => return Ok(FlushState::Orphan),
                Ok(false) => thread::sleep(POLL_INTERVAL),
                Err(_) => break,
            }
        }
    }
    Ok(found)
}

// === impl UnflushedTasks ===

impl UnflushedTasks {
    /// Reads the unflushed tasks of a write buffer; none when it was removed, which is done when all is flushed.
    fn read(connection: &Connection, folder: &Path, name: &str) -> rusqlite::Result<Option<Self>> {
        loop {
            let flushed = meta::flushed(connection, name)?;
            let Ok(files) = segment::read_files(folder, name) else { return Ok(None) };
            // Otherwise what was on one file may be on the other by now, and we would have read neither.
            if meta::flushed(connection, name)? == flushed {
                return Ok(Some(Self::from_files(&files, flushed)));
            }
        }
    }

    fn from_files(files: &[Vec<u8>; 2], flushed: u64) -> Self {
        let mut waiting = Self { last: 0, tasks: BTreeSet::new() };
        for record in files.iter().flat_map(|bytes| segment::parse_records(bytes)) {
            if record.number > flushed {
                waiting.last = waiting.last.max(record.number);
                let about = parse_subject(record.bytes);
                waiting.tasks.extend(about.as_ref().and_then(RecordSubject::task).map(str::to_owned));
            }
        }
        waiting
    }

    /// Returns whether all of it can be read now. A task that is not over yet may be kept for another batch, and then its records
    /// have later numbers: so it is the tasks that are waited for, not the numbers alone.
    fn is_flushed(&mut self, connection: &Connection, folder: &Path, name: &str) -> rusqlite::Result<bool> {
        if self.last > meta::flushed(connection, name)? {
            return Ok(false);
        }
        if !self.tasks.is_empty() {
            let now = Self::read(connection, folder, name)?.map(|now| now.tasks).unwrap_or_default();
            self.tasks.retain(|task| now.contains(task));
        }
        Ok(self.tasks.is_empty())
    }
}
