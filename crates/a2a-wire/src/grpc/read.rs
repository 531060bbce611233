//! From protobuf to JSON.
//!
//! Everything that protobuf allows is read: fields in any order and in several pieces, fields nobody knows, choices that
//! are made twice. Numbers that are whole are written as such. An enum's number that nobody knows is written as the name
//! for "nothing was said".

use std::{borrow::Cow, collections::HashMap};

use base64::{Engine, engine::general_purpose::STANDARD};
use jiff::Timestamp;
use rialto_model::json::MAX_DEPTH;

use super::schema::{Field, Kind, Rule, Shape};
use crate::garbled::Garbled;

/// Beyond this not every whole number is a double.
const LARGEST_WHOLE: f64 = 9_007_199_254_740_992.0;

/// What stands in a message behind a number.
#[derive(Clone, Copy)]
enum Found<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// The rest of a message.
struct Rest<'a>(&'a [u8]);

/// A `google.protobuf.Value`, with what it is and that.
type Any<'a> = Option<(u32, Cow<'a, [u8]>, u64)>;

/// Appends the JSON of the message that `bytes` are. `depth` levels of JSON lie around it.
pub(crate) fn message(shape: &Shape, bytes: &[u8], depth: usize, out: &mut Vec<u8>) -> Result<(), Garbled> {
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

/// What was found of each field that is known, sorted by their places in the table; of a choice only what counts.
fn fields<'a>(shape: &Shape, bytes: &'a [u8]) -> Result<Vec<(usize, Found<'a>)>, Garbled> {
    let mut found = Vec::new();
    let mut chosen = None;
    let mut rest = Rest(bytes);
    while let Some((number, value)) = rest.next()? {
        let Some(at) = shape.fields.iter().position(|field| field.number == number) else { continue };
        if shape.fields[at].rule == Rule::Choice {
            chosen = Some(at);
        }
        found.push((at, value));
    }
    found.retain(|(at, _)| shape.fields[*at].rule != Rule::Choice || chosen == Some(*at));
    found.sort_by_key(|(at, _)| *at);
    Ok(found)
}

