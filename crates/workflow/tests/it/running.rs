//! Runs without failures.

use rialto_engine::CallUpdate;
use rialto_model::{event::Event, json::Json, task::TaskState};

use crate::fixture::WorkflowFixture;

#[tokio::test]
async fn steps_run_one_after_the_other_and_references_keep_their_types() {
    let fixture = WorkflowFixture::new().await;
    let text = r#"
steps:
  - id: first
    nodeId: agent.invoke
    config: { agentCardId: office, skillId: echo, args: { n: "{{ $trigger.n }}", list: [1, 2] } }
  - id: second
    nodeId: agent.invoke
    config: { agentCardId: office, skillId: echo, args: { same: "{{ nodes.first.output.n }}", at: "{{ nodes.first.list[1] }}", words: "n is {{ nodes.first.n }}" } }
"#;
    let made = fixture.made(text, r#"{"n": 10000000000000000000001.50}"#).await;
    assert_eq!(
        made,
        r#"{"same":10000000000000000000001.50,"at":2,"words":"n is 10000000000000000000001.50"}"#
    );
    assert_eq!(fixture.called(), ["echo", "echo"]);
}

#[tokio::test]
async fn an_agent_is_looked_up_and_invoked_as_the_printed_example_does() {
    let fixture = WorkflowFixture::new().await;
    let text = r#"
steps:
  - id: agent-ref
    type: action
    nodeId: agent.ref
    config: { agent: Office }
  - id: run-code-review
    type: action
    nodeId: agent.invoke
    config:
      agentCardId: "{{ nodes.agent-ref.agentCardId }}"
      skillId: echo
      args:
        prUrl: "{{ $trigger.prUrl }}"
"#;
    let made = fixture.made(text, r#"{"prUrl": "https://example.com/pr/1"}"#).await;
    assert_eq!(made, r#"{"prUrl":"https://example.com/pr/1"}"#);
}

#[tokio::test]
async fn independent_nodes_run_at_once_and_no_more_of_them_than_allowed() {
    let fixture = WorkflowFixture::new().await;
    let text = r#"
limits: { parallel: 2 }
nodes:
  a: { type: tool, tool: office.slow, args: { n: 1 } }
  b: { type: tool, tool: office.slow, args: { n: 2 } }
  c: { type: tool, tool: office.slow, args: { n: 3 } }
  all: { type: set, value: ["{{ nodes.a.n }}", "{{ nodes.b.n }}", "{{ nodes.c.n }}"] }
"#;
    let office = fixture.office.clone();
    let release = async move {
        while office.most_at_once() < 2 {
            tokio::task::yield_now().await;
        }
        office.let_go.add_permits(3);
    };
    let (made, ()) = tokio::join!(fixture.made(text, "{}"), release);
    assert_eq!(made, "[1,2,3]");
    assert_eq!(fixture.office.most_at_once(), 2);
}

#[tokio::test]
async fn the_same_is_done_for_each_item_and_the_results_keep_their_order() {
    let fixture = WorkflowFixture::new().await;
    let text = r#"
nodes:
  each:
    type: map
    over: "{{ $input.cities }}"
    parallel: 2
    do: { type: tool, tool: office.echo, args: { city: "{{ item.name }}", at: "{{ index }}" } }
"#;
    let made =
        fixture.made(text, r#"{"cities": [{"name": "Oslo"}, {"name": "Rome"}, {"name": "Bern"}]}"#).await;
    let expected = r#"[{"city":"Oslo","at":0},{"city":"Rome","at":1},{"city":"Bern","at":2}]"#;
    assert_eq!(made, expected);
    assert_eq!(fixture.made(text, r#"{"cities": []}"#).await, "[]");
    let failure = fixture.run(text, r#"{"cities": 7}"#).await.unwrap_err();
    assert!(failure.message.contains("step each failed: `over` is not a list"), "{failure}");
}

#[tokio::test]
async fn one_branch_is_taken_and_the_other_is_skipped() {
    let fixture = WorkflowFixture::new().await;
    let text = r#"
nodes:
  choose: { type: condition, if: "{{ $input.n }} > 3", then: [big], else: [small] }
  big: { type: set, value: large }
  small: { type: set, value: little }
  after: { type: set, value: "{{ nodes.big.output ?? nodes.small.output }}", depends_on: [big, small] }
"#;
    let task = fixture.run(text, r#"{"n": 4}"#).await.unwrap();
    assert_eq!(crate::fixture::made(&task), "text: large");
    let standings = fixture.standings(&task.head.id).await;
    assert_eq!((&*standings["big"], &*standings["small"]), ("completed", "skipped"));
    assert_eq!(fixture.made(text, r#"{"n": 1}"#).await, "text: little");
}

#[tokio::test]
async fn what_the_output_says_is_answered_and_a_text_stays_one() {
    let fixture = WorkflowFixture::new().await;
    let text = r#"
nodes:
  a: { type: tool, tool: office.say }
  b: { type: tool, tool: office.echo, args: { x: 1 } }
output: { said: "{{ nodes.a.output }}", x: "{{ nodes.b.x }}" }
"#;
    assert_eq!(fixture.made(text, "{}").await, r#"{"said":"well said","x":1}"#);
    let ends = r#"{"nodes": [{"id": "a", "type": "tool", "tool": "office.say"}, {"id": "b", "type": "set", "value": 2}]}"#;
    assert_eq!(fixture.made(ends, "{}").await, r#"{"a":"well said","b":2}"#);
}

#[tokio::test]
async fn each_change_of_a_step_is_progress_of_the_run() {
    let fixture = WorkflowFixture::new().await;
    let text =
        "nodes: { one: { type: tool, tool: office.echo }, two: { type: set, value: 2, depends_on: [one] } }";
    let request = fixture.inline(text, "{}").await;
    let mut running = fixture.engine.calls().start(request).await.unwrap().into_handle().unwrap();
    let (mut words, mut facts) = (Vec::new(), Vec::new());
    let task = loop {
        match running.next().await {
            CallUpdate::Event(event) => {
                if let Event::Progress { message: Some(message), aside, .. } = *event {
                    words.push(message.text());
                    facts.push(aside.metadata.unwrap());
                }
            }
            CallUpdate::Heartbeat => {}
            CallUpdate::Done(task) => break task,
            CallUpdate::Failed(failure) => panic!("{failure}"),
        }
    };
    assert_eq!(words, ["one: working (0 of 2)", "one: completed (2 of 2)", "two: completed (2 of 2)"]);
    let last: &Json = facts.last().unwrap();
    let expected = r#"{"rialto/flow":{"node":"two","state":"completed","attempt":1,"done":2,"total":2}}"#;
    assert_eq!(last.value(), serde_json::from_str::<serde_json::Value>(expected).unwrap());
    assert_eq!(task.head.state, TaskState::Completed);
    assert_eq!(task.head.remote.task_id.as_deref(), Some(task.head.id.as_str()), "a run is its task");
}

#[tokio::test]
async fn work_that_names_nobody_goes_to_whoever_fits() {
    let fixture = WorkflowFixture::new().await;
    let text = r#"
steps:
  - id: dispatch-qa
    type: action
    nodeId: agent.dispatch
    config: { workType: qa, description: Run integration tests, requiredSkills: [echo] }
"#;
    assert_eq!(fixture.made(text, "{}").await, r#"{"text":"Run integration tests"}"#);
}
