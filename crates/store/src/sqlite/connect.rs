//! Opens connections, and brings an older file to the present schema.
//!
//! Several processes may open one file at the same moment, the very first included. The process that reads the schema holds
//! a lock on the generation file meanwhile, so that one of them migrates and the others find it done.

use std::{fs::File, io, path::Path, thread, time::Duration};

use refinery::{Migration, Runner};
use rialto_model::store::StoreError;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use super::{meta, startup_check::StartupCheck, use_lock::UseLock, write_buffer::recovery};
use crate::{
    config::{Config, Durability},
    error::{DatabaseError, DatabaseLocation},
    generation::GenerationFile,
};

/// The database's name in its folder.
pub(super) const FILE: &str = "rialto.db";

/// The schema this program knows; each migration ends by writing its number into the file.
pub(super) const SCHEMA: i32 = 20;

/// Migrations to the present schema, in order.
const MIGRATIONS: &[(&str, &str)] = &[
    ("V1__registry_and_journal", include_str!("../../migrations/sqlite/V1__registry_and_journal.sql")),
    ("V2__secrets", include_str!("../../migrations/sqlite/V2__secrets.sql")),
    ("V3__deployed", include_str!("../../migrations/sqlite/V3__deployed.sql")),
    ("V4__conversations", include_str!("../../migrations/sqlite/V4__conversations.sql")),
    ("V5__policies", include_str!("../../migrations/sqlite/V5__policies.sql")),
    ("V6__push", include_str!("../../migrations/sqlite/V6__push.sql")),
    ("V7__messages", include_str!("../../migrations/sqlite/V7__messages.sql")),
    ("V8__routing", include_str!("../../migrations/sqlite/V8__routing.sql")),
    ("V9__flows", include_str!("../../migrations/sqlite/V9__flows.sql")),
    ("V10__approvals", include_str!("../../migrations/sqlite/V10__approvals.sql")),
    ("V11__shorter_indexes", include_str!("../../migrations/sqlite/V11__shorter_indexes.sql")),
    ("V12__shorter_events", include_str!("../../migrations/sqlite/V12__shorter_events.sql")),
    ("V13__message_claims", include_str!("../../migrations/sqlite/V13__message_claims.sql")),
    ("V14__tenants", include_str!("../../migrations/sqlite/V14__tenants.sql")),
    ("V15__token_origins", include_str!("../../migrations/sqlite/V15__token_origins.sql")),
    ("V16__tokens_of_work", include_str!("../../migrations/sqlite/V16__tokens_of_work.sql")),
    ("V17__session_messages", include_str!("../../migrations/sqlite/V17__session_messages.sql")),
    ("V18__nodes", include_str!("../../migrations/sqlite/V18__nodes.sql")),
    ("V19__shared_usage", include_str!("../../migrations/sqlite/V19__shared_usage.sql")),
    ("V20__row_checksums", include_str!("../../migrations/sqlite/V20__row_checksums.sql")),
];

/// Maximum number of attempts for a lock that another process holds, one millisecond apart.
const MAX_LOCK_RETRIES: i32 = 10_000;

/// Statements kept ready per connection: every one we have, with room for the combinations of a task filter.
const CACHED_STATEMENTS: usize = 64;

/// Makes the folder, if need be for its owner alone: what was said to agents is in it.
pub(super) fn make_folder(folder: &Path) -> Result<(), StoreError> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder).map_err(|error| {
        let what = format!("the folder {} cannot be made; choose another one", folder.display());
        DatabaseError::new(what, error).into()
    })
}

/// Opens a file that nobody but its owner may read, whatever it was before.
fn private_file(path: &Path) -> std::io::Result<File> {
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = file.metadata()?.permissions().mode();
        // A file of another owner stays as it is: `rialto doctor` reports it.
        if mode & 0o077 != 0 && file.set_permissions(PermissionsExt::from_mode(mode & 0o700)).is_err() {
            tracing::warn!("{} can be read by others, and could not be closed to them", path.display());
        }
    }
    Ok(file)
}

/// The file with the copy of the generation number.
pub(super) fn slot(folder: &Path) -> Result<GenerationFile, StoreError> {
    let file = private_file(&folder.join("generation")).map_err(|error| not_writable(folder, error))?;
    Ok(GenerationFile::new(file))
}

/// The connection that writes.
pub(super) fn writer(
    folder: &Path,
    slot: &GenerationFile,
    in_use: &mut UseLock,
    config: &Config,
    place: &DatabaseLocation,
) -> Result<Connection, StoreError> {
    let path = folder.join(FILE);
    // SQLite gives its own files the permissions that it finds on this one.
    drop(private_file(&path).map_err(|error| not_writable(folder, error))?);
    let open_and_copy = || {
        let left = StartupCheck::inspect(folder, in_use);
        left.refuse_damage(folder, config.accept_damage, place)?;
        let mut connection = open(&path).map_err(|error| place.fault(error))?;
        left.check_pages(&mut connection, config.accept_damage, place)?;
        let mut connection = prepare(connection, config, place)?;
        left.refuse_damaged_buffers(&connection, folder, config.accept_damage, place)?;
        recovery::recover_buffers(&mut connection, folder).map_err(|trouble| trouble.explain(place))?;
        // Another process may have died between a commit and its copy.
        let number = meta::generation(&connection).map_err(|error| place.fault(error))?;
        slot.set(number).map_err(|error| not_writable(folder, error))?;
        Ok(connection)
    };
    slot.with_lock(open_and_copy).map_err(|error| not_writable(folder, error))?
}

