//! Tasks, their states, and pages of them.
//!
//! Lossy: 0.1 has no rejected and no auth-required state, and gets `failed` and `input-required`; 0.x requires a context id and gets an
//! empty one when there is none. States are decoded in every spelling on every wire.

use rialto_model::json::RawJson;
use serde::{Serialize, Serializer};

use super::{
    artifact::{self, Numbered},
    message,
};
use crate::{
    invalid::InvalidDocument,
    members::{ObjectMembers, text},
    object::{Each, ObjectWriter, OnWire},
    task::{A2aState, A2aStatus, A2aTask, TaskList},
    wire::Wire,
};

/// Artifacts of a 0.1 task.
struct NumberedList<'a>(&'a [rialto_model::message::Artifact]);

pub(crate) fn decode(wire: Wire, raw: RawJson<'_>) -> Result<A2aTask, InvalidDocument> {
    from_members(wire, ObjectMembers::read(raw)?)
}

pub(crate) fn from_members(wire: Wire, mut members: ObjectMembers<'_>) -> Result<A2aTask, InvalidDocument> {
    members.drop_kind("task");
    // A 0.1 agent may already use the newer name.
    let session_id = if wire == Wire::V01 { members.id("sessionId")? } else { None };
    Ok(A2aTask {
        id: members.need("id", "a string", text)?,
        context_id: session_id.or(members.id("contextId")?),
        status: members.need("status", "an object", |raw| status(wire, raw))?,
        artifacts: members.list("artifacts", |raw| artifact::decode(wire, raw))?,
        history: members.list("history", |raw| message::decode(wire, raw))?,
        metadata: members.object("metadata"),
        extra: members.rest(),
    })
}

pub(crate) fn status(wire: Wire, raw: RawJson<'_>) -> Result<A2aStatus, InvalidDocument> {
    let mut members = ObjectMembers::read(raw)?;
    Ok(A2aStatus {
        state: members.take_as("state", state)?.unwrap_or(A2aState::Unspecified),
        message: members.take_as("message", |raw| message::decode(wire, raw))?,
        timestamp: members.id("timestamp")?,
        extra: members.rest(),
    })
}

fn state(raw: RawJson<'_>) -> Result<A2aState, InvalidDocument> {
    text(raw).map(|name| parse_state(&name))
}

/// Parses the name of a state in any dialect.
pub(crate) fn parse_state(name: &str) -> A2aState {
    match name.strip_prefix("TASK_STATE_").unwrap_or(name) {
        "SUBMITTED" | "submitted" => A2aState::Submitted,
        "WORKING" | "working" => A2aState::Working,
        "COMPLETED" | "completed" => A2aState::Completed,
        "FAILED" | "failed" => A2aState::Failed,
        "CANCELED" | "CANCELLED" | "canceled" | "cancelled" => A2aState::Canceled,
        "INPUT_REQUIRED" | "input-required" => A2aState::InputRequired,
        "REJECTED" | "rejected" => A2aState::Rejected,
        "AUTH_REQUIRED" | "auth-required" => A2aState::AuthRequired,
        _ => A2aState::Unspecified,
    }
}

