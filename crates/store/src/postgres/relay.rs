//! Calls that one node of this database passes on to another.

use async_trait::async_trait;
use rialto_model::{
    ids::ProcessId,
    relay::{MAX_RELAYED_CALL_AGE, RelayProgress, RelayedCall},
    store::{RelayStore, StoreError},
};
use tokio_postgres::Row;

use super::{
    PostgresStore,
    column::{Cells, nanoseconds, nearest, signed},
    error::PostgresError,
    sql,
};

/// Keeps the holder of a program if it is a candidate; else the first candidate becomes its holder.
const HOLD: &str = "
    INSERT INTO program_holders (program, runner) VALUES ($1, $2)
    ON CONFLICT (program) DO UPDATE
        SET runner = CASE WHEN program_holders.runner = ANY($3) THEN program_holders.runner ELSE excluded.runner END
    RETURNING runner";

/// Adds events to a call that is still there. What was added by an attempt that was not answered is there already.
const ADD_EVENTS: &str = "
    WITH wanted AS (SELECT id FROM relayed_calls WHERE id = $1 FOR KEY SHARE), added AS (
        INSERT INTO relayed_events (call, number, body)
        SELECT wanted.id, $2 + event.number, event.body
        FROM wanted, unnest($3::text[]) WITH ORDINALITY AS event (body, number)
        ON CONFLICT DO NOTHING
    )
    SELECT EXISTS (SELECT FROM wanted) AS is_wanted";

#[async_trait]
impl RelayStore for PostgresStore {
    async fn hold_program(&self, program: &str, candidates: &[ProcessId]) -> Result<ProcessId, StoreError> {
        let numbers: Vec<i64> = candidates.iter().map(|runner| runner.get().cast_signed()).collect();
        let first = numbers.first().copied().unwrap_or_default();
        let row = sql::row(&self.client().await?, HOLD, &[&program, &first, &numbers]).await?;
        Ok(runner(&row, "runner")?)
    }

    async fn program_holders(&self) -> Result<Vec<(String, ProcessId)>, StoreError> {
        let select = "SELECT program, runner FROM program_holders";
        let rows = sql::rows(&self.client().await?, select, &[]).await?;
        let read = |row: &Row| Ok((Cells(row).text("program")?, runner(row, "runner")?));
        Ok(rows.iter().map(read).collect::<Result<_, PostgresError>>()?)
    }

    async fn put_relayed_call(&self, call: &RelayedCall) -> Result<(), StoreError> {
        let client = self.client().await?;
        let old = nearest(call.at.checked_sub(MAX_RELAYED_CALL_AGE).unwrap_or(call.at));
        sql::execute(&client, "DELETE FROM relayed_calls WHERE at < $1", &[&old]).await?;
        let insert = "INSERT INTO relayed_calls (id, sender, receiver, body, at) VALUES ($1, $2, $3, $4, $5)";
        let (sender, receiver) = (call.sender.get().cast_signed(), call.receiver.get().cast_signed());
        let at = nanoseconds(call.at)?;
        sql::execute(&client, insert, &[&call.id, &sender, &receiver, &call.body, &at]).await?;
        Ok(())
    }

    async fn take_relayed_calls(&self, receiver: ProcessId) -> Result<Vec<RelayedCall>, StoreError> {
        let take = "
            UPDATE relayed_calls SET is_taken = TRUE WHERE receiver = $1 AND NOT is_taken
            RETURNING id, sender, receiver, body, at";
        let rows = sql::rows(&self.client().await?, take, &[&receiver.get().cast_signed()]).await?;
        Ok(rows.iter().map(call).collect::<Result<_, _>>()?)
    }

    async fn put_relayed_events(
        &self,
        call: &str,
        known: u64,
        events: &[String],
    ) -> Result<bool, StoreError> {
        let events: Vec<&str> = events.iter().map(String::as_str).collect();
        let row = sql::row(&self.client().await?, ADD_EVENTS, &[&call, &signed(known), &events]).await?;
        Ok(Cells(&row).get("is_wanted")?)
    }

    async fn relay_progress(&self, call: &str, known: u64) -> Result<Option<RelayProgress>, StoreError> {
        let select = "
            SELECT is_taken, ARRAY(
                SELECT body FROM relayed_events WHERE call = $1 AND number > $2 ORDER BY number
            ) AS events
            FROM relayed_calls WHERE id = $1";
        let row = sql::maybe_row(&self.client().await?, select, &[&call, &signed(known)]).await?;
        let read = |row: Row| {
            let row = Cells(&row);
            Ok(RelayProgress { is_taken: row.get("is_taken")?, events: row.get("events")? })
        };
        Ok(row.map(read).transpose().map_err(|failure: PostgresError| failure)?)
    }

    async fn remove_relayed_call(&self, call: &str) -> Result<Option<bool>, StoreError> {
        let delete = "DELETE FROM relayed_calls WHERE id = $1 RETURNING is_taken";
        let row = sql::maybe_row(&self.client().await?, delete, &[&call]).await?;
        Ok(row.map(|row| Cells(&row).get("is_taken")).transpose()?)
    }
}

fn runner(row: &Row, name: &str) -> Result<ProcessId, PostgresError> {
    Ok(ProcessId::from(Cells(row).number(name)?))
}

fn call(row: &Row) -> Result<RelayedCall, PostgresError> {
    let (sender, receiver) = (runner(row, "sender")?, runner(row, "receiver")?);
    let row = Cells(row);
    Ok(RelayedCall { id: row.text("id")?, sender, receiver, body: row.text("body")?, at: row.at("at")? })
}
