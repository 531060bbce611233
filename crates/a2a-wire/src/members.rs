//! Reads an object as its members, in order and still raw, so that a decoder takes out what it knows and keeps the rest.
//!
//! `null` is read as absent, because every dialect has a server that writes absent members that way. Of members that
//! share a name the last one counts and the others are dropped: nothing may hide behind a name that was already read.

use std::{borrow::Cow, fmt};

use rialto_model::json::{Extra, Json};
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

use crate::garbled::Garbled;

/// The members of one object.
#[derive(Default)]
pub(crate) struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

struct Name<'a>(Cow<'a, str>);

struct Items<'a>(Vec<&'a RawValue>);

/// The one JSON value that `bytes` are.
pub(crate) fn parse(bytes: &[u8]) -> Result<&RawValue, Garbled> {
    let text = std::str::from_utf8(bytes).map_err(|_| Garbled::new("JSON", "bytes that are not UTF-8"))?;
    serde_json::from_str(text).map_err(|error| Garbled::not_json(&error))
}

/// A JSON string.
pub(crate) fn text(raw: &RawValue) -> Result<String, Garbled> {
    let plain = raw.get().strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    match plain {
        // Most strings have nothing to undo.
        Some(plain) if !plain.contains('\\') => Ok(plain.to_owned()),
        _ => serde_json::from_str(raw.get()).map_err(|_| Garbled::kind("a string", raw)),
    }
}

/// A count. Proto's JSON may quote it or write it with a fraction of zero.
pub(crate) fn count(raw: &RawValue) -> Result<u32, Garbled> {
    let number = raw.get().trim_matches('"');
    let whole = number.strip_suffix(".0").unwrap_or(number);
    whole.parse().map_err(|_| Garbled::kind("a count", raw))
}

/// A list, each item read by `read`.
pub(crate) fn list<'a, T>(
    raw: &'a RawValue,
    read: impl Fn(&'a RawValue) -> Result<T, Garbled>,
) -> Result<Vec<T>, Garbled> {
    let items: Items<'a> = serde_json::from_str(raw.get()).map_err(|_| Garbled::kind("a list", raw))?;
    items.0.into_iter().enumerate().map(|(at, item)| read(item).map_err(|e| e.at_index(at))).collect()
}

// === impl Members ===

impl<'a> Members<'a> {
    pub(crate) fn read(raw: &'a RawValue) -> Result<Self, Garbled> {
        serde_json::from_str(raw.get()).map_err(|_| Garbled::kind("an object", raw))
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// What stands under `name`, left where it is.
    pub(crate) fn peek(&self, name: &str) -> Option<&'a RawValue> {
        self.0.iter().rev().find(|(key, _)| key == name).map(|(_, raw)| *raw)
    }

    /// Whether there is something under `name`, and not `null`.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.peek(name).is_some_and(|raw| raw.get() != "null")
    }

    /// Takes out what stands under `name`, `null` included.
    pub(crate) fn take_any(&mut self, name: &str) -> Option<&'a RawValue> {
        let at = self.0.iter().rposition(|(key, _)| key == name)?;
        let (_, found) = self.0.remove(at);
        if self.0.iter().take(at).any(|(key, _)| key == name) {
            self.0.retain(|(key, _)| key != name);
        }
        Some(found)
    }

    /// Takes out what stands under `name`.
    pub(crate) fn take(&mut self, name: &str) -> Option<&'a RawValue> {
        self.take_any(name).filter(|raw| raw.get() != "null")
    }

    /// Takes out what stands under `name` and reads it.
    pub(crate) fn take_as<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(&'a RawValue) -> Result<T, Garbled>,
    ) -> Result<Option<T>, Garbled> {
        self.take(name).map(read).transpose().map_err(|garbled| garbled.at(name))
    }

    /// Like [`Self::take_as`], for what must be there.
    pub(crate) fn need<T>(
        &mut self,
        name: &str,
        expected: &'static str,
        read: impl FnOnce(&'a RawValue) -> Result<T, Garbled>,
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
        read: impl Fn(&'a RawValue) -> Result<T, Garbled>,
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
        self.0.extend(other.0);
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &'a RawValue)> {
        self.0.iter().map(|(name, raw)| (name.as_ref(), *raw))
    }

    /// What nobody took.
    pub(crate) fn rest(self) -> Extra {
        self.0.into_iter().map(|(name, raw)| (name.into_owned(), Json::from(raw))).collect()
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Members<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::with_capacity(8);
                while let Some((name, raw)) = map.next_entry::<Name<'de>, &'de RawValue>()? {
                    members.push((name.0, raw));
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Object)
    }
}

// === impl Name ===

impl<'de> Deserialize<'de> for Name<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Key;
        impl<'de> Visitor<'de> for Key {
            type Value = Name<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_borrowed_str<E>(self, name: &'de str) -> Result<Self::Value, E> {
                Ok(Name(Cow::Borrowed(name)))
            }
            fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
                Ok(Name(Cow::Owned(name.to_owned())))
            }
        }
        deserializer.deserialize_str(Key)
    }
}

// === impl Items ===

impl<'de: 'a, 'a> Deserialize<'de> for Items<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct List;
        impl<'de> Visitor<'de> for List {
            type Value = Items<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = list.next_element()? {
                    items.push(item);
                }
                Ok(Items(items))
            }
        }
        deserializer.deserialize_seq(List)
    }
}
