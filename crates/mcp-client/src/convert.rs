//! Conversion of MCP messages to the domain model: pure functions.
//!
//! Structured content becomes data; text stays text, also when it is JSON; images, audio and resources become files; unknown content is
//! kept unchanged.

use rialto_model::{
    backing,
    card::{Card, Skill},
    event::{Event, EventAside},
    failure::{Failure, FailureKind},
    ids::fresh,
    json::{Extra, Json},
    mcp_metadata::{MCP_KEY, STRUCTURED_CONTENT_KEY},
    message::{Artifact, Content, Message, Part, Role, text_of},
};
use rmcp::model::{ProgressNotificationParam, ServerPeerInfo, Tool};
use serde_json::{Map, Value, json};

/// Maximum length of a server's description, in characters.
const MAX_DESCRIPTION_LENGTH: usize = 2_000;

/// Card of a server with these tools.
pub(crate) fn card(name: &str, info: Option<&ServerPeerInfo>, tools: &[Tool]) -> Card {
    let own = info.and_then(|info| info.server_info.as_ref());
    let description = info.and_then(|info| info.instructions.as_deref()).unwrap_or_default();
    let description: String = description.chars().take(MAX_DESCRIPTION_LENGTH).collect();
    let version = own.map(|own| own.version.as_str());
    backing::card(name, &description, version, tools.iter().map(skill).collect())
}

fn skill(tool: &Tool) -> Skill {
    let hinted = tool.annotations.as_ref().and_then(|hints| hints.title.clone());
    let title = tool.title.clone().or(hinted).filter(|title| !title.is_empty());
    let mut extra = Extra::new();
    if let Some(schema) = &tool.output_schema {
        extra.push("outputSchema", Json::encode(&**schema));
    }
    if let Some(annotations) = &tool.annotations {
        extra.push("annotations", Json::encode(annotations));
    }
    Skill {
        input_schema: Some(Json::encode(&*tool.input_schema)),
        extra,
        ..backing::skill(
            &tool.name,
            title.as_deref().unwrap_or(&tool.name),
            tool.description.as_deref().unwrap_or_default(),
        )
    }
}

/// Progress event of a call.
pub(crate) fn progress(told: ProgressNotificationParam) -> Event {
    // Before 2025-03-26 progress has no message.
    let text = told.message.unwrap_or_else(|| match told.total {
        Some(total) => format!("{}/{total}", told.progress),
        None => told.progress.to_string(),
    });
    let message = Some(Message::new(fresh(), Role::Agent, vec![Part::text(text)]));
    let facts = json!({ "progress": told.progress, "total": told.total });
    Event::Progress {
        working: true,
        message,
        aside: EventAside { metadata: Some(Json::encode(&facts)), ..EventAside::default() },
    }
}

/// Converts the result of a call of `tool` at `server` to its final events.
pub fn tool_result_events(value: &Value, server: &str, tool: &str) -> Vec<Event> {
    let Some(content) = value.get("content").and_then(Value::as_array) else {
        let message = format!("what MCP server {server} answered is not the result of a tool");
        return vec![Event::failed(Failure::new(FailureKind::PeerGarbled, message))];
    };
    let parts = parts(content, value.get("structuredContent").filter(|structured| !structured.is_null()));
    if value.get("isError").and_then(Value::as_bool) == Some(true) {
        return vec![failed(parts, tool)];
    }
    let metadata =
        value.get("_meta").and_then(beside).map(|meta| Json::encode(&json!({ MCP_KEY: { "_meta": meta } })));
    let name = Some(format!("{tool}-result"));
    let artifact = Artifact { name, metadata, ..Artifact::new("result", parts) };
    vec![
        Event::Artifact { artifact, append: false, last: true, aside: EventAside::default() },
        Event::Finished { message: None, aside: EventAside::default() },
    ]
}

fn failed(parts: Vec<Part>, tool: &str) -> Event {
    let text = text_of(&parts);
    let message = if text.is_empty() { format!("{tool} failed") } else { format!("{tool} failed: {text}") };
    let message_parts = (!parts.is_empty()).then(|| Message::new(fresh(), Role::Agent, parts));
    Event::Failed {
        failure: Failure::new(FailureKind::PeerFailed, message),
        message: message_parts,
        aside: EventAside::default(),
    }
}

/// `_meta` of a result without the server's identity, which is known.
fn beside(meta: &Value) -> Option<Map<String, Value>> {
    let mut meta = meta.as_object()?.clone();
    meta.retain(|name, _| !name.starts_with("io.modelcontextprotocol/"));
    (!meta.is_empty()).then_some(meta)
}

/// Content blocks as parts. Structured content comes first; text that only repeats it is dropped.
fn parts(content: &[Value], structured: Option<&Value>) -> Vec<Part> {
    let blocks = content.iter().filter(|block| !structured.is_some_and(|whole| repeats(block, whole)));
    let blocks: Vec<Part> = blocks.map(part).collect();
    let data = structured.map(|whole| {
        // Among other parts it must be recognizable.
        let metadata =
            (!blocks.is_empty()).then(|| Json::encode(&json!({ MCP_KEY: { STRUCTURED_CONTENT_KEY: true } })));
        Part { metadata, ..Part::data(Json::encode(whole)) }
    });
    data.into_iter().chain(blocks).collect()
}

