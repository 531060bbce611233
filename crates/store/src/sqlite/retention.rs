//! Bytes that each org takes in the store, and removal of old rows.

use std::collections::BTreeMap;

use async_trait::async_trait;
use rialto_model::{
    ids::OrgId,
    store::{RetentionStore, StoreError, SweepLimits, SweepReport},
};
use rusqlite::Connection;

use super::{SqliteStore, approvals, audit, flows, messages, pushes, routing, tasks, writer::Job};
use crate::error::SqliteError;

#[async_trait]
impl RetentionStore for SqliteStore {
    async fn org_bytes(&self) -> Result<BTreeMap<OrgId, u64>, StoreError> {
        self.read_journal(org_bytes).await
    }

    async fn sweep(&self, sweep: SweepLimits) -> Result<SweepReport, StoreError> {
        self.flush_buffer().await?;
        // A process that died left its last records behind; a process that only reads would never flush them.
        self.ask(Job::RecoverBuffers).await?;
        self.transact(move |transaction| {
            let old = sweep.tasks_before.map_or(Ok(0), |moment| tasks::sweep(transaction, moment))?;
            let beyond = sweep.max_bytes.filter(|_| old == 0);
            let tasks = old + beyond.map_or(Ok(0), |most| tasks::sweep_beyond(transaction, most))?;
            if tasks > 0 {
                pushes::sweep(transaction)?;
            }
            sweep.tasks_before.map_or(Ok(()), |moment| routing::sweep(transaction, moment))?;
            sweep.tasks_before.map_or(Ok(()), |moment| messages::sweep(transaction, moment))?;
            sweep.tasks_before.map_or(Ok(()), |moment| approvals::sweep(transaction, moment))?;
            sweep.tasks_before.map_or(Ok(()), |moment| flows::sweep(transaction, moment))?;
            let audit = sweep.audit_before.map_or(Ok(0), |moment| audit::sweep(transaction, moment))?;
            Ok(SweepReport { tasks, audit })
        })
        .await
    }
}

/// Bytes of tasks, their events and audit records by org. Lengths of texts are in their rows' headers, so no text is read.
pub(super) fn org_bytes(connection: &Connection) -> Result<BTreeMap<OrgId, u64>, SqliteError> {
    let mut select = connection.prepare_cached(
        "SELECT org, sum(bytes) FROM (
             SELECT org, octet_length(args) AS bytes FROM tasks
             UNION ALL
             SELECT tasks.org, octet_length(events) FROM task_events JOIN tasks ON tasks.row = key >> 24
             UNION ALL
             SELECT org, octet_length(event) FROM audit
         ) GROUP BY org",
    )?;
    let sums = select.query_map([], |row| Ok((OrgId::from(row.get::<_, String>(0)?), row.get(1)?)))?;
    Ok(sums.collect::<rusqlite::Result<_>>()?)
}
