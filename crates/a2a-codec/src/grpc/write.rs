//! Encoder of JSON to protobuf.
//!
//! Members that protobuf cannot hold are dropped, as every JSON decoder for protobuf does: unknown members, an invalid timestamp. Values
//! that would change are rejected: bytes that are not base64, a number beyond all doubles. A number with more digits than a double loses
//! them.

use base64::{
    Engine, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use jiff::{Timestamp, civil, tz::TimeZone};
use rialto_model::json::RawJson;

use super::schema::{ProtoField, ProtoKind, ProtoMessage, ProtoRule};
use crate::{invalid::InvalidDocument, members::text};

const VARINT: u32 = 0;
const FIXED64: u32 = 1;
const BYTES: u32 = 2;

const LENIENT: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LENIENT);
const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT);

/// Appends the message whose JSON is `raw`.
pub(crate) fn message(
    shape: &ProtoMessage,
    raw: RawJson<'_>,
    out: &mut Vec<u8>,
) -> Result<(), InvalidDocument> {
    let members = raw.members().ok_or_else(|| InvalidDocument::kind("an object", raw))?;
    for (name, value) in members {
        if let Some(field) = shape.fields.iter().find(|field| field.name == name) {
            member(field, value, out).map_err(|garbled| garbled.at(&name))?;
        }
    }
    Ok(())
}

fn member(field: &ProtoField, raw: RawJson<'_>, out: &mut Vec<u8>) -> Result<(), InvalidDocument> {
    let is_nothing = raw.get() == "null" && !matches!(field.kind, ProtoKind::Value);
    match field.rule {
        _ if is_nothing => Ok(()),
        ProtoRule::Plain => value(field.number, &field.kind, raw, true, out),
        ProtoRule::Optional | ProtoRule::Choice => value(field.number, &field.kind, raw, false, out),
        ProtoRule::Many => {
            let items = raw.items().ok_or_else(|| InvalidDocument::kind("a list", raw))?;
            items.into_iter().enumerate().try_for_each(|(at, item)| {
                value(field.number, &field.kind, item, false, out).map_err(|garbled| garbled.at_index(at))
            })
        }
        ProtoRule::Map => {
            let members = raw.members().ok_or_else(|| InvalidDocument::kind("an object", raw))?;
            for (name, inner) in members {
                nested(field.number, out, |out| {
                    put_bytes(1, name.as_bytes(), out);
                    value(2, &field.kind, inner, false, out).map_err(|garbled| garbled.at(&name))
                })?;
            }
            Ok(())
        }
    }
}

/// Writes one value; nothing if it is the default and `may_be_left_out`.
fn value(
    number: u32,
    kind: &ProtoKind,
    raw: RawJson<'_>,
    may_be_left_out: bool,
    out: &mut Vec<u8>,
) -> Result<(), InvalidDocument> {
    let mut put = |value: u64| {
        if value != 0 || !may_be_left_out {
            put_tag(number, VARINT, out);
            put_varint(value, out);
        }
    };
    match kind {
        ProtoKind::Text => {
            let text = text(raw)?;
            if !(text.is_empty() && may_be_left_out) {
                put_bytes(number, text.as_bytes(), out);
            }
        }
        ProtoKind::Bytes => put_bytes(number, &bytes(raw)?, out),
        ProtoKind::Flag => put(match raw.get() {
            "true" => 1,
            "false" => 0,
            _ => return Err(InvalidDocument::kind("a boolean", raw)),
        }),
        ProtoKind::Int => put(i64::from(int(raw)?).cast_unsigned()),
        ProtoKind::Enum(names) => {
            let name = text(raw)?;
            let known = names.iter().find(|(known, _)| *known == name);
            put(i64::from(known.map_or(0, |(_, number)| *number)).cast_unsigned());
        }
        ProtoKind::Message(shape) => nested(number, out, |out| message(shape, raw, out))?,
        ProtoKind::Struct => nested(number, out, |out| structure(raw, out))?,
        ProtoKind::Value => nested(number, out, |out| any(raw, out))?,
        ProtoKind::Timestamp => {
            if let Some(time) = timestamp(&text(raw)?) {
                nested(number, out, |out| {
                    put_time(time, out);
                    Ok(())
                })?;
            }
        }
    }
    Ok(())
}

