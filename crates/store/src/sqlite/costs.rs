//! Sums of costs in the audit log.

use rialto_model::{
    call::CallerId,
    cost::{Cents, CostBy, CostQuery, CostSum},
    ids::{AgentId, OrgId},
};
use rusqlite::{Connection, Row, ToSql};

use super::audit::nearest;
use crate::error::SqliteError;

/// One sum for each key, in the order of the keys.
pub(super) fn sums(
    connection: &Connection,
    org: &OrgId,
    query: &CostQuery,
) -> Result<Vec<CostSum>, SqliteError> {
    let key = match query.by {
        CostBy::Agent => "agent_id",
        CostBy::Skill => "verb",
        CostBy::Caller => "caller",
        CostBy::Day => "date(at / 1000000000, 'unixepoch')",
    };
    let (since, until) = (query.since.map(nearest), query.until.map(nearest));
    let agent = query.agent.as_ref().map(AgentId::as_str);
    let caller = query.caller.as_ref().map(CallerId::as_str);
    let narrowing: [(&str, Option<&dyn ToSql>); 4] = [
        (" AND at >= ?", since.as_ref().map(|at| at as _)),
        (" AND at < ?", until.as_ref().map(|at| at as _)),
        (" AND agent_id = ?", agent.as_ref().map(|id| id as _)),
        (" AND caller = ?", caller.as_ref().map(|id| id as _)),
    ];
    let mut sql = format!(
        "SELECT {key} AS key, count(DISTINCT task_id) AS calls,
             count(DISTINCT CASE WHEN estimated_cents IS NOT NULL THEN task_id END) AS known,
             round(total(estimated_cents) * 1000000) AS millionths
         FROM cost_events WHERE org = ?"
    );
    let org = org.as_str();
    let mut values: Vec<&dyn ToSql> = vec![&org];
    for (condition, value) in narrowing {
        if let Some(value) = value {
            sql.push_str(condition);
            values.push(value);
        }
    }
    sql.push_str(" GROUP BY key ORDER BY key");
    let mut select = connection.prepare_cached(&sql)?;
    let sums = select.query_map(values.as_slice(), sum)?.collect::<rusqlite::Result<_>>()?;
    Ok(sums)
}

fn sum(row: &Row<'_>) -> rusqlite::Result<CostSum> {
    let (calls, known): (u64, u64) = (row.get("calls")?, row.get("known")?);
    // Far beyond all money there is, a sum stays where numbers end.
    let millionths = row.get::<_, f64>("millionths")? as u64;
    Ok(CostSum {
        key: row.get("key")?,
        calls,
        unknown: calls.saturating_sub(known),
        estimated_cents: Cents::from_millionths(millionths),
    })
}
