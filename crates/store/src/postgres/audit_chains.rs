//! The chains that audit records are sealed in: one for each process that writes.
//!
//! A process remembers where its chain ends, and each commit moves that end on only from there. So nobody waits for a lock, and a chain
//! that another process has taken meanwhile is noticed before anything is written to it. From time to time a chain says where the
//! others end ([`CrossLink`]): none of them can be removed as a whole.

use std::time::Duration;

use jiff::Timestamp;
use rialto_model::audit_event::{AuditEvent, InvocationOutcome};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokio::time::Instant;
use tokio_postgres::Row;

use super::{
    column::{json, nanoseconds, signed},
    connection::{GenericClient, PgClient},
    error::PostgresError,
    sql::{self, Value},
};
use crate::audit_chain::{ChainLink, hex};

/// A chain that was not used for so long can be taken by another process.
const REUSE_AFTER: Duration = Duration::from_secs(60);

/// Interval of cross links to the ends of other chains.
const CROSS_LINK_INTERVAL: Duration = Duration::from_secs(60);

/// The phase of a record that says where other chains end. It is no event: nobody is shown it.
pub(super) const CROSS_LINK: &str = "cross-link";

/// Moves the end of a chain on.
pub(super) const ADVANCE: &str = "
    UPDATE audit_chains SET last_number = $1, last_seal = $2, used_at = $3
    WHERE chain = $4 AND last_number = $5 AND last_seal = $6";

/// Adds records. Their places in the whole trail are given here, in their order.
pub(super) const INSERT: &str = "
    INSERT INTO audit (chain, number, org, at, event, phase, verb, agent, caller, task, outcome, denied,
        estimated_millionths, seal)
    SELECT $1, * FROM unnest($2::bigint[], $3::text[], $4::bigint[], $5::text[], $6::text[], $7::text[], $8::text[],
        $9::text[], $10::text[], $11::text[], $12::boolean[], $13::bigint[], $14::bytea[])";

/// The chain of this process.
pub(super) struct Chain {
    id: i64,
    /// Its last record.
    end: ChainLink,
    /// When it says next where the others end.
    cross_links_at: Instant,
}

/// End of another chain when a record was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CrossLink {
    pub(super) chain: i64,
    pub(super) number: i64,
    pub(super) seal: String,
}

/// Searchable columns of a record. They are taken from the event, and verification compares them with it.
#[derive(Default, PartialEq, Eq)]
pub(super) struct Filed<'a> {
    phase: &'a str,
    verb: &'a str,
    agent: &'a str,
    caller: &'a str,
    task: &'a str,
    outcome: Option<&'a str>,
    denied: bool,
    estimated_millionths: Option<i64>,
}

/// A record before it is sealed.
struct UnsealedRecord<'a> {
    org: &'a str,
    at: i64,
    text: String,
    filed: Filed<'a>,
}

/// Records behind the end of a chain, sealed.
pub(super) struct SealedRecords<'a> {
    records: Vec<UnsealedRecord<'a>>,
    links: Vec<ChainLink>,
}

// === impl Chain ===

