//! Who drives a call, and what becomes of it when nobody does.

use std::{cell::Cell, sync::Arc, time::Duration};

use futures::{FutureExt, StreamExt, stream};
use parking_lot::Mutex;
use rialto_engine::{Config, Running, Step};
use rialto_model::{
    agent::AgentTrust,
    event::{Event, EventAside},
    failure::FailureKind,
    ids::TaskId,
    message::{Message, Part, Role},
    task::{Task, TaskState},
};
use rialto_testkit::{
    agents,
    peer::{ScriptedPeer, accepted, finished_with_data, working},
};
use serde_json::json;
use tokio::{sync::Notify, task};

use crate::fixture::World;

/// Longer than any test takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// A peer that tells `first`, waits for the gate, and tells `rest`; then it is silent.
fn gated(first: Vec<Event>, rest: Vec<Event>) -> (Arc<ScriptedPeer>, Arc<Notify>) {
    let gate = Arc::new(Notify::new());
    let opened = Arc::clone(&gate);
    let peer = ScriptedPeer::with(move |_| {
        let (gate, rest) = (Arc::clone(&gate), rest.clone());
        let rest = stream::once(async move {
            gate.notified().await;
            stream::iter(rest)
        });
        stream::iter(first.clone()).chain(rest.flatten()).chain(stream::pending()).boxed()
    });
    (peer, opened)
}

/// A call that waits for its agent, which will answer when the gate opens.
async fn waiting() -> (World, Running, Arc<Notify>) {
    let (peer, gate) = gated(Vec::new(), finished_with_data(json!({ "n": 1 })));
    let (world, mut running) = begun(peer).await;
    assert!(running.next().now_or_never().is_none());
    (world, running, gate)
}

async fn begun(peer: Arc<ScriptedPeer>) -> (World, Running) {
    let world = World::with(peer).await;
    let running = world.engine.call(world.request(json!({}))).await.unwrap();
    (world, running)
}

/// The task, once nothing runs any more.
async fn in_the_end(world: &World, id: &TaskId) -> Task {
    world.engine.drain(PATIENCE).await;
    world.engine.task(&world.caller, id.as_str()).await.unwrap()
}

#[tokio::test]
async fn a_call_that_is_answered_at_once_is_driven_by_whoever_waits() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let driver = Arc::clone(&seen);
    let peer = ScriptedPeer::with(move |_| {
        let driver = Arc::clone(&driver);
        let events = stream::iter(finished_with_data(json!(1)));
        events.inspect(move |_| driver.lock().push(task::try_id())).boxed()
    });
    let (_world, running) = begun(peer).await;
    assert_eq!(running.finish().await.unwrap().head.state, TaskState::Completed);
    // A test's own future is no task, so whatever was spawned would have an id.
    assert_eq!(*seen.lock(), [None; 3]);
}

#[tokio::test]
async fn after_its_first_news_a_call_goes_on_unread() {
    let (peer, gate) = gated(vec![accepted("remote-1", "context-1")], finished_with_data(json!(1)));
    let (world, mut running) = begun(peer).await;
    assert!(matches!(running.next().await, Step::Event(_)));
    gate.notify_one();
    let id = running.task().clone();
    assert_eq!(in_the_end(&world, &id).await.head.state, TaskState::Completed);
    assert!(matches!(running.next().await, Step::Done(task) if task.artifacts.len() == 1));
}

#[tokio::test]
async fn everything_that_comes_at_once_is_told_in_order() {
    let (peer, gate) =
        gated(vec![accepted("remote-1", "context-1"), working()], finished_with_data(json!(1)));
    let (_world, mut running) = begun(peer).await;
    let mut told = Vec::new();
    let done = loop {
        match running.next().await {
            Step::Event(event) => told.push(event.name()),
            Step::Done(task) => break task,
            step => panic!("{step:?} was not expected"),
        }
        gate.notify_one();
    };
    assert_eq!(told, ["accepted", "progress"]);
    assert_eq!(done.head.state, TaskState::Completed);
}

#[tokio::test]
async fn the_last_words_are_told_even_if_the_end_comes_with_them() {
    let words = Message::new("m", Role::Agent, vec![Part::text("nearly done")]);
    let peer = ScriptedPeer::with(move |_| {
        let mut events = finished_with_data(json!(1));
        events.insert(
            1,
            Event::Progress { working: true, message: Some(words.clone()), aside: EventAside::default() },
        );
        stream::iter(events).boxed()
    });
    let (_world, mut running) = begun(peer).await;
    let mut told = Vec::new();
    while let Step::Event(event) = running.next().await {
        told.push(event.name());
    }
    assert_eq!(told, ["accepted", "progress"]);
}

