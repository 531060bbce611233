//! Condition of the database in use: a full disk, lost permissions, damage, a folder that was deleted.
//!
//! Writes report how they went, and a thread watches what no write reports: a deleted file can still be written by the component that has it open, and
//! everything written to it is lost. A condition is logged once when it begins and once when it ends. While one stands, the thread tries to
//! write now and then, so that it ends without a call that has to fail first.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
        mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    },
    thread,
    time::Duration,
};

use rialto_model::store::StoreProblem;
use rusqlite::{Connection, Error as SqlError, ErrorCode};
use tokio::sync::mpsc;

use super::{connect::FILE, writer::Job};
use crate::error::{DatabaseError, DatabaseLocation};

/// Time between two looks at the files: what is acknowledged in between may be lost with a deleted folder.
const WATCH_INTERVAL: Duration = Duration::from_millis(250);

/// With less room than this a disk counts as full.
const MIN_FREE_BYTES: u64 = 16 << 20;

/// Looks between two attempts to write while a condition stands.
const PROBE_LOOKS: u32 = 4;

/// Condition of a database, shared by all that use it.
pub(super) struct StoreHealth {
    place: DatabaseLocation,
    /// None for a store in memory.
    database: Option<(PathBuf, FileId)>,
    /// Condition that writes have reported.
    writes: AtomicU8,
    /// Condition that the files show.
    files: AtomicU8,
}

/// Identity of a file: another one under the same name has another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileId {
    device: u64,
    number: u64,
}

/// Thread that watches the files; it ends when this is dropped.
pub(super) struct HealthWatch {
    _stop: SyncSender<()>,
}

// === impl StoreHealth ===

impl StoreHealth {
    /// Health of the database in `folder`, or of one in memory.
    pub(super) fn new(folder: Option<&Path>, place: DatabaseLocation) -> Self {
        let database = folder.map(|folder| folder.join(FILE));
        let database = database.and_then(|path| FileId::read(&path).ok().map(|id| (path, id)));
        Self { place, database, writes: AtomicU8::new(0), files: AtomicU8::new(0) }
    }

    /// The condition that stands, if one does.
    pub(super) fn problem(&self) -> Option<StoreProblem> {
        decode(self.files.load(Ordering::Relaxed)).or_else(|| decode(self.writes.load(Ordering::Relaxed)))
    }

    /// Refuses a write to a database that was deleted.
    pub(super) fn refuse_deleted(&self) -> Result<(), DatabaseError> {
        if decode(self.files.load(Ordering::Relaxed)) != Some(StoreProblem::Deleted) {
            return Ok(());
        }
        Err(DatabaseError::plain(format!("{}: {}", self.place, StoreProblem::Deleted.message())))
    }

    /// A write failed.
    pub(super) fn failed(&self, error: &SqlError) {
        let problem = match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => StoreProblem::Full,
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => StoreProblem::ReadOnly,
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => StoreProblem::Damaged,
            Some(ErrorCode::SystemIoFailure | ErrorCode::CannotOpen | ErrorCode::DatabaseBusy) => {
                StoreProblem::Unavailable
            }
            _ => return,
        };
        self.change(&self.writes, Some(problem), Some(error));
    }

    /// A write was committed.
    pub(super) fn written(&self) {
        if self.writes.load(Ordering::Relaxed) != 0 {
            self.change(&self.writes, None, None);
        }
    }

    /// Looks at the files once.
    pub(super) fn look(&self) {
        let Some((path, known)) = &self.database else { return };
        let problem = match FileId::read(path) {
            Ok(id) if id == *known => (free_bytes(path) < MIN_FREE_BYTES).then_some(StoreProblem::Full),
            Ok(_) => Some(StoreProblem::Deleted),
            Err(error) if is_gone(&error) => Some(StoreProblem::Deleted),
            // Permissions that were taken away; writes find out what that means.
            Err(_) => None,
        };
        self.change(&self.files, problem, None);
    }

    fn change(&self, slot: &AtomicU8, problem: Option<StoreProblem>, cause: Option<&SqlError>) {
        let before = self.problem();
        slot.store(encode(problem), Ordering::Relaxed);
        let now = self.problem();
        if before == now {
            return;
        }
        match (now, cause) {
            (Some(problem), Some(cause)) => {
                tracing::error!("{}: {} ({cause})", self.place, problem.message());
            }
            (Some(problem), None) => tracing::error!("{}: {}", self.place, problem.message()),
            (None, _) => tracing::info!("{} takes writes again", self.place),
        }
    }
}

// === impl HealthWatch ===

impl HealthWatch {
    /// Starts the thread. None where it cannot be started: then only writes report.
    pub(super) fn start(health: Arc<StoreHealth>, jobs: mpsc::WeakSender<Job>) -> Option<Self> {
        let (stop, stopped) = sync_channel(0);
        let work = move || run(&health, &jobs, &stopped);
        let started = thread::Builder::new().name("rialto-health".to_owned()).spawn(work);
        started.ok().map(|_| Self { _stop: stop })
    }
}

