use serde_json::{Value, json};

use super::*;

fn is_valid(text: &str) -> Result<(), String> {
    let validator = jsonschema::validator_for(&schema()).unwrap();
    let value: Value = crate::read::json(text).unwrap().value();
    let errors: Vec<String> = validator.iter_errors(&value).map(|error| error.to_string()).collect();
    if errors.is_empty() { Ok(()) } else { Err(errors.join("\n")) }
}

#[test]
fn it_is_a_schema_itself() {
    assert!(jsonschema::meta::is_valid(&schema()));
    assert_eq!(schema()["$schema"], "https://json-schema.org/draft/2020-12/schema");
}

#[test]
fn every_key_the_reader_knows_is_in_it() {
    let schema = schema();
    let has = |pointer: &str, key: &SchemaKey| {
        for name in key.spellings() {
            let property = schema.pointer(&format!("{pointer}/properties/{name}"));
            let property = property.unwrap_or_else(|| panic!("{pointer} lacks {name}"));
            let told = property.get("description").or_else(|| property.pointer("/anyOf/0/description"));
            assert!(told.is_some_and(Value::is_string), "{name} says nothing");
        }
    };
    WORKFLOW.iter().for_each(|key| has("", key));
    NODE.iter().for_each(|key| has("/$defs/node", key));
    INNER.iter().for_each(|key| has("/$defs/inner", key));
    TRIGGER.iter().for_each(|key| has("/$defs/trigger/anyOf/1", key));
    STEP.iter().for_each(|key| has("/$defs/step/anyOf/1", key));
    GROUP.iter().for_each(|key| has("/$defs/step/anyOf/2", key));
    for table in [KeyTable::Limits, KeyTable::Retry, KeyTable::Backoff] {
        table.keys().iter().for_each(|key| has(&format!("/$defs/{}", table_name(table)), key));
    }
    for sort in NODE_KINDS {
        for key in sort.keys {
            has("/$defs/node", key);
            has("/$defs/node/properties/config", key);
            has(&format!("/$defs/{}", sort.word), key);
        }
    }
}

#[test]
fn it_takes_what_the_reader_takes() {
    let right = [
        "steps: [{id: a, type: action, nodeId: agent.invoke, config: {agentCardId: x, skillId: y, args: {a: 1}}}]",
        "nodes: {a: {tool: t}, b: {tool: u, needs: a, retry: 3, timeout: 30, when: true}}",
        "steps: [{id: a, tool: t, input_mapping: {x: $input.y}}, {parallel: [{id: b, tool: t}]}]",
        "{nodes: [{id: a, over: [1], do: {tool: t}}], triggers: [manual, {cron: 0 9 * * *}], limits: {timeout: 1h30m}}",
        "nodes: [{id: 1, type: tool, name: t, args: '{{ $input }}', retry: {attempts: 2, backoff: {first: 1s, factor: 1.5}}}]",
    ];
    for text in right {
        assert_eq!(is_valid(text), Ok(()), "{text}");
    }
}

#[test]
fn it_refuses_what_the_reader_refuses() {
    let wrong = [
        "{}",
        "{nodes: [{id: a, tool: t}], steps: [{id: a, tool: t}]}",
        "nodes: [{tool: t}]",
        "nodes: [{id: a, type: agent.invok}]",
        "nodes: [{id: a, type: tool, tool: t, skill: s}]",
        "nodes: [{id: a, nodeId: tool, config: {tool: t, agent: s}}]",
        "nodes: [{id: a, tool: t, colour: red}]",
        "nodes: [{id: a, tool: t, timeout: soon}]",
        "nodes: [{id: a, tool: t, retry: 0}]",
        "nodes: [{id: a b, tool: t}]",
        "{nodes: [{id: a, tool: t}], triggers: sometimes}",
        "{nodes: [{id: a, tool: t}], kind: pipeline}",
    ];
    for text in wrong {
        assert!(is_valid(text).is_err(), "{text}");
        let source = crate::read::DefinitionSource { text, name: "x", kind: None };
        assert!(crate::read::workflow(source).is_err(), "{text}");
    }
}

#[test]
fn names_that_mean_two_things_may_be_either() {
    let schema = schema();
    let name = &schema["$defs"]["node"]["properties"]["name"];
    assert_eq!(name["anyOf"].as_array().map(Vec::len), Some(3), "{name}");
    assert_eq!(schema["properties"]["name"]["$ref"], json!("#/$defs/name"));
}

#[test]
fn every_example_is_read_and_fits() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/workflows");
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let name = path.file_stem().unwrap().to_str().unwrap();
        let source = crate::read::DefinitionSource { text: &text, name, kind: None };
        let read = crate::read::workflow(source)
            .unwrap_or_else(|problems| panic!("{}", problems.render(name, &text)));
        assert_eq!(is_valid(&text), Ok(()), "{name}");
        names.push(format!("{}: {}", read.name, read.nodes.len()));
    }
    names.sort();
    assert_eq!(names, ["code-review: 2", "dispatch-qa: 1", "release: 9", "summarize-and-translate: 2"]);
}
