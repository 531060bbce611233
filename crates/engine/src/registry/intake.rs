//! Cleans a card or a list of tools before it is used: the one place where texts and schemas of others come in.
//!
//! Hidden characters are removed from every text that people and models read, and a schema that is too large or too complex is replaced
//! by one that allows any object, so that its skill can still be called. Skills whose id hides something are left out: an id is sent
//! back to its agent, so it cannot be changed. Each change is a warning that is kept with the card.

use rialto_model::{
    card::{Card, Skill, WARNINGS},
    hidden_text::{self, HiddenCharacters},
    json::{Extra, Json},
};
use serde_json::{Map, Value, json};

use crate::schema::check_bounds;

/// Members of a card that are not texts: addresses, and what is signed.
const NOT_TEXTS: [&str; 9] = [
    "id",
    "url",
    "signatures",
    "supportedInterfaces",
    "additionalInterfaces",
    "securitySchemes",
    "security",
    "securityRequirements",
    "protocolVersion",
];
/// Members of a skill that are schemas.
const SCHEMAS: [&str; 2] = ["inputSchema", "outputSchema"];
/// Keywords of a schema whose strings are only read, never compared with anything.
const SCHEMA_TEXTS: [&str; 8] = [
    "title",
    "description",
    "$comment",
    "examples",
    "example",
    "enumDescriptions",
    "markdownDescription",
    "deprecationMessage",
];
/// At most so many warnings are kept with a card.
const MAX_WARNINGS: usize = 20;

/// Warnings about one card.
#[derive(Default)]
struct Warnings {
    kept: Vec<String>,
    left_out: usize,
}

/// A schema cannot be cleaned without changing what it says.
struct Unusable;

/// The card as it is used, with warnings about what was changed. A card that needs no change is the same, to the byte.
pub(super) fn clean_card(mut card: Card) -> Card {
    let mut warnings = Warnings::default();
    let may_hide =
        !card.raw.get().is_ascii() || card.raw.get().contains("\\u") || card.raw.get().contains(WARNINGS);
    if !may_hide && card.skills.iter().all(|skill| has_bounded_schemas(skill)) {
        return card;
    }
    let mut raw = card.raw.value();
    if let Some(members) = raw.as_object_mut() {
        members.remove(WARNINGS);
        clean_raw(members, &mut warnings);
    }
    if warnings.is_empty() {
        // Nobody but us says what we warn of.
        if card.raw.get().contains(WARNINGS) {
            card.raw = Json::encode(&raw);
        }
        return card;
    }
    clean_text(&mut card.name);
    if card.name.trim().is_empty() {
        "unnamed".clone_into(&mut card.name);
    }
    clean_text(&mut card.description);
    let kept = card.skills.iter().filter(|skill| hidden_text::strip(skill.id.as_str()).is_none());
    card.skills = kept.map(|skill| clean_skill(Skill::clone(skill)).into()).collect();
    if let Some(members) = raw.as_object_mut() {
        members.insert("name".to_owned(), json!(card.name));
        members.insert(WARNINGS.to_owned(), warnings.into_value());
    }
    card.raw = Json::encode(&raw);
    card
}

fn clean_skill(mut skill: Skill) -> Skill {
    let texts = [&mut skill.name, &mut skill.description].into_iter();
    texts.chain(&mut skill.tags).chain(&mut skill.examples).for_each(clean_text);
    if let Some(schema) = &skill.input_schema {
        let mut value = schema.value();
        if clean_schema(&mut value, &mut Warnings::default(), "") {
            skill.input_schema = Some(Json::encode(&value));
        }
    }
    let extra = skill.extra.iter().map(|(name, value)| {
        let mut cleaned = value.value();
        let is_changed = if SCHEMAS.contains(&name) {
            clean_schema(&mut cleaned, &mut Warnings::default(), "")
        } else {
            clean_value(&mut cleaned).count > 0
        };
        (name.to_owned(), if is_changed { Json::encode(&cleaned) } else { value.clone() })
    });
    skill.extra = extra.collect::<Extra>();
    skill
}

/// Cleans the card's own JSON, and warns of what was changed.
fn clean_raw(card: &mut Map<String, Value>, warnings: &mut Warnings) {
    if let Some(Value::Array(skills)) = card.get_mut("skills") {
        skills.retain(|skill| {
            let id = skill.get("id").and_then(Value::as_str).unwrap_or_default();
            let hidden = hidden_text::strip(id);
            if let Some((visible, hidden)) = &hidden {
                warnings.add(format!("skill \"{visible}\" was left out: its id has {hidden}"));
            }
            hidden.is_none()
        });
        for skill in skills.iter_mut().filter_map(Value::as_object_mut) {
            let of = format!("skill \"{}\"", skill.get("id").and_then(Value::as_str).unwrap_or_default());
            clean_members(skill, &of, warnings);
        }
    }
    let skills = card.get_mut("skills").map(Value::take);
    clean_members(card, "card", warnings);
    if let (Some(place), Some(skills)) = (card.get_mut("skills"), skills) {
        *place = skills;
    }
}