impl Chain {
    /// Takes a chain: this one, if it is given and nobody else uses it, or else one that was not used for a while, or else a new one.
    pub(super) async fn acquire(
        client: &PgClient,
        preferred: Option<i64>,
        now: Timestamp,
    ) -> Result<Self, PostgresError> {
        let cross_links_at = Instant::now();
        if let Some(id) = preferred {
            let select = "SELECT chain, last_number, last_seal FROM audit_chains WHERE chain = $1";
            if let Some(row) = sql::maybe_row(client, select, &[&id]).await? {
                return Ok(Self { id, end: link(&row, "last_number", "last_seal")?, cross_links_at });
            }
        }
        let now = nanoseconds(now)?;
        let unused = now.saturating_sub(i64::try_from(REUSE_AFTER.as_nanos()).unwrap_or(i64::MAX));
        let take = "
            UPDATE audit_chains SET used_at = $1
            WHERE chain = (SELECT chain FROM audit_chains WHERE used_at < $2 ORDER BY chain LIMIT 1 FOR UPDATE SKIP LOCKED)
            RETURNING chain, last_number, last_seal";
        if let Some(row) = sql::maybe_row(client, take, &[&now, &unused]).await? {
            return Ok(Self {
                id: row.try_get("chain")?,
                end: link(&row, "last_number", "last_seal")?,
                cross_links_at,
            });
        }
        loop {
            let row =
                sql::row(client, "SELECT coalesce(max(chain), 0) + 1 AS next FROM audit_chains", &[]).await?;
            let id: i64 = row.try_get("next")?;
            let end = start(id);
            let insert = "
                INSERT INTO audit_chains (chain, last_number, last_seal, used_at)
                VALUES ($1, $2, $3, $4) ON CONFLICT (chain) DO NOTHING";
            let values: [Value<'_>; 4] = [&id, &end.record, &end.seal.to_vec(), &now];
            if sql::execute(client, insert, &values).await? == 1 {
                return Ok(Self { id, end, cross_links_at });
            }
        }
    }

    pub(super) const fn id(&self) -> i64 {
        self.id
    }

    /// Ends of the other chains, if a cross link is due.
    pub(super) async fn read_cross_links(&self, client: &PgClient) -> Result<Vec<CrossLink>, PostgresError> {
        if Instant::now() < self.cross_links_at {
            return Ok(Vec::new());
        }
        let select =
            "SELECT chain, last_number, last_seal FROM audit_chains WHERE chain <> $1 AND last_number > 0";
        let rows = sql::rows(client, select, &[&self.id]).await?;
        let read = |row: &Row| {
            let end = link(row, "last_number", "last_seal")?;
            Ok(CrossLink { chain: row.try_get("chain")?, number: end.record, seal: hex(&end.seal) })
        };
        rows.iter().map(read).collect()
    }

    /// Seals events behind its end, and before them where the other chains end.
    pub(super) fn seal<'a>(
        &self,
        cross_links: &[CrossLink],
        events: &[&'a AuditEvent],
        now: Timestamp,
    ) -> Result<SealedRecords<'a>, PostgresError> {
        let mut records = Vec::with_capacity(events.len() + 1);
        if !cross_links.is_empty() {
            let filed = Filed::cross_link();
            records.push(UnsealedRecord { org: "", at: nanoseconds(now)?, text: json(&cross_links)?, filed });
        }
        for event in events {
            records.push(UnsealedRecord::of(event)?);
        }
        let mut links = Vec::with_capacity(records.len());
        let mut end = self.end;
        for record in &records {
            end = end.next(record.org.as_bytes(), record.at, record.text.as_bytes());
            links.push(end);
        }
        Ok(SealedRecords { records, links })
    }

    /// Moves its end on in the database, from where we think it is. Returns whether it was there.
    pub(super) async fn advance(
        &self,
        client: &impl GenericClient,
        sealed: &SealedRecords<'_>,
        now: Timestamp,
    ) -> Result<bool, PostgresError> {
        let Some(last) = sealed.links.last() else { return Ok(true) };
        let values: [Value<'_>; 6] = [
            &last.record,
            &last.seal.to_vec(),
            &nanoseconds(now)?,
            &self.id,
            &self.end.record,
            &self.end.seal.to_vec(),
        ];
        Ok(sql::execute(client, ADVANCE, &values).await? == 1)
    }

    /// Goes on behind these records: they are committed.
    pub(super) fn on_committed(&mut self, sealed: &SealedRecords<'_>) {
        if let Some(last) = sealed.links.last() {
            self.end = *last;
        }
        if Instant::now() >= self.cross_links_at {
            self.cross_links_at = Instant::now() + CROSS_LINK_INTERVAL;
        }
    }
}

