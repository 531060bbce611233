//! Push notification configs of tasks, and the leases of their delivery.

use super::layer::store_trait;
use crate::{
    ids::{Scope, TaskId, TokenId},
    push::PushSubscription,
    store::StoreError,
    webhook::DeliveryLease,
};

store_trait! {
    /// Push notification configs of tasks, and the leases of their delivery. Part of every [`Store`](super::Store).
    pub trait PushConfigStore {
        /// Adds or replaces a push notification config; its id is unique in the task.
        async fn put_push(&self, push: &PushSubscription) -> Result<(), StoreError>;

        /// Push notification configs of a task, in the order they were set.
        async fn pushes(&self, task: &TaskId) -> Result<Vec<PushSubscription>, StoreError>;

        /// Removes a config. Returns whether it existed.
        async fn remove_push(&self, task: &TaskId, id: &str) -> Result<bool, StoreError>;

        /// Configs with undelivered events whose next attempt is due, at most `limit`. Until the lease
        /// is over, or [`Self::record_push_delivery`] ends it, nobody else gets them.
        async fn due_pushes(&self, lease: &DeliveryLease, limit: usize) -> Result<Vec<PushSubscription>, StoreError>;

        /// Stores the state of a delivery and releases the config; rejected when `holder` does not have the lease any more. The result
        /// says whether it was taken.
        async fn record_push_delivery(&self, push: &PushSubscription, holder: &str) -> Result<bool, StoreError>;

        /// The access tokens that push notification configs were set with, each once.
        async fn push_tokens(&self) -> Result<Vec<TokenId>, StoreError>;

        /// Removes the push notification configs that were set with an access token. Returns their number.
        async fn remove_pushes_with_token(&self, token: &TokenId) -> Result<u64, StoreError>;

        /// Configs whose delivery was given up, the newest first.
        async fn dead_pushes(&self, scope: &Scope, limit: usize) -> Result<Vec<PushSubscription>, StoreError>;
    }
}
