//! Messages and ends of MCP sessions, for the processes that share one file.

use async_trait::async_trait;
use rialto_model::store::{
    MAX_SESSION_AGE, MAX_SESSION_MESSAGE_AGE, NumberedSessionMessage, SessionMessage, SessionStore,
    StoreError,
};
use rusqlite::{Connection, params};

use super::{SqliteStore, column::At};
use crate::error::SqliteError;

#[async_trait]
impl SessionStore for SqliteStore {
    async fn put_session_message(&self, message: &SessionMessage) -> Result<(), StoreError> {
        let message = message.clone();
        self.transact(move |transaction| put(transaction, &message)).await
    }

    async fn session_messages(
        &self,
        after: u64,
        limit: usize,
    ) -> Result<Vec<NumberedSessionMessage>, StoreError> {
        self.read(move |connection| list(connection, after, limit)).await
    }

    async fn last_session_message(&self) -> Result<u64, StoreError> {
        self.read(last).await
    }

    async fn remove_session_message(&self, number: u64) -> Result<(), StoreError> {
        self.transact(move |transaction| remove(transaction, number)).await
    }

    async fn is_session_ended(&self, session: &str) -> Result<bool, StoreError> {
        let session = session.to_owned();
        self.read(move |connection| is_ended(connection, &session)).await
    }
}

/// Adds a message, and removes those that are too old to matter.
pub(super) fn put(connection: &Connection, message: &SessionMessage) -> Result<(), SqliteError> {
    let (messages_before, ends_before) =
        (At(message.at - MAX_SESSION_MESSAGE_AGE), At(message.at - MAX_SESSION_AGE));
    let mut delete =
        connection.prepare_cached("DELETE FROM session_messages WHERE body IS NOT NULL AND at < ?1")?;
    delete.execute([messages_before])?;
    let mut delete =
        connection.prepare_cached("DELETE FROM session_messages WHERE body IS NULL AND at < ?1")?;
    delete.execute([ends_before])?;
    let mut insert =
        connection.prepare_cached("INSERT INTO session_messages (session, body, at) VALUES (?1, ?2, ?3)")?;
    insert.execute(params![message.session, message.body, At(message.at)])?;
    Ok(())
}

/// Messages behind this number, in order.
pub(super) fn list(
    connection: &Connection,
    after: u64,
    limit: usize,
) -> Result<Vec<NumberedSessionMessage>, SqliteError> {
    let mut select = connection.prepare_cached(
        "SELECT number, session, body, at FROM session_messages WHERE number > ?1 ORDER BY number LIMIT ?2",
    )?;
    let (after, limit) = (i64::try_from(after).unwrap_or(i64::MAX), i64::try_from(limit).unwrap_or(i64::MAX));
    let rows = select.query_map(params![after, limit], |row| {
        let message = SessionMessage { session: row.get(1)?, body: row.get(2)?, at: row.get::<_, At>(3)?.0 };
        Ok(NumberedSessionMessage { number: row.get::<_, i64>(0)?.cast_unsigned(), message })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Number of the last message.
pub(super) fn last(connection: &Connection) -> Result<u64, SqliteError> {
    let mut select = connection.prepare_cached("SELECT coalesce(max(number), 0) FROM session_messages")?;
    Ok(select.query_row([], |row| row.get::<_, i64>(0))?.cast_unsigned())
}

/// Removes a message that was delivered.
pub(super) fn remove(connection: &Connection, number: u64) -> Result<(), SqliteError> {
    let mut delete = connection.prepare_cached("DELETE FROM session_messages WHERE number = ?1")?;
    delete.execute([i64::try_from(number).unwrap_or(i64::MAX)])?;
    Ok(())
}

/// Returns whether a session was ended by its client.
pub(super) fn is_ended(connection: &Connection, session: &str) -> Result<bool, SqliteError> {
    let mut select =
        connection.prepare_cached("SELECT 1 FROM session_messages WHERE session = ?1 AND body IS NULL")?;
    Ok(select.exists([session])?)
}
