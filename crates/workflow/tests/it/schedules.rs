//! Scheduled runs.

use std::time::Duration;

use rialto_model::flow::{RunFilter, RunState};

use crate::fixture::WorkflowFixture;

const HOURLY: &str = r#"
name: hourly
triggers:
  - { type: cron, cron: "0 * * * *", input: { n: 1 } }
nodes: { a: { type: tool, tool: office.echo, args: { n: "{{ $trigger.n }}" } } }
"#;

async fn runs(fixture: &WorkflowFixture) -> Vec<RunState> {
    fixture.engine.running().drain(Duration::from_secs(10)).await;
    let filter = RunFilter { limit: 100, ..RunFilter::default() };
    let runs = fixture.store.runs(&fixture.caller.scope, &filter).await.unwrap();
    runs.into_iter().map(|run| run.state).collect()
}

#[tokio::test]
async fn a_moment_is_run_once_by_whoever_looks_first() {
    let fixture = WorkflowFixture::new().await;
    fixture.add(HOURLY).await;
    fixture.runner.run_due(&fixture.engine, "a").await;
    assert_eq!(runs(&fixture).await, []);
    let hour = Duration::from_secs(3_600);
    let (one, other) = (fixture.later(hour).await, fixture.later(hour).await);
    tokio::join!(one.runner.run_due(&one.engine, "a"), other.runner.run_due(&other.engine, "b"));
    one.engine.running().drain(Duration::from_secs(10)).await;
    other.engine.running().drain(Duration::from_secs(10)).await;
    assert_eq!(runs(&fixture).await, [RunState::Completed]);
    one.runner.run_due(&one.engine, "a").await;
    other.runner.run_due(&other.engine, "b").await;
    assert_eq!(runs(&fixture).await.len(), 1);
}

#[tokio::test]
async fn moments_that_passed_while_nobody_looked_are_run_once() {
    let fixture = WorkflowFixture::new().await;
    fixture.add(HOURLY).await;
    let next_week = fixture.later(Duration::from_secs(7 * 24 * 3_600)).await;
    next_week.runner.run_due(&next_week.engine, "a").await;
    next_week.engine.running().drain(Duration::from_secs(10)).await;
    next_week.runner.run_due(&next_week.engine, "a").await;
    assert_eq!(runs(&fixture).await, [RunState::Completed]);
}

#[tokio::test]
async fn a_definition_whose_token_was_revoked_is_not_run() {
    let mut fixture = WorkflowFixture::new().await;
    fixture.caller.token = Some("tok_gone".into());
    fixture.add(HOURLY).await;
    let later = fixture.later(Duration::from_secs(24 * 3_600)).await;
    later.runner.run_due(&later.engine, "a").await;
    assert_eq!(runs(&fixture).await, [], "the store does not know its token any more");
    fixture.caller.token = None;
    fixture.add(&HOURLY.replace("n: 1", "n: 2")).await;
    let later = fixture.later(Duration::from_secs(48 * 3_600)).await;
    later.runner.run_due(&later.engine, "b").await;
    later.engine.running().drain(Duration::from_secs(10)).await;
    assert_eq!(runs(&fixture).await, [RunState::Completed], "saved again without one");
}

#[tokio::test]
async fn a_definition_that_is_not_in_use_has_no_moments() {
    let fixture = WorkflowFixture::new().await;
    fixture.add(HOURLY).await;
    let scope = fixture.caller.scope.clone();
    let archived = rialto_model::flow::FlowStatus::Archived;
    fixture.runner.definitions().set_status(&fixture.engine, &scope, "hourly", archived).await.unwrap();
    let later = fixture.later(Duration::from_secs(24 * 3_600)).await;
    later.runner.run_due(&later.engine, "a").await;
    assert_eq!(runs(&fixture).await, []);
}
