//! The audit trail: what the bus announced, in order, each record sealed together with all before it ([`crate::chain`]).
//!
//! Whoever adds to it, in whichever process, holds the row with the end of the trail until the commit. So numbers have no
//! gaps, and they appear in their order.

use std::sync::atomic::{AtomicU64, Ordering};

use deadpool_postgres::{GenericClient, Transaction};
use futures::{TryStreamExt, pin_mut};
use jiff::Timestamp;
use rialto_model::{
    call::CallerId,
    ids::{AgentId, OrgId, TaskId},
    store::{AuditFilter, AuditOutcome, Audited, StoreError, Verdict},
    verb::{Outcome, VerbEvent},
};
use tokio_postgres::Row;

use super::{
    column::{Cells, limit, nanoseconds, nearest, signed},
    snag::Snag,
    sql::{self, Value},
};
use crate::chain::{Link, hex, number};

/// How many records go at most in one sweep, so that nobody waits long for it.
const BATCH: i64 = 5_000;

/// Whoever reads along is given no more text than about this at once.
const MUCH: i64 = 1024 * 1024;

/// What a record is searched by. It is taken from the event, and compared with it again by whoever verifies.
#[derive(PartialEq, Eq)]
struct Filed<'a> {
    phase: &'a str,
    verb: &'a str,
    agent: &'a str,
    caller: &'a str,
    task: &'a str,
    outcome: Option<&'a str>,
    denied: bool,
    estimated_millionths: Option<i64>,
}

// === impl Filed ===

impl<'a> Filed<'a> {
    fn of(event: &'a VerbEvent) -> Self {
        Self {
            phase: event.phase.as_str(),
            verb: &event.verb.verb,
            agent: &event.verb.agent_card_id,
            caller: &event.verb.caller,
            task: &event.verb.task_id,
            outcome: event.outcome.map(|outcome| match outcome {
                Outcome::Completed => "completed",
                Outcome::Waiting => "waiting",
                Outcome::Failed => "failed",
            }),
            denied: event.context.denied,
            estimated_millionths: event.estimated_cents.map(|cents| signed(cents.millionths())),
        }
    }

