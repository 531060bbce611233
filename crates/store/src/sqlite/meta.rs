//! What the database knows about itself.

use rusqlite::{Connection, OptionalExtension};

/// How often the registry and the tokens have changed.
pub(super) fn generation(connection: &Connection) -> rusqlite::Result<u64> {
    connection.query_row("SELECT value FROM meta WHERE key = 'generation'", [], |row| row.get(0))
}

/// Counts one more change. It belongs into the transaction that makes the change.
pub(super) fn next_generation(connection: &Connection) -> rusqlite::Result<u64> {
    connection
        .prepare_cached("UPDATE meta SET value = value + 1 WHERE key = 'generation' RETURNING value")?
        .query_row([], |row| row.get(0))
}

/// Which version of this program has brought the file to its schema.
pub(super) fn migrated_by(connection: &Connection) -> Option<String> {
    let sql = "SELECT value FROM meta WHERE key = 'migrated_by'";
    connection.query_row(sql, [], |row| row.get(0)).optional().ok().flatten()
}

/// Says that this version has.
pub(super) fn set_migrated_by(connection: &Connection) -> rusqlite::Result<()> {
    let sql = "INSERT OR REPLACE INTO meta (key, value) VALUES ('migrated_by', ?1)";
    connection.execute(sql, [env!("CARGO_PKG_VERSION")]).map(drop)
}
