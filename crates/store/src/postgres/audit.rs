//! The audit log, to read: what the bus announced, each record sealed in the chain of the process that wrote it ([`chains`](super::chains)).
//!
//! The number of a record is given before its transaction is committed, so a lower one can appear after a higher one. Whoever reads
//! along must not miss it: each writer holds an advisory lock on the number that was given last before its own, and readers
//! go no further than the lowest of these locks ([`end`]).

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use async_trait::async_trait;
use futures::{TryStreamExt, pin_mut};
use jiff::Timestamp;
use rialto_model::{
    audit_event::AuditEvent,
    call::CallerId,
    cost::{CostQuery, CostSum},
    ids::{AgentId, OrgId, Scope, TaskId},
    store::{AuditFilter, AuditOutcome, AuditStore, ChainVerification, StoreError, StoredAuditEvent},
};
use sha2::{Digest, Sha256};
use tokio_postgres::Row;

use super::{
    PostgresStore,
    audit_chains::{CROSS_LINK, CrossLink, Filed, SealedRecords, link, start},
    column::{Cells, limit, nearest, signed},
    connection::{GenericClient, Transaction},
    costs,
    error::PostgresError,
    journal::JournalWrite,
    sql::{self, Value},
};
use crate::audit_chain::{ChainLink, hex, number};

/// Maximum number of records removed by one sweep, so that no writer waits long for it.
const MAX_SWEPT_RECORDS: i64 = 5_000;

/// Approximate maximum text of one page of records.
const MAX_PAGE_BYTES: i64 = 1024 * 1024;

/// The upper bits of the locks on numbers of records; the lower 44 are the number.
const LOCKS: i64 = 0x5_2494;

/// Advisory lock of the process that sweeps.
const SWEEPING: i64 = 0x0052_4941_4c54_4f01;

/// The number that was given last.
const SELECT_LAST_NUMBER: &str =
    "SELECT CASE WHEN is_called THEN last_value ELSE last_value - 1 END AS given FROM audit_records";

/// Holds it until the transaction ends.
pub(super) const HOLD: &str = "
    SELECT pg_advisory_xact_lock_shared(($1::bigint << 44) | CASE WHEN is_called THEN last_value ELSE last_value - 1 END),
        (SELECT number FROM generation) AS number
    FROM audit_records";

/// Link of each chain: its begin after the swept records, or its end.
type Ends = HashMap<i64, ChainLink>;

#[async_trait]
impl AuditStore for PostgresStore {
    async fn audit(&self, events: Vec<AuditEvent>) -> Result<(), StoreError> {
        self.journal.write(JournalWrite::Audit(events)).await
    }

    async fn audit_records(
        &self,
        scope: &Scope,
        filter: &AuditFilter,
    ) -> Result<Vec<StoredAuditEvent>, StoreError> {
        Ok(trail(&self.client().await?, &scope.org, filter).await?)
    }

    async fn audit_after(&self, record: u64, limit: usize) -> Result<Vec<StoredAuditEvent>, StoreError> {
        Ok(after(&self.client().await?, record, limit).await?)
    }

    async fn last_audit_number(&self) -> Result<u64, StoreError> {
        Ok(end(&self.client().await?).await?)
    }

    async fn verify_audit_with_progress(
        &self,
        reached: Arc<AtomicU64>,
    ) -> Result<ChainVerification, StoreError> {
        let mut client = self.client().await?;
        let reading = client.snapshot().await?;
        let verdict = verify(&reading, &reached).await?;
        // Ended here and now, so that it holds up nobody.
        reading.commit().await?;
        Ok(verdict)
    }

    async fn costs(&self, scope: &Scope, query: &CostQuery) -> Result<Vec<CostSum>, StoreError> {
        Ok(costs::sums(&self.client().await?, &scope.org, query).await?)
    }
}

/// Holds the number that was given last until the transaction that adds these records ends. Answers the generation.
pub(super) async fn hold(
    client: &impl GenericClient,
    sealed: &SealedRecords<'_>,
) -> Result<u64, PostgresError> {
    if sealed.is_empty() {
        return Ok(0);
    }
    Cells(&sql::row(client, HOLD, &[&LOCKS]).await?).number("number")
}

