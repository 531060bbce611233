//! Decoder of protobuf to JSON.
//!
//! All valid protobuf is accepted: fields in any order and in several chunks, unknown fields, repeated `oneof` members. Integers are
//! written without a fraction. An unknown enum number is written as the name of the unspecified value.

use std::{borrow::Cow, collections::HashMap};

use base64::{Engine, engine::general_purpose::STANDARD};
use jiff::Timestamp;
use rialto_model::json::MAX_DEPTH;

use super::schema::{ProtoField, ProtoKind, ProtoMessage, ProtoRule};
use crate::invalid::InvalidDocument;

/// Beyond this not every integer is a double.
const MAX_EXACT_INTEGER: f64 = 9_007_199_254_740_992.0;

/// Value of a field.
#[derive(Clone, Copy)]
enum FieldValue<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// Remaining bytes of a message.
struct ProtoReader<'a>(&'a [u8]);

/// `google.protobuf.Value`: field number, bytes and number.
type Any<'a> = Option<(u32, Cow<'a, [u8]>, u64)>;

/// Appends the JSON of an encoded message. `depth` levels of JSON enclose it.
pub(crate) fn message(
    shape: &ProtoMessage,
    bytes: &[u8],
    depth: usize,
    out: &mut Vec<u8>,
) -> Result<(), InvalidDocument> {
    let depth = deeper(depth)?;
    let found = fields(shape, bytes)?;
    let mut is_first = true;
    out.push(b'{');
    let mut rest = found.as_slice();
    while let Some(&(at, _)) = rest.first() {
        let (same, behind) = rest.split_at(rest.partition_point(|(other, _)| *other <= at));
        rest = behind;
        let Some(field) = shape.fields.get(at) else { continue };
        if !std::mem::take(&mut is_first) {
            out.push(b',');
        }
        push_string(out, field.name);
        out.push(b':');
        member(field, same, depth, out).map_err(|garbled| garbled.at(field.name))?;
    }
    out.push(b'}');
    Ok(())
}

/// Values of the known fields, sorted by their index in the table; of a `oneof` only the last.
fn fields<'a>(
    shape: &ProtoMessage,
    bytes: &'a [u8],
) -> Result<Vec<(usize, FieldValue<'a>)>, InvalidDocument> {
    let mut found = Vec::new();
    let mut chosen = None;
    let mut rest = ProtoReader(bytes);
    while let Some((number, value)) = rest.next()? {
        let Some(at) = shape.fields.iter().position(|field| field.number == number) else { continue };
        if shape.fields[at].rule == ProtoRule::Choice {
            chosen = Some(at);
        }
        found.push((at, value));
    }
    found.retain(|(at, _)| shape.fields[*at].rule != ProtoRule::Choice || chosen == Some(*at));
    found.sort_by_key(|(at, _)| *at);
    Ok(found)
}

