//! HTML forms from JSON Schemas, and the arguments from their fields.
//!
//! Text, number, boolean and enum members have fields of their own; any other member is entered as JSON. The arguments are validated
//! when the skill is called, not by the form. Numbers keep every digit.

use maud::{Markup, html};
use rialto_model::json::Json;
use serde_json::Value;

use crate::text;

/// Maximum number of fields in a form, and of choices in a field.
const MAX_FIELDS: usize = 60;
const MAX_CHOICES: usize = 200;

/// Prefix of the field names, so that no argument has the name of a field of the page.
const FIELD_PREFIX: &str = "arg.";

/// Name of the field with all arguments as JSON.
pub(crate) const JSON_FIELD: &str = "whole";

/// Field for one argument.
struct FormField {
    name: String,
    label: String,
    hint: String,
    kind: FormFieldKind,
    is_required: bool,
    default: String,
}

enum FormFieldKind {
    Text,
    Number,
    YesNo,
    Choice(Vec<String>),
    Json,
}

/// Fields of the form for a schema, with the previous values.
pub(crate) fn form_fields(schema: Option<&Json>, given: &[(String, String)]) -> Markup {
    let fields = schema.map(Json::value).map(|schema| read_fields(&schema)).unwrap_or_default();
    let value = |name: &str| given.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
    html! {
        @for (at, field) in fields.iter().enumerate() {
            (field_markup(field, at, value(&format!("{FIELD_PREFIX}{}", field.name))))
        }
        @if fields.is_empty() {
            div.field {
                label for="message" { "Message" }
                textarea #message name="message" { (value("message").unwrap_or_default()) }
                p.hint { "This skill has no input schema, so it receives a text." }
            }
        }
        details data-key="whole" open[value(JSON_FIELD).is_some_and(|text| !text.trim().is_empty())] {
            summary { "Arguments as JSON instead" }
            label.vh for="whole" { "Arguments as JSON" }
            textarea.mono #whole name=(JSON_FIELD) spellcheck="false" { (value(JSON_FIELD).unwrap_or_default()) }
        }
    }
}

/// Arguments from the fields; none if the skill takes a text.
pub(crate) fn read_arguments(
    schema: Option<&Json>,
    given: &[(String, String)],
) -> Result<Option<Json>, String> {
    let value =
        |name: &str| given.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value.as_str());
    let whole = value(JSON_FIELD).trim();
    if !whole.is_empty() {
        let json = Json::parse(whole).map_err(|error| format!("the arguments are not JSON: {error}"))?;
        return Ok(Some(json));
    }
    let fields = schema.map(Json::value).map(|schema| read_fields(&schema)).unwrap_or_default();
    if fields.is_empty() {
        return Ok(None);
    }
    let mut members = Vec::new();
    for field in &fields {
        let text = value(&format!("{FIELD_PREFIX}{}", field.name));
        if let Some(json) = argument(field, text)? {
            members.push(format!("{}:{json}", Json::encode(&field.name)));
        }
    }
    let object = format!("{{{}}}", members.join(","));
    Json::parse(object).map(Some).map_err(|error| error.to_string())
}

/// Text from the message field.
pub(crate) fn read_message(given: &[(String, String)]) -> &str {
    given.iter().find(|(key, _)| key == "message").map_or("", |(_, value)| value)
}

fn argument(field: &FormField, text: &str) -> Result<Option<String>, String> {
    if text.is_empty() && !(field.is_required && matches!(field.kind, FormFieldKind::Text)) {
        return Ok(None);
    }
    let wrong = |what: &str| format!("{}: \"{}\" is not {what}", field.label, text::truncate(text, 60).0);
    match &field.kind {
        FormFieldKind::Text => Ok(Some(Json::encode(text).to_string())),
        FormFieldKind::YesNo => Ok(Some(if text == "true" { "true" } else { "false" }.to_owned())),
        FormFieldKind::Choice(choices) => choices
            .iter()
            .find(|choice| *choice == text)
            .cloned()
            .map(Some)
            .ok_or_else(|| wrong("one of its values")),
        FormFieldKind::Number => {
            let json = Json::parse(text.trim()).map_err(|_| wrong("a number"))?;
            let is_number = json.get().starts_with(|c: char| c == '-' || c.is_ascii_digit());
            if is_number { Ok(Some(json.to_string())) } else { Err(wrong("a number")) }
        }
        FormFieldKind::Json => Json::parse(text)
            .map(|json| Some(json.to_string()))
            .map_err(|error| format!("{}: this is not JSON: {error}", field.label)),
    }
}

fn read_fields(schema: &Value) -> Vec<FormField> {
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let Some(properties) = schema["properties"].as_object() else { return Vec::new() };
    let field = |(name, schema): (&String, &Value)| {
        let text = |member: &str| schema[member].as_str().unwrap_or_default().to_owned();
        let title = text("title");
        FormField {
            name: name.clone(),
            label: if title.is_empty() { name.clone() } else { title },
            hint: text("description"),
            kind: field_kind(schema),
            is_required: required.contains(&name.as_str()),
            default: match &schema["default"] {
                Value::Null => String::new(),
                Value::String(text) if matches!(field_kind(schema), FormFieldKind::Text) => text.clone(),
                other => other.to_string(),
            },
        }
    };
    properties.iter().take(MAX_FIELDS).map(field).collect()
}

