//! JSON that is carried, not understood.
//!
//! A payload crosses the bridge as the text it arrived in: numbers keep every digit, members keep their order, and
//! no time is spent on building a tree that nobody reads.

mod depth;
mod raw;

use std::{fmt, sync::Arc};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{DeserializeOwned, MapAccess, Visitor},
    ser::SerializeMap,
};
use serde_json::value::RawValue;

pub use self::{
    depth::{MAX_DEPTH, is_too_deep},
    raw::RawJson,
};

/// One JSON value, kept as its text. Cloning shares the text.
#[derive(Clone)]
pub struct Json(Arc<RawValue>);

/// The members of an object that its reader does not know, in the order they came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extra(Vec<(String, Json)>);

// === impl Json ===

impl Json {
    /// Checks that `text` is one JSON value and keeps it.
    pub fn parse(text: impl AsRef<str>) -> Result<Self, serde_json::Error> {
        RawJson::parse(text.as_ref()).map(Self::from)
    }

    /// The JSON text of any value that can be serialised.
    ///
    /// Falls back to `null` for the few values JSON cannot say (a map with keys that are not strings).
    pub fn encode<T: Serialize + ?Sized>(value: &T) -> Self {
        serde_json::value::to_raw_value(value).map_or_else(|_| Self::null(), |raw| Self(raw.into()))
    }

    /// The value `null`.
    pub fn null() -> Self {
        Self::from(RawValue::NULL)
    }

    /// The empty object.
    pub fn empty_object() -> Self {
        Self::encode(&serde_json::Map::new())
    }

    /// The text itself.
    pub fn get(&self) -> &str {
        self.0.get()
    }

    /// Returns whether both are one text, not only two that read alike.
    pub fn shares(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Text, borrowed.
    pub fn raw(&self) -> RawJson<'_> {
        RawJson::from(&*self.0)
    }

    /// Reads the text as a value of type `T`.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.get())
    }

    /// Reads the text as a tree. Any text that was accepted before can be read.
    pub fn value(&self) -> serde_json::Value {
        self.read().unwrap_or(serde_json::Value::Null)
    }

    /// Returns whether the text is an object.
    pub fn is_object(&self) -> bool {
        self.get().starts_with('{')
    }

    /// Returns whether the text is `null`.
    pub fn is_null(&self) -> bool {
        self.get() == "null"
    }
}

impl From<RawJson<'_>> for Json {
    fn from(raw: RawJson<'_>) -> Self {
        Self::from(raw.value())
    }
}

impl From<&RawValue> for Json {
    fn from(raw: &RawValue) -> Self {
        Self(raw.to_owned().into())
    }
}

impl From<serde_json::Value> for Json {
    fn from(value: serde_json::Value) -> Self {
        Self::encode(&value)
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl Eq for Json {}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.get())
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.get())
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(|raw| Self(raw.into()))
    }
}

// === impl Extra ===

impl Extra {
    /// No members.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Returns whether there is nothing unknown.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Keeps one more member.
    pub fn push(&mut self, name: impl Into<String>, value: Json) {
        self.0.push((name.into(), value));
    }

    /// The value of the member called `name`.
    pub fn get(&self, name: &str) -> Option<&Json> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    /// Takes the member called `name` out.
    pub fn take(&mut self, name: &str) -> Option<Json> {
        let at = self.0.iter().position(|(key, _)| key == name)?;
        Some(self.0.remove(at).1)
    }

    /// All members, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Json)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }
}

impl FromIterator<(String, Json)> for Extra {
    fn from_iter<I: IntoIterator<Item = (String, Json)>>(members: I) -> Self {
        Self(members.into_iter().collect())
    }
}

impl Serialize for Extra {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Extra {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Extra;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Extra, A::Error> {
                let mut extra = Extra::new();
                while let Some((name, value)) = map.next_entry::<String, Json>()? {
                    extra.push(name, value);
                }
                Ok(extra)
            }
        }
        deserializer.deserialize_map(Members)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_keeps_every_digit() {
        let json = Json::parse(r#"{"n":12345678901234567890.10}"#).unwrap();
        assert_eq!(serde_json::to_string(&json).unwrap(), r#"{"n":12345678901234567890.10}"#);
    }

    #[test]
    fn unknown_members_keep_their_order() {
        let text = r#"{"z":1,"a":[2, 3]}"#;
        let extra: Extra = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&extra).unwrap(), text);
    }

    #[test]
    fn text_that_is_not_json_is_refused() {
        assert!(Json::parse("{").is_err());
    }
}