fn member(
    field: &ProtoField,
    found: &[(usize, FieldValue<'_>)],
    depth: usize,
    out: &mut Vec<u8>,
) -> Result<(), InvalidDocument> {
    match field.rule {
        ProtoRule::Plain | ProtoRule::Optional | ProtoRule::Choice => {
            let Some(&(_, last)) = found.last() else { return Ok(()) };
            if found.len() > 1 && field.kind.is_message() {
                // Chunks of one message, concatenated, are that message.
                let pieces: Result<Vec<_>, _> = found.iter().map(|(_, piece)| piece.bytes()).collect();
                return value(&field.kind, FieldValue::Bytes(&pieces?.concat()), depth, out);
            }
            value(&field.kind, last, depth, out)
        }
        ProtoRule::Many => list(found.iter().map(|(_, item)| *item), out, |item, out| {
            value(&field.kind, item, depth + 1, out)
        }),
        ProtoRule::Map => {
            let entries: Result<Vec<_>, _> = found.iter().map(|(_, entry)| entry.bytes()).collect();
            map(&entries?, out, |inner, out| value(&field.kind, inner, depth + 1, out))
        }
    }
}

fn value(
    kind: &ProtoKind,
    found: FieldValue<'_>,
    depth: usize,
    out: &mut Vec<u8>,
) -> Result<(), InvalidDocument> {
    match kind {
        ProtoKind::Text => push_string(out, utf8(found.bytes()?)?),
        ProtoKind::Bytes => push_string(out, &STANDARD.encode(found.bytes()?)),
        ProtoKind::Flag => out.extend_from_slice(if found.number()? == 0 { b"false" } else { b"true" }),
        ProtoKind::Int => out.extend_from_slice((found.number()? as i32).to_string().as_bytes()),
        ProtoKind::Enum(names) => {
            let number = found.number()? as i32;
            let known = names.iter().find(|(_, known)| *known == number).or(names.first());
            push_string(out, known.map_or("", |(name, _)| name));
        }
        ProtoKind::Message(shape) => message(shape, found.bytes()?, depth, out)?,
        ProtoKind::Struct => structure(found.bytes()?, depth, out)?,
        ProtoKind::Value => any(found.bytes()?, depth, out)?,
        ProtoKind::Timestamp => push_string(out, &timestamp(found.bytes()?)?),
    }
    Ok(())
}

/// Decodes a `google.protobuf.Struct`.
fn structure(bytes: &[u8], depth: usize, out: &mut Vec<u8>) -> Result<(), InvalidDocument> {
    let depth = deeper(depth)?;
    let entries = pieces(bytes)?;
    map(&entries, out, |inner, out| any(inner.bytes()?, depth, out))
}

/// Decodes a `google.protobuf.Value`.
fn any(bytes: &[u8], depth: usize, out: &mut Vec<u8>) -> Result<(), InvalidDocument> {
    let (what, inner, number) = said(bytes)?.unwrap_or_default();
    match what {
        2 => push_number(f64::from_bits(number), out)?,
        3 => push_string(out, utf8(&inner)?),
        4 => out.extend_from_slice(if number == 0 { b"false" } else { b"true" }),
        5 => structure(&inner, depth, out)?,
        6 => {
            let depth = deeper(depth)?;
            let items = pieces(&inner)?;
            list(items.into_iter(), out, |item, out| any(item, depth, out))?;
        }
        _ => out.extend_from_slice(b"null"),
    }
    Ok(())
}

/// Last value of a `google.protobuf.Value`; chunks of the same field are concatenated.
fn said(bytes: &[u8]) -> Result<Any<'_>, InvalidDocument> {
    let mut said: Any<'_> = None;
    let mut rest = ProtoReader(bytes);
    while let Some((what, found)) = rest.next()? {
        said = match (what, found, said) {
            (5 | 6, FieldValue::Bytes(more), Some((before, inner, _))) if before == what => {
                Some((what, [inner.as_ref(), more].concat().into(), 0))
            }
            (3 | 5 | 6, FieldValue::Bytes(bytes), _) => Some((what, bytes.into(), 0)),
            (1 | 2 | 4, FieldValue::Number(number), _) => Some((what, Cow::Borrowed(&[]), number)),
            (1..=6, ..) => return Err(InvalidDocument::new("a JSON value", "bytes that are none")),
            (_, _, said) => said,
        };
    }
    Ok(said)
}

/// Messages in field 1, the only field of a struct and a list.
fn pieces(bytes: &[u8]) -> Result<Vec<&[u8]>, InvalidDocument> {
    let mut pieces = Vec::new();
    let mut rest = ProtoReader(bytes);
    while let Some((number, found)) = rest.next()? {
        if number == 1 {
            pieces.push(found.bytes()?);
        }
    }
    Ok(pieces)
}

fn timestamp(bytes: &[u8]) -> Result<String, InvalidDocument> {
    let (mut seconds, mut nanos) = (0, 0);
    let mut rest = ProtoReader(bytes);
    while let Some((number, found)) = rest.next()? {
        match number {
            1 => seconds = found.number()?.cast_signed(),
            2 => nanos = found.number()? as i32,
            _ => {}
        }
    }
    let time = Timestamp::new(seconds, nanos)
        .map_err(|_| InvalidDocument::new("a time", "one that is too far away"))?;
    Ok(time.to_string())
}

fn push_number(number: f64, out: &mut Vec<u8>) -> Result<(), InvalidDocument> {
    if !number.is_finite() {
        return Err(InvalidDocument::new("a JSON number", "one that JSON cannot say"));
    }
    let is_whole = number.fract() == 0.0 && number.abs() < MAX_EXACT_INTEGER;
    if is_whole && !(number == 0.0 && number.is_sign_negative()) {
        out.extend_from_slice((number as i64).to_string().as_bytes());
    } else {
        // Writing to memory does not fail.
        let _ = serde_json::to_writer(out, &number);
    }
    Ok(())
}

fn list<T>(
    items: impl Iterator<Item = T>,
    out: &mut Vec<u8>,
    mut write: impl FnMut(T, &mut Vec<u8>) -> Result<(), InvalidDocument>,
) -> Result<(), InvalidDocument> {
    out.push(b'[');
    for (at, item) in items.enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write(item, out).map_err(|garbled| garbled.at_index(at))?;
    }
    out.push(b']');
    Ok(())
}

