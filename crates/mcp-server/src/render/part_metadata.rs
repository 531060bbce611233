//! Metadata of a part: names, media types, annotations.
//!
//! Parts of an MCP server keep the members of their original block (`metadata.mcp`), and are rendered as that block again. Data of A2A
//! agents without a field in MCP is in the `_meta` of the block (`rialto/part`) and of the result (`rialto/artifact`). Results with
//! several parts need none of this: their structured content is complete.

use rialto_model::{
    a2a_json::{ArtifactJson, PartJson},
    json::Json,
    mcp_metadata::{MCP_KEY, STRUCTURED_CONTENT_KEY},
    message::{Artifact, Content, Part},
    task::Task,
};
use rmcp::model::{ContentBlock, MetaObject};
use serde_json::{Map, Value, json};

use crate::client_profile::ProtocolFeatures;

/// Original block of a part of an MCP server. None for other parts, or when the client does not support the block.
pub(super) fn as_it_was(part: &Part, metadata: &Json, fluency: ProtocolFeatures) -> Option<ContentBlock> {
    if !metadata.get().contains("\"mcp\"") {
        return None;
    }
    let Value::Object(mut metadata) = metadata.value() else { return None };
    let Some(Value::Object(mut block)) = metadata.remove(MCP_KEY) else { return None };
    let kind = part.media_type.as_deref();
    let is_resource = block.get("type").and_then(Value::as_str) == Some("resource");
    match &part.content {
        _ if is_resource => fill(block.get_mut("resource")?.as_object_mut()?, &part.content, kind)?,
        Content::Text(text) => put(&mut block, [("type", "text"), ("text", text)]),
        Content::Raw(data) if kind.is_some_and(|kind| kind.starts_with("image/")) => {
            put(&mut block, [("type", "image"), ("data", data), ("mimeType", kind?)]);
        }
        Content::Raw(data) if fluency.audio && kind.is_some_and(|kind| kind.starts_with("audio/")) => {
            put(&mut block, [("type", "audio"), ("data", data), ("mimeType", kind?)]);
        }
        Content::Url(uri) if fluency.links => {
            let name = part.filename.as_deref()?;
            put(&mut block, [("type", "resource_link"), ("uri", uri), ("name", name)]);
            if let Some(kind) = kind {
                put(&mut block, [("mimeType", kind)]);
            }
        }
        _ => return None,
    }
    serde_json::from_value(Value::Object(block)).ok()
}

/// Structured content of an MCP server's result, if the client supports its type.
pub(super) fn structured(part: &Part, fluency: ProtocolFeatures) -> Option<&Json> {
    let Content::Data(data) = &part.content else { return None };
    let metadata =
        part.metadata.as_ref().filter(|metadata| metadata.get().contains(STRUCTURED_CONTENT_KEY))?;
    let is_so = metadata.value().pointer("/mcp/structuredContent") == Some(&Value::Bool(true));
    (is_so && (fluency.modern || data.is_object())).then_some(data)
}

/// `_meta` of a task's result: from the MCP server, or the metadata of a single-part artifact.
pub(super) fn beside(task: &Task) -> Option<Json> {
    // A deployed tool gets its name here, not from the agent.
    if !task.head.agent_url.starts_with("http") {
        return task.artifacts.iter().find_map(of_server);
    }
    match task.artifacts.as_slice() {
        [artifact] if artifact.parts.len() == 1 => of_artifact(artifact),
        _ => None,
    }
}

fn of_server(artifact: &Artifact) -> Option<Json> {
    let metadata = artifact.metadata.as_ref().filter(|metadata| metadata.get().contains("\"mcp\""))?;
    let Value::Object(mut meta) = metadata.value().pointer_mut("/mcp/_meta")?.take() else { return None };
    meta.retain(|name, _| !name.starts_with("rialto/") && !name.starts_with("io.modelcontextprotocol/"));
    (!meta.is_empty()).then(|| Json::encode(&meta))
}

fn of_artifact(artifact: &Artifact) -> Option<Json> {
    let Artifact { name, description, metadata, extensions, extra, .. } = artifact;
    let is_bare = name.is_none()
        && description.is_none()
        && metadata.is_none()
        && extensions.is_empty()
        && extra.is_empty();
    if is_bare {
        return None;
    }
    let bare = Artifact { parts: Vec::new(), ..artifact.clone() };
    let mut facts = serde_json::to_value(ArtifactJson(&bare)).ok()?;
    facts.as_object_mut()?.shift_remove("parts");
    Some(Json::encode(&json!({ "rialto/artifact": facts })))
}

/// Block of the only part, with metadata that it does not have itself.
pub(super) fn with_rest(block: ContentBlock, part: &Part) -> ContentBlock {
    let Part { filename, media_type, metadata, extra, .. } = part;
    // Most parts have no metadata.
    if filename.is_none() && media_type.is_none() && metadata.is_none() && extra.is_empty() {
        return block;
    }
    let Ok(Value::Object(mut rest)) = serde_json::to_value(PartJson(part)) else { return block };
    rest.retain(|name, _| !matches!(name.as_str(), "text" | "data" | "raw" | "url"));
    let is_said = |name: &str, usual: &str| match (&block, name) {
        (ContentBlock::Text(_), "mediaType") => media_type.as_deref() == Some(usual),
        (_, "mediaType") => true,
        (ContentBlock::Resource(_) | ContentBlock::ResourceLink(_), "filename")
        | (ContentBlock::ResourceLink(_), "size") => true,
        _ => false,
    };
    let usual = if matches!(part.content, Content::Text(_)) { "text/plain" } else { "application/json" };
    rest.retain(|name, _| !is_said(name, usual));
    if let Some(Value::Object(metadata)) = rest.get_mut("metadata")
        && metadata.remove(MCP_KEY).is_some()
    {
        metadata.remove("uri");
        if metadata.is_empty() {
            rest.remove("metadata");
        }
    }
    with_meta(block, "rialto/part", rest)
}

fn with_meta(mut block: ContentBlock, name: &str, facts: Map<String, Value>) -> ContentBlock {
    if facts.is_empty() {
        return block;
    }
    let meta = match &mut block {
        ContentBlock::Text(text) => &mut text.meta,
        ContentBlock::Image(image) => &mut image.meta,
        ContentBlock::Audio(audio) => &mut audio.meta,
        ContentBlock::Resource(resource) => &mut resource.meta,
        ContentBlock::ResourceLink(link) => &mut link.meta,
        _ => return block,
    };
    meta.get_or_insert_with(MetaObject::new).insert(name.to_owned(), Value::Object(facts));
    block
}

/// Puts the content back into a resource.
fn fill(resource: &mut Map<String, Value>, content: &Content, kind: Option<&str>) -> Option<()> {
    match content {
        Content::Text(text) => put(resource, [("text", text)]),
        Content::Raw(blob) => put(resource, [("blob", blob)]),
        Content::Data(_) | Content::Url(_) | Content::Unknown(_) => return None,
    }
    if let Some(kind) = kind {
        put(resource, [("mimeType", kind)]);
    }
    Some(())
}

fn put<const N: usize>(object: &mut Map<String, Value>, members: [(&str, &str); N]) {
    for (name, text) in members {
        object.insert(name.to_owned(), Value::String(text.to_owned()));
    }
}

#[cfg(test)]
mod tests;