fn clean_members(members: &mut Map<String, Value>, of: &str, warnings: &mut Warnings) {
    for (name, value) in members.iter_mut() {
        if SCHEMAS.contains(&name.as_str()) {
            clean_schema(value, warnings, &format!("{name} of {of}"));
        } else if !NOT_TEXTS.contains(&name.as_str()) {
            let hidden = clean_value(value);
            if hidden.count > 0 {
                warnings.add(format!("{name} of {of}: {hidden} removed"));
            }
        }
    }
}

/// Cleans a schema's texts, or replaces the schema; answers whether it was changed.
fn clean_schema(schema: &mut Value, warnings: &mut Warnings, of: &str) -> bool {
    let mut hidden = HiddenCharacters::default();
    let why = match clean_subschema(schema, &mut hidden) {
        Err(Unusable) => "names or values in it have hidden characters".to_owned(),
        Ok(()) => match check_bounds(&Json::encode(schema)) {
            Err(why) => why,
            Ok(()) => {
                if hidden.count > 0 {
                    warnings.add(format!("{of}: {hidden} removed"));
                }
                return hidden.count > 0;
            }
        },
    };
    warnings.add(format!("{of} is not used, any object is accepted: {why}"));
    *schema = json!({ "type": "object" });
    true
}

fn clean_subschema(value: &mut Value, hidden: &mut HiddenCharacters) -> Result<(), Unusable> {
    match value {
        Value::String(text) if hidden_text::strip(text).is_some() => Err(Unusable),
        Value::Array(items) => items.iter_mut().try_for_each(|item| clean_subschema(item, hidden)),
        Value::Object(members) => members.iter_mut().try_for_each(|(name, member)| {
            if hidden_text::strip(name).is_some() {
                return Err(Unusable);
            }
            // A property may be called like a keyword: then it is a schema, not a text.
            if SCHEMA_TEXTS.contains(&name.as_str()) && !member.is_object() {
                hidden.add(&clean_value(member));
                return Ok(());
            }
            clean_subschema(member, hidden)
        }),
        _ => Ok(()),
    }
}

