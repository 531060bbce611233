//! Conversion of a skill to a tool.

mod portable_schema;

use std::sync::Arc;

use rialto_engine::directory::Entry;
use rialto_model::{agent::Agent, card::Skill, json::Json, media};
use rmcp::model::{JsonObject, MetaObject, Tool, ToolAnnotations};
use serde_json::{Value, json};

/// `_meta` key with the canonical name of the skill, whatever name the tool is listed under.
pub(crate) const CANONICAL: &str = "rialto/canonical";

/// Only argument of a skill whose own schema does not accept an object.
const WRAPPED_ARG: &str = "input";

/// `_meta` key with the original schema when the listed one is portable.
const ORIGINAL_SCHEMA_KEY: &str = "rialto/inputSchema";

/// Tool of a skill, under the given name; with a portable schema for clients that need it.
pub(crate) fn of_skill(name: String, entry: &Entry, is_portable: bool) -> Tool {
    let (skill, agent) = (&entry.skill, &entry.agent.card.name);
    let is_deployed = !entry.agent.backing.is_agent();
    let mut meta = MetaObject::new();
    meta.insert(CANONICAL.to_owned(), Value::String(entry.canonical.clone()));
    let mut schema = schema(&entry.agent, skill);
    if is_portable {
        let own = std::mem::replace(&mut schema, JsonObject::new());
        schema = portable_schema::portable(&own);
        // The original schema of a skill without arguments adds nothing.
        let says_the_same = own
            .iter()
            .eq(schema.iter().filter(|(name, _)| *name != "properties" || own.contains_key("properties")));
        if !says_the_same {
            meta.insert(ORIGINAL_SCHEMA_KEY.to_owned(), Value::Object(own));
        }
    }
    let schema = Arc::new(schema);
    if is_deployed {
        let tool = Tool::new(name, plain_description(skill), schema).with_meta(meta);
        return own_words(tool, entry, is_portable);
    }
    Tool::new(name, description(skill, agent), schema)
        .with_title(format!("{} ({agent})", skill.name))
        .with_meta(meta)
}

/// Adds the upstream tool's own title and annotations, so that clients here see as much as clients of the upstream server.
fn own_words(tool: Tool, entry: &Entry, is_portable: bool) -> Tool {
    let skill = &entry.skill;
    let hints = skill.extra.get("annotations").and_then(|hints| hints.read::<ToolAnnotations>().ok());
    let tool = match hints {
        Some(hints) => tool.with_annotations(hints),
        None => tool,
    };
    let tool = if skill.name == skill.id.as_str() { tool } else { tool.with_title(skill.name.clone()) };
    let promised = skill.extra.get("outputSchema").filter(|_| promises(&entry.agent, skill));
    match promised.and_then(|schema| schema.read::<JsonObject>().ok()) {
        Some(schema) if matches!(takes(&schema), RootType::Objects) => {
            let schema = if is_portable { portable_schema::portable(&schema) } else { schema };
            tool.with_raw_output_schema(Arc::new(schema))
        }
        _ => tool,
    }
}

/// True when a skill declares its output schema and conforms to it: then its result always has that shape, however large it is.
///
/// A function's result is validated, and an MCP server's is passed on unchanged. Agents guarantee nothing.
pub(crate) fn promises(agent: &Agent, skill: &Skill) -> bool {
    !agent.backing.is_agent() && skill.extra.get("outputSchema").is_some()
}

fn plain_description(skill: &Skill) -> String {
    match skill.description.trim() {
        "" => format!("Calls {}", skill.id),
        own => own.to_owned(),
    }
}

/// Arguments in the form of the skill's own schema: undoes the wrapping by [`schema`].
pub(crate) fn arguments(skill: &Skill, args: Json) -> Json {
    // Only a call with exactly the wrapper's member can be wrapped; other calls are not parsed.
    if !args.get().contains(WRAPPED_ARG) {
        return args;
    }
    let Ok(mut members) = args.read::<serde_json::Map<String, Value>>() else { return args };
    match (members.remove(WRAPPED_ARG), members.is_empty()) {
        (Some(inner), true) if is_wrapped(skill) => Json::encode(&inner),
        _ => args,
    }
}

fn description(skill: &Skill, agent: &str) -> String {
    match skill.description.trim() {
        "" => format!("Invokes the {} skill on remote A2A agent {agent}", skill.id),
        own => format!("{agent}: {own}"),
    }
}

/// The skill's own schema, unchanged if MCP allows it. MCP requires an object schema with `"type": "object"`: the type is added where it
/// is missing, and a schema for anything else becomes the schema of a member.
fn schema(agent: &Agent, skill: &Skill) -> JsonObject {
    let anything = || anything(media::argument_forms(agent, Some(skill)).text);
    let Some(own) = skill.input_schema.as_ref() else { return anything() };
    let Value::Object(mut own) = own.value() else { return anything() };
    match takes(&own) {
        RootType::Objects => {}
        RootType::Unsaid => {
            own.shift_insert(0, "type".to_owned(), json!("object"));
        }
        RootType::Others => return wrap(own),
    }
    own
}

/// Types that a schema accepts at its root.
enum RootType {
    /// `"type": "object"`.
    Objects,
    /// Objects and other types, or unspecified.
    Unsaid,
    /// Other types only.
    Others,
}

fn takes(schema: &JsonObject) -> RootType {
    match schema.get("type") {
        Some(Value::String(one)) if one == "object" => RootType::Objects,
        Some(Value::Array(some)) if some.iter().any(|one| one == "object") => RootType::Unsaid,
        Some(Value::String(_) | Value::Array(_)) => RootType::Others,
        _ => RootType::Unsaid,
    }
}

fn is_wrapped(skill: &Skill) -> bool {
    let own = skill.input_schema.as_ref().and_then(|own| own.read::<JsonObject>().ok());
    own.is_some_and(|own| matches!(takes(&own), RootType::Others))
}

/// Definitions move to the new root, so that references still resolve.
fn wrap(mut own: JsonObject) -> JsonObject {
    let mut outer = JsonObject::new();
    outer.insert("type".to_owned(), json!("object"));
    for definitions in ["$schema", "$defs", "definitions"] {
        if let Some(moved) = own.shift_remove(definitions) {
            outer.insert(definitions.to_owned(), moved);
        }
    }
    outer.insert("properties".to_owned(), json!({ WRAPPED_ARG: own }));
    outer.insert("required".to_owned(), json!([WRAPPED_ARG]));
    outer.insert("additionalProperties".to_owned(), json!(false));
    outer
}

/// Schema for a skill without one: any members, and for a skill that accepts text a member for the text.
fn anything(takes_text: bool) -> JsonObject {
    let mut schema = JsonObject::new();
    schema.insert("type".to_owned(), json!("object"));
    if takes_text {
        let message = json!({ "type": "string", "description": "What to ask, in words" });
        schema.insert("properties".to_owned(), json!({ "message": message }));
    }
    schema.insert("additionalProperties".to_owned(), json!(true));
    schema
}

#[cfg(test)]
mod tests;
