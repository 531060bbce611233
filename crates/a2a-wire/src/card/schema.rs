//! The part of a card that A2A 1.0 names.
//!
//! A signature covers exactly this: an SDK reads a card into its own types, which forget every other member, and signs or
//! checks what is left. A card that also carries 0.3's members (Python's SDK serves such cards) can only be checked after
//! the same forgetting. Empty strings, lists and objects are forgotten too, as RFC 8785 text of a protobuf message has
//! none.

use serde_json::{Map, Value};

/// What may stand under a name.
#[derive(Clone, Copy)]
enum Shape {
    /// Anything, whole.
    Any,
    /// An object with these members.
    Object(&'static [(&'static str, Shape)]),
    /// A list, each of this shape.
    List(&'static Shape),
    /// An object with any names, each of this shape.
    Map(&'static Shape),
}

const INTERFACE: Shape = Shape::Object(&[
    ("url", Shape::Any),
    ("protocolBinding", Shape::Any),
    ("tenant", Shape::Any),
    ("protocolVersion", Shape::Any),
]);

const PROVIDER: Shape = Shape::Object(&[("url", Shape::Any), ("organization", Shape::Any)]);

const EXTENSION: Shape = Shape::Object(&[
    ("uri", Shape::Any),
    ("description", Shape::Any),
    ("required", Shape::Any),
    ("params", Shape::Any),
]);

const CAPABILITIES: Shape = Shape::Object(&[
    ("streaming", Shape::Any),
    ("pushNotifications", Shape::Any),
    ("extensions", Shape::List(&EXTENSION)),
    ("extendedAgentCard", Shape::Any),
]);

const SCHEME: Shape = Shape::Object(&[
    ("apiKeySecurityScheme", Shape::Any),
    ("httpAuthSecurityScheme", Shape::Any),
    ("oauth2SecurityScheme", Shape::Any),
    ("openIdConnectSecurityScheme", Shape::Any),
    ("mtlsSecurityScheme", Shape::Any),
]);

const REQUIREMENT: Shape = Shape::Object(&[("schemes", Shape::Any)]);

const SKILL: Shape = Shape::Object(&[
    ("id", Shape::Any),
    ("name", Shape::Any),
    ("description", Shape::Any),
    ("tags", Shape::Any),
    ("examples", Shape::Any),
    ("inputModes", Shape::Any),
    ("outputModes", Shape::Any),
    ("securityRequirements", Shape::List(&REQUIREMENT)),
]);

const CARD: Shape = Shape::Object(&[
    ("name", Shape::Any),
    ("description", Shape::Any),
    ("supportedInterfaces", Shape::List(&INTERFACE)),
    ("provider", PROVIDER),
    ("version", Shape::Any),
    ("documentationUrl", Shape::Any),
    ("capabilities", CAPABILITIES),
    ("securitySchemes", Shape::Map(&SCHEME)),
    ("securityRequirements", Shape::List(&REQUIREMENT)),
    ("defaultInputModes", Shape::Any),
    ("defaultOutputModes", Shape::Any),
    ("skills", Shape::List(&SKILL)),
    ("iconUrl", Shape::Any),
]);

/// The card without what 1.0 does not name.
pub(super) fn known(card: Value) -> Value {
    keep(card, CARD)
}

/// The value without empty strings, lists and objects; none when nothing is left.
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

fn keep(value: Value, shape: Shape) -> Value {
    match (value, shape) {
        (Value::Object(members), Shape::Object(known)) => {
            let one = |(name, value): (String, Value)| {
                let (_, shape) = known.iter().find(|(known, _)| *known == name)?;
                // A flag that protobuf cannot tell from an absent one.
                let is_default = name == "required" && value == Value::Bool(false);
                (!is_default).then(|| (name, keep(value, *shape)))
            };
            Value::Object(members.into_iter().filter_map(one).collect())
        }
        (Value::Object(members), Shape::Map(shape)) => {
            Value::Object(members.into_iter().map(|(name, value)| (name, keep(value, *shape))).collect())
        }
        (Value::Array(list), Shape::List(shape)) => {
            Value::Array(list.into_iter().map(|value| keep(value, *shape)).collect())
        }
        (value, _) => value,
    }
}
