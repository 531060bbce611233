//! The body of a plain HTTP call as message parts.
//!
//! JSON is the arguments, and text is the `message` argument where a skill takes words. A body of any other media type is a file. A form
//! (`multipart/form-data`) has arguments as fields and files as files, so that `curl -F` can send both.

use axum::body::Bytes;
use base64::{Engine as _, prelude::BASE64_STANDARD};
use futures::stream;
use http::{HeaderMap, header};
use multer::{Field, Multipart};
use rialto_model::{
    call::CallTarget,
    failure::{Failure, FailureKind},
    json::{Extra, Json, MAX_DEPTH, is_too_deep},
    media,
    message::{Content, Part},
};

/// Media type that `curl -d` sends with any body.
const FORM_URLENCODED: &str = "application/x-www-form-urlencoded";

/// Name of the form field whose value is the arguments as one JSON object.
const ARGUMENTS_FIELD: &str = "arguments";

/// Reads a body into parts: the arguments first, then files.
pub(crate) async fn read_parts(
    headers: &HeaderMap,
    body: Bytes,
    target: &CallTarget,
) -> Result<Vec<Part>, Failure> {
    let declared = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = media::bare(declared);
    if kind == "multipart/form-data" {
        return read_form(declared, body, target).await;
    }
    let is_file =
        !kind.is_empty() && kind != FORM_URLENCODED && !kind.starts_with("text/") && !media::is_json(&kind);
    if is_file && !body.is_empty() {
        return Ok(vec![file_part(&body, kind, None, target)?]);
    }
    let text = std::str::from_utf8(&body).map_err(|_| {
        invalid(
            "the body is not UTF-8 text; send a file with its own Content-Type, such as image/png".to_owned(),
        )
    })?;
    Ok(vec![Part::data(parse_arguments(text, kind.starts_with("text/"), target)?)])
}

/// Arguments from text: JSON, or words where the caller says that it is text and the skill takes words.
fn parse_arguments(text: &str, is_text: bool, target: &CallTarget) -> Result<Json, Failure> {
    if text.trim().is_empty() {
        return Ok(Json::empty_object());
    }
    if is_too_deep(text.as_bytes()) {
        return Err(invalid(format!("the arguments are nested deeper than {MAX_DEPTH} levels")));
    }
    match Json::parse(text.trim()) {
        Ok(data) if data.is_object() || !is_text => Ok(data),
        _ if is_text && target.takes_words() => Ok(CallTarget::words(text)),
        Ok(data) => Ok(data),
        Err(error) => {
            let hint =
                if target.takes_words() { "; plain words go with Content-Type: text/plain" } else { "" };
            Err(invalid(format!("the arguments are not JSON: {error}{hint}")))
        }
    }
}

/// Reads a form: a field is a text argument, a field with a file name is a file, `arguments` is a JSON object of arguments.
async fn read_form(declared: &str, body: Bytes, target: &CallTarget) -> Result<Vec<Part>, Failure> {
    let unreadable = |error: multer::Error| invalid(format!("the form could not be read: {error}"));
    let boundary = multer::parse_boundary(declared).map_err(unreadable)?;
    let mut fields = Multipart::new(stream::iter([Ok::<_, std::convert::Infallible>(body)]), boundary);
    let (mut members, mut files) = (Extra::new(), Vec::new());
    while let Some(field) = fields.next_field().await.map_err(unreadable)? {
        if field.file_name().is_some() || is_media(&field) {
            let kind = field.content_type().map_or("application/octet-stream", AsRef::as_ref).to_owned();
            let name = field.file_name().map(str::to_owned);
            let bytes = field.bytes().await.map_err(unreadable)?;
            files.push(file_part(&bytes, kind, name, target)?);
            continue;
        }
        let name = field.name().unwrap_or_default().to_owned();
        let text = field.text().await.map_err(unreadable)?;
        if name == ARGUMENTS_FIELD && text.trim_start().starts_with('{') {
            let given: Extra =
                parse_arguments(&text, false, target)?.read().map_err(|error| invalid(error.to_string()))?;
            for (name, value) in given.iter() {
                members.push(name, value.clone());
            }
        } else {
            members.push(&name, Json::encode(&text));
        }
    }
    let mut parts = Vec::new();
    if !members.is_empty() || files.is_empty() {
        parts.push(Part::data(Json::encode(&members)));
    }
    parts.extend(files);
    Ok(parts)
}

