//! Steps that wait while others continue.

use std::time::Duration;

use rialto_model::{json::Json, message::Part, task::TaskState};
use serde_json::json;

use crate::fixture::{WorkflowFixture, made};

const ASKING: &str = r#"
nodes:
  ask: { type: tool, tool: office.ask }
  after: { type: tool, tool: office.echo, args: { heard: "{{ nodes.ask.output }}" } }
  other: { type: tool, tool: office.echo, args: { n: 1 } }
output: { heard: "{{ nodes.after.heard }}", n: "{{ nodes.other.n }}" }
"#;

#[tokio::test]
async fn a_question_holds_what_is_downstream_and_the_answer_goes_to_the_same_task() {
    let fixture = WorkflowFixture::new().await;
    let task = fixture.run(ASKING, "{}").await.unwrap();
    assert_eq!(task.head.state, TaskState::InputRequired);
    assert_eq!(task.message.as_ref().unwrap().text(), "which one?");
    let standings = fixture.standings(&task.head.id).await;
    assert_eq!((standings["ask"].as_str(), standings["other"].as_str()), ("waiting", "completed"));
    assert_eq!(standings.get("after"), None);
    let held = fixture.record(&task.head.id).await.steps[0].task.clone().unwrap();
    let done = fixture.tell(&task.head.id, Part::text("the red one")).await.unwrap();
    assert_eq!(made(&done), r#"{"heard":"the red one","n":1}"#);
    assert_eq!(done.head.id, task.head.id);
    let answered = fixture.engine.tasks().read(&fixture.caller, held.as_str()).await.unwrap();
    assert_eq!(answered.head.state, TaskState::Completed, "the step's task is the same one");
}

#[tokio::test]
async fn another_process_goes_on_with_a_run_that_waits() {
    let fixture = WorkflowFixture::new().await;
    let task = fixture.run(ASKING, "{}").await.unwrap();
    let other = fixture.later(Duration::ZERO).await;
    let done = other.tell(&task.head.id, Part::text("blue")).await.unwrap();
    assert_eq!(made(&done), r#"{"heard":"blue","n":1}"#);
    let mut called = fixture.called();
    called.sort();
    assert_eq!(called, ["", "ask", "echo", "echo"], "nothing that was done is done again");
}

#[tokio::test]
async fn of_several_that_ask_the_one_that_is_named_is_answered() {
    let fixture = WorkflowFixture::new().await;
    let text = r#"
nodes:
  first: { type: tool, tool: office.ask }
  second: { type: tool, tool: office.ask }
"#;
    let task = fixture.run(text, "{}").await.unwrap();
    let mut part = Part::text("for the second");
    part.metadata = Some(Json::encode(&json!({ "rialto/flow": { "node": "second" } })));
    let task = fixture.tell(&task.head.id, part).await.unwrap();
    assert_eq!(task.head.state, TaskState::InputRequired);
    let standings = fixture.standings(&task.head.id).await;
    assert_eq!((standings["first"].as_str(), standings["second"].as_str()), ("waiting", "completed"));
    let done = fixture.tell(&task.head.id, Part::text("for the first")).await.unwrap();
    assert_eq!(made(&done), r#"{"first":"for the first","second":"for the second"}"#);
}

const APPROVAL: &str = r#"
nodes:
  may: { type: approval, question: "Deploy {{ $input.what }}?", details: { what: "{{ $input.what }}" }, expires: 1h }
  deploy: { type: tool, tool: office.echo, args: { what: "{{ $input.what }}" }, depends_on: [may] }
"#;

#[tokio::test]
async fn an_approval_waits_for_one_of_two_words() {
    let fixture = WorkflowFixture::new().await;
    let task = fixture.run(APPROVAL, r#"{"what": "shop"}"#).await.unwrap();
    assert_eq!(task.head.state, TaskState::InputRequired);
    assert!(task.message.as_ref().unwrap().text().contains("Deploy shop?"));
    assert!(task.message.as_ref().unwrap().text().contains("`approve` or `deny`"));
    let again = fixture.tell(&task.head.id, Part::text("well, why not")).await.unwrap();
    assert_eq!(again.head.state, TaskState::InputRequired, "anything else is asked again");
    let done = fixture.tell(&task.head.id, Part::text("approve")).await.unwrap();
    assert_eq!(made(&done), r#"{"what":"shop"}"#);
}

#[tokio::test]
async fn what_is_denied_is_not_done() {
    let fixture = WorkflowFixture::new().await;
    let task = fixture.run(APPROVAL, r#"{"what": "shop"}"#).await.unwrap();
    let failure = fixture.tell(&task.head.id, Part::text("deny")).await.unwrap_err();
    assert!(failure.message.contains("step may failed: it was denied"), "{failure}");
    assert!(fixture.called().is_empty());
}

#[tokio::test]
async fn what_nobody_decides_is_denied_in_the_end() {
    let fixture = WorkflowFixture::new().await;
    let task = fixture.run(APPROVAL, r#"{"what": "shop"}"#).await.unwrap();
    let waits = fixture.engine.tasks().read(&fixture.caller, task.head.id.as_str()).await.unwrap();
    assert_eq!(waits.head.state, TaskState::InputRequired);
    fixture.clock.forward(Duration::from_secs(3_601));
    let over = fixture.kept_until_over(&task.head.id).await;
    assert_eq!(over.head.state, TaskState::Failed);
    assert!(over.failure.unwrap().message.contains("step may failed"));
    assert!(fixture.called().is_empty());
}

#[tokio::test]
async fn an_approval_is_listed_with_all_others_and_decided_there() {
    let fixture = WorkflowFixture::new().await;
    let text = r#"
nodes:
  one: { type: approval, question: "First?" }
  two: { type: approval, question: "Second?" }
  both: { type: set, value: done, depends_on: [one, two] }
"#;
    let task = fixture.run(text, "{}").await.unwrap();
    let listed = fixture.approvals().await;
    assert_eq!(listed.len(), 2, "{listed:?}");
    let second = listed.iter().find(|approval| approval.tool == "two of dag").unwrap();
    fixture.decide(second, true).await;
    let waits = fixture.settled(&task.head.id).await;
    assert_eq!(waits.head.state, TaskState::InputRequired);
    let standings = fixture.standings(&task.head.id).await;
    assert_eq!((standings["one"].as_str(), standings["two"].as_str()), ("waiting", "completed"));
    let done = fixture.tell(&task.head.id, Part::text("approve")).await.unwrap();
    assert_eq!(made(&done), "text: done");
}

#[tokio::test]
async fn a_step_that_was_answered_elsewhere_lets_its_run_go_on() {
    let fixture = WorkflowFixture::new().await;
    let task = fixture.run(ASKING, "{}").await.unwrap();
    let step = fixture.record(&task.head.id).await.steps;
    let step = step.iter().find(|step| step.node == "ask").unwrap().task.clone().unwrap();
    fixture.tell(&step, Part::text("told directly")).await.unwrap();
    fixture.clock.forward(Duration::from_secs(10));
    fixture.runner.run_due(&fixture.engine, "me").await;
    fixture.engine.running().drain(Duration::from_secs(10)).await;
    let over = fixture.engine.tasks().read(&fixture.caller, task.head.id.as_str()).await.unwrap();
    assert_eq!(made(&over), r#"{"heard":"told directly","n":1}"#);
}
