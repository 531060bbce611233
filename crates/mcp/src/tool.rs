//! A skill, shown as a tool.

mod portable;

use std::sync::Arc;

use rialto_engine::directory::Entry;
use rialto_model::{agent::Agent, card::Skill, json::Json, media};
use rmcp::model::{JsonObject, MetaObject, Tool, ToolAnnotations};
use serde_json::{Value, json};

/// Where a tool says which skill it is, whatever it is called.
pub(crate) const CANONICAL: &str = "rialto/canonical";

/// The one argument of a skill whose own schema takes something else than an object.
const WRAPPED: &str = "input";

/// Where a tool keeps its schema when the listed one is a portable one.
const ORIGINAL: &str = "rialto/inputSchema";

/// The tool that stands for a skill, under the given name; for clients that need it, with a portable schema.
pub(crate) fn of_skill(name: String, entry: &Entry, is_portable: bool) -> Tool {
    let (skill, agent) = (&entry.skill, &entry.agent.card.name);
    let is_deployed = !entry.agent.backing.is_agent();
    let mut meta = MetaObject::new();
    meta.insert(CANONICAL.to_owned(), Value::String(entry.canonical.clone()));
    let mut schema = schema(&entry.agent, skill);
    if is_portable {
        let own = std::mem::replace(&mut schema, JsonObject::new());
        schema = portable::portable(&own);
        // That there are no members is nothing that the original would say better.
        let says_the_same = own
            .iter()
            .eq(schema.iter().filter(|(name, _)| *name != "properties" || own.contains_key("properties")));
        if !says_the_same {
            meta.insert(ORIGINAL.to_owned(), Value::Object(own));
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

/// What a tool says of itself where it is deployed, so that whoever calls it here is told as much as anywhere.
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
        Some(schema) if matches!(takes(&schema), Takes::Objects) => {
            let schema = if is_portable { portable::portable(&schema) } else { schema };
            tool.with_raw_output_schema(Arc::new(schema))
        }
        _ => tool,
    }
}

/// Whether a skill says in which shape its result is, and keeps to it: then it is told in that shape, however large it is.
///
/// A function's result was checked, and an MCP server's is passed on as it was made. No agent promises anything.
pub(crate) fn promises(agent: &Agent, skill: &Skill) -> bool {
    !agent.backing.is_agent() && skill.extra.get("outputSchema").is_some()
}

fn plain_description(skill: &Skill) -> String {
    match skill.description.trim() {
        "" => format!("Calls {}", skill.id),
        own => own.to_owned(),
    }
}

/// The arguments as the skill wants them: what [`schema`] wrapped is taken out again.
pub(crate) fn arguments(skill: &Skill, args: Json) -> Json {
    // Only a call with exactly the wrapper's member can be a wrapped one; no other call has to be looked into.
    if !args.get().contains(WRAPPED) {
        return args;
    }
    let Ok(mut members) = args.read::<serde_json::Map<String, Value>>() else { return args };
    match (members.remove(WRAPPED), members.is_empty()) {
        (Some(inner), true) if is_wrapped(skill) => Json::of(&inner),
        _ => args,
    }
}

fn description(skill: &Skill, agent: &str) -> String {
    match skill.description.trim() {
        "" => format!("Invokes the {} skill on remote A2A agent {agent}", skill.id),
        own => format!("{agent}: {own}"),
    }
}

/// The skill's own schema, verbatim if it is one that MCP allows. MCP wants arguments to be an object and the schema
/// to say so: a schema that does not say is told to, and one that wants something else becomes the schema of the one
/// member of an object.
fn schema(agent: &Agent, skill: &Skill) -> JsonObject {
    let anything = || anything(media::takes(agent, Some(skill)).text);
    let Some(own) = skill.input_schema.as_ref() else { return anything() };
    let Value::Object(mut own) = own.value() else { return anything() };
    match takes(&own) {
        Takes::Objects => {}
        Takes::Unsaid => {
            own.shift_insert(0, "type".to_owned(), json!("object"));
        }
        Takes::Others => return wrap(own),
    }
    own
}

/// What a schema says about its root.
enum Takes {
    /// `"type": "object"`.
    Objects,
    /// Objects, among others, or nothing about it.
    Unsaid,
    /// Something, but not objects.
    Others,
}

fn takes(schema: &JsonObject) -> Takes {
    match schema.get("type") {
        Some(Value::String(one)) if one == "object" => Takes::Objects,
        Some(Value::Array(some)) if some.iter().any(|one| one == "object") => Takes::Unsaid,
        Some(Value::String(_) | Value::Array(_)) => Takes::Others,
        _ => Takes::Unsaid,
    }
}

fn is_wrapped(skill: &Skill) -> bool {
    let own = skill.input_schema.as_ref().and_then(|own| own.read::<JsonObject>().ok());
    own.is_some_and(|own| matches!(takes(&own), Takes::Others))
}

/// Definitions move to the new root, where references look for them.
fn wrap(mut own: JsonObject) -> JsonObject {
    let mut outer = JsonObject::new();
    outer.insert("type".to_owned(), json!("object"));
    for definitions in ["$schema", "$defs", "definitions"] {
        if let Some(moved) = own.shift_remove(definitions) {
            outer.insert(definitions.to_owned(), moved);
        }
    }
    outer.insert("properties".to_owned(), json!({ WRAPPED: own }));
    outer.insert("required".to_owned(), json!([WRAPPED]));
    outer.insert("additionalProperties".to_owned(), json!(false));
    outer
}

/// The schema of a skill that has none: any members, and for a skill that takes text one that says what to ask.
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
