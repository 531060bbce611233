//! JSON Schemas of requests and responses, as the OpenAPI document contains them.
//!
//! Responses and requests are described apart, because a member with a default is always in a response and need not be in a request. Objects
//! are closed: a member that no type declares is an error in a test, so that neither the types nor the responses change alone. Clients in turn
//! ignore members that they do not know, because a newer server may send more.

use schemars::{
    JsonSchema, Schema, SchemaGenerator,
    generate::{Contract, SchemaSettings},
    transform::{Transform, transform_subschemas},
};
use serde_json::{Value, json};

/// Path of component schemas in an OpenAPI document.
const COMPONENTS: &str = "/components/schemas";

/// Function that describes one type: its schema, or a reference to the component that holds it.
pub type SchemaFn = fn(&mut SchemaGenerator) -> Schema;

/// Closes objects, and removes what only describes Rust: defaults, and `null` for members that are left out in place of being `null`.
#[derive(Clone)]
struct WireForm {
    contract: Contract,
}

/// Schema of a type, or a reference to the component that holds it.
pub fn schema_of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// Generator for the schemas of response bodies.
pub fn response_generator() -> SchemaGenerator {
    generator(Contract::Serialize)
}

/// Generator for the schemas of request bodies.
pub fn request_generator() -> SchemaGenerator {
    generator(Contract::Deserialize)
}

fn generator(contract: Contract) -> SchemaGenerator {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        COMPONENTS.clone_into(settings.definitions_path.to_mut());
        settings.meta_schema = None;
        settings.contract = contract.clone();
    });
    settings.with_transform(WireForm { contract }).into_generator()
}

// === impl WireForm ===

impl Transform for WireForm {
    fn transform(&mut self, schema: &mut Schema) {
        transform_subschemas(self, schema);
        schema.remove("default");
        if schema.get("properties").is_none() {
            return;
        }
        if self.contract == Contract::Serialize {
            drop_null_of_optional(schema);
        }
        if schema.get("additionalProperties").is_none() {
            schema.insert("additionalProperties".to_owned(), json!(false));
        }
    }
}

/// Removes `null` from members that are not required: where a response has them, they have a value.
fn drop_null_of_optional(schema: &mut Schema) {
    let required = schema.get("required").cloned().unwrap_or_default();
    let is_required =
        |name: &str| required.as_array().is_some_and(|names| names.iter().any(|known| known == name));
    let Some(Value::Object(properties)) = schema.get_mut("properties") else { return };
    for (_, property) in properties.iter_mut().filter(|(name, _)| !is_required(name)) {
        drop_null(property);
    }
}

fn drop_null(schema: &mut Value) {
    let Value::Object(schema) = schema else { return };
    for (keyword, null) in
        [("type", json!("null")), ("enum", Value::Null), ("anyOf", json!({ "type": "null" }))]
    {
        let Some(Value::Array(choices)) = schema.get_mut(keyword) else { continue };
        choices.retain(|choice| *choice != null);
        if let ("type" | "anyOf", [only]) = (keyword, choices.as_slice()) {
            let only = only.clone();
            schema.remove(keyword);
            match only {
                Value::Object(members) => members.into_iter().for_each(|(name, value)| {
                    schema.entry(name).or_insert(value);
                }),
                only => drop(schema.insert(keyword.to_owned(), only)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};

    use super::*;

    /// Row of a test.
    #[derive(Serialize, Deserialize, JsonSchema)]
    struct SampleRow {
        /// Its name.
        name: Option<String>,
        /// Its note.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
        /// The row above it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent: Option<Box<SampleRow>>,
    }

    fn component(mut generator: SchemaGenerator) -> Value {
        let reference = schema_of::<SampleRow>(&mut generator);
        assert_eq!(reference.to_value(), json!({ "$ref": "#/components/schemas/SampleRow" }));
        generator.take_definitions(true).remove("SampleRow").unwrap()
    }

    #[test]
    fn an_optional_member_of_a_response_has_a_value_and_no_other_member_is_there() {
        let schema = json!({
            "type": "object",
            "description": "Row of a test.",
            "required": ["name"],
            "properties": {
                "name": { "type": ["string", "null"], "description": "Its name." },
                "note": { "type": "string", "description": "Its note." },
                "parent": { "description": "The row above it.", "$ref": "#/components/schemas/SampleRow" },
            },
            "additionalProperties": false,
        });
        assert_eq!(component(response_generator()), schema);
    }

    #[test]
    fn an_optional_member_of_a_request_may_be_null() {
        let schema = component(request_generator());
        assert_eq!(schema["required"], Value::Null);
        assert_eq!(schema["properties"]["note"]["type"], json!(["string", "null"]));
    }
}
