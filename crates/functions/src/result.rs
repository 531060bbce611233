//! Result of a function as a message part.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use rialto_model::{
    json::{Json, is_too_deep},
    message::{Content, Part},
};

/// Maximum bytes of a result, 16 MiB.
pub(crate) const MAX_RESULT_BYTES: usize = 16 * 1024 * 1024;

/// JSON is data, other text is text, and anything else is a file.
pub(crate) fn part_from_bytes(bytes: &[u8], media_type: Option<&str>) -> Part {
    let Ok(text) = std::str::from_utf8(bytes) else {
        let media_type = Some(media_type.unwrap_or("application/octet-stream").to_owned());
        return Part { media_type, ..Part::new(Content::Raw(BASE64_STANDARD.encode(bytes))) };
    };
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return Part::data(Json::null());
    }
    match Json::parse(trimmed) {
        Ok(data) if !is_too_deep(trimmed.as_bytes()) => Part::data(data),
        _ => Part::text(text.trim_end_matches(['\r', '\n'])),
    }
}

/// Beginning of a text, for an error message.
pub(crate) fn excerpt(bytes: &[u8], most: usize) -> String {
    let text = String::from_utf8_lossy(bytes.get(..most.min(bytes.len())).unwrap_or_default());
    let dots = if bytes.len() > most { "…" } else { "" };
    format!("{}{dots}", text.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_json_text_or_a_file_by_its_bytes() {
        let content = |bytes: &[u8]| part_from_bytes(bytes, None).content;
        assert_eq!(content(b" {\"n\": 1.10}\n"), Content::Data(Json::parse(r#"{"n": 1.10}"#).unwrap()));
        assert_eq!(content(b"hello\nworld\n"), Content::Text("hello\nworld".into()));
        assert_eq!(content(b"\n"), Content::Data(Json::null()));
        let file = part_from_bytes(&[0xff, 0xfe], Some("image/x-odd"));
        assert_eq!(
            (file.content, file.media_type.as_deref()),
            (Content::Raw("//4=".into()), Some("image/x-odd"))
        );
    }

    #[test]
    fn an_excerpt_is_short() {
        assert_eq!(excerpt(b"  not found ", 100), "not found");
        assert_eq!(excerpt(&[b'a'; 50], 3), "aaa…");
    }
}
