//! What is asked of the engine.

use std::time::Duration;

use rialto_model::{
    call::{CallTarget, Caller, EntryProtocol},
    ids::TaskId,
    json::Json,
    message::Part,
    trace::Trace,
};

use crate::conversation::Talk;

/// What a caller wants, with its target found.
#[derive(Clone, Debug)]
pub struct Request {
    /// Who.
    pub caller: Caller,
    /// By which door.
    pub door: EntryProtocol,
    /// From whom.
    pub target: CallTarget,
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
    /// The conversation with us that this belongs to, for callers that keep one.
    pub talk: Option<Box<Talk>>,
}

// === impl Request ===

impl Request {
    /// A call of a skill with arguments.
    pub fn skill(caller: Caller, door: EntryProtocol, target: CallTarget, args: Json) -> Self {
        Self::message(caller, door, target, vec![Part::data(args)])
    }

    /// A message in parts.
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
            wall_clock: None,
            trace: None,
            talk: None,
        }
    }
}
