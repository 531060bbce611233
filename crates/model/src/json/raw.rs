//! JSON that is looked into without being checked again.
//!
//! A decoder goes into a payload level by level. Checking each level's text anew makes that many passes over the same
//! bytes; here the whole is checked once, and what lies inside it is known to be sound. Finding the end of a value in
//! sound JSON takes only the quotes and the brackets, and inside a [`Document`](super::Document) not even these.

use std::{borrow::Cow, fmt};

use serde::{Serialize, Serializer, ser::SerializeStruct};
use serde_json::value::RawValue;

use super::find::special;

/// The name by which serde_json knows text that is to be written as it is.
pub(super) const RAW: &str = "$serde_json::private::RawValue";

/// The text of one JSON value. It was checked, by itself or as a part of something larger.
#[derive(Clone, Copy)]
pub struct Raw<'a> {
    text: &'a str,
    /// The lists and objects in it, in the order they begin. Empty when there are none, or they are not known.
    parts: &'a [Jump],
}

/// A list or an object inside a document.
#[derive(Clone, Copy, Debug)]
pub(super) struct Jump {
    /// How many bytes it has.
    pub(super) length: u32,
    /// How many lists and objects are inside it.
    pub(super) below: u32,
}

/// The members of an object, in order.
#[derive(Clone, Debug)]
pub struct Members<'a>(Scan<'a>);

/// The items of a list, in order.
#[derive(Clone, Debug)]
pub struct Items<'a>(Scan<'a>);

/// The rest of an object's or a list's text.
#[derive(Clone, Debug)]
struct Scan<'a> {
    text: &'a str,
    at: usize,
    /// Those that are still to come.
    parts: &'a [Jump],
}

// === impl Raw ===

impl<'a> Raw<'a> {
    /// Checks that `text` is one JSON value.
    pub fn parse(text: &'a str) -> Result<Self, serde_json::Error> {
        serde_json::from_str::<&RawValue>(text).map(Self::from)
    }

    /// What it is, in words.
    pub fn kind(&self) -> &'static str {
        match self.get().as_bytes().first() {
            Some(b'{') => "an object",
            Some(b'[') => "a list",
            Some(b'"') => "a string",
            Some(b't' | b'f') => "a boolean",
            Some(b'n') => "null",
            _ => "a number",
        }
    }

    /// The text itself.
    pub const fn get(self) -> &'a str {
        self.text
    }

    /// The members, if it is an object.
    pub fn members(self) -> Option<Members<'a>> {
        self.text.starts_with('{').then_some(Members(self.inside()))
    }

    /// The items, if it is a list.
    pub fn items(self) -> Option<Items<'a>> {
        self.text.starts_with('[').then_some(Items(self.inside()))
    }

    /// Text that is known to be one JSON value.
    pub(super) const fn known(text: &'a str) -> Self {
        Self { text, parts: &[] }
    }

    /// The same, with the lists and objects in it.
    pub(super) const fn with(text: &'a str, parts: &'a [Jump]) -> Self {
        Self { text, parts }
    }

    const fn inside(self) -> Scan<'a> {
        Scan { text: self.text, at: 1, parts: self.parts }
    }
}

impl<'a> From<&'a RawValue> for Raw<'a> {
    fn from(raw: &'a RawValue) -> Self {
        Self::known(raw.get())
    }
}

impl PartialEq for Raw<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Raw<'_> {}

impl fmt::Debug for Raw<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Raw").field(&self.text).finish()
    }
}

impl Serialize for Raw<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut raw = serializer.serialize_struct(RAW, 1)?;
        raw.serialize_field(RAW, self.text)?;
        raw.end()
    }
}

// === impl Members ===

impl<'a> Iterator for Members<'a> {
    type Item = (Cow<'a, str>, Raw<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let name = self.0.name()?;
        Some((name, self.0.value()?))
    }
}

// === impl Items ===

impl<'a> Iterator for Items<'a> {
    type Item = Raw<'a>;

    fn next(&mut self) -> Option<Raw<'a>> {
        self.0.value()
    }
}

// === impl Scan ===

