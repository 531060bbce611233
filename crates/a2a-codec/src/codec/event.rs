//! Stream events, and the response to a message.
//!
//! 1.0 and 0.3's REST wrap an event in an object that names it; 0.3's JSON-RPC puts its `kind` inside; 0.1 has neither. All are decoded
//! on every wire, and so are events without a `kind`, because servers mix them.

use rialto_model::json::RawJson;
use serde::{Serialize, Serializer, ser::SerializeMap};

use super::{
    artifact::{self, ArtifactPiece, Numbered},
    message,
    task::{self, put_context},
};
use crate::{
    invalid::InvalidDocument,
    members::ObjectMembers,
    object::{ObjectWriter, OnWire},
    task::{ArtifactUpdate, SendAnswer, StatusUpdate, StreamEvent},
    wire::Wire,
};

#[derive(Clone, Copy)]
enum EventShape {
    Task,
    Message,
    Status,
    Artifact,
}

const WRAPPERS: [(&str, EventShape); 4] = [
    ("task", EventShape::Task),
    ("message", EventShape::Message),
    ("statusUpdate", EventShape::Status),
    ("artifactUpdate", EventShape::Artifact),
];

pub(crate) fn decode(wire: Wire, raw: RawJson<'_>) -> Result<StreamEvent, InvalidDocument> {
    let members = ObjectMembers::read(raw)?;
    if let Some(shape) = shape(wire, &members) {
        return read(wire, shape, members);
    }
    for (name, shape) in WRAPPERS {
        if let Some(inner) = members.peek(name).filter(|raw| raw.get() != "null") {
            return ObjectMembers::read(inner)
                .and_then(|inner| read(wire, shape, inner))
                .map_err(|e| e.at(name));
        }
    }
    Err(InvalidDocument::new("a task, a message or an update", "an object that is none of them"))
}

pub(crate) fn send_answer(wire: Wire, raw: RawJson<'_>) -> Result<SendAnswer, InvalidDocument> {
    // In 0.1 a bare `{id, status}` is an update in a stream, and a task everywhere else.
    if wire == Wire::V01 && ObjectMembers::read(raw)?.has("status") {
        return task::decode(wire, raw).map(SendAnswer::Task);
    }
    match decode(wire, raw)? {
        StreamEvent::Task(task) => Ok(SendAnswer::Task(task)),
        StreamEvent::Message(message) => Ok(SendAnswer::Message(message)),
        StreamEvent::Status(_) | StreamEvent::Artifact(_) => {
            Err(InvalidDocument::new("a task or a message", "an update of a stream"))
        }
    }
}

/// Shape of an unwrapped object, by its `kind` or else by its members.
fn shape(wire: Wire, members: &ObjectMembers<'_>) -> Option<EventShape> {
    match members.peek("kind").map(RawJson::get) {
        Some(r#""task""#) => return Some(EventShape::Task),
        Some(r#""message""#) => return Some(EventShape::Message),
        Some(r#""status-update""#) => return Some(EventShape::Status),
        Some(r#""artifact-update""#) => return Some(EventShape::Artifact),
        _ => {}
    }
    if members.has("artifact") {
        Some(EventShape::Artifact)
    } else if members.has("status") {
        let whole = members.has("artifacts") || members.has("history");
        let update = members.has("taskId") || members.has("final") || wire == Wire::V01;
        Some(if update && !whole { EventShape::Status } else { EventShape::Task })
    } else if ["parts", "content", "messageId"].into_iter().any(|name| members.has(name)) {
        Some(EventShape::Message)
    } else {
        None
    }
}

fn read(wire: Wire, shape: EventShape, members: ObjectMembers<'_>) -> Result<StreamEvent, InvalidDocument> {
    match shape {
        EventShape::Task => task::from_members(wire, members).map(StreamEvent::Task),
        EventShape::Message => message::from_members(wire, members).map(StreamEvent::Message),
        EventShape::Status => status_update(wire, members).map(StreamEvent::Status),
        EventShape::Artifact => artifact_update(wire, members).map(StreamEvent::Artifact),
    }
}

fn status_update(wire: Wire, mut members: ObjectMembers<'_>) -> Result<StatusUpdate, InvalidDocument> {
    members.drop_kind("status-update");
    let status = members.need("status", "an object", |raw| task::status(wire, raw))?;
    let said = members.flag("final")?;
    let is_final = if wire == Wire::V10 { status.state.ends_stream() } else { said.unwrap_or_default() };
    Ok(StatusUpdate {
        task_id: members.text(id_name(wire))?.unwrap_or_default(),
        context_id: members.id("contextId")?,
        status,
        is_final,
        metadata: members.object("metadata"),
        extra: members.rest(),
    })
}

fn artifact_update(wire: Wire, mut members: ObjectMembers<'_>) -> Result<ArtifactUpdate, InvalidDocument> {
    members.drop_kind("artifact-update");
    let ArtifactPiece { artifact, append, last_chunk } =
        members.need("artifact", "an object", |raw| artifact::piece(wire, raw))?;
    Ok(ArtifactUpdate {
        task_id: members.text(id_name(wire))?.unwrap_or_default(),
        context_id: members.id("contextId")?,
        artifact,
        append: members.flag("append")?.unwrap_or(append),
        last_chunk: members.flag("lastChunk")?.unwrap_or(last_chunk),
        metadata: members.object("metadata"),
        extra: members.rest(),
    })
}

impl Serialize for OnWire<'_, StreamEvent> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.1 {
            StreamEvent::Task(task) => wrapped(self.0, "task", task, serializer),
            StreamEvent::Message(message) => wrapped(self.0, "message", message, serializer),
            StreamEvent::Status(update) => wrapped(self.0, "statusUpdate", update, serializer),
            StreamEvent::Artifact(update) => wrapped(self.0, "artifactUpdate", update, serializer),
        }
    }
}

impl Serialize for OnWire<'_, SendAnswer> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.1 {
            SendAnswer::Task(task) => wrapped(self.0, "task", task, serializer),
            SendAnswer::Message(message) => wrapped(self.0, "message", message, serializer),
        }
    }
}

