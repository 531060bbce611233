//! Artifacts.
//!
//! Lossy: 0.1 numbers artifacts instead of naming them, so there `artifact-3` and index 3 are equal; an artifact with any other name
//! gets its position among the task's artifacts as its number (in a stream: the `index` among its unknown members, or 0), and its
//! extensions are dropped.

use rialto_model::{json::RawJson, message::Artifact};
use serde::{Serialize, Serializer};

use super::part;
use crate::{
    invalid::InvalidDocument,
    members::ObjectMembers,
    object::{Each, ObjectWriter, OnWire},
    wire::Wire,
};

/// Chunk of an artifact in 0.1: the members about the chunk are inside.
pub(crate) struct ArtifactPiece {
    pub(crate) artifact: Artifact,
    pub(crate) append: bool,
    pub(crate) last_chunk: bool,
}

/// Encoder of a 0.1 artifact.
pub(crate) struct Numbered<'a> {
    pub(crate) artifact: &'a Artifact,
    pub(crate) place: u32,
    pub(crate) append: bool,
    pub(crate) last_chunk: bool,
}

pub(crate) fn decode(wire: Wire, raw: RawJson<'_>) -> Result<Artifact, InvalidDocument> {
    piece(wire, raw).map(|piece| piece.artifact)
}

pub(crate) fn piece(wire: Wire, raw: RawJson<'_>) -> Result<ArtifactPiece, InvalidDocument> {
    let mut members = ObjectMembers::read(raw)?;
    let (mut append, mut last_chunk) = (false, false);
    let mut id = members.id("artifactId")?;
    if wire == Wire::V01 {
        append = members.flag("append")?.unwrap_or_default();
        last_chunk = members.flag("lastChunk")?.unwrap_or_default();
        let index = members.count("index")?.unwrap_or_default();
        id = id.or_else(|| Some(format!("artifact-{index}")));
    }
    let artifact = Artifact {
        id: id.unwrap_or_default(),
        name: members.id("name")?,
        description: members.id("description")?,
        parts: part::all(wire, &mut members, "parts")?,
        metadata: members.object("metadata"),
        extensions: members.texts("extensions")?,
        extra: members.rest(),
    };
    Ok(ArtifactPiece { artifact, append, last_chunk })
}

impl Serialize for OnWire<'_, Artifact> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(wire, artifact) = *self;
        if wire == Wire::V01 {
            return Numbered { artifact, place: 0, append: false, last_chunk: false }.serialize(serializer);
        }
        let mut object = ObjectWriter::open(serializer)?;
        object.put("artifactId", &artifact.id)?;
        object.put_some("name", artifact.name.as_ref())?;
        object.put_some("description", artifact.description.as_ref())?;
        object.put("parts", &Each(wire, &artifact.parts))?;
        object.put_some("metadata", artifact.metadata.as_ref())?;
        object.put_texts("extensions", &artifact.extensions)?;
        object.close(&artifact.extra, &[])
    }
}

impl Numbered<'_> {
    fn index(&self) -> u32 {
        let told = self.artifact.extra.get("index").and_then(|index| index.get().parse().ok());
        let named = || self.artifact.id.strip_prefix("artifact-").and_then(|index| index.parse().ok());
        told.or_else(named).unwrap_or(self.place)
    }
}

impl Serialize for Numbered<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let artifact = self.artifact;
        let mut object = ObjectWriter::open(serializer)?;
        object.put_some("name", artifact.name.as_ref())?;
        object.put_some("description", artifact.description.as_ref())?;
        object.put("parts", &Each(Wire::V01, &artifact.parts))?;
        object.put_some("metadata", artifact.metadata.as_ref())?;
        object.put("index", &self.index())?;
        object.put_flag("append", self.append)?;
        object.put_flag("lastChunk", self.last_chunk)?;
        object.close(&artifact.extra, &["append", "lastChunk", "artifactId"])
    }
}
