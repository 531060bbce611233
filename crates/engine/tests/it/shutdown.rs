//! What becomes of calls when the process ends, and of callers who want too much.

use std::time::Duration;

use futures::{StreamExt, stream};
use rialto_engine::{Config, Step, limits};
use rialto_model::{agent::AgentTrust, failure::FailureKind, task::TaskState};
use rialto_testkit::{
    agents,
    peer::{ScriptedPeer, accepted},
};
use serde_json::json;

use crate::fixture::World;

#[tokio::test]
async fn a_call_that_does_not_end_in_time_is_handed_back_with_its_task_id() {
    let peer = ScriptedPeer::with(|_| {
        stream::iter([accepted("remote-1", "context-1")]).chain(stream::pending()).boxed()
    });
    let world = World::with(peer).await;
    let mut running = world.engine.call(world.request(json!({}))).await.unwrap();
    assert!(matches!(running.next().await, Step::Event(_)));
    world.engine.drain(Duration::from_millis(1)).await;
    assert_eq!(world.engine.in_flight(), 1);
    world.engine.hand_back().await;
    assert_eq!(world.engine.in_flight(), 0);
    let failure = running.finish().await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::PeerTimeout);
    let data = failure.data.unwrap().value();
    assert_eq!(data["remoteTaskId"], "remote-1");
    // The task is open, with all that is needed to ask for it in another process.
    let head =
        world.store.task(&world.caller.scope, data["taskId"].as_str().unwrap()).await.unwrap().unwrap();
    assert!(!head.state.is_terminal());
    assert_eq!(head.remote.task_id.as_deref(), Some("remote-1"));
    assert_eq!(world.phases(), ["pre-verb", "post-verb failed", "verb-error"]);

    let refused = world.call(json!({})).await.unwrap_err();
    assert_eq!(refused.kind, FailureKind::Busy);
    assert!(refused.message.contains("stopping"), "{refused}");
}

#[tokio::test]
async fn a_call_that_the_agent_never_named_ends_with_the_process() {
    let world = World::with(ScriptedPeer::with(|_| stream::pending().boxed())).await;
    let running = world.engine.call(world.request(json!({}))).await.unwrap();
    let id = running.task().clone();
    let waiting = tokio::spawn(running.finish());
    tokio::task::yield_now().await;
    world.engine.hand_back().await;
    let failure = waiting.await.unwrap().unwrap_err();
    assert!(failure.message.contains("has not named the task"), "{failure}");
    let head = world.store.task(&world.caller.scope, id.as_str()).await.unwrap().unwrap();
    assert_eq!(head.state, TaskState::Failed);
}

#[tokio::test]
async fn a_caller_has_so_many_calls_under_way_and_no_more() {
    let limits = limits::Config { concurrent_calls: 1, ..limits::Config::default() };
    let peer = ScriptedPeer::with(|_| {
        stream::iter([accepted("remote-1", "context-1")]).chain(stream::pending()).boxed()
    });
    let world = World::empty(peer, Config { limits, ..Config::default() }).await;
    world.register(agents::skill("deploy"), AgentTrust::Trusted).await;
    let mut first = world.engine.call(world.request(json!({}))).await.unwrap();
    let refused = world.engine.call(world.request(json!({}))).await.unwrap_err();
    assert_eq!(refused.kind, FailureKind::Busy);
    assert_eq!(refused.data.unwrap().value(), json!({ "retryAfter": 1 }));
    first.cancel();
    world.engine.drain(Duration::from_secs(60)).await;
    assert!(world.engine.call(world.request(json!({}))).await.is_ok());
}

#[tokio::test]
async fn an_org_has_a_wall_clock_of_its_own() {
    let org_timeout_ms = [("default".to_owned(), 30)].into();
    let config = Config { timeout_ms: 600_000, org_timeout_ms, ..Config::default() };
    let world = World::empty(ScriptedPeer::with(|_| stream::pending().boxed()), config).await;
    world.register(agents::skill("deploy"), AgentTrust::Trusted).await;
    let failure = world.call(json!({})).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::PeerTimeout);
    assert!(failure.message.contains("longer than 30 ms"), "{failure}");
}