// === impl SealedRecords ===

impl SealedRecords<'_> {
    pub(super) const fn is_empty(&self) -> bool {
        self.links.is_empty()
    }

    pub(super) async fn insert(&self, client: &impl GenericClient, chain: i64) -> Result<(), PostgresError> {
        if self.is_empty() {
            return Ok(());
        }
        let numbers: Vec<i64> = self.links.iter().map(|link| link.record).collect();
        let seals: Vec<&[u8]> = self.links.iter().map(|link| link.seal.as_slice()).collect();
        let values: [Value<'_>; 14] = [
            &chain,
            &numbers,
            &self.each(|record| record.org),
            &self.each(|record| record.at),
            &self.each(|record| record.text.as_str()),
            &self.each(|record| record.filed.phase),
            &self.each(|record| record.filed.verb),
            &self.each(|record| record.filed.agent),
            &self.each(|record| record.filed.caller),
            &self.each(|record| record.filed.task),
            &self.each(|record| record.filed.outcome),
            &self.each(|record| record.filed.denied),
            &self.each(|record| record.filed.estimated_millionths),
            &seals,
        ];
        sql::execute(client, INSERT, &values).await.map(drop)
    }

    fn each<'b, T>(&'b self, of: impl Fn(&'b UnsealedRecord<'b>) -> T) -> Vec<T> {
        self.records.iter().map(of).collect()
    }
}

// === impl UnsealedRecord ===

impl<'a> UnsealedRecord<'a> {
    fn of(event: &'a AuditEvent) -> Result<Self, PostgresError> {
        Ok(Self {
            org: &event.verb.org_id,
            at: nanoseconds(event.emitted_at)?,
            text: serde_json::to_string(event).map_err(PostgresError::corrupt)?,
            filed: Filed::of(event),
        })
    }
}

// === impl Filed ===

impl<'a> Filed<'a> {
    /// That of a record that says where other chains end.
    pub(super) fn cross_link() -> Self {
        Self { phase: CROSS_LINK, ..Self::default() }
    }

    pub(super) fn of(event: &'a AuditEvent) -> Self {
        Self {
            phase: event.phase.as_str(),
            verb: &event.verb.verb,
            agent: &event.verb.agent_card_id,
            caller: &event.verb.caller,
            task: &event.verb.task_id,
            outcome: event.outcome.map(|outcome| match outcome {
                InvocationOutcome::Completed => "completed",
                InvocationOutcome::Waiting => "waiting",
                InvocationOutcome::Failed => "failed",
            }),
            denied: event.context.denied,
            estimated_millionths: event.estimated_cents.map(|cents| signed(cents.millionths())),
        }
    }

    pub(super) fn read(row: &'a Row) -> Result<Self, PostgresError> {
        Ok(Self {
            phase: row.try_get("phase")?,
            verb: row.try_get("verb")?,
            agent: row.try_get("agent")?,
            caller: row.try_get("caller")?,
            task: row.try_get("task")?,
            outcome: row.try_get("outcome")?,
            denied: row.try_get("denied")?,
            estimated_millionths: row.try_get("estimated_millionths")?,
        })
    }
}

/// Before the first record of a chain. Chains begin with different seals, so that none can be passed off as another.
pub(super) fn start(chain: i64) -> ChainLink {
    if chain == 0 {
        return ChainLink::START;
    }
    ChainLink { record: 0, seal: Sha256::digest(chain.to_le_bytes()).into() }
}

/// A link that stands in two columns. What cannot be read is no link, and then the records do not fit it.
pub(super) fn link(row: &Row, number: &str, seal: &str) -> Result<ChainLink, PostgresError> {
    let bytes: &[u8] = row.try_get(seal)?;
    Ok(ChainLink { record: row.try_get(number)?, seal: bytes.try_into().unwrap_or([0xff; 32]) })
}