/// The only connection of a database in memory.
pub(super) fn in_memory(place: &DatabaseLocation) -> Result<Connection, StoreError> {
    let connection = Connection::open_in_memory().map_err(|error| place.fault(error))?;
    prepare(connection, &Config::default(), place)
}

/// A connection that only reads.
pub(super) fn reader(folder: &Path) -> rusqlite::Result<Connection> {
    let mut connection = open(&folder.join(FILE))?;
    configure(&mut connection)?;
    connection.execute_batch("PRAGMA query_only = ON")?;
    Ok(connection)
}

/// Findings of SQLite's quick check of the structure of all pages; none when all is well.
pub(super) fn quick_check(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    findings(connection, "PRAGMA quick_check(20)")
}

/// Findings of a check that SQLite makes; `ok` is none.
pub(super) fn findings(connection: &Connection, pragma: &str) -> rusqlite::Result<Vec<String>> {
    let mut select = connection.prepare(pragma)?;
    let rows = select.query_map([], |row| row.get::<_, String>(0))?.collect::<rusqlite::Result<Vec<_>>>()?;
    Ok(rows.into_iter().filter(|finding| finding != "ok").collect())
}

fn open(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_EXRESCODE;
    Connection::open_with_flags(path, flags)
}

/// Configures a connection. The page caches stay at a megabyte: the whole program must stay small, and the system's own
/// cache is behind them.
fn configure(connection: &mut Connection) -> rusqlite::Result<()> {
    connection.busy_handler(Some(wait_for_lock))?;
    connection.set_prepared_statement_cache_capacity(CACHED_STATEMENTS);
    connection
        .execute_batch("PRAGMA foreign_keys = ON; PRAGMA cache_size = -1024; PRAGMA temp_store = MEMORY")
}

/// Tries again soon: the built-in handler waits up to 100 ms between tries, and a busy process releases it sooner.
fn wait_for_lock(tries: i32) -> bool {
    thread::sleep(Duration::from_millis(1));
    tries < MAX_LOCK_RETRIES
}

fn prepare(
    mut connection: Connection,
    config: &Config,
    place: &DatabaseLocation,
) -> Result<Connection, StoreError> {
    configure(&mut connection).map_err(|error| place.fault(error))?;
    let schema = schema_of(&connection).map_err(|error| place.fault(error))?;
    // A newer program says whether its changes are such that this one still works with them.
    let works = || meta::schema_floor(&connection).is_some_and(|floor| floor <= SCHEMA);
    if schema > SCHEMA && !works() {
        return Err(newer(&connection, place).into());
    }
    if schema < SCHEMA {
        migrate(&mut connection, place)?;
    }
    let synchronous = match config.durability {
        Durability::Normal => "NORMAL",
        Durability::Full => "FULL",
    };
    // The tidier sees to it that the log does not become so long, unless its thread could not be started: after a crash all of
    // it has to be looked through. A commit touches a hundred pages or two: were there less room for them, each of those that are
    // touched again and again would be written to the log, and read back from it, several times in one commit.
    let pragmas = format!(
        "PRAGMA synchronous = {synchronous}; PRAGMA wal_autocheckpoint = 8000; PRAGMA cache_size = -3072;
         PRAGMA cache_spill = OFF"
    );
    connection.execute_batch(&pragmas).map_err(|error| place.fault(error))?;
    Ok(connection)
}

pub(super) fn schema_of(connection: &Connection) -> rusqlite::Result<i32> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

fn migrate(connection: &mut Connection, place: &DatabaseLocation) -> Result<(), StoreError> {
    // The rows of a call are a kilobyte or two: large pages waste less of themselves, and fewer of them are written. Both
    // settings are kept in the file, so they are made once. A database in memory has its own mode and says so.
    connection.execute_batch("PRAGMA page_size = 16384").map_err(|error| place.fault(error))?;
    connection
        .pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))
        .map_err(|error| place.fault(error))?;
    connection.set_transaction_behavior(TransactionBehavior::Immediate);
    let failed =
        |error| DatabaseError::new(format!("{place} could not be brought to the present schema"), error);
    migrations().map_err(failed)?.set_grouped(true).run(connection).map_err(failed)?;
    meta::set_migrated_by(connection).map_err(|error| place.fault(error))?;
    Ok(())
}

fn not_writable(folder: &Path, error: io::Error) -> StoreError {
    let what = format!("the folder {} may not be written; change its permissions", folder.display());
    DatabaseError::new(what, error).into()
}

fn migrations() -> Result<Runner, refinery::Error> {
    let each: Result<Vec<_>, _> =
        MIGRATIONS.iter().map(|(name, sql)| Migration::unapplied(name, sql)).collect();
    Ok(Runner::new(&each?))
}

fn newer(connection: &Connection, place: &DatabaseLocation) -> DatabaseError {
    let writer = meta::migrated_by(connection)
        .map_or_else(|| "a newer rialto".to_owned(), |version| format!("rialto {version}"));
    let own = env!("CARGO_PKG_VERSION");
    DatabaseError::plain(format!(
        "{place} was last written by {writer}, and this is {own}; update this program"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_migration_leaves_the_schema_this_program_knows() {
        let connection = in_memory(&DatabaseLocation::memory()).unwrap();
        assert_eq!(schema_of(&connection).unwrap(), SCHEMA);
    }
}
