//! Members of a JSON object, in order and still raw, so that a decoder takes the known ones and keeps the rest.
//!
//! `null` is treated as absent, because every dialect has a server that writes absent members that way. Of duplicate members the last
//! wins and the others are dropped: none may hide behind a name that was already read.
//!
//! Proto's JSON allows the names of the proto file too: `taskId` also finds `task_id`.

use std::borrow::Cow;

use rialto_model::json::{Extra, Json, MAX_DEPTH, RawJson, is_too_deep};

use crate::invalid::InvalidDocument;

/// Members of one object.
#[derive(Default)]
pub(crate) struct ObjectMembers<'a> {
    list: Vec<(Cow<'a, str>, RawJson<'a>)>,
    /// True when a name has an underscore, which no name of A2A's JSON has.
    has_proto_names: bool,
}

/// Parses bytes as one JSON value.
pub(crate) fn parse(bytes: &[u8]) -> Result<RawJson<'_>, InvalidDocument> {
    let text =
        std::str::from_utf8(bytes).map_err(|_| InvalidDocument::new("JSON", "bytes that are not UTF-8"))?;
    if is_too_deep(bytes) {
        return Err(InvalidDocument::new(format!("JSON that is at most {MAX_DEPTH} levels deep"), "more"));
    }
    RawJson::parse(text).map_err(|error| InvalidDocument::not_json(&error))
}

/// Decodes a JSON string.
pub(crate) fn text(raw: RawJson<'_>) -> Result<String, InvalidDocument> {
    let plain = raw.get().strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    match plain {
        // Most strings have no escapes.
        Some(plain) if !plain.contains('\\') => Ok(plain.to_owned()),
        _ => serde_json::from_str(raw.get()).map_err(|_| InvalidDocument::kind("a string", raw)),
    }
}

/// Decodes a count. Proto's JSON may quote it or write it with a fraction of zero.
pub(crate) fn count(raw: RawJson<'_>) -> Result<u32, InvalidDocument> {
    let number = raw.get().trim_matches('"');
    let whole = number.strip_suffix(".0").unwrap_or(number);
    whole.parse().map_err(|_| InvalidDocument::kind("a count", raw))
}

/// Decodes a list, each item with `read`.
pub(crate) fn list<'a, T>(
    raw: RawJson<'a>,
    read: impl Fn(RawJson<'a>) -> Result<T, InvalidDocument>,
) -> Result<Vec<T>, InvalidDocument> {
    let items = raw.items().ok_or_else(|| InvalidDocument::kind("a list", raw))?;
    items.into_iter().enumerate().map(|(at, item)| read(item).map_err(|e| e.at_index(at))).collect()
}

// === impl ObjectMembers ===

impl<'a> ObjectMembers<'a> {
    pub(crate) fn read(raw: RawJson<'a>) -> Result<Self, InvalidDocument> {
        let list = raw.members().ok_or_else(|| InvalidDocument::kind("an object", raw))?;
        let has_proto_names = list.iter().any(|(key, _): &(Cow<'_, str>, _)| key.as_bytes().contains(&b'_'));
        Ok(Self { list, has_proto_names })
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    /// Value of `name`, without removing it.
    pub(crate) fn peek(&self, name: &str) -> Option<RawJson<'a>> {
        self.place(name).and_then(|at| self.list.get(at)).map(|(_, raw)| *raw)
    }

    /// True when `name` has a value other than `null`.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.peek(name).is_some_and(|raw| raw.get() != "null")
    }

    /// Removes and returns the value of `name`, including `null`.
    pub(crate) fn take_any(&mut self, name: &str) -> Option<RawJson<'a>> {
        let at = self.place(name)?;
        let (_, found) = self.list.remove(at);
        if self.has_proto_names {
            self.list.retain(|(key, _)| key != name && !is_proto_name(key, name));
        } else if self.list.iter().take(at).any(|(key, _)| key == name) {
            self.list.retain(|(key, _)| key != name);
        }
        Some(found)
    }

