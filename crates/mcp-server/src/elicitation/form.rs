//! Conversion of JSON schemas to elicitation forms: objects whose members are strings, numbers, choices or booleans.
//!
//! Keywords that forms cannot express and that do not change the answer (a pattern, an unknown format) are dropped: the agent validates
//! the answer itself. A schema that would lose meaning has no form.

use rialto_model::form_validation::{self, JsonFields};
use rmcp::model::ElicitationSchema;
use serde_json::{Value, json};

/// Converts a schema to a form. `choices` is true when the client supports multiple choice and titled choices.
pub(super) fn of(schema: &Value, choices: bool) -> Option<ElicitationSchema> {
    let schema = schema.as_object()?;
    if schema.get("type").is_some_and(|kind| kind != "object") || is_composed(schema) {
        return None;
    }
    let properties = schema.get("properties")?.as_object()?;
    if properties.is_empty() {
        return None;
    }
    let mut members = JsonFields::new();
    for (name, member) in properties {
        members.insert(name.clone(), Value::Object(field(member.as_object()?, choices)?));
    }
    let required: Vec<&Value> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter(|name| name.as_str().is_some_and(|name| members.contains_key(name)))
        .collect();
    let mut form = JsonFields::from_iter([("type".to_owned(), json!("object"))]);
    if !required.is_empty() {
        form.insert("required".to_owned(), json!(required));
    }
    form.insert("properties".to_owned(), Value::Object(members));
    keep(schema, &mut form, &["title", "description"], Value::is_string);
    serde_json::from_value(Value::Object(form)).ok()
}

/// Reason why an answer does not match a form; none when it does.
pub(super) fn misfit(schema: &ElicitationSchema, answer: &JsonFields) -> Option<String> {
    let schema = serde_json::to_value(schema).ok()?;
    form_validation::find_mismatch(schema.as_object()?, answer)
}

/// Converts one member to a form field.
fn field(own: &JsonFields, choices: bool) -> Option<JsonFields> {
    if let Some(choice) = choice(own, choices) {
        return choice;
    }
    if is_composed(own) {
        return None;
    }
    let kind = kind_of(own)?;
    let mut field = JsonFields::from_iter([("type".to_owned(), json!(kind))]);
    keep(own, &mut field, &["title", "description"], Value::is_string);
    match kind {
        "string" => {
            keep_whole(own, &mut field, &["minLength", "maxLength"]);
            let is_known =
                |format: &Value| matches!(format.as_str(), Some("email" | "uri" | "date" | "date-time"));
            keep(own, &mut field, &["format"], is_known);
            keep(own, &mut field, &["default"], Value::is_string);
        }
        "integer" => keep_whole(own, &mut field, &["minimum", "maximum", "default"]),
        "number" => keep(own, &mut field, &["minimum", "maximum", "default"], Value::is_number),
        "boolean" => keep(own, &mut field, &["default"], Value::is_boolean),
        _ => return None,
    }
    Some(field)
}

/// Converts a member with a list of choices; the inner option is none when forms cannot express the list.
#[expect(
    clippy::option_option,
    reason = "no list, a list that does not fit, and one that does are three things"
)]
fn choice(own: &JsonFields, choices: bool) -> Option<Option<JsonFields>> {
    let mut field = JsonFields::new();
    keep(own, &mut field, &["title", "description"], Value::is_string);
    let is_list = |list: &Value| list.as_array().is_some_and(|list| !list.is_empty());
    if own.get("type") == Some(&json!("array")) {
        let items = own.get("items").and_then(Value::as_object);
        let fits = items.is_some_and(|items| texts(items).is_some() || titled(items, "anyOf").is_some());
        if !fits || !choices {
            return Some(None);
        }
        field.insert("type".to_owned(), json!("array"));
        keep_whole(own, &mut field, &["minItems", "maxItems"]);
        keep(own, &mut field, &["items", "default"], |_| true);
        return Some(Some(field));
    }
    field.insert("type".to_owned(), json!("string"));
    if own.contains_key("enum") {
        let fits = texts(own).is_some();
        keep(own, &mut field, &["enum", "enumNames"], is_list);
        keep(own, &mut field, &["default"], Value::is_string);
        return Some(fits.then_some(field));
    }
    let (consts, titles) = titled(own, "oneOf")?;
    if choices {
        keep(own, &mut field, &["oneOf"], is_list);
    } else {
        field.insert("enum".to_owned(), json!(consts));
        field.insert("enumNames".to_owned(), json!(titles));
    }
    keep(own, &mut field, &["default"], Value::is_string);
    Some(Some(field))
}

/// Values of an `enum`, if all are strings.
fn texts(own: &JsonFields) -> Option<Vec<&str>> {
    own.get("enum")?.as_array()?.iter().map(Value::as_str).collect()
}

/// Constants and their titles.
fn titled<'a>(own: &'a JsonFields, list: &str) -> Option<(Vec<&'a str>, Vec<&'a str>)> {
    let pairs = own.get(list)?.as_array()?.iter().map(|choice| {
        let constant = choice.get("const")?.as_str()?;
        Some((constant, choice.get("title").and_then(Value::as_str).unwrap_or(constant)))
    });
    pairs.collect::<Option<Vec<_>>>().filter(|pairs| !pairs.is_empty()).map(|pairs| pairs.into_iter().unzip())
}

/// The one type of a member; `null` beside it makes the member optional.
fn kind_of(own: &JsonFields) -> Option<&str> {
    match own.get("type")? {
        Value::String(kind) => Some(kind),
        Value::Array(kinds) => {
            let mut kinds = kinds.iter().filter_map(Value::as_str).filter(|kind| *kind != "null");
            let kind = kinds.next()?;
            kinds.next().is_none().then_some(kind)
        }
        _ => None,
    }
}

/// True for a schema composed of others (`$ref`, `allOf`, `anyOf`, …).
fn is_composed(own: &JsonFields) -> bool {
    ["$ref", "allOf", "anyOf", "oneOf", "not", "if", "const"].iter().any(|word| own.contains_key(*word))
}

/// Copies integers in any spelling: clients that decode JSON through protobuf send only `30.0`.
fn keep_whole(from: &JsonFields, to: &mut JsonFields, names: &[&str]) {
    for name in names {
        let Some(number) = from.get(*name).and_then(Value::as_f64) else { continue };
        if number.fract() == 0.0 && number.abs() < 9e15 {
            #[expect(clippy::cast_possible_truncation, reason = "it was looked at")]
            to.insert((*name).to_owned(), json!(number as i64));
        }
    }
}

fn keep(from: &JsonFields, to: &mut JsonFields, names: &[&str], fits: impl Fn(&Value) -> bool) {
    for name in names {
        if let Some(value) = from.get(*name).filter(|value| fits(value)) {
            to.insert((*name).to_owned(), value.clone());
        }
    }
}

#[cfg(test)]
mod tests;
