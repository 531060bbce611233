//! Schemas for clients that do not understand all of JSON Schema.
//!
//! Many clients look for `$defs` in vain, refuse a root that is not plainly an object, or drop the tool. So references are replaced
//! by what they name, and what stands at the root beside members is told in words. The promise is one-sided: whatever the original
//! accepts is accepted. What is accepted beyond that, the agent's own schema refuses when the tool is called.

use serde_json::{Map, Value, json};

mod root;

/// A schema has at most so many parts once references are replaced; what is left then stays open.
const ROOM: usize = 2_000;

/// References within references are followed so deep.
const DEEPEST: usize = 24;

/// Words that say nothing about values, or that only references need.
const SILENT: [&str; 9] = [
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

/// Words that describe and forbid nothing.
const DESCRIBING: [&str; 8] =
    ["title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "x-mcp-header"];

/// Replaces references.
struct Maker<'a> {
    root: &'a Map<String, Value>,
    /// Before 2019-09 what stood beside a reference counted for nothing.
    is_old: bool,
    /// The references that are being replaced.
    within: Vec<&'a str>,
    /// Whether references mean another document here.
    is_elsewhere: bool,
    room: usize,
}

/// A schema that was made of another one.
struct Made {
    schema: Value,
    /// Whether it accepts more than that.
    is_wider: bool,
}

/// A portable schema for the arguments of a tool: it accepts all objects that `schema` accepts.
pub(super) fn portable(schema: &Map<String, Value>) -> Map<String, Value> {
    let dialect = schema.get("$schema").and_then(Value::as_str).unwrap_or_default();
    let is_old = ["draft-03", "draft-04", "draft-06", "draft-07"].iter().any(|old| dialect.contains(old));
    let mut maker = Maker { root: schema, is_old, within: vec!["#"], is_elsewhere: false, room: ROOM };
    let Value::Object(made) = maker.object(schema).schema else { return Map::new() };
    root::flattened(made)
}

// === impl Maker ===

impl<'a> Maker<'a> {
    fn schema(&mut self, schema: &'a Value) -> Made {
        let Value::Object(members) = schema else { return Made { schema: schema.clone(), is_wider: false } };
        let before = self.is_elsewhere;
        self.is_elsewhere |= members.contains_key("$id");
        let made = self.object(members);
        self.is_elsewhere = before;
        made
    }

    fn object(&mut self, members: &'a Map<String, Value>) -> Made {
        self.room = self.room.saturating_sub(1);
        let Some(Value::String(reference)) = members.get("$ref") else {
            return self.without_reference(members);
        };
        let target = self.target(reference);
        let beside = if self.is_old { Made::empty() } else { self.without_reference(members) };
        let Value::Object(mut beside_it) = beside.schema else { return target };
        let is_wider = target.is_wider || beside.is_wider;
        if beside_it.keys().any(|name| !DESCRIBING.contains(&name.as_str())) {
            let all = beside_it.entry("allOf").or_insert_with(|| json!([]));
            if let Value::Array(all) = all {
                all.push(target.schema);
            }
            return Made { schema: Value::Object(beside_it), is_wider };
        }
        let Value::Object(mut schema) = target.schema else { return Made { is_wider, ..target } };
        schema.extend(beside_it);
        Made { schema: Value::Object(schema), is_wider }
    }

    /// What a reference names, or something open where it leads in a circle, too deep, or elsewhere.
    fn target(&mut self, reference: &'a str) -> Made {
        let known =
            reference.strip_prefix('#').filter(|_| !self.is_elsewhere).and_then(|path| self.find(path));
        let may_follow = self.room > 0 && self.within.len() < DEEPEST && !self.within.contains(&reference);
        match known {
            Some(target) if may_follow => {
                self.within.push(reference);
                let made = self.schema(target);
                self.within.pop();
                made
            }
            known => Made::open(reference, known),
        }
    }

    fn find(&self, path: &str) -> Option<&'a Value> {
        let mut steps = path.split('/');
        // Anchors have no slash in front.
        steps.next().filter(|first| first.is_empty())?;
        let mut steps = steps.map(|step| step.replace("~1", "/").replace("~0", "~"));
        let first = steps.next()?;
        steps.try_fold(self.root.get(&first)?, |inside, step| match inside {
            Value::Object(members) => members.get(&step),
            Value::Array(items) => items.get(step.parse::<usize>().ok()?),
            _ => None,
        })
    }

    fn without_reference(&mut self, members: &'a Map<String, Value>) -> Made {
        let (mut made, mut is_wider) = (Map::new(), false);
        for (name, value) in members {
            if name == "$ref" || SILENT.contains(&name.as_str()) {
                continue;
            }
            match self.word(name, value, &mut made) {
                Word::Same => {}
                Word::Wider => is_wider = true,
                Word::Dropped => {
                    made.remove(name);
                    is_wider = true;
                }
            }
        }
        // A condition that is gone decides nothing.
        if members.contains_key("if") && !made.contains_key("if") {
            made.remove("then");
            made.remove("else");
        }
        if made.get("type").is_some_and(|kind| kind == "array") && !made.contains_key("prefixItems") {
            made.entry("items").or_insert_with(|| json!({}));
        }
        Made { schema: Value::Object(made), is_wider }
    }

    /// Takes over one word of a schema.
    fn word(&mut self, name: &str, value: &'a Value, made: &mut Map<String, Value>) -> Word {
        let (schema, is_wider) = match (name, value) {
            ("$dynamicRef" | "$recursiveRef" | "unevaluatedProperties" | "unevaluatedItems", _) => {
                return Word::Dropped;
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
            // The same in a word that more clients know.
            ("const", value) if !made.contains_key("enum") => {
                made.insert("enum".to_owned(), json!([value]));
                return Word::Same;
            }
            (_, value) => (value.clone(), false),
        };
        match name {
            // What is wider inside is narrower outside, so it is left out.
            "not" | "if" if is_wider => return Word::Dropped,
            "contains" if is_wider => return Word::Dropped,
            "oneOf" if is_wider && made.contains_key("anyOf") => return Word::Dropped,
            "oneOf" if is_wider => made.insert("anyOf".to_owned(), schema),
            "enum" => made.insert("enum".to_owned(), schema),
            "anyOf" if made.contains_key("anyOf") => return Word::Dropped,
            _ => made.insert(name.to_owned(), schema),
        };
        if is_wider { Word::Wider } else { Word::Same }
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

/// What became of a word.
enum Word {
    Same,
    Wider,
    Dropped,
}

// === impl Made ===

impl Made {
    fn empty() -> Self {
        Self { schema: json!({}), is_wider: false }
    }

    /// Accepts whatever has the type of what would stand here, and says what that is.
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
