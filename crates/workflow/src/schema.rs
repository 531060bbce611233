//! JSON Schema of workflow files, for editors and generators.
//!
//! It is generated from the reader's key tables. Relations between nodes are not part of it.

use serde_json::{Map, Value, json};

use crate::{
    read::MAX_NODES,
    schema_keys::{
        ACTION, GROUP, INNER, KeyTable, NODE, NODE_KINDS, NodeKind, STEP, SchemaKey, TRIGGER, TRIGGERS,
        ValueType, WORKFLOW,
    },
};

/// The whole schema, JSON Schema 2020-12.
pub fn schema() -> Value {
    let mut schema = object_schema(&[WORKFLOW], "A workflow or a pipeline of Rialto.");
    let whole = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Rialto workflow",
        "oneOf": [
            { "required": ["nodes"], "properties": { "kind": { "const": "workflow" } } },
            { "required": ["steps"] },
        ],
        "$defs": definitions(),
    });
    if let (Some(schema), Value::Object(whole)) = (schema.as_object_mut(), whole) {
        schema.extend(whole);
    }
    schema
}

fn definitions() -> Map<String, Value> {
    let name =
        json!({ "type": ["string", "number", "boolean"], "pattern": "^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$" });
    let mut found = Map::new();
    let mut add = |name: &str, value: Value| drop(found.insert(name.to_owned(), value));
    add("name", name);
    add(
        "duration",
        json!({
            "description": "A length of time: 500ms, 30s, 1m30s, 2h, 7d; a number is seconds.",
            "anyOf": [
                { "type": "string", "pattern": "^\\s*([0-9]+(ms|s|m|h|d)\\s*)+$" },
                { "type": "integer", "minimum": 1 },
            ],
        }),
    );
    add(
        "condition",
        json!({
            "description": "A question, as in {{ nodes.review.output.score }} >= 0.8 and {{ $input.kind }} in [\"bug\"].",
            "type": ["string", "boolean"],
        }),
    );
    add("reference", json!({ "type": "string", "pattern": "\\{\\{" }));
    add("ids", one_or_many(&json!({ "$ref": "#/$defs/name" })));
    add("limits", object_schema(&[KeyTable::Limits.keys()], "Limits of a run."));
    add("backoff", object_schema(&[KeyTable::Backoff.keys()], "Pauses that grow."));
    let mut retry = object_schema(&[KeyTable::Retry.keys()], "How often a node is tried.");
    retry["anyOf"] = required_key(&KeyTable::Retry.keys()[0]);
    add("retry", retry);
    let words = json!({ "enum": [TRIGGERS[0], TRIGGERS[3]] });
    add("trigger", json!({ "anyOf": [words, object_schema(&[TRIGGER], "What begins a run.")] }));
    add("node", node_schema(NODE, "One node."));
    add("inner", node_schema(INNER, "What is done for each item."));
    add("step", step_schema());
    for kind in NODE_KINDS {
        add(kind.word, kind_schema(kind));
    }
    found
}

/// A node of whichever sort: what all have in common, and what the sort it names takes.
fn node_schema(table: &'static [SchemaKey], about: &str) -> Value {
    let sorts: Vec<&[SchemaKey]> = NODE_KINDS.iter().map(|kind| kind.keys).collect();
    let tables: Vec<&[SchemaKey]> = std::iter::once(table).chain(sorts.iter().copied()).collect();
    let mut node = object_schema(&tables, about);
    let words: Vec<&str> = NODE_KINDS.iter().map(|kind| kind.word).collect();
    let with_action: Vec<&str> = words.iter().copied().chain([ACTION]).collect();
    node["properties"]["type"] = json!({ "enum": with_action, "description": "Type of the node." });
    for name in ["node_id", "nodeId"] {
        node["properties"][name] = json!({ "enum": words, "description": "Type of the node." });
    }
    let mut config = object_schema(&sorts, "Keys of the node's type.");
    config["description"] = json!("Keys of the node's type; they may also be beside the other keys.");
    node["properties"]["config"] = config;
    let common: Vec<String> = table.iter().flat_map(SchemaKey::spellings).collect();
    node["allOf"] = NODE_KINDS.iter().map(|kind| kind_branch(kind, &common)).collect();
    node
}

/// A node that names its sort has no keys but its own.
fn kind_branch(kind: &NodeKind, common: &[String]) -> Value {
    let says = |name: &str| json!({ "properties": { name: { "const": kind.word } }, "required": [name] });
    let inner: Vec<String> = kind.keys.iter().flat_map(SchemaKey::spellings).collect();
    let names: Vec<&String> = common.iter().chain(&inner).collect();
    json!({
        "if": { "anyOf": [says("type"), says("nodeId"), says("node_id")] },
        "then": {
            "$ref": format!("#/$defs/{}", kind.word),
            "propertyNames": { "enum": names },
            "properties": { "config": { "$ref": format!("#/$defs/{}", kind.word), "propertyNames": { "enum": inner } } },
        },
    })
}

