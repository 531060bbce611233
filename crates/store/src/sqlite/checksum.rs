//! Checksums of rows, so that `rialto check` finds a flipped byte that leaves a valid value.
//!
//! SQLite has no checksums for its pages. A CRC-32 over the columns that never change is kept with each task and each batch of events; audit records are
//! sealed ([`audit`](super::audit)), and indexed columns are compared with their indexes. Rows of programs before schema 20 have no checksum.

use rusqlite::{Row, types::ValueRef};

/// Columns of a task that never change, in the order in which they are hashed.
pub(super) const TASK_COLUMNS: [&str; 12] = [
    "id",
    "org",
    "project",
    "caller",
    "door",
    "agent",
    "agent_url",
    "skill",
    "session",
    "args",
    "context",
    "message",
];

/// Columns of a batch of events, in the order in which they are hashed.
pub(super) const EVENT_COLUMNS: [&str; 3] = ["key", "at", "events"];

/// Hashes the values of a row. Each goes with its type and its length, so that no two lists of values are the same bytes.
pub(super) fn hash_values<'a>(values: impl IntoIterator<Item = ValueRef<'a>>) -> i64 {
    let mut hasher = crc32fast::Hasher::new();
    for value in values {
        match value {
            ValueRef::Null => hasher.update(b"n"),
            ValueRef::Integer(number) => {
                hasher.update(b"i");
                hasher.update(&number.to_le_bytes());
            }
            ValueRef::Real(number) => {
                hasher.update(b"r");
                hasher.update(&number.to_le_bytes());
            }
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
                hasher.update(b"t");
                hasher.update(&bytes.len().to_le_bytes());
                hasher.update(bytes);
            }
        }
    }
    hasher.finalize().into()
}

/// Compares these columns of a row with its checksum, if it has one.
pub(super) fn is_intact(row: &Row<'_>, columns: &[&str]) -> rusqlite::Result<bool> {
    let Some(expected) = row.get::<_, Option<i64>>("checksum")? else { return Ok(true) };
    let values = columns.iter().map(|column| row.get_ref(*column)).collect::<rusqlite::Result<Vec<_>>>()?;
    Ok(hash_values(values) == expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_values_have_different_checksums() {
        let rows: [&[ValueRef<'_>]; 6] = [
            &[ValueRef::Text(b"ab"), ValueRef::Text(b"c")],
            &[ValueRef::Text(b"a"), ValueRef::Text(b"bc")],
            &[ValueRef::Text(b"ab"), ValueRef::Null, ValueRef::Text(b"c")],
            &[ValueRef::Text(b"ab"), ValueRef::Text(b"")],
            &[ValueRef::Text(b"ab"), ValueRef::Integer(0)],
            &[ValueRef::Text(b"ab"), ValueRef::Integer(1)],
        ];
        let sums: std::collections::HashSet<_> =
            rows.iter().map(|row| hash_values(row.iter().copied())).collect();
        assert_eq!(sums.len(), rows.len());
    }
}
