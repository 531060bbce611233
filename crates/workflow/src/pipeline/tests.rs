use rialto_model::json::Json;

use crate::{
    definition::{NodeAction, Workflow, WorkflowKind},
    read::{self, DefinitionSource},
    reference::ReferenceRoot,
};

fn read(text: &str) -> Workflow {
    let source = DefinitionSource { text, name: "p", kind: None };
    read::workflow(source).unwrap_or_else(|problems| panic!("{}", problems.render("p.yaml", text)))
}

fn problems(text: &str) -> String {
    read::workflow(DefinitionSource { text, name: "p", kind: Some(WorkflowKind::Pipeline) })
        .unwrap_err()
        .to_string()
}

/// Input of a step if every step outputs `{"from": <its id>}` and the input is a number with many digits.
fn given(pipeline: &Workflow, step: &str) -> String {
    let lookup = |root: &ReferenceRoot| match root {
        ReferenceRoot::Trigger => {
            Json::parse(r#"{"text":"hi","n":12345678901234567890,"list":[{"a":1.50}]}"#).ok()
        }
        ReferenceRoot::Output(id) => {
            Some(Json::encode(&serde_json::json!({ "from": id.as_str(), "output": [true] })))
        }
        _ => None,
    };
    let node = pipeline.node(step).unwrap();
    let NodeAction::Tool { args: Some(args), .. } = &node.action else { panic!("{node:?}") };
    args.render(&lookup).unwrap().get().to_owned()
}

fn needs(pipeline: &Workflow, step: &str) -> Vec<String> {
    pipeline.node(step).unwrap().needs.iter().map(ToString::to_string).collect()
}

#[test]
fn each_step_gets_what_the_one_before_has_made() {
    let pipeline = read("steps:\n- {id: a, tool: t.a}\n- {id: b, tool: t.b}\n");
    assert_eq!(pipeline.kind, WorkflowKind::Pipeline);
    assert!(given(&pipeline, "a").starts_with(r#"{"text":"hi","n":12345678901234567890"#));
    assert_eq!(given(&pipeline, "b"), r#"{"from":"a","output":[true]}"#);
    assert_eq!(needs(&pipeline, "b"), ["a"]);
    let output = pipeline.output.unwrap();
    assert_eq!(output.references().iter().map(ToString::to_string).collect::<Vec<_>>(), ["nodes.b.output"]);
}

#[test]
fn a_group_runs_at_once_and_what_it_makes_goes_on_by_the_ids() {
    let text = "
steps:
  - { id: first, tool: t }
  - parallel:
      - { id: left, tool: t }
      - { id: right, tool: t, input_mapping: { x: $steps.first.from } }
  - { id: last, tool: t }
";
    let pipeline = read(text);
    assert_eq!(needs(&pipeline, "left"), ["first"]);
    assert_eq!(needs(&pipeline, "right"), ["first"]);
    assert_eq!(needs(&pipeline, "last"), ["left", "right"]);
    assert_eq!(given(&pipeline, "left"), r#"{"from":"first","output":[true]}"#);
    assert_eq!(given(&pipeline, "right"), r#"{"x":"first"}"#);
    let made = |id: &str| format!(r#""{id}":{{"from":"{id}","output":[true]}}"#);
    assert_eq!(given(&pipeline, "last"), format!("{{{},{}}}", made("left"), made("right")));
}

#[test]
fn a_mapping_keeps_types_and_digits() {
    let text = r#"{"steps": [
        {"id": "a", "tool": "t", "input_mapping": {}},
        {"id": "b", "tool": "t", "inputMapping": {
            "n": "$input.n", "deep": "$input.list[0].a", "too": "$input.list.0.a", "all": "$steps.a", "out": "$steps.a.output[0]",
            "text": "literal:es", "five": "literal:5", "quoted": "literal:\"5\"", "list": "literal:[1.0]", "fixed": 1.000,
            "inner": {"x": ["$input.text"]}, "mixed": "say {{ $input.text }}", "brace": "literal:{{ x"
        }}
    ]}"#;
    let pipeline = read(text);
    assert_eq!(given(&pipeline, "a"), "{}");
    let expected = r#"{"n":12345678901234567890,"deep":1.50,"too":1.50,"all":{"from":"a","output":[true]},"out":true,"text":"es","five":5,"quoted":"5","list":[1.0],"fixed":1.000,"inner":{"x":["hi"]},"mixed":"say hi","brace":"{{ x"}"#;
    assert_eq!(given(&pipeline, "b"), expected);
}

#[test]
fn one_string_can_be_the_whole_input() {
    let pipeline = read("steps: [{id: a, tool: t, input_mapping: $input.list}]");
    assert_eq!(given(&pipeline, "a"), r#"[{"a":1.50}]"#);
}

#[test]
fn what_is_wrong_with_a_mapping_is_told() {
    let wrong =
        |mapping: &str| problems(&format!("steps: [{{id: a, tool: t, input_mapping: {{x: {mapping}}}}}]"));
    assert!(wrong("es").contains("\"es\" names no source of the value"));
    assert!(wrong("es").contains("literal:es"));
    assert!(wrong("$inputs.x").ends_with("did you mean \"$input\"?"));
    assert!(wrong("$steps").contains("write which one is meant"));
    assert!(wrong("$steps.b.x").contains("$steps.b.x refers to an unknown node: there is no node \"b\""));
    assert!(wrong("$steps.a.x").contains("\"a\" refers to itself"));
    assert!(wrong("$input.x y").contains("expected \".\", \"[\" or the end, found"));
}

#[test]
fn a_step_looks_only_at_those_before_it() {
    let told = problems("steps:\n- {id: a, tool: t, input_mapping: {x: $steps.b.x}}\n- {id: b, tool: t}\n");
    assert_eq!(
        told,
        "2:39: \"a\" refers to $steps.b.x, but \"b\" comes later (b → a); it can refer only to earlier nodes"
    );
}

#[test]
fn steps_of_tools_are_a_pipeline_unless_somebody_says_otherwise() {
    let kind = |text: &str| read(text).kind;
    assert_eq!(kind("steps: [{id: a, tool: t}]"), WorkflowKind::Pipeline);
    assert_eq!(kind("steps: [{parallel: [{id: a, tool: t}]}]"), WorkflowKind::Pipeline);
    assert_eq!(kind("{kind: workflow, steps: [{id: a, tool: t}]}"), WorkflowKind::Workflow);
    assert_eq!(kind("steps: [{id: a, tool: t, args: {}}]"), WorkflowKind::Workflow);
    assert_eq!(kind("nodes: [{id: a, tool: t}]"), WorkflowKind::Workflow);
    assert!(problems("nodes: [{id: a, tool: t}]").contains("a pipeline has \"steps\""));
    assert!(problems("{kind: workflow, steps: [{id: a, tool: t}]}").contains("a pipeline is wanted here"));
    assert!(problems("steps: [{tool: t}, {id: b}]").contains("a step of a pipeline has \"id\""));
}
