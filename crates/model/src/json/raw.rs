//! Borrowed JSON text of one value, with access to its members and items one level at a time.
//!
//! `serde_json` checks and splits the text. A level is read without building a tree of the levels below it.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Serialize, Serializer,
    de::{Deserializer as _, MapAccess, Visitor},
};
use serde_json::value::RawValue;

/// JSON text of one value, borrowed from the document that holds it.
#[derive(Clone, Copy)]
pub struct RawJson<'a>(&'a RawValue);

/// Member name that borrows from the text unless it has escapes.
#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

/// Reads an object as a list, so that order and repeated names are kept.
struct MemberList;

/// Members for which a list has room at first.
const USUAL_MEMBERS: usize = 8;

// === impl RawJson ===

impl<'a> RawJson<'a> {
    /// Checks that `text` is one JSON value.
    pub fn parse(text: &'a str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text).map(Self)
    }

    /// Kind of the value, in words for error messages.
    pub fn kind(self) -> &'static str {
        match self.get().as_bytes().first() {
            Some(b'{') => "an object",
            Some(b'[') => "a list",
            Some(b'"') => "a string",
            Some(b't' | b'f') => "a boolean",
            Some(b'n') => "null",
            _ => "a number",
        }
    }

    /// The text, without white space around it.
    pub fn get(self) -> &'a str {
        self.0.get()
    }

    /// The text as `serde_json` knows it.
    pub(super) const fn value(self) -> &'a RawValue {
        self.0
    }

    /// Reads the value as a `T` that may borrow from the text.
    pub fn read<T: Deserialize<'a>>(self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.get())
    }

    /// Members in order, if the value is an object.
    pub fn members(self) -> Option<Vec<(Cow<'a, str>, Self)>> {
        if !self.get().starts_with('{') {
            return None;
        }
        serde_json::Deserializer::from_str(self.get()).deserialize_map(MemberList).ok()
    }

    /// Member called `name`, if the value is an object that has one. Of several with that name the last one counts.
    pub fn member(self, name: &str) -> Option<Self> {
        self.members()?.into_iter().rfind(|(found, _)| found == name).map(|(_, value)| value)
    }

    /// Items in order, if the value is a list.
    pub fn items(self) -> Option<Vec<Self>> {
        self.get().starts_with('[').then(|| self.read().ok()).flatten()
    }
}

impl<'a> From<&'a RawValue> for RawJson<'a> {
    fn from(raw: &'a RawValue) -> Self {
        Self(raw)
    }
}

impl PartialEq for RawJson<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl Eq for RawJson<'_> {}

impl fmt::Debug for RawJson<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RawJson").field(&self.get()).finish()
    }
}

impl Serialize for RawJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for RawJson<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <&RawValue>::deserialize(deserializer).map(Self)
    }
}

// === impl MemberList ===

impl<'de> Visitor<'de> for MemberList {
    type Value = Vec<(Cow<'de, str>, RawJson<'de>)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::with_capacity(USUAL_MEMBERS);
        while let Some((Name(name), value)) = map.next_entry()? {
            members.push((name, value));
        }
        Ok(members)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    /// Splits a text into members and items, and builds a tree from them.
    fn rebuilt(raw: RawJson<'_>) -> Value {
        if let Some(members) = raw.members() {
            return Value::Object(
                members.into_iter().map(|(name, raw)| (name.into_owned(), rebuilt(raw))).collect(),
            );
        }
        match raw.items() {
            Some(items) => Value::Array(items.into_iter().map(rebuilt).collect()),
            None => serde_json::from_str(raw.get()).unwrap(),
        }
    }

    fn any_json() -> impl Strategy<Value = Value> {
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
        fn members_and_items_hold_the_whole_document(value in any_json(), is_pretty: bool) {
            let text = if is_pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) };
            let text = text.unwrap();
            prop_assert_eq!(rebuilt(RawJson::parse(&text).unwrap()), serde_json::from_str::<Value>(&text).unwrap());
        }
    }

    #[test]
    fn it_is_written_as_the_text_it_was_read_from() {
        let raw = RawJson::parse(r#" {"n": 1.000, "a": [ ] } "#).unwrap();
        assert_eq!(serde_json::to_string(&raw).unwrap(), r#"{"n": 1.000, "a": [ ] }"#);
        assert_eq!(serde_json::to_value(raw).unwrap(), serde_json::json!({ "n": 1.0, "a": [] }));
    }

    #[test]
    fn order_and_repeated_names_are_kept() {
        let raw = RawJson::parse(r#"{"b":1,"a\n":2,"b":3}"#).unwrap();
        let members = raw.members().unwrap();
        let found: Vec<_> = members.iter().map(|(name, value)| (name.as_ref(), value.get())).collect();
        assert_eq!(found, [("b", "1"), ("a\n", "2"), ("b", "3")]);
        assert!(matches!(members[0].0, Cow::Borrowed(_)) && matches!(members[1].0, Cow::Owned(_)));
    }

    #[test]
    fn only_objects_have_members_and_only_lists_have_items() {
        for text in ["1", "null", r#""{""#] {
            let raw = RawJson::parse(text).unwrap();
            assert!(raw.members().is_none() && raw.items().is_none());
        }
        assert!(RawJson::parse("{").is_err());
    }
}
