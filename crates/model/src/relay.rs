//! Calls that one node passes on to another, because only that one runs the program that executes them.
//!
//! The node that took a call keeps its task. It writes the call here, the other node takes it and writes the events, and the first one reads
//! them. Bodies are the business of the engine.

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};

use crate::{ids::Runner, store::StoreError};

/// Time after which a call that was passed on, and whose nodes are both gone, is removed.
pub const MAX_RELAYED_CALL_AGE: SignedDuration = SignedDuration::from_hours(24);

/// A call on its way to the node that executes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelayedCall {
    /// Its id.
    pub id: String,
    /// Process that took the call.
    pub sender: Runner,
    /// Process that is to execute it.
    pub receiver: Runner,
    /// The call.
    pub body: String,
    /// When it was passed on.
    pub at: Timestamp,
}

/// Progress of a call that was passed on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RelayProgress {
    /// Whether the receiver has taken it.
    pub is_taken: bool,
    /// Bodies of the events behind the one that was asked for, in order.
    pub events: Vec<String>,
}

/// Keeps calls that are passed on. Part of every [`Store`](crate::store::Store).
#[async_trait]
pub trait RelayStore: Send + Sync {
    /// Process that holds a program which runs on one node at a time. A holder that is not among these candidates, all of them at work, loses it
    /// to the first of them; there must be one. Of several askers with the same candidates all are answered the same.
    async fn hold_program(&self, program: &str, candidates: &[Runner]) -> Result<Runner, StoreError>;

    /// Programs that run on one node at a time, and the processes that hold them.
    async fn program_holders(&self) -> Result<Vec<(String, Runner)>, StoreError>;

    /// Passes a call on.
    async fn put_relayed_call(&self, call: &RelayedCall) -> Result<(), StoreError>;

    /// Takes the calls that were passed on to a process. Each is taken once.
    async fn take_relayed_calls(&self, receiver: Runner) -> Result<Vec<RelayedCall>, StoreError>;

    /// Adds events to a call behind the first `known`, which must be all there are. Answers whether the call is still wanted; nothing is added if it is not.
    async fn put_relayed_events(&self, call: &str, known: u64, events: &[String])
    -> Result<bool, StoreError>;

    /// Progress of a call behind this number of events; none where the call is gone.
    async fn relay_progress(&self, call: &str, known: u64) -> Result<Option<RelayProgress>, StoreError>;

    /// Removes a call with its events: it has ended, or is not wanted any more. Answers whether it had been taken; none where it was gone.
    async fn remove_relayed_call(&self, call: &str) -> Result<Option<bool>, StoreError>;
}
