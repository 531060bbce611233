//! What the tables say of messages.

/// A message.
pub(crate) struct Shape {
    pub(crate) fields: &'static [Field],
}

/// A field of a message.
pub(crate) struct Field {
    pub(crate) number: u32,
    /// Its name in JSON.
    pub(crate) name: &'static str,
    /// What it holds; for a map, what stands behind each key.
    pub(crate) kind: Kind,
    pub(crate) rule: Rule,
}

/// What a field holds.
pub(crate) enum Kind {
    Text,
    /// Base64 in JSON.
    Bytes,
    Flag,
    /// 32 bits.
    Int,
    /// A number with a name in JSON. The first is what is meant when nothing is said.
    Enum(&'static [(&'static str, i32)]),
    Message(&'static Shape),
    /// Any JSON object.
    Struct,
    /// Any JSON value.
    Value,
    /// RFC 3339 in JSON.
    Timestamp,
}

/// How often a field is there, and what its absence means.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rule {
    /// Once; what is absent is empty, zero or false, and the other way round.
    Plain,
    /// Once or not at all.
    Optional,
    /// Once or not at all, and in place of the message's other choices.
    Choice,
    Many,
    /// Many, each with a key.
    Map,
}

/// A method of the service.
pub(crate) struct Method {
    pub(crate) name: &'static str,
    pub(crate) input: &'static Shape,
    pub(crate) output: &'static Shape,
}

// === impl Shape ===

impl Shape {
    pub(crate) const EMPTY: Self = Self { fields: &[] };
}
