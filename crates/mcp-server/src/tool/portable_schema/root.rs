//! Root of a portable schema: an object with members, without combinations.
//!
//! Models' APIs reject `allOf`, `anyOf`, `oneOf`, `not` and the like there. Constraints on members are kept as far as they hold in every
//! alternative; the rest is described in text.

use serde_json::{Map, Value, json};

/// Keywords that a root must not have.
const COMBINATORS: [&str; 8] = ["allOf", "anyOf", "oneOf", "not", "if", "then", "else", "enum"];

/// Maximum length of the description of removed constraints.
const MAX_DESCRIPTION_LENGTH: usize = 2_000;

/// Removes combinations; the result accepts at least as much.
pub(super) fn flattened(mut schema: Map<String, Value>) -> Map<String, Value> {
    let taken = simplified(&mut schema);
    if !schema.get("properties").is_some_and(Value::is_object) {
        schema.insert("properties".to_owned(), json!({}));
    }
    if !taken.is_empty() {
        let said = Value::Object(taken).to_string();
        let said = match said.char_indices().nth(MAX_DESCRIPTION_LENGTH) {
            Some((end, _)) => format!("{}…", said.get(..end).unwrap_or_default()),
            None => said,
        };
        let words = match schema.get("description").and_then(Value::as_str) {
            Some(own) => format!("{own} This holds too: {said}"),
            None => format!("This holds too: {said}"),
        };
        schema.insert("description".to_owned(), Value::String(words));
    }
    schema
}

/// Removes all combinations from a schema, keeps what always holds, and returns what was removed.
fn simplified(schema: &mut Map<String, Value>) -> Map<String, Value> {
    let mut taken = Map::new();
    for name in COMBINATORS {
        if let Some(value) = schema.shift_remove(name) {
            taken.insert(name.to_owned(), value);
        }
    }
    for branch in branches(&taken, "allOf") {
        require(schema, branch.get("required"));
        for (name, member) in members(&branch) {
            propose(schema, name, || member.clone());
        }
    }
    for name in ["anyOf", "oneOf"] {
        choose(schema, &branches(&taken, name));
    }
    for name in ["then", "else"] {
        if let Some(Value::Object(branch)) = taken.get(name) {
            let mut branch = branch.clone();
            simplified(&mut branch);
            for (name, member) in members(&branch) {
                propose(schema, name, || hint(&[member]));
            }
        }
    }
    taken
}

/// Alternatives under a keyword, each simplified. One that is trivial or impossible has no members.
fn branches(taken: &Map<String, Value>, name: &str) -> Vec<Map<String, Value>> {
    let listed = taken.get(name).and_then(Value::as_array).into_iter().flatten();
    let objects = listed.map(|branch| match branch {
        Value::Object(branch) => {
            let mut branch = branch.clone();
            simplified(&mut branch);
            branch
        }
        _ => Map::new(),
    });
    objects.collect()
}

/// Keeps constraints that hold in each of the alternatives.
fn choose(schema: &mut Map<String, Value>, branches: &[Map<String, Value>]) {
    let Some((first, others)) = branches.split_first() else { return };
    let in_all = |name: &Value| others.iter().all(|other| required(other).any(|required| required == name));
    let common: Vec<Value> = required(first).filter(|name| in_all(name)).cloned().collect();
    require(schema, Some(&Value::Array(common)));
    for branch in branches {
        for (name, _) in members(branch) {
            let found: Vec<&Value> = branches.iter().filter_map(|branch| member(branch, name)).collect();
            let is_settled =
                branches.iter().all(|branch| member(branch, name).is_some() || is_closed(branch));
            propose(schema, name, || if is_settled { any(&found) } else { hint(&found) });
        }
    }
}

/// True when a schema rejects unknown members.
fn is_closed(schema: &Map<String, Value>) -> bool {
    schema.get("additionalProperties") == Some(&Value::Bool(false))
        && !schema.contains_key("patternProperties")
}

/// Schema that accepts any of these.
fn any(schemas: &[&Value]) -> Value {
    let mut distinct: Vec<&Value> = Vec::new();
    for schema in schemas {
        if !distinct.contains(schema) {
            distinct.push(schema);
        }
    }
    match distinct.as_slice() {
        [one] => (*one).clone(),
        several => json!({ "anyOf": several }),
    }
}

/// Member with one of these schemas in one alternative and without constraint in another.
fn hint(schemas: &[&Value]) -> Value {
    let described = schemas.iter().find_map(|schema| schema.get("description").and_then(Value::as_str));
    let shape = any(schemas);
    let words = match described {
        Some(words) => format!("{words} (usually {shape})"),
        None => format!("usually {shape}"),
    };
    json!({ "description": words })
}

/// Adds a member that is not declared yet.
fn propose(schema: &mut Map<String, Value>, name: &str, member: impl FnOnce() -> Value) {
    let members = schema.entry("properties").or_insert_with(|| json!({}));
    if let Value::Object(members) = members
        && !members.contains_key(name)
    {
        members.insert(name.to_owned(), member());
    }
}

fn require(schema: &mut Map<String, Value>, names: Option<&Value>) {
    let Some(Value::Array(names)) =
        names.filter(|names| names.as_array().is_some_and(|names| !names.is_empty()))
    else {
        return;
    };
    let all = schema.entry("required").or_insert_with(|| json!([]));
    if let Value::Array(all) = all {
        for name in names {
            if !all.contains(name) {
                all.push(name.clone());
            }
        }
    }
}

fn required(schema: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    schema.get("required").and_then(Value::as_array).into_iter().flatten()
}

fn members(schema: &Map<String, Value>) -> impl Iterator<Item = (&String, &Value)> {
    schema.get("properties").and_then(Value::as_object).into_iter().flatten()
}

fn member<'a>(schema: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    schema.get("properties")?.get(name)
}