impl Serialize for OnWire<'_, StatusUpdate> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(wire, update) = *self;
        let mut object = ObjectWriter::open(serializer)?;
        open_update(&mut object, wire, "status-update", &update.task_id, update.context_id.as_ref())?;
        object.put("status", &OnWire(wire, &update.status))?;
        match wire {
            Wire::V03 | Wire::V01 => object.put("final", &update.is_final)?,
            Wire::V03Proto => object.put_flag("final", update.is_final)?,
            Wire::V10 => {}
        }
        object.put_some("metadata", update.metadata.as_ref())?;
        let reserved: &[&str] = match wire {
            Wire::V01 => &["artifact", "artifacts", "history", "kind"],
            Wire::V10 | Wire::V03 | Wire::V03Proto => &[],
        };
        object.close(&update.extra, reserved)
    }
}

impl Serialize for OnWire<'_, ArtifactUpdate> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(wire, update) = *self;
        let ArtifactUpdate { artifact, append, last_chunk, .. } = update;
        let (append, last_chunk) = (*append, *last_chunk);
        let mut object = ObjectWriter::open(serializer)?;
        open_update(&mut object, wire, "artifact-update", &update.task_id, update.context_id.as_ref())?;
        if wire == Wire::V01 {
            object.put("artifact", &Numbered { artifact, place: 0, append, last_chunk })?;
        } else {
            object.put("artifact", &OnWire(wire, artifact))?;
            object.put_flag("append", append)?;
            object.put_flag("lastChunk", last_chunk)?;
        }
        object.put_some("metadata", update.metadata.as_ref())?;
        object.close(&update.extra, &[])
    }
}

fn open_update<M: SerializeMap>(
    object: &mut ObjectWriter<M>,
    wire: Wire,
    kind: &'static str,
    task_id: &str,
    context_id: Option<&String>,
) -> Result<(), M::Error> {
    object.put(id_name(wire), task_id)?;
    match wire {
        Wire::V03 => {
            object.put("kind", kind)?;
            put_context(object, wire, context_id)
        }
        Wire::V10 | Wire::V03Proto => put_context(object, wire, context_id),
        Wire::V01 => Ok(()),
    }
}

fn wrapped<'a, T, S: Serializer>(
    wire: Wire,
    name: &'static str,
    inner: &'a T,
    serializer: S,
) -> Result<S::Ok, S::Error>
where
    OnWire<'a, T>: Serialize,
{
    if !wire.is_proto() {
        return OnWire(wire, inner).serialize(serializer);
    }
    let mut object = ObjectWriter::open(serializer)?;
    object.put(name, &OnWire(wire, inner))?;
    object.end()
}

/// Name of the task id in an update.
const fn id_name(wire: Wire) -> &'static str {
    if matches!(wire, Wire::V01) { "id" } else { "taskId" }
}