fn field_kind(schema: &Value) -> FormFieldKind {
    if let Some(choices) = schema["enum"].as_array() {
        return FormFieldKind::Choice(choices.iter().take(MAX_CHOICES).map(ToString::to_string).collect());
    }
    match schema["type"].as_str() {
        Some("string") => FormFieldKind::Text,
        Some("integer" | "number") => FormFieldKind::Number,
        Some("boolean") => FormFieldKind::YesNo,
        _ => FormFieldKind::Json,
    }
}

fn field_markup(field: &FormField, at: usize, given: Option<&str>) -> Markup {
    let (id, name) = (format!("arg-{at}"), format!("{FIELD_PREFIX}{}", field.name));
    let value = given.unwrap_or(&field.default);
    let hint = (!field.hint.is_empty()).then(|| format!("{id}-hint"));
    html! {
        div.field {
            label for=(id) { (text::render_line(&field.label, 120)) @if field.is_required { " " span.muted { "(required)" } } }
            @match &field.kind {
                FormFieldKind::Text if is_long(field) => textarea id=(id) name=(name) aria-describedby=[hint.as_ref()] { (value) },
                FormFieldKind::Text => input type="text" id=(id) name=(name) value=(value) aria-describedby=[hint.as_ref()];,
                FormFieldKind::Number => input type="text" inputmode="decimal" id=(id) name=(name) value=(value) aria-describedby=[hint.as_ref()];,
                FormFieldKind::YesNo => (choice(&id, &name, value, &["true".to_owned(), "false".to_owned()], hint.as_deref())),
                FormFieldKind::Choice(choices) => (choice(&id, &name, value, choices, hint.as_deref())),
                FormFieldKind::Json => textarea.mono id=(id) name=(name) spellcheck="false" placeholder="JSON" aria-describedby=[hint.as_ref()] { (value) },
            }
            @if let Some(hint) = &hint { p.hint id=(hint) { (text::render_line(&field.hint, 300)) } }
        }
    }
}

fn choice(id: &str, name: &str, value: &str, choices: &[String], hint: Option<&str>) -> Markup {
    html! {
        select id=(id) name=(name) aria-describedby=[hint] {
            option value="" { "" }
            @for choice in choices {
                option value=(choice) selected[choice == value] { (text::escape_invisible(&text::truncate(choice.trim_matches('"'), 80).0, false)) }
            }
        }
    }
}

fn is_long(field: &FormField) -> bool {
    ["text", "body", "content", "message", "prompt", "description"]
        .iter()
        .any(|word| field.name.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Json {
        Json::from(json!({
            "type": "object",
            "required": ["to"],
            "properties": {
                "to": { "type": "string", "title": "Recipient" },
                "amount": { "type": "number" },
                "urgent": { "type": "boolean" },
                "level": { "enum": ["low", 7] },
                "extra": { "type": "object" },
                "<script>": { "type": "string" },
            },
        }))
    }

    fn given(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn fields_become_arguments_and_numbers_keep_their_digits() {
        let given = given(&[
            ("arg.to", "ann"),
            ("arg.amount", "1.00000000000000000001"),
            ("arg.urgent", "false"),
            ("arg.level", "\"low\""),
            ("arg.extra", r#"{"a":[1]}"#),
        ]);
        let args = read_arguments(Some(&schema()), &given).unwrap().unwrap();
        assert_eq!(
            args.get(),
            r#"{"to":"ann","amount":1.00000000000000000001,"urgent":false,"level":"low","extra":{"a":[1]}}"#
        );
    }

    #[test]
    fn empty_fields_are_omitted_except_required_texts() {
        let args =
            read_arguments(Some(&schema()), &given(&[("arg.to", ""), ("arg.amount", "")])).unwrap().unwrap();
        assert_eq!(args.get(), r#"{"to":""}"#);
    }

    #[test]
    fn an_error_names_the_field() {
        let error =
            |name: &str, value: &str| read_arguments(Some(&schema()), &given(&[(name, value)])).unwrap_err();
        assert!(error("arg.amount", "much").contains("amount: \"much\" is not a number"));
        assert!(error("arg.level", "high").contains("one of its values"));
        assert!(error("arg.extra", "{").contains("extra: this is not JSON"));
        assert!(error(JSON_FIELD, "{").contains("not JSON"));
    }

    #[test]
    fn hostile_member_names_are_escaped() {
        let html = form_fields(Some(&schema()), &[]).into_string();
        assert!(!html.contains("<script>") && html.contains("arg.&lt;script&gt;"), "{html}");
    }

    #[test]
    fn a_skill_without_a_schema_takes_a_text() {
        assert_eq!(read_arguments(None, &given(&[("message", "hi")])), Ok(None));
        assert_eq!(read_message(&given(&[("message", "hi")])), "hi");
    }
}
