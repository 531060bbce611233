//! Message parts as content blocks of a prompt.
//!
//! Text stays text. Data and files become attachments, listed in a line before everything else. A part that the agent does not accept is
//! sent as text where that is safe, and refused with the reason where it is not.

use agent_client_protocol::v1::schema::{
    AudioContent, BlobResourceContents, ContentBlock, EmbeddedResource, EmbeddedResourceResource,
    ImageContent, PromptCapabilities, ResourceLink, TextContent, TextResourceContents,
};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use rialto_model::{
    failure::{Failure, FailureKind},
    json::Json,
    message::{Content, Part},
};
use serde_json::Value;

/// Members that may hold the only text of a data part.
const TEXT_MEMBERS: [&str; 5] = ["message", "prompt", "text", "input", "task"];

/// Maximum bytes of a file that is sent as text.
const MAX_INLINE_TEXT_BYTES: usize = 1024 * 1024;

/// Attachment of a prompt.
struct PromptAttachment {
    name: String,
    kind: String,
    bytes: usize,
    block: ContentBlock,
}

/// Content blocks of a prompt; `instructions` come first.
pub(crate) fn from_parts(
    parts: &[Part],
    instructions: Option<&str>,
    takes: &PromptCapabilities,
) -> Result<Vec<ContentBlock>, Failure> {
    let mut said: Vec<ContentBlock> = Vec::new();
    let mut attached: Vec<PromptAttachment> = Vec::new();
    for (number, part) in (1..).zip(parts) {
        match &part.content {
            Content::Text(text) => said.push(text_block(text)),
            Content::Data(data) => match single_text(data) {
                Some(text) if part.filename.is_none() => said.push(text_block(&text)),
                _ => attached.push(json_attachment(number, part, data, takes)),
            },
            Content::Raw(base64) => attached.push(file_attachment(number, part, base64, takes)?),
            Content::Url(url) => attached.push(link_attachment(number, part, url)?),
            Content::Unknown(_) => {
                return Err(unsupported(number, "its kind is unknown"));
            }
        }
    }
    let mut blocks: Vec<ContentBlock> = instructions.map(text_block).into_iter().collect();
    if !attached.is_empty() {
        blocks.push(text_block(&attachment_list(&attached)));
    }
    blocks.extend(said);
    blocks.extend(attached.into_iter().map(|file| file.block));
    if blocks.is_empty() {
        return Err(Failure::new(
            FailureKind::Invalid,
            "the message is empty: a coding agent needs a prompt",
        ));
    }
    Ok(blocks)
}

/// List of the attachments.
fn attachment_list(attached: &[PromptAttachment]) -> String {
    let lines = attached.iter().map(|file| format!("- {} ({}, {} bytes)", file.name, file.kind, file.bytes));
    format!("Attached to this message:\n{}", lines.collect::<Vec<_>>().join("\n"))
}

fn json_attachment(number: usize, part: &Part, data: &Json, takes: &PromptCapabilities) -> PromptAttachment {
    let name = attachment_name(number, part, "json");
    let text = data.get();
    let block = text_file(&name, "application/json", text, takes);
    PromptAttachment { name, kind: "application/json".to_owned(), bytes: text.len(), block }
}

fn file_attachment(
    number: usize,
    part: &Part,
    base64: &str,
    takes: &PromptCapabilities,
) -> Result<PromptAttachment, Failure> {
    let kind = part.media_type.clone().unwrap_or_else(|| "application/octet-stream".to_owned());
    let bytes =
        BASE64_STANDARD.decode(base64).map_err(|_| unsupported(number, "its bytes are not base64"))?;
    let name = attachment_name(number, part, "bin");
    let size = bytes.len();
    let family = kind.split('/').next().unwrap_or_default();
    let block = match family {
        "image" if takes.image => ContentBlock::Image(ImageContent::new(base64, kind.clone())),
        "audio" if takes.audio => ContentBlock::Audio(AudioContent::new(base64, kind.clone())),
        _ => match String::from_utf8(bytes) {
            Ok(text) if is_text(&kind, &text) && size <= MAX_INLINE_TEXT_BYTES => {
                text_file(&name, &kind, &text, takes)
            }
            _ if takes.embedded_context => {
                let blob = BlobResourceContents::new(base64, uri(&name)).mime_type(kind.clone());
                let resource = EmbeddedResourceResource::BlobResourceContents(blob);
                ContentBlock::Resource(EmbeddedResource::new(resource))
            }
            _ => {
                let why =
                    format!("the agent takes no files of the type {kind}, and it cannot be sent as text");
                return Err(unsupported(number, &why));
            }
        },
    };
    Ok(PromptAttachment { name, kind, bytes: size, block })
}

/// Text file: embedded, or as text for agents that take no embedded files.
fn text_file(name: &str, kind: &str, text: &str, takes: &PromptCapabilities) -> ContentBlock {
    if takes.embedded_context {
        let contents = TextResourceContents::new(text, uri(name)).mime_type(kind.to_owned());
        let resource = EmbeddedResourceResource::TextResourceContents(contents);
        return ContentBlock::Resource(EmbeddedResource::new(resource));
    }
    text_block(&format!("The attached {name}:\n\n{text}"))
}