/// Schema of one type of node.
fn kind_schema(kind: &NodeKind) -> Value {
    json!({ "description": kind.about, "properties": properties(&[kind.keys]) })
}

/// A step: a node, a step of a pipeline, or a group of them.
fn step_schema() -> Value {
    let mut pipeline = object_schema(&[STEP], "A step of a pipeline.");
    pipeline["required"] = json!(["id", "tool"]);
    let mut group = object_schema(&[GROUP], "Steps that run at once.");
    group["required"] = json!(["parallel"]);
    json!({ "anyOf": [{ "$ref": "#/$defs/node", "required": ["id"] }, pipeline, group] })
}

fn object_schema(tables: &[&'static [SchemaKey]], about: &str) -> Value {
    json!({
        "description": about,
        "type": "object",
        "properties": properties(tables),
        "additionalProperties": false,
    })
}

/// Each key under each of its names. One that means different things in different tables may be any of them.
fn properties(tables: &[&'static [SchemaKey]]) -> Map<String, Value> {
    let mut found: Vec<(String, Vec<Value>)> = Vec::new();
    for key in tables.iter().copied().flatten() {
        let schema = key_schema(key);
        for name in key.spellings() {
            match found.iter_mut().find(|(known, _)| *known == name) {
                None => found.push((name, vec![schema.clone()])),
                Some((_, schemas)) if schemas.contains(&schema) => {}
                Some((_, schemas)) => schemas.push(schema.clone()),
            }
        }
    }
    let one = |mut schemas: Vec<Value>| match schemas.len() {
        1 => schemas.remove(0),
        _ => json!({ "anyOf": schemas }),
    };
    found.into_iter().map(|(name, schemas)| (name, one(schemas))).collect()
}

fn key_schema(key: &SchemaKey) -> Value {
    let mut schema = value_schema(key.is);
    if let Some(schema) = schema.as_object_mut() {
        schema.insert("description".to_owned(), json!(key.about));
    }
    schema
}

fn value_schema(is: ValueType) -> Value {
    let defined = |name: &str| json!({ "$ref": format!("#/$defs/{name}") });
    let text = json!({ "type": "string" });
    match is {
        ValueType::Name => defined("name"),
        ValueType::Text | ValueType::TextTemplate => text,
        ValueType::Word(words) => json!({ "enum": words }),
        ValueType::Schema => json!({ "type": ["object", "boolean"] }),
        ValueType::Any | ValueType::Template | ValueType::Mapping => json!({}),
        ValueType::TextTemplates => one_or_many(&text),
        ValueType::Arguments => json!({ "anyOf": [{ "type": "object" }, defined("reference")] }),
        ValueType::Ids => defined("ids"),
        ValueType::Condition => defined("condition"),
        ValueType::Duration => defined("duration"),
        ValueType::Count(most) => json!({ "type": "integer", "minimum": 1, "maximum": most }),
        ValueType::Factor => json!({ "type": "number", "minimum": 1, "maximum": 100 }),
        ValueType::Flag => json!({ "type": "boolean" }),
        ValueType::Table(table) => defined(table_name(table)),
        ValueType::CountOrTable(most, table) => {
            json!({ "anyOf": [value_schema(ValueType::Count(most)), defined(table_name(table))] })
        }
        ValueType::DurationOrTable(table) => {
            json!({ "anyOf": [defined("duration"), defined(table_name(table))] })
        }
        ValueType::Triggers => one_or_many(&defined("trigger")),
        ValueType::Nodes => json!({ "anyOf": [
            { "type": "array", "items": { "$ref": "#/$defs/node", "required": ["id"] }, "minItems": 1, "maxItems": MAX_NODES },
            { "type": "object", "additionalProperties": defined("node"), "minProperties": 1, "maxProperties": MAX_NODES },
        ] }),
        ValueType::Steps => {
            json!({ "type": "array", "items": defined("step"), "minItems": 1, "maxItems": MAX_NODES })
        }
        ValueType::Does => defined("inner"),
        ValueType::Config => json!({ "type": "object" }),
    }
}

const fn table_name(table: KeyTable) -> &'static str {
    match table {
        KeyTable::Limits => "limits",
        KeyTable::Retry => "retry",
        KeyTable::Backoff => "backoff",
    }
}

fn one_or_many(schema: &Value) -> Value {
    json!({ "anyOf": [schema, { "type": "array", "items": schema }] })
}

/// Schema that requires one of a key's names.
fn required_key(key: &SchemaKey) -> Value {
    key.spellings().map(|name| json!({ "required": [name] })).collect()
}

#[cfg(test)]
mod tests;
