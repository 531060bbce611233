//! Checkpoints of the write-ahead log, beside the writer thread.
//!
//! The log can begin anew only when all of it was moved, and the writer, who adds to it, is the only one who can see to that; but it
//! makes everybody wait meanwhile, above all for the disk. So it moves what is left right after the tidier has moved the rest,
//! which is what was added during a few moments, and only if the log is long.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread,
};

use rusqlite::Connection;

use super::connect;

/// Number of jobs after which a checkpoint is worthwhile.
const CHECKPOINT_JOBS: usize = 2048;

/// Minimum number of jobs that a commit counts as: even a small one writes some pages.
const MIN_COMMIT_JOBS: usize = 16;

/// Number of pages from which a log is long.
const LONG_LOG_PAGES: i64 = 2000;

/// Starts a passive checkpoint now and then; the thread ends with it.
pub(super) struct Checkpointer {
    wake: Option<SyncSender<()>>,
    jobs: usize,
    /// True if nearly all of a long log was moved just now.
    is_moved: Arc<AtomicBool>,
}

// === impl Checkpointer ===

impl Checkpointer {
    /// A tidier for the file in `folder`, or none for a store in memory. Its thread starts when there is work.
    pub(super) fn new(folder: Option<PathBuf>) -> Self {
        let is_moved = Arc::<AtomicBool>::default();
        let wake = folder.and_then(|folder| {
            let ((wake, woken), moved) = (sync_channel(1), Arc::clone(&is_moved));
            let work = move || run(&folder, &woken, &moved);
            let started = thread::Builder::new().name("rialto-ckpt".to_owned()).spawn(work);
            // Without it the writer does all of this work; slower, not wrong.
            started.ok().map(|_| wake)
        });
        Self { wake, jobs: 0, is_moved }
    }

    /// Counts the jobs of a commit.
    pub(super) fn count_commit(&mut self, jobs: usize) {
        self.jobs += jobs.max(MIN_COMMIT_JOBS);
        if self.jobs >= CHECKPOINT_JOBS {
            self.jobs = 0;
            // One request is enough: a running checkpoint sees the newest pages anyway.
            let _ = self.wake.as_ref().map(|wake| wake.try_send(()));
        }
    }

    /// Moves what is left of a long log, by the connection that writes, so that it begins anew with the next commit.
    pub(super) fn finish_checkpoint(&self, writer: &Connection) {
        if self.is_moved.swap(false, Ordering::Relaxed) {
            checkpoint_passive(writer);
        }
    }
}

fn run(folder: &Path, woken: &Receiver<()>, is_moved: &AtomicBool) {
    let mut connection = None;
    while woken.recv().is_ok() {
        if connection.is_none() {
            connection = connect::reader(folder).ok();
        }
        let Some(connection) = &connection else { continue };
        if checkpoint_passive(connection).is_some_and(|length| length >= LONG_LOG_PAGES) {
            is_moved.store(true, Ordering::Relaxed);
        }
    }
}

/// Moves what can be moved without making anybody else wait, and says how long the log is. What could not be moved, the next one
/// will.
fn checkpoint_passive(connection: &Connection) -> Option<i64> {
    let moved = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| row.get(1));
    moved.inspect_err(|error| tracing::debug!("pages stay in the log until the next round: {error}")).ok()
}
