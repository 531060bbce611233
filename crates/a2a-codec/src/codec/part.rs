//! Parts.
//!
//! Lossy: 0.x data must be an object, so any other value is sent as `{"value": x}` with `data_part_compat` in the part's metadata, as
//! both SDKs do; a media type or file name beside text or data exists only in 1.0 and is dropped. A part of an unknown kind is passed on
//! unchanged.
//!
//! File bytes in 0.3's REST: the schema requires base64 once, Python's SDKs encode twice and crash on once, JavaScript's encodes once.
//! Most such agents are Python, so it is encoded twice here; both are decoded (see [`once`]).

use base64::{Engine, engine::general_purpose::STANDARD};
use rialto_model::{
    json::{Json, RawJson},
    message::{Content, MAX_PARTS, Part},
};
use serde::{Serialize, Serializer};

use crate::{
    invalid::InvalidDocument,
    members::{ObjectMembers, text},
    object::{MemberValue, Merged, ObjectWriter, OnWire},
    wire::Wire,
};

const COMPAT: &str = "data_part_compat";

/// Unknown members with these names would give the part a second content.
const RESERVED: &[&str] = &["text", "data", "raw", "url", "file", "kind", "type"];
const RESERVED_V10: &[&str] =
    &["text", "data", "raw", "url", "file", "kind", "type", "filename", "mediaType"];

/// Kinds of parts, as raw JSON.
const KINDS: [&str; 3] = [TEXT, DATA, r#""file""#];
const TEXT: &str = r#""text""#;
const DATA: &str = r#""data""#;

enum PartShape {
    Text,
    Data,
    Raw,
    Url,
    File,
}

/// `file` member of 0.x.
struct File<'a>(Wire, &'a Part);

/// Object with one member.
struct Single<'a>(&'static str, &'a Json);

/// Decodes all parts under `name`.
pub(crate) fn all(
    wire: Wire,
    members: &mut ObjectMembers<'_>,
    name: &str,
) -> Result<Vec<Part>, InvalidDocument> {
    let parts = members.list(name, |raw| decode(wire, raw))?;
    if parts.len() > MAX_PARTS {
        return Err(
            InvalidDocument::new(format!("at most {MAX_PARTS} parts"), parts.len().to_string()).at(name)
        );
    }
    Ok(parts)
}

pub(crate) fn decode(wire: Wire, raw: RawJson<'_>) -> Result<Part, InvalidDocument> {
    let members = ObjectMembers::read(raw)?;
    let is_strange = said_kind(&members).is_some_and(|kind| !KINDS.contains(&kind));
    match read(wire, raw, members) {
        // Unknown kinds are not rejected.
        Err(_) if is_strange => Ok(Part::new(Content::Unknown(raw.into()))),
        part => part,
    }
}

fn read(wire: Wire, raw: RawJson<'_>, mut members: ObjectMembers<'_>) -> Result<Part, InvalidDocument> {
    let Some(shape) = shape(wire, &mut members) else { return Ok(Part::new(Content::Unknown(raw.into()))) };
    let mut part = Part::new(Content::Text(String::new()));
    part.content = match shape {
        PartShape::Text => Content::Text(members.need("text", "a string", text)?),
        PartShape::Raw => Content::Raw(members.need("raw", "base64 text", text)?),
        PartShape::Url => Content::Url(members.need("url", "a string", text)?),
        PartShape::Data => Content::Data(data(wire, &mut members)?),
        PartShape::File => match file(wire, &mut members, &mut part)? {
            Some(content) => content,
            None => return Ok(Part::new(Content::Unknown(raw.into()))),
        },
    };
    if wire == Wire::V10 {
        part.filename = members.id("filename")?.or(part.filename);
        part.media_type = members.id("mediaType")?.or(part.media_type);
    }
    part.metadata = members.object("metadata");
    if wire != Wire::V10 {
        undo_compat(&mut part);
    }
    part.extra = members.rest();
    Ok(part)
}

/// Kind of a part, by its `kind` or else by its members.
fn shape(wire: Wire, members: &mut ObjectMembers<'_>) -> Option<PartShape> {
    match said_kind(members) {
        Some(kind) if KINDS.contains(&kind) => {
            members.take("kind");
            members.take("type");
            Some(match kind {
                TEXT => PartShape::Text,
                DATA => PartShape::Data,
                _ => PartShape::File,
            })
        }
        Some(_) if !wire.is_proto() => None,
        _ if members.has("text") => Some(PartShape::Text),
        _ if members.has("file") => Some(PartShape::File),
        _ if members.has("raw") => Some(PartShape::Raw),
        _ if members.has("url") => Some(PartShape::Url),
        _ => members.peek("data").map(|_| PartShape::Data),
    }
}

/// Declared kind of a part, as raw JSON.
fn said_kind<'a>(members: &ObjectMembers<'a>) -> Option<&'a str> {
    ["kind", "type"].into_iter().find_map(|name| members.peek(name)).map(RawJson::get)
}

fn data(wire: Wire, members: &mut ObjectMembers<'_>) -> Result<Json, InvalidDocument> {
    let raw = members.take_any("data").ok_or_else(|| InvalidDocument::missing("a value").at("data"))?;
    if wire == Wire::V03Proto
        && let Ok(mut wrapper) = ObjectMembers::read(raw)
        && let Some(inner) = wrapper.take_any("data")
    {
        members.absorb(wrapper);
        return Ok(inner.into());
    }
    Ok(raw.into())
}

