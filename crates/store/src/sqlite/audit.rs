//! The audit trail: what the bus announced, in order.

use jiff::Timestamp;
use rialto_model::{ids::OrgId, store::StoreError, verb::VerbEvent};
use rusqlite::{Connection, params};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use super::column::At;
use crate::fault::{Fault, Snag};

/// One record, ready to be written.
#[derive(Serialize, Deserialize)]
pub(super) struct AuditRow {
    org: String,
    at: Timestamp,
    event: Box<RawValue>,
}

// === impl AuditRow ===

impl AuditRow {
    /// The rows of some events. This is the asker's work, so that the one writer need not do it for all.
    pub(super) fn all(events: &[VerbEvent]) -> Result<Vec<Self>, StoreError> {
        events.iter().map(Self::new).collect()
    }

    fn new(event: &VerbEvent) -> Result<Self, StoreError> {
        let text = to_raw_value(event)
            .map_err(|error| Fault::new("an audit record cannot be written as text", error))?;
        Ok(Self { org: event.verb.org_id.clone(), at: event.emitted_at, event: text })
    }
}

pub(super) fn append(connection: &Connection, rows: &[AuditRow]) -> Result<(), Snag> {
    if rows.is_empty() {
        return Ok(());
    }
    let mut insert = connection.prepare_cached("INSERT INTO audit (org, at, event) VALUES (?1, ?2, ?3)")?;
    for row in rows {
        insert.execute(params![row.org, At(row.at), row.event.get()])?;
    }
    Ok(())
}

/// The newest records of an org, newest first.
pub(super) fn trail(connection: &Connection, org: &OrgId, limit: usize) -> Result<Vec<VerbEvent>, Snag> {
    let mut select = connection
        .prepare_cached("SELECT row, event FROM audit WHERE org = ?1 ORDER BY row DESC LIMIT ?2")?;
    let mut rows = select.query(params![org.as_str(), limit])?;
    let mut events = Vec::new();
    while let Some(row) = rows.next()? {
        let event = serde_json::from_str(row.get_ref("event")?.as_str().map_err(rusqlite::Error::from)?)
            .map_err(|error| corrupt(row.get("row").unwrap_or_default(), &error))?;
        events.push(event);
    }
    Ok(events)
}

fn corrupt(row: i64, error: &serde_json::Error) -> StoreError {
    StoreError::Corrupt(format!("audit record {row}: {error}"))
}