/// True when text repeats the structured content. Some servers wrap a plain result as `{"result": …}`.
fn repeats(block: &Value, structured: &Value) -> bool {
    let Some(text) = block.get("text").and_then(Value::as_str) else { return false };
    let inner = structured.as_object().filter(|whole| whole.len() == 1).and_then(|whole| whole.get("result"));
    let is_same = |whole: &Value| {
        whole.as_str() == Some(text) || serde_json::from_str::<Value>(text).is_ok_and(|said| said == *whole)
    };
    is_same(structured) || inner.is_some_and(is_same)
}

fn part(block: &Value) -> Part {
    let known = block.as_object().and_then(|block| match text(block, "type")? {
        "text" => Some(Part { metadata: rest(block, &["type", "text"]), ..Part::text(text(block, "text")?) }),
        "image" | "audio" => Some(Part {
            metadata: rest(block, &["type", "data", "mimeType"]),
            ..file(text(block, "data")?, block, None)
        }),
        "resource" => resource(block, block.get("resource")?.as_object()?),
        "resource_link" => Some(link(block)?),
        _ => None,
    });
    known.unwrap_or_else(|| Part::new(Content::Unknown(Json::encode(block))))
}

/// Resource as a part. Every member is kept, so that it can be rendered as a resource again for MCP clients.
fn resource(block: &Map<String, Value>, resource: &Map<String, Value>) -> Option<Part> {
    let uri = text(resource, "uri");
    let mut kept = block.clone();
    let mut inner = resource.clone();
    inner.retain(|name, _| !matches!(name.as_str(), "text" | "blob" | "mimeType"));
    kept.insert("resource".to_owned(), Value::Object(inner));
    exact(&mut kept);
    let metadata = Some(Json::encode(&json!({ "uri": uri, MCP_KEY: kept })));
    if let Some(blob) = text(resource, "blob") {
        return Some(Part { metadata, ..file(blob, resource, uri.and_then(last)) });
    }
    let kind = text(resource, "mimeType").map(str::to_owned);
    Some(Part {
        media_type: kind,
        filename: uri.and_then(last).map(str::to_owned),
        metadata,
        ..Part::text(text(resource, "text")?)
    })
}

fn link(block: &Map<String, Value>) -> Option<Part> {
    Some(Part {
        media_type: text(block, "mimeType").map(str::to_owned),
        filename: text(block, "name").map(str::to_owned),
        metadata: rest(block, &["type", "uri", "name", "mimeType"]),
        ..Part::new(Content::Url(text(block, "uri")?.to_owned()))
    })
}

fn file(data: &str, block: &Map<String, Value>, name: Option<&str>) -> Part {
    Part {
        media_type: text(block, "mimeType").map(str::to_owned),
        filename: name.map(str::to_owned),
        ..Part::new(Content::Raw(data.to_owned()))
    }
}

/// Members of a block besides its content: annotations, `_meta`, a link's title and size.
fn rest(block: &Map<String, Value>, content: &[&str]) -> Option<Json> {
    let mut rest = block.clone();
    rest.retain(|name, _| !content.contains(&name.as_str()));
    exact(&mut rest);
    (!rest.is_empty()).then(|| Json::encode(&json!({ MCP_KEY: rest })))
}

/// Restores the priority: rmcp keeps 32 bits, which would show as 64.
fn exact(block: &mut Map<String, Value>) {
    let Some(priority) = block.get_mut("annotations").and_then(|annotations| annotations.get_mut("priority"))
    else {
        return;
    };
    let short = priority.as_f64().map(|priority| {
        #[expect(clippy::cast_possible_truncation, reason = "it was 32 bits before")]
        (priority as f32).to_string()
    });
    if let Some(exact) = short.and_then(|short| short.parse::<f64>().ok()) {
        *priority = json!(exact);
    }
}

fn text<'a>(object: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    object.get(name)?.as_str()
}

/// Last segment of a URI.
fn last(uri: &str) -> Option<&str> {
    uri.rsplit('/').next().filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(value: &Value) -> Vec<Part> {
        let content = value["content"].as_array().unwrap();
        parts(content, value.get("structuredContent"))
    }

    #[test]
    fn content_becomes_parts() {
        insta::assert_json_snapshot!(made(&json!({ "content": [
            { "type": "text", "text": "{\"a\":1}" },
            { "type": "image", "data": "aGk=", "mimeType": "image/png" },
            { "type": "audio", "data": "aGk=", "mimeType": "audio/wav" },
            { "type": "resource", "resource": { "uri": "file:///a/b.txt", "mimeType": "text/plain", "text": "hi" } },
            { "type": "resource", "resource": { "uri": "file:///a/b.bin", "blob": "aGk=" } },
            { "type": "resource_link", "uri": "https://a.example/c", "name": "c", "mimeType": "text/html" },
            { "type": "hologram", "depth": 3 },
        ] })));
    }

    #[test]
    fn a_text_that_repeats_the_structured_content_is_left_out() {
        let data = |value: Value| vec![Part::data(Json::encode(&value))];
        let text = |text: &str| json!({ "type": "text", "text": text });
        let whole = json!({ "n": 1 });
        assert_eq!(
            made(&json!({ "content": [text("{\"n\": 1}")], "structuredContent": whole })),
            data(whole.clone())
        );
        let wrapped = json!({ "result": "sunny" });
        assert_eq!(made(&json!({ "content": [text("sunny")], "structuredContent": wrapped })), data(wrapped));
        assert_eq!(made(&json!({ "content": [text("more")], "structuredContent": whole })).len(), 2);
    }
}
