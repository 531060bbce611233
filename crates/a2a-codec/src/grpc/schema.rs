//! Schema of the protobuf messages, for the generated tables.

/// Message.
pub(crate) struct ProtoMessage {
    pub(crate) fields: &'static [ProtoField],
}

/// Field of a message.
pub(crate) struct ProtoField {
    pub(crate) number: u32,
    /// Its name in JSON.
    pub(crate) name: &'static str,
    /// Type; for a map, the type of its values.
    pub(crate) kind: ProtoKind,
    pub(crate) rule: ProtoRule,
}

/// Type of a field.
pub(crate) enum ProtoKind {
    Text,
    /// Base64 in JSON.
    Bytes,
    Flag,
    /// 32 bits.
    Int,
    /// Number with a name in JSON. The first is the default.
    Enum(&'static [(&'static str, i32)]),
    Message(&'static ProtoMessage),
    /// Any JSON object.
    Struct,
    /// Any JSON value.
    Value,
    /// RFC 3339 in JSON.
    Timestamp,
}

/// Cardinality of a field, and its default.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProtoRule {
    /// Once; absent means empty, zero or false, and the other way round.
    Plain,
    /// Optional.
    Optional,
    /// Member of the message's `oneof`.
    Choice,
    Many,
    /// Map.
    Map,
}

/// Method of the service.
pub(crate) struct ProtoMethod {
    pub(crate) name: &'static str,
    pub(crate) input: &'static ProtoMessage,
    pub(crate) output: &'static ProtoMessage,
}

// === impl ProtoMessage ===

impl ProtoMessage {
    pub(crate) const EMPTY: Self = Self { fields: &[] };
}
