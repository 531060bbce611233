//! The JSON Schema of the format, for editors and for whoever writes workflows by program.
//!
//! It is made from the tables the reader takes keys by. It says less than the reader: what nodes are to each other is not in it.

use serde_json::{Map, Value, json};

use crate::{
    keys::{ACTION, GROUP, INNER, Is, Key, NODE, SORTS, STEP, Sort, TRIGGER, TRIGGERS, Table, WORKFLOW},
    read::MOST_NODES,
};

/// The whole schema, JSON Schema 2020-12.
pub fn schema() -> Value {
    let mut schema = object(&[WORKFLOW], "A workflow or a pipeline of Rialto.");
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
    add("limits", object(&[Table::Limits.keys()], "How much a run may take."));
    add("backoff", object(&[Table::Backoff.keys()], "Pauses that grow."));
    let mut retry = object(&[Table::Retry.keys()], "How often a node is tried.");
    retry["anyOf"] = required(&Table::Retry.keys()[0]);
    add("retry", retry);
    let words = json!({ "enum": [TRIGGERS[0], TRIGGERS[3]] });
    add("trigger", json!({ "anyOf": [words, object(&[TRIGGER], "What begins a run.")] }));
    add("node", node(NODE, "One node."));
    add("inner", node(INNER, "What is done for each item."));
    add("step", step());
    for sort in SORTS {
        add(sort.word, sorted(sort));
    }
    found
}

/// A node of whichever sort: what all have in common, and what the sort it names takes.
fn node(table: &'static [Key], about: &str) -> Value {
    let sorts: Vec<&[Key]> = SORTS.iter().map(|sort| sort.keys).collect();
    let tables: Vec<&[Key]> = std::iter::once(table).chain(sorts.iter().copied()).collect();
    let mut node = object(&tables, about);
    let words: Vec<&str> = SORTS.iter().map(|sort| sort.word).collect();
    let with_action: Vec<&str> = words.iter().copied().chain([ACTION]).collect();
    node["properties"]["type"] = json!({ "enum": with_action, "description": "What sort of node it is." });
    for name in ["node_id", "nodeId"] {
        node["properties"][name] = json!({ "enum": words, "description": "What sort of node it is." });
    }
    let mut config = object(&sorts, "What the sort of node takes.");
    config["description"] = json!("What the sort of node takes; it may stand beside the other keys as well.");
    node["properties"]["config"] = config;
    let common: Vec<String> = table.iter().flat_map(Key::spellings).collect();
    node["allOf"] = SORTS.iter().map(|sort| only(sort, &common)).collect();
    node
}

/// A node that names its sort has no keys but its own.
fn only(sort: &Sort, common: &[String]) -> Value {
    let says = |name: &str| json!({ "properties": { name: { "const": sort.word } }, "required": [name] });
    let inner: Vec<String> = sort.keys.iter().flat_map(Key::spellings).collect();
    let names: Vec<&String> = common.iter().chain(&inner).collect();
    json!({
        "if": { "anyOf": [says("type"), says("nodeId"), says("node_id")] },
        "then": {
            "$ref": format!("#/$defs/{}", sort.word),
            "propertyNames": { "enum": names },
            "properties": { "config": { "$ref": format!("#/$defs/{}", sort.word), "propertyNames": { "enum": inner } } },
        },
    })
}

/// What one sort takes.
fn sorted(sort: &Sort) -> Value {
    json!({ "description": sort.about, "properties": properties(&[sort.keys]) })
}

/// A step: a node, a step of a pipeline, or a group of them.
fn step() -> Value {
    let mut pipeline = object(&[STEP], "A step of a pipeline.");
    pipeline["required"] = json!(["id", "tool"]);
    let mut group = object(&[GROUP], "Steps that run at once.");
    group["required"] = json!(["parallel"]);
    json!({ "anyOf": [{ "$ref": "#/$defs/node", "required": ["id"] }, pipeline, group] })
}

fn object(tables: &[&'static [Key]], about: &str) -> Value {
    json!({
        "description": about,
        "type": "object",
        "properties": properties(tables),
        "additionalProperties": false,
    })
}

/// Each key under each of its names. One that means different things in different tables may be any of them.
fn properties(tables: &[&'static [Key]]) -> Map<String, Value> {
    let mut found: Vec<(String, Vec<Value>)> = Vec::new();
    for key in tables.iter().copied().flatten() {
        let schema = of_key(key);
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

fn of_key(key: &Key) -> Value {
    let mut schema = of(key.is);
    if let Some(schema) = schema.as_object_mut() {
        schema.insert("description".to_owned(), json!(key.about));
    }
    schema
}

fn of(is: Is) -> Value {
    let defined = |name: &str| json!({ "$ref": format!("#/$defs/{name}") });
    let text = json!({ "type": "string" });
    match is {
        Is::Name => defined("name"),
        Is::Text | Is::TextTemplate => text,
        Is::Word(words) => json!({ "enum": words }),
        Is::Schema => json!({ "type": ["object", "boolean"] }),
        Is::Any | Is::Template | Is::Mapping => json!({}),
        Is::TextTemplates => one_or_many(&text),
        Is::Arguments => json!({ "anyOf": [{ "type": "object" }, defined("reference")] }),
        Is::Ids => defined("ids"),
        Is::Condition => defined("condition"),
        Is::Duration => defined("duration"),
        Is::Count(most) => json!({ "type": "integer", "minimum": 1, "maximum": most }),
        Is::Factor => json!({ "type": "number", "minimum": 1, "maximum": 100 }),
        Is::Flag => json!({ "type": "boolean" }),
        Is::Table(table) => defined(table_name(table)),
        Is::CountOrTable(most, table) => {
            json!({ "anyOf": [of(Is::Count(most)), defined(table_name(table))] })
        }
        Is::DurationOrTable(table) => json!({ "anyOf": [defined("duration"), defined(table_name(table))] }),
        Is::Triggers => one_or_many(&defined("trigger")),
        Is::Nodes => json!({ "anyOf": [
            { "type": "array", "items": { "$ref": "#/$defs/node", "required": ["id"] }, "minItems": 1, "maxItems": MOST_NODES },
            { "type": "object", "additionalProperties": defined("node"), "minProperties": 1, "maxProperties": MOST_NODES },
        ] }),
        Is::Steps => {
            json!({ "type": "array", "items": defined("step"), "minItems": 1, "maxItems": MOST_NODES })
        }
        Is::Does => defined("inner"),
        Is::Config => json!({ "type": "object" }),
    }
}

const fn table_name(table: Table) -> &'static str {
    match table {
        Table::Limits => "limits",
        Table::Retry => "retry",
        Table::Backoff => "backoff",
    }
}

fn one_or_many(schema: &Value) -> Value {
    json!({ "anyOf": [schema, { "type": "array", "items": schema }] })
}

/// One of the names of a key must be there.
fn required(key: &Key) -> Value {
    key.spellings().map(|name| json!({ "required": [name] })).collect()
}

#[cfg(test)]
mod tests;