    fn read(row: &'a Row) -> Result<Self, Snag> {
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

/// The end of the trail, which is ours until the transaction ends. The number beside it is the generation.
pub(super) async fn hold(client: &impl GenericClient) -> Result<(Link, u64), Snag> {
    let select =
        "SELECT last_record, last_seal, number FROM audit_chain, generation FOR UPDATE OF audit_chain";
    let row = sql::row(client, select, &[]).await?;
    Ok((link(&row, "last_record", "last_seal")?, Cells(&row).number("number")?))
}

/// Adds records behind the end of the trail, which is held.
pub(super) async fn append(
    client: &impl GenericClient,
    mut link: Link,
    events: &[&VerbEvent],
) -> Result<(), Snag> {
    if events.is_empty() {
        return Ok(());
    }
    let (mut records, mut moments, mut texts, mut seals) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for event in events {
        let mut text = Vec::new();
        event.record(&mut text);
        let (text, at) = (String::from_utf8(text).map_err(Snag::corrupt)?, nanoseconds(event.emitted_at)?);
        link = link.next(event.verb.org_id.as_bytes(), at, text.as_bytes());
        records.push(link.record);
        moments.push(at);
        texts.push(text);
        seals.push(link.seal.to_vec());
    }
    let filed: Vec<Filed<'_>> = events.iter().map(|event| Filed::of(event)).collect();
    let orgs: Vec<&str> = events.iter().map(|event| &*event.verb.org_id).collect();
    let insert = "
        INSERT INTO audit (record, org, at, event, phase, verb, agent, caller, task, outcome, denied,
            estimated_millionths, seal)
        SELECT * FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::text[],
            $8::text[], $9::text[], $10::text[], $11::boolean[], $12::bigint[], $13::bytea[])";
    let values: [Value<'_>; 13] = [
        &records,
        &orgs,
        &moments,
        &texts,
        &each(&filed, |filed| filed.phase),
        &each(&filed, |filed| filed.verb),
        &each(&filed, |filed| filed.agent),
        &each(&filed, |filed| filed.caller),
        &each(&filed, |filed| filed.task),
        &each(&filed, |filed| filed.outcome),
        &each(&filed, |filed| filed.denied),
        &each(&filed, |filed| filed.estimated_millionths),
        &seals,
    ];
    let update = "UPDATE audit_chain SET last_record = $1, last_seal = $2";
    let (seal, last) = (link.seal.to_vec(), link.record);
    let end: [Value<'_>; 2] = [&last, &seal];
    futures::try_join!(sql::execute(client, insert, &values), sql::execute(client, update, &end)).map(drop)
}

/// The records of an org that were asked for, newest first.
pub(super) async fn trail(
    client: &impl GenericClient,
    org: &OrgId,
    filter: &AuditFilter,
) -> Result<Vec<Audited>, Snag> {
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
    audited(&sql::rows(client, &select, &values).await?)
}

/// At most so many records behind this one, in order.
pub(super) async fn after(
    client: &impl GenericClient,
    record: u64,
    most: usize,
) -> Result<Vec<Audited>, Snag> {
    let select = "
        SELECT record, seal, event FROM (
            SELECT record, seal, event, sum(octet_length(event)) OVER (ORDER BY record) - octet_length(event) AS before
            FROM (SELECT * FROM audit WHERE record > $1 ORDER BY record LIMIT $2) AS wanted
        ) AS measured
        WHERE before < $3 ORDER BY record";
    audited(&sql::rows(client, select, &[&signed(record), &limit(most), &MUCH]).await?)
}

/// The number of the last record.
pub(super) async fn end(client: &impl GenericClient) -> Result<u64, Snag> {
    let row = sql::row(client, "SELECT last_record FROM audit_chain", &[]).await?;
    Cells(&row).number("last_record")
}

/// Compares every record with its seal. The transaction sees all of it at one moment: records that are added meanwhile are
/// the next look's.
pub(super) async fn verify(reading: &Transaction<'_>, reached: &AtomicU64) -> Result<Verdict, Snag> {
    let chain = sql::row(reading, "SELECT * FROM audit_chain", &[]).await?;
    let mut at = link(&chain, "swept_record", "swept_seal")?;
    let swept = at.record;
    let select = reading.prepare("SELECT * FROM audit ORDER BY record").await?;
    let rows = reading.query_raw(&select, std::iter::empty::<i64>()).await?;
    pin_mut!(rows);
    while let Some(row) = rows.try_next().await? {
        match follow(&at, &row)? {
            Ok(next) => at = next,
            Err(broken) => return Ok(broken),
        }
        reached.store(number(at.record), Ordering::Relaxed);
    }
    Ok(at.verdict(swept, &link(&chain, "last_record", "last_seal")?))
}

/// Forgets the oldest records from before `moment`. Answers how many went.
pub(super) async fn sweep(client: &impl GenericClient, moment: Timestamp) -> Result<u64, Snag> {
    let chain = sql::row(client, "SELECT * FROM audit_chain FOR UPDATE", &[]).await?;
    let (last, swept) =
        (link(&chain, "last_record", "last_seal")?, link(&chain, "swept_record", "swept_seal")?);
    // Announcements are written in about the order they were made; the first younger one ends the sweep.
    let select = "SELECT record FROM audit WHERE at >= $1 ORDER BY record LIMIT 1";
    let keep_from = sql::maybe_row(client, select, &[&nearest(moment)]).await?;
    let keep_from: Option<i64> = keep_from.map(|row| row.try_get(0)).transpose()?;
    let up_to = keep_from.map_or(last.record, |record| record - 1).min(swept.record.saturating_add(BATCH));
    let Some(row) =
        sql::maybe_row(client, "SELECT record, seal FROM audit WHERE record = $1", &[&up_to]).await?
    else {
        return Ok(0);
    };
    let swept = link(&row, "record", "seal")?;
    let update = "UPDATE audit_chain SET swept_record = $1, swept_seal = $2";
    sql::execute(client, update, &[&swept.record, &swept.seal.to_vec()]).await?;
    sql::execute(client, "DELETE FROM audit WHERE record <= $1", &[&up_to]).await
}

/// Whether a record is the one that follows `link`.
fn follow(link: &Link, row: &Row) -> Result<Result<Link, Verdict>, Snag> {
    let (record, at): (i64, i64) = (row.try_get("record")?, row.try_get("at")?);
    let broken = |record: i64, why: String| Ok(Err(Verdict::Broken { record: number(record), why }));
    if record != link.record + 1 {
        let missing = link.record + 1;
        return broken(missing, format!("record {missing} is missing"));
    }
    let (org, text): (&str, &str) = (row.try_get("org")?, row.try_get("event")?);
    let next = link.next(org.as_bytes(), at, text.as_bytes());
    if row.try_get::<_, &[u8]>("seal")? != next.seal {
        return broken(record, format!("record {record} is not as it was written"));
    }
    // What it is searched by is not sealed, but says the same.
    let is_filed = serde_json::from_str::<VerbEvent>(text)
        .is_ok_and(|event| Filed::read(row).is_ok_and(|filed| filed == Filed::of(&event)));
    if !is_filed {
        return broken(record, format!("record {record} is not filed under what it says"));
    }
    Ok(Ok(next))
}

fn audited(rows: &[Row]) -> Result<Vec<Audited>, Snag> {
    let read = |row: &Row| {
        let record = Cells(row).number("record")?;
        let event = serde_json::from_str(row.try_get("event")?)
            .map_err(|error| StoreError::Corrupt(format!("audit record {record}: {error}")))?;
        Ok(Audited { record, seal: hex(row.try_get("seal")?), event })
    };
    rows.iter().map(read).collect()
}

fn link(row: &Row, record: &str, seal: &str) -> Result<Link, Snag> {
    let bytes: &[u8] = row.try_get(seal)?;
    // What cannot be read is no link, and then the records do not fit it.
    let seal = bytes.try_into().unwrap_or([0xff; 32]);
    Ok(Link { record: row.try_get(record)?, seal })
}

fn each<'a, 'b, T>(filed: &'b [Filed<'a>], of: impl Fn(&'b Filed<'a>) -> T) -> Vec<T> {
    filed.iter().map(of).collect()
}
