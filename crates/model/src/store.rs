//! Store traits: one per aggregate, and [`Store`] as all of them together.
//!
//! Operations are atomic: no transaction spans two calls, and where two writers could meet, the expected version is an
//! argument. One test suite (`rialto_testkit::store_suite`) runs against every implementation.

mod agents;
mod approvals;
mod audit;
mod flows;
mod layer;
mod leases;
mod messages;
mod nodes;
mod policies;
mod problem;
mod push_configs;
mod relay;
mod retention;
mod routing;
mod secrets;
mod sessions;
mod shared_usage;
mod tasks;
mod tenants;
mod tokens;
mod webhooks;

use std::time::Duration;

use async_trait::async_trait;

pub use self::{
    agents::AgentStore,
    approvals::ApprovalStore,
    audit::{AuditFilter, AuditOutcome, AuditStore, ChainVerification, StoredAuditEvent},
    flows::FlowStore,
    layer::{Layered, StoreLayer},
    leases::LeaseStore,
    messages::{MAX_TASKS_PER_MESSAGE, MessageClaim, MessageStore, hash_message},
    nodes::NodeStore,
    policies::PolicySourceStore,
    problem::StoreProblem,
    push_configs::PushConfigStore,
    relay::RelayStore,
    retention::{RetentionStore, SweepLimits, SweepReport},
    routing::RoutingStore,
    secrets::{SealedSecret, SecretStore},
    sessions::{
        MAX_SESSION_AGE, MAX_SESSION_MESSAGE_AGE, NumberedSessionMessage, SessionMessage, SessionStore,
    },
    shared_usage::{BreakerOpening, CallCount, OPENING_SHARED_FOR, SharedUsage, UsageReport, UsageStore},
    tasks::{ConversationFilter, ConversationTasks, MAX_COUNTED_TASKS, TaskAppend, TaskFilter, TaskStore},
    tenants::{CreatedTenant, TenantStore},
    tokens::{Token, TokenStore},
    webhooks::WebhookStore,
};

/// Error of a store operation.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The row was changed concurrently; read it again.
    #[error("the row was changed by somebody else")]
    Conflict,
    /// Another row already has that name or address.
    #[error("{0} is already taken")]
    Taken(String),
    /// A stored value cannot be read back.
    #[error("the store holds something that cannot be read: {0}")]
    Corrupt(String),
    /// The store does not take this value, now or later.
    #[error("the store cannot keep this: {0}")]
    Unwritable(String),
    /// The database did not do its work. Whether what was to be written is there is not known.
    #[error("the store is not available")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Everything that Rialto stores: the traits of all aggregates, and the change counter that they share.
#[async_trait]
pub trait Store:
    AgentStore
    + ApprovalStore
    + AuditStore
    + FlowStore
    + LeaseStore
    + MessageStore
    + NodeStore
    + PolicySourceStore
    + PushConfigStore
    + RelayStore
    + RetentionStore
    + RoutingStore
    + SecretStore
    + SessionStore
    + TaskStore
    + TenantStore
    + TokenStore
    + UsageStore
    + WebhookStore
{
    /// Counter of changes to the registry, tokens, policies and webhooks by any process, and of calls to [`Store::touch`]. Cheap enough
    /// to read on every call.
    ///
    /// It is advanced inside the transaction that makes the change: a writer that gets back exactly one more than it knew has
    /// missed nothing and need not reload.
    fn generation(&self) -> u64;

    /// Condition that keeps this store from taking writes, as far as it is known without asking the database.
    async fn problem(&self) -> Option<StoreProblem> {
        None
    }

    /// Time without a heartbeat after which the tasks of a process are taken over.
    fn lease(&self) -> Duration {
        Duration::from_secs(10)
    }

    /// Returns whether the death of a process is seen at once, so that nobody has to wait until its lease is over.
    fn detects_process_exit(&self) -> bool {
        true
    }

    /// Advances the generation, for changes that are stored elsewhere (policy files).
    async fn touch(&self) -> Result<u64, StoreError>;
}
