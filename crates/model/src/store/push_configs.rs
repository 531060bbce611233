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
        /// Has somebody told of a task, or tells it differently: names are taken once per task.
        async fn put_push(&self, push: &PushSubscription) -> Result<(), StoreError>;

        /// Who is told of a task, in the order they asked.
        async fn pushes(&self, task: &TaskId) -> Result<Vec<PushSubscription>, StoreError>;

        /// Tells somebody no more. Answers whether it was told before.
        async fn remove_push(&self, task: &TaskId, id: &str) -> Result<bool, StoreError>;

        /// Those who have not heard everything that happened to their tasks and may be told now, at most so many. Until the lease
        /// is over, or [`Self::record_push_delivery`] ends it, nobody else gets them.
        async fn due_pushes(&self, lease: &DeliveryLease, limit: usize) -> Result<Vec<PushSubscription>, StoreError>;

        /// Writes down how far somebody was told, and lets go of it; refused when `holder` does not have it any more. The answer
        /// says whether it was taken.
        async fn record_push_delivery(&self, push: &PushSubscription, holder: &str) -> Result<bool, StoreError>;

        /// The access tokens that push notification configs were set with, each once.
        async fn push_tokens(&self) -> Result<Vec<TokenId>, StoreError>;

        /// Removes the push notification configs that were set with an access token. Answers how many there were.
        async fn remove_pushes_with_token(&self, token: &TokenId) -> Result<u64, StoreError>;

        /// Those that were given up, the newest first.
        async fn dead_pushes(&self, scope: &Scope, limit: usize) -> Result<Vec<PushSubscription>, StoreError>;
    }
}