impl<'a> Scan<'a> {
    /// The next member's name; none at the end.
    fn name(&mut self) -> Option<Cow<'a, str>> {
        let start = self.skip()?;
        let bytes = self.text.as_bytes();
        if bytes.get(start)? != &b'"' {
            return None;
        }
        let quote = special(bytes, start + 1);
        if bytes.get(quote)? == &b'"' {
            self.at = quote + 1;
            return self.text.get(start + 1..quote).map(Cow::Borrowed);
        }
        self.at = after_string(bytes, start)?;
        serde_json::from_str(self.text.get(start..self.at)?).ok().map(Cow::Owned)
    }

    /// The next value; none at the end.
    fn value(&mut self) -> Option<Raw<'a>> {
        let start = self.skip()?;
        let bytes = self.text.as_bytes();
        let mut parts: &[Jump] = &[];
        let end = match bytes.get(start)? {
            b'"' => after_string(bytes, start)?,
            b'{' | b'[' => match self.parts.split_first() {
                Some((jump, rest)) => {
                    (parts, self.parts) = rest.split_at_checked(jump.below as usize)?;
                    start + jump.length as usize
                }
                None => after_nested(bytes, start)?,
            },
            b'}' | b']' => return None,
            _ => {
                let rest = bytes.get(start..)?.iter();
                start + rest.take_while(|byte| !is_end(**byte)).count()
            }
        };
        self.at = end;
        Some(Raw { text: self.text.get(start..end)?, parts })
    }

    /// Goes past whatever stands between two values, and answers where the next one begins.
    fn skip(&mut self) -> Option<usize> {
        let bytes = self.text.as_bytes();
        while matches!(bytes.get(self.at)?, b' ' | b'\n' | b'\r' | b'\t' | b',' | b':') {
            self.at += 1;
        }
        Some(self.at)
    }
}

/// Where the string that begins at `start` is over.
fn after_string(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    loop {
        at = special(bytes, at);
        if bytes.get(at)? == &b'"' {
            return Some(at + 1);
        }
        at += 2;
    }
}

/// Where the object or list that begins at `start` is over.
fn after_nested(bytes: &[u8], start: usize) -> Option<usize> {
    let (mut at, mut depth) = (start, 0_usize);
    loop {
        match bytes.get(at)? {
            b'"' => {
                at = after_string(bytes, at)?;
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            _ => {}
        }
        at += 1;
        if depth == 0 {
            return Some(at);
        }
    }
}

/// Whether a number or a word is over.
const fn is_end(byte: u8) -> bool {
    matches!(byte, b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t')
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    /// Takes a text apart by the members and items, and puts it together as a tree.
    pub(in crate::json) fn rebuilt(raw: Raw<'_>) -> Value {
        if let Some(members) = raw.members() {
            return Value::Object(members.map(|(name, raw)| (name.into_owned(), rebuilt(raw))).collect());
        }
        match raw.items() {
            Some(items) => Value::Array(items.map(rebuilt).collect()),
            None => serde_json::from_str(raw.get()).unwrap(),
        }
    }

    pub(in crate::json) fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            ".*".prop_map(Value::from),
        ];
        leaf.prop_recursive(5, 64, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::btree_map(".*", inner, 0..6)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_taken_apart_is_all_there(value in any_json(), is_pretty: bool) {
            let text = if is_pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) };
            let text = text.unwrap();
            prop_assert_eq!(rebuilt(Raw::parse(&text).unwrap()), serde_json::from_str::<Value>(&text).unwrap());
        }
    }

    #[test]
    fn it_is_written_as_the_text_it_is() {
        let raw = Raw::parse(r#" {"n": 1.000, "a": [ ] } "#).unwrap();
        assert_eq!(serde_json::to_string(&raw).unwrap(), r#"{"n": 1.000, "a": [ ] }"#);
        assert_eq!(serde_json::to_value(raw).unwrap(), serde_json::json!({ "n": 1.0, "a": [] }));
    }

    #[test]
    fn what_is_no_object_has_no_members_and_what_is_no_list_no_items() {
        for text in ["1", "null", r#""{""#] {
            let raw = Raw::parse(text).unwrap();
            assert!(raw.members().is_none() && raw.items().is_none());
        }
        assert!(Raw::parse("{").is_err());
    }
}