fn member(
    field: &Field,
    found: &[(usize, Found<'_>)],
    depth: usize,
    out: &mut Vec<u8>,
) -> Result<(), Garbled> {
    match field.rule {
        Rule::Plain | Rule::Optional | Rule::Choice => {
            let Some(&(_, last)) = found.last() else { return Ok(()) };
            if found.len() > 1 && field.kind.is_message() {
                // Pieces of one message, put together, are that message.
                let pieces: Result<Vec<_>, _> = found.iter().map(|(_, piece)| piece.bytes()).collect();
                return value(&field.kind, Found::Bytes(&pieces?.concat()), depth, out);
            }
            value(&field.kind, last, depth, out)
        }
        Rule::Many => list(found.iter().map(|(_, item)| *item), out, |item, out| {
            value(&field.kind, item, depth + 1, out)
        }),
        Rule::Map => {
            let entries: Result<Vec<_>, _> = found.iter().map(|(_, entry)| entry.bytes()).collect();
            map(&entries?, out, |inner, out| value(&field.kind, inner, depth + 1, out))
        }
    }
}

fn value(kind: &Kind, found: Found<'_>, depth: usize, out: &mut Vec<u8>) -> Result<(), Garbled> {
    match kind {
        Kind::Text => push_string(out, utf8(found.bytes()?)?),
        Kind::Bytes => push_string(out, &STANDARD.encode(found.bytes()?)),
        Kind::Flag => out.extend_from_slice(if found.number()? == 0 { b"false" } else { b"true" }),
        Kind::Int => out.extend_from_slice((found.number()? as i32).to_string().as_bytes()),
        Kind::Enum(names) => {
            let number = found.number()? as i32;
            let known = names.iter().find(|(_, known)| *known == number).or(names.first());
            push_string(out, known.map_or("", |(name, _)| name));
        }
        Kind::Message(shape) => message(shape, found.bytes()?, depth, out)?,
        Kind::Struct => structure(found.bytes()?, depth, out)?,
        Kind::Value => any(found.bytes()?, depth, out)?,
        Kind::Timestamp => push_string(out, &timestamp(found.bytes()?)?),
    }
    Ok(())
}

/// A `google.protobuf.Struct`.
fn structure(bytes: &[u8], depth: usize, out: &mut Vec<u8>) -> Result<(), Garbled> {
    let depth = deeper(depth)?;
    let entries = pieces(bytes)?;
    map(&entries, out, |inner, out| any(inner.bytes()?, depth, out))
}

/// A `google.protobuf.Value`.
fn any(bytes: &[u8], depth: usize, out: &mut Vec<u8>) -> Result<(), Garbled> {
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

/// What a `google.protobuf.Value` says last; pieces of the same are put together.
fn said(bytes: &[u8]) -> Result<Any<'_>, Garbled> {
    let mut said: Any<'_> = None;
    let mut rest = Rest(bytes);
    while let Some((what, found)) = rest.next()? {
        said = match (what, found, said) {
            (5 | 6, Found::Bytes(more), Some((before, inner, _))) if before == what => {
                Some((what, [inner.as_ref(), more].concat().into(), 0))
            }
            (3 | 5 | 6, Found::Bytes(bytes), _) => Some((what, bytes.into(), 0)),
            (1 | 2 | 4, Found::Number(number), _) => Some((what, Cow::Borrowed(&[]), number)),
            (1..=6, ..) => return Err(Garbled::new("a JSON value", "bytes that are none")),
            (_, _, said) => said,
        };
    }
    Ok(said)
}

/// The messages under number 1, which is all there is in a struct and a list.
fn pieces(bytes: &[u8]) -> Result<Vec<&[u8]>, Garbled> {
    let mut pieces = Vec::new();
    let mut rest = Rest(bytes);
    while let Some((number, found)) = rest.next()? {
        if number == 1 {
            pieces.push(found.bytes()?);
        }
    }
    Ok(pieces)
}

fn timestamp(bytes: &[u8]) -> Result<String, Garbled> {
    let (mut seconds, mut nanos) = (0, 0);
    let mut rest = Rest(bytes);
    while let Some((number, found)) = rest.next()? {
        match number {
            1 => seconds = found.number()?.cast_signed(),
            2 => nanos = found.number()? as i32,
            _ => {}
        }
    }
    let time =
        Timestamp::new(seconds, nanos).map_err(|_| Garbled::new("a time", "one that is too far away"))?;
    Ok(time.to_string())
}

fn push_number(number: f64, out: &mut Vec<u8>) -> Result<(), Garbled> {
    if !number.is_finite() {
        return Err(Garbled::new("a JSON number", "one that JSON cannot say"));
    }
    let is_whole = number.fract() == 0.0 && number.abs() < LARGEST_WHOLE;
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
    mut write: impl FnMut(T, &mut Vec<u8>) -> Result<(), Garbled>,
) -> Result<(), Garbled> {
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

/// Writes the entries of a map. Of those with the same key the last counts.
fn map(
    entries: &[&[u8]],
    out: &mut Vec<u8>,
    mut write: impl FnMut(Found<'_>, &mut Vec<u8>) -> Result<(), Garbled>,
) -> Result<(), Garbled> {
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

/// The key of a map's entry and what stands behind it.
fn pair(entry: &[u8]) -> Result<(&str, Found<'_>), Garbled> {
    let (mut key, mut inner) = ("", Found::Bytes(&[]));
    let mut rest = Rest(entry);
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

/// One level deeper, if JSON may go there.
fn deeper(depth: usize) -> Result<usize, Garbled> {
    if depth >= MAX_DEPTH {
        return Err(Garbled::new(format!("a message that is at most {MAX_DEPTH} levels deep"), "more"));
    }
    Ok(depth + 1)
}

fn utf8(bytes: &[u8]) -> Result<&str, Garbled> {
    std::str::from_utf8(bytes).map_err(|_| Garbled::new("a string", "bytes that are not UTF-8"))
}

// === impl Kind ===

impl Kind {
    const fn is_message(&self) -> bool {
        matches!(self, Self::Message(_) | Self::Struct | Self::Value | Self::Timestamp)
    }
}

// === impl Found ===

impl<'a> Found<'a> {
    fn bytes(self) -> Result<&'a [u8], Garbled> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            Self::Number(_) => Err(Garbled::new("bytes", "a number")),
        }
    }

    fn number(self) -> Result<u64, Garbled> {
        match self {
            Self::Number(number) => Ok(number),
            Self::Bytes(_) => Err(Garbled::new("a number", "bytes")),
        }
    }
}

// === impl Rest ===

impl<'a> Rest<'a> {
    /// The next field: its number and what stands there.
    fn next(&mut self) -> Result<Option<(u32, Found<'a>)>, Garbled> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let tag = u32::try_from(self.varint()?).map_err(|_| broken())?;
        let found = match tag & 7 {
            0 => Found::Number(self.varint()?),
            1 => Found::Number(u64::from_le_bytes(self.array()?)),
            2 => {
                let length = usize::try_from(self.varint()?).map_err(|_| broken())?;
                Found::Bytes(self.take(length)?)
            }
            5 => Found::Number(u64::from(u32::from_le_bytes(self.array()?))),
            _ => return Err(broken()),
        };
        if tag >> 3 == 0 {
            return Err(broken());
        }
        Ok(Some((tag >> 3, found)))
    }

    fn varint(&mut self) -> Result<u64, Garbled> {
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

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Garbled> {
        self.take(N)?.try_into().map_err(|_| broken())
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], Garbled> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or_else(broken)?;
        self.0 = rest;
        Ok(taken)
    }
}

fn broken() -> Garbled {
    Garbled::new("protobuf", "bytes that are none")
}
