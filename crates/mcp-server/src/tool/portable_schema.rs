//! Portable schemas: for clients that do not support all of JSON Schema.
//!
//! Many clients do not resolve `$defs`, reject a root that is not a plain object, or drop the tool. So references are replaced by their
//! targets, and combinations at the root are described in text. The guarantee is one-sided: every value that the original accepts is
//! accepted. Values beyond that are rejected by the agent's own schema when the tool is called.

use serde_json::{Map, Value, json};

mod root;

/// Maximum number of subschemas after references are replaced; the rest accepts anything.
const MAX_SUBSCHEMAS: usize = 2_000;

/// Maximum depth of nested references.
const MAX_REFERENCE_DEPTH: usize = 24;

/// Keywords that do not constrain values, or that only references need.
const SILENT_KEYWORDS: [&str; 9] = [
    "$schema",
    "$id",
    "$comment",
    "$anchor",
    "$dynamicAnchor",
    "$recursiveAnchor",
    "$vocabulary",
    "$defs",
    "definitions",
];

/// Keywords that are only descriptive.
const DESCRIPTIVE_KEYWORDS: [&str; 8] =
    ["title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "x-mcp-header"];

/// Replaces references.
struct PortableSchemaBuilder<'a> {
    root: &'a Map<String, Value>,
    /// Before 2019-09, keywords beside a reference were ignored.
    is_old: bool,
    /// References that are being replaced.
    within: Vec<&'a str>,
    /// True when references may point to another document.
    is_elsewhere: bool,
    room: usize,
}

/// Schema made from another one.
struct PortableSchema {
    schema: Value,
    /// True when it accepts more than the original.
    is_wider: bool,
}

/// Portable schema for the arguments of a tool: it accepts all objects that `schema` accepts.
pub(super) fn portable(schema: &Map<String, Value>) -> Map<String, Value> {
    let dialect = schema.get("$schema").and_then(Value::as_str).unwrap_or_default();
    let is_old = ["draft-03", "draft-04", "draft-06", "draft-07"].iter().any(|old| dialect.contains(old));
    let mut maker = PortableSchemaBuilder {
        root: schema,
        is_old,
        within: vec!["#"],
        is_elsewhere: false,
        room: MAX_SUBSCHEMAS,
    };
    let Value::Object(made) = maker.object(schema).schema else { return Map::new() };
    root::flattened(made)
}

// === impl PortableSchemaBuilder ===

impl<'a> PortableSchemaBuilder<'a> {
    fn schema(&mut self, schema: &'a Value) -> PortableSchema {
        let Value::Object(members) = schema else {
            return PortableSchema { schema: schema.clone(), is_wider: false };
        };
        let before = self.is_elsewhere;
        self.is_elsewhere |= members.contains_key("$id");
        let made = self.object(members);
        self.is_elsewhere = before;
        made
    }

    fn object(&mut self, members: &'a Map<String, Value>) -> PortableSchema {
        self.room = self.room.saturating_sub(1);
        let Some(Value::String(reference)) = members.get("$ref") else {
            return self.without_reference(members);
        };
        let target = self.target(reference);
        let beside = if self.is_old { PortableSchema::empty() } else { self.without_reference(members) };
        let Value::Object(mut beside_it) = beside.schema else { return target };
        let is_wider = target.is_wider || beside.is_wider;
        if beside_it.keys().any(|name| !DESCRIPTIVE_KEYWORDS.contains(&name.as_str())) {
            let all = beside_it.entry("allOf").or_insert_with(|| json!([]));
            if let Value::Array(all) = all {
                all.push(target.schema);
            }
            return PortableSchema { schema: Value::Object(beside_it), is_wider };
        }
        let Value::Object(mut schema) = target.schema else { return PortableSchema { is_wider, ..target } };
        schema.extend(beside_it);
        PortableSchema { schema: Value::Object(schema), is_wider }
    }

    /// Target of a reference, or an open schema if it is circular, too deep, or external.
    fn target(&mut self, reference: &'a str) -> PortableSchema {
        let known =
            reference.strip_prefix('#').filter(|_| !self.is_elsewhere).and_then(|path| self.find(path));
        let may_follow =
            self.room > 0 && self.within.len() < MAX_REFERENCE_DEPTH && !self.within.contains(&reference);
        match known {
            Some(target) if may_follow => {
                self.within.push(reference);
                let made = self.schema(target);
                self.within.pop();
                made
            }
            known => PortableSchema::open(reference, known),
        }
    }

