//! Metadata in the database.

use rusqlite::{Connection, OptionalExtension};

/// Generation: number of changes of the registry and the tokens.
pub(super) fn generation(connection: &Connection) -> rusqlite::Result<u64> {
    connection.query_row("SELECT value FROM meta WHERE key = 'generation'", [], |row| row.get(0))
}

/// Counts one more change. It belongs into the transaction that makes the change.
pub(super) fn next_generation(connection: &Connection) -> rusqlite::Result<u64> {
    connection
        .prepare_cached("UPDATE meta SET value = value + 1 WHERE key = 'generation' RETURNING value")?
        .query_row([], |row| row.get(0))
}

/// Version of the program that migrated the file to its schema.
pub(super) fn migrated_by(connection: &Connection) -> Option<String> {
    let sql = "SELECT value FROM meta WHERE key = 'migrated_by'";
    connection.query_row(sql, [], |row| row.get(0)).optional().ok().flatten()
}

/// Says that this version has.
pub(super) fn set_migrated_by(connection: &Connection) -> rusqlite::Result<()> {
    let sql = "INSERT OR REPLACE INTO meta (key, value) VALUES ('migrated_by', ?1)";
    connection.execute(sql, [env!("CARGO_PKG_VERSION")]).map(drop)
}

/// The oldest schema whose programs can work with the file; none where it does not say. A migration after schema 16 sets it, and raises it
/// when it takes away or changes what the version before uses.
pub(super) fn schema_floor(connection: &Connection) -> Option<i32> {
    let sql = "SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'schema_floor'";
    connection.query_row(sql, [], |row| row.get(0)).optional().ok().flatten()
}

/// A text that is kept under a name.
pub(super) fn text(connection: &Connection, key: &str) -> rusqlite::Result<Option<String>> {
    let mut select = connection.prepare_cached("SELECT value FROM meta WHERE key = ?1")?;
    select.query_row([key], |row| row.get(0)).optional()
}

/// Keeps a text under a name.
pub(super) fn set_text(connection: &Connection, key: &str, text: &str) -> rusqlite::Result<()> {
    let mut replace =
        connection.prepare_cached("INSERT OR REPLACE INTO meta (key, value) VALUES (?1, ?2)")?;
    replace.execute([key, text]).map(drop)
}

/// The text that is kept under a name; this one from now on, if there is none.
pub(super) fn text_or(connection: &Connection, key: &str, fresh: &str) -> rusqlite::Result<String> {
    connection.execute("INSERT OR IGNORE INTO meta (key, value) VALUES (?1, ?2)", [key, fresh])?;
    connection.query_row("SELECT value FROM meta WHERE key = ?1", [key], |row| row.get(0))
}

/// The number of the last record of a write buffer that is in the database.
pub(super) fn flushed(connection: &Connection, write_buffer: &str) -> rusqlite::Result<u64> {
    let mut select = connection.prepare_cached("SELECT value FROM meta WHERE key = ?1")?;
    Ok(select.query_row([write_buffer], |row| row.get(0)).optional()?.unwrap_or(0))
}

/// Says how far a write buffer is flushed. It belongs into the transaction that flushes it.
pub(super) fn set_flushed(connection: &Connection, write_buffer: &str, number: u64) -> rusqlite::Result<()> {
    let mut replace =
        connection.prepare_cached("INSERT OR REPLACE INTO meta (key, value) VALUES (?1, ?2)")?;
    replace.execute(rusqlite::params![write_buffer, number]).map(drop)
}

/// Forgets a write buffer whose files are gone.
pub(super) fn forget_write_buffer(connection: &Connection, write_buffer: &str) -> rusqlite::Result<()> {
    connection.execute("DELETE FROM meta WHERE key = ?1", [write_buffer]).map(drop)
}
