//! Messages.
//!
//! Lossy: 0.1 messages have no ids, extensions or references; 0.3's REST has no references and calls the parts `content`; 0.x has no
//! unspecified role, and gets `user`. A message without an id gets one.

use std::{
    borrow::Cow,
    hash::{DefaultHasher, Hash, Hasher},
};

use rialto_model::{
    json::RawJson,
    message::{Message, Role},
};
use serde::{Serialize, Serializer};

use super::part;
use crate::{
    invalid::InvalidDocument,
    members::{ObjectMembers, text},
    object::{Each, MemberValue, Merged, ObjectWriter, OnWire, text_of},
    wire::Wire,
};

/// Message with the skill that it requests.
pub(crate) struct SkillMessage<'a> {
    pub(crate) wire: Wire,
    pub(crate) message: &'a Message,
    pub(crate) skill: Option<&'a str>,
}

/// `{"skillId": …}`
struct SkillIdWriter<'a>(&'a str);

pub(crate) fn decode(wire: Wire, raw: RawJson<'_>) -> Result<Message, InvalidDocument> {
    from_members(wire, ObjectMembers::read(raw)?)
}

pub(crate) fn from_members(wire: Wire, mut members: ObjectMembers<'_>) -> Result<Message, InvalidDocument> {
    members.drop_kind("message");
    let parts = if wire == Wire::V03Proto && members.has("content") { "content" } else { "parts" };
    Ok(Message {
        id: members.text("messageId")?.unwrap_or_default(),
        role: members.take_as("role", role)?.unwrap_or(Role::Unspecified),
        parts: part::all(wire, &mut members, parts)?,
        context_id: members.id("contextId")?,
        task_id: members.id("taskId")?,
        metadata: members.object("metadata"),
        extensions: members.texts("extensions")?,
        reference_task_ids: members.texts("referenceTaskIds")?,
        extra: members.rest(),
    })
}

fn role(raw: RawJson<'_>) -> Result<Role, InvalidDocument> {
    Ok(match text(raw)?.as_str() {
        "user" | "ROLE_USER" => Role::User,
        "agent" | "ROLE_AGENT" => Role::Agent,
        _ => Role::Unspecified,
    })
}

impl Serialize for OnWire<'_, Message> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        SkillMessage { wire: self.0, message: self.1, skill: None }.serialize(serializer)
    }
}

impl Serialize for SkillMessage<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { wire, message, skill } = *self;
        let mut object = ObjectWriter::open(serializer)?;
        if wire != Wire::V01 {
            object.put("messageId", id_of(message).as_ref())?;
        }
        object.put("role", role_name(wire, message.role))?;
        if wire == Wire::V03 {
            object.put("kind", "message")?;
            object.put_some("skill", skill.map(SkillIdWriter).as_ref())?;
        }
        let parts = if wire == Wire::V03Proto { "content" } else { "parts" };
        object.put(parts, &Each(wire, &message.parts))?;
        if wire != Wire::V01 {
            object.put_some("contextId", message.context_id.as_ref())?;
            object.put_some("taskId", message.task_id.as_ref())?;
        }
        object.put_merged(
            "metadata",
            &Merged::new(message.metadata.as_ref()).with("skillId", skill.map(MemberValue::Text)),
        )?;
        if wire != Wire::V01 {
            object.put_texts("extensions", &message.extensions)?;
        }
        if matches!(wire, Wire::V10 | Wire::V03) {
            object.put_texts("referenceTaskIds", &message.reference_task_ids)?;
        }
        // A bare 0.1 message is recognized by its missing members.
        object.close(&message.extra, if wire == Wire::V01 { &["status", "artifact", "kind"] } else { &[] })
    }
}

impl Serialize for SkillIdWriter<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map([("skillId", self.0)])
    }
}

/// Id of a message; for one without any, an id derived from its content, so that it is stable. All dialects but 0.1 require one.
fn id_of(message: &Message) -> Cow<'_, str> {
    if !message.id.is_empty() {
        return Cow::Borrowed(&message.id);
    }
    let mut hasher = DefaultHasher::new();
    let place = (&message.context_id, &message.task_id, role_name(Wire::V10, message.role));
    (place, text_of(&Each(Wire::V10, &message.parts))).hash(&mut hasher);
    Cow::Owned(format!("message-{:016x}", hasher.finish()))
}

const fn role_name(wire: Wire, role: Role) -> &'static str {
    match (wire.is_proto(), role) {
        (true, Role::User) => "ROLE_USER",
        (true, Role::Agent) => "ROLE_AGENT",
        (true, Role::Unspecified) => "ROLE_UNSPECIFIED",
        (false, Role::User | Role::Unspecified) => "user",
        (false, Role::Agent) => "agent",
    }
}
