//! Nodes: servers that share one file.

use std::path::{Path, PathBuf};

use async_trait::async_trait;
use jiff::Timestamp;
use rialto_model::{
    ids::ProcessId,
    node::{Node, NodeBeat, NodeDrain, NodeStatus},
    store::{NodeStore, StoreError},
};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::{SqliteStore, column::At, leases, process_locks};
use crate::{
    error::SqliteError,
    nodes::{forgotten_before, process_from},
};

/// A node as it is read, without the state of its process.
const SELECT: &str = "
    SELECT name, runner, process, address, version, started_at, renewed_at, drained_by, drained_at,
        (SELECT count(*) FROM tasks INDEXED BY tasks_open WHERE open = 1 AND tasks.runner = nodes.runner AND nodes.runner <> 0)
    FROM nodes";

#[async_trait]
impl NodeStore for SqliteStore {
    async fn beat_node(&self, node: &Node) -> Result<NodeBeat, StoreError> {
        let (node, folder) = (node.clone(), self.lock_folder());
        self.transact(move |transaction| beat(transaction, folder.as_deref(), &node)).await
    }

    async fn nodes(&self, now: Timestamp) -> Result<Vec<NodeStatus>, StoreError> {
        let folder = self.lock_folder();
        self.read_journal(move |connection| list(connection, folder.as_deref(), now)).await
    }

    async fn drain_node(&self, name: &str, drain: Option<&NodeDrain>) -> Result<bool, StoreError> {
        let (name, drain) = (name.to_owned(), drain.cloned());
        self.transact(move |transaction| set_drain(transaction, &name, drain.as_ref())).await
    }

    async fn retire_node(&self, runner: ProcessId) -> Result<(), StoreError> {
        self.transact(move |transaction| retire(transaction, runner)).await
    }
}

// === impl SqliteStore ===

impl SqliteStore {
    /// Folder of the locks that show which processes are alive; none for a database in memory.
    fn lock_folder(&self) -> Option<PathBuf> {
        self.readers.as_ref().map(|readers| readers.folder().to_owned())
    }
}

fn beat(connection: &Connection, folder: Option<&Path>, node: &Node) -> Result<NodeBeat, SqliteError> {
    let mut select = connection.prepare_cached("SELECT runner, address FROM nodes WHERE name = ?1")?;
    let read = |row: &Row<'_>| Ok((ProcessId::from(row.get::<_, i64>(0)?.cast_unsigned()), row.get(1)?));
    let known: Option<(ProcessId, String)> = select.query_row([&node.name], read).optional()?;
    if let Some((runner, address)) = known
        && runner != node.runner
        && is_alive(connection, folder, runner, node.renewed_at)?
    {
        return Ok(NodeBeat::NameInUse { address });
    }
    let mut forget = connection
        .prepare_cached("DELETE FROM nodes WHERE drained_at IS NULL AND renewed_at < ?1 AND runner <> ?2")?;
    let runner = node.runner.get().cast_signed();
    forget.execute(params![At(forgotten_before(node.renewed_at)), runner])?;
    let mut upsert = connection.prepare_cached(
        "INSERT INTO nodes (name, runner, process, address, version, started_at, renewed_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
         ON CONFLICT (name) DO UPDATE SET runner = excluded.runner, process = excluded.process, address = excluded.address,
             version = excluded.version, started_at = excluded.started_at, renewed_at = excluded.renewed_at
         RETURNING drained_at IS NOT NULL",
    )?;
    let values = params![
        node.name,
        runner,
        node.process,
        node.address,
        node.version,
        At(node.started_at),
        At(node.renewed_at)
    ];
    let is_draining = upsert.query_row(values, |row| row.get(0))?;
    Ok(NodeBeat::Accepted { is_draining })
}

fn list(
    connection: &Connection,
    folder: Option<&Path>,
    now: Timestamp,
) -> Result<Vec<NodeStatus>, SqliteError> {
    let mut select = connection.prepare_cached(&format!("{SELECT} ORDER BY name"))?;
    let mut nodes: Vec<NodeStatus> = select.query_map([], status)?.collect::<rusqlite::Result<_>>()?;
    for status in &mut nodes {
        status.is_alive = is_alive(connection, folder, status.node.runner, now)?;
    }
    Ok(nodes)
}

fn set_drain(connection: &Connection, name: &str, drain: Option<&NodeDrain>) -> Result<bool, SqliteError> {
    let mut update =
        connection.prepare_cached("UPDATE nodes SET drained_by = ?2, drained_at = ?3 WHERE name = ?1")?;
    let (by, at) = drain.map(|drain| (drain.by.as_str(), At(drain.at))).unzip();
    let is_there = update.execute(params![name, by, at])? == 1;
    // Nothing is left of a node that has ended and is not to be drained any more.
    connection.execute("DELETE FROM nodes WHERE runner = 0 AND drained_at IS NULL", [])?;
    Ok(is_there)
}

fn retire(connection: &Connection, runner: ProcessId) -> Result<(), SqliteError> {
    let runner = runner.get().cast_signed();
    connection.execute("DELETE FROM nodes WHERE runner = ?1 AND drained_at IS NULL", [runner])?;
    connection.execute("UPDATE nodes SET runner = 0 WHERE runner = ?1", [runner])?;
    Ok(())
}

/// Returns whether a process is at work: its lock tells, and where there is none its lease.
fn is_alive(
    connection: &Connection,
    folder: Option<&Path>,
    runner: ProcessId,
    now: Timestamp,
) -> Result<bool, SqliteError> {
    if runner == ProcessId::NOBODY {
        return Ok(false);
    }
    match folder.and_then(|folder| process_locks::is_alive(folder, runner)) {
        Some(is_alive) => Ok(is_alive),
        None => leases::has_lease(connection, runner, now),
    }
}

fn status(row: &Row<'_>) -> rusqlite::Result<NodeStatus> {
    let (by, at): (Option<String>, Option<At>) = (row.get(7)?, row.get(8)?);
    let node = Node {
        name: row.get(0)?,
        runner: ProcessId::from(row.get::<_, i64>(1)?.cast_unsigned()),
        process: process_from(row.get(2)?),
        address: row.get(3)?,
        version: row.get(4)?,
        started_at: row.get::<_, At>(5)?.0,
        renewed_at: row.get::<_, At>(6)?.0,
    };
    let drain = at.map(|at| NodeDrain { by: by.unwrap_or_default(), at: at.0 });
    Ok(NodeStatus { node, drain, is_alive: false, open_tasks: row.get::<_, i64>(9)?.cast_unsigned() })
}
