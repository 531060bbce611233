//! Writes values as JSON into memory, in few and large steps.
//!
//! It is the same text that serde_json writes, and what is rare is left to it. But serde_json writes to anything, so each quote,
//! comma and colon is a write of its own; here the target is known to be memory, and a name is written with all around it at
//! once. What is carried as text ([`Json`](super::Json), [`Raw`](super::Raw)) is copied as it is.

use serde::{
    Serialize, Serializer,
    ser::{
        Error as _, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
        SerializeTupleStruct, SerializeTupleVariant,
    },
};
use serde_json::Error;

use super::{raw::RAW, text::push_text};

/// Appends the JSON of `value` to `out`. On an error, what is behind the old end of `out` means nothing.
pub fn push_json<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) -> Result<(), Error> {
    value.serialize(Writer::new(out))
}

/// Writes one value.
struct Writer<'o> {
    out: &'o mut Vec<u8>,
    /// Whether what comes is a text that is JSON already.
    is_carried: bool,
}

/// Writes the items of a list or the members of an object.
struct Inside<'o> {
    out: &'o mut Vec<u8>,
    is_first: bool,
    /// What ends it.
    end: &'static [u8],
}

/// Writes the members of a struct, or the one that stands for text that is carried.
enum Fields<'o> {
    Some(Inside<'o>),
    Carried(&'o mut Vec<u8>),
}

// === impl Writer ===

impl<'o> Writer<'o> {
    const fn new(out: &'o mut Vec<u8>) -> Self {
        Self { out, is_carried: false }
    }

    fn open(self, begin: u8, end: &'static [u8]) -> Inside<'o> {
        self.out.push(begin);
        Inside { out: self.out, is_first: true, end }
    }

    /// Opens an object with one member, for what has a name.
    fn variant(self, name: &str, begin: u8, end: &'static [u8]) -> Inside<'o> {
        self.out.push(b'{');
        push_text(self.out, name);
        self.out.push(b':');
        self.open(begin, end)
    }

    /// Has serde_json write what is rare.
    fn rare<T: Serialize>(self, value: T) -> Result<(), Error> {
        serde_json::to_writer(self.out, &value)
    }
}

impl<'o> Serializer for Writer<'o> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Inside<'o>;
    type SerializeTuple = Inside<'o>;
    type SerializeTupleStruct = Inside<'o>;
    type SerializeTupleVariant = Inside<'o>;
    type SerializeMap = Inside<'o>;
    type SerializeStruct = Fields<'o>;
    type SerializeStructVariant = Inside<'o>;

    fn serialize_bool(self, value: bool) -> Result<(), Error> {
        self.out.extend_from_slice(if value { b"true" } else { b"false" });
        Ok(())
    }

    fn serialize_i8(self, value: i8) -> Result<(), Error> {
        self.rare(value)
    }

    fn serialize_i16(self, value: i16) -> Result<(), Error> {
        self.rare(value)
    }

    fn serialize_i32(self, value: i32) -> Result<(), Error> {
        self.rare(value)
    }

    fn serialize_i64(self, value: i64) -> Result<(), Error> {
        self.rare(value)
    }

    fn serialize_i128(self, value: i128) -> Result<(), Error> {
        self.rare(value)
    }

    fn serialize_u8(self, value: u8) -> Result<(), Error> {
        self.rare(value)
    }

    fn serialize_u16(self, value: u16) -> Result<(), Error> {
        self.rare(value)
    }

    fn serialize_u32(self, value: u32) -> Result<(), Error> {
        self.rare(value)
    }

    fn serialize_u64(self, value: u64) -> Result<(), Error> {
        self.rare(value)
    }

    fn serialize_u128(self, value: u128) -> Result<(), Error> {
        self.rare(value)
    }

    fn serialize_f32(self, value: f32) -> Result<(), Error> {
        self.rare(value)
    }

    fn serialize_f64(self, value: f64) -> Result<(), Error> {
        self.rare(value)
    }

    fn serialize_char(self, value: char) -> Result<(), Error> {
        self.rare(value)
    }

    fn serialize_str(self, value: &str) -> Result<(), Error> {
        if self.is_carried {
            self.out.extend_from_slice(value.as_bytes());
        } else {
            push_text(self.out, value);
        }
        Ok(())
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<(), Error> {
        self.rare(value)
    }

    fn serialize_none(self) -> Result<(), Error> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Error> {
        self.out.extend_from_slice(b"null");
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Error> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<(), Error> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        let out = self.out;
        out.push(b'{');
        push_text(out, variant);
        out.push(b':');
        value.serialize(Writer::new(out))?;
        out.push(b'}');
        Ok(())
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Inside<'o>, Error> {
        Ok(self.open(b'[', b"]"))
    }

    fn serialize_tuple(self, _: usize) -> Result<Inside<'o>, Error> {
        Ok(self.open(b'[', b"]"))
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Inside<'o>, Error> {
        Ok(self.open(b'[', b"]"))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Inside<'o>, Error> {
        Ok(self.variant(variant, b'[', b"]}"))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Inside<'o>, Error> {
        Ok(self.open(b'{', b"}"))
    }

    fn serialize_struct(self, name: &'static str, _: usize) -> Result<Fields<'o>, Error> {
        if name == RAW {
            return Ok(Fields::Carried(self.out));
        }
        Ok(Fields::Some(self.open(b'{', b"}")))
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Inside<'o>, Error> {
        Ok(self.variant(variant, b'{', b"}}"))
    }
}

// === impl Inside ===

impl Inside<'_> {
    fn comma(&mut self) {
        if !std::mem::replace(&mut self.is_first, false) {
            self.out.push(b',');
        }
    }

    fn item<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.comma();
        value.serialize(Writer::new(self.out))
    }

    fn member<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) -> Result<(), Error> {
        self.comma();
        push_text(self.out, name);
        self.out.push(b':');
        value.serialize(Writer::new(self.out))
    }

    fn close(self) {
        self.out.extend_from_slice(self.end);
    }
}

