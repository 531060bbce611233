//! Calls that one server of this file passes on to another.

use async_trait::async_trait;
use rialto_model::{
    ids::ProcessId,
    relay::{MAX_RELAYED_CALL_AGE, RelayProgress, RelayedCall},
    store::{RelayStore, StoreError},
};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::{SqliteStore, column::At};
use crate::error::SqliteError;

#[async_trait]
impl RelayStore for SqliteStore {
    async fn hold_program(&self, program: &str, candidates: &[ProcessId]) -> Result<ProcessId, StoreError> {
        let (program, candidates) = (program.to_owned(), candidates.to_vec());
        self.transact(move |transaction| hold(transaction, &program, &candidates)).await
    }

    async fn program_holders(&self) -> Result<Vec<(String, ProcessId)>, StoreError> {
        self.read(|connection| {
            let mut select = connection.prepare_cached("SELECT program, runner FROM program_holders")?;
            let rows = select.query_map([], |row| Ok((row.get(0)?, runner(row, 1)?)))?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
        .await
    }

    async fn put_relayed_call(&self, call: &RelayedCall) -> Result<(), StoreError> {
        let call = call.clone();
        self.transact(move |transaction| put(transaction, &call)).await
    }

    async fn take_relayed_calls(&self, receiver: ProcessId) -> Result<Vec<RelayedCall>, StoreError> {
        let number = receiver.get().cast_signed();
        let is_waiting = self.read(move |connection| {
            let mut select = connection.prepare_cached(
                "SELECT EXISTS (SELECT 1 FROM relayed_calls WHERE receiver = ?1 AND is_taken = 0)",
            )?;
            Ok(select.query_row([number], |row| row.get(0))?)
        });
        if !is_waiting.await? {
            return Ok(Vec::new());
        }
        self.transact(move |transaction| take(transaction, number)).await
    }

    async fn put_relayed_events(
        &self,
        call: &str,
        known: u64,
        events: &[String],
    ) -> Result<bool, StoreError> {
        let (call, events) = (call.to_owned(), events.to_vec());
        if events.is_empty() {
            return self.read(move |connection| is_there(connection, &call)).await;
        }
        self.transact(move |transaction| add(transaction, &call, known, &events)).await
    }

    async fn relay_progress(&self, call: &str, known: u64) -> Result<Option<RelayProgress>, StoreError> {
        let call = call.to_owned();
        self.read(move |connection| progress(connection, &call, known)).await
    }

    async fn remove_relayed_call(&self, call: &str) -> Result<Option<bool>, StoreError> {
        let call = call.to_owned();
        self.transact(move |transaction| {
            let mut delete =
                transaction.prepare_cached("DELETE FROM relayed_calls WHERE id = ?1 RETURNING is_taken")?;
            Ok(delete.query_row([call], |row| row.get(0)).optional()?)
        })
        .await
    }
}

fn runner(row: &Row<'_>, column: usize) -> rusqlite::Result<ProcessId> {
    row.get::<_, i64>(column).map(i64::cast_unsigned).map(ProcessId::from)
}

fn hold(connection: &Connection, program: &str, candidates: &[ProcessId]) -> Result<ProcessId, SqliteError> {
    let mut select = connection.prepare_cached("SELECT runner FROM program_holders WHERE program = ?1")?;
    let known = select.query_row([program], |row| runner(row, 0)).optional()?;
    if let Some(known) = known.filter(|known| candidates.contains(known)) {
        return Ok(known);
    }
    let first = candidates.first().copied().unwrap_or(ProcessId::NOBODY);
    let mut replace = connection
        .prepare_cached("INSERT OR REPLACE INTO program_holders (program, runner) VALUES (?1, ?2)")?;
    replace.execute(params![program, first.get().cast_signed()])?;
    Ok(first)
}

fn put(connection: &Connection, call: &RelayedCall) -> Result<(), SqliteError> {
    let old = call.at.checked_sub(MAX_RELAYED_CALL_AGE).unwrap_or(call.at);
    connection.prepare_cached("DELETE FROM relayed_calls WHERE at < ?1")?.execute([At(old)])?;
    let mut insert = connection.prepare_cached(
        "INSERT INTO relayed_calls (id, sender, receiver, body, at) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    let (sender, receiver) = (call.sender.get().cast_signed(), call.receiver.get().cast_signed());
    insert.execute(params![call.id, sender, receiver, call.body, At(call.at)])?;
    Ok(())
}

fn take(connection: &Connection, receiver: i64) -> Result<Vec<RelayedCall>, SqliteError> {
    let mut update = connection.prepare_cached(
        "UPDATE relayed_calls SET is_taken = 1 WHERE receiver = ?1 AND is_taken = 0
         RETURNING id, sender, receiver, body, at",
    )?;
    let read = |row: &Row<'_>| {
        Ok(RelayedCall {
            id: row.get(0)?,
            sender: runner(row, 1)?,
            receiver: runner(row, 2)?,
            body: row.get(3)?,
            at: row.get::<_, At>(4)?.0,
        })
    };
    let calls = update.query_map([receiver], read)?.collect::<rusqlite::Result<_>>()?;
    Ok(calls)
}

fn is_there(connection: &Connection, call: &str) -> Result<bool, SqliteError> {
    let mut select =
        connection.prepare_cached("SELECT EXISTS (SELECT 1 FROM relayed_calls WHERE id = ?1)")?;
    Ok(select.query_row([call], |row| row.get(0))?)
}

fn add(connection: &Connection, call: &str, known: u64, events: &[String]) -> Result<bool, SqliteError> {
    if !is_there(connection, call)? {
        return Ok(false);
    }
    // What was added by an attempt that was not answered is there already.
    let mut insert = connection
        .prepare_cached("INSERT OR IGNORE INTO relayed_events (call, number, body) VALUES (?1, ?2, ?3)")?;
    for (number, event) in (known + 1..).zip(events) {
        insert.execute(params![call, number.cast_signed(), event])?;
    }
    Ok(true)
}

fn progress(connection: &Connection, call: &str, known: u64) -> Result<Option<RelayProgress>, SqliteError> {
    let mut select = connection.prepare_cached("SELECT is_taken FROM relayed_calls WHERE id = ?1")?;
    let is_taken: Option<bool> = select.query_row([call], |row| row.get(0)).optional()?;
    let Some(is_taken) = is_taken else { return Ok(None) };
    let mut select = connection
        .prepare_cached("SELECT body FROM relayed_events WHERE call = ?1 AND number > ?2 ORDER BY number")?;
    let events = select.query_map(params![call, known.cast_signed()], |row| row.get(0))?;
    Ok(Some(RelayProgress { is_taken, events: events.collect::<rusqlite::Result<_>>()? }))
}
