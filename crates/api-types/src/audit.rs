//! Audit trail and costs.

use rialto_model::{
    audit_event::AuditEvent,
    cost::CostSum,
    store::{ChainVerification, StoredAuditEvent},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Page of audit records, newest first.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct AuditPage {
    /// Records of this page.
    pub records: Vec<AuditRecord>,
    /// Cursor of the next page; null on the last one.
    pub next: Option<u64>,
}

/// Record of the audit trail.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct AuditRecord {
    /// Number of the record.
    pub record: u64,
    /// Hash over this record and the hash of the one before.
    pub seal: String,
    /// Event that is recorded.
    pub event: AuditEvent,
}

/// Records that a stream has left out.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MissedRecords {
    /// Number of the records.
    pub missed: u64,
}

/// Result of a verification of the audit trail.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct AuditVerification {
    /// Whether every record is as it was written.
    pub sound: bool,
    /// Number of records, if all are sound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub records: Option<u64>,
    /// Number of the last record, if all are sound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<u64>,
    /// Hash of the last record, if all are sound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seal: Option<String>,
    /// Number of the first record that is not sound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<u64>,
    /// What is wrong with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// Costs of completed calls.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CostReport {
    /// Costs for each agent, skill, caller or day.
    pub sums: Vec<CostSum>,
    /// Costs of all of them together.
    pub total: CostSum,
}

// === impl AuditRecord ===

impl From<&StoredAuditEvent> for AuditRecord {
    fn from(audited: &StoredAuditEvent) -> Self {
        Self { record: audited.record, seal: audited.seal.clone(), event: audited.event.clone() }
    }
}

// === impl AuditVerification ===

impl From<ChainVerification> for AuditVerification {
    fn from(verdict: ChainVerification) -> Self {
        match verdict {
            ChainVerification::Sound { records, last, seal } => Self {
                sound: true,
                records: Some(records),
                last: Some(last),
                seal: Some(seal),
                ..Self::default()
            },
            ChainVerification::Broken { record, why } => {
                Self { record: Some(record), why: Some(why), ..Self::default() }
            }
        }
    }
}