fn file(
    wire: Wire,
    members: &mut ObjectMembers<'_>,
    part: &mut Part,
) -> Result<Option<Content>, InvalidDocument> {
    let Some(mut file) = members.take_as("file", ObjectMembers::read)? else { return Ok(None) };
    let found = (|| {
        part.filename = file.id("name")?;
        part.media_type = file.id("mimeType")?;
        let mut first = |names: [&str; 2]| match file.text(names[0])? {
            Some(found) => Ok(Some(found)),
            None => file.text(names[1]),
        };
        if let Some(bytes) = first(["bytes", "fileWithBytes"])? {
            return Ok(Some(Content::Raw(match wire {
                Wire::V03Proto => once(bytes, part.media_type.as_deref()),
                Wire::V10 | Wire::V03 | Wire::V01 => bytes,
            })));
        }
        Ok(first(["uri", "fileWithUri"])?.map(Content::Url))
    })()
    .map_err(|garbled: InvalidDocument| garbled.at("file"))?;
    members.absorb(file);
    Ok(found)
}

/// Decodes base64 that may have been encoded twice.
///
/// It was when the bytes are themselves base64 text. A file that is base64 text by nature and was encoded once is misread, unless its
/// media type is text and the decoded bytes are not.
fn once(bytes: String, media_type: Option<&str>) -> String {
    let Some(inner) = STANDARD.decode(&bytes).ok().and_then(|inner| String::from_utf8(inner).ok()) else {
        return bytes;
    };
    let Ok(innermost) = STANDARD.decode(&inner) else { return bytes };
    let text = media_type.is_some_and(|media_type| media_type.starts_with("text/"));
    if inner.is_empty() || (text && std::str::from_utf8(&innermost).is_err()) { bytes } else { inner }
}

/// Unwraps a value that had to be sent in an object.
fn undo_compat(part: &mut Part) {
    let (Content::Data(data), Some(metadata)) = (&part.content, &part.metadata) else { return };
    if !metadata.get().contains(COMPAT) {
        return;
    }
    let (Ok(mut data), Ok(mut facts)) =
        (ObjectMembers::read(data.raw()), ObjectMembers::read(metadata.raw()))
    else {
        return;
    };
    let marked = facts.take(COMPAT).is_some_and(|mark| mark.get() == "true");
    if !marked || data.len() != 1 {
        return;
    }
    let Some(value) = data.take_any("value").map(Json::from) else { return };
    let left = (facts.len() > 0).then(|| Json::encode(&facts.rest()));
    part.content = Content::Data(value);
    part.metadata = left;
}

impl Serialize for OnWire<'_, Part> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(wire, part) = *self;
        if let Content::Unknown(raw) = &part.content {
            return raw.serialize(serializer);
        }
        let mut object = ObjectWriter::open(serializer)?;
        if let Some(tag) = tag(wire) {
            object.put(tag, kind(&part.content))?;
        }
        let mut metadata = Merged::new(part.metadata.as_ref());
        match &part.content {
            Content::Text(text) => object.put("text", text)?,
            Content::Data(data) if wire == Wire::V10 => object.put("data", data)?,
            Content::Data(data) => {
                let wrapped = (!data.is_object()).then(|| Json::encode(&Single("value", data)));
                metadata = metadata.with(COMPAT, wrapped.is_some().then_some(MemberValue::Flag(true)));
                let data = wrapped.as_ref().unwrap_or(data);
                if wire == Wire::V03Proto {
                    object.put("data", &Single("data", data))?;
                } else {
                    object.put("data", data)?;
                }
            }
            Content::Raw(bytes) if wire == Wire::V10 => object.put("raw", bytes)?,
            Content::Url(url) if wire == Wire::V10 => object.put("url", url)?,
            Content::Raw(_) | Content::Url(_) => object.put("file", &File(wire, part))?,
            Content::Unknown(_) => {}
        }
        if wire == Wire::V10 {
            object.put_some("filename", part.filename.as_ref())?;
            object.put_some("mediaType", part.media_type.as_ref())?;
        }
        object.put_merged("metadata", &metadata)?;
        object.close(&part.extra, if wire == Wire::V10 { RESERVED_V10 } else { RESERVED })
    }
}

impl Serialize for File<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(wire, part) = *self;
        let mut object = ObjectWriter::open(serializer)?;
        match (&part.content, wire) {
            (Content::Raw(bytes), Wire::V03Proto) => object.put("fileWithBytes", &STANDARD.encode(bytes))?,
            (Content::Raw(bytes), _) => object.put("bytes", bytes)?,
            (Content::Url(url), Wire::V03Proto) => object.put("fileWithUri", url)?,
            (Content::Url(url), _) => object.put("uri", url)?,
            _ => {}
        }
        object.put_some("mimeType", part.media_type.as_ref())?;
        object.put_some("name", part.filename.as_ref())?;
        object.end()
    }
}

impl Serialize for Single<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map([(self.0, self.1)])
    }
}

const fn tag(wire: Wire) -> Option<&'static str> {
    match wire {
        Wire::V10 | Wire::V03Proto => None,
        Wire::V03 => Some("kind"),
        Wire::V01 => Some("type"),
    }
}

const fn kind(content: &Content) -> &'static str {
    match content {
        Content::Text(_) => "text",
        Content::Data(_) | Content::Unknown(_) => "data",
        Content::Raw(_) | Content::Url(_) => "file",
    }
}
