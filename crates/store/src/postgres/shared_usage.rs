//! Counts of calls and openings of circuit breakers, for the nodes that share one database.

use async_trait::async_trait;
use rialto_model::{
    ids::AgentId,
    store::{
        BreakerOpening, CallCount, OPENING_SHARED_FOR, SharedUsage, StoreError, UsageReport, UsageStore,
    },
};

use super::{
    PostgresStore, begin,
    column::{Cells, nanoseconds, nearest, signed},
    connection::GenericClient,
    error::PostgresError,
    sql::{self, Value},
};

#[async_trait]
impl UsageStore for PostgresStore {
    async fn share_usage(&self, report: &UsageReport) -> Result<SharedUsage, StoreError> {
        let mut client = self.client().await?;
        if report.has_news() {
            let transaction = begin(&mut client).await?;
            add(&transaction, report).await?;
            self.commit(transaction, false).await?;
        }
        Ok(read(&client, report).await?)
    }
}

/// Adds the counts and openings of a process, and removes those that are of no use any more.
pub(super) async fn add(client: &impl GenericClient, report: &UsageReport) -> Result<(), PostgresError> {
    add_counts(client, report).await?;
    if report.openings.is_empty() {
        return Ok(());
    }
    let before = nearest(report.at - OPENING_SHARED_FOR);
    sql::execute(client, "DELETE FROM breaker_openings WHERE at < $1", &[&before]).await?;
    let put = "
        INSERT INTO breaker_openings (agent, at, until, reason) VALUES ($1, $2, $3, $4)
        ON CONFLICT (agent) DO UPDATE SET at = excluded.at, until = excluded.until, reason = excluded.reason
        WHERE excluded.at > breaker_openings.at";
    for opening in &report.openings {
        let (at, until) = (nanoseconds(opening.at)?, nanoseconds(opening.until)?);
        let values: [Value<'_>; 4] = [&opening.agent.as_str(), &at, &until, &opening.reason];
        sql::execute(client, put, &values).await?;
    }
    Ok(())
}

async fn add_counts(client: &impl GenericClient, report: &UsageReport) -> Result<(), PostgresError> {
    let mut counts: Vec<&CallCount> = report.counts.iter().filter(|count| count.calls > 0).collect();
    if counts.is_empty() {
        return Ok(());
    }
    // One that another node is just adding to is not over.
    let delete = "
        DELETE FROM call_counts WHERE (key, began_at) IN
            (SELECT key, began_at FROM call_counts WHERE ends_at < $1 FOR UPDATE SKIP LOCKED)";
    sql::execute(client, delete, &[&report.at.as_second()]).await?;
    // In one order everywhere, so that no two nodes wait for each other.
    counts.sort_unstable_by_key(|count| (&count.key, count.began_at));
    let add = "
        INSERT INTO call_counts (key, began_at, ends_at, calls)
        SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[])
        ON CONFLICT (key, began_at) DO UPDATE SET calls = call_counts.calls + excluded.calls";
    let keys: Vec<&str> = counts.iter().map(|count| count.key.as_str()).collect();
    let each = |of: fn(&CallCount) -> i64| counts.iter().map(|count| of(count)).collect::<Vec<_>>();
    let (began, ends) = (each(|count| count.began_at), each(|count| count.ends_at));
    let calls = each(|count| signed(count.calls));
    sql::execute(client, add, &[&keys, &began, &ends, &calls]).await?;
    Ok(())
}

/// The totals that a process asks for, and the openings of all.
pub(super) async fn read(
    client: &impl GenericClient,
    report: &UsageReport,
) -> Result<SharedUsage, PostgresError> {
    let mut totals = Vec::new();
    if !report.counts.is_empty() {
        let select = "
            SELECT coalesce(call_counts.calls, 0) AS calls
            FROM unnest($1::text[], $2::bigint[]) WITH ORDINALITY AS asked (key, began_at, place)
            LEFT JOIN call_counts ON call_counts.key = asked.key AND call_counts.began_at = asked.began_at
            ORDER BY place";
        let keys: Vec<&str> = report.counts.iter().map(|count| count.key.as_str()).collect();
        let began: Vec<i64> = report.counts.iter().map(|count| count.began_at).collect();
        let rows = sql::rows(client, select, &[&keys, &began]).await?;
        totals = rows.iter().map(|row| Cells(row).number("calls")).collect::<Result<_, _>>()?;
    }
    let select = "SELECT agent, at, until, reason FROM breaker_openings WHERE at >= $1";
    let rows = sql::rows(client, select, &[&nearest(report.at - OPENING_SHARED_FOR)]).await?;
    let opening = |row: Cells<'_>| {
        Ok(BreakerOpening {
            agent: AgentId::from(row.text("agent")?),
            at: row.at("at")?,
            until: row.at("until")?,
            reason: row.text("reason")?,
        })
    };
    let openings = rows.iter().map(Cells).map(opening).collect::<Result<_, PostgresError>>()?;
    Ok(SharedUsage { totals, openings })
}
