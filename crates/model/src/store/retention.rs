//! Size of the store and removal of old rows.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::layer::store_trait;
use crate::{ids::OrgId, store::StoreError};

/// Limits of what is kept.
#[derive(Clone, Copy, Debug, Default)]
pub struct SweepLimits {
    /// Tasks that ended before this moment.
    pub tasks_before: Option<Timestamp>,
    /// Audit records from before this moment.
    pub audit_before: Option<Timestamp>,
    /// Tasks that ended first, while the store holds more bytes than this.
    pub max_bytes: Option<u64>,
}

/// Numbers of removed rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SweepReport {
    /// Number of tasks.
    pub tasks: u64,
    /// Number of audit records.
    pub audit: u64,
}

store_trait! {
    /// Size of the store and removal of old rows. Part of every [`Store`](super::Store).
    pub trait RetentionStore {
        /// Bytes that the tasks and audit records of each org take. It reads everything there is: not for every call.
        async fn org_bytes(&self) -> Result<BTreeMap<OrgId, u64>, StoreError>;

        /// Forgets what is old, a bounded number of rows at a time: call it again while it finds something. Of the audit
        /// trail only the beginning goes, and the rest can still be verified. What processes that died have left to be
        /// written is written before.
        async fn sweep(&self, sweep: SweepLimits) -> Result<SweepReport, StoreError>;
    }
}