#[tokio::test]
async fn waiting_that_was_given_up_is_begun_again_and_nothing_is_lost() {
    let (world, mut running, gate) = waiting().await;
    assert!(running.next().now_or_never().is_none());
    gate.notify_one();
    assert!(matches!(running.next().await, Step::Done(task) if task.artifacts.len() == 1));
    assert_eq!(world.peer.calls.lock().len(), 1);
}

#[tokio::test]
async fn a_call_that_is_let_go_of_goes_on() {
    let (world, running, gate) = waiting().await;
    let id = running.task().clone();
    drop(running);
    gate.notify_one();
    let task = in_the_end(&world, &id).await;
    assert_eq!((task.head.state, task.artifacts.len()), (TaskState::Completed, 1));
    assert_eq!(world.phases(), ["pre-verb", "post-verb completed"]);
}

#[tokio::test]
async fn a_call_that_nobody_ever_waited_for_is_made() {
    let (world, running) = begun(ScriptedPeer::echo()).await;
    let id = running.task().clone();
    drop(running);
    assert_eq!(in_the_end(&world, &id).await.head.state, TaskState::Completed);
}

#[tokio::test]
async fn a_call_may_be_let_go_of_where_there_is_no_runtime() {
    let (world, running, gate) = waiting().await;
    let id = running.task().clone();
    std::thread::spawn(move || drop(running)).join().unwrap();
    gate.notify_one();
    assert_eq!(in_the_end(&world, &id).await.head.state, TaskState::Completed);
}

#[tokio::test]
async fn a_call_that_is_called_off_before_its_first_news_is_called_off_at_the_agent() {
    let (peer, gate) = gated(Vec::new(), vec![accepted("remote-1", "context-1")]);
    let (world, mut running) = begun(peer).await;
    assert!(running.next().now_or_never().is_none());
    let id = running.task().clone();
    running.cancel();
    drop(running);
    gate.notify_one();
    assert_eq!(in_the_end(&world, &id).await.head.state, TaskState::Canceled);
    assert_eq!(world.peer.cancels.lock()[0].remote.task_id.as_deref(), Some("remote-1"));
}

#[tokio::test]
async fn whoever_waits_hears_that_somebody_else_called_it_off() {
    let (world, mut running, gate) = waiting().await;
    let id = running.task().clone();
    let called_off = world.engine.cancel(&world.caller, id.as_str()).await.unwrap();
    assert_eq!(called_off.head.state, TaskState::Canceled);
    gate.notify_one();
    assert!(matches!(running.next().await, Step::Failed(_)));
    assert_eq!(in_the_end(&world, &id).await.head.state, TaskState::Canceled);
    assert_eq!(world.phases(), ["pre-verb", "post-verb failed", "verb-error"]);
}

#[tokio::test]
async fn an_agent_that_names_a_task_after_it_was_called_off_is_told() {
    let (peer, gate) = gated(Vec::new(), vec![accepted("remote-1", "context-1"), working()]);
    let (world, mut running) = begun(peer).await;
    assert!(running.next().now_or_never().is_none());
    let id = running.task().clone();
    world.engine.cancel(&world.caller, id.as_str()).await.unwrap();
    gate.notify_one();
    assert!(matches!(running.next().await, Step::Failed(_)));
    assert_eq!(in_the_end(&world, &id).await.head.state, TaskState::Canceled);
    assert_eq!(world.peer.cancels.lock()[0].remote.task_id.as_deref(), Some("remote-1"));
    assert_eq!(world.phases(), ["pre-verb", "post-verb failed", "verb-error"]);
}

#[tokio::test]
async fn draining_waits_for_a_call_that_is_waited_for() {
    let (world, running, gate) = waiting().await;
    let drained = Cell::new(false);
    let drain = async {
        world.engine.drain(PATIENCE).await;
        drained.set(true);
    };
    let call = async {
        task::yield_now().await;
        assert!(!drained.get());
        gate.notify_one();
        running.finish().await
    };
    let ((), ended) = tokio::join!(drain, call);
    assert!(ended.is_ok());
}

#[tokio::test]
async fn a_call_goes_on_beyond_its_first_heartbeat() {
    let (peer, gate) = gated(Vec::new(), finished_with_data(json!(1)));
    let world = World::empty(peer, Config { heartbeat_secs: 1, ..Config::default() }).await;
    world.register(agents::skill("deploy"), AgentTrust::Trusted).await;
    let mut running = world.engine.call(world.request(json!({}))).await.unwrap();
    assert!(matches!(running.next().await, Step::Heartbeat));
    gate.notify_one();
    let id = running.task().clone();
    assert_eq!(in_the_end(&world, &id).await.head.state, TaskState::Completed);
    assert!(matches!(running.next().await, Step::Done(_)));
}

#[tokio::test]
async fn nothing_comes_after_the_end() {
    let (_world, mut running) = begun(ScriptedPeer::echo()).await;
    assert!(matches!(running.next().await, Step::Done(_)));
    assert!(matches!(running.next().await, Step::Failed(failure) if failure.kind == FailureKind::Internal));
}
