//! Sums of costs in the audit log.

use rialto_model::{
    call::CallerId,
    cost::{Cents, CostBy, CostQuery, CostSum},
    ids::{AgentId, OrgId},
};

use super::{
    column::{Cells, nearest},
    connection::GenericClient,
    error::PostgresError,
    sql,
};

/// One sum for each key, in the order of the keys.
pub(super) async fn sums(
    client: &impl GenericClient,
    org: &OrgId,
    query: &CostQuery,
) -> Result<Vec<CostSum>, PostgresError> {
    let key = match query.by {
        CostBy::Agent => "agent_id",
        CostBy::Skill => "verb",
        CostBy::Caller => "caller",
        CostBy::Day => {
            "to_char(to_timestamp(at / 1000000000) AT TIME ZONE 'UTC', 'YYYY-MM-DD') COLLATE \"C\""
        }
    };
    let select = format!(
        "SELECT {key} AS key, count(DISTINCT task_id) AS calls,
             count(DISTINCT task_id) FILTER (WHERE estimated_millionths IS NOT NULL) AS known,
             least(coalesce(sum(estimated_millionths), 0), 9223372036854775807)::bigint AS millionths
         FROM cost_events
         WHERE org = $1 AND ($2::bigint IS NULL OR at >= $2) AND ($3::bigint IS NULL OR at < $3)
             AND ($4::text IS NULL OR agent_id = $4) AND ($5::text IS NULL OR caller = $5)
         GROUP BY 1 ORDER BY 1"
    );
    let (since, until) = (query.since.map(nearest), query.until.map(nearest));
    let agent = query.agent.as_ref().map(AgentId::as_str);
    let caller = query.caller.as_ref().map(CallerId::as_str);
    let rows = sql::rows(client, &select, &[&org.as_str(), &since, &until, &agent, &caller]).await?;
    rows.iter().map(|row| sum(Cells(row))).collect()
}

fn sum(row: Cells<'_>) -> Result<CostSum, PostgresError> {
    let (calls, known) = (row.number("calls")?, row.number("known")?);
    Ok(CostSum {
        key: row.text("key")?,
        calls,
        unknown: calls.saturating_sub(known),
        estimated_cents: Cents::from_millionths(row.number("millionths")?),
    })
}