fn is_media(field: &Field<'_>) -> bool {
    field
        .content_type()
        .is_some_and(|kind| !kind.as_ref().starts_with("text/") && !media::is_json(kind.as_ref()))
}

fn file_part(bytes: &[u8], kind: String, name: Option<String>, target: &CallTarget) -> Result<Part, Failure> {
    let taken = media::types_accepted_by_agent(&target.agent, target.skill.as_deref());
    if !media::is_accepted(&media::bare(&kind), &taken) {
        let message = format!("{} does not take {kind}; it takes {}", target.verb(), taken.join(", "));
        return Err(invalid(message));
    }
    let content = Content::Raw(BASE64_STANDARD.encode(bytes));
    Ok(Part { media_type: Some(kind), filename: name, ..Part::new(content) })
}

fn invalid(message: String) -> Failure {
    Failure::new(FailureKind::Invalid, message)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rialto_testkit::agents::{agent, skill};

    use super::*;

    fn target(modes: &[&str]) -> CallTarget {
        let mut agent = agent("Desk", vec![skill("ask")]);
        Arc::make_mut(&mut agent.card).input_modes = modes.iter().map(|mode| (*mode).to_owned()).collect();
        let skill = Arc::clone(&agent.card.skills[0]);
        CallTarget { agent: Arc::new(agent), skill: Some(skill) }
    }

    async fn read(kind: &str, body: &'static [u8], modes: &[&str]) -> Result<Vec<Part>, Failure> {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, kind.parse().unwrap());
        read_parts(&headers, Bytes::from_static(body), &target(modes)).await
    }

    fn data(text: &str) -> Part {
        Part::data(Json::parse(text).unwrap())
    }

    #[tokio::test]
    async fn json_is_the_arguments_and_text_is_the_message() {
        let form = "application/x-www-form-urlencoded";
        for kind in ["application/json", form] {
            assert_eq!(read(kind, br#"{"n":1.10}"#, &[]).await, Ok(vec![data(r#"{"n":1.10}"#)]), "{kind}");
        }
        assert_eq!(read("text/plain", b"hello", &[]).await, Ok(vec![data(r#"{"message":"hello"}"#)]));
        let refused = read("application/json", b"hello", &[]).await.unwrap_err();
        assert!(refused.message.contains("text/plain"), "{refused:?}");
    }

    #[tokio::test]
    async fn a_file_reaches_an_agent_that_takes_it_and_no_other() {
        let sent = read("image/png", b"\x89PNG", &["text/plain", "image/*"]).await.unwrap();
        assert_eq!(sent[0].content, Content::Raw("iVBORw==".to_owned()));
        assert_eq!(sent[0].media_type.as_deref(), Some("image/png"));
        let refused = read("image/png", b"\x89PNG", &["text/plain"]).await.unwrap_err();
        assert_eq!(refused.message, "desk.ask does not take image/png; it takes text/plain");
    }

    #[tokio::test]
    async fn a_form_has_arguments_and_files() {
        let body = b"--x\r\nContent-Disposition: form-data; name=\"message\"\r\n\r\nwhat is this?\r\n\
            --x\r\nContent-Disposition: form-data; name=\"arguments\"\r\n\r\n{\"n\":1.10}\r\n\
            --x\r\nContent-Disposition: form-data; name=\"f\"; filename=\"a.png\"\r\nContent-Type: image/png\r\n\r\n\x89PNG\r\n--x--\r\n";
        let sent = read("multipart/form-data; boundary=x", body, &[]).await.unwrap();
        assert_eq!(sent[0], data(r#"{"message":"what is this?","n":1.10}"#));
        assert_eq!((sent[1].filename.as_deref(), sent.len()), (Some("a.png"), 2));
        let broken = read("multipart/form-data", body, &[]).await.unwrap_err();
        assert_eq!(broken.kind, FailureKind::Invalid);
    }
}
