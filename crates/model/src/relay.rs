//! Calls that one node passes on to another, because only that one runs the program that executes them.
//!
//! The node that took a call keeps its task. It writes the call here, the other node takes it and writes the events, and the first one reads
//! them. Bodies are the business of the engine.

use jiff::{SignedDuration, Timestamp};

use crate::ids::ProcessId;

/// Time after which a call that was passed on, and whose nodes are both gone, is removed.
pub const MAX_RELAYED_CALL_AGE: SignedDuration = SignedDuration::from_hours(24);

/// A call on its way to the node that executes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelayedCall {
    /// Its id.
    pub id: String,
    /// Process that took the call.
    pub sender: ProcessId,
    /// Process that is to execute it.
    pub receiver: ProcessId,
    /// The call.
    pub body: String,
    /// When it was passed on.
    pub at: Timestamp,
}

/// Progress of a call that was passed on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RelayProgress {
    /// True if the receiver has taken it.
    pub is_taken: bool,
    /// Bodies of the events behind the one that was asked for, in order.
    pub events: Vec<String>,
}
