//! A form made from a skill's schema, and the arguments that it was filled in with.
//!
//! A form knows what most people need: texts, numbers, yes or no, a choice. Whatever else a schema asks for is written as JSON. The
//! schema itself decides when the skill is called, not the form; numbers keep every digit that was typed.

use maud::{Markup, html};
use rialto_model::json::Json;
use serde_json::Value;

use crate::text;

/// So many fields are in a form at most, and so many choices in a field.
const FIELDS: usize = 60;
const CHOICES: usize = 200;

/// What stands before the name of each field, so that no skill can name one of ours.
const PREFIX: &str = "arg.";

/// The field that holds all arguments as JSON.
pub(crate) const WHOLE: &str = "whole";

/// One argument.
struct Field {
    name: String,
    label: String,
    hint: String,
    kind: Kind,
    is_required: bool,
    default: String,
}

enum Kind {
    Text,
    Number,
    YesNo,
    Choice(Vec<String>),
    Json,
}

/// The form's fields for a schema, as they were filled in.
pub(crate) fn fields(schema: Option<&Json>, given: &[(String, String)]) -> Markup {
    let fields = schema.map(Json::value).map(|schema| read_fields(&schema)).unwrap_or_default();
    let value = |name: &str| given.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
    html! {
        @for (at, field) in fields.iter().enumerate() {
            (shown(field, at, value(&format!("{PREFIX}{}", field.name))))
        }
        @if fields.is_empty() {
            div.field {
                label for="message" { "Message" }
                textarea #message name="message" { (value("message").unwrap_or_default()) }
                p.hint { "This skill does not say what it takes, so it is sent a text." }
            }
        }
        details data-key="whole" open[value(WHOLE).is_some_and(|text| !text.trim().is_empty())] {
            summary { "Arguments as JSON instead" }
            label.vh for="whole" { "Arguments as JSON" }
            textarea.mono #whole name=(WHOLE) spellcheck="false" { (value(WHOLE).unwrap_or_default()) }
        }
    }
}

/// The arguments that were filled in; none where a text is to be sent.
pub(crate) fn read(schema: Option<&Json>, given: &[(String, String)]) -> Result<Option<Json>, String> {
    let value =
        |name: &str| given.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value.as_str());
    let whole = value(WHOLE).trim();
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
        let text = value(&format!("{PREFIX}{}", field.name));
        if let Some(json) = argument(field, text)? {
            members.push(format!("{}:{json}", Json::encode(&field.name)));
        }
    }
    let object = format!("{{{}}}", members.join(","));
    Json::parse(object).map(Some).map_err(|error| error.to_string())
}

/// What was said in words, where a text is to be sent.
pub(crate) fn message(given: &[(String, String)]) -> &str {
    given.iter().find(|(key, _)| key == "message").map_or("", |(_, value)| value)
}

fn argument(field: &Field, text: &str) -> Result<Option<String>, String> {
    if text.is_empty() && !(field.is_required && matches!(field.kind, Kind::Text)) {
        return Ok(None);
    }
    let wrong = |what: &str| format!("{}: \"{}\" is not {what}", field.label, text::cut(text, 60).0);
    match &field.kind {
        Kind::Text => Ok(Some(Json::encode(text).to_string())),
        Kind::YesNo => Ok(Some(if text == "true" { "true" } else { "false" }.to_owned())),
        Kind::Choice(choices) => choices
            .iter()
            .find(|choice| *choice == text)
            .cloned()
            .map(Some)
            .ok_or_else(|| wrong("one of its values")),
        Kind::Number => {
            let json = Json::parse(text.trim()).map_err(|_| wrong("a number"))?;
            let is_number = json.get().starts_with(|c: char| c == '-' || c.is_ascii_digit());
            if is_number { Ok(Some(json.to_string())) } else { Err(wrong("a number")) }
        }
        Kind::Json => Json::parse(text)
            .map(|json| Some(json.to_string()))
            .map_err(|error| format!("{}: this is not JSON: {error}", field.label)),
    }
}

fn read_fields(schema: &Value) -> Vec<Field> {
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let Some(properties) = schema["properties"].as_object() else { return Vec::new() };
    let field = |(name, schema): (&String, &Value)| {
        let text = |member: &str| schema[member].as_str().unwrap_or_default().to_owned();
        let title = text("title");
        Field {
            name: name.clone(),
            label: if title.is_empty() { name.clone() } else { title },
            hint: text("description"),
            kind: kind_of(schema),
            is_required: required.contains(&name.as_str()),
            default: match &schema["default"] {
                Value::Null => String::new(),
                Value::String(text) if matches!(kind_of(schema), Kind::Text) => text.clone(),
                other => other.to_string(),
            },
        }
    };
    properties.iter().take(FIELDS).map(field).collect()
}

