//! Request of a call.

use std::time::Duration;

use rialto_model::{
    call::{CallTarget, Caller, EntryProtocol},
    ids::TaskId,
    json::Json,
    message::Part,
    trace::Trace,
};

use crate::{conversation::ConversationMessage, policies::StoreSync};

/// Request of a call, with its target resolved.
#[derive(Clone, Debug)]
pub struct CallRequest {
    /// The caller.
    pub caller: Caller,
    /// The protocol that the request came in by.
    pub door: EntryProtocol,
    /// The agent and skill that are called.
    pub target: CallTarget,
    /// Parts of the message.
    pub parts: Vec<Part>,
    /// Id of a new task, if the client has got one before.
    pub id: Option<TaskId>,
    /// The task to continue: our id for it, or the agent's.
    pub task: Option<String>,
    /// Version of that task which the message answers: if it has changed since, the request fails.
    pub answers: Option<u64>,
    /// The agent's name of the conversation to continue.
    pub context: Option<String>,
    /// Timeout that the caller has set.
    pub timeout: Option<Duration>,
    /// The caller's trace.
    pub trace: Option<Box<Trace>>,
    /// The message of a conversation with us, for callers that keep one.
    pub conversation: Option<Box<ConversationMessage>>,
    /// Proof that this process was synchronised with the store for this request. Without it, the call does that.
    pub synced: Option<StoreSync>,
}

// === impl CallRequest ===

impl CallRequest {
    /// Request of a skill with arguments.
    pub fn skill(caller: Caller, door: EntryProtocol, target: CallTarget, args: Json) -> Self {
        Self::message(caller, door, target, vec![Part::data(args)])
    }

    /// Request with a message in parts.
    pub const fn message(caller: Caller, door: EntryProtocol, target: CallTarget, parts: Vec<Part>) -> Self {
        Self {
            caller,
            door,
            target,
            parts,
            id: None,
            task: None,
            answers: None,
            context: None,
            timeout: None,
            trace: None,
            conversation: None,
            synced: None,
        }
    }
}
