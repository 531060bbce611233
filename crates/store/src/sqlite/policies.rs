//! Policies that are kept in the store.

use async_trait::async_trait;
use rialto_model::{
    policy::{MAX_POLICY_VERSIONS, PolicyChange, PolicySet, RecordedPolicyChange, StoredPolicy},
    store::{PolicySourceStore, StoreError},
};
use rusqlite::{Connection, Row, params};

use super::{SqliteStore, column::At, meta};
use crate::error::SqliteError;

#[async_trait]
impl PolicySourceStore for SqliteStore {
    async fn policies(&self) -> Result<PolicySet, StoreError> {
        self.read(all).await
    }

    async fn change_policy(&self, change: &PolicyChange, expected: u64) -> Result<u64, StoreError> {
        let change = change.clone();
        let made =
            self.transact_change(move |transaction| write_change(transaction, &change, expected).map(Some));
        Ok(made.await?.unwrap_or_else(|| self.generation.get()))
    }

    async fn policy_history(&self, name: &str) -> Result<Vec<RecordedPolicyChange>, StoreError> {
        let name = name.to_owned();
        self.read(move |connection| history(connection, &name)).await
    }
}

/// Active policies.
pub(super) fn all(connection: &Connection) -> Result<PolicySet, SqliteError> {
    // Both are read at one moment.
    let reading = connection.unchecked_transaction()?;
    let version = last(&reading)?;
    let mut select = reading.prepare_cached(
        "SELECT name, text FROM policy_changes
         WHERE version IN (SELECT max(version) FROM policy_changes GROUP BY name) AND text IS NOT NULL ORDER BY name",
    )?;
    let kept = |row: &Row<'_>| Ok(StoredPolicy { name: row.get("name")?, text: row.get("text")? });
    let policies = select.query_map([], kept)?.collect::<rusqlite::Result<_>>()?;
    Ok(PolicySet { version, policies })
}

/// Makes a change, if no other has been made since `expected`. Answers the generation that this makes.
fn write_change(connection: &Connection, change: &PolicyChange, expected: u64) -> Result<u64, SqliteError> {
    if last(connection)? != expected {
        return Err(StoreError::Conflict.into());
    }
    let mut insert = connection.prepare_cached(
        "INSERT INTO policy_changes (version, name, text, at, by) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    insert.execute(params![expected + 1, change.name, change.text, At(change.at), change.by])?;
    let mut trim = connection.prepare_cached(
        "DELETE FROM policy_changes WHERE name = ?1 AND version <=
             (SELECT version FROM policy_changes WHERE name = ?1 ORDER BY version DESC LIMIT 1 OFFSET ?2)",
    )?;
    trim.execute(params![change.name, MAX_POLICY_VERSIONS])?;
    Ok(meta::next_generation(connection)?)
}

/// The changes of one, newest first.
pub(super) fn history(connection: &Connection, name: &str) -> Result<Vec<RecordedPolicyChange>, SqliteError> {
    let mut select =
        connection.prepare_cached("SELECT * FROM policy_changes WHERE name = ?1 ORDER BY version DESC")?;
    let version = |row: &Row<'_>| {
        let change = PolicyChange {
            name: row.get("name")?,
            text: row.get("text")?,
            at: row.get::<_, At>("at")?.0,
            by: row.get("by")?,
        };
        Ok(RecordedPolicyChange { version: row.get("version")?, change })
    };
    let versions = select.query_map([name], version)?.collect::<rusqlite::Result<_>>()?;
    Ok(versions)
}

/// The last change is never removed, so this never goes back.
fn last(connection: &Connection) -> rusqlite::Result<u64> {
    let mut select = connection.prepare_cached("SELECT coalesce(max(version), 0) FROM policy_changes")?;
    select.query_row([], |row| row.get(0))
}
