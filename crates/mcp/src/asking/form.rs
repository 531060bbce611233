//! Which schemas a form can have: an object whose members are texts, numbers, choices, or yes and no.
//!
//! What forms have no word for and does not change what the answer is (a pattern, an unknown format) is left out: the agent
//! checks what it gets. What would change it does not fit, and then there is no form.

use rmcp::model::ElicitationSchema;
use serde_json::{Map, Value, json};

use crate::forms;

type Object = Map<String, Value>;

/// The form of that shape. `choices` tells whether several can be chosen, and choices can have titles.
pub(super) fn of(schema: &Value, choices: bool) -> Option<ElicitationSchema> {
    let schema = schema.as_object()?;
    if schema.get("type").is_some_and(|kind| kind != "object") || is_composed(schema) {
        return None;
    }
    let properties = schema.get("properties")?.as_object()?;
    if properties.is_empty() {
        return None;
    }
    let mut members = Object::new();
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
    let mut form = Object::from_iter([("type".to_owned(), json!("object"))]);
    if !required.is_empty() {
        form.insert("required".to_owned(), json!(required));
    }
    form.insert("properties".to_owned(), Value::Object(members));
    keep(schema, &mut form, &["title", "description"], Value::is_string);
    serde_json::from_value(Value::Object(form)).ok()
}

/// Why an answer does not fit a form; none when it does.
pub(super) fn misfit(schema: &ElicitationSchema, answer: &Object) -> Option<String> {
    let schema = serde_json::to_value(schema).ok()?;
    forms::misfit(schema.as_object()?, answer)
}

/// One member, as a form has it.
fn field(own: &Object, choices: bool) -> Option<Object> {
    if let Some(choice) = choice(own, choices) {
        return choice;
    }
    if is_composed(own) {
        return None;
    }
    let kind = kind_of(own)?;
    let mut field = Object::from_iter([("type".to_owned(), json!(kind))]);
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

/// A member that is chosen from a list; none inside when forms cannot have such a list.
#[expect(
    clippy::option_option,
    reason = "no list, a list that does not fit, and one that does are three things"
)]
fn choice(own: &Object, choices: bool) -> Option<Option<Object>> {
    let mut field = Object::new();
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

/// The texts of an `enum`, if it has nothing else.
fn texts(own: &Object) -> Option<Vec<&str>> {
    own.get("enum")?.as_array()?.iter().map(Value::as_str).collect()
}

/// Constants and what they are called.
fn titled<'a>(own: &'a Object, list: &str) -> Option<(Vec<&'a str>, Vec<&'a str>)> {
    let pairs = own.get(list)?.as_array()?.iter().map(|choice| {
        let constant = choice.get("const")?.as_str()?;
        Some((constant, choice.get("title").and_then(Value::as_str).unwrap_or(constant)))
    });
    pairs.collect::<Option<Vec<_>>>().filter(|pairs| !pairs.is_empty()).map(|pairs| pairs.into_iter().unzip())
}

/// The one type of a member; `null` beside it says that it may be left out.
fn kind_of(own: &Object) -> Option<&str> {
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

/// Whether what fits is said elsewhere or in several ways.
fn is_composed(own: &Object) -> bool {
    ["$ref", "allOf", "anyOf", "oneOf", "not", "if", "const"].iter().any(|word| own.contains_key(*word))
}

/// Whole numbers, however they are written: those who speak of JSON in protobuf have only `30.0`.
fn keep_whole(from: &Object, to: &mut Object, names: &[&str]) {
    for name in names {
        let Some(number) = from.get(*name).and_then(Value::as_f64) else { continue };
        if number.fract() == 0.0 && number.abs() < 9e15 {
            #[expect(clippy::cast_possible_truncation, reason = "it was looked at")]
            to.insert((*name).to_owned(), json!(number as i64));
        }
    }
}

fn keep(from: &Object, to: &mut Object, names: &[&str], fits: impl Fn(&Value) -> bool) {
    for name in names {
        if let Some(value) = from.get(*name).filter(|value| fits(value)) {
            to.insert((*name).to_owned(), value.clone());
        }
    }
}

#[cfg(test)]
mod tests;
