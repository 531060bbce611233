//! Published skills of definitions, and permissions to run them.

use rialto_engine::CallRequest;
use rialto_model::{
    call::{Caller, EntryProtocol},
    failure::{Failure, FailureKind},
    flow::FlowStatus,
    ids::{ProjectId, Scope},
    json::Json,
    task::Task,
};

use crate::fixture::{WorkflowFixture, made};

const PIPELINE: &str = r#"
name: summarize-and-translate
description: Summarizes a text and translates the summary
kind: pipeline
input_schema: { type: object, properties: { text: { type: string } }, required: [text] }
steps:
  - { id: summarize, tool: office.echo, input_mapping: { text: $input.text } }
  - { id: translate, tool: office.echo, input_mapping: { text: $steps.summarize.text, to: "literal:fr" } }
"#;

async fn run(fixture: &WorkflowFixture, name: &str, draft: bool, input: &str) -> Result<Task, Failure> {
    let caller = fixture.caller.clone();
    let target = fixture.runner.definitions().resolve_target(&fixture.engine, &caller, name, draft).await?;
    let request = CallRequest::skill(caller, EntryProtocol::Library, target, Json::parse(input).unwrap());
    fixture.engine.calls().start(request).await?.into_handle()?.finish().await
}

fn skills(fixture: &WorkflowFixture) -> Vec<String> {
    let directory = fixture.engine.registry().directory(&fixture.caller.scope);
    let names = directory.listed().map(|entry| format!("{} {}", entry.canonical, entry.legacy));
    names.filter(|name| !name.starts_with("office")).collect()
}

#[tokio::test]
async fn a_pipeline_in_use_is_a_skill_and_others_are_not() {
    let fixture = WorkflowFixture::new().await;
    fixture.add_as(PIPELINE, FlowStatus::Draft).await;
    assert_eq!(skills(&fixture), [""; 0]);
    let name = "summarize-and-translate";
    let refused = run(&fixture, name, false, r#"{"text": "a"}"#).await.unwrap_err();
    assert!(refused.message.contains("is a draft and runs only to be tried out"), "{refused}");
    let tried = run(&fixture, name, true, r#"{"text": "a"}"#).await.unwrap();
    assert_eq!(made(&tried), r#"{"text":"a","to":"fr"}"#);
    let book = fixture.runner.definitions();
    let set = |status| book.set_status(&fixture.engine, &fixture.caller.scope, name, status);
    set(FlowStatus::Active).await.unwrap();
    assert_eq!(skills(&fixture), ["pipeline:summarize-and-translate pipeline_summarize-and-translate"]);
    let target = fixture.engine.calls().resolve(&fixture.caller, "pipeline:summarize-and-translate").unwrap();
    let request = CallRequest::skill(
        fixture.caller.clone(),
        EntryProtocol::Library,
        target,
        Json::parse(r#"{"text":"b"}"#).unwrap(),
    );
    let done =
        fixture.engine.calls().start(request).await.unwrap().into_handle().unwrap().finish().await.unwrap();
    assert_eq!(made(&done), r#"{"text":"b","to":"fr"}"#);
    let wrong = run(&fixture, name, false, r#"{"n": 1}"#).await.unwrap_err();
    assert_eq!(wrong.kind, FailureKind::Invalid, "its schema is asked first: {wrong}");
    set(FlowStatus::Archived).await.unwrap();
    assert_eq!(skills(&fixture), [""; 0]);
    let refused = run(&fixture, name, true, r#"{"text": "a"}"#).await.unwrap_err();
    assert!(refused.message.contains("is archived and runs no more"), "{refused}");
}

#[tokio::test]
async fn a_workflow_is_a_skill_where_it_says_so() {
    let fixture = WorkflowFixture::new().await;
    fixture.add("{ name: shy, nodes: { a: { type: set, value: 1 } } }").await;
    fixture.add("{ name: bold, triggers: [skill], nodes: { a: { type: set, value: 2 } } }").await;
    assert_eq!(skills(&fixture), ["orchestration:bold orchestration_bold"]);
    assert_eq!(made(&run(&fixture, "shy", false, "{}").await.unwrap()), "1");
}

#[tokio::test]
async fn a_run_keeps_the_version_it_began_with() {
    let fixture = WorkflowFixture::new().await;
    let text = |n: u8| {
        format!(
            "{{ name: w, nodes: {{ ask: {{ type: tool, tool: office.ask }}, a: {{ type: set, value: {n}, depends_on: [ask] }} }} }}"
        )
    };
    fixture.add(&text(1)).await;
    let waits = run(&fixture, "w", false, "{}").await.unwrap();
    fixture.add(&text(2)).await;
    let scope = fixture.caller.scope.clone();
    fixture.runner.definitions().remove(&fixture.engine, &scope, "w", false).await.unwrap();
    let done = fixture.tell(&waits.head.id, rialto_model::message::Part::text("go")).await.unwrap();
    assert_eq!(made(&done), "1");
    assert_eq!(run(&fixture, "w", false, "{}").await.unwrap_err().kind, FailureKind::NotFound);
}

#[tokio::test]
async fn the_same_definition_again_is_no_new_version() {
    let fixture = WorkflowFixture::new().await;
    fixture.add(PIPELINE).await;
    fixture.add(PIPELINE).await;
    let flows = fixture.runner.definitions().list(&fixture.caller.scope).await.unwrap();
    assert_eq!(flows[0].version, 1);
}

#[tokio::test]
async fn another_project_sees_nothing_of_it() {
    let fixture = WorkflowFixture::new().await;
    fixture.add(PIPELINE).await;
    let elsewhere = Scope { project: ProjectId::from("other"), ..Scope::default() };
    let stranger = Caller { scope: elsewhere.clone(), ..fixture.caller.clone() };
    let found = fixture
        .runner
        .definitions()
        .resolve_target(&fixture.engine, &stranger, "summarize-and-translate", false)
        .await;
    assert_eq!(found.unwrap_err().kind, FailureKind::NotFound);
    assert!(fixture.runner.definitions().list(&elsewhere).await.unwrap().is_empty());
    assert!(fixture.engine.registry().directory(&elsewhere).is_empty());
}

#[tokio::test]
async fn a_definition_that_is_wrong_is_not_kept() {
    let fixture = WorkflowFixture::new().await;
    let given = rialto_workflow::run::NewDefinition {
        scope: fixture.caller.scope.clone(),
        text: "{ name: w, nodes: { a: { type: tool, tool: x, depends_on: [b] } } }".to_owned(),
        name: String::new(),
        kind: None,
        by: "ann".into(),
        token: None,
        status: None,
        configured: false,
    };
    let error = fixture.runner.definitions().add(&fixture.engine, given).await.unwrap_err();
    assert!(error.to_string().contains('b'), "{error}");
    assert!(fixture.runner.definitions().list(&fixture.caller.scope).await.unwrap().is_empty());
}
