//! Daybooks of other processes that are alive: a reader waits until what they hold now is in the database.

use std::{
    io,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use rusqlite::Connection;

use super::segment;
use crate::sqlite::meta;

/// How often to look.
const PAUSE: Duration = Duration::from_millis(2);

/// How long to wait at most. A process that was stopped in the middle must not stop its neighbours.
const PATIENCE: Duration = Duration::from_millis(500);

/// What was found out about the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sqlite) enum Found {
    /// What they had acknowledged can be read.
    Posted,
    /// One of them is dead, and its notes wait to be adopted.
    Orphan,
}

/// Waits until what other processes have acknowledged by now can be read. Blocks.
pub(in crate::sqlite) fn wait(connection: &Connection, folder: &Path, own: &str) -> rusqlite::Result<Found> {
    let deadline = Instant::now() + PATIENCE;
    for name in segment::names(folder).unwrap_or_default() {
        if name == own {
            continue;
        }
        // One that was removed meanwhile has been posted.
        let noted = last_note(folder, &name).unwrap_or(0);
        while noted > meta::posted(connection, &name)? && Instant::now() < deadline {
            match segment::is_orphan(folder, &name) {
                Ok(true) => return Ok(Found::Orphan),
                Ok(false) => thread::sleep(PAUSE),
                Err(_) => break,
            }
        }
    }
    Ok(Found::Posted)
}

fn last_note(folder: &Path, name: &str) -> io::Result<u64> {
    let files = segment::read(folder, name)?;
    Ok(files.iter().filter_map(|bytes| segment::last(bytes)).max().unwrap_or(0))
}
