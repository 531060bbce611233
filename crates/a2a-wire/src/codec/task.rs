//! Tasks, their states, and pages of them.
//!
//! What is bent: 0.1 has no rejected and no auth-required tasks, and gets `failed` and `input-required`; 0.x wants a
//! context id and gets an empty one when there is none. States are read in every spelling on every wire.

use rialto_model::json::RawJson;
use serde::{Serialize, Serializer};

use super::{
    artifact::{self, Numbered},
    message,
};
use crate::{
    garbled::Garbled,
    members::{Members, text},
    object::{Each, Object, On},
    task::{State, Status, Task, TaskList},
    wire::Wire,
};

/// The artifacts of a task of 0.1.
struct NumberedList<'a>(&'a [rialto_model::message::Artifact]);

pub(crate) fn decode(wire: Wire, raw: RawJson<'_>) -> Result<Task, Garbled> {
    from_members(wire, Members::read(raw)?)
}

pub(crate) fn from_members(wire: Wire, mut members: Members<'_>) -> Result<Task, Garbled> {
    members.drop_kind("task");
    // An agent of 0.1 may already use the newer word.
    let session_id = if wire == Wire::V01 { members.id("sessionId")? } else { None };
    Ok(Task {
        id: members.need("id", "a string", text)?,
        context_id: session_id.or(members.id("contextId")?),
        status: members.need("status", "an object", |raw| status(wire, raw))?,
        artifacts: members.list("artifacts", |raw| artifact::decode(wire, raw))?,
        history: members.list("history", |raw| message::decode(wire, raw))?,
        metadata: members.object("metadata"),
        extra: members.rest(),
    })
}

pub(crate) fn status(wire: Wire, raw: RawJson<'_>) -> Result<Status, Garbled> {
    let mut members = Members::read(raw)?;
    Ok(Status {
        state: members.take_as("state", state)?.unwrap_or(State::Unspecified),
        message: members.take_as("message", |raw| message::decode(wire, raw))?,
        timestamp: members.id("timestamp")?,
        extra: members.rest(),
    })
}

fn state(raw: RawJson<'_>) -> Result<State, Garbled> {
    text(raw).map(|name| parse_state(&name))
}

/// The state with that name, in whichever dialect.
pub(crate) fn parse_state(name: &str) -> State {
    match name.strip_prefix("TASK_STATE_").unwrap_or(name) {
        "SUBMITTED" | "submitted" => State::Submitted,
        "WORKING" | "working" => State::Working,
        "COMPLETED" | "completed" => State::Completed,
        "FAILED" | "failed" => State::Failed,
        "CANCELED" | "CANCELLED" | "canceled" | "cancelled" => State::Canceled,
        "INPUT_REQUIRED" | "input-required" => State::InputRequired,
        "REJECTED" | "rejected" => State::Rejected,
        "AUTH_REQUIRED" | "auth-required" => State::AuthRequired,
        _ => State::Unspecified,
    }
}

/// A state's name on a wire.
pub(crate) const fn state_name(wire: Wire, state: State) -> &'static str {
    match (wire, state) {
        (Wire::V10 | Wire::V03Proto, State::Unspecified) => "TASK_STATE_UNSPECIFIED",
        (Wire::V10 | Wire::V03Proto, State::Submitted) => "TASK_STATE_SUBMITTED",
        (Wire::V10 | Wire::V03Proto, State::Working) => "TASK_STATE_WORKING",
        (Wire::V10 | Wire::V03Proto, State::Completed) => "TASK_STATE_COMPLETED",
        (Wire::V10 | Wire::V03Proto, State::Failed) => "TASK_STATE_FAILED",
        (Wire::V10, State::Canceled) => "TASK_STATE_CANCELED",
        (Wire::V03Proto, State::Canceled) => "TASK_STATE_CANCELLED",
        (Wire::V10 | Wire::V03Proto, State::InputRequired) => "TASK_STATE_INPUT_REQUIRED",
        (Wire::V10 | Wire::V03Proto, State::Rejected) => "TASK_STATE_REJECTED",
        (Wire::V10 | Wire::V03Proto, State::AuthRequired) => "TASK_STATE_AUTH_REQUIRED",
        (Wire::V03 | Wire::V01, State::Unspecified) => "unknown",
        (Wire::V03 | Wire::V01, State::Submitted) => "submitted",
        (Wire::V03 | Wire::V01, State::Working) => "working",
        (Wire::V03 | Wire::V01, State::Completed) => "completed",
        (Wire::V03 | Wire::V01, State::Failed) | (Wire::V01, State::Rejected) => "failed",
        (Wire::V03 | Wire::V01, State::Canceled) => "canceled",
        (Wire::V03 | Wire::V01, State::InputRequired) | (Wire::V01, State::AuthRequired) => "input-required",
        (Wire::V03, State::Rejected) => "rejected",
        (Wire::V03, State::AuthRequired) => "auth-required",
    }
}