fn kind_of(schema: &Value) -> Kind {
    if let Some(choices) = schema["enum"].as_array() {
        return Kind::Choice(choices.iter().take(CHOICES).map(ToString::to_string).collect());
    }
    match schema["type"].as_str() {
        Some("string") => Kind::Text,
        Some("integer" | "number") => Kind::Number,
        Some("boolean") => Kind::YesNo,
        _ => Kind::Json,
    }
}

fn shown(field: &Field, at: usize, given: Option<&str>) -> Markup {
    let (id, name) = (format!("arg-{at}"), format!("{PREFIX}{}", field.name));
    let value = given.unwrap_or(&field.default);
    let hint = (!field.hint.is_empty()).then(|| format!("{id}-hint"));
    html! {
        div.field {
            label for=(id) { (text::line(&field.label, 120)) @if field.is_required { " " span.muted { "(required)" } } }
            @match &field.kind {
                Kind::Text if is_long(field) => textarea id=(id) name=(name) aria-describedby=[hint.as_ref()] { (value) },
                Kind::Text => input type="text" id=(id) name=(name) value=(value) aria-describedby=[hint.as_ref()];,
                Kind::Number => input type="text" inputmode="decimal" id=(id) name=(name) value=(value) aria-describedby=[hint.as_ref()];,
                Kind::YesNo => (choice(&id, &name, value, &["true".to_owned(), "false".to_owned()], hint.as_deref())),
                Kind::Choice(choices) => (choice(&id, &name, value, choices, hint.as_deref())),
                Kind::Json => textarea.mono id=(id) name=(name) spellcheck="false" placeholder="JSON" aria-describedby=[hint.as_ref()] { (value) },
            }
            @if let Some(hint) = &hint { p.hint id=(hint) { (text::line(&field.hint, 300)) } }
        }
    }
}

fn choice(id: &str, name: &str, value: &str, choices: &[String], hint: Option<&str>) -> Markup {
    html! {
        select id=(id) name=(name) aria-describedby=[hint] {
            option value="" { "" }
            @for choice in choices {
                option value=(choice) selected[choice == value] { (text::visible(&text::cut(choice.trim_matches('"'), 80).0, false)) }
            }
        }
    }
}

fn is_long(field: &Field) -> bool {
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
    fn what_was_filled_in_becomes_arguments_and_numbers_keep_their_digits() {
        let given = given(&[
            ("arg.to", "ann"),
            ("arg.amount", "1.00000000000000000001"),
            ("arg.urgent", "false"),
            ("arg.level", "\"low\""),
            ("arg.extra", r#"{"a":[1]}"#),
        ]);
        let args = read(Some(&schema()), &given).unwrap().unwrap();
        assert_eq!(
            args.get(),
            r#"{"to":"ann","amount":1.00000000000000000001,"urgent":false,"level":"low","extra":{"a":[1]}}"#
        );
    }

    #[test]
    fn what_was_left_empty_is_left_out_unless_it_is_a_text_that_is_required() {
        let args = read(Some(&schema()), &given(&[("arg.to", ""), ("arg.amount", "")])).unwrap().unwrap();
        assert_eq!(args.get(), r#"{"to":""}"#);
    }

    #[test]
    fn trouble_names_the_field() {
        let told = |name: &str, value: &str| read(Some(&schema()), &given(&[(name, value)])).unwrap_err();
        assert!(told("arg.amount", "much").contains("amount: \"much\" is not a number"));
        assert!(told("arg.level", "high").contains("one of its values"));
        assert!(told("arg.extra", "{").contains("extra: this is not JSON"));
        assert!(told(WHOLE, "{").contains("not JSON"));
    }

    #[test]
    fn a_form_of_hostile_names_is_still_a_form() {
        let html = fields(Some(&schema()), &[]).into_string();
        assert!(!html.contains("<script>") && html.contains("arg.&lt;script&gt;"), "{html}");
    }

    #[test]
    fn without_a_schema_a_text_is_sent() {
        assert_eq!(read(None, &given(&[("message", "hi")])), Ok(None));
        assert_eq!(message(&given(&[("message", "hi")])), "hi");
    }
}
