//! When what is run by itself.

use rialto_model::{
    flow::FlowSchedule,
    ids::{Scope, TaskId},
    webhook::DeliveryLease,
};
use tokio_postgres::Row;

use super::super::{
    column::{Cells, limit, nanoseconds},
    connection::GenericClient,
    error::PostgresError,
    sql::{self, Value},
};

/// Gives a definition these schedules, in place of those it had.
pub(super) async fn replace(
    client: &impl GenericClient,
    of: &Scope,
    name: &str,
    schedules: &[FlowSchedule],
) -> Result<(), PostgresError> {
    let (org, project) = (of.org.as_str(), of.project.as_str());
    let delete = "DELETE FROM flow_schedules WHERE org = $1 AND project = $2 AND name = $3";
    sql::execute(client, delete, &[&org, &project, &name]).await?;
    let insert = "
        INSERT INTO flow_schedules (org, project, name, number, next_at, task) VALUES ($1, $2, $3, $4, $5, $6)";
    for schedule in schedules {
        let (number, next_at) = (i64::from(schedule.number), nanoseconds(schedule.next_at)?);
        let values: [Value<'_>; 6] = [&org, &project, &name, &number, &next_at, &schedule.task.as_str()];
        sql::execute(client, insert, &values).await?;
    }
    Ok(())
}

/// Schedules of a project.
pub(super) async fn all(client: &impl GenericClient, of: &Scope) -> Result<Vec<FlowSchedule>, PostgresError> {
    let select = "SELECT * FROM flow_schedules WHERE org = $1 AND project = $2 ORDER BY name, number";
    let values: [Value<'_>; 2] = [&of.org.as_str(), &of.project.as_str()];
    sql::rows(client, select, &values).await?.iter().map(schedule).collect()
}

/// Leases due schedules. Rows that another process is leasing are skipped.
pub(super) async fn lease_due(
    client: &impl GenericClient,
    lease: &DeliveryLease,
    most: usize,
) -> Result<Vec<FlowSchedule>, PostgresError> {
    let take = "
        WITH due AS (
            SELECT org, project, name, number FROM flow_schedules
            WHERE next_at <= $1 AND (holder IS NULL OR holder = $2 OR held_until <= $1)
            ORDER BY next_at LIMIT $4 FOR UPDATE SKIP LOCKED
        ), taken AS (
            UPDATE flow_schedules s SET holder = $2, held_until = $3 FROM due
            WHERE s.org = due.org AND s.project = due.project AND s.name = due.name AND s.number = due.number
            RETURNING s.*
        )
        SELECT * FROM taken ORDER BY next_at, name, number";
    let values: [Value<'_>; 4] =
        [&nanoseconds(lease.now)?, &lease.holder, &nanoseconds(lease.until)?, &limit(most)];
    sql::rows(client, take, &values).await?.iter().map(schedule).collect()
}

/// Says when one comes next, if its holder is still the one who says so; then it is anybody's again.
pub(super) async fn record_run(
    client: &impl GenericClient,
    schedule: &FlowSchedule,
    holder: &str,
) -> Result<bool, PostgresError> {
    let update = "
        UPDATE flow_schedules SET next_at = $6, task = $7, holder = NULL, held_until = NULL
        WHERE org = $1 AND project = $2 AND name = $3 AND number = $4 AND holder = $5";
    let values: [Value<'_>; 7] = [
        &schedule.scope.org.as_str(),
        &schedule.scope.project.as_str(),
        &schedule.name,
        &i64::from(schedule.number),
        &holder,
        &nanoseconds(schedule.next_at)?,
        &schedule.task.as_str(),
    ];
    Ok(sql::execute(client, update, &values).await? > 0)
}

fn schedule(row: &Row) -> Result<FlowSchedule, PostgresError> {
    let row = Cells(row);
    Ok(FlowSchedule {
        scope: row.scope()?,
        name: row.text("name")?,
        number: u32::try_from(row.number("number")?).unwrap_or(u32::MAX),
        next_at: row.at("next_at")?,
        task: TaskId::from(row.text("task")?),
    })
}