    /// Index of `name`: the last member with that name, else the last with its name in the proto file.
    fn place(&self, name: &str) -> Option<usize> {
        let exact = self.list.iter().rposition(|(key, _)| key == name);
        if exact.is_some() || !self.has_proto_names {
            return exact;
        }
        self.list.iter().rposition(|(key, _)| is_proto_name(key, name))
    }

    /// Removes and returns the value of `name`.
    pub(crate) fn take(&mut self, name: &str) -> Option<RawJson<'a>> {
        self.take_any(name).filter(|raw| raw.get() != "null")
    }

    /// Removes and decodes the value of `name`.
    pub(crate) fn take_as<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(RawJson<'a>) -> Result<T, InvalidDocument>,
    ) -> Result<Option<T>, InvalidDocument> {
        self.take(name).map(read).transpose().map_err(|garbled| garbled.at(name))
    }

    /// Like [`Self::take_as`], for a required member.
    pub(crate) fn need<T>(
        &mut self,
        name: &str,
        expected: &'static str,
        read: impl FnOnce(RawJson<'a>) -> Result<T, InvalidDocument>,
    ) -> Result<T, InvalidDocument> {
        self.take_as(name, read)?.ok_or_else(|| InvalidDocument::missing(expected).at(name))
    }

    pub(crate) fn text(&mut self, name: &str) -> Result<Option<String>, InvalidDocument> {
        self.take_as(name, text)
    }

    /// String in which the empty one means unspecified.
    pub(crate) fn id(&mut self, name: &str) -> Result<Option<String>, InvalidDocument> {
        Ok(self.text(name)?.filter(|id| !id.is_empty()))
    }

    pub(crate) fn flag(&mut self, name: &str) -> Result<Option<bool>, InvalidDocument> {
        self.take_as(name, |raw| match raw.get() {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(InvalidDocument::kind("a boolean", raw)),
        })
    }

    pub(crate) fn count(&mut self, name: &str) -> Result<Option<u32>, InvalidDocument> {
        self.take_as(name, count)
    }

    /// List, empty when absent.
    pub(crate) fn list<T>(
        &mut self,
        name: &str,
        read: impl Fn(RawJson<'a>) -> Result<T, InvalidDocument>,
    ) -> Result<Vec<T>, InvalidDocument> {
        Ok(self.take_as(name, |raw| list(raw, read))?.unwrap_or_default())
    }

    pub(crate) fn texts(&mut self, name: &str) -> Result<Vec<String>, InvalidDocument> {
        self.list(name, text)
    }

    /// Object, as raw JSON. Any other value stays among the unknown members.
    pub(crate) fn object(&mut self, name: &str) -> Option<Json> {
        if !self.peek(name)?.get().starts_with('{') {
            return None;
        }
        self.take(name).map(Json::from)
    }

    /// Removes a redundant `kind`.
    pub(crate) fn drop_kind(&mut self, kind: &str) {
        if self.peek("kind").is_some_and(|raw| raw.get().trim_matches('"') == kind) {
            self.take("kind");
        }
    }

    /// Appends the members of another object.
    pub(crate) fn absorb(&mut self, other: Self) {
        self.list.extend(other.list);
        self.has_proto_names |= other.has_proto_names;
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, RawJson<'a>)> {
        self.list.iter().map(|(name, raw)| (name.as_ref(), *raw))
    }

    /// Remaining unknown members.
    pub(crate) fn rest(self) -> Extra {
        self.list.into_iter().map(|(name, raw)| (name.into_owned(), Json::from(raw))).collect()
    }
}

/// True when `key` is the proto file's spelling of `name`: `history_length` for `historyLength`.
pub(crate) fn is_proto_name(key: &str, name: &str) -> bool {
    let mut key = key.bytes();
    let is_same = name.bytes().all(|byte| {
        if byte.is_ascii_uppercase() {
            key.next() == Some(b'_') && key.next() == Some(byte.to_ascii_lowercase())
        } else {
            key.next() == Some(byte)
        }
    });
    is_same && key.next().is_none()
}
