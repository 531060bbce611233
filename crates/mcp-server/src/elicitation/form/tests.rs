use serde_json::{Value, json};

use super::*;

fn fitted(schema: &Value) -> Option<Value> {
    of(schema, true).map(|form| serde_json::to_value(form).unwrap())
}

fn object(value: &Value) -> JsonFields {
    value.as_object().cloned().unwrap()
}

#[test]
fn a_flat_object_of_plain_things_is_a_form() {
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "title": "Booking",
        "properties": {
            "name": { "type": "string", "title": "Name", "minLength": 1, "pattern": "^[A-Z]", "default": "Ann" },
            "mail": { "type": ["string", "null"], "format": "email" },
            "host": { "type": "string", "format": "hostname" },
            "guests": { "type": "integer", "minimum": 1, "maximum": 9.0, "default": 2.0 },
            "budget": { "type": "number", "default": 99.5 },
            "window": { "type": "boolean", "default": true },
        },
        "required": ["name", "elsewhere"],
        "additionalProperties": false,
    });
    insta::assert_json_snapshot!(fitted(&schema));
}

#[test]
fn choices_can_be_written_in_five_ways() {
    let schema = json!({
        "type": "object",
        "properties": {
            "plain": { "type": "string", "enum": ["a", "b"], "default": "a" },
            "named": { "type": "string", "enum": ["a", "b"], "enumNames": ["A", "B"] },
            "titled": { "type": "string", "oneOf": [{ "const": "a", "title": "A" }, { "const": "b", "title": "B" }] },
            "several": { "type": "array", "items": { "type": "string", "enum": ["a", "b"] }, "maxItems": 2 },
            "several_titled": { "type": "array", "items": { "anyOf": [{ "const": "a", "title": "A" }] } },
        },
    });
    insta::assert_json_snapshot!(fitted(&schema));
}

#[test]
fn old_clients_know_titles_by_another_name_and_choose_one_thing() {
    let titled = json!({ "oneOf": [{ "const": "a", "title": "A" }, { "const": "b" }] });
    let schema = |field: Value| json!({ "type": "object", "properties": { "x": field } });
    let form = serde_json::to_value(of(&schema(titled), false).unwrap()).unwrap();
    assert_eq!(
        form["properties"]["x"],
        json!({ "type": "string", "enum": ["a", "b"], "enumNames": ["A", "b"] })
    );
    let several = json!({ "type": "array", "items": { "type": "string", "enum": ["a"] } });
    assert_eq!(of(&schema(several), false), None);
}

#[test]
fn what_no_form_can_have_does_not_fit() {
    for field in [
        json!({ "type": "object", "properties": {} }),
        json!({ "type": "array", "items": { "type": "string" } }),
        json!({ "type": "array" }),
        json!({ "type": ["string", "integer"] }),
        json!({ "type": "null" }),
        json!({ "enum": [1, 2] }),
        json!({ "$ref": "#/$defs/x" }),
        json!({ "anyOf": [{ "type": "string" }, { "type": "integer" }] }),
        json!({ "oneOf": [{ "type": "string" }] }),
        json!({}),
        json!(true),
    ] {
        let schema = json!({ "type": "object", "properties": { "x": field } });
        assert_eq!(of(&schema, true), None, "{schema}");
    }
    for schema in [
        json!({ "type": "string" }),
        json!({ "type": "object" }),
        json!({ "type": "object", "properties": {} }),
        json!({ "allOf": [], "properties": { "x": { "type": "string" } } }),
        json!([]),
    ] {
        assert_eq!(of(&schema, true), None, "{schema}");
    }
}

#[test]
fn an_answer_is_compared_with_its_form() {
    let form = of(
        &json!({
            "type": "object",
            "properties": {
                "name": { "type": "string" },
                "guests": { "type": "integer" },
                "budget": { "type": "number" },
                "window": { "type": "boolean" },
                "class": { "type": "string", "enum": ["first", "second"] },
                "meals": { "type": "array", "items": { "anyOf": [{ "const": "a", "title": "A" }] } },
            },
            "required": ["name"],
        }),
        true,
    )
    .unwrap();
    let misfit = |answer: Value| misfit(&form, &object(&answer));
    let whole = json!({
        "name": "Ann", "guests": 2.0, "budget": 1, "window": false, "class": "first", "meals": ["a"], "more": {},
    });
    assert_eq!(misfit(whole), None);
    for (answer, why) in [
        (json!({}), "`name` is missing"),
        (json!({ "name": null }), "`name` is missing"),
        (json!({ "name": 5 }), "`name` must be a text"),
        (json!({ "name": "", "guests": 1.5 }), "`guests` must be a whole number"),
        (json!({ "name": "", "budget": "1" }), "`budget` must be a number"),
        (json!({ "name": "", "window": 1 }), "`window` must be true or false"),
        (json!({ "name": "", "class": "third" }), "`class` must be one of first, second"),
        (json!({ "name": "", "meals": "a" }), "`meals` must be a list"),
        (json!({ "name": "", "meals": ["b"] }), "`meals` must be one of a"),
    ] {
        assert_eq!(misfit(answer).as_deref(), Some(why));
    }
}
