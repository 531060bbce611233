//! Routing decisions, slots of agents, and learned success rates.

use std::collections::BTreeMap;

use super::layer::store_trait;
use crate::{
    ids::{AgentId, OrgId, Scope, TaskId},
    routing::{
        AssignmentEnd, Dispatch, DispatchFilter, EndedAssignment, RoutingStats, RoutingStatsQuery,
        SlotReservation, SuccessRate,
    },
    store::StoreError,
};

store_trait! {
    /// Routing decisions, slots of agents, and learned success rates. Part of every [`Store`](super::Store).
    pub trait RoutingStore {
        /// Routing facts of these agents. Agents without any are left out.
        async fn routing_stats(&self, query: &RoutingStatsQuery) -> Result<BTreeMap<AgentId, RoutingStats>, StoreError>;

        /// Success of an agent at each observed type of work, the latest first.
        async fn success_rates(
            &self,
            org: &OrgId,
            agent: &AgentId,
            limit: usize,
        ) -> Result<Vec<(String, SuccessRate)>, StoreError>;

        /// Takes a slot of an agent and writes down the decision that wants it; both, or nothing and `false` when the agent has
        /// no slot left. However many ask at once, in however many processes, no more slots are given out than there are.
        async fn reserve(&self, reservation: &SlotReservation) -> Result<bool, StoreError>;

        /// Says how a play ended and, if that says something about the agent, lets its posterior learn from it. The answer says
        /// whether it is news: each play ends once.
        async fn end_assignment(&self, task: &TaskId, end: &AssignmentEnd) -> Result<bool, StoreError>;

        /// Plays whose tasks are over though nobody has said so, the oldest first, at most `limit`.
        async fn ended_assignments(&self, limit: usize) -> Result<Vec<EndedAssignment>, StoreError>;

        /// Decisions of a scope, newest first, with what became of them.
        async fn dispatches(&self, scope: &Scope, filter: &DispatchFilter) -> Result<Vec<Dispatch>, StoreError>;
    }
}
