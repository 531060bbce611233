//! Bytes that each org takes in the store, and removal of old rows.

use std::collections::BTreeMap;

use async_trait::async_trait;
use rialto_model::{
    ids::OrgId,
    store::{RetentionStore, StoreError, SweepLimits, SweepReport},
};

use super::{
    PostgresStore, approvals, audit, begin, column::Cells, connection::GenericClient, error::PostgresError,
    flows, messages, pushes, routing, sql, tasks,
};

#[async_trait]
impl RetentionStore for PostgresStore {
    async fn org_bytes(&self) -> Result<BTreeMap<OrgId, u64>, StoreError> {
        Ok(org_bytes(&self.client().await?).await?)
    }

    async fn sweep(&self, sweep: SweepLimits) -> Result<SweepReport, StoreError> {
        let mut client = self.client().await?;
        let transaction = begin(&mut client).await?;
        let mut swept = SweepReport::default();
        if let Some(moment) = sweep.tasks_before {
            swept.tasks = tasks::sweep(&transaction, moment).await?;
            if swept.tasks > 0 {
                pushes::sweep(&transaction).await?;
            }
            routing::sweep(&transaction, moment).await?;
            messages::sweep(&transaction, moment).await?;
            approvals::sweep(&transaction, moment).await?;
            flows::sweep(&transaction, moment).await?;
        }
        if let Some(moment) = sweep.audit_before {
            swept.audit = audit::sweep(&transaction, moment).await?;
        }
        self.commit(transaction, false).await?;
        Ok(swept)
    }
}

/// Bytes of tasks, their events and audit records by org.
pub(super) async fn org_bytes(client: &impl GenericClient) -> Result<BTreeMap<OrgId, u64>, PostgresError> {
    let select = "SELECT org, sum(bytes)::bigint AS bytes FROM (
             SELECT org, octet_length(args) AS bytes FROM tasks
             UNION ALL
             SELECT tasks.org, octet_length(events) FROM task_events JOIN tasks ON tasks.id = task_events.task
             UNION ALL
             SELECT org, octet_length(event) FROM audit WHERE phase <> 'cross-link'
         ) AS kept GROUP BY org";
    let rows = sql::rows(client, select, &[]).await?;
    rows.iter().map(Cells).map(|row| Ok((OrgId::from(row.text("org")?), row.number("bytes")?))).collect()
}
