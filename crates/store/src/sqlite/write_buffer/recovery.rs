//! Write buffers that dead processes have left behind.

use std::{
    io,
    path::{Path, PathBuf},
};

use rialto_model::store::StoreError;
use rusqlite::Connection;

use super::{
    pending_tasks::{FlushBatch, PendingTasks},
    segment,
};
use crate::{
    error::{DatabaseError, DatabaseLocation, SqliteError},
    sqlite::{flush, journal_record::parse_subject, meta},
};

/// Flushes what dead processes have buffered, and removes their files. To be called under the lock that new write buffers are
/// made under.
pub(in crate::sqlite) fn recover_buffers(
    connection: &mut Connection,
    folder: &Path,
) -> Result<(), RecoveryError> {
    for name in segment::list_buffers(folder)? {
        let Some(_locked) = segment::open_orphan(folder, &name)? else { continue };
        let flushed = meta::flushed(connection, &name).map_err(SqliteError::from)?;
        let batch = read_unflushed(folder, &name, flushed)?;
        let count = batch.tasks().len();
        flush::flush_batch(connection, &name, &batch)?;
        if count > 0 {
            tracing::info!("{count} tasks were recovered from the write buffer of a dead process");
        }
        segment::remove_files(folder, &name)?;
        meta::forget_write_buffer(connection, &name).map_err(SqliteError::from)?;
    }
    Ok(())
}

/// Write buffers of dead processes that were damaged. Those of live processes are left alone.
pub(in crate::sqlite) fn damaged(connection: &Connection, folder: &Path) -> rusqlite::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for name in segment::list_buffers(folder).unwrap_or_default() {
        if !segment::is_orphaned(folder, &name).unwrap_or(false) {
            continue;
        }
        let flushed = meta::flushed(connection, &name)?;
        let Ok(files) = segment::read_files(folder, &name) else { continue };
        let damaged = segment::file_paths(folder, &name).into_iter().zip(&files);
        let is_damaged = |(_, bytes): &(PathBuf, &Vec<u8>)| segment::is_damaged(bytes, flushed);
        found.extend(damaged.filter(is_damaged).map(|(path, _)| path));
    }
    Ok(found)
}

/// Why a dead process's records are still where they were.
pub(in crate::sqlite) enum RecoveryError {
    /// Their files could not be read.
    Files(io::Error),
    /// They could not be written to the database.
    Database(SqliteError),
}

// === impl RecoveryError ===

impl RecoveryError {
    /// Converts the error for the caller.
    pub(in crate::sqlite) fn explain(self, place: &DatabaseLocation) -> StoreError {
        match self {
            Self::Files(error) => {
                let what = format!(
                    "the write buffer of a dead process beside {place} cannot be read; check their permissions"
                );
                DatabaseError::new(what, error).into()
            }
            Self::Database(failure) => place.explain(failure),
        }
    }
}

impl From<io::Error> for RecoveryError {
    fn from(error: io::Error) -> Self {
        Self::Files(error)
    }
}

impl From<SqliteError> for RecoveryError {
    fn from(failure: SqliteError) -> Self {
        Self::Database(failure)
    }
}

/// Reads the records behind the last flushed one.
fn read_unflushed(folder: &Path, name: &str, flushed: u64) -> io::Result<FlushBatch> {
    let files = segment::read_files(folder, name)?;
    let mut records: Vec<_> = files.iter().flat_map(|bytes| segment::parse_records(bytes)).collect();
    records.retain(|record| record.number > flushed);
    records.sort_by_key(|record| record.number);
    let up_to = records.last().map_or(flushed, |record| record.number);
    let mut tasks = PendingTasks::default();
    for record in records {
        // A task that was kept for the next batch stands on both when its process died at that moment.
        if let Some(subject) = parse_subject(record.bytes)
            && tasks.check(&subject).is_ok()
        {
            tasks.add(record.bytes, Some(subject));
        }
    }
    Ok(tasks.into_flush_batch(up_to))
}
