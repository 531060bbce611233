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

        /// Adds a webhook. It hears of what happens from now on, whatever its standing says. Answers the generation that
        /// this made.
        async fn put_webhook(&self, webhook: &Webhook) -> Result<u64, StoreError>;

        /// Removes a webhook. Answers the generation that this made, or none when it was not there.
        async fn remove_webhook(&self, id: &str) -> Result<Option<u64>, StoreError>;

        /// Has a webhook that failed or was disabled tried again at once. Answers the generation that this made, or none when
        /// it is not there.
        async fn retry_webhook(&self, id: &str) -> Result<Option<u64>, StoreError>;

        /// Takes or prolongs the right to deliver to a webhook, unless somebody else has it.
        async fn lease_webhook(&self, id: &str, lease: &DeliveryLease) -> Result<LeaseOutcome, StoreError>;

        /// Writes down how far a webhook was told; refused when `holder` does not have the right to deliver any more. The
        /// answer says whether it was taken.
        async fn record_webhook_delivery(&self, id: &str, holder: &str, standing: &DeliveryState) -> Result<bool, StoreError>;
    }
}
