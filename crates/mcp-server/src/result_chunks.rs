//! Content of a result and its division into chunks that fit into a context.
//!
//! Offsets count bytes of the content: of a file its own bytes, not those of its base64. A chunk of a text ends at a character boundary,
//! so that every chunk is valid text.

use std::borrow::Cow;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use rialto_model::{
    a2a_json::ArtifactJson,
    json::Json,
    message::{Artifact, Content, Part, text_of},
};

use crate::result_uri::ResultItem;

/// Complete content of a result path.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ResultContent<'a> {
    pub(crate) body: ContentBody<'a>,
    /// Media type.
    pub(crate) kind: Cow<'a, str>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ContentBody<'a> {
    Text(Cow<'a, str>),
    Bytes(Vec<u8>),
}

/// Chunk of a content.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ResultChunk<'a> {
    pub(crate) body: ChunkBody<'a>,
    /// Start offset.
    pub(crate) from: usize,
    /// End offset.
    pub(crate) to: usize,
    /// Size of the complete content.
    pub(crate) size: usize,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ChunkBody<'a> {
    Text(&'a str),
    Bytes(&'a [u8]),
}

// === impl ResultContent ===

impl<'a> ResultContent<'a> {
    /// Content of an item; none when it is only a link.
    pub(crate) fn of(found: ResultItem<'a>) -> Option<Self> {
        match found {
            ResultItem::Part(part) => Self::of_part(part),
            ResultItem::Artifact(artifact) => Some(Self::of_artifact(artifact)),
        }
    }

    fn of_part(part: &'a Part) -> Option<Self> {
        let kind = Cow::Borrowed(kind_of(part));
        let body = match &part.content {
            Content::Text(text) => ContentBody::Text(Cow::Borrowed(text)),
            Content::Data(json) | Content::Unknown(json) => ContentBody::Text(Cow::Borrowed(json.get())),
            Content::Raw(base64) => match BASE64_STANDARD.decode(base64) {
                Ok(bytes) if kind.starts_with("text/") => match String::from_utf8(bytes) {
                    Ok(text) => ContentBody::Text(Cow::Owned(text)),
                    Err(error) => ContentBody::Bytes(error.into_bytes()),
                },
                Ok(bytes) => ContentBody::Bytes(bytes),
                // Invalid base64 is returned as it was received.
                Err(_) => ContentBody::Text(Cow::Borrowed(base64)),
            },
            Content::Url(_) => return None,
        };
        Some(Self { body, kind })
    }

    /// An artifact that is only text becomes its text; any other its JSON.
    fn of_artifact(artifact: &Artifact) -> Self {
        let is_text = artifact.parts.iter().all(|part| matches!(part.content, Content::Text(_)));
        let (text, kind) = if is_text {
            (text_of(&artifact.parts), "text/plain")
        } else {
            (Json::encode(&ArtifactJson(artifact)).get().to_owned(), "application/json")
        };
        Self { body: ContentBody::Text(Cow::Owned(text)), kind: Cow::Borrowed(kind) }
    }

    pub(crate) fn size(&self) -> usize {
        match &self.body {
            ContentBody::Text(text) => text.len(),
            ContentBody::Bytes(bytes) => bytes.len(),
        }
    }

    /// Chunk from an offset, at most `most` bytes long but never empty; none behind the end.
    pub(crate) fn piece(&self, from: usize, most: usize) -> Option<ResultChunk<'_>> {
        let size = self.size();
        if from > size || (from == size && size > 0) {
            return None;
        }
        let to = from.saturating_add(most.max(1)).min(size);
        Some(match &self.body {
            ContentBody::Text(text) => {
                let from = text.floor_char_boundary(from);
                let whole = text.floor_char_boundary(to);
                let to = if whole > from { whole } else { text.ceil_char_boundary(to) };
                ResultChunk { body: ChunkBody::Text(text.get(from..to)?), from, to, size }
            }
            ContentBody::Bytes(bytes) => {
                ResultChunk { body: ChunkBody::Bytes(bytes.get(from..to)?), from, to, size }
            }
        })
    }
}

// === impl ResultChunk ===

impl ResultChunk<'_> {
    /// Start of the next chunk; none behind the last.
    pub(crate) fn next(&self) -> Option<usize> {
        (self.to < self.size).then_some(self.to)
    }

    /// True when the chunk is the complete content.
    pub(crate) const fn is_whole(&self) -> bool {
        self.from == 0 && self.to == self.size
    }
}

/// Media type of a part: declared, or derived from the content.
pub(crate) fn kind_of(part: &Part) -> &str {
    part.media_type.as_deref().unwrap_or(match &part.content {
        Content::Text(_) => "text/plain",
        Content::Data(_) | Content::Unknown(_) => "application/json",
        Content::Raw(_) | Content::Url(_) => "application/octet-stream",
    })
}