    fn find(&self, path: &str) -> Option<&'a Value> {
        let mut steps = path.split('/');
        // Anchors do not start with a slash.
        steps.next().filter(|first| first.is_empty())?;
        let mut steps = steps.map(|step| step.replace("~1", "/").replace("~0", "~"));
        let first = steps.next()?;
        steps.try_fold(self.root.get(&first)?, |inside, step| match inside {
            Value::Object(members) => members.get(&step),
            Value::Array(items) => items.get(step.parse::<usize>().ok()?),
            _ => None,
        })
    }

    fn without_reference(&mut self, members: &'a Map<String, Value>) -> PortableSchema {
        let (mut made, mut is_wider) = (Map::new(), false);
        for (name, value) in members {
            if name == "$ref" || SILENT_KEYWORDS.contains(&name.as_str()) {
                continue;
            }
            match self.word(name, value, &mut made) {
                KeywordOutcome::Same => {}
                KeywordOutcome::Wider => is_wider = true,
                KeywordOutcome::Dropped => {
                    made.remove(name);
                    is_wider = true;
                }
            }
        }
        // A condition that was removed has no effect.
        if members.contains_key("if") && !made.contains_key("if") {
            made.remove("then");
            made.remove("else");
        }
        if made.get("type").is_some_and(|kind| kind == "array") && !made.contains_key("prefixItems") {
            made.entry("items").or_insert_with(|| json!({}));
        }
        PortableSchema { schema: Value::Object(made), is_wider }
    }

    /// Copies one keyword of a schema.
    fn word(&mut self, name: &str, value: &'a Value, made: &mut Map<String, Value>) -> KeywordOutcome {
        let (schema, is_wider) = match (name, value) {
            ("$dynamicRef" | "$recursiveRef" | "unevaluatedProperties" | "unevaluatedItems", _) => {
                return KeywordOutcome::Dropped;
            }
            (
                "properties" | "patternProperties" | "dependentSchemas" | "dependencies",
                Value::Object(schemas),
            ) => self.named(schemas),
            ("allOf" | "anyOf" | "oneOf" | "prefixItems" | "items", Value::Array(schemas)) => {
                self.list(schemas)
            }
            (
                "items"
                | "additionalItems"
                | "additionalProperties"
                | "propertyNames"
                | "contains"
                | "not"
                | "if"
                | "then"
                | "else",
                schema,
            ) => {
                let inner = self.schema(schema);
                (inner.schema, inner.is_wider)
            }
            // Equivalent keyword with wider support.
            ("const", value) if !made.contains_key("enum") => {
                made.insert("enum".to_owned(), json!([value]));
                return KeywordOutcome::Same;
            }
            (_, value) => (value.clone(), false),
        };
        match name {
            // `not` of a wider schema would be narrower, so it is dropped.
            "not" | "if" if is_wider => return KeywordOutcome::Dropped,
            "contains" if is_wider => return KeywordOutcome::Dropped,
            "oneOf" if is_wider && made.contains_key("anyOf") => return KeywordOutcome::Dropped,
            "oneOf" if is_wider => made.insert("anyOf".to_owned(), schema),
            "enum" => made.insert("enum".to_owned(), schema),
            "anyOf" if made.contains_key("anyOf") => return KeywordOutcome::Dropped,
            _ => made.insert(name.to_owned(), schema),
        };
        if is_wider { KeywordOutcome::Wider } else { KeywordOutcome::Same }
    }

    fn named(&mut self, schemas: &'a Map<String, Value>) -> (Value, bool) {
        let mut is_wider = false;
        let made = schemas.iter().map(|(name, schema)| {
            let made = self.schema(schema);
            is_wider |= made.is_wider;
            (name.clone(), made.schema)
        });
        let made = Value::Object(made.collect());
        (made, is_wider)
    }

    fn list(&mut self, schemas: &'a [Value]) -> (Value, bool) {
        let mut is_wider = false;
        let made = schemas.iter().map(|schema| {
            let made = self.schema(schema);
            is_wider |= made.is_wider;
            made.schema
        });
        let made = Value::Array(made.collect());
        (made, is_wider)
    }
}

/// Outcome of converting a keyword.
enum KeywordOutcome {
    Same,
    Wider,
    Dropped,
}

// === impl PortableSchema ===

impl PortableSchema {
    fn empty() -> Self {
        Self { schema: json!({}), is_wider: false }
    }

    /// Accepts any value of the target's type, with its description.
    fn open(reference: &str, target: Option<&Value>) -> Self {
        let mut schema = Map::new();
        let kind = target.and_then(|target| target.get("type")).filter(|kind| kind.is_string());
        if let Some(kind) = kind {
            schema.insert("type".to_owned(), kind.clone());
            if kind == "array" {
                schema.insert("items".to_owned(), json!({}));
            }
        }
        let name = reference.rsplit('/').next().unwrap_or(reference);
        let words = match name {
            "#" => "the same as the whole once more; its members are not repeated here".to_owned(),
            name => format!("{name}; its members are not repeated here"),
        };
        schema.insert("description".to_owned(), Value::String(words));
        Self { schema: Value::Object(schema), is_wider: true }
    }
}

#[cfg(test)]
mod tests;
