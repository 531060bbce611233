use insta::assert_json_snapshot;
use rialto_model::{
    backing::{Backing, BackingEndpoint, BackingTransport, McpServerBacking},
    name,
};
use rialto_testkit::agents::{agent, skill, skill_with_schema};

use super::*;

fn entry(skill: Skill) -> Entry {
    let agent = Arc::new(agent("Vercel Ops", vec![skill]));
    let skill = Arc::clone(&agent.card.skills[0]);
    let id = skill.id.to_string();
    Entry {
        canonical: name::canonical(&agent.slug, &id),
        legacy: name::legacy(&agent.slug, &id),
        agent,
        skill,
    }
}

fn schema_of(own: Value) -> Value {
    let skill = skill_with_schema("x", own);
    Value::Object(schema(&agent("a", vec![skill.clone()]), &skill))
}

#[test]
fn a_skill_is_shown_as_a_tool() {
    let own = json!({
        "type": "object", "properties": { "projectId": { "type": "string" } }, "required": ["projectId"],
    });
    let skill = Skill {
        name: "Deploy".into(),
        description: "Deploys a project".into(),
        ..skill_with_schema("deploy", own)
    };
    assert_json_snapshot!(of_skill("vercel_ops.deploy".into(), &entry(skill), false));
}

#[test]
fn a_skill_without_description_and_schema_is_told_and_takes_anything() {
    let tool = of_skill("x".into(), &entry(Skill { description: " ".into(), ..skill("deploy") }), false);
    assert_eq!(tool.description.unwrap(), "Invokes the deploy skill on remote A2A agent Vercel Ops");
    assert_eq!(
        json!(tool.input_schema),
        json!({
            "type": "object",
            "properties": { "message": { "type": "string", "description": "What to ask, in words" } },
            "additionalProperties": true,
        })
    );
}

#[test]
fn a_schema_of_objects_is_taken_verbatim() {
    let own =
        json!({ "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "x-y": [1] });
    assert_eq!(schema_of(own.clone()).to_string(), own.to_string());
}

#[test]
fn a_schema_that_does_not_say_so_is_told_to_take_objects() {
    assert_eq!(schema_of(json!({ "properties": {} })), json!({ "type": "object", "properties": {} }));
    assert_eq!(schema_of(json!({ "type": ["object", "null"] })), json!({ "type": "object" }));
    assert_eq!(schema_of(json!(true)), Value::Object(anything(true)));
}

#[test]
fn a_schema_of_something_else_becomes_that_of_one_member() {
    let own =
        json!({ "type": "array", "items": { "$ref": "#/$defs/n" }, "$defs": { "n": { "type": "number" } } });
    assert_json_snapshot!(schema_of(own.clone()));
    let skill = skill_with_schema("x", own);
    let args = |text: &str| arguments(&skill, Json::parse(text).unwrap());
    assert_eq!(args(r#"{"input":[1,2]}"#).get(), "[1,2]");
    assert_eq!(args(r#"{"input":[1],"more":2}"#).get(), r#"{"input":[1],"more":2}"#);
}

#[test]
fn an_argument_that_happens_to_be_called_input_stays_where_it_is() {
    let args = Json::parse(r#"{"input": 1.0}"#).unwrap();
    assert_eq!(arguments(&skill("x"), args.clone()), args);
    let own = json!({ "type": "object", "properties": { "input": {} } });
    assert_eq!(arguments(&skill_with_schema("x", own), args.clone()), args);
}

#[test]
fn a_portable_schema_keeps_the_original_beside_it() {
    let own = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": { "place": { "$ref": "#/$defs/place", "description": "Where" } },
        "anyOf": [{ "required": ["place"] }, { "required": ["anywhere"] }],
        "$defs": { "place": { "type": "object", "properties": { "inside": { "$ref": "#/$defs/place" } } } },
    });
    let tool = of_skill("x".into(), &entry(skill_with_schema("deploy", own.clone())), true);
    assert_json_snapshot!(tool);
    let plain = of_skill("x".into(), &entry(skill("deploy")), true);
    assert_eq!(plain.meta.unwrap().get(ORIGINAL_SCHEMA_KEY), None);
}

#[test]
fn a_tool_that_is_deployed_says_what_its_results_are_and_an_agents_skill_does_not() {
    let promised = json!({ "type": "object", "properties": { "n": { "$ref": "#/$defs/n" } }, "$defs": { "n": { "type": "number" } } });
    let of = |promised: &Value, is_portable| {
        let mut skill = skill("lookup");
        skill.extra.push("outputSchema", Json::encode(promised));
        let mut entry = entry(skill);
        let listed = |entry: &Entry| {
            of_skill("lookup".into(), entry, is_portable).output_schema.map(|schema| json!(schema))
        };
        assert_eq!(listed(&entry), None);
        let via = BackingTransport::Http(BackingEndpoint {
            url: "https://desk.example.com/mcp".into(),
            headers: std::collections::BTreeMap::new(),
        });
        let server = McpServerBacking { name: "desk".into(), via, sampling: None };
        Arc::make_mut(&mut entry.agent).backing = Backing::Mcp(Arc::new(server));
        listed(&entry)
    };
    assert_eq!(of(&promised, false), Some(promised.clone()));
    let plain = json!({ "type": "object", "properties": { "n": { "type": "number" } } });
    assert_eq!(of(&promised, true), Some(plain));
    // Older clients refuse the whole list for one that is not about objects.
    assert_eq!(of(&json!({ "type": "array" }), false), None);
}
