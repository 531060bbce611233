//! When what is run by itself.

use rialto_model::{
    flow::FlowSchedule,
    ids::{Scope, TaskId},
    webhook::DeliveryLease,
};
use rusqlite::{Connection, Row, params};

use super::super::column::{At, scope};
use crate::error::SqliteError;

/// Gives a definition these schedules, in place of those it had.
pub(super) fn replace(
    connection: &Connection,
    of: &Scope,
    name: &str,
    schedules: &[FlowSchedule],
) -> Result<(), SqliteError> {
    let (org, project) = (of.org.as_str(), of.project.as_str());
    let mut delete = connection
        .prepare_cached("DELETE FROM flow_schedules WHERE org = ?1 AND project = ?2 AND name = ?3")?;
    delete.execute(params![org, project, name])?;
    let mut insert = connection.prepare_cached(
        "INSERT INTO flow_schedules (org, project, name, number, next_at, task) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?;
    for schedule in schedules {
        let (number, task) = (schedule.number, schedule.task.as_str());
        insert.execute(params![org, project, name, number, At(schedule.next_at), task])?;
    }
    Ok(())
}

/// Schedules of a project.
pub(super) fn all(connection: &Connection, of: &Scope) -> Result<Vec<FlowSchedule>, SqliteError> {
    let mut select = connection.prepare_cached(
        "SELECT * FROM flow_schedules WHERE org = ?1 AND project = ?2 ORDER BY name, number",
    )?;
    let values = params![of.org.as_str(), of.project.as_str()];
    Ok(select.query_map(values, schedule)?.collect::<rusqlite::Result<_>>()?)
}

/// Leases due schedules.
pub(super) fn lease_due(
    connection: &Connection,
    lease: &DeliveryLease,
    limit: usize,
) -> Result<Vec<FlowSchedule>, SqliteError> {
    let mut select = connection.prepare_cached(
        "SELECT * FROM flow_schedules
         WHERE next_at <= ?1 AND (holder IS NULL OR holder = ?2 OR held_until <= ?1)
         ORDER BY next_at LIMIT ?3",
    )?;
    let values = params![At(lease.now), lease.holder, limit];
    let due: Vec<FlowSchedule> = select.query_map(values, schedule)?.collect::<rusqlite::Result<_>>()?;
    let mut update = connection.prepare_cached(
        "UPDATE flow_schedules SET holder = ?5, held_until = ?6
         WHERE org = ?1 AND project = ?2 AND name = ?3 AND number = ?4",
    )?;
    for it in &due {
        let (org, project) = (it.scope.org.as_str(), it.scope.project.as_str());
        update.execute(params![org, project, it.name, it.number, lease.holder, At(lease.until)])?;
    }
    Ok(due)
}

/// Says when one comes next, if its holder is still the one who says so; then it is anybody's again.
pub(super) fn record_run(
    connection: &Connection,
    schedule: &FlowSchedule,
    holder: &str,
) -> Result<bool, SqliteError> {
    let mut update = connection.prepare_cached(
        "UPDATE flow_schedules SET next_at = ?6, task = ?7, holder = NULL, held_until = NULL
         WHERE org = ?1 AND project = ?2 AND name = ?3 AND number = ?4 AND holder = ?5",
    )?;
    let (org, project) = (schedule.scope.org.as_str(), schedule.scope.project.as_str());
    let (next_at, task) = (At(schedule.next_at), schedule.task.as_str());
    let changed =
        update.execute(params![org, project, schedule.name, schedule.number, holder, next_at, task])?;
    Ok(changed > 0)
}

fn schedule(row: &Row<'_>) -> rusqlite::Result<FlowSchedule> {
    Ok(FlowSchedule {
        scope: scope(row)?,
        name: row.get("name")?,
        number: row.get("number")?,
        next_at: row.get::<_, At>("next_at")?.0,
        task: TaskId::from(row.get::<_, String>("task")?),
    })
}
