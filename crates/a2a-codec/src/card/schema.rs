//! Members of a card that A2A 1.0 defines.
//!
//! A signature covers exactly these: an SDK decodes a card into its own types, which drop every other member, and signs or verifies the
//! rest. A card that also has 0.3's members (Python's SDK serves such cards) can only be verified after dropping them too. Empty
//! strings, lists and objects are dropped as well, as RFC 8785 text of a protobuf message has none.

use serde_json::{Map, Value};

/// Shape of a member.
#[derive(Clone, Copy)]
enum SignedShape {
    /// Any value, complete.
    Any,
    /// Object with these members.
    Object(&'static [(&'static str, SignedShape)]),
    /// List of this shape.
    List(&'static SignedShape),
    /// Object with any names, each of this shape.
    Map(&'static SignedShape),
}

const INTERFACE: SignedShape = SignedShape::Object(&[
    ("url", SignedShape::Any),
    ("protocolBinding", SignedShape::Any),
    ("tenant", SignedShape::Any),
    ("protocolVersion", SignedShape::Any),
]);

const PROVIDER: SignedShape =
    SignedShape::Object(&[("url", SignedShape::Any), ("organization", SignedShape::Any)]);

const EXTENSION: SignedShape = SignedShape::Object(&[
    ("uri", SignedShape::Any),
    ("description", SignedShape::Any),
    ("required", SignedShape::Any),
    ("params", SignedShape::Any),
]);

const CAPABILITIES: SignedShape = SignedShape::Object(&[
    ("streaming", SignedShape::Any),
    ("pushNotifications", SignedShape::Any),
    ("extensions", SignedShape::List(&EXTENSION)),
    ("extendedAgentCard", SignedShape::Any),
]);

const SCHEME: SignedShape = SignedShape::Object(&[
    ("apiKeySecurityScheme", SignedShape::Any),
    ("httpAuthSecurityScheme", SignedShape::Any),
    ("oauth2SecurityScheme", SignedShape::Any),
    ("openIdConnectSecurityScheme", SignedShape::Any),
    ("mtlsSecurityScheme", SignedShape::Any),
]);

const REQUIREMENT: SignedShape = SignedShape::Object(&[("schemes", SignedShape::Any)]);

const SKILL: SignedShape = SignedShape::Object(&[
    ("id", SignedShape::Any),
    ("name", SignedShape::Any),
    ("description", SignedShape::Any),
    ("tags", SignedShape::Any),
    ("examples", SignedShape::Any),
    ("inputModes", SignedShape::Any),
    ("outputModes", SignedShape::Any),
    ("securityRequirements", SignedShape::List(&REQUIREMENT)),
]);

const CARD: SignedShape = SignedShape::Object(&[
    ("name", SignedShape::Any),
    ("description", SignedShape::Any),
    ("supportedInterfaces", SignedShape::List(&INTERFACE)),
    ("provider", PROVIDER),
    ("version", SignedShape::Any),
    ("documentationUrl", SignedShape::Any),
    ("capabilities", CAPABILITIES),
    ("securitySchemes", SignedShape::Map(&SCHEME)),
    ("securityRequirements", SignedShape::List(&REQUIREMENT)),
    ("defaultInputModes", SignedShape::Any),
    ("defaultOutputModes", SignedShape::Any),
    ("skills", SignedShape::List(&SKILL)),
    ("iconUrl", SignedShape::Any),
]);

/// Card without members that 1.0 does not define.
pub(super) fn known(card: Value) -> Value {
    keep(card, CARD)
}

/// Value without empty strings, lists and objects; none when nothing is left.
pub(super) fn filled(value: Value) -> Option<Value> {
    match value {
        Value::String(text) if text.is_empty() => None,
        Value::Array(list) => {
            let list: Vec<Value> = list.into_iter().filter_map(filled).collect();
            (!list.is_empty()).then_some(Value::Array(list))
        }
        Value::Object(members) => {
            let members: Map<String, Value> =
                members.into_iter().filter_map(|(name, value)| Some((name, filled(value)?))).collect();
            (!members.is_empty()).then_some(Value::Object(members))
        }
        other => Some(other),
    }
}

fn keep(value: Value, shape: SignedShape) -> Value {
    match (value, shape) {
        (Value::Object(members), SignedShape::Object(known)) => {
            let one = |(name, value): (String, Value)| {
                let (_, shape) = known.iter().find(|(known, _)| *known == name)?;
                // A flag that protobuf cannot distinguish from an absent one.
                let is_default = name == "required" && value == Value::Bool(false);
                (!is_default).then(|| (name, keep(value, *shape)))
            };
            Value::Object(members.into_iter().filter_map(one).collect())
        }
        (Value::Object(members), SignedShape::Map(shape)) => {
            Value::Object(members.into_iter().map(|(name, value)| (name, keep(value, *shape))).collect())
        }
        (Value::Array(list), SignedShape::List(shape)) => {
            Value::Array(list.into_iter().map(|value| keep(value, *shape)).collect())
        }
        (value, _) => value,
    }
}