/// Writes the entries of a map. Of equal keys the last wins.
fn map(
    entries: &[&[u8]],
    out: &mut Vec<u8>,
    mut write: impl FnMut(FieldValue<'_>, &mut Vec<u8>) -> Result<(), InvalidDocument>,
) -> Result<(), InvalidDocument> {
    let entries: Vec<_> = entries.iter().map(|entry| pair(entry)).collect::<Result<_, _>>()?;
    let last: HashMap<&str, usize> = entries.iter().zip(0..).map(|((key, _), at)| (*key, at)).collect();
    let mut is_first = true;
    out.push(b'{');
    for (at, (key, inner)) in entries.into_iter().enumerate() {
        if last.get(key) != Some(&at) {
            continue;
        }
        if !std::mem::take(&mut is_first) {
            out.push(b',');
        }
        push_string(out, key);
        out.push(b':');
        write(inner, out).map_err(|garbled| garbled.at(key))?;
    }
    out.push(b'}');
    Ok(())
}

/// Key and value of a map entry.
fn pair(entry: &[u8]) -> Result<(&str, FieldValue<'_>), InvalidDocument> {
    let (mut key, mut inner) = ("", FieldValue::Bytes(&[]));
    let mut rest = ProtoReader(entry);
    while let Some((number, found)) = rest.next()? {
        match number {
            1 => key = utf8(found.bytes()?)?,
            2 => inner = found,
            _ => {}
        }
    }
    Ok((key, inner))
}

/// Appends a JSON string.
fn push_string(out: &mut Vec<u8>, text: &str) {
    // Writing a string to memory cannot fail.
    let _ = serde_json::to_writer(out, text);
}

/// Next nesting depth, if JSON allows it.
fn deeper(depth: usize) -> Result<usize, InvalidDocument> {
    if depth >= MAX_DEPTH {
        return Err(InvalidDocument::new(
            format!("a message that is at most {MAX_DEPTH} levels deep"),
            "more",
        ));
    }
    Ok(depth + 1)
}

fn utf8(bytes: &[u8]) -> Result<&str, InvalidDocument> {
    std::str::from_utf8(bytes).map_err(|_| InvalidDocument::new("a string", "bytes that are not UTF-8"))
}

// === impl ProtoKind ===

impl ProtoKind {
    const fn is_message(&self) -> bool {
        matches!(self, Self::Message(_) | Self::Struct | Self::Value | Self::Timestamp)
    }
}

// === impl FieldValue ===

impl<'a> FieldValue<'a> {
    fn bytes(self) -> Result<&'a [u8], InvalidDocument> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            Self::Number(_) => Err(InvalidDocument::new("bytes", "a number")),
        }
    }

    fn number(self) -> Result<u64, InvalidDocument> {
        match self {
            Self::Number(number) => Ok(number),
            Self::Bytes(_) => Err(InvalidDocument::new("a number", "bytes")),
        }
    }
}

// === impl ProtoReader ===

impl<'a> ProtoReader<'a> {
    /// Next field: number and value.
    fn next(&mut self) -> Result<Option<(u32, FieldValue<'a>)>, InvalidDocument> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let tag = u32::try_from(self.varint()?).map_err(|_| broken())?;
        let found = match tag & 7 {
            0 => FieldValue::Number(self.varint()?),
            1 => FieldValue::Number(u64::from_le_bytes(self.array()?)),
            2 => {
                let length = usize::try_from(self.varint()?).map_err(|_| broken())?;
                FieldValue::Bytes(self.take(length)?)
            }
            5 => FieldValue::Number(u64::from(u32::from_le_bytes(self.array()?))),
            _ => return Err(broken()),
        };
        if tag >> 3 == 0 {
            return Err(broken());
        }
        Ok(Some((tag >> 3, found)))
    }

    fn varint(&mut self) -> Result<u64, InvalidDocument> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let [byte] = self.array()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(broken())
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], InvalidDocument> {
        self.take(N)?.try_into().map_err(|_| broken())
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], InvalidDocument> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or_else(broken)?;
        self.0 = rest;
        Ok(taken)
    }
}

fn broken() -> InvalidDocument {
    InvalidDocument::new("protobuf", "bytes that are none")
}
