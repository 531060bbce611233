//! Online copy of the database, while this and other processes write to it.
//!
//! The copy is one snapshot: a read transaction holds it while pages are copied, and in WAL mode nobody waits for that. Everything that was
//! acknowledged before the copy began is in it, because write buffers are flushed first: this process's own, those of other live
//! processes, which flush many times a second, and those that dead ones have left.

use std::{fs, io, path::Path, time::Duration};

use rialto_model::store::StoreError;
use rusqlite::{
    Connection,
    backup::{Backup, StepResult},
};

use super::{
    SqliteStore, connect,
    write_buffer::other_writers::{self, FlushState},
    writer::Job,
};
use crate::{
    archive::create_private,
    error::{DatabaseError, SqliteError},
};

/// Longest wait for other processes to flush what they have acknowledged.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(20);

/// Attempts to adopt the buffers of processes that die meanwhile.
const MAX_ADOPTIONS: usize = 10;

/// Pages copied between two reports of progress.
const STEP_PAGES: i32 = 512;

/// Progress of a copy, in pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyProgress {
    /// Pages copied.
    pub copied: u64,
    /// Pages of the database.
    pub total: u64,
}

// === impl SqliteStore ===

impl SqliteStore {
    /// Copies the database to a new file that only its owner can read, and checks the structure of the copy.
    pub async fn copy_to(
        &self,
        target: &Path,
        progress: impl Fn(CopyProgress) + Send + 'static,
    ) -> Result<(), StoreError> {
        let Some(readers) = &self.readers else {
            return Err(
                DatabaseError::plain("a store in memory cannot be backed up; use a data folder").into()
            );
        };
        self.flush_all(readers.folder()).await?;
        create_private(target).map_err(|error| not_written(target, error))?;
        let path = target.to_owned();
        let copied = self.read(move |connection| copy(connection, &path, &progress)).await;
        if copied.is_err() {
            remove_copy(target);
        }
        copied
    }

    /// Has everything in the database that any process has acknowledged by now.
    async fn flush_all(&self, folder: &Path) -> Result<(), StoreError> {
        self.flush_buffer().await?;
        let own = self
            .write_buffer
            .as_ref()
            .map_or_else(String::new, |write_buffer| write_buffer.name().to_owned());
        for _ in 0..MAX_ADOPTIONS {
            let (folder, own) = (folder.to_owned(), own.clone());
            let waiting = move |connection: &Connection| {
                Ok(other_writers::wait_for_flush(connection, &folder, &own, FLUSH_TIMEOUT)?)
            };
            match self.read(waiting).await? {
                FlushState::Flushed => return Ok(()),
                FlushState::Orphan => self.ask(Job::RecoverBuffers).await.map(drop)?,
                FlushState::Late => break,
            }
        }
        let what = format!(
            "another process that uses {} has not written what it acknowledged within {} s; see its log",
            self.place,
            FLUSH_TIMEOUT.as_secs()
        );
        Err(DatabaseError::plain(what).into())
    }
}

fn copy(connection: &Connection, target: &Path, progress: &impl Fn(CopyProgress)) -> Result<(), SqliteError> {
    let mut into = Connection::open(target)?;
    // Held from here on, so that no writer can make the copy begin anew.
    let snapshot = connection.unchecked_transaction()?;
    snapshot.query_row("SELECT count(*) FROM meta", [], |_| Ok(()))?;
    {
        let backup = Backup::new(&snapshot, &mut into)?;
        loop {
            let step = backup.step(STEP_PAGES)?;
            let now = backup.progress();
            let pages = |count: i32| u64::from(count.unsigned_abs());
            progress(CopyProgress {
                copied: pages(now.pagecount - now.remaining),
                total: pages(now.pagecount),
            });
            match step {
                StepResult::Done => break,
                StepResult::Busy | StepResult::Locked => std::thread::sleep(Duration::from_millis(5)),
                _ => {}
            }
        }
    }
    drop(snapshot);
    let findings = connect::quick_check(&into)?;
    into.close().map_err(|(_, error)| error)?;
    match findings.first() {
        None => Ok(()),
        Some(finding) => {
            let what =
                format!("the database is damaged and was not backed up: {finding}; run `rialto check`");
            Err(SqliteError::Refused(DatabaseError::plain(what).into()))
        }
    }
}

fn remove_copy(target: &Path) {
    for ending in ["", "-journal", "-wal", "-shm"] {
        // Most of them were never made.
        let _ = fs::remove_file(super::wal::beside(target, ending));
    }
}

fn not_written(target: &Path, error: io::Error) -> StoreError {
    let what = format!("{} could not be written; name a folder with room for the database", target.display());
    DatabaseError::new(what, error).into()
}
