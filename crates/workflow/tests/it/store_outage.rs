//! Runs during an outage of the store: results of steps are recorded afterwards.

use std::time::Duration;

use rialto_model::task::TaskState;
use rialto_testkit::faulty_store::Fault;

use crate::fixture::{WorkflowFixture, made};

const TWO_STEPS: &str = r#"
nodes:
  first: { type: tool, tool: office.slow, args: { n: 1 } }
  second: { type: tool, tool: office.echo, args: { n: "{{ nodes.first.n }}" } }
"#;

async fn run_through_outage(
    operations: &[&'static str],
    fault: Fault,
) -> (WorkflowFixture, rialto_model::task::Task) {
    let (fixture, switch) = WorkflowFixture::faulty().await;
    let request = fixture.inline(TWO_STEPS, "{}").await;
    let running = fixture.engine.calls().start(request).await.unwrap().into_handle().unwrap();
    let waiting = tokio::spawn(running.finish());
    while fixture.called().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    switch.set_for(operations, fault);
    fixture.office.let_go.add_permits(1);
    tokio::time::sleep(Duration::from_millis(700)).await;
    assert!(!waiting.is_finished(), "the run neither ends nor fails while the store is away");
    assert!(switch.faults() > 0);
    switch.set(Fault::None);
    let task = tokio::time::timeout(Duration::from_secs(20), waiting).await.unwrap().unwrap().unwrap();
    (fixture, task)
}

#[tokio::test]
async fn a_run_goes_on_after_an_outage_and_calls_each_step_once() {
    let (fixture, task) = run_through_outage(&[], Fault::Unavailable).await;
    assert_eq!(task.head.state, TaskState::Completed);
    assert_eq!(made(&task), r#"{"n":1}"#);
    assert_eq!(fixture.called(), ["slow", "echo"]);
}

#[tokio::test]
async fn steps_survive_that_only_the_run_cannot_be_recorded() {
    let (fixture, task) = run_through_outage(&["change_run"], Fault::Unavailable).await;
    assert_eq!(task.head.state, TaskState::Completed);
    assert_eq!(fixture.called(), ["slow", "echo"]);
}

#[tokio::test]
async fn a_run_whose_beginning_was_recorded_though_that_failed_goes_on() {
    let (fixture, switch) = WorkflowFixture::faulty().await;
    let request = fixture.inline(TWO_STEPS, "{}").await;
    fixture.office.let_go.add_permits(1);
    switch.set_for(&["begin_run"], Fault::FailsAfterwards);
    let running = fixture.engine.calls().start(request).await.unwrap().into_handle().unwrap();
    let waiting = tokio::spawn(running.finish());
    while switch.faults() == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    switch.set(Fault::None);
    let task = tokio::time::timeout(Duration::from_secs(20), waiting).await.unwrap().unwrap().unwrap();
    assert_eq!(task.head.state, TaskState::Completed);
    assert_eq!(fixture.called(), ["slow", "echo"]);
}
