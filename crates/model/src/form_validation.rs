//! Validation of form answers: objects whose members are strings, numbers, choices or booleans.
//!
//! Used in both directions: people at MCP clients answer agents, and A2A callers answer MCP servers.

use serde_json::{Map, Value};

/// Members of a JSON object.
pub type JsonFields = Map<String, Value>;

/// Reason why an answer does not match a form; none when it does. Members that are not in the form are ignored.
pub fn find_mismatch(form: &JsonFields, answer: &JsonFields) -> Option<String> {
    let required = form.get("required").and_then(Value::as_array).into_iter().flatten();
    let is_missing = |name: &&str| answer.get(*name).is_none_or(Value::is_null);
    if let Some(missing) = required.filter_map(Value::as_str).find(is_missing) {
        return Some(format!("`{missing}` is missing"));
    }
    let fields = form.get("properties").and_then(Value::as_object)?;
    answer.iter().find_map(|(name, value)| {
        let expected = find_field_mismatch(fields.get(name)?, value)?;
        Some(format!("`{name}` must be {expected}"))
    })
}

/// Expected value of a field; none when the value matches or the field has no constraint.
pub fn find_field_mismatch(field: &Value, value: &Value) -> Option<String> {
    let fits = match field.get("type").and_then(Value::as_str) {
        Some("string") => value.is_string(),
        // Clients that decode JSON through protobuf send only `30.0`.
        Some("integer") => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        Some("number") => value.is_number(),
        Some("boolean") => value.is_boolean(),
        Some("array") => value.is_array(),
        _ => true,
    };
    if !fits {
        return kind(field);
    }
    let chosen = value.as_array().map_or_else(|| std::slice::from_ref(value), Vec::as_slice);
    let is_known = known(field)
        .is_none_or(|known| chosen.iter().all(|one| known.iter().any(|(choice, _)| choice == one)));
    if is_known { None } else { describe_accepted(field) }
}

/// Description of the values that a field accepts.
pub fn describe_accepted(field: &Value) -> Option<String> {
    if let Some(choices) = known(field) {
        let values: Vec<String> = choices.iter().map(|(value, _)| shown(value)).collect();
        return Some(format!("one of {}", values.join(", ")));
    }
    kind(field)
}

/// Description of a field's type.
fn kind(field: &Value) -> Option<String> {
    let name = match field.get("type").and_then(Value::as_str)? {
        "string" => "a text",
        "integer" => "a whole number",
        "number" => "a number",
        "boolean" => "true or false",
        "array" => "a list",
        _ => return None,
    };
    Some(name.to_owned())
}

/// Choice that a text selects, by value or by title.
pub fn select_choice(field: &Value, text: &str) -> Option<Value> {
    let same = |name: &str| name.eq_ignore_ascii_case(text);
    let meant = |(value, title): &(Value, String)| same(&shown(value)) || same(title);
    list_choices(field)?.into_iter().find(meant).map(|(value, _)| value)
}

/// Choices of a field with their titles.
pub fn list_choices(field: &Value) -> Option<Vec<(Value, String)>> {
    if let Some(values) = field.get("enum").and_then(Value::as_array) {
        let names = field.get("enumNames").and_then(Value::as_array);
        let named = values.iter().enumerate().map(|(at, value)| {
            let name = names.and_then(|names| names.get(at)?.as_str());
            (value.clone(), name.map_or_else(|| shown(value), str::to_owned))
        });
        return Some(named.collect());
    }
    let titled = field.get("oneOf").or_else(|| field.get("anyOf"))?.as_array()?;
    let named = titled.iter().map(|choice| {
        let value = choice.get("const")?;
        let title = choice.get("title").and_then(Value::as_str);
        Some((value.clone(), title.map_or_else(|| shown(value), str::to_owned)))
    });
    named.collect()
}

/// Choices of a field, or of its items if it is a list.
fn known(field: &Value) -> Option<Vec<(Value, String)>> {
    list_choices(field).or_else(|| list_choices(field.get("items")?))
}

fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_is_told_what_is_wrong_with_it() {
        let form = json!({
            "properties": {
                "name": { "type": "string" },
                "count": { "type": "integer" },
                "level": { "type": "integer", "enum": [1, 2] },
                "class": { "oneOf": [{ "const": "a", "title": "Erste" }, { "const": "b" }] },
                "meals": { "type": "array", "items": { "enum": ["x", "y"] } },
                "other": {},
            },
            "required": ["name"],
        });
        let wrong = |answer: Value| find_mismatch(form.as_object().unwrap(), answer.as_object().unwrap());
        for right in [
            json!({ "name": "n" }),
            json!({ "name": "n", "count": 30.0, "level": 2, "class": "b", "meals": ["y", "x"], "other": [1], "more": null }),
        ] {
            assert_eq!(wrong(right.clone()), None, "{right}");
        }
        for (answer, why) in [
            (json!({}), "`name` is missing"),
            (json!({ "name": null }), "`name` is missing"),
            (json!({ "name": 1 }), "`name` must be a text"),
            (json!({ "name": "n", "count": 1.5 }), "`count` must be a whole number"),
            (json!({ "name": "n", "level": 3 }), "`level` must be one of 1, 2"),
            (json!({ "name": "n", "class": "c" }), "`class` must be one of a, b"),
            (json!({ "name": "n", "meals": ["z"] }), "`meals` must be one of x, y"),
        ] {
            assert_eq!(wrong(answer.clone()).as_deref(), Some(why), "{answer}");
        }
    }

    #[test]
    fn a_choice_is_meant_by_its_value_or_its_title() {
        let field = json!({ "oneOf": [{ "const": "a", "title": "Erste" }, { "const": 2 }] });
        assert_eq!(select_choice(&field, "erste"), Some(json!("a")));
        assert_eq!(select_choice(&field, "2"), Some(json!(2)));
        assert_eq!(select_choice(&field, "third"), None);
    }
}
