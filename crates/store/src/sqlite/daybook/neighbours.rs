//! Daybooks of other processes that are alive: a reader waits until what they hold now is in the database.

use std::{
    collections::BTreeSet,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use rusqlite::Connection;

use super::segment;
use crate::sqlite::{
    meta,
    note::{About, about},
};

/// How often to look.
const PAUSE: Duration = Duration::from_millis(2);

/// How long to wait at most. A process that was stopped in the middle must not stop its neighbours.
pub(in crate::sqlite) const PATIENCE: Duration = Duration::from_millis(500);

/// What was found out about the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sqlite) enum Found {
    /// What they had acknowledged can be read.
    Posted,
    /// One of them is dead, and its notes wait to be adopted.
    Orphan,
    /// One of them lives and has not written its notes to the database in time.
    Late,
}

/// Notes that somebody has made and not posted.
struct Waiting {
    /// The number of the last one.
    last: u64,
    /// The tasks they are about.
    tasks: BTreeSet<String>,
}

/// Waits until what other processes have acknowledged by now can be read, for at most `patience`. Blocks.
pub(in crate::sqlite) fn wait(
    connection: &Connection,
    folder: &Path,
    own: &str,
    patience: Duration,
) -> rusqlite::Result<Found> {
    let deadline = Instant::now() + patience;
    let mut found = Found::Posted;
    for name in segment::names(folder).unwrap_or_default() {
        if name == own {
            continue;
        }
        let Some(mut waiting) = Waiting::of(connection, folder, &name)? else { continue };
        while !waiting.is_over(connection, folder, &name)? {
            if Instant::now() >= deadline {
                found = Found::Late;
                break;
            }
            match segment::is_orphan(folder, &name) {
                Ok(true) => return Ok(Found::Orphan),
                Ok(false) => thread::sleep(PAUSE),
                Err(_) => break,
            }
        }
    }
    Ok(found)
}

// === impl Waiting ===

impl Waiting {
    /// What a daybook holds that is not in the database; none when it was removed, which is done when all is posted.
    fn of(connection: &Connection, folder: &Path, name: &str) -> rusqlite::Result<Option<Self>> {
        loop {
            let posted = meta::posted(connection, name)?;
            let Ok(files) = segment::read(folder, name) else { return Ok(None) };
            // Otherwise what was on one file may be on the other by now, and we would have read neither.
            if meta::posted(connection, name)? == posted {
                return Ok(Some(Self::among(&files, posted)));
            }
        }
    }

    fn among(files: &[Vec<u8>; 2], posted: u64) -> Self {
        let mut waiting = Self { last: 0, tasks: BTreeSet::new() };
        for record in files.iter().flat_map(|bytes| segment::records(bytes)) {
            if record.number > posted {
                waiting.last = waiting.last.max(record.number);
                let about = about(record.note);
                waiting.tasks.extend(about.as_ref().and_then(About::task).map(str::to_owned));
            }
        }
        waiting
    }

    /// Whether all of it can be read now. A task that is not over yet may be kept for another page, and then its notes
    /// have later numbers: so it is the tasks that are waited for, not the numbers alone.
    fn is_over(&mut self, connection: &Connection, folder: &Path, name: &str) -> rusqlite::Result<bool> {
        if self.last > meta::posted(connection, name)? {
            return Ok(false);
        }
        if !self.tasks.is_empty() {
            let now = Self::of(connection, folder, name)?.map(|now| now.tasks).unwrap_or_default();
            self.tasks.retain(|task| now.contains(task));
        }
        Ok(self.tasks.is_empty())
    }
}
