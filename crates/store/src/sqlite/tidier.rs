//! Moves committed pages from the log into the file, beside the thread that writes.
//!
//! The writer does this itself once the log is long, because only then can the log begin anew; but it makes everybody
//! wait meanwhile. What was moved before costs it nothing any more.

use std::{
    path::{Path, PathBuf},
    sync::mpsc::{Receiver, SyncSender, sync_channel},
    thread,
};

use super::connect;

/// The pages of so many jobs are worth moving.
const JOBS: usize = 2048;

/// Asks for pages to be moved now and then; the thread ends with it.
pub(super) struct Tidier {
    wake: Option<SyncSender<()>>,
    jobs: usize,
}

// === impl Tidier ===

impl Tidier {
    /// A tidier for the file in `folder`, or none for a store in memory. Its thread starts when there is work.
    pub(super) fn new(folder: Option<PathBuf>) -> Self {
        let wake = folder.and_then(|folder| {
            let (wake, woken) = sync_channel(1);
            let started =
                thread::Builder::new().name("rialto-tidier".to_owned()).spawn(move || run(&folder, &woken));
            // Without it the writer does all of this work; slower, not wrong.
            started.ok().map(|_| wake)
        });
        Self { wake, jobs: 0 }
    }

    /// Hears of a commit of so many jobs.
    pub(super) fn committed(&mut self, jobs: usize) {
        self.jobs += jobs;
        if self.jobs >= JOBS {
            self.jobs = 0;
            // One wish is enough: whoever is at work sees the newest pages anyway.
            let _ = self.wake.as_ref().map(|wake| wake.try_send(()));
        }
    }
}

fn run(folder: &Path, woken: &Receiver<()>) {
    let mut connection = None;
    while woken.recv().is_ok() {
        if connection.is_none() {
            connection = connect::reader(folder).ok();
        }
        let Some(connection) = &connection else { continue };
        // It moves what it can without making anybody wait. What it could not move, the next one will.
        let moved = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
        if let Err(error) = moved {
            tracing::debug!("pages stay in the log until the next round: {error}");
        }
    }
}
