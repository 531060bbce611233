//! Artifacts and messages as A2A 1.0 writes them, for doors that show them whole.

use serde::{Serialize, Serializer, ser::SerializeMap};

use crate::{
    json::Extra,
    message::{Artifact, Content, Message, Part, Role},
};

/// A part in A2A 1.0's shape.
pub struct PartJson<'a>(pub &'a Part);

/// An artifact in A2A 1.0's shape.
pub struct ArtifactJson<'a>(pub &'a Artifact);

/// A message in A2A 1.0's shape.
pub struct MessageJson<'a>(pub &'a Message);

// === impl PartJson ===

impl Serialize for PartJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let part = self.0;
        if let Content::Unknown(whole) = &part.content {
            return whole.serialize(serializer);
        }
        let mut map = serializer.serialize_map(None)?;
        match &part.content {
            Content::Text(text) => map.serialize_entry("text", text)?,
            Content::Data(data) => map.serialize_entry("data", data)?,
            Content::Raw(base64) => map.serialize_entry("raw", base64)?,
            Content::Url(url) => map.serialize_entry("url", url)?,
            Content::Unknown(_) => {}
        }
        some(&mut map, "filename", part.filename.as_ref())?;
        some(&mut map, "mediaType", part.media_type.as_ref())?;
        some(&mut map, "metadata", part.metadata.as_ref())?;
        rest(&mut map, &part.extra)?;
        map.end()
    }
}

// === impl ArtifactJson ===

impl Serialize for ArtifactJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let artifact = self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("artifactId", &artifact.id)?;
        some(&mut map, "name", artifact.name.as_ref())?;
        some(&mut map, "description", artifact.description.as_ref())?;
        map.serialize_entry("parts", &parts(&artifact.parts))?;
        some(&mut map, "metadata", artifact.metadata.as_ref())?;
        many(&mut map, "extensions", &artifact.extensions)?;
        rest(&mut map, &artifact.extra)?;
        map.end()
    }
}

// === impl MessageJson ===

impl Serialize for MessageJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let message = self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("messageId", &message.id)?;
        map.serialize_entry("role", role(message.role))?;
        map.serialize_entry("parts", &parts(&message.parts))?;
        some(&mut map, "contextId", message.context_id.as_ref())?;
        some(&mut map, "taskId", message.task_id.as_ref())?;
        some(&mut map, "metadata", message.metadata.as_ref())?;
        many(&mut map, "extensions", &message.extensions)?;
        many(&mut map, "referenceTaskIds", &message.reference_task_ids)?;
        rest(&mut map, &message.extra)?;
        map.end()
    }
}

fn parts(parts: &[Part]) -> Vec<PartJson<'_>> {
    parts.iter().map(PartJson).collect()
}

const fn role(role: Role) -> &'static str {
    match role {
        Role::User => "ROLE_USER",
        Role::Agent => "ROLE_AGENT",
        Role::Unspecified => "ROLE_UNSPECIFIED",
    }
}

fn some<M: SerializeMap, T: Serialize>(map: &mut M, name: &str, value: Option<&T>) -> Result<(), M::Error> {
    value.map_or(Ok(()), |value| map.serialize_entry(name, value))
}

fn many<M: SerializeMap>(map: &mut M, name: &str, values: &[String]) -> Result<(), M::Error> {
    if values.is_empty() { Ok(()) } else { map.serialize_entry(name, values) }
}

fn rest<M: SerializeMap>(map: &mut M, extra: &Extra) -> Result<(), M::Error> {
    extra.iter().try_for_each(|(name, value)| map.serialize_entry(name, value))
}
