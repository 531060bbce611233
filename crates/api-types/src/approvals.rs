//! Approvals: calls and tools that wait for a decision.

use rialto_model::{approval::Approval, ids::ApprovalId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Page of approvals, newest first.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ApprovalPage {
    /// Approvals of this page.
    pub approvals: Vec<ApprovalRow>,
    /// Cursor of the next page; null on the last one.
    pub next: Option<ApprovalId>,
}

/// Approval with its state. Clients in Rust read an [`Approval`], which knows its state.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ApprovalRow {
    /// State.
    #[schemars(extend("enum" = ["waiting", "approved", "denied", "withdrawn"]))]
    pub state: &'static str,
    /// The approval.
    #[serde(flatten)]
    pub approval: Approval,
}

/// Reason of a decision.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DecisionReason {
    /// Reason, for the caller and the audit log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

// === impl ApprovalRow ===

impl From<Approval> for ApprovalRow {
    fn from(approval: Approval) -> Self {
        Self { state: approval.state(), approval }
    }
}
