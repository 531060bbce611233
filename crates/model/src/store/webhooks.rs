//! Webhooks and the leases of their delivery.

use super::layer::store_trait;
use crate::{
    store::StoreError,
    webhook::{DeliveryLease, DeliveryState, LeaseOutcome, Webhook},
};

store_trait! {
    /// Webhooks and the leases of their delivery. Part of every [`Store`](super::Store).
    pub trait WebhookStore {
        /// All webhooks, in the order they were added.
        async fn webhooks(&self) -> Result<Vec<Webhook>, StoreError>;

        /// Adds a webhook. It receives events from now on, whatever its delivery state says. Returns the generation that
        /// this made.
        async fn put_webhook(&self, webhook: &Webhook) -> Result<u64, StoreError>;

        /// Removes a webhook. Returns the new generation, or none when it was not there.
        async fn remove_webhook(&self, id: &str) -> Result<Option<u64>, StoreError>;

        /// Has a webhook that failed or was disabled tried again at once. Returns the new generation, or none when
        /// it is not there.
        async fn retry_webhook(&self, id: &str) -> Result<Option<u64>, StoreError>;

        /// Acquires or renews the lease of a webhook, unless another process has it.
        async fn lease_webhook(&self, id: &str, lease: &DeliveryLease) -> Result<LeaseOutcome, StoreError>;

        /// Stores the delivery state of a webhook; rejected when `holder` does not have the lease any more. The
        /// answer says whether it was taken.
        async fn record_webhook_delivery(&self, id: &str, holder: &str, standing: &DeliveryState) -> Result<bool, StoreError>;
    }
}