pub(crate) fn list(wire: Wire, raw: RawJson<'_>) -> Result<TaskList, Garbled> {
    let mut members = Members::read(raw)?;
    Ok(TaskList {
        tasks: members.list("tasks", |raw| decode(wire, raw))?,
        next_page_token: members.text("nextPageToken")?.unwrap_or_default(),
        page_size: members.count("pageSize")?.unwrap_or_default(),
        total_size: members.count("totalSize")?.unwrap_or_default(),
        extra: members.rest(),
    })
}

impl Serialize for On<'_, Status> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(wire, status) = *self;
        let mut object = Object::open(serializer)?;
        object.put("state", state_name(wire, status.state))?;
        object.put_some("message", status.message.as_ref().map(|message| On(wire, message)).as_ref())?;
        object.put_some("timestamp", status.timestamp.as_ref())?;
        object.close(&status.extra, &[])
    }
}

impl Serialize for On<'_, Task> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(wire, task) = *self;
        let mut object = Object::open(serializer)?;
        object.put("id", &task.id)?;
        if wire == Wire::V03 {
            object.put("kind", "task")?;
        }
        put_context(&mut object, wire, task.context_id.as_ref())?;
        object.put("status", &On(wire, &task.status))?;
        if wire != Wire::V01 {
            object.put_list("artifacts", wire, &task.artifacts)?;
        } else if !task.artifacts.is_empty() {
            object.put("artifacts", &NumberedList(&task.artifacts))?;
        }
        object.put_list("history", wire, &task.history)?;
        object.put_some("metadata", task.metadata.as_ref())?;
        let reserved: &[&str] = match wire {
            // A bare task of 0.1 is known by what it does not have.
            Wire::V01 => &["sessionId", "contextId", "kind", "artifact", "final"],
            Wire::V10 | Wire::V03 | Wire::V03Proto => &["contextId"],
        };
        object.close(&task.extra, reserved)
    }
}

impl Serialize for NumberedList<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().zip(0..).map(|(artifact, place)| Numbered {
            artifact,
            place,
            append: false,
            last_chunk: false,
        }))
    }
}

impl Serialize for On<'_, TaskList> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(wire, list) = *self;
        let mut object = Object::open(serializer)?;
        object.put("tasks", &Each(wire, &list.tasks))?;
        object.put("nextPageToken", &list.next_page_token)?;
        object.put("pageSize", &list.page_size)?;
        object.put("totalSize", &list.total_size)?;
        object.close(&list.extra, &[])
    }
}

/// What the conversation's id is called in a task.
const fn context_name(wire: Wire) -> &'static str {
    if matches!(wire, Wire::V01) { "sessionId" } else { "contextId" }
}

pub(crate) fn put_context<M: serde::ser::SerializeMap>(
    object: &mut Object<M>,
    wire: Wire,
    context: Option<&String>,
) -> Result<(), M::Error> {
    match (wire, context) {
        (Wire::V03, None) => object.put("contextId", ""),
        _ => object.put_some(context_name(wire), context),
    }
}
