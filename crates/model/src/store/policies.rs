//! Policies and their versions.

use super::layer::store_trait;
use crate::{
    policy::{PolicyChange, PolicySet, RecordedPolicyChange},
    store::StoreError,
};

store_trait! {
    /// Policies and their versions. Part of every [`Store`](super::Store).
    pub trait PolicySourceStore {
        /// The policies that are kept here.
        async fn policies(&self) -> Result<PolicySet, StoreError>;

        /// Makes a change of the policies; refused when `expected` is not the number of the last one. Answers the generation
        /// that this made.
        async fn change_policy(&self, change: &PolicyChange, expected: u64) -> Result<u64, StoreError>;

        /// The changes of one policy, newest first: at least [`crate::policy::MAX_POLICY_VERSIONS`].
        async fn policy_history(&self, name: &str) -> Result<Vec<RecordedPolicyChange>, StoreError>;
    }
}
