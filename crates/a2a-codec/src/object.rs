//! Encoder of JSON objects: known members first, unknown members last.
//!
//! An unknown member is not written under a name that was written or that the wire defines: an unknown member of one dialect may be
//! defined in another, and would be understood there.

use rialto_model::json::{Extra, Json};
use serde::{Serialize, Serializer, ser::SerializeMap};

use crate::{members::ObjectMembers, wire::Wire};

/// Value with the wire on which it is encoded.
#[derive(Clone, Copy, Debug)]
pub struct OnWire<'a, T: ?Sized>(pub Wire, pub &'a T);

/// List with the wire on which its items are encoded.
pub(crate) struct Each<'a, T>(pub(crate) Wire, pub(crate) &'a [T]);

/// Initial capacity for a value, in bytes. A longer one grows.
const INITIAL_CAPACITY: usize = 512;

/// Maximum number of known members of one object.
const MAX_KNOWN_MEMBERS: usize = 16;

/// Object that is being written.
pub(crate) struct ObjectWriter<M> {
    map: M,
    names: [&'static str; MAX_KNOWN_MEMBERS],
    count: usize,
}

/// Raw object with at most two members replaced.
pub(crate) struct Merged<'a> {
    base: Option<&'a Json>,
    set: [Option<(&'static str, MemberValue<'a>)>; 2],
}

/// New value of a member.
#[derive(Clone, Copy, Serialize)]
#[serde(untagged)]
pub(crate) enum MemberValue<'a> {
    Text(&'a str),
    Flag(bool),
}

/// JSON text of a value. Values of this crate can always be encoded; `null` replaces those that JSON cannot express.
pub(crate) fn text_of<T: Serialize + ?Sized>(value: &T) -> String {
    text_within(INITIAL_CAPACITY, value)
}

/// JSON text, with an initial capacity.
pub(crate) fn text_within<T: Serialize + ?Sized>(room: usize, value: &T) -> String {
    as_text(bytes_within(room, value))
}

/// JSON bytes, with an initial capacity.
pub(crate) fn bytes_within<T: Serialize + ?Sized>(room: usize, value: &T) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(room);
    if serde_json::to_writer(&mut bytes, value).is_err() {
        bytes = b"null".to_vec();
    }
    bytes
}

/// JSON bytes as text, which is always valid UTF-8.
pub(crate) fn as_text(json: Vec<u8>) -> String {
    String::from_utf8(json).unwrap_or_else(|_| "null".to_owned())
}

// === impl OnWire ===

impl<T: ?Sized> OnWire<'_, T>
where
    Self: Serialize,
{
    /// JSON text.
    pub fn text(&self) -> String {
        text_of(self)
    }
}

// === impl Each ===

impl<T> Serialize for Each<'_, T>
where
    for<'b> OnWire<'b, T>: Serialize,
{
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.1.iter().map(|item| OnWire(self.0, item)))
    }
}

// === impl ObjectWriter ===

impl<M: SerializeMap> ObjectWriter<M> {
    pub(crate) fn open<S: Serializer<SerializeMap = M, Error = M::Error>>(
        serializer: S,
    ) -> Result<Self, M::Error> {
        Ok(Self { map: serializer.serialize_map(None)?, names: [""; MAX_KNOWN_MEMBERS], count: 0 })
    }

    pub(crate) fn put<T: Serialize + ?Sized>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<(), M::Error> {
        if let Some(slot) = self.names.get_mut(self.count) {
            *slot = name;
            self.count += 1;
        }
        self.map.serialize_entry(name, value)
    }

    pub(crate) fn put_some<T: Serialize>(
        &mut self,
        name: &'static str,
        value: Option<&T>,
    ) -> Result<(), M::Error> {
        value.map_or(Ok(()), |value| self.put(name, value))
    }

    /// Writes a list unless it is empty.
    pub(crate) fn put_list<T>(&mut self, name: &'static str, wire: Wire, list: &[T]) -> Result<(), M::Error>
    where
        for<'b> OnWire<'b, T>: Serialize,
    {
        if list.is_empty() { Ok(()) } else { self.put(name, &Each(wire, list)) }
    }

    /// Writes a list of strings unless it is empty.
    pub(crate) fn put_texts(&mut self, name: &'static str, list: &[String]) -> Result<(), M::Error> {
        if list.is_empty() { Ok(()) } else { self.put(name, list) }
    }

    /// Writes a flag if it is set.
    pub(crate) fn put_flag(&mut self, name: &'static str, flag: bool) -> Result<(), M::Error> {
        if flag { self.put(name, &true) } else { Ok(()) }
    }

    pub(crate) fn put_merged(&mut self, name: &'static str, merged: &Merged<'_>) -> Result<(), M::Error> {
        if merged.is_empty() { Ok(()) } else { self.put(name, merged) }
    }

    /// Writes the unknown members, except under names that are written or `reserved`, and closes the object.
    pub(crate) fn close(mut self, extra: &Extra, reserved: &[&str]) -> Result<M::Ok, M::Error> {
        for (name, value) in extra.iter() {
            let taken = self.names.iter().take(self.count).any(|known| *known == name);
            if !taken && !reserved.contains(&name) {
                self.map.serialize_entry(name, value)?;
            }
        }
        self.map.end()
    }

    /// Closes an object that has no unknown members.
    pub(crate) fn end(self) -> Result<M::Ok, M::Error> {
        self.map.end()
    }
}

// === impl Merged ===

impl<'a> Merged<'a> {
    pub(crate) const fn new(base: Option<&'a Json>) -> Self {
        Self { base, set: [None; 2] }
    }

    pub(crate) fn with(mut self, name: &'static str, value: Option<MemberValue<'a>>) -> Self {
        if let Some(value) = value
            && let Some(free) = self.set.iter_mut().find(|set| set.is_none())
        {
            *free = Some((name, value));
        }
        self
    }

    fn set(&self) -> impl Iterator<Item = &(&'static str, MemberValue<'a>)> {
        self.set.iter().flatten()
    }

    fn is_empty(&self) -> bool {
        self.base.is_none() && self.set().next().is_none()
    }
}

impl Serialize for Merged<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let members = match self.base {
            Some(base) if self.set().next().is_none() => return base.serialize(serializer),
            Some(base) => ObjectMembers::read(base.raw()).unwrap_or_default(),
            None => ObjectMembers::default(),
        };
        let mut map = serializer.serialize_map(None)?;
        for (name, raw) in members.iter().filter(|(name, _)| self.set().all(|(set, _)| set != name)) {
            map.serialize_entry(name, &raw)?;
        }
        for (name, value) in self.set() {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}
