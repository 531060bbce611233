//! Bytes that each org takes in the store.

use std::collections::BTreeMap;

use rialto_model::ids::OrgId;

use super::{column::Cells, connection::GenericClient, snag::Snag, sql};

/// Bytes of tasks, their events and audit records by org.
pub(super) async fn org_bytes(client: &impl GenericClient) -> Result<BTreeMap<OrgId, u64>, Snag> {
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
