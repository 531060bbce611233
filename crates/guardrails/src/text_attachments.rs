//! Text files that are attached as bytes.

use std::path::Path;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use rialto_model::{media, message::Part};

/// Maximum length of a file that is checked, in base64.
const MAX_BASE64_BYTES: usize = 16 * 1024 * 1024;

/// File extensions of text, used when no media type is given.
const TEXT_EXTENSIONS: [&str; 14] =
    ["txt", "md", "json", "jsonl", "csv", "tsv", "xml", "html", "yaml", "yml", "toml", "ini", "log", "env"];

/// Text of a file in base64, if it is text. A file without media type and name is text if its bytes are.
pub fn text_of_file(part: &Part, raw: &str) -> Option<String> {
    if raw.len() > MAX_BASE64_BYTES || !is_text_type(part) {
        return None;
    }
    String::from_utf8(BASE64_STANDARD.decode(raw.trim()).ok()?).ok()
}

/// Encodes a text in base64.
pub(crate) fn encode(text: &str) -> String {
    BASE64_STANDARD.encode(text)
}

fn is_text_type(part: &Part) -> bool {
    if let Some(kind) = part.media_type.as_deref().map(media::bare) {
        let known = ["application/xml", "application/yaml", "application/toml", "application/javascript"];
        return kind.starts_with("text/")
            || media::is_json(&kind)
            || kind.ends_with("+xml")
            || known.contains(&kind.as_str());
    }
    let ending = part.filename.as_deref().and_then(|name| Path::new(name).extension()?.to_str());
    ending.is_none_or(|ending| TEXT_EXTENSIONS.iter().any(|known| known.eq_ignore_ascii_case(ending)))
}

#[cfg(test)]
mod tests {
    use rialto_model::message::Content;

    use super::*;

    fn read(media_type: Option<&str>, filename: Option<&str>, bytes: &[u8]) -> Option<String> {
        let raw = BASE64_STANDARD.encode(bytes);
        let part = Part {
            media_type: media_type.map(str::to_owned),
            filename: filename.map(str::to_owned),
            ..Part::new(Content::Raw(raw.clone()))
        };
        text_of_file(&part, &raw)
    }

    #[test]
    fn text_files_are_read_and_others_are_not() {
        assert_eq!(read(Some("text/csv; charset=utf-8"), None, b"a,b").as_deref(), Some("a,b"));
        assert_eq!(read(Some("application/vnd.x+json"), None, b"{}").as_deref(), Some("{}"));
        assert_eq!(read(None, Some("notes.TXT"), b"hi").as_deref(), Some("hi"));
        assert_eq!(read(None, None, b"hi").as_deref(), Some("hi"));
        assert_eq!(read(None, None, &[0xff, 0xd8]), None, "bytes that are no text");
        assert_eq!(read(Some("image/png"), None, b"hi"), None);
        assert_eq!(read(None, Some("a.png"), b"hi"), None);
    }
}
