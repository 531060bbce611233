//! Runs with failing steps.

use std::{sync::Arc, time::Duration};

use futures::FutureExt;
use rialto_engine::GuardrailSet;
use rialto_guardrails::scoped_rules::Guardrails;
use rialto_model::{failure::FailureKind, flow::RunState, task::TaskState};
use serde_json::json;

use crate::fixture::{WorkflowFixture, made};

#[tokio::test]
async fn what_is_downstream_of_a_failure_is_skipped_and_the_rest_goes_on() {
    let fixture = WorkflowFixture::new().await;
    let text = r#"
nodes:
  bad: { type: tool, tool: office.fail }
  after: { type: tool, tool: office.echo, depends_on: [bad] }
  later: { type: tool, tool: office.echo, depends_on: [after] }
  other: { type: tool, tool: office.say }
"#;
    let failure = fixture.run(text, "{}").await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::PeerFailed);
    assert_eq!(failure.message, "step bad failed: office.fail: no luck");
    let run = failure.data.unwrap().value()["taskId"].as_str().unwrap().into();
    let standings = fixture.standings(&run).await;
    let states = ["bad", "after", "later", "other"].map(|name| standings[name].clone());
    assert_eq!(states, ["failed", "skipped", "skipped", "completed"]);
    assert_eq!(fixture.record(&run).await.run.state, RunState::Failed);
}

#[tokio::test]
async fn a_step_may_say_that_its_failure_does_not_matter() {
    let fixture = WorkflowFixture::new().await;
    let text = r#"
nodes:
  bad: { type: tool, tool: office.fail, continue_on_failure: true }
  after: { type: set, value: "{{ nodes.bad.output ?? \"nothing\" }} ({{ nodes.bad.state }})" }
"#;
    assert_eq!(fixture.made(text, "{}").await, "text: nothing (failed)");
}

#[tokio::test]
async fn a_failure_is_final_unless_the_node_wants_another_attempt() {
    let fixture = WorkflowFixture::new().await;
    let once = "nodes: { a: { type: tool, tool: office.flaky } }";
    assert!(fixture.run(once, "{}").await.is_err());
    assert_eq!(fixture.called().len(), 1);
    let fixture = WorkflowFixture::new().await;
    let thrice = r#"
nodes:
  a: { type: tool, tool: office.flaky, args: { n: 1 }, retry: { attempts: 3, backoff: { first: 1ms, longest: 1ms } } }
"#;
    let task = fixture.run(thrice, "{}").await.unwrap();
    assert_eq!(made(&task), r#"{"n":1}"#);
    let steps = fixture.record(&task.head.id).await.steps;
    let attempts: Vec<_> = steps.iter().map(|step| (step.attempt, step.state.as_str())).collect();
    assert_eq!(attempts, [(1, "retrying"), (2, "retrying"), (3, "completed")]);
    let tasks: std::collections::BTreeSet<_> = steps.iter().map(|step| step.task.clone()).collect();
    assert_eq!(tasks.len(), 3, "each attempt is a task of its own");
}

#[tokio::test]
async fn a_step_that_takes_too_long_is_called_off() {
    let fixture = WorkflowFixture::new().await;
    let text = "nodes: { a: { type: tool, tool: office.slow, timeout: 20ms } }";
    let failure = fixture.run(text, "{}").await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::PeerTimeout);
    assert!(failure.message.contains("step a failed: office.slow: it took longer than 20 ms"), "{failure}");
    assert_eq!(fixture.office.canceled.lock().len(), 1);
}

#[tokio::test]
async fn a_run_that_takes_too_long_ends_with_its_steps() {
    let fixture = WorkflowFixture::new().await;
    let text = "{ limits: { timeout: 30ms }, nodes: { a: { type: tool, tool: office.slow } } }";
    let failure = fixture.run(text, "{}").await.unwrap_err();
    assert!(failure.message.contains("the run took longer than 30 ms"), "{failure}");
    assert_eq!(fixture.office.canceled.lock().len(), 1);
}

