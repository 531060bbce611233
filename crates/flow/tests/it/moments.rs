//! Definitions that are run by themselves.

use std::time::Duration;

use rialto_model::flow::{RunFilter, RunState};

use crate::house::House;

const HOURLY: &str = r#"
name: hourly
triggers:
  - { type: cron, cron: "0 * * * *", input: { n: 1 } }
nodes: { a: { type: tool, tool: office.echo, args: { n: "{{ $trigger.n }}" } } }
"#;

async fn runs(house: &House) -> Vec<RunState> {
    house.engine.running().drain(Duration::from_secs(10)).await;
    let filter = RunFilter { limit: 100, ..RunFilter::default() };
    let runs = house.store.runs(&house.caller.scope, &filter).await.unwrap();
    runs.into_iter().map(|run| run.state).collect()
}

#[tokio::test]
async fn a_moment_is_run_once_by_whoever_looks_first() {
    let house = House::new().await;
    house.add(HOURLY).await;
    house.runner.look(&house.engine, "a").await;
    assert_eq!(runs(&house).await, []);
    let hour = Duration::from_secs(3_600);
    let (one, other) = (house.later(hour).await, house.later(hour).await);
    tokio::join!(one.runner.look(&one.engine, "a"), other.runner.look(&other.engine, "b"));
    one.engine.running().drain(Duration::from_secs(10)).await;
    other.engine.running().drain(Duration::from_secs(10)).await;
    assert_eq!(runs(&house).await, [RunState::Completed]);
    one.runner.look(&one.engine, "a").await;
    other.runner.look(&other.engine, "b").await;
    assert_eq!(runs(&house).await.len(), 1);
}

#[tokio::test]
async fn moments_that_passed_while_nobody_looked_are_run_once() {
    let house = House::new().await;
    house.add(HOURLY).await;
    let next_week = house.later(Duration::from_secs(7 * 24 * 3_600)).await;
    next_week.runner.look(&next_week.engine, "a").await;
    next_week.engine.running().drain(Duration::from_secs(10)).await;
    next_week.runner.look(&next_week.engine, "a").await;
    assert_eq!(runs(&house).await, [RunState::Completed]);
}

#[tokio::test]
async fn a_definition_whose_token_was_revoked_is_not_run() {
    let mut house = House::new().await;
    house.caller.token = Some("tok_gone".into());
    house.add(HOURLY).await;
    let later = house.later(Duration::from_secs(24 * 3_600)).await;
    later.runner.look(&later.engine, "a").await;
    assert_eq!(runs(&house).await, [], "the store does not know its token any more");
    house.caller.token = None;
    house.add(&HOURLY.replace("n: 1", "n: 2")).await;
    let later = house.later(Duration::from_secs(48 * 3_600)).await;
    later.runner.look(&later.engine, "b").await;
    later.engine.running().drain(Duration::from_secs(10)).await;
    assert_eq!(runs(&house).await, [RunState::Completed], "saved again without one");
}

#[tokio::test]
async fn a_definition_that_is_not_in_use_has_no_moments() {
    let house = House::new().await;
    house.add(HOURLY).await;
    let scope = house.caller.scope.clone();
    let archived = rialto_model::flow::FlowStatus::Archived;
    house.runner.book().set_status(&house.engine, &scope, "hourly", archived).await.unwrap();
    let later = house.later(Duration::from_secs(24 * 3_600)).await;
    later.runner.look(&later.engine, "a").await;
    assert_eq!(runs(&house).await, []);
}
