//! Definitions that run others.

use rialto_model::failure::FailureKind;

use crate::house::House;

#[tokio::test]
async fn a_workflow_runs_a_pipeline_and_uses_what_it_makes() {
    let house = House::new().await;
    let pipeline = r#"
name: twice
kind: pipeline
steps:
  - { id: one, tool: office.echo, input_mapping: { n: $input.n } }
  - { id: two, tool: office.echo }
"#;
    house.add(pipeline).await;
    let text = r#"
nodes:
  inner: { type: pipeline, pipeline: twice, input: { n: "{{ $input.n }}" } }
  outer: { type: set, value: { got: "{{ nodes.inner.n }}" } }
"#;
    assert_eq!(house.made(text, r#"{"n": 1.50}"#).await, r#"{"got":1.50}"#);
    assert_eq!(house.called(), ["echo", "echo"]);
}

#[tokio::test]
async fn workflows_are_inside_each_other_only_so_deep() {
    for does in ["type: workflow, workflow: self", "type: tool, tool: \"orchestration:self\""] {
        too_deep(does).await;
    }
}

/// Runs a definition that runs itself.
async fn too_deep(does: &str) {
    let house = House::new().await;
    house.add(&format!("{{ name: self, triggers: [skill], nodes: {{ a: {{ {does} }} }} }}")).await;
    let caller = house.caller.clone();
    let target = house.runner.book().target_of(&house.engine, &caller, "self", false).await.unwrap();
    let request = rialto_engine::Request::skill(
        caller,
        rialto_model::call::EntryProtocol::Library,
        target,
        rialto_model::json::Json::empty_object(),
    );
    let failure = house.engine.call(request).await.unwrap().finish().await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Invalid);
    assert!(failure.message.contains("max_depth"), "{failure}");
}
