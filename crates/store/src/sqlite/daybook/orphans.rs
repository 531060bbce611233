//! Daybooks that dead processes have left behind.

use std::{
    io,
    path::{Path, PathBuf},
};

use rialto_model::store::StoreError;
use rusqlite::Connection;

use super::{
    draft::{Drafts, Posting},
    segment,
};
use crate::{
    fault::{Fault, Place, Snag},
    sqlite::{meta, note::about, posting},
};

/// Posts what dead processes have noted, and removes their files. To be called under the lock that new daybooks are
/// made under.
pub(in crate::sqlite) fn adopt(connection: &mut Connection, folder: &Path) -> Result<(), Trouble> {
    for name in segment::names(folder)? {
        let Some(_locked) = segment::open_orphan(folder, &name)? else { continue };
        let posted = meta::posted(connection, &name).map_err(Snag::from)?;
        let posting = unposted(folder, &name, posted)?;
        let count = posting.drafts().len();
        posting::post(connection, &name, &posting)?;
        if count > 0 {
            tracing::info!("{count} tasks that a process noted before it died are in the database now");
        }
        segment::remove(folder, &name)?;
        meta::forget_daybook(connection, &name).map_err(Snag::from)?;
    }
    Ok(())
}

/// Write buffers of dead processes that were damaged. Those of live processes are left alone.
pub(in crate::sqlite) fn damaged(connection: &Connection, folder: &Path) -> rusqlite::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for name in segment::names(folder).unwrap_or_default() {
        if !segment::is_orphan(folder, &name).unwrap_or(false) {
            continue;
        }
        let posted = meta::posted(connection, &name)?;
        let Ok(files) = segment::read(folder, &name) else { continue };
        let damaged = segment::paths(folder, &name).into_iter().zip(&files);
        let is_damaged = |(_, bytes): &(PathBuf, &Vec<u8>)| segment::is_damaged(bytes, posted);
        found.extend(damaged.filter(is_damaged).map(|(path, _)| path));
    }
    Ok(found)
}

/// Why a dead process's notes are still where they were.
pub(in crate::sqlite) enum Trouble {
    /// Their files could not be read.
    Files(io::Error),
    /// They could not be written to the database.
    Database(Snag),
}

// === impl Trouble ===

impl Trouble {
    /// What the caller is told.
    pub(in crate::sqlite) fn explain(self, place: &Place) -> StoreError {
        match self {
            Self::Files(error) => {
                let what =
                    format!("notes of a dead process beside {place} cannot be read; check their permissions");
                Fault::new(what, error).into()
            }
            Self::Database(snag) => place.explain(snag),
        }
    }
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Self::Files(error)
    }
}

impl From<Snag> for Trouble {
    fn from(snag: Snag) -> Self {
        Self::Database(snag)
    }
}

/// What was noted after the note that was posted last.
fn unposted(folder: &Path, name: &str, posted: u64) -> io::Result<Posting> {
    let files = segment::read(folder, name)?;
    let mut records: Vec<_> = files.iter().flat_map(|bytes| segment::records(bytes)).collect();
    records.retain(|record| record.number > posted);
    records.sort_by_key(|record| record.number);
    let up_to = records.last().map_or(posted, |record| record.number);
    let mut drafts = Drafts::default();
    for record in records {
        // A task that was kept for the next page stands on both when its process died at that moment.
        if let Some(about) = about(record.note)
            && drafts.check(&about).is_ok()
        {
            drafts.add(record.note, Some(about));
        }
    }
    Ok(drafts.into_posting(up_to))
}
