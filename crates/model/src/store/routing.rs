//! Routing decisions, slots of agents, and learned success rates.

use std::collections::BTreeMap;

use super::layer::store_trait;
use crate::{
    ids::{AgentId, OrgId, Scope, TaskId},
    routing::{
        Dispatch, DispatchFilter, PlayEnd, Posterior, Reservation, Standing, StandingQuery, Unsettled,
    },
    store::StoreError,
};

store_trait! {
    /// Routing decisions, slots of agents, and learned success rates. Part of every [`Store`](super::Store).
    pub trait RoutingStore {
        /// What a decision needs to know of these agents. Those nobody knows anything about are left out.
        async fn standings(&self, query: &StandingQuery) -> Result<BTreeMap<AgentId, Standing>, StoreError>;

        /// How well an agent does each type of work that it was observed at, what it was observed at last first.
        async fn works(
            &self,
            org: &OrgId,
            agent: &AgentId,
            limit: usize,
        ) -> Result<Vec<(String, Posterior)>, StoreError>;

        /// Takes a slot of an agent and writes down the decision that wants it; both, or nothing and `false` when the agent has
        /// no slot left. However many ask at once, in however many processes, no more slots are given out than there are.
        async fn reserve(&self, reservation: &Reservation) -> Result<bool, StoreError>;

        /// Says how a play ended and, if that says something about the agent, lets its posterior learn from it. The answer says
        /// whether it is news: each play ends once.
        async fn end_play(&self, task: &TaskId, end: &PlayEnd) -> Result<bool, StoreError>;

        /// Plays whose tasks are over though nobody has said so, the oldest first, at most so many.
        async fn unsettled_plays(&self, limit: usize) -> Result<Vec<Unsettled>, StoreError>;

        /// Decisions of a scope, newest first, with what became of them.
        async fn dispatches(&self, scope: &Scope, filter: &DispatchFilter) -> Result<Vec<Dispatch>, StoreError>;
    }
}
