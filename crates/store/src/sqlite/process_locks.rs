//! Locks that show which processes are alive.
//!
//! A lease shows the death of a process only when it is over, but the operating system releases the file locks of a dead process
//! at once. So each process keeps a file locked beside the database, and its tasks can be taken over as soon as the lock is
//! free. Where files cannot be locked, only leases are used.

use std::{
    fs::{self, File, OpenOptions},
    io,
    path::{Path, PathBuf},
};

use parking_lot::Mutex;
use rialto_model::ids::ProcessId;

/// Prefix of lock files; the process id follows.
const FILE_PREFIX: &str = "runner-";

/// Suffix of a file that is not locked yet.
const UNLOCKED_SUFFIX: &str = ".new";

/// The files that this process keeps locked.
#[derive(Default)]
pub(super) struct ProcessLocks(Mutex<Vec<(ProcessId, File)>>);

// === impl ProcessLocks ===

impl ProcessLocks {
    /// Shows that a process is alive, if it is not shown yet. Whether that worked.
    pub(super) fn acquire(&self, folder: &Path, runner: ProcessId) -> bool {
        let mut held = self.0.lock();
        if held.iter().any(|(holder, _)| *holder == runner) {
            return true;
        }
        match create_locked(folder, runner) {
            Ok(file) => {
                held.push((runner, file));
                true
            }
            Err(error) => {
                tracing::warn!(
                    "should this process die, its tasks will be taken over later than they could be, because no lock could be \
                     had in {}: {error}",
                    folder.display()
                );
                false
            }
        }
    }

    /// Shows it no more.
    pub(super) fn release(&self, folder: &Path, runner: ProcessId) {
        self.0.lock().retain(|(holder, _)| *holder != runner);
        remove_lock_file(folder, runner);
    }
}

/// The processes that have died without a word.
pub(super) fn find_dead(folder: &Path) -> Vec<ProcessId> {
    let names = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let number = |name: &std::ffi::OsStr| name.to_str()?.strip_prefix(FILE_PREFIX)?.parse::<u64>().ok();
    let runners = names.filter_map(|name| number(&name)).map(ProcessId::from);
    runners.filter(|runner| is_unlocked(&path(folder, *runner))).collect()
}

/// Removes what one of them has left.
pub(super) fn remove_lock_file(folder: &Path, runner: ProcessId) {
    // One that stays is found, and removed, by the component that looks next.
    let _ = fs::remove_file(path(folder, runner));
}

/// Returns whether a process has a file: it is alive, or nobody has noticed yet that it died.
pub(super) fn has_lock_file(folder: &Path, runner: ProcessId) -> bool {
    path(folder, runner).exists()
}

/// Returns whether a process has a file and keeps it locked; none where it has no file.
pub(super) fn is_alive(folder: &Path, runner: ProcessId) -> Option<bool> {
    has_lock_file(folder, runner).then(|| !is_unlocked(&path(folder, runner)))
}

fn is_unlocked(path: &Path) -> bool {
    File::open(path).is_ok_and(|file| file.try_lock().is_ok())
}

/// A process's file. It has its name only once it is locked, so nobody ever finds it free while its process lives.
fn create_locked(folder: &Path, runner: ProcessId) -> io::Result<File> {
    let path = path(folder, runner);
    let unready = path.with_extension(&UNLOCKED_SUFFIX[1..]);
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(&unready)?;
    file.lock()?;
    fs::rename(unready, path)?;
    Ok(file)
}

fn path(folder: &Path, runner: ProcessId) -> PathBuf {
    folder.join(format!("{FILE_PREFIX}{}", runner.get()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_gone_when_its_lock_is_free() {
        let folder = tempfile::tempdir().unwrap();
        let (alive, dead) = (ProcessLocks::default(), ProcessLocks::default());
        alive.acquire(folder.path(), ProcessId::from(1));
        alive.acquire(folder.path(), ProcessId::from(1));
        dead.acquire(folder.path(), ProcessId::from(2));
        assert!(find_dead(folder.path()).is_empty());
        drop(dead);
        assert_eq!(find_dead(folder.path()), [ProcessId::from(2)]);
        let is_alive = |number| is_alive(folder.path(), ProcessId::from(number));
        assert_eq!((is_alive(1), is_alive(2), is_alive(3)), (Some(true), Some(false), None));
        remove_lock_file(folder.path(), ProcessId::from(2));
        alive.release(folder.path(), ProcessId::from(1));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
