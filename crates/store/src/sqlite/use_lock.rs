//! Lock file that says whether any process has the database open.
//!
//! Every store keeps a shared lock on it. The first process to open a database finds it free, and only that one may look at the files that
//! the last one left behind: those of live processes change while they are read.

use std::{
    fs::{File, OpenOptions},
    io,
    path::Path,
};

/// Name of the file in the data folder.
const FILE: &str = "rialto.db-inuse";

/// Shared lock of a store that is open.
#[derive(Default)]
pub(super) struct UseLock(Option<File>);

// === impl UseLock ===

impl UseLock {
    /// Takes the lock. Returns whether no other process had it. To be called under the lock that databases are opened under.
    pub(super) fn take(&mut self, folder: &Path) -> io::Result<bool> {
        let file = open(folder)?;
        let is_first = file.try_lock().is_ok();
        if is_first {
            file.unlock()?;
        }
        file.lock_shared()?;
        self.0 = Some(file);
        Ok(is_first)
    }
}

/// Returns whether some process has the database in `folder` open.
pub(super) fn is_in_use(folder: &Path) -> bool {
    open(folder).is_ok_and(|file| file.try_lock().is_err())
}

fn open(folder: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(folder.join(FILE))
}
