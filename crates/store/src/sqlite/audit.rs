//! The audit log: what the bus announced, in order, each record sealed together with all before it ([`crate::audit_chain`]).

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use async_trait::async_trait;
use jiff::Timestamp;
use rialto_model::{
    audit_event::AuditEvent,
    call::CallerId,
    cost::{CostQuery, CostSum},
    ids::{AgentId, OrgId, Scope, TaskId},
    store::{AuditFilter, AuditOutcome, AuditStore, ChainVerification, StoreError, StoredAuditEvent},
};
use rusqlite::{Connection, OptionalExtension, Row, ToSql, params};

use super::{
    SqliteStore,
    column::At,
    costs,
    journal_record::{EncodedAuditEvent, JournalRecord},
    meta,
};
use crate::{
    audit_chain::{ChainLink, hex, number},
    error::SqliteError,
};

/// Maximum number of records removed by one sweep, so that no writer waits long for it.
const MAX_SWEPT_RECORDS: u64 = 5_000;

/// Approximate maximum text of one page of records.
const MAX_PAGE_BYTES: usize = 1024 * 1024;

/// Keys of the last link, and of the last swept one.
const LAST_KEY: &str = "audit_last";
const SWEPT_KEY: &str = "audit_swept";

#[async_trait]
impl AuditStore for SqliteStore {
    async fn audit(&self, events: Vec<AuditEvent>) -> Result<(), StoreError> {
        self.write_journal(JournalRecord::audit(&events)?).await
    }

    async fn audit_records(
        &self,
        scope: &Scope,
        filter: &AuditFilter,
    ) -> Result<Vec<StoredAuditEvent>, StoreError> {
        let (org, filter) = (scope.org.clone(), filter.clone());
        self.read_journal(move |connection| trail(connection, &org, &filter)).await
    }

    async fn audit_after(&self, record: u64, limit: usize) -> Result<Vec<StoredAuditEvent>, StoreError> {
        self.read(move |connection| after(connection, record, limit)).await
    }

    async fn last_audit_number(&self) -> Result<u64, StoreError> {
        self.read(|connection| Ok(end(connection)?)).await
    }

    async fn verify_audit_with_progress(
        &self,
        reached: Arc<AtomicU64>,
    ) -> Result<ChainVerification, StoreError> {
        self.read_journal(move |connection| verify(connection, &reached)).await
    }

    async fn costs(&self, scope: &Scope, query: &CostQuery) -> Result<Vec<CostSum>, StoreError> {
        let (org, query) = (scope.org.clone(), query.clone());
        self.read_journal(move |connection| costs::sums(connection, &org, &query)).await
    }
}

// === impl ChainLink ===

impl ChainLink {
    fn read(connection: &Connection, key: &str) -> rusqlite::Result<Option<Self>> {
        let Some(text) = meta::text(connection, key)? else { return Ok(None) };
        // What cannot be read is no link, and then the records do not fit it.
        let link = text
            .split_once(' ')
            .and_then(|(record, seal)| Some(Self { record: record.parse().ok()?, seal: unhex(seal)? }));
        Ok(Some(link.unwrap_or(Self { record: -1, seal: [0; 32] })))
    }

    fn write(&self, connection: &Connection, key: &str) -> rusqlite::Result<()> {
        meta::set_text(connection, key, &format!("{} {}", self.record, hex(&self.seal)))
    }
}

/// Adds records to the trail.
pub(super) fn append<'a>(
    connection: &Connection,
    records: impl IntoIterator<Item = EncodedAuditEvent<'a>>,
) -> Result<(), SqliteError> {
    let mut records = records.into_iter().peekable();
    if records.peek().is_none() {
        return Ok(());
    }
    let mut link = last(connection)?;
    let mut insert = connection
        .prepare_cached("INSERT INTO audit (row, org, at, event, seal) VALUES (?1, ?2, ?3, ?4, ?5)")?;
    for EncodedAuditEvent { org, at, event } in records {
        link = link.next(org.bytes(), at, event.bytes());
        insert.execute(params![link.record, org, at, event, link.seal])?;
    }
    Ok(link.write(connection, LAST_KEY)?)
}

/// The records of an org that were asked for, newest first.
pub(super) fn trail(
    connection: &Connection,
    org: &OrgId,
    filter: &AuditFilter,
) -> Result<Vec<StoredAuditEvent>, SqliteError> {
    let (since, until) = (filter.since.map(nearest), filter.until.map(nearest));
    let outcome = filter.outcome.map(|outcome| match outcome {
        AuditOutcome::Completed => " AND event ->> 'outcome' = 'completed'",
        AuditOutcome::Failed => " AND event ->> 'outcome' = 'failed'",
        AuditOutcome::Denied => " AND event ->> '$.context.denied' = 1",
    });
    let agent = filter.agent.as_ref().map(AgentId::as_str);
    let caller = filter.caller.as_ref().map(CallerId::as_str);
    let task = filter.task.as_ref().map(TaskId::as_str);
    let narrowing: [(&str, Option<&dyn ToSql>); 6] = [
        (" AND at >= ?", since.as_ref().map(|at| at as _)),
        (" AND at < ?", until.as_ref().map(|at| at as _)),
        (" AND row < ?", filter.before.as_ref().map(|record| record as _)),
        (" AND event ->> 'agentCardId' = ?", agent.as_ref().map(|id| id as _)),
        (" AND event ->> 'caller' = ?", caller.as_ref().map(|id| id as _)),
        (" AND event ->> 'taskId' = ?", task.as_ref().map(|id| id as _)),
    ];
    let mut sql = "SELECT row, seal, event FROM audit WHERE org = ?".to_owned();
    let org = org.as_str();
    let mut values: Vec<&dyn ToSql> = vec![&org];
    for (condition, value) in narrowing {
        if let Some(value) = value {
            sql.push_str(condition);
            values.push(value);
        }
    }
    sql.push_str(outcome.unwrap_or_default());
    if filter.admin {
        sql.push_str(" AND event ->> 'phase' = 'admin'");
    }
    sql.push_str(" ORDER BY row DESC LIMIT ?");
    values.push(&filter.limit);
    let mut select = connection.prepare_cached(&sql)?;
    let mut rows = select.query(values.as_slice())?;
    let mut records = Vec::new();
    while let Some(row) = rows.next()? {
        records.push(audited(row)?);
    }
    Ok(records)
}

