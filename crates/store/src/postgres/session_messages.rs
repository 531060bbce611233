//! Messages and ends of MCP sessions, for the nodes that share one database.

use async_trait::async_trait;
use rialto_model::store::{
    MAX_SESSION_AGE, MAX_SESSION_MESSAGE_AGE, NumberedSessionMessage, SessionMessage, SessionStore,
    StoreError,
};

use super::{
    PostgresStore,
    column::{Cells, nanoseconds, nearest},
    connection::GenericClient,
    error::PostgresError,
    sql,
};

/// Advisory lock of writers: numbers are then committed in their order, and no reader passes over one.
const WRITER_LOCK: i64 = 0x0052_4941_4c54_4f02;

#[async_trait]
impl SessionStore for PostgresStore {
    async fn put_session_message(&self, message: &SessionMessage) -> Result<(), StoreError> {
        Ok(put(&self.client().await?, message).await?)
    }

    async fn session_messages(
        &self,
        after: u64,
        limit: usize,
    ) -> Result<Vec<NumberedSessionMessage>, StoreError> {
        Ok(list(&self.client().await?, after, limit).await?)
    }

    async fn last_session_message(&self) -> Result<u64, StoreError> {
        Ok(last(&self.client().await?).await?)
    }

    async fn remove_session_message(&self, number: u64) -> Result<(), StoreError> {
        Ok(remove(&self.client().await?, number).await?)
    }

    async fn is_session_ended(&self, session: &str) -> Result<bool, StoreError> {
        Ok(is_ended(&self.client().await?, session).await?)
    }
}

/// Adds a message, and removes those that are too old to matter.
pub(super) async fn put(client: &impl GenericClient, message: &SessionMessage) -> Result<(), PostgresError> {
    let (messages_before, ends_before) =
        (nearest(message.at - MAX_SESSION_MESSAGE_AGE), nearest(message.at - MAX_SESSION_AGE));
    let delete = "DELETE FROM session_messages WHERE body IS NOT NULL AND at < $1";
    sql::execute(client, delete, &[&messages_before]).await?;
    let delete = "DELETE FROM session_messages WHERE body IS NULL AND at < $1";
    sql::execute(client, delete, &[&ends_before]).await?;
    let insert = "INSERT INTO session_messages (session, body, at) SELECT $1, $2, $3 FROM (SELECT pg_advisory_xact_lock($4)) AS writer";
    let at = nanoseconds(message.at)?;
    sql::execute(client, insert, &[&message.session, &message.body, &at, &WRITER_LOCK]).await?;
    Ok(())
}

/// Messages behind this number, in order.
pub(super) async fn list(
    client: &impl GenericClient,
    after: u64,
    limit: usize,
) -> Result<Vec<NumberedSessionMessage>, PostgresError> {
    let select =
        "SELECT number, session, body, at FROM session_messages WHERE number > $1 ORDER BY number LIMIT $2";
    let (after, limit) = (i64::try_from(after).unwrap_or(i64::MAX), i64::try_from(limit).unwrap_or(i64::MAX));
    let rows = sql::rows(client, select, &[&after, &limit]).await?;
    let read = |row: &tokio_postgres::Row| -> Result<NumberedSessionMessage, PostgresError> {
        let body = row.try_get::<_, Option<String>>("body")?;
        let row = Cells(row);
        let message = SessionMessage { session: row.text("session")?, body, at: row.at("at")? };
        Ok(NumberedSessionMessage { number: row.number("number")?, message })
    };
    rows.iter().map(read).collect()
}

/// Number of the last message.
pub(super) async fn last(client: &impl GenericClient) -> Result<u64, PostgresError> {
    let select = "SELECT coalesce(max(number), 0) AS number FROM session_messages";
    Cells(&sql::row(client, select, &[]).await?).number("number")
}

/// Removes a message that was delivered.
pub(super) async fn remove(client: &impl GenericClient, number: u64) -> Result<(), PostgresError> {
    let number = i64::try_from(number).unwrap_or(i64::MAX);
    sql::execute(client, "DELETE FROM session_messages WHERE number = $1", &[&number]).await?;
    Ok(())
}

/// Returns whether a session was ended by its client.
pub(super) async fn is_ended(client: &impl GenericClient, session: &str) -> Result<bool, PostgresError> {
    let select = "SELECT number FROM session_messages WHERE session = $1 AND body IS NULL LIMIT 1";
    Ok(sql::maybe_row(client, select, &[&session]).await?.is_some())
}
