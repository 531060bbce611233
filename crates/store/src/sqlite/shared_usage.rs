//! Counts of calls and openings of circuit breakers, for the processes that share one file.

use async_trait::async_trait;
use rialto_model::{
    ids::AgentId,
    store::{
        BreakerOpening, CallCount, OPENING_SHARED_FOR, SharedUsage, StoreError, UsageReport, UsageStore,
    },
};
use rusqlite::{Connection, OptionalExtension, params};

use super::{SqliteStore, column::At};
use crate::error::SqliteError;

#[async_trait]
impl UsageStore for SqliteStore {
    async fn share_usage(&self, report: &UsageReport) -> Result<SharedUsage, StoreError> {
        let report = report.clone();
        if !report.has_news() {
            return self.read(move |connection| read(connection, &report)).await;
        }
        self.transact(move |transaction| {
            add(transaction, &report)?;
            read(transaction, &report)
        })
        .await
    }
}

/// Adds the counts and openings of a process, and removes those that are of no use any more.
pub(super) fn add(connection: &Connection, report: &UsageReport) -> Result<(), SqliteError> {
    let mut delete = connection.prepare_cached("DELETE FROM call_counts WHERE ends_at < ?1")?;
    delete.execute([report.at.as_second()])?;
    let mut add = connection.prepare_cached(
        "INSERT INTO call_counts (key, began_at, ends_at, calls) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (key, began_at) DO UPDATE SET calls = calls + excluded.calls",
    )?;
    for count in report.counts.iter().filter(|count| count.calls > 0) {
        add.execute(params![count.key, count.began_at, count.ends_at, count.calls.cast_signed()])?;
    }
    if report.openings.is_empty() {
        return Ok(());
    }
    let mut delete = connection.prepare_cached("DELETE FROM breaker_openings WHERE at < ?1")?;
    delete.execute([At(report.at - OPENING_SHARED_FOR)])?;
    let mut put = connection.prepare_cached(
        "INSERT INTO breaker_openings (agent, at, until, reason) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (agent) DO UPDATE SET at = excluded.at, until = excluded.until, reason = excluded.reason
         WHERE excluded.at > at",
    )?;
    for opening in &report.openings {
        put.execute(params![opening.agent.as_str(), At(opening.at), At(opening.until), opening.reason])?;
    }
    Ok(())
}

/// The totals that a process asks for, and the openings of all.
pub(super) fn read(connection: &Connection, report: &UsageReport) -> Result<SharedUsage, SqliteError> {
    let mut select =
        connection.prepare_cached("SELECT calls FROM call_counts WHERE key = ?1 AND began_at = ?2")?;
    let mut total = |count: &CallCount| -> rusqlite::Result<u64> {
        let calls: Option<i64> =
            select.query_row(params![count.key, count.began_at], |row| row.get(0)).optional()?;
        Ok(calls.unwrap_or(0).cast_unsigned())
    };
    let totals = report.counts.iter().map(&mut total).collect::<Result<_, _>>()?;
    let mut select =
        connection.prepare_cached("SELECT agent, at, until, reason FROM breaker_openings WHERE at >= ?1")?;
    let openings = select.query_map([At(report.at - OPENING_SHARED_FOR)], |row| {
        Ok(BreakerOpening {
            agent: AgentId::from(row.get::<_, String>(0)?),
            at: row.get::<_, At>(1)?.0,
            until: row.get::<_, At>(2)?.0,
            reason: row.get(3)?,
        })
    })?;
    Ok(SharedUsage { totals, openings: openings.collect::<Result<_, _>>()? })
}
