//! Approvals and their decisions.

use super::layer::store_trait;
use crate::{
    approval::{Approval, ApprovalFilter, ApprovalVerdict},
    ids::ApprovalId,
    store::StoreError,
};

store_trait! {
    /// Approvals and their decisions. Part of every [`Store`](super::Store).
    pub trait ApprovalStore {
        /// Writes down that something waits for approval. Returns the new generation.
        async fn put_approval(&self, approval: &Approval) -> Result<u64, StoreError>;

        /// Approvals, newest first.
        async fn approvals(&self, filter: &ApprovalFilter) -> Result<Vec<Approval>, StoreError>;

        /// Decides about something that waits. Returns whether this decision counts: of several, in however many
        /// processes, the first does. It moves the generation.
        async fn decide_approval(&self, id: &ApprovalId, decided: &ApprovalVerdict) -> Result<bool, StoreError>;

        /// Says that what waited has gone on or has ended, so that nobody need look at it again. The answer says whether that is
        /// news.
        async fn close_approval(&self, id: &ApprovalId) -> Result<bool, StoreError>;
    }
}
