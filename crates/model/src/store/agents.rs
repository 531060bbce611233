//! Agents, their card history and their health probes.

use super::layer::store_trait;
use crate::{
    agent::{Agent, CardRevision, Probe},
    ids::AgentId,
    store::StoreError,
};

store_trait! {
    /// Agents, their card history and their health probes. Part of every [`Store`](super::Store).
    pub trait AgentStore {
        /// All agents of all orgs.
        async fn agents(&self) -> Result<Vec<Agent>, StoreError>;

        /// Adds an agent (`expected` none) or replaces its row if it still has the `expected` version. The row's own
        /// `version` is what it has afterwards. When the card differs from the stored one, the old one goes to history.
        /// Returns the new generation.
        async fn put_agent(&self, agent: &Agent, expected: Option<u64>) -> Result<u64, StoreError>;

        /// Removes an agent and what belongs to it (history, probes). Returns the new generation, or none
        /// when it was not there.
        async fn remove_agent(&self, id: &AgentId) -> Result<Option<u64>, StoreError>;

        /// The cards that were replaced, newest first.
        async fn card_history(&self, id: &AgentId) -> Result<Vec<CardRevision>, StoreError>;

        /// Appends one probe; old ones are dropped once an agent has many. A probe that was answered moves the row's
        /// `last_seen_at`, but neither its version nor the generation: nobody has to read the registry again for that.
        async fn record_probe(&self, probe: &Probe) -> Result<(), StoreError>;

        /// An agent's probes, newest first.
        async fn probes(&self, id: &AgentId, limit: usize) -> Result<Vec<Probe>, StoreError>;
    }
}
