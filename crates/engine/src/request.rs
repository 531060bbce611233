//! CallRequest of a call.

use std::time::Duration;

use rialto_model::{
    call::{Caller, Door, Target},
    ids::TaskId,
    json::Json,
    message::Part,
    trace::Trace,
};

use crate::{conversation::ConversationMessage, policies::StoreSync};

/// What a caller wants, with its target found.
#[derive(Clone, Debug)]
pub struct CallRequest {
    /// Who.
    pub caller: Caller,
    /// By which door.
    pub door: Door,
    /// From whom.
    pub target: Target,
    /// What is said.
    pub parts: Vec<Part>,
    /// The id that a new task shall have, when it was promised to somebody under one.
    pub id: Option<TaskId>,
    /// The task to go on with: our id for it, or the agent's.
    pub task: Option<String>,
    /// The version of that task which is answered: when it has changed since, nothing is said.
    pub answers: Option<u64>,
    /// The conversation to go on with, as the agent calls it.
    pub context: Option<String>,
    /// A wall clock of the caller's own.
    pub wall_clock: Option<Duration>,
    /// The trace that the caller has begun.
    pub trace: Option<Box<Trace>>,
    /// The message of a conversation with us, for callers that keep one.
    pub conversation: Option<Box<ConversationMessage>>,
    /// Proof that this process was synchronised with the store for this request. Without it, the call does that.
    pub synced: Option<StoreSync>,
}

// === impl CallRequest ===

impl CallRequest {
    /// A call of a skill with arguments.
    pub fn skill(caller: Caller, door: Door, target: Target, args: Json) -> Self {
        Self::message(caller, door, target, vec![Part::data(args)])
    }

    /// A message in parts.
    pub const fn message(caller: Caller, door: Door, target: Target, parts: Vec<Part>) -> Self {
        Self {
            caller,
            door,
            target,
            parts,
            id: None,
            task: None,
            answers: None,
            context: None,
            wall_clock: None,
            trace: None,
            conversation: None,
            synced: None,
        }
    }
}