/// At most `limit` records behind this one, in order.
pub(super) fn after(
    connection: &Connection,
    record: u64,
    limit: usize,
) -> Result<Vec<StoredAuditEvent>, SqliteError> {
    let mut select = connection
        .prepare_cached("SELECT row, seal, event FROM audit WHERE row > ?1 ORDER BY row LIMIT ?2")?;
    let mut rows = select.query(params![i64::try_from(record).unwrap_or(i64::MAX), limit])?;
    let (mut records, mut bytes) = (Vec::new(), 0);
    while bytes < MAX_PAGE_BYTES
        && let Some(row) = rows.next()?
    {
        bytes += row.get_ref("event")?.as_bytes().map_or(0, <[u8]>::len);
        records.push(audited(row)?);
    }
    Ok(records)
}

/// Compares every record with its seal.
pub(super) fn verify(connection: &Connection, reached: &AtomicU64) -> Result<ChainVerification, SqliteError> {
    // All of it is read at one moment: records that are added meanwhile are the next look's.
    let reading = connection.unchecked_transaction()?;
    let mut link = ChainLink::read(&reading, SWEPT_KEY)?.unwrap_or(ChainLink::START);
    let swept = link.record;
    let mut select = reading.prepare("SELECT row, org, at, event, seal FROM audit ORDER BY row")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        match follow(&link, row)? {
            Ok(next) => link = next,
            Err(broken) => return Ok(broken),
        }
        reached.store(number(link.record), Ordering::Relaxed);
    }
    let last = ChainLink::read(&reading, LAST_KEY)?.unwrap_or(ChainLink::START);
    Ok(link.verdict(swept, &last))
}

/// Forgets the oldest records from before `moment`. Returns their number.
pub(super) fn sweep(connection: &Connection, moment: Timestamp) -> Result<u64, SqliteError> {
    // Announcements are written in about the order they were made; the first younger one ends the sweep.
    let swept = ChainLink::read(connection, SWEPT_KEY)?.unwrap_or(ChainLink::START).record;
    let keep_from: Option<i64> = connection
        .query_row("SELECT row FROM audit WHERE at >= ?1 ORDER BY row LIMIT 1", [At(moment)], |row| {
            row.get(0)
        })
        .optional()?;
    let last = last(connection)?.record;
    let up_to = keep_from.map_or(last, |row| row - 1).min(swept.saturating_add_unsigned(MAX_SWEPT_RECORDS));
    let seal = connection.query_row("SELECT seal FROM audit WHERE row = ?1", [up_to], |row| row.get(0));
    let Some(seal) = seal.optional()? else { return Ok(0) };
    ChainLink { record: up_to, seal }.write(connection, SWEPT_KEY)?;
    Ok(connection.execute("DELETE FROM audit WHERE row <= ?1", [up_to])? as u64)
}

/// The number of the last record.
pub(super) fn end(connection: &Connection) -> rusqlite::Result<u64> {
    Ok(number(last(connection)?.record))
}

/// The end of the trail.
fn last(connection: &Connection) -> rusqlite::Result<ChainLink> {
    Ok(ChainLink::read(connection, LAST_KEY)?.unwrap_or(ChainLink::START))
}

/// Returns whether a record is the one that follows `link`.
fn follow(link: &ChainLink, row: &Row<'_>) -> Result<Result<ChainLink, ChainVerification>, SqliteError> {
    let (record, at): (i64, i64) = (row.get("row")?, row.get("at")?);
    let broken =
        |record: i64, why: String| Ok(Err(ChainVerification::Broken { record: number(record), why }));
    if record != link.record + 1 {
        let missing = link.record + 1;
        return broken(missing, format!("record {missing} is missing"));
    }
    let text = |name| row.get_ref(name).and_then(|value| Ok(value.as_bytes()?));
    let next = link.next(text("org")?, at, text("event")?);
    let seal = row.get_ref("seal")?.as_blob().map_err(rusqlite::Error::from)?;
    if seal != next.seal {
        return broken(record, format!("record {record} is not as it was written"));
    }
    Ok(Ok(next))
}

fn audited(row: &Row<'_>) -> Result<StoredAuditEvent, SqliteError> {
    let record: u64 = row.get("row")?;
    let text = row.get_ref("event")?.as_str().map_err(rusqlite::Error::from)?;
    let event = serde_json::from_str(text)
        .map_err(|error| StoreError::Corrupt(format!("audit record {record}: {error}")))?;
    Ok(StoredAuditEvent {
        record,
        follows: record.saturating_sub(1),
        seal: hex(&row.get::<_, [u8; 32]>("seal")?),
        event,
    })
}

/// The moment in nanoseconds, or the last one that can be said like that: a search may ask for the year 3000.
pub(super) fn nearest(moment: Timestamp) -> i64 {
    let last = if moment < Timestamp::UNIX_EPOCH { i64::MIN } else { i64::MAX };
    i64::try_from(moment.as_nanosecond()).unwrap_or(last)
}

fn unhex(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(bytes)
}
