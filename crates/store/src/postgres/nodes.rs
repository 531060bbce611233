//! Nodes: servers that share one database.

use async_trait::async_trait;
use jiff::Timestamp;
use rialto_model::{
    ids::ProcessId,
    node::{Node, NodeBeat, NodeDrain, NodeStatus},
    store::{NodeStore, StoreError},
};
use tokio_postgres::Row;

use super::{
    PostgresStore,
    column::{Cells, maybe_nanoseconds, nanoseconds, nearest},
    error::PostgresError,
    sql,
};
use crate::nodes::{forgotten_before, process_from};

/// Takes the name, or keeps it. There is no row in the answer when another live process has it; `$8` is the time by the server's clock.
const BEAT: &str = "
    WITH forgotten AS (
        DELETE FROM nodes WHERE drained_at IS NULL AND renewed_at < $9 AND name <> $1
    )
    INSERT INTO nodes (name, runner, process, address, version, started_at, renewed_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7)
    ON CONFLICT (name) DO UPDATE SET runner = excluded.runner, process = excluded.process, address = excluded.address,
        version = excluded.version, started_at = excluded.started_at, renewed_at = excluded.renewed_at
    WHERE nodes.runner = excluded.runner
        OR NOT EXISTS (SELECT FROM runners WHERE runners.id = nodes.runner AND runners.until >= $8)
    RETURNING drained_at IS NOT NULL AS is_draining";

const LIST: &str = "
    SELECT nodes.*,
        EXISTS (SELECT FROM runners WHERE runners.id = nodes.runner AND runners.until >= $1) AS is_alive,
        (SELECT count(*) FROM tasks WHERE open AND tasks.runner = nodes.runner AND nodes.runner <> 0) AS open_tasks
    FROM nodes ORDER BY name";

#[async_trait]
impl NodeStore for PostgresStore {
    async fn beat_node(&self, node: &Node) -> Result<NodeBeat, StoreError> {
        let client = self.client().await?;
        let (runner, process) = (node.runner.get().cast_signed(), i64::from(node.process));
        let (started_at, renewed_at) = (nanoseconds(node.started_at)?, nanoseconds(node.renewed_at)?);
        let now = nanoseconds(self.clock.to_server_time(node.renewed_at))?;
        let forgotten = nearest(forgotten_before(node.renewed_at));
        let values: [sql::Value<'_>; 9] = [
            &node.name,
            &runner,
            &process,
            &node.address,
            &node.version,
            &started_at,
            &renewed_at,
            &now,
            &forgotten,
        ];
        if let Some(row) = sql::maybe_row(&client, BEAT, &values).await? {
            return Ok(NodeBeat::Accepted { is_draining: Cells(&row).get("is_draining")? });
        }
        let holder =
            sql::maybe_row(&client, "SELECT address FROM nodes WHERE name = $1", &[&node.name]).await?;
        let address = holder.map(|row| Cells(&row).text("address")).transpose()?.unwrap_or_default();
        Ok(NodeBeat::NameInUse { address })
    }

    async fn nodes(&self, now: Timestamp) -> Result<Vec<NodeStatus>, StoreError> {
        let now = nanoseconds(self.clock.to_server_time(now))?;
        let rows = sql::rows(&self.client().await?, LIST, &[&now]).await?;
        Ok(rows.iter().map(status).collect::<Result<_, _>>()?)
    }

    async fn drain_node(&self, name: &str, drain: Option<&NodeDrain>) -> Result<bool, StoreError> {
        let client = self.client().await?;
        let (by, at) = (drain.map(|drain| drain.by.as_str()), drain.map(|drain| drain.at));
        let update = "UPDATE nodes SET drained_by = $2, drained_at = $3 WHERE name = $1";
        let is_there = sql::execute(&client, update, &[&name, &by, &maybe_nanoseconds(at)?]).await? == 1;
        // Nothing is left of a node that has ended and is not to be drained any more.
        sql::execute(&client, "DELETE FROM nodes WHERE runner = 0 AND drained_at IS NULL", &[]).await?;
        Ok(is_there)
    }

    async fn retire_node(&self, runner: ProcessId) -> Result<(), StoreError> {
        let (client, runner) = (self.client().await?, runner.get().cast_signed());
        sql::execute(&client, "DELETE FROM nodes WHERE runner = $1 AND drained_at IS NULL", &[&runner])
            .await?;
        sql::execute(&client, "UPDATE nodes SET runner = 0 WHERE runner = $1", &[&runner]).await?;
        Ok(())
    }
}

fn status(row: &Row) -> Result<NodeStatus, PostgresError> {
    let by: Option<String> = row.try_get("drained_by")?;
    let row = Cells(row);
    let node = Node {
        name: row.text("name")?,
        runner: ProcessId::from(row.number("runner")?),
        process: process_from(row.get("process")?),
        address: row.text("address")?,
        version: row.text("version")?,
        started_at: row.at("started_at")?,
        renewed_at: row.at("renewed_at")?,
    };
    let drained_at = row.maybe_at("drained_at")?;
    let drain = drained_at.map(|at| NodeDrain { by: by.unwrap_or_default(), at });
    Ok(NodeStatus { node, drain, is_alive: row.get("is_alive")?, open_tasks: row.number("open_tasks")? })
}