fn run(health: &Arc<StoreHealth>, jobs: &mpsc::WeakSender<Job>, stopped: &Receiver<()>) {
    let mut looks = 0_u32;
    while stopped.recv_timeout(WATCH_INTERVAL) == Err(RecvTimeoutError::Timeout) {
        health.look();
        looks = looks.wrapping_add(1);
        if health.writes.load(Ordering::Relaxed) != 0 && looks.is_multiple_of(PROBE_LOOKS) {
            let Some(jobs) = jobs.upgrade() else { return };
            let health = Arc::clone(health);
            // A queue that is full has writes of its own to report.
            let _ = jobs.try_send(Job::Run(Box::new(move |connection| probe(connection, &health))));
        }
    }
}

/// Writes a row as it is.
fn probe(connection: &Connection, health: &StoreHealth) {
    match connection.execute("UPDATE meta SET value = value WHERE key = 'generation'", []) {
        Ok(_) => health.written(),
        Err(error) => health.failed(&error),
    }
}

// === impl FileId ===

impl FileId {
    #[cfg(unix)]
    fn read(path: &Path) -> io::Result<Self> {
        use std::os::unix::fs::MetadataExt;
        let file = fs::metadata(path)?;
        Ok(Self { device: file.dev(), number: file.ino() })
    }

    /// On systems without file numbers an open file cannot be deleted either.
    #[cfg(not(unix))]
    fn read(path: &Path) -> io::Result<Self> {
        fs::metadata(path).map(|_| Self { device: 0, number: 0 })
    }
}

fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Free bytes on the disk of a file for unprivileged users.
#[cfg(unix)]
fn free_bytes(path: &Path) -> u64 {
    rustix::fs::statvfs(path).map_or(u64::MAX, |disk| disk.f_bavail.saturating_mul(disk.f_frsize))
}

#[cfg(not(unix))]
const fn free_bytes(_: &Path) -> u64 {
    u64::MAX
}

const fn encode(problem: Option<StoreProblem>) -> u8 {
    match problem {
        None => 0,
        Some(StoreProblem::Full) => 1,
        Some(StoreProblem::ReadOnly) => 2,
        Some(StoreProblem::Deleted) => 3,
        Some(StoreProblem::Damaged) => 4,
        Some(StoreProblem::Unavailable) => 5,
    }
}

const fn decode(code: u8) -> Option<StoreProblem> {
    match code {
        1 => Some(StoreProblem::Full),
        2 => Some(StoreProblem::ReadOnly),
        3 => Some(StoreProblem::Deleted),
        4 => Some(StoreProblem::Damaged),
        5 => Some(StoreProblem::Unavailable),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use rialto_model::{
        ids::Scope,
        store::{Store, TaskStore},
    };
    use rialto_testkit::store_suite::head;

    use super::*;
    use crate::{Config, sqlite::SqliteStore};

    async fn limit_pages(store: &SqliteStore, pages: Option<i64>) {
        let limit = move |connection: &Connection| {
            let now: i64 = connection.pragma_query_value(None, "page_count", |row| row.get(0))?;
            let most = pages.unwrap_or(now);
            Ok(connection.pragma_update_and_check(None, "max_page_count", most, |_| Ok(()))?)
        };
        store.run_on_writer(limit).await.unwrap().unwrap();
    }

    async fn until(store: &SqliteStore, problem: Option<StoreProblem>) {
        let waiting = async {
            while store.problem().await != problem {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), waiting).await.unwrap();
    }

    #[tokio::test]
    async fn a_full_database_is_reported_and_read_and_loses_nothing_that_was_acknowledged() {
        let folder = tempfile::tempdir().unwrap();
        let store =
            SqliteStore::open(folder.path(), &Config::default(), |_| Err("no cards here".into())).unwrap();
        store.open_task(&head("task-000"), Vec::new()).await.unwrap();
        assert!(store.task(&Scope::default(), "task-000").await.unwrap().is_some());
        limit_pages(&store, None).await;
        let mut acknowledged = Vec::new();
        for number in 1..400 {
            let task = head(&format!("task-{number:03}"));
            if store.open_task(&task, Vec::new()).await.is_ok() {
                acknowledged.push(task.id);
            }
        }
        until(&store, Some(StoreProblem::Full)).await;
        assert!(acknowledged.len() > 100, "writes are acknowledged as long as the buffer has room");
        assert!(
            store.task(&Scope::default(), "task-000").await.unwrap().is_some(),
            "it can be read meanwhile"
        );
        limit_pages(&store, Some(1 << 30)).await;
        until(&store, None).await;
        for id in acknowledged {
            assert!(store.task(&Scope::default(), id.as_str()).await.unwrap().is_some(), "{id}");
        }
    }

    #[tokio::test]
    async fn records_that_cannot_be_flushed_can_be_read() {
        let folder = tempfile::tempdir().unwrap();
        let store =
            SqliteStore::open(folder.path(), &Config::default(), |_| Err("no cards here".into())).unwrap();
        store.open_task(&head("task-000"), Vec::new()).await.unwrap();
        let find = |id: &'static str| {
            store.read_unflushed(move |connection| {
                crate::sqlite::tasks::find(connection, &Scope::default(), id)
            })
        };
        assert!(find("task-000").await.unwrap().is_some());
        assert!(find("task-001").await.unwrap().is_none());
        let task = head("task-001");
        store.open_task(&task, Vec::new()).await.unwrap();
        assert_eq!(find("task-001").await.unwrap().unwrap().id, task.id);
        assert!(
            store.task(&Scope::default(), "task-001").await.unwrap().is_some(),
            "it is written later, once"
        );
    }
}
