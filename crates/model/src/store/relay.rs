//! Calls that one node relays to another.

use super::layer::store_trait;
use crate::{
    ids::ProcessId,
    relay::{RelayProgress, RelayedCall},
    store::StoreError,
};

store_trait! {
    /// Calls that one node relays to another. Part of every [`Store`](super::Store).
    pub trait RelayStore {
        /// Process that holds a program which runs on one node at a time. A holder that is not among these candidates, all of them at work, loses it
        /// to the first of them; there must be one. Concurrent callers with the same candidates get the same holder.
        async fn hold_program(&self, program: &str, candidates: &[ProcessId]) -> Result<ProcessId, StoreError>;

        /// Programs that run on one node at a time, and the processes that hold them.
        async fn program_holders(&self) -> Result<Vec<(String, ProcessId)>, StoreError>;

        /// Passes a call on.
        async fn put_relayed_call(&self, call: &RelayedCall) -> Result<(), StoreError>;

        /// Takes the calls that were passed on to a process. Each is taken once.
        async fn take_relayed_calls(&self, receiver: ProcessId) -> Result<Vec<RelayedCall>, StoreError>;

        /// Adds events to a call behind the first `known`, which must be all there are. Returns whether the call is still wanted; nothing is added if it is not.
        async fn put_relayed_events(&self, call: &str, known: u64, events: &[String])
        -> Result<bool, StoreError>;

        /// Progress of a call behind this number of events; none where the call is gone.
        async fn relay_progress(&self, call: &str, known: u64) -> Result<Option<RelayProgress>, StoreError>;

        /// Removes a call with its events: it has ended, or is not wanted any more. Returns whether it had been taken; none where it was gone.
        async fn remove_relayed_call(&self, call: &str) -> Result<Option<bool>, StoreError>;
    }
}