/// Encodes a `google.protobuf.Struct`.
fn structure(raw: RawJson<'_>, out: &mut Vec<u8>) -> Result<(), InvalidDocument> {
    for (name, inner) in raw.members().ok_or_else(|| InvalidDocument::kind("an object", raw))? {
        nested(1, out, |out| {
            put_bytes(1, name.as_bytes(), out);
            nested(2, out, |out| any(inner, out)).map_err(|garbled| garbled.at(&name))
        })?;
    }
    Ok(())
}

/// Encodes a `google.protobuf.Value`.
fn any(raw: RawJson<'_>, out: &mut Vec<u8>) -> Result<(), InvalidDocument> {
    match raw.get().as_bytes().first() {
        Some(b'n') => {
            put_tag(1, VARINT, out);
            put_varint(0, out);
        }
        Some(b'"') => put_bytes(3, text(raw)?.as_bytes(), out),
        Some(b't' | b'f') => {
            put_tag(4, VARINT, out);
            put_varint(u64::from(raw.get() == "true"), out);
        }
        Some(b'{') => nested(5, out, |out| structure(raw, out))?,
        Some(b'[') => nested(6, out, |out| {
            let items = raw.items().into_iter().flatten();
            items.into_iter().enumerate().try_for_each(|(at, item)| {
                nested(1, out, |out| any(item, out)).map_err(|garbled| garbled.at_index(at))
            })
        })?,
        _ => {
            let number = raw.get().parse().ok().filter(|number: &f64| number.is_finite());
            let number = number
                .ok_or_else(|| InvalidDocument::new("a number that a double can hold", "a larger one"))?;
            put_tag(2, FIXED64, out);
            out.extend_from_slice(&number.to_le_bytes());
        }
    }
    Ok(())
}

fn bytes(raw: RawJson<'_>) -> Result<Vec<u8>, InvalidDocument> {
    let text = text(raw)?;
    let read = STANDARD.decode(&text).or_else(|_| URL_SAFE.decode(&text));
    read.map_err(|_| InvalidDocument::new("base64 text", "text that is not base64"))
}

fn int(raw: RawJson<'_>) -> Result<i32, InvalidDocument> {
    let number = raw.get().trim_matches('"');
    let whole = number.strip_suffix(".0").unwrap_or(number);
    whole.parse().map_err(|_| InvalidDocument::new("a whole number of 32 bits", "something else"))
}

/// Parses a timestamp. One without a zone, as 0.1 writes it, is in UTC.
fn timestamp(text: &str) -> Option<Timestamp> {
    let civil = || text.parse::<civil::DateTime>().ok()?.to_zoned(TimeZone::UTC).ok();
    text.parse().ok().or_else(|| civil().map(|zoned| zoned.timestamp()))
}

/// Protobuf counts the fraction of a second forwards, before 1970 too.
fn put_time(time: Timestamp, out: &mut Vec<u8>) {
    let nanos = time.as_nanosecond();
    let (second, fraction) = (nanos.div_euclid(1_000_000_000), nanos.rem_euclid(1_000_000_000));
    put_tag(1, VARINT, out);
    put_varint((second as i64).cast_unsigned(), out);
    put_tag(2, VARINT, out);
    put_varint(fraction as u64, out);
}

/// Writes the output of `fill` as a nested message.
fn nested(
    number: u32,
    out: &mut Vec<u8>,
    fill: impl FnOnce(&mut Vec<u8>) -> Result<(), InvalidDocument>,
) -> Result<(), InvalidDocument> {
    put_tag(number, BYTES, out);
    let start = out.len();
    fill(out)?;
    // The length precedes the content, and is only known afterwards.
    let mut length = Vec::with_capacity(5);
    put_varint((out.len() - start) as u64, &mut length);
    out.splice(start..start, length);
    Ok(())
}

pub(crate) fn put_bytes(number: u32, bytes: &[u8], out: &mut Vec<u8>) {
    put_tag(number, BYTES, out);
    put_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

fn put_tag(number: u32, wire_type: u32, out: &mut Vec<u8>) {
    put_varint(u64::from(number << 3 | wire_type), out);
}

fn put_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