fn link_attachment(number: usize, part: &Part, url: &str) -> Result<PromptAttachment, Failure> {
    if !url.starts_with("https://") && !url.starts_with("http://") {
        return Err(unsupported(number, "only addresses that begin with http or https are handed on"));
    }
    let name = attachment_name(number, part, "link");
    let kind = part.media_type.clone().unwrap_or_else(|| "link".to_owned());
    let link = ResourceLink::new(name.clone(), url).mime_type(part.media_type.clone());
    Ok(PromptAttachment { name, kind, bytes: url.len(), block: ContentBlock::ResourceLink(link) })
}

fn attachment_name(number: usize, part: &Part, ending: &str) -> String {
    let is_plain = |c: &char| !c.is_control() && !matches!(c, '/' | '\\');
    let given: String =
        part.filename.iter().flat_map(|name| name.chars()).filter(is_plain).take(120).collect();
    if given.is_empty() { format!("part-{number}.{ending}") } else { given }
}

fn uri(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let name: String = name.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
    format!("attachment:///{name}")
}

/// Text of an object with a single text member, as tools with one argument are called.
fn single_text(data: &Json) -> Option<String> {
    let Value::Object(members) = data.value() else { return None };
    let mut members = members.into_iter();
    match (members.next(), members.next()) {
        (Some((name, Value::String(text))), None) if TEXT_MEMBERS.contains(&name.as_str()) => Some(text),
        _ => None,
    }
}

fn is_text(kind: &str, text: &str) -> bool {
    let is_known = kind.starts_with("text/") || kind.ends_with("json") || kind.ends_with("xml");
    is_known || kind == "application/yaml" || (kind == "application/octet-stream" && !text.contains('\0'))
}

fn text_block(text: &str) -> ContentBlock {
    ContentBlock::Text(TextContent::new(text))
}

fn unsupported(number: usize, why: &str) -> Failure {
    Failure::new(FailureKind::Unsupported, format!("part {number} cannot be handed to the agent: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(parts: &[Part], takes: &PromptCapabilities) -> Value {
        serde_json::to_value(from_parts(parts, None, takes).unwrap()).unwrap()
    }

    fn raw(name: &str, kind: &str, bytes: &[u8]) -> Part {
        let content = Content::Raw(BASE64_STANDARD.encode(bytes));
        Part { filename: Some(name.into()), media_type: Some(kind.into()), ..Part::new(content) }
    }

    #[test]
    fn words_stay_words_however_they_are_wrapped() {
        let takes = PromptCapabilities::new();
        let expected = serde_json::json!([{ "type": "text", "text": "fix it" }]);
        assert_eq!(blocks(&[Part::text("fix it")], &takes), expected);
        let wrapped = Part::data(Json::parse(r#"{"message":"fix it"}"#).unwrap());
        assert_eq!(blocks(&[wrapped], &takes), expected);
    }

    #[test]
    fn data_and_files_go_along_with_a_line_that_says_so() {
        let takes = PromptCapabilities::new().embedded_context(true).image(true);
        let data = Part::data(Json::parse(r#"{"n":1.000,"m":2}"#).unwrap());
        let blocks_json = blocks(&[Part::text("look"), data, raw("a/b.png", "image/png", b"png")], &takes);
        assert_eq!(
            blocks_json[0]["text"],
            "Attached to this message:\n- part-2.json (application/json, 17 bytes)\n- ab.png (image/png, 3 bytes)"
        );
        assert_eq!(blocks_json[1]["text"], "look");
        assert_eq!(blocks_json[2]["resource"]["text"], r#"{"n":1.000,"m":2}"#);
        assert_eq!(
            (&blocks_json[3]["type"], &blocks_json[3]["mimeType"]),
            (&"image".into(), &"image/png".into())
        );
    }

    #[test]
    fn a_part_that_an_agent_does_not_accept_is_sent_as_text_or_refused_with_the_reason() {
        let takes = PromptCapabilities::new();
        let blocks_json = blocks(&[raw("notes.txt", "text/plain", b"hello")], &takes);
        assert_eq!(blocks_json[1]["text"], "The attached notes.txt:\n\nhello");
        for (part, why) in [
            (raw("a.png", "image/png", b"\xff\xfe"), "takes no files of the type image/png"),
            (Part::new(Content::Raw("%".into())), "not base64"),
            (Part::new(Content::Url("file:///etc/passwd".into())), "http or https"),
            (Part::new(Content::Unknown(Json::null())), "kind is unknown"),
        ] {
            let failure = from_parts(&[Part::text("x"), part], None, &takes).unwrap_err();
            assert_eq!(failure.kind, FailureKind::Unsupported);
            assert!(
                failure.message.starts_with("part 2 cannot") && failure.message.contains(why),
                "{failure}"
            );
        }
        assert_eq!(from_parts(&[], None, &takes).unwrap_err().kind, FailureKind::Invalid);
    }
}
