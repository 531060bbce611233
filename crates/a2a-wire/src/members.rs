//! Reads an object as its members, in order and still raw, so that a decoder takes out what it knows and keeps the rest.
//!
//! `null` is read as absent, because every dialect has a server that writes absent members that way. Of members that
//! share a name the last one counts and the others are dropped: nothing may hide behind a name that was already read.
//!
//! Proto's JSON allows the names of the proto file too: who asks for `taskId` also gets what stands under `task_id`.

use std::borrow::Cow;

use rialto_model::json::{Extra, Json, MAX_DEPTH, RawJson, is_too_deep};

use crate::garbled::Garbled;

/// The members of one object.
#[derive(Default)]
pub(crate) struct Members<'a> {
    list: Vec<(Cow<'a, str>, RawJson<'a>)>,
    /// Whether a name among them has an underscore, which no name of A2A's JSON has.
    has_proto_names: bool,
}

/// The one JSON value that `bytes` are.
pub(crate) fn parse(bytes: &[u8]) -> Result<RawJson<'_>, Garbled> {
    let text = std::str::from_utf8(bytes).map_err(|_| Garbled::new("JSON", "bytes that are not UTF-8"))?;
    if is_too_deep(bytes) {
        return Err(Garbled::new(format!("JSON that is at most {MAX_DEPTH} levels deep"), "more"));
    }
    RawJson::parse(text).map_err(|error| Garbled::not_json(&error))
}

/// A JSON string.
pub(crate) fn text(raw: RawJson<'_>) -> Result<String, Garbled> {
    let plain = raw.get().strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    match plain {
        // Most strings have nothing to undo.
        Some(plain) if !plain.contains('\\') => Ok(plain.to_owned()),
        _ => serde_json::from_str(raw.get()).map_err(|_| Garbled::kind("a string", raw)),
    }
}

/// A count. Proto's JSON may quote it or write it with a fraction of zero.
pub(crate) fn count(raw: RawJson<'_>) -> Result<u32, Garbled> {
    let number = raw.get().trim_matches('"');
    let whole = number.strip_suffix(".0").unwrap_or(number);
    whole.parse().map_err(|_| Garbled::kind("a count", raw))
}

/// A list, each item read by `read`.
pub(crate) fn list<'a, T>(
    raw: RawJson<'a>,
    read: impl Fn(RawJson<'a>) -> Result<T, Garbled>,
) -> Result<Vec<T>, Garbled> {
    let items = raw.items().ok_or_else(|| Garbled::kind("a list", raw))?;
    items.into_iter().enumerate().map(|(at, item)| read(item).map_err(|e| e.at_index(at))).collect()
}

// === impl Members ===

impl<'a> Members<'a> {
    pub(crate) fn read(raw: RawJson<'a>) -> Result<Self, Garbled> {
        let list = raw.members().ok_or_else(|| Garbled::kind("an object", raw))?;
        let has_proto_names = list.iter().any(|(key, _): &(Cow<'_, str>, _)| key.as_bytes().contains(&b'_'));
        Ok(Self { list, has_proto_names })
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    /// What stands under `name`, left where it is.
    pub(crate) fn peek(&self, name: &str) -> Option<RawJson<'a>> {
        self.place(name).and_then(|at| self.list.get(at)).map(|(_, raw)| *raw)
    }

    /// Whether there is something under `name`, and not `null`.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.peek(name).is_some_and(|raw| raw.get() != "null")
    }

    /// Takes out what stands under `name`, `null` included.
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

    /// Where `name` stands: the last one under that name, else the last one under its name in the proto file.
    fn place(&self, name: &str) -> Option<usize> {
        let exact = self.list.iter().rposition(|(key, _)| key == name);
        if exact.is_some() || !self.has_proto_names {
            return exact;
        }
        self.list.iter().rposition(|(key, _)| is_proto_name(key, name))
    }

    /// Takes out what stands under `name`.
    pub(crate) fn take(&mut self, name: &str) -> Option<RawJson<'a>> {
        self.take_any(name).filter(|raw| raw.get() != "null")
    }

    /// Takes out what stands under `name` and reads it.
    pub(crate) fn take_as<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(RawJson<'a>) -> Result<T, Garbled>,
    ) -> Result<Option<T>, Garbled> {
        self.take(name).map(read).transpose().map_err(|garbled| garbled.at(name))
    }

    /// Like [`Self::take_as`], for what must be there.
    pub(crate) fn need<T>(
        &mut self,
        name: &str,
        expected: &'static str,
        read: impl FnOnce(RawJson<'a>) -> Result<T, Garbled>,
    ) -> Result<T, Garbled> {
        self.take_as(name, read)?.ok_or_else(|| Garbled::missing(expected).at(name))
    }

    pub(crate) fn text(&mut self, name: &str) -> Result<Option<String>, Garbled> {
        self.take_as(name, text)
    }

    /// A string of which the empty one means that nothing is said.
    pub(crate) fn id(&mut self, name: &str) -> Result<Option<String>, Garbled> {
        Ok(self.text(name)?.filter(|id| !id.is_empty()))
    }

    pub(crate) fn flag(&mut self, name: &str) -> Result<Option<bool>, Garbled> {
        self.take_as(name, |raw| match raw.get() {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(Garbled::kind("a boolean", raw)),
        })
    }

    pub(crate) fn count(&mut self, name: &str) -> Result<Option<u32>, Garbled> {
        self.take_as(name, count)
    }

    /// A list, empty when absent.
    pub(crate) fn list<T>(
        &mut self,
        name: &str,
        read: impl Fn(RawJson<'a>) -> Result<T, Garbled>,
    ) -> Result<Vec<T>, Garbled> {
        Ok(self.take_as(name, |raw| list(raw, read))?.unwrap_or_default())
    }

    pub(crate) fn texts(&mut self, name: &str) -> Result<Vec<String>, Garbled> {
        self.list(name, text)
    }

    /// An object, kept raw. Anything else stays among the unknown members.
    pub(crate) fn object(&mut self, name: &str) -> Option<Json> {
        if !self.peek(name)?.get().starts_with('{') {
            return None;
        }
        self.take(name).map(Json::from)
    }

    /// Drops a `kind` that only repeats what is known.
    pub(crate) fn drop_kind(&mut self, kind: &str) {
        if self.peek("kind").is_some_and(|raw| raw.get().trim_matches('"') == kind) {
            self.take("kind");
        }
    }

    /// Puts the members of another object behind these.
    pub(crate) fn absorb(&mut self, other: Self) {
        self.list.extend(other.list);
        self.has_proto_names |= other.has_proto_names;
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, RawJson<'a>)> {
        self.list.iter().map(|(name, raw)| (name.as_ref(), *raw))
    }

    /// What nobody took.
    pub(crate) fn rest(self) -> Extra {
        self.list.into_iter().map(|(name, raw)| (name.into_owned(), Json::from(raw))).collect()
    }
}

/// Whether `key` is what the proto file calls `name`: `history_length` for `historyLength`.
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
