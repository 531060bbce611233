//! Files that the last process left behind, examined before a database is opened.
//!
//! A database that was closed has no log. If there is one, the last process died, or the folder of a running server was copied: then
//! the log, the write buffers and the pages are examined before anything is built on them. A server does not start on damage without being
//! told to (`--accept-damage`). After a restart of the machine, commits that had not reached the disk are missing by design (see [`Durability`]); that
//! is logged, and no reason not to start.
//!
//! [`Durability`]: crate::Durability

use std::{
    fs,
    path::Path,
    time::{Duration, Instant, SystemTime},
};

use rialto_model::store::StoreError;
use rusqlite::Connection;

use super::{
    connect::{self, FILE},
    use_lock::UseLock,
    wal::{self, LogState},
    write_buffer::recovery,
};
use crate::{
    archive::restored,
    error::{DatabaseError, DatabaseLocation},
};

/// Time for the check of all pages: a start must not take minutes.
const PAGE_CHECK_TIME: Duration = Duration::from_secs(2);

/// A database of up to this size is checked at every start.
const SMALL_BYTES: u64 = 8 << 20;

/// SQLite instructions between two looks at the clock.
const CLOCK_INSTRUCTIONS: i32 = 10_000;

/// Advice that goes with every damage.
const FIX: &str = "run `rialto check` for the whole list; restore a backup with `rialto restore`, or start with what can still be read: \
                   `rialto serve --accept-damage`";

/// Findings about the files of a database that is about to be opened.
#[derive(Default)]
pub(super) struct StartupCheck {
    damage: Vec<String>,
    /// Differences of a restored database from its backup.
    restored: Vec<String>,
    is_small: bool,
    /// True if the last process did not close the database.
    is_unclean: bool,
    /// True if the machine was started after the last write.
    is_after_restart: bool,
}

// === impl StartupCheck ===

impl StartupCheck {
    /// Takes the use lock and examines the folder, unless another process has the database open.
    pub(super) fn inspect(folder: &Path, in_use: &mut UseLock) -> Self {
        let mut left = Self::default();
        match in_use.take(folder) {
            Ok(true) => {}
            Ok(false) => return left,
            Err(error) => {
                tracing::warn!(
                    "{}: no lock could be had, so files are not examined: {error}",
                    folder.display()
                );
                return left;
            }
        }
        let database = folder.join(FILE);
        left.is_small = fs::metadata(&database).is_ok_and(|file| file.len() <= SMALL_BYTES);
        match wal::inspect(&database) {
            Ok(LogState::Absent) => {}
            Ok(state) => {
                left.is_unclean = true;
                left.damage.extend(describe(&database, state));
            }
            Err(error) => left.damage.push(format!("{}-wal cannot be read: {error}", database.display())),
        }
        left.restored = restored::compare(folder, Some(FILE));
        if left.restored.is_empty() {
            restored::remove_record(folder);
        }
        left.is_after_restart = is_before_boot(&wal::beside(&database, "-wal"));
        left
    }

    /// Refuses to open a database with a damaged log, unless that is accepted.
    pub(super) fn refuse_damage(
        &self,
        folder: &Path,
        is_accepted: bool,
        place: &DatabaseLocation,
    ) -> Result<(), StoreError> {
        if let Some(finding) = self.restored.first() {
            refuse(finding, is_accepted, place)?;
            restored::remove_record(folder);
        }
        self.damage.first().map_or(Ok(()), |finding| self.report(finding, is_accepted, place))
    }

    /// Refuses to take over write buffers that are damaged, unless that is accepted.
    pub(super) fn refuse_damaged_buffers(
        &self,
        connection: &Connection,
        folder: &Path,
        is_accepted: bool,
        place: &DatabaseLocation,
    ) -> Result<(), StoreError> {
        let damaged = recovery::damaged(connection, folder).map_err(|error| place.fault(error))?;
        damaged.first().map_or(Ok(()), |path| self.report(&describe_buffer(path), is_accepted, place))
    }

    fn report(&self, finding: &str, is_accepted: bool, place: &DatabaseLocation) -> Result<(), StoreError> {
        if self.is_after_restart {
            tracing::warn!(
                "{place}: the machine was restarted before all commits were on disk, and the last ones are missing ({finding}); \
                 `[store] durability = \"full\"` waits for the disk"
            );
            return Ok(());
        }
        refuse(finding, is_accepted, place)
    }

    /// Checks the pages of a small database, or one that was not closed, for a bounded time.
    pub(super) fn check_pages(
        &self,
        connection: &mut Connection,
        is_accepted: bool,
        place: &DatabaseLocation,
    ) -> Result<(), StoreError> {
        if !self.is_small && !self.is_unclean {
            return Ok(());
        }
        let deadline = Instant::now() + PAGE_CHECK_TIME;
        let unwatched = |error| place.fault(error);
        connection
            .progress_handler(CLOCK_INSTRUCTIONS, Some(move || Instant::now() >= deadline))
            .map_err(unwatched)?;
        let checked = connect::quick_check(connection);
        connection.progress_handler(0, None::<fn() -> bool>).map_err(unwatched)?;
        match checked {
            Ok(findings) => findings.first().map_or(Ok(()), |finding| refuse(finding, is_accepted, place)),
            Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::OperationInterrupted) => {
                tracing::warn!(
                    "{place} was not closed and is too large to be checked within {} s; run `rialto check`",
                    PAGE_CHECK_TIME.as_secs()
                );
                Ok(())
            }
            Err(error) => Err(place.fault(error).into()),
        }
    }
}

/// Damage of a log, in words.
pub(super) fn describe(database: &Path, state: LogState) -> Option<String> {
    let log = wal::beside(database, "-wal");
    let log = log.display();
    match state {
        LogState::Absent | LogState::Intact => None,
        LogState::Damaged { valid_frames, lost_frames } => Some(format!(
            "{log} is damaged after frame {valid_frames}, so {lost_frames} pages that were committed are missing"
        )),
        LogState::Unreadable { lost_frames } => Some(format!(
            "the header of {log} is damaged, so about {lost_frames} pages that were committed are missing"
        )),
    }
}

/// Damage of a write buffer, in words.
pub(super) fn describe_buffer(path: &Path) -> String {
    format!("the write buffer {} is damaged, so tasks that were acknowledged are missing", path.display())
}

fn refuse(finding: &str, is_accepted: bool, place: &DatabaseLocation) -> Result<(), StoreError> {
    if is_accepted {
        tracing::error!("{place} is damaged, and used all the same (--accept-damage): {finding}");
        return Ok(());
    }
    Err(DatabaseError::plain(format!("{place} is damaged: {finding}; {FIX}")).into())
}

/// Returns whether a file was last written before the machine was started.
fn is_before_boot(path: &Path) -> bool {
    let written = fs::metadata(path).and_then(|file| file.modified()).ok();
    written.zip(boot_time()).is_some_and(|(written, boot)| written < boot)
}

/// Moment at which this machine was started, where the system says so.
fn boot_time() -> Option<SystemTime> {
    let text = fs::read_to_string("/proc/stat").ok()?;
    let seconds = text.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()?;
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds))
}