impl SerializeSeq for Inside<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.item(value)
    }

    fn end(self) -> Result<(), Error> {
        self.close();
        Ok(())
    }
}

impl SerializeTuple for Inside<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.item(value)
    }

    fn end(self) -> Result<(), Error> {
        self.close();
        Ok(())
    }
}

impl SerializeTupleStruct for Inside<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.item(value)
    }

    fn end(self) -> Result<(), Error> {
        self.close();
        Ok(())
    }
}

impl SerializeTupleVariant for Inside<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.item(value)
    }

    fn end(self) -> Result<(), Error> {
        self.close();
        Ok(())
    }
}

impl SerializeMap for Inside<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        self.comma();
        let begin = self.out.len();
        key.serialize(Writer::new(self.out))?;
        match self.out.get(begin) {
            Some(b'"') => Ok(()),
            // Numbers and words are put into quotes.
            Some(b'-' | b'0'..=b'9' | b't' | b'f') => {
                self.out.insert(begin, b'"');
                self.out.push(b'"');
                Ok(())
            }
            _ => Err(Error::custom("key must be a string")),
        }
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.out.push(b':');
        value.serialize(Writer::new(self.out))
    }

    fn end(self) -> Result<(), Error> {
        self.close();
        Ok(())
    }
}

impl SerializeStructVariant for Inside<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), Error> {
        self.member(name, value)
    }

    fn end(self) -> Result<(), Error> {
        self.close();
        Ok(())
    }
}

// === impl Fields ===

impl SerializeStruct for Fields<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), Error> {
        match self {
            Self::Some(inside) => inside.member(name, value),
            Self::Carried(out) => value.serialize(Writer { out, is_carried: true }),
        }
    }

    fn end(self) -> Result<(), Error> {
        if let Self::Some(inside) = self {
            inside.close();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;
    use crate::json::{Extra, Json};

    #[derive(Serialize)]
    #[serde(rename_all = "kebab-case")]
    enum Kind {
        Unit,
        New(String),
        Pair(i64, Option<bool>),
        Full { name: Value, more: Vec<Kind> },
    }

    #[derive(Serialize)]
    struct Wide {
        kinds: Vec<Kind>,
        #[serde(skip_serializing_if = "Option::is_none")]
        left_out: Option<u8>,
        none: Option<u8>,
        text: String,
        letter: char,
        tuple: (u8, i32, f64),
        unit: (),
        numbers: BTreeMap<u32, f32>,
        carried: Json,
        extra: Extra,
        #[serde(flatten)]
        rest: BTreeMap<String, Value>,
    }

    fn written<T: Serialize + ?Sized>(value: &T) -> String {
        let mut out = b"before".to_vec();
        push_json(&mut out, value).unwrap();
        String::from_utf8(out.split_off(6)).unwrap()
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            ".{0,40}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::vec((".{0,12}", inner), 0..6)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_value_is_written_as_serde_json_writes_it(value in any_value(), text in ".{0,40}", number in any::<f64>()) {
            prop_assert_eq!(written(&value), serde_json::to_string(&value).unwrap());
            let kinds = vec![
                Kind::Unit,
                Kind::New(text.clone()),
                Kind::Pair(-7, None),
                Kind::Full { name: value.clone(), more: vec![Kind::Unit, Kind::Pair(1, Some(true))] },
            ];
            let wide = Wide {
                kinds,
                left_out: None,
                none: None,
                letter: text.chars().next().unwrap_or('"'),
                tuple: (1, -2, number),
                unit: (),
                numbers: BTreeMap::from([(3, 1.5), (4, f32::NAN)]),
                carried: Json::of(&value),
                extra: Extra::from_iter([(text.clone(), Json::of(&value))]),
                rest: BTreeMap::from([(text.clone(), value)]),
                text,
            };
            prop_assert_eq!(written(&wide), serde_json::to_string(&wide).unwrap());
        }
    }

    #[test]
    fn carried_text_keeps_every_digit_and_space() {
        let json = Json::parse("{\"n\": 1.000, \"t\":\"\\u00e9\"}").unwrap();
        assert_eq!(written(&json), json.get());
        assert_eq!(written(&[json.raw()]), format!("[{}]", json.get()));
    }

    #[test]
    fn what_cannot_be_a_name_is_refused() {
        let refused = BTreeMap::from([(vec![1], 2)]);
        assert!(serde_json::to_string(&refused).is_err());
        assert!(push_json(&mut Vec::new(), &refused).is_err());
        assert_eq!(written(&BTreeMap::from([(-5, true)])), "{\"-5\":true}");
        assert_eq!(written(&BTreeMap::from([(true, 1)])), "{\"true\":1}");
    }
}
