//! Whole files, right and wrong.

mod any;

use std::time::Duration;

use super::*;
use crate::definition::{NodeAction, WorkflowLimits, WorkflowStatus, WorkflowTrigger};

fn read_workflow(text: &str) -> Workflow {
    let source = DefinitionSource { text, name: "the file", kind: None };
    workflow(source).unwrap_or_else(|problems| panic!("{}", problems.render("flow.yaml", text)))
}

/// All that is wrong, as `line:column: message`.
fn problem_lines(text: &str) -> Vec<String> {
    let problems = workflow(DefinitionSource { text, name: "x", kind: None }).unwrap_err();
    problems.iter().map(|problem| format!("{}: {}", problem.place, problem.message)).collect()
}

/// The only thing that is wrong, and its code.
fn only(text: &str) -> (ProblemCode, String) {
    let problems = workflow(DefinitionSource { text, name: "x", kind: None }).unwrap_err();
    assert_eq!(problems.len(), 1, "{problems}");
    let problem = problems.iter().next().unwrap();
    (problem.code, format!("{}: {}", problem.place, problem.message))
}

fn needs(workflow: &Workflow, id: &str) -> String {
    let node = workflow.node(id).unwrap_or_else(|| panic!("no {id}"));
    node.needs.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

/// The groups that a node is skipped with: `+` within one, commas between them.
fn skipped_with(workflow: &Workflow, id: &str) -> String {
    let node = workflow.node(id).unwrap_or_else(|| panic!("no {id}"));
    let group = |ids: &Vec<_>| ids.iter().map(ToString::to_string).collect::<Vec<_>>().join("+");
    node.skipped_with.iter().map(group).collect::<Vec<_>>().join(", ")
}

fn json_of(template: Option<&crate::template::JsonTemplate>) -> &str {
    template.and_then(|template| template.as_fixed()).map_or("", |json| json.get())
}

#[test]
fn the_first_example_reads_as_it_is_printed() {
    let read = read_workflow(
        r#"steps:
  - id: run-code-review
    type: action
    nodeId: agent.invoke
    config:
      agentCardId: "{{ nodes.agent-ref.agentCardId }}"
      skillId: review
      args:
        prUrl: "{{ $trigger.prUrl }}"
"#,
    );
    assert_eq!(
        (read.name.as_str(), read.kind, read.status),
        ("the-file", WorkflowKind::Workflow, WorkflowStatus::Draft)
    );
    let [agent, review] = read.nodes.as_slice() else { panic!("{:?}", read.nodes) };
    assert!(matches!(agent.action, NodeAction::AgentRef { .. }) && agent.id.as_str() == "agent-ref");
    let NodeAction::Invoke { agent, skill, args, message: None } = &review.action else {
        panic!("{review:?}")
    };
    assert_eq!(agent.references()[0].to_string(), "nodes.agent-ref.agentCardId");
    assert_eq!(json_of(skill.as_ref()), "\"review\"");
    assert_eq!(args.as_ref().unwrap().references()[0].to_string(), "$trigger.prUrl");
    assert_eq!(needs(&read, "run-code-review"), "agent-ref");
    assert_eq!(review.place, SourcePosition { line: 2, column: 5 });
}

#[test]
fn the_second_example_reads_as_it_is_printed() {
    let read = read_workflow(
        "steps:
  - id: dispatch-qa
    type: action
    nodeId: agent.dispatch
    config:
      workType: qa
      description: Run integration tests for the new feature
      requiredSkills:
        - typescript
",
    );
    let NodeAction::Dispatch { work_type, description, required_skills, .. } = &read.nodes[0].action else {
        panic!("{:?}", read.nodes)
    };
    assert_eq!(json_of(work_type.as_ref()), "\"qa\"");
    assert_eq!(json_of(description.as_ref()), "\"Run integration tests for the new feature\"");
    assert_eq!(json_of(required_skills.first()), "\"typescript\"");
}

#[test]
fn both_shapes_and_both_spellings_are_the_same() {
    let shapes = [
        "{id: a, type: agent.invoke, agent_card_id: x, skill_id: s, continue_on_failure: true}",
        "{id: a, nodeId: agent.invoke, config: {agentCardId: x, skillId: s}, continueOnFailure: true}",
        "{id: a, agent: x, skill: s, continue_on_failure: true}",
        "{id: a, type: action, node_id: agent.invoke, agentName: x, config: {skill: s}, continue_on_failure: true}",
    ];
    for shape in shapes {
        let read = read_workflow(&format!("nodes: [{shape}]"));
        let NodeAction::Invoke { agent, skill, .. } = &read.nodes[0].action else { panic!("{shape}") };
        assert_eq!((json_of(Some(agent)), json_of(skill.as_ref())), ("\"x\"", "\"s\""), "{shape}");
        assert!(read.nodes[0].goes_on_after_failure);
    }
    let listed = read_workflow("nodes: [{id: a, tool: t}, {id: b, tool: u, depends_on: a}]");
    let by_id = read_workflow("nodes: {a: {tool: t}, b: {tool: u, needs: [a]}}");
    assert_eq!(needs(&listed, "b"), needs(&by_id, "b"));
    let json = read_workflow(r#"{"nodes": {"a": {"tool": "t"}, "b": {"tool": "u", "dependsOn": ["a"]}}}"#);
    assert_eq!(needs(&json, "b"), "a");
}

/// A workflow with every sort of node and every key around them.
const ALL: &str = r#"
name: all
description: Everything there is.
status: active
input_schema: { type: object }
output: { best: "{{ nodes.each.output[0] }}" }
triggers:
  - manual
  - skill
  - { type: http, path: /hooks/all }
  - { cron: "0 9 * * MON-FRI", timezone: Europe/Berlin, input: { n: 1.00 } }
limits: { parallel: 3, timeout: 1h }
nodes:
  - { id: ref, type: agent.ref, agent: reviewer }
  - { id: ask, agent: "{{ nodes.ref.agentCardId }}", skill: review, message: "go {{ $input.n }}", timeout: 30 }
  - { id: find, capability: typescript, message: hello, retry: 3 }
  - { id: call, tool: search.web, args: { q: 12345678901234567890.10 }, retry: { attempts: 2, backoff: { first: 500ms, factor: 1.5, longest: 10s } } }
  - { id: pipe, pipeline: p, input: { x: 1 } }
  - { id: sub, workflow: w }
  - { id: check, if: '{{ nodes.ask.output.score }} > 0.5', then: [yes], else: no-way }
  - { id: yes, type: set, value: ["{{ nodes.call.hits ?? [] }}", fixed] }
  - { id: no-way, type: approval, question: "Really, {{ $input.name }}?", details: { a: 1 }, expires: 2d }
  - { id: each, over: "{{ nodes.yes.output }}", parallel: 2, do: { tool: t, args: { i: "{{ item }}", n: "{{ index }}" } } }
  - { id: last, type: set, value: 1, when: "{{ nodes.no-way.state }} == 'completed'", depends_on: [pipe, sub] }
"#;

#[test]
fn every_sort_of_node_is_read() {
    let read = read_workflow(ALL);
    assert_eq!((read.name.as_str(), read.status, read.limits.parallel), ("all", WorkflowStatus::Active, 3));
    assert_eq!(read.limits, WorkflowLimits { parallel: 3, timeout: Some(Duration::from_secs(3600)) });
    let words: Vec<_> = read.nodes.iter().map(|node| node.action.word()).collect();
    let expected = [
        "agent.ref",
        "agent.invoke",
        "agent.dispatch",
        "tool",
        "pipeline",
        "workflow",
        "condition",
        "set",
        "approval",
        "map",
        "set",
    ];
    assert_eq!(words, expected);
    let graph: Vec<_> =
        read.nodes.iter().map(|node| format!("{}: {}", node.id, needs(&read, node.id.as_str()))).collect();
    let expected = [
        "ref: ",
        "ask: ref",
        "find: ",
        "call: ",
        "pipe: ",
        "sub: ",
        "check: ask",
        "yes: check call",
        "no-way: check",
        "each: yes",
        "last: pipe sub no-way",
    ];
    assert_eq!(graph, expected);
    let ends: Vec<_> = read.ends().map(|node| node.id.as_str()).collect();
    assert_eq!(ends, ["find", "each", "last"]);
    assert_eq!(read.node("ask").unwrap().timeout, Some(Duration::from_secs(30)));
    assert_eq!(read.node("find").unwrap().retry.attempts, 3);
    assert_eq!(read.node("call").unwrap().retry.pause_after(1), Some(Duration::from_millis(500)));
    let NodeAction::Tool { args, .. } = &read.node("call").unwrap().action else { panic!() };
    assert_eq!(json_of(args.as_ref()), r#"{"q":12345678901234567890.10}"#);
    let WorkflowTrigger::Cron { schedule, input } = &read.triggers[3] else { panic!("{:?}", read.triggers) };
    assert_eq!((schedule.zone(), input.as_ref().map(Json::get)), ("Europe/Berlin", Some(r#"{"n":1.00}"#)));
    assert_eq!(read.triggers[2], WorkflowTrigger::Http { path: "hooks/all".to_owned() });
}

#[test]
fn steps_come_after_each_other_unless_they_say_otherwise() {
    let read = read_workflow(
        "
kind: workflow
steps:
  - { id: a, tool: t, when: '{{ $input.x }}' }
  - { id: b, tool: t }
  - parallel: [{ id: c, tool: t }, { id: d, tool: t, args: { x: '{{ nodes.a.x }}' } }]
  - { id: e, tool: t }
  - { id: f, tool: t, depends_on: [] }
  - { id: g, tool: t, depends_on: a }
",
    );
    let graph: Vec<_> = ["a", "b", "c", "d", "e", "f", "g"].iter().map(|id| needs(&read, id)).collect();
    assert_eq!(graph, ["", "a", "b", "b a", "c d", "", "a"]);
    let skipped: Vec<_> =
        ["a", "b", "c", "d", "e", "f", "g"].iter().map(|id| skipped_with(&read, id)).collect();
    assert_eq!(skipped, ["", "", "", "a", "", "", "a"]);
}

#[test]
fn a_node_is_skipped_with_those_it_names_or_cannot_do_without() {
    let read = read_workflow(
        r#"
nodes:
  fetch: { tool: t }
  other: { tool: t }
  check: { if: "{{ nodes.fetch.good }}", then: approve, else: refuse }
  approve: { type: approval, question: Really? }
  refuse: { tool: t }
  deploy: { tool: t, needs: approve, args: { x: "{{ nodes.fetch.x }}", y: "{{ nodes.other.y ?? 1 }}" } }
  told: { tool: t, args: { x: "{{ nodes.approve.by }} and {{ nodes.other.y }}" } }
  joined: { type: set, value: "{{ nodes.deploy ?? nodes.refuse }}" }
  fallen: { type: set, value: ["{{ nodes.deploy ?? $input.x }}", "{{ nodes.refuse.state }}"] }
"#,
    );
    assert_eq!(skipped_with(&read, "deploy"), "approve, fetch");
    assert_eq!(skipped_with(&read, "told"), "approve, other");
    assert_eq!(skipped_with(&read, "joined"), "deploy+refuse");
    assert_eq!(skipped_with(&read, "fallen"), "");
    assert_eq!(skipped_with(&read, "check"), "", "a condition has an answer whatever is missing");
}

#[test]
fn all_that_is_wrong_is_told_at_once_in_the_order_of_the_file() {
    let text = r#"name: bad name
descripton: x
limits: { parallel: 0 }
triggers: [{ cron: "61 * * * *" }, sometimes]
nodes:
  - id: a
    type: agent.invok
  - id: b
    tool: t
    timeout: soon
    depends_on: [c, bb]
    args: { x: "{{ nodes.cc.y }}", y: "{{ $triger.z }}" }
  - id: c
    type: set
    value: 1
    colour: red
  - id: c
    if: '{{ item }} = 1'
    then: d
output: "{{ nodes.zzz }}"
"#;
    let told = problem_lines(text);
    let expected = [
        "1:7: name has 1 to 64 letters, digits, \"_\" and \"-\", and begins with a letter or digit",
        "2:1: unknown key \"descripton\"; did you mean \"description\"?",
        "3:21: parallel is a whole number from 1 to 256, not 0",
        "4:20: \"61 * * * *\" is no cron pattern: ",
        "4:36: a trigger is one of manual, http, cron, skill, not \"sometimes\"",
        "7:11: unknown node type \"agent.invok\", known are agent.ref, ",
        "10:14: timeout: \"soon\" is no length of time; ",
        "11:21: there is no node \"bb\"; did you mean \"b\"?",
        "12:20: nodes.cc.y refers to an unknown node: there is no node \"cc\"; did you mean \"c\"?",
        "12:43: \"$triger\" is unknown; ",
        "16:5: unknown key \"colour\"; known are id, type, ",
        "17:5: another node is called \"c\" too, at 13:5",
        "18:21: if: expected \"and\", \"or\" or the end, found \"=\"",
        "19:11: there is no node \"d\"",
        "20:13: nodes.zzz refers to an unknown node: there is no node \"zzz\"",
    ];
    assert_eq!(told.len(), expected.len(), "{told:#?}");
    for (told, expected) in told.iter().zip(expected) {
        assert!(told.starts_with(expected), "{told}\n{expected}");
    }
}

#[test]
fn nodes_that_wait_for_each_other_are_named() {
    let circle = "nodes: {a: {tool: t, needs: c}, b: {tool: t, needs: a}, c: {tool: t, needs: b}, d: {tool: t, needs: d}}";
    let told = problem_lines(circle);
    assert_eq!(
        told,
        ["1:77: these nodes wait for each other: c → b → a → c", "1:101: \"d\" waits for itself",]
    );
    let looks = "nodes:\n  a: { tool: t, args: { x: '{{ nodes.b.x }}' } }\n  b: { tool: t, needs: a }\n";
    let (code, told) = only(looks);
    assert_eq!(code, ProblemCode::BadReference);
    let expected =
        "2:32: \"a\" refers to nodes.b.x, but \"b\" comes later (b → a); it can refer only to earlier nodes";
    assert_eq!(told, expected);
    let branch = "nodes: {a: {if: true, then: [b]}, b: {tool: t}, c: {tool: t, needs: b}}\n";
    assert_eq!(needs(&read_workflow(branch), "b"), "a");
    let (code, _) = only("nodes: {a: {if: '{{ nodes.b.x }}', then: [b]}, b: {tool: t}}");
    assert_eq!(code, ProblemCode::BadReference);
}

#[test]
fn nodes_that_can_never_run_are_told() {
    let text = "
nodes:
  check: { if: 1 < 2, then: yes, else: no }
  yes: { tool: t }
  no: { tool: t }
  behind: { tool: t, needs: no }
  joined: { tool: t, needs: [yes, behind] }
  off: { tool: t, when: false }
";
    let told = problem_lines(text);
    let expected = [
        "5:3: \"no\" can never run: \"check\" always chooses the other branch",
        "6:3: \"behind\" can never run: none of the nodes it needs can run",
        "8:3: \"off\" can never run: its \"when\" never holds",
    ];
    assert_eq!(told, expected);
}

#[test]
fn what_a_map_does_knows_its_item_and_nothing_else_does() {
    let (code, told) = only("nodes: [{id: a, type: set, value: '{{ item.x }}'}]");
    assert_eq!(
        (code, told.as_str()),
        (ProblemCode::BadReference, "1:39: there is no item.x here, only inside a map's \"do\"")
    );
    let (code, _) = only("nodes: [{id: a, over: '{{ item }}', do: {tool: t}}]");
    assert_eq!(code, ProblemCode::BadReference);
    let (_, told) = only("nodes: [{id: a, over: [1], do: {over: [1], do: {tool: t}}}]");
    assert!(told.contains("a map cannot do a map; put it into a workflow of its own"), "{told}");
    let (_, told) = only("nodes: [{id: a, over: [1], do: {tool: t, id: b}}]");
    assert!(told.contains("unknown key \"id\""), "{told}");
}

/// Files with one problem, its code, and the start of its message.
const WRONG: &[(&str, ProblemCode, &str)] = &[
    ("[1]", ProblemCode::WrongType, "1:1: a workflow is an object, not a list"),
    ("name: x", ProblemCode::MissingKey, "1:1: nothing is to be done; write \"nodes\" or \"steps\""),
    (
        "{nodes: [], name: x}",
        ProblemCode::BadValue,
        "1:9: nothing is to be done; a workflow has at least one node",
    ),
    (
        "nodes: 1",
        ProblemCode::WrongType,
        "1:8: nodes is a list, or an object of nodes by their ids, not a number",
    ),
    (
        "nodes: [{tool: t}]",
        ProblemCode::MissingKey,
        "1:9: this node has no \"id\"; others refer to it by that",
    ),
    ("nodes: [{id: a}]", ProblemCode::UnknownKind, "1:9: this node has no \"type\"; add one"),
    ("nodes: [{id: a, type: action}]", ProblemCode::MissingKey, "1:23: an action needs a \"nodeId\""),
    ("nodes: [{id: a, type: tool}]", ProblemCode::MissingKey, "1:9: a node of type tool has \"tool\""),
    (
        "nodes: [{id: a, type: tool, nodeId: set, value: 1}]",
        ProblemCode::BadValue,
        "1:9: \"nodeId\" contradicts",
    ),
    (
        "nodes: [{id: a, type: agent.dispatch, args: {}}]",
        ProblemCode::MissingKey,
        "1:9: agent.dispatch needs",
    ),
    ("nodes: [{id: a, tool: 5}]", ProblemCode::WrongType, "1:23: tool is a string, not a number"),
    (
        "nodes: [{id: a, tool: t, args: [1]}]",
        ProblemCode::WrongType,
        "1:32: args is an object, or a reference to one, not",
    ),
    (
        "nodes: [{id: a, tool: t, args: text}]",
        ProblemCode::WrongType,
        "1:32: args is an object, or a reference to one, not",
    ),
    ("nodes: [{id: a b, tool: t}]", ProblemCode::BadValue, "1:14: id has 1 to 64 letters"),
    (
        "nodes: [{id: a, tool: t, tool_name: u}]",
        ProblemCode::DuplicateKey,
        "1:26: \"tool_name\" is the same as \"tool\" at 1:17",
    ),
    (
        "nodes: [{id: a, tool: t, id: b}]",
        ProblemCode::DuplicateKey,
        "1:26: \"id\" is repeated, first at 1:10",
    ),
    ("nodes: [{id: a, tool: t, config: {tool: u}}]", ProblemCode::DuplicateKey, "1:35: \"tool\" is repeated"),
    (
        "nodes: [{id: a, tool: t, retry: {backoff: 1s}}]",
        ProblemCode::MissingKey,
        "1:33: \"retry\" needs \"attempts\"",
    ),
    ("nodes: [{id: a, tool: t, when: 5}]", ProblemCode::WrongType, "1:32: when is a string, not a number"),
    (
        "nodes: {a: {tool: t, id: b}}",
        ProblemCode::BadValue,
        "1:9: this node is named \"a\" here and differently inside",
    ),
    (
        "{nodes: [{id: a, tool: t}], steps: []}",
        ProblemCode::DuplicateKey,
        "1:9: write \"nodes\" or \"steps\", not both",
    ),
    (
        "steps: [{parallel: [{id: a, type: set, value: 1}], when: true}]",
        ProblemCode::UnknownKey,
        "1:52: a group of steps",
    ),
    (
        "{nodes: [{id: a, tool: t}], triggers: http}",
        ProblemCode::MissingKey,
        "1:39: a trigger of type http is an object",
    ),
    ("{nodes: [{id: a, tool: t}], triggers: {path: ../x}}", ProblemCode::BadValue, "1:46: path has letters"),
    (
        "{nodes: [{id: a, tool: t}], status: on}",
        ProblemCode::BadValue,
        "1:37: status is one of draft, active, archived, not",
    ),
    (
        "nodes: [{id: a, if: true, then: b}, {id: c, if: true, then: b}, {id: b, tool: t}]",
        ProblemCode::BadValue,
        "1:61: ",
    ),
];

#[test]
fn what_is_missing_or_of_another_type_is_told() {
    for (text, code, expected) in WRONG {
        let (found, told) = only(text);
        assert!(
            found == *code && told.starts_with(expected),
            "{text}\n{found:?} {told}\n{code:?} {expected}"
        );
    }
}

#[test]
fn text_that_is_no_yaml_and_no_json_says_where() {
    let (code, told) = only("nodes:\n  - id: a\n   tool: t\n");
    assert!(code == ProblemCode::Syntax && told.starts_with("3:4: this is no YAML: "), "{told}");
    let (_, told) = only("{\n  \"nodes\": [1,]\n}");
    assert!(
        told.starts_with("2:15: this is no JSON: trailing comma") || told.contains("is an object"),
        "{told}"
    );
    let (_, told) = only("{\"nodes\": [");
    assert!(told.starts_with("1:11: this is no JSON: EOF"), "{told}");
    let (_, told) = only("nodes: [{id: a, type: set, value: {{ $input.x }}}]");
    assert!(told.contains("a value that begins with {{ needs quotes"), "{told}");
    assert_eq!(only("").1, "1:1: the file is empty");
    assert!(only("a: 1\n---\nb: 1\n").1.contains("one file holds one workflow"));
    assert!(only("a: .nan").1.contains("JSON has no .nan"));
    assert!(only("a: !secret x").1.contains("unknown tag"));
}

#[test]
fn anchors_are_copied_and_bombs_are_not() {
    let read = read_workflow("nodes: {a: &a {tool: t, retry: 2}, b: *a}");
    assert_eq!(read.node("b").unwrap().retry.attempts, 2);
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
    for level in 1..12 {
        let inner = vec![format!("*a{}", level - 1); 9].join(", ");
        bomb += &format!("a{level}: &a{level} [{inner}]\n");
    }
    assert!(only(&bomb).1.ends_with("repeated aliases make the workflow too large"));
    assert!(only("a: &a [*a]").1.contains("repeats a value that contains it"));
    assert!(only(&format!("a: {}", "[".repeat(10_000))).0 == ProblemCode::Syntax);
    assert!(only(&format!("{{\"a\": {}1{}}}", "[".repeat(99), "]".repeat(99))).1.contains("at most 50 deep"));
    assert!(only(&"x".repeat(MAX_FILE_BYTES + 1)).1.contains("at most 1024 KiB"));
}

#[test]
fn yaml_becomes_json_with_every_digit() {
    let text =
        "a: 12345678901234567890.10\nb: [0.10, 1e400, 0123, '5', ~, yes, True]\nc: |\n  two\n  lines\n";
    let expected =
        r#"{"a":12345678901234567890.10,"b":[0.10,1e400,"0123","5",null,"yes",true],"c":"two\nlines\n"}"#;
    assert_eq!(json(text).unwrap().get(), expected);
    let text = r#"{"n": 1.000, "s": "\ud83d\ude00"}"#;
    assert_eq!(json(text).unwrap().get(), "{\"n\":1.000,\"s\":\"😀\"}");
}

#[test]
fn a_file_that_is_wrong_all_over_is_counted_to_the_end() {
    let nodes: String = (0..900).map(|at| format!("  n{at}: {{ tool: t }}\n")).collect();
    let references: String = (0..20_000).map(|at| format!("{{{{ nodes.m{at} }}}} ")).collect();
    let keys: String = (0..20_000).map(|at| format!("descripton{at}: 1\n")).collect();
    let text = format!("nodes:\n{nodes}output: '{references}'\n{keys}");
    let problems = workflow(DefinitionSource { text: &text, name: "x", kind: None }).unwrap_err();
    assert_eq!((problems.len(), problems.iter().count()), (40_000, 100));
}
