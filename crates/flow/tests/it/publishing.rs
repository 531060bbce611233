//! What is published of definitions, and who may run what.

use rialto_engine::Request;
use rialto_model::{
    call::{Caller, EntryProtocol},
    failure::{Failure, FailureKind},
    flow::FlowStatus,
    ids::{ProjectId, Scope},
    json::Json,
    task::Task,
};

use crate::house::{House, made};

const PIPELINE: &str = r#"
name: summarize-and-translate
description: Summarizes a text and translates the summary
kind: pipeline
input_schema: { type: object, properties: { text: { type: string } }, required: [text] }
steps:
  - { id: summarize, tool: office.echo, input_mapping: { text: $input.text } }
  - { id: translate, tool: office.echo, input_mapping: { text: $steps.summarize.text, to: "literal:fr" } }
"#;

async fn run(house: &House, name: &str, draft: bool, input: &str) -> Result<Task, Failure> {
    let caller = house.caller.clone();
    let target = house.runner.book().target_of(&house.engine, &caller, name, draft).await?;
    let request = Request::skill(caller, EntryProtocol::Library, target, Json::parse(input).unwrap());
    house.engine.call(request).await?.finish().await
}

fn skills(house: &House) -> Vec<String> {
    let directory = house.engine.registry().directory(&house.caller.scope);
    let names = directory.listed().map(|entry| format!("{} {}", entry.canonical, entry.legacy));
    names.filter(|name| !name.starts_with("office")).collect()
}

#[tokio::test]
async fn a_pipeline_in_use_is_a_skill_and_others_are_not() {
    let house = House::new().await;
    house.add_as(PIPELINE, FlowStatus::Draft).await;
    assert_eq!(skills(&house), [""; 0]);
    let name = "summarize-and-translate";
    let refused = run(&house, name, false, r#"{"text": "a"}"#).await.unwrap_err();
    assert!(refused.message.contains("is a draft and runs only to be tried out"), "{refused}");
    let tried = run(&house, name, true, r#"{"text": "a"}"#).await.unwrap();
    assert_eq!(made(&tried), r#"{"text":"a","to":"fr"}"#);
    let book = house.runner.book();
    let set = |status| book.set_status(&house.engine, &house.caller.scope, name, status);
    set(FlowStatus::Active).await.unwrap();
    assert_eq!(skills(&house), ["pipeline:summarize-and-translate pipeline_summarize-and-translate"]);
    let target = house.engine.resolve(&house.caller, "pipeline:summarize-and-translate").unwrap();
    let request = Request::skill(
        house.caller.clone(),
        EntryProtocol::Library,
        target,
        Json::parse(r#"{"text":"b"}"#).unwrap(),
    );
    let done = house.engine.call(request).await.unwrap().finish().await.unwrap();
    assert_eq!(made(&done), r#"{"text":"b","to":"fr"}"#);
    let wrong = run(&house, name, false, r#"{"n": 1}"#).await.unwrap_err();
    assert_eq!(wrong.kind, FailureKind::Invalid, "its schema is asked first: {wrong}");
    set(FlowStatus::Archived).await.unwrap();
    assert_eq!(skills(&house), [""; 0]);
    let refused = run(&house, name, true, r#"{"text": "a"}"#).await.unwrap_err();
    assert!(refused.message.contains("is archived and runs no more"), "{refused}");
}

#[tokio::test]
async fn a_workflow_is_a_skill_where_it_says_so() {
    let house = House::new().await;
    house.add("{ name: shy, nodes: { a: { type: set, value: 1 } } }").await;
    house.add("{ name: bold, triggers: [skill], nodes: { a: { type: set, value: 2 } } }").await;
    assert_eq!(skills(&house), ["orchestration:bold orchestration_bold"]);
    assert_eq!(made(&run(&house, "shy", false, "{}").await.unwrap()), "1");
}

#[tokio::test]
async fn a_run_keeps_the_version_it_began_with() {
    let house = House::new().await;
    let text = |n: u8| {
        format!(
            "{{ name: w, nodes: {{ ask: {{ type: tool, tool: office.ask }}, a: {{ type: set, value: {n}, depends_on: [ask] }} }} }}"
        )
    };
    house.add(&text(1)).await;
    let waits = run(&house, "w", false, "{}").await.unwrap();
    house.add(&text(2)).await;
    let scope = house.caller.scope.clone();
    house.runner.book().remove(&house.engine, &scope, "w", false).await.unwrap();
    let done = house.tell(&waits.head.id, rialto_model::message::Part::text("go")).await.unwrap();
    assert_eq!(made(&done), "1");
    assert_eq!(run(&house, "w", false, "{}").await.unwrap_err().kind, FailureKind::NotFound);
}

#[tokio::test]
async fn the_same_definition_again_is_no_new_version() {
    let house = House::new().await;
    house.add(PIPELINE).await;
    house.add(PIPELINE).await;
    let flows = house.runner.book().list(&house.caller.scope).await.unwrap();
    assert_eq!(flows[0].version, 1);
}

#[tokio::test]
async fn another_project_sees_nothing_of_it() {
    let house = House::new().await;
    house.add(PIPELINE).await;
    let elsewhere = Scope { project: ProjectId::from("other"), ..Scope::default() };
    let stranger = Caller { scope: elsewhere.clone(), ..house.caller.clone() };
    let found =
        house.runner.book().target_of(&house.engine, &stranger, "summarize-and-translate", false).await;
    assert_eq!(found.unwrap_err().kind, FailureKind::NotFound);
    assert!(house.runner.book().list(&elsewhere).await.unwrap().is_empty());
    assert!(house.engine.registry().directory(&elsewhere).is_empty());
}

#[tokio::test]
async fn a_definition_that_is_wrong_is_not_kept() {
    let house = House::new().await;
    let given = rialto_flow::run::Given {
        scope: house.caller.scope.clone(),
        text: "{ name: w, nodes: { a: { type: tool, tool: x, depends_on: [b] } } }".to_owned(),
        name: String::new(),
        kind: None,
        by: "ann".into(),
        token: None,
        status: None,
        configured: false,
    };
    let error = house.runner.book().add(&house.engine, given).await.unwrap_err();
    assert!(error.to_string().contains('b'), "{error}");
    assert!(house.runner.book().list(&house.caller.scope).await.unwrap().is_empty());
}
