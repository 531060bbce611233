//! Recovery of runs after a process died.

use std::time::Duration;

use rialto_engine::Engine;
use rialto_model::{
    ids::TaskId,
    store::Token,
    task::{Task, TaskState},
};

use crate::fixture::{WorkflowFixture, made};

const LATER: Duration = Duration::from_secs(60);

/// The task, once it is over.
async fn in_the_end(engine: &Engine, fixture: &WorkflowFixture, run: &TaskId) -> Task {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
    loop {
        let task = engine.tasks().read(&fixture.caller, run.as_str()).await.unwrap();
        if task.head.state.is_terminal() || tokio::time::Instant::now() > deadline {
            return task;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_run_goes_on_where_it_stood_and_nothing_that_is_done_is_done_again() {
    let fixture = WorkflowFixture::new().await;
    fixture.engine.lease().register().await.unwrap();
    let text = r#"
nodes:
  first: { type: tool, tool: office.echo, args: { n: 1 } }
  hung: { type: tool, tool: office.slow, args: { n: "{{ nodes.first.n }}" } }
  last: { type: tool, tool: office.echo, args: { n: "{{ nodes.hung.n }}", all: true } }
"#;
    let request = fixture.inline(text, "{}").await;
    let mut running = fixture.engine.calls().start(request).await.unwrap().into_handle().unwrap();
    let run = running.task().clone();
    while fixture.called().len() < 2 {
        let _ = tokio::time::timeout(Duration::from_millis(10), running.next()).await;
    }
    // The agent has named its task once that is written down; then the process is gone.
    let step = fixture.record(&run).await.steps[1].task.clone().unwrap();
    while fixture
        .engine
        .tasks()
        .read(&fixture.caller, step.as_str())
        .await
        .unwrap()
        .head
        .remote
        .task_id
        .is_none()
    {
        let _ = tokio::time::timeout(Duration::from_millis(10), running.next()).await;
    }
    let heir = fixture.later(LATER).await;
    heir.engine.lease().register().await.unwrap();
    let stop = tokio_util::sync::CancellationToken::new();
    let (engine, stopped) = (heir.engine.clone(), stop.clone());
    let post = tokio::spawn(async move { engine.takeover().run(stopped).await });
    let over = in_the_end(&heir.engine, &heir, &run).await;
    stop.cancel();
    post.await.unwrap();
    assert_eq!(over.head.state, TaskState::Completed, "{:?}", over.failure);
    assert_eq!(made(&over), r#"{"n":1,"all":true}"#);
    assert_eq!(fixture.called(), ["echo", "slow", "echo"], "each was called once");
}

/// A run whose second step is under way in a process that is gone, begun with the token `tok_1`.
async fn abandoned() -> (WorkflowFixture, TaskId) {
    let mut fixture = WorkflowFixture::new().await;
    fixture.engine.lease().register().await.unwrap();
    fixture.store.put_token(&token(&fixture)).await.unwrap();
    fixture.caller.token = Some("tok_1".into());
    let text = r#"
nodes:
  hung: { type: tool, tool: office.slow, args: { n: 1 } }
  last: { type: tool, tool: office.echo, args: { n: "{{ nodes.hung.n }}" } }
"#;
    let request = fixture.inline(text, "{}").await;
    let mut running = fixture.engine.calls().start(request).await.unwrap().into_handle().unwrap();
    let run = running.task().clone();
    while fixture.called().is_empty() {
        let _ = tokio::time::timeout(Duration::from_millis(10), running.next()).await;
    }
    let step = fixture.record(&run).await.steps[0].task.clone().unwrap();
    while fixture
        .engine
        .tasks()
        .read(&fixture.caller, step.as_str())
        .await
        .unwrap()
        .head
        .remote
        .task_id
        .is_none()
    {
        let _ = tokio::time::timeout(Duration::from_millis(10), running.next()).await;
    }
    (fixture, run)
}

fn token(fixture: &WorkflowFixture) -> Token {
    Token {
        id: "tok_1".to_owned(),
        hash: "0".repeat(64),
        scope: fixture.caller.scope.clone(),
        caller: fixture.caller.id.clone(),
        kind: fixture.caller.kind,
        rights: fixture.caller.rights,
        created_at: fixture.engine.now(),
        expires_at: None,
        revoked_at: None,
        created_by: None,
        session_of: None,
    }
}

/// How a run ends in the process that takes it over.
async fn taken_over(fixture: &WorkflowFixture, run: &TaskId) -> Task {
    let heir = fixture.later(LATER).await;
    heir.engine.lease().register().await.unwrap();
    let stop = tokio_util::sync::CancellationToken::new();
    let (engine, stopped) = (heir.engine.clone(), stop.clone());
    let post = tokio::spawn(async move { engine.takeover().run(stopped).await });
    let over = in_the_end(&heir.engine, &heir, run).await;
    stop.cancel();
    post.await.unwrap();
    over
}

#[tokio::test]
async fn a_run_that_is_taken_over_calls_nothing_more_when_its_token_was_revoked() {
    let (fixture, run) = abandoned().await;
    fixture.store.revoke_token("tok_1", fixture.engine.now()).await.unwrap();
    let over = taken_over(&fixture, &run).await;
    assert_eq!(over.head.state, TaskState::Failed);
    let failure = over.failure.unwrap();
    assert!(failure.message.contains("was revoked or has expired"), "{failure}");
    assert_eq!(fixture.called(), ["slow"], "the last step is not called");
}

#[tokio::test]
async fn a_run_that_is_taken_over_goes_on_while_its_token_is_good() {
    let (fixture, run) = abandoned().await;
    let over = taken_over(&fixture, &run).await;
    assert_eq!(over.head.state, TaskState::Completed, "{:?}", over.failure);
    assert_eq!(fixture.called(), ["slow", "echo"]);
    assert_eq!(fixture.record(&run).await.run.token, Some("tok_1".into()), "it keeps its token");
}

#[tokio::test]
async fn a_run_that_was_approved_by_somebody_else_keeps_its_token_and_its_hops() {
    let mut fixture = WorkflowFixture::new().await;
    fixture.store.put_token(&token(&fixture)).await.unwrap();
    (fixture.caller.token, fixture.caller.hops) = (Some("tok_1".into()), 2);
    let text = r#"
nodes:
  may: { type: approval, question: "May it?" }
  last: { type: tool, tool: office.echo, args: { n: 1 }, depends_on: [may] }
"#;
    let task = fixture.run(text, "{}").await.unwrap();
    let other = fixture.later(Duration::from_secs(1)).await;
    let approval = other.approvals().await.remove(0);
    other.decide(&approval, true).await;
    let over = other.settled(&task.head.id).await;
    assert_eq!(over.head.state, TaskState::Completed, "{:?}", over.failure);
    let run = fixture.record(&task.head.id).await.run;
    assert_eq!((run.token, run.hops), (Some("tok_1".into()), 2));
    assert_eq!(*fixture.office.hops.lock(), [2], "the step carries the count on");
}

#[tokio::test]
async fn whoever_was_taken_over_from_writes_nothing_any_more() {
    let fixture = WorkflowFixture::new().await;
    let text = "nodes: { a: { type: tool, tool: office.slow, args: { n: 1 } }, b: { type: tool, tool: office.echo, depends_on: [a] } }";
    let request = fixture.inline(text, "{}").await;
    let mut running = fixture.engine.calls().start(request).await.unwrap().into_handle().unwrap();
    let run = running.task().clone();
    while fixture.called().is_empty() {
        let _ = tokio::time::timeout(Duration::from_millis(10), running.next()).await;
    }
    fixture.store.take_run(&run, "somebody else").await.unwrap().unwrap();
    fixture.office.let_go.add_permits(1);
    for _ in 0..10 {
        let _ = tokio::time::timeout(Duration::from_millis(20), running.next()).await;
    }
    let record = fixture.record(&run).await;
    assert_eq!(record.steps.len(), 1, "{record:?}");
    assert_eq!(fixture.called(), ["slow"]);
}

#[tokio::test]
async fn a_run_that_needs_a_secret_after_a_crash_says_so() {
    let fixture = WorkflowFixture::new().await;
    let text = r#"
nodes:
  ask: { type: tool, tool: office.ask }
  use: { type: tool, tool: office.echo, args: { key: "{{ $input.api_key }}" }, depends_on: [ask] }
"#;
    let task = fixture.run(text, r#"{"api_key": "sk-live-123"}"#).await.unwrap();
    let record = fixture.record(&task.head.id).await;
    assert!(!format!("{record:?}").contains("sk-live-123"), "{record:?}");
    let other = fixture.later(Duration::ZERO).await;
    let failure = other.tell(&task.head.id, rialto_model::message::Part::text("go")).await.unwrap_err();
    assert!(failure.message.contains("contained secrets that are not stored"), "{failure}");
    // The process that was given it still has it.
    let task = fixture.run(text, r#"{"api_key": "sk-live-123"}"#).await.unwrap();
    let done = fixture.tell(&task.head.id, rialto_model::message::Part::text("go")).await.unwrap();
    assert_eq!(made(&done), r#"{"key":"sk-live-123"}"#);
}