/// The number up to which no record can appear any more that is not there yet.
pub(super) async fn end(client: &impl GenericClient) -> Result<u64, PostgresError> {
    // In this order: what is given after the first look is behind what it has found.
    let given = Cells(&sql::row(client, SELECT_LAST_NUMBER, &[]).await?).number("given")?;
    let select = "
        SELECT min(((classid::bigint & 4095) << 32) | objid::bigint) AS held FROM pg_locks
        WHERE locktype = 'advisory' AND objsubid = 1 AND classid::bigint >> 12 = $1
            AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    let held = Cells(&sql::row(client, select, &[&LOCKS]).await?).maybe_number("held")?;
    Ok(held.map_or(given, |held| held.min(given)))
}

/// The records of an org that were asked for, newest first.
pub(super) async fn trail(
    client: &impl GenericClient,
    org: &OrgId,
    filter: &AuditFilter,
) -> Result<Vec<StoredAuditEvent>, PostgresError> {
    let outcome = match filter.outcome {
        None => "",
        Some(AuditOutcome::Completed) => " AND outcome = 'completed'",
        Some(AuditOutcome::Failed) => " AND outcome = 'failed'",
        Some(AuditOutcome::Denied) => " AND denied",
    };
    let admin = if filter.admin { " AND phase = 'admin'" } else { "" };
    let select = format!(
        "SELECT record, seal, event FROM audit
         WHERE org = $1 AND ($2::bigint IS NULL OR at >= $2) AND ($3::bigint IS NULL OR at < $3)
             AND ($4::bigint IS NULL OR record < $4) AND ($5::text IS NULL OR agent = $5)
             AND ($6::text IS NULL OR caller = $6) AND ($7::text IS NULL OR task = $7){outcome}{admin}
         ORDER BY record DESC LIMIT $8"
    );
    let (since, until) = (filter.since.map(nearest), filter.until.map(nearest));
    let before = filter.before.map(signed);
    let agent = filter.agent.as_ref().map(AgentId::as_str);
    let caller = filter.caller.as_ref().map(CallerId::as_str);
    let task = filter.task.as_ref().map(TaskId::as_str);
    let values: [Value<'_>; 8] =
        [&org.as_str(), &since, &until, &before, &agent, &caller, &task, &limit(filter.limit)];
    let rows = sql::rows(client, &select, &values).await?;
    rows.iter().map(audited).collect()
}

/// At most `limit` records behind this one, in order.
pub(super) async fn after(
    client: &impl GenericClient,
    record: u64,
    most: usize,
) -> Result<Vec<StoredAuditEvent>, PostgresError> {
    let end = end(client).await?;
    let select = "
        SELECT record, seal, event FROM (
            SELECT record, seal, event, sum(octet_length(event)) OVER (ORDER BY record) - octet_length(event) AS before
            FROM (
                SELECT * FROM audit WHERE record > $1 AND record <= $4 AND phase <> $5 ORDER BY record LIMIT $2
            ) AS wanted
        ) AS measured
        WHERE before < $3 ORDER BY record";
    let values: [Value<'_>; 5] = [&signed(record), &limit(most), &MAX_PAGE_BYTES, &signed(end), &CROSS_LINK];
    let rows = sql::rows(client, select, &values).await?;
    let mut records = rows.iter().map(audited).collect::<Result<Vec<_>, _>>()?;
    let swept = "SELECT coalesce(max(record), 0) AS swept FROM audit_swept";
    let swept = Cells(&sql::row(client, swept, &[]).await?).number("swept")?;
    let first = records.first().map_or(u64::MAX, |first| first.record);
    let mut follows = swept.min(first.saturating_sub(1)).max(record);
    for record in &mut records {
        record.follows = std::mem::replace(&mut follows, record.record);
    }
    Ok(records)
}

/// Compares every record with its seal. The transaction sees all of it at one moment: records that are added meanwhile are
/// the next look's.
pub(super) async fn verify(
    reading: &Transaction<'_>,
    reached: &AtomicU64,
) -> Result<ChainVerification, PostgresError> {
    let swept = links(reading, "SELECT chain, number, seal FROM audit_swept").await?;
    let last =
        links(reading, "SELECT chain, last_number AS number, last_seal AS seal FROM audit_chains").await?;
    let mut ends: Ends = last.keys().map(|&chain| (chain, begin(&swept, chain))).collect();
    let mut crossings = crossings(reading, &swept).await?;
    let (mut records, mut newest) = (0, 0);
    // Numbers of one chain grow with those of the whole trail.
    let rows = sql::stream(reading, "SELECT * FROM audit ORDER BY record", &[]).await?;
    pin_mut!(rows);
    while let Some(row) = rows.try_next().await? {
        let chain: i64 = row.try_get("chain")?;
        let at = *ends.entry(chain).or_insert_with(|| begin(&swept, chain));
        let next = match follow(chain, &at, &row)? {
            Ok(next) => next,
            Err(broken) => return Ok(broken),
        };
        if crossings.remove(&(chain, next.record)).is_some_and(|seal| seal != hex(&next.seal)) {
            let why =
                format!("record {} is not the one that other chains have seen", named(chain, next.record));
            return Ok(ChainVerification::Broken { record: number(next.record), why });
        }
        ends.insert(chain, next);
        newest = row.try_get("record")?;
        records += u64::from(row.try_get::<_, &str>("phase")? != CROSS_LINK);
        reached.store(number(newest), Ordering::Relaxed);
    }
    for (&chain, end) in &ends {
        let last = last.get(&chain).copied().unwrap_or_else(|| start(chain));
        if let broken @ ChainVerification::Broken { .. } = end.verdict(begin(&swept, chain).record, &last) {
            return Ok(broken);
        }
    }
    if let Some((&(chain, record), _)) = crossings.iter().next() {
        let why = format!("record {} is missing, which other chains have seen", named(chain, record));
        return Ok(ChainVerification::Broken { record: number(record), why });
    }
    if newest == 0 {
        newest = sql::row(reading, SELECT_LAST_NUMBER, &[]).await?.try_get("given")?;
    }
    Ok(ChainVerification::Sound { records, last: number(newest), seal: seal_of(&ends) })
}

/// Forgets the oldest records from before `moment`. Returns their number. If another process is sweeping, nothing is done.
pub(super) async fn sweep(client: &impl GenericClient, moment: Timestamp) -> Result<u64, PostgresError> {
    let lock = sql::row(client, "SELECT pg_try_advisory_xact_lock($1)", &[&SWEEPING]).await?;
    if !lock.try_get::<_, bool>(0)? {
        return Ok(0);
    }
    let end = signed(end(client).await?);
    // Announcements are written in about the order they were made; the first younger one ends the sweep.
    let select = "SELECT record FROM audit WHERE at >= $1 ORDER BY record LIMIT 1";
    let keep_from = sql::maybe_row(client, select, &[&nearest(moment)]).await?;
    let keep_from: Option<i64> = keep_from.map(|row| row.try_get(0)).transpose()?;
    let most = keep_from.map_or(end, |record| record - 1).min(end);
    let select = "
        SELECT max(record) AS up_to FROM (SELECT record FROM audit WHERE record <= $1 ORDER BY record LIMIT $2) AS oldest";
    let up_to: Option<i64> =
        sql::row(client, select, &[&most, &MAX_SWEPT_RECORDS]).await?.try_get("up_to")?;
    let Some(up_to) = up_to else { return Ok(0) };
    let remember = "
        INSERT INTO audit_swept (chain, number, seal, record)
        SELECT DISTINCT ON (chain) chain, number, seal, record FROM audit WHERE record <= $1 ORDER BY chain, record DESC
        ON CONFLICT (chain) DO UPDATE SET number = excluded.number, seal = excluded.seal, record = excluded.record";
    sql::execute(client, remember, &[&up_to]).await?;
    sql::execute(client, "DELETE FROM audit WHERE record <= $1", &[&up_to]).await
}

/// Returns whether a record is the one that follows `link` in its chain.
fn follow(
    chain: i64,
    link: &ChainLink,
    row: &Row,
) -> Result<Result<ChainLink, ChainVerification>, PostgresError> {
    let (record, at): (i64, i64) = (row.try_get("number")?, row.try_get("at")?);
    let broken = |record: i64, why: &str| {
        let why = format!("record {} {why}", named(chain, record));
        Ok(Err(ChainVerification::Broken { record: number(record), why }))
    };
    if record != link.record + 1 {
        return broken(link.record + 1, "is missing");
    }
    let (org, text): (&str, &str) = (row.try_get("org")?, row.try_get("event")?);
    let next = link.next(org.as_bytes(), at, text.as_bytes());
    if row.try_get::<_, &[u8]>("seal")? != next.seal {
        return broken(record, "is not as it was written");
    }
    // What it is searched by is not sealed, but says the same.
    let filed = Filed::read(row)?;
    let is_filed = if filed == Filed::cross_link() {
        serde_json::from_str::<Vec<CrossLink>>(text).is_ok()
    } else {
        serde_json::from_str::<AuditEvent>(text).is_ok_and(|event| filed == Filed::of(&event))
    };
    if !is_filed {
        return broken(record, "is not filed under what it says");
    }
    Ok(Ok(next))
}

/// Cross links in the records, by chain and number, as far as they were not swept.
async fn crossings(
    reading: &Transaction<'_>,
    swept: &Ends,
) -> Result<HashMap<(i64, i64), String>, PostgresError> {
    let rows = sql::rows(reading, "SELECT event FROM audit WHERE phase = 'cross-link'", &[]).await?;
    let mut crossings = HashMap::new();
    for row in &rows {
        // What cannot be read is found when its record is compared.
        let told: Vec<CrossLink> = serde_json::from_str(row.try_get("event")?).unwrap_or_default();
        let kept = told.into_iter().filter(|told| told.number > begin(swept, told.chain).record);
        crossings.extend(kept.map(|told| ((told.chain, told.number), told.seal)));
    }
    Ok(crossings)
}

async fn links(client: &impl GenericClient, select: &str) -> Result<Ends, PostgresError> {
    let rows = sql::rows(client, select, &[]).await?;
    rows.iter().map(|row| Ok((row.try_get("chain")?, link(row, "number", "seal")?))).collect()
}

/// First link of a chain after the swept records.
fn begin(swept: &Ends, chain: i64) -> ChainLink {
    swept.get(&chain).copied().unwrap_or_else(|| start(chain))
}

/// One seal for the whole trail: that of its chain, or of all of them together.
fn seal_of(ends: &Ends) -> String {
    let mut used: Vec<_> = ends.iter().filter(|(_, end)| end.record > 0).collect();
    used.sort_unstable_by_key(|(chain, _)| **chain);
    match used[..] {
        [] => hex(&ChainLink::START.seal),
        [(_, end)] => hex(&end.seal),
        _ => {
            let mut hasher = Sha256::new();
            for (chain, end) in used {
                hasher.update(chain.to_le_bytes());
                hasher.update(end.record.to_le_bytes());
                hasher.update(end.seal);
            }
            hex(&hasher.finalize())
        }
    }
}

/// Converts a row into a record.
fn named(chain: i64, record: i64) -> String {
    if chain == 0 { record.to_string() } else { format!("{record} of chain {chain}") }
}

fn audited(row: &Row) -> Result<StoredAuditEvent, PostgresError> {
    let record = Cells(row).number("record")?;
    let event = serde_json::from_str(row.try_get("event")?)
        .map_err(|error| StoreError::Corrupt(format!("audit record {record}: {error}")))?;
    Ok(StoredAuditEvent { record, follows: record.saturating_sub(1), seal: hex(row.try_get("seal")?), event })
}