/// Size of a part's content in bytes, without decoding it.
pub(crate) fn size_of(part: &Part) -> usize {
    match &part.content {
        Content::Raw(base64) => {
            let padding = base64.bytes().rev().take_while(|byte| *byte == b'=').count();
            (base64.len() / 4 * 3).saturating_sub(padding)
        }
        _ => weight_of(part),
    }
}

/// Size of a part in a context.
pub(crate) fn weight_of(part: &Part) -> usize {
    match &part.content {
        Content::Text(text) | Content::Raw(text) | Content::Url(text) => text.len(),
        Content::Data(json) | Content::Unknown(json) => json.get().len(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn raw(kind: &str, bytes: &[u8]) -> Part {
        let part = Part::new(Content::Raw(BASE64_STANDARD.encode(bytes)));
        Part { media_type: Some(kind.into()), ..part }
    }

    fn held(part: &Part) -> ResultContent<'_> {
        ResultContent::of(ResultItem::Part(part)).unwrap()
    }

    #[test]
    fn a_part_is_its_text_its_json_or_its_bytes() {
        let text = |text: &'static str, kind: &'static str| ResultContent {
            body: ContentBody::Text(text.into()),
            kind: kind.into(),
        };
        assert_eq!(held(&Part::text("hi")), text("hi", "text/plain"));
        assert_eq!(held(&Part::data(Json::from(json!([1])))), text("[1]", "application/json"));
        assert_eq!(held(&raw("text/csv", b"a,b")), text("a,b", "text/csv"));
        let bytes = |bytes: &[u8], kind: &'static str| ResultContent {
            body: ContentBody::Bytes(bytes.to_vec()),
            kind: kind.into(),
        };
        assert_eq!(held(&raw("image/png", b"\x89P")), bytes(b"\x89P", "image/png"));
        assert_eq!(held(&raw("text/plain", b"\xff")), bytes(b"\xff", "text/plain"));
        assert_eq!(
            ResultContent::of(ResultItem::Part(&Part::new(Content::Url("https://a.example".into())))),
            None
        );
    }

    #[test]
    fn an_artifact_of_texts_is_its_text_and_any_other_its_json() {
        let texts = Artifact::new("a", vec![Part::text("one"), Part::text("two")]);
        assert_eq!(
            ResultContent::of(ResultItem::Artifact(&texts)).unwrap().body,
            ContentBody::Text("one\ntwo".into())
        );
        let mixed = Artifact::new("a", vec![Part::text("one"), Part::data(Json::from(json!(2)))]);
        let held = ResultContent::of(ResultItem::Artifact(&mixed)).unwrap();
        assert_eq!(held.kind, "application/json");
        let json = r#"{"artifactId":"a","parts":[{"text":"one"},{"data":2}]}"#;
        assert_eq!(held.body, ContentBody::Text(json.into()));
    }

    #[test]
    fn there_is_nothing_behind_the_end() {
        let part = Part::text("abc");
        assert!(held(&part).piece(3, 10).is_none());
        assert!(held(&Part::text("")).piece(1, 10).is_none());
        let empty = Part::text("");
        assert!(held(&empty).piece(0, 10).unwrap().is_whole());
    }

    #[test]
    fn the_size_of_a_file_is_that_of_its_bytes() {
        for length in 0..9 {
            assert_eq!(size_of(&raw("image/png", &vec![7; length])), length);
        }
    }

    proptest! {
        #[test]
        fn pieces_of_a_text_are_texts_and_together_the_whole(text in "\\PC{0,60}", most in 1_usize..9) {
            let part = Part::text(text.clone());
            let held = held(&part);
            let (mut all, mut at) = (String::new(), Some(0));
            while let Some(from) = at {
                let piece = held.piece(from, most).unwrap();
                let ChunkBody::Text(words) = piece.body else { panic!("a text") };
                prop_assert!(words.len() <= most || words.chars().count() == 1);
                all.push_str(words);
                at = piece.next();
            }
            prop_assert_eq!(all, text);
        }

        #[test]
        fn pieces_of_a_file_are_together_the_file(bytes in prop::collection::vec(any::<u8>(), 0..60), most in 1_usize..9) {
            let part = raw("image/png", &bytes);
            let held = held(&part);
            let (mut all, mut at) = (Vec::new(), Some(0));
            while let Some(from) = at {
                let piece = held.piece(from, most).unwrap();
                let ChunkBody::Bytes(some) = piece.body else { panic!("bytes") };
                prop_assert!(some.len() <= most);
                all.extend_from_slice(some);
                at = piece.next();
            }
            prop_assert_eq!(all, bytes);
        }
    }
}