/// Name of a state on a wire.
pub(crate) const fn state_name(wire: Wire, state: A2aState) -> &'static str {
    match (wire, state) {
        (Wire::V10 | Wire::V03Proto, A2aState::Unspecified) => "TASK_STATE_UNSPECIFIED",
        (Wire::V10 | Wire::V03Proto, A2aState::Submitted) => "TASK_STATE_SUBMITTED",
        (Wire::V10 | Wire::V03Proto, A2aState::Working) => "TASK_STATE_WORKING",
        (Wire::V10 | Wire::V03Proto, A2aState::Completed) => "TASK_STATE_COMPLETED",
        (Wire::V10 | Wire::V03Proto, A2aState::Failed) => "TASK_STATE_FAILED",
        (Wire::V10, A2aState::Canceled) => "TASK_STATE_CANCELED",
        (Wire::V03Proto, A2aState::Canceled) => "TASK_STATE_CANCELLED",
        (Wire::V10 | Wire::V03Proto, A2aState::InputRequired) => "TASK_STATE_INPUT_REQUIRED",
        (Wire::V10 | Wire::V03Proto, A2aState::Rejected) => "TASK_STATE_REJECTED",
        (Wire::V10 | Wire::V03Proto, A2aState::AuthRequired) => "TASK_STATE_AUTH_REQUIRED",
        (Wire::V03 | Wire::V01, A2aState::Unspecified) => "unknown",
        (Wire::V03 | Wire::V01, A2aState::Submitted) => "submitted",
        (Wire::V03 | Wire::V01, A2aState::Working) => "working",
        (Wire::V03 | Wire::V01, A2aState::Completed) => "completed",
        (Wire::V03 | Wire::V01, A2aState::Failed) | (Wire::V01, A2aState::Rejected) => "failed",
        (Wire::V03 | Wire::V01, A2aState::Canceled) => "canceled",
        (Wire::V03 | Wire::V01, A2aState::InputRequired) | (Wire::V01, A2aState::AuthRequired) => {
            "input-required"
        }
        (Wire::V03, A2aState::Rejected) => "rejected",
        (Wire::V03, A2aState::AuthRequired) => "auth-required",
    }
}

pub(crate) fn list(wire: Wire, raw: RawJson<'_>) -> Result<TaskList, InvalidDocument> {
    let mut members = ObjectMembers::read(raw)?;
    Ok(TaskList {
        tasks: members.list("tasks", |raw| decode(wire, raw))?,
        next_page_token: members.text("nextPageToken")?.unwrap_or_default(),
        page_size: members.count("pageSize")?.unwrap_or_default(),
        total_size: members.count("totalSize")?.unwrap_or_default(),
        extra: members.rest(),
    })
}

impl Serialize for OnWire<'_, A2aStatus> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(wire, status) = *self;
        let mut object = ObjectWriter::open(serializer)?;
        object.put("state", state_name(wire, status.state))?;
        object.put_some("message", status.message.as_ref().map(|message| OnWire(wire, message)).as_ref())?;
        object.put_some("timestamp", status.timestamp.as_ref())?;
        object.close(&status.extra, &[])
    }
}

impl Serialize for OnWire<'_, A2aTask> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(wire, task) = *self;
        let mut object = ObjectWriter::open(serializer)?;
        object.put("id", &task.id)?;
        if wire == Wire::V03 {
            object.put("kind", "task")?;
        }
        put_context(&mut object, wire, task.context_id.as_ref())?;
        object.put("status", &OnWire(wire, &task.status))?;
        if wire != Wire::V01 {
            object.put_list("artifacts", wire, &task.artifacts)?;
        } else if !task.artifacts.is_empty() {
            object.put("artifacts", &NumberedList(&task.artifacts))?;
        }
        object.put_list("history", wire, &task.history)?;
        object.put_some("metadata", task.metadata.as_ref())?;
        let reserved: &[&str] = match wire {
            // A bare 0.1 task is recognized by its missing members.
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

impl Serialize for OnWire<'_, TaskList> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(wire, list) = *self;
        let mut object = ObjectWriter::open(serializer)?;
        object.put("tasks", &Each(wire, &list.tasks))?;
        object.put("nextPageToken", &list.next_page_token)?;
        object.put("pageSize", &list.page_size)?;
        object.put("totalSize", &list.total_size)?;
        object.close(&list.extra, &[])
    }
}

/// Name of the conversation id in a task.
const fn context_name(wire: Wire) -> &'static str {
    if matches!(wire, Wire::V01) { "sessionId" } else { "contextId" }
}

pub(crate) fn put_context<M: serde::ser::SerializeMap>(
    object: &mut ObjectWriter<M>,
    wire: Wire,
    context: Option<&String>,
) -> Result<(), M::Error> {
    match (wire, context) {
        (Wire::V03, None) => object.put("contextId", ""),
        _ => object.put_some(context_name(wire), context),
    }
}
