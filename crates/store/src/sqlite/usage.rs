//! Bytes that each org takes in the store.

use std::collections::BTreeMap;

use rialto_model::ids::OrgId;
use rusqlite::Connection;

use crate::fault::Snag;

/// Bytes of tasks, their events and audit records by org. Lengths of texts are in their rows' headers, so no text is read.
pub(super) fn org_bytes(connection: &Connection) -> Result<BTreeMap<OrgId, u64>, Snag> {
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
