//! Workflows that run other workflows.

use rialto_model::failure::FailureKind;

use crate::fixture::WorkflowFixture;

#[tokio::test]
async fn a_workflow_runs_a_pipeline_and_uses_what_it_makes() {
    let fixture = WorkflowFixture::new().await;
    let pipeline = r#"
name: twice
kind: pipeline
steps:
  - { id: one, tool: office.echo, input_mapping: { n: $input.n } }
  - { id: two, tool: office.echo }
"#;
    fixture.add(pipeline).await;
    let text = r#"
nodes:
  inner: { type: pipeline, pipeline: twice, input: { n: "{{ $input.n }}" } }
  outer: { type: set, value: { got: "{{ nodes.inner.n }}" } }
"#;
    assert_eq!(fixture.made(text, r#"{"n": 1.50}"#).await, r#"{"got":1.50}"#);
    assert_eq!(fixture.called(), ["echo", "echo"]);
}

#[tokio::test]
async fn workflows_are_inside_each_other_only_so_deep() {
    for does in ["type: workflow, workflow: self", "type: tool, tool: \"orchestration:self\""] {
        too_deep(does).await;
    }
}

/// Runs a definition that runs itself.
async fn too_deep(does: &str) {
    let fixture = WorkflowFixture::new().await;
    fixture.add(&format!("{{ name: self, triggers: [skill], nodes: {{ a: {{ {does} }} }} }}")).await;
    let caller = fixture.caller.clone();
    let target =
        fixture.runner.definitions().resolve_target(&fixture.engine, &caller, "self", false).await.unwrap();
    let request = rialto_engine::CallRequest::skill(
        caller,
        rialto_model::call::EntryProtocol::Library,
        target,
        rialto_model::json::Json::empty_object(),
    );
    let failure = fixture
        .engine
        .calls()
        .start(request)
        .await
        .unwrap()
        .into_handle()
        .unwrap()
        .finish()
        .await
        .unwrap_err();
    assert_eq!(failure.kind, FailureKind::Invalid);
    assert!(failure.message.contains("max_depth"), "{failure}");
}