#[tokio::test]
async fn an_unreachable_agent_and_a_missing_value_say_so() {
    let fixture = WorkflowFixture::new().await;
    let gone = fixture.run("nodes: { a: { type: tool, tool: office.gone } }", "{}").await.unwrap_err();
    assert_eq!(gone.kind, FailureKind::PeerUnreachable);
    let missing = r#"nodes: { a: { type: tool, tool: office.echo, args: { x: "{{ $input.no.such }}" } } }"#;
    let missing = fixture.run(missing, r#"{"no": {}}"#).await.unwrap_err();
    assert!(missing.message.starts_with("step a failed: "), "{missing}");
    assert!(missing.message.contains("$input.no.such"), "{missing}");
    let nobody = fixture.run("nodes: { a: { type: tool, tool: nobody } }", "{}").await.unwrap_err();
    assert!(nobody.message.contains("there is no tool \"nobody\""), "{nobody}");
}

#[tokio::test]
async fn a_run_that_is_called_off_calls_its_steps_off() {
    let fixture = WorkflowFixture::new().await;
    let text = "nodes: { a: { type: tool, tool: office.slow }, b: { type: tool, tool: office.slow }, c: { type: set, value: 1, depends_on: [a] } }";
    let request = fixture.inline(text, "{}").await;
    let mut running = fixture.engine.calls().start(request).await.unwrap().into_handle().unwrap();
    let run = running.task().clone();
    while fixture.called().len() < 2 {
        let _ = tokio::time::timeout(Duration::from_millis(10), running.next()).await;
    }
    let task = fixture.engine.tasks().cancel(&fixture.caller, run.as_str()).await.unwrap();
    assert_eq!(task.head.state, TaskState::Canceled);
    assert_eq!(fixture.office.canceled.lock().len(), 2);
    assert_eq!(fixture.record(&run).await.run.state, RunState::Canceled);
    let standings = fixture.standings(&run).await;
    assert_eq!((standings["a"].as_str(), standings.get("c")), ("canceled", None));
}

#[tokio::test]
async fn policy_is_asked_for_each_step() {
    let fixture = WorkflowFixture::new().await;
    let denied = rialto_model::agent::AgentTrust::External;
    let office = fixture.engine.registry().find(&fixture.caller.scope, "office").unwrap();
    fixture.engine.registry().set_trust(&office, denied).await.unwrap();
    let failure = fixture.run("nodes: { a: { type: tool, tool: office.echo } }", "{}").await.unwrap_err();
    assert!(matches!(failure.kind, FailureKind::Denied | FailureKind::NotFound), "{failure:?}");
    assert!(fixture.called().is_empty());
}

#[tokio::test]
async fn what_a_guardrail_stops_is_not_kept_with_the_step_either() {
    let fixture = WorkflowFixture::new().await;
    let patterns = json!([{ "name": "mark", "pattern": "marker\\d+" }]);
    let check = json!({ "type": "regex", "target": "input", "config": { "patterns": patterns } });
    let setting: Guardrails =
        serde_json::from_value(json!({ "action": "block", "checks": [check] })).unwrap();
    let nobody = |_: &_, _: &str| async { Err("nobody is there".to_owned()) }.boxed();
    fixture.engine.guardrails().replace(GuardrailSet::new(&setting, Arc::new(nobody)).unwrap());
    // What is given passes; what is made of it does not.
    let named = r#"
nodes:
  fine: { type: tool, tool: office.echo, args: { n: "{{ $trigger.n }}" } }
  a: { type: tool, tool: office.echo, args: { text: "marker{{ $trigger.n }}" }, depends_on: [fine] }
"#;
    let chosen = r#"
nodes:
  a: { type: agent.dispatch, requiredSkills: [echo], args: { text: "marker{{ $trigger.n }}" } }
"#;
    for text in [named, chosen] {
        let failure = fixture.run(text, r#"{"n":4711}"#).await.unwrap_err();
        assert!(failure.message.contains("guardrail"), "{failure}");
        let run = failure.data.unwrap().value()["taskId"].as_str().unwrap().into();
        let steps = fixture.record(&run).await.steps;
        assert!(!format!("{steps:?}").contains("marker4711"), "{steps:?}");
        let failed = steps.iter().find(|step| step.node == "a").unwrap();
        assert!(failed.input.as_ref().unwrap().get().contains("withheld"), "{failed:?}");
    }
    assert_eq!(fixture.called(), ["echo"]);
}
