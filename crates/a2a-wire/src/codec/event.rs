//! Stream events, and the answer to a message.
//!
//! 1.0 and 0.3's REST wrap an event in an object that names it; 0.3's JSON-RPC puts its `kind` inside; 0.1 says nothing.
//! All are read on every wire, and so are events without a `kind`, because servers mix them.

use rialto_model::json::RawJson;
use serde::{Serialize, Serializer, ser::SerializeMap};

use super::{
    artifact::{self, Numbered, Piece},
    message,
    task::{self, put_context},
};
use crate::{
    garbled::Garbled,
    members::Members,
    object::{Object, On},
    task::{ArtifactUpdate, SendAnswer, StatusUpdate, StreamEvent},
    wire::Wire,
};

#[derive(Clone, Copy)]
enum Shape {
    Task,
    Message,
    Status,
    Artifact,
}

const WRAPPERS: [(&str, Shape); 4] = [
    ("task", Shape::Task),
    ("message", Shape::Message),
    ("statusUpdate", Shape::Status),
    ("artifactUpdate", Shape::Artifact),
];

pub(crate) fn decode(wire: Wire, raw: RawJson<'_>) -> Result<StreamEvent, Garbled> {
    let members = Members::read(raw)?;
    if let Some(shape) = shape(wire, &members) {
        return read(wire, shape, members);
    }
    for (name, shape) in WRAPPERS {
        if let Some(inner) = members.peek(name).filter(|raw| raw.get() != "null") {
            return Members::read(inner).and_then(|inner| read(wire, shape, inner)).map_err(|e| e.at(name));
        }
    }
    Err(Garbled::new("a task, a message or an update", "an object that is none of them"))
}

pub(crate) fn send_answer(wire: Wire, raw: RawJson<'_>) -> Result<SendAnswer, Garbled> {
    // In 0.1 a bare `{id, status}` is an update in a stream, and a task everywhere else.
    if wire == Wire::V01 && Members::read(raw)?.has("status") {
        return task::decode(wire, raw).map(SendAnswer::Task);
    }
    match decode(wire, raw)? {
        StreamEvent::Task(task) => Ok(SendAnswer::Task(task)),
        StreamEvent::Message(message) => Ok(SendAnswer::Message(message)),
        StreamEvent::Status(_) | StreamEvent::Artifact(_) => {
            Err(Garbled::new("a task or a message", "an update of a stream"))
        }
    }
}

/// What an unwrapped object is, by what it says of itself or else by what it has.
fn shape(wire: Wire, members: &Members<'_>) -> Option<Shape> {
    match members.peek("kind").map(RawJson::get) {
        Some(r#""task""#) => return Some(Shape::Task),
        Some(r#""message""#) => return Some(Shape::Message),
        Some(r#""status-update""#) => return Some(Shape::Status),
        Some(r#""artifact-update""#) => return Some(Shape::Artifact),
        _ => {}
    }
    if members.has("artifact") {
        Some(Shape::Artifact)
    } else if members.has("status") {
        let whole = members.has("artifacts") || members.has("history");
        let update = members.has("taskId") || members.has("final") || wire == Wire::V01;
        Some(if update && !whole { Shape::Status } else { Shape::Task })
    } else if ["parts", "content", "messageId"].into_iter().any(|name| members.has(name)) {
        Some(Shape::Message)
    } else {
        None
    }
}

fn read(wire: Wire, shape: Shape, members: Members<'_>) -> Result<StreamEvent, Garbled> {
    match shape {
        Shape::Task => task::from_members(wire, members).map(StreamEvent::Task),
        Shape::Message => message::from_members(wire, members).map(StreamEvent::Message),
        Shape::Status => status_update(wire, members).map(StreamEvent::Status),
        Shape::Artifact => artifact_update(wire, members).map(StreamEvent::Artifact),
    }
}

fn status_update(wire: Wire, mut members: Members<'_>) -> Result<StatusUpdate, Garbled> {
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

fn artifact_update(wire: Wire, mut members: Members<'_>) -> Result<ArtifactUpdate, Garbled> {
    members.drop_kind("artifact-update");
    let Piece { artifact, append, last_chunk } =
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

impl Serialize for On<'_, StreamEvent> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.1 {
            StreamEvent::Task(task) => wrapped(self.0, "task", task, serializer),
            StreamEvent::Message(message) => wrapped(self.0, "message", message, serializer),
            StreamEvent::Status(update) => wrapped(self.0, "statusUpdate", update, serializer),
            StreamEvent::Artifact(update) => wrapped(self.0, "artifactUpdate", update, serializer),
        }
    }
}

impl Serialize for On<'_, SendAnswer> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.1 {
            SendAnswer::Task(task) => wrapped(self.0, "task", task, serializer),
            SendAnswer::Message(message) => wrapped(self.0, "message", message, serializer),
        }
    }
}

impl Serialize for On<'_, StatusUpdate> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(wire, update) = *self;
        let mut object = Object::open(serializer)?;
        open_update(&mut object, wire, "status-update", &update.task_id, update.context_id.as_ref())?;
        object.put("status", &On(wire, &update.status))?;
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

impl Serialize for On<'_, ArtifactUpdate> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(wire, update) = *self;
        let ArtifactUpdate { artifact, append, last_chunk, .. } = update;
        let (append, last_chunk) = (*append, *last_chunk);
        let mut object = Object::open(serializer)?;
        open_update(&mut object, wire, "artifact-update", &update.task_id, update.context_id.as_ref())?;
        if wire == Wire::V01 {
            object.put("artifact", &Numbered { artifact, place: 0, append, last_chunk })?;
        } else {
            object.put("artifact", &On(wire, artifact))?;
            object.put_flag("append", append)?;
            object.put_flag("lastChunk", last_chunk)?;
        }
        object.put_some("metadata", update.metadata.as_ref())?;
        object.close(&update.extra, &[])
    }
}

fn open_update<M: SerializeMap>(
    object: &mut Object<M>,
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
    On<'a, T>: Serialize,
{
    if !wire.is_proto() {
        return On(wire, inner).serialize(serializer);
    }
    let mut object = Object::open(serializer)?;
    object.put(name, &On(wire, inner))?;
    object.end()
}

/// What the task's id is called in an update.
const fn id_name(wire: Wire) -> &'static str {
    if matches!(wire, Wire::V01) { "id" } else { "taskId" }
}
