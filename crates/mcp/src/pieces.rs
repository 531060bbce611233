//! What a place of a task holds, and how it is cut into pieces that fit into a context.
//!
//! Offsets count bytes of the content itself: of a file those that it has, not those of its base64. A piece of a text ends at the border
//! of a character, so that every piece is a text.

use std::borrow::Cow;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use rialto_model::{
    json::Json,
    message::{Artifact, Content, Part, text_of},
    shape::AsArtifact,
};

use crate::place::Found;

/// The whole content of a place.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Held<'a> {
    pub(crate) body: Body<'a>,
    /// Its media type.
    pub(crate) kind: Cow<'a, str>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Body<'a> {
    Text(Cow<'a, str>),
    Bytes(Vec<u8>),
}

/// A piece of it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Piece<'a> {
    pub(crate) body: Slice<'a>,
    /// Where it begins.
    pub(crate) from: usize,
    /// Where it ends.
    pub(crate) to: usize,
    /// How long the whole is.
    pub(crate) size: usize,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Slice<'a> {
    Text(&'a str),
    Bytes(&'a [u8]),
}

// === impl Held ===

impl<'a> Held<'a> {
    /// What is held at a place; none of what is elsewhere.
    pub(crate) fn of(found: Found<'a>) -> Option<Self> {
        match found {
            Found::Part(part) => Self::of_part(part),
            Found::Artifact(artifact) => Some(Self::of_artifact(artifact)),
        }
    }

    fn of_part(part: &'a Part) -> Option<Self> {
        let kind = Cow::Borrowed(kind_of(part));
        let body = match &part.content {
            Content::Text(text) => Body::Text(Cow::Borrowed(text)),
            Content::Data(json) | Content::Unknown(json) => Body::Text(Cow::Borrowed(json.get())),
            Content::Raw(base64) => match BASE64_STANDARD.decode(base64) {
                Ok(bytes) if kind.starts_with("text/") => match String::from_utf8(bytes) {
                    Ok(text) => Body::Text(Cow::Owned(text)),
                    Err(error) => Body::Bytes(error.into_bytes()),
                },
                Ok(bytes) => Body::Bytes(bytes),
                // What is no base64 is shown as it came.
                Err(_) => Body::Text(Cow::Borrowed(base64)),
            },
            Content::Url(_) => return None,
        };
        Some(Self { body, kind })
    }

    /// An artifact of texts is its text; any other is its JSON.
    fn of_artifact(artifact: &Artifact) -> Self {
        let is_text = artifact.parts.iter().all(|part| matches!(part.content, Content::Text(_)));
        let (text, kind) = if is_text {
            (text_of(&artifact.parts), "text/plain")
        } else {
            (Json::of(&AsArtifact(artifact)).get().to_owned(), "application/json")
        };
        Self { body: Body::Text(Cow::Owned(text)), kind: Cow::Borrowed(kind) }
    }

    pub(crate) fn size(&self) -> usize {
        match &self.body {
            Body::Text(text) => text.len(),
            Body::Bytes(bytes) => bytes.len(),
        }
    }

    /// At most so many bytes from there on, but always some; none when there is no such place in it.
    pub(crate) fn piece(&self, from: usize, most: usize) -> Option<Piece<'_>> {
        let size = self.size();
        if from > size || (from == size && size > 0) {
            return None;
        }
        let to = from.saturating_add(most.max(1)).min(size);
        Some(match &self.body {
            Body::Text(text) => {
                let from = text.floor_char_boundary(from);
                let whole = text.floor_char_boundary(to);
                let to = if whole > from { whole } else { text.ceil_char_boundary(to) };
                Piece { body: Slice::Text(text.get(from..to)?), from, to, size }
            }
            Body::Bytes(bytes) => Piece { body: Slice::Bytes(bytes.get(from..to)?), from, to, size },
        })
    }
}

// === impl Piece ===

impl Piece<'_> {
    /// Where the next one begins; none behind the last.
    pub(crate) fn next(&self) -> Option<usize> {
        (self.to < self.size).then_some(self.to)
    }

    /// Whether it is all there is.
    pub(crate) const fn is_whole(&self) -> bool {
        self.from == 0 && self.to == self.size
    }
}

/// The media type of a part: its own, or what its content is.
pub(crate) fn kind_of(part: &Part) -> &str {
    part.media_type.as_deref().unwrap_or(match &part.content {
        Content::Text(_) => "text/plain",
        Content::Data(_) | Content::Unknown(_) => "application/json",
        Content::Raw(_) | Content::Url(_) => "application/octet-stream",
    })
}

/// How many bytes a part's content has, without looking into it.
pub(crate) fn size_of(part: &Part) -> usize {
    match &part.content {
        Content::Raw(base64) => {
            let padding = base64.bytes().rev().take_while(|byte| *byte == b'=').count();
            (base64.len() / 4 * 3).saturating_sub(padding)
        }
        _ => weight_of(part),
    }
}

/// How much a part takes in a context, if it is shown.
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

    fn held(part: &Part) -> Held<'_> {
        Held::of(Found::Part(part)).unwrap()
    }

    #[test]
    fn a_part_is_its_text_its_json_or_its_bytes() {
        let text = |text: &'static str, kind: &'static str| Held {
            body: Body::Text(text.into()),
            kind: kind.into(),
        };
        assert_eq!(held(&Part::text("hi")), text("hi", "text/plain"));
        assert_eq!(held(&Part::data(Json::from(json!([1])))), text("[1]", "application/json"));
        assert_eq!(held(&raw("text/csv", b"a,b")), text("a,b", "text/csv"));
        let bytes =
            |bytes: &[u8], kind: &'static str| Held { body: Body::Bytes(bytes.to_vec()), kind: kind.into() };
        assert_eq!(held(&raw("image/png", b"\x89P")), bytes(b"\x89P", "image/png"));
        assert_eq!(held(&raw("text/plain", b"\xff")), bytes(b"\xff", "text/plain"));
        assert_eq!(Held::of(Found::Part(&Part::new(Content::Url("https://a.example".into())))), None);
    }

    #[test]
    fn an_artifact_of_texts_is_its_text_and_any_other_its_json() {
        let texts = Artifact::new("a", vec![Part::text("one"), Part::text("two")]);
        assert_eq!(Held::of(Found::Artifact(&texts)).unwrap().body, Body::Text("one\ntwo".into()));
        let mixed = Artifact::new("a", vec![Part::text("one"), Part::data(Json::from(json!(2)))]);
        let held = Held::of(Found::Artifact(&mixed)).unwrap();
        assert_eq!(held.kind, "application/json");
        let json = r#"{"artifactId":"a","parts":[{"text":"one"},{"data":2}]}"#;
        assert_eq!(held.body, Body::Text(json.into()));
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
                let Slice::Text(words) = piece.body else { panic!("a text") };
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
                let Slice::Bytes(some) = piece.body else { panic!("bytes") };
                prop_assert!(some.len() <= most);
                all.extend_from_slice(some);
                at = piece.next();
            }
            prop_assert_eq!(all, bytes);
        }
    }
}