/// Cleans every string, and answers what was removed.
fn clean_value(value: &mut Value) -> HiddenCharacters {
    let mut hidden = HiddenCharacters::default();
    match value {
        Value::String(text) => {
            if let Some((visible, found)) = hidden_text::strip(text) {
                *text = visible;
                hidden.add(&found);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| hidden.add(&clean_value(item))),
        Value::Object(members) => {
            let is_hiding = |name: &str| hidden_text::strip(name).is_some();
            if members.keys().any(|name| is_hiding(name)) {
                let all = std::mem::take(members);
                for (name, member) in all {
                    let stripped = hidden_text::strip(&name);
                    stripped.iter().for_each(|(_, found)| hidden.add(found));
                    members.insert(stripped.map_or(name, |(visible, _)| visible), member);
                }
            }
            members.values_mut().for_each(|member| hidden.add(&clean_value(member)));
        }
        _ => {}
    }
    hidden
}

fn clean_text(text: &mut String) {
    if let Some((visible, _)) = hidden_text::strip(text) {
        *text = visible;
    }
}

fn has_bounded_schemas(skill: &Skill) -> bool {
    let output = skill.extra.get("outputSchema");
    skill.input_schema.iter().chain(output).all(|schema| check_bounds(schema).is_ok())
}

// === impl Warnings ===

impl Warnings {
    fn add(&mut self, warning: String) {
        if self.kept.len() < MAX_WARNINGS {
            self.kept.push(warning);
        } else {
            self.left_out += 1;
        }
    }

    const fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    fn into_value(mut self) -> Value {
        if self.left_out > 0 {
            self.kept.push(format!("and {} more", self.left_out));
        }
        json!(self.kept)
    }
}

#[cfg(test)]
mod tests {
    use rialto_model::backing;

    use super::*;

    fn cleaned(card: &Value) -> Card {
        clean_card(parse_card(&card.to_string()))
    }

    /// Reads a card as the A2A client does, as far as these tests need it.
    fn parse_card(text: &str) -> Card {
        let raw = Json::parse(text).unwrap();
        let value = raw.value();
        let words = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let list = |value: &Value| value.as_array().into_iter().flatten().map(words).collect::<Vec<_>>();
        let skill = |told: &Value| Skill {
            tags: list(&told["tags"]),
            examples: list(&told["examples"]),
            input_schema: told.get("inputSchema").map(Json::encode),
            extra: ["outputSchema", "annotations"]
                .into_iter()
                .filter_map(|name| Some((name.to_owned(), Json::encode(told.get(name)?))))
                .collect(),
            ..backing::skill(&words(&told["id"]), &words(&told["name"]), &words(&told["description"]))
        };
        let skills = value["skills"].as_array().unwrap().iter().map(skill).collect();
        Card { raw, ..backing::card(&words(&value["name"]), &words(&value["description"]), None, skills) }
    }

    #[test]
    fn a_card_without_hidden_characters_is_the_same_to_the_byte() {
        for text in [
            r#"{"name":"Ops 🚀","description":"می‌خواهم \u00e4","skills":[{"id":"a","name":"a","inputSchema":{"maximum":1.10,"description":"❤️"}}]}"#,
            r#"{"name":"a","skills":[{"id":"s","inputSchema":{"type":"object"}}]}"#,
        ] {
            let card = parse_card(text);
            let cleaned = clean_card(card.clone());
            assert_eq!(cleaned.raw.get(), card.raw.get());
            assert_eq!(cleaned, card);
            assert!(cleaned.warnings().is_empty());
        }
    }

    #[test]
    fn hidden_characters_leave_every_text_and_are_warned_of() {
        let tags = "\u{E0069}\u{E0067}\u{E006E}";
        let card = cleaned(&json!({
            "name": format!("O\u{200B}ps{tags}"), "description": format!("Runs things.{tags}"),
            "provider": { "organization": format!("A{tags}") },
            "skills": [{
                "id": "run", "name": "R\u{202E}un", "description": format!("Runs.{tags}"),
                "tags": ["t\u{AD}ag"], "examples": ["do\u{2066} it"],
                "inputSchema": {
                    "title": "a\u{200B}",
                    "properties": { "title": { "description": format!("The title.{tags}"), "examples": ["x\u{200B}"] } }
                },
                "annotations": { "title": format!("Run{tags}") }
            }]
        }));
        let everything = format!("{card:?}");
        for hidden in ['\u{200B}', '\u{202E}', '\u{AD}', '\u{2066}', '\u{E0069}'] {
            let escaped = format!("u{{{:x}}}", u32::from(hidden));
            assert!(
                !everything.contains(hidden) && !everything.contains(&escaped),
                "{escaped}: {everything}"
            );
        }
        assert_eq!((card.name.as_str(), card.skills[0].name.as_str()), ("Ops", "Run"));
        let schema = card.skills[0].input_schema.as_ref().unwrap().value();
        assert_eq!(schema["properties"]["title"]["description"], "The title.");
        let warnings = card.warnings();
        assert!(
            warnings.iter().any(|warning| warning.starts_with("description of card: 3 hidden")),
            "{warnings:?}"
        );
        assert!(
            warnings.iter().any(|warning| warning.contains("inputSchema of skill \"run\"")),
            "{warnings:?}"
        );
        let again = clean_card(parse_card(card.raw.get()));
        assert!(again.warnings().is_empty(), "the warnings are ours to make");
    }

    #[test]
    fn an_id_that_hides_something_is_left_out_and_a_name_in_a_schema_opens_it() {
        let card = cleaned(&json!({
            "name": "a",
            "skills": [
                { "id": "good", "inputSchema": { "properties": { "a\u{200B}": {} } } },
                { "id": "ba\u{200B}d" }
            ]
        }));
        assert_eq!(card.skills.iter().map(|skill| skill.id.as_str()).collect::<Vec<_>>(), ["good"]);
        assert_eq!(card.skills[0].input_schema.as_ref().unwrap().get(), r#"{"type":"object"}"#);
        assert_eq!(card.warnings().len(), 2, "{:?}", card.warnings());
        assert_eq!(parse_card(card.raw.get()).skills.len(), 1, "also when it is read again");
    }

    #[test]
    fn a_schema_that_explodes_is_replaced_and_its_skill_stays() {
        let mut defs = Map::new();
        for level in 0..40 {
            let next = json!({ "$ref": format!("#/$defs/d{}", level + 1) });
            defs.insert(format!("d{level}"), json!({ "allOf": [next, next] }));
        }
        defs.insert("d40".to_owned(), json!({}));
        let bomb = json!({ "$ref": "#/$defs/d0", "$defs": defs });
        let card = cleaned(
            &json!({ "name": "a", "skills": [{ "id": "s", "inputSchema": bomb, "outputSchema": bomb }] }),
        );
        let skill = &card.skills[0];
        assert_eq!(skill.input_schema.as_ref().unwrap().get(), r#"{"type":"object"}"#);
        assert_eq!(skill.extra.get("outputSchema").unwrap().get(), r#"{"type":"object"}"#);
        let warnings = card.warnings();
        assert!(
            warnings[0].contains("any object is accepted") && warnings[0].contains("evaluations"),
            "{warnings:?}"
        );
        let large = json!({ "description": "x".repeat(600_000) });
        let card = cleaned(&json!({ "name": "a", "skills": [{ "id": "s", "inputSchema": large }] }));
        assert!(card.warnings()[0].contains("524288 are allowed"), "{:?}", card.warnings());
    }
}
