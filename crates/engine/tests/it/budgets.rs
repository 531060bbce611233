//! Budgets of what agents send into a task.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use futures::{StreamExt, stream};
use rialto_engine::{Config, limits};
use rialto_model::{
    agent::AgentTrust,
    call::{Caller, CallerKind},
    event::{Event, EventAside},
    failure::FailureKind,
    message::{Artifact, Part},
    store::TaskFilter,
    task::TaskState,
};
use rialto_testkit::{
    agents,
    peer::{ScriptedPeer, accepted, working},
};
use serde_json::json;

use crate::fixture::World;

/// An agent that names its task and then sends the same event for ever, counting how often it was asked for the next one.
fn endless(event: Event) -> (Arc<ScriptedPeer>, Arc<AtomicUsize>) {
    let sent = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&sent);
    let peer = ScriptedPeer::with(move |_| {
        let (event, counted) = (event.clone(), Arc::clone(&counted));
        let more = stream::repeat_with(move || {
            counted.fetch_add(1, Ordering::SeqCst);
            event.clone()
        });
        stream::iter([accepted("remote-1", "context-1")]).chain(more).boxed()
    });
    (peer, sent)
}

fn piece(bytes: usize) -> Event {
    let artifact = Artifact::new("result", vec![Part::text("x".repeat(bytes))]);
    Event::Artifact { artifact, append: true, last: false, aside: EventAside::default() }
}

async fn world(peer: Arc<ScriptedPeer>, config: Config) -> World {
    let world = World::empty(peer, config).await;
    world.register(agents::skill("deploy"), AgentTrust::Trusted).await;
    world
}

#[tokio::test]
async fn an_agent_that_sends_too_many_bytes_is_cancelled_and_its_task_fails() {
    let (peer, sent) = endless(piece(100_000));
    let world = world(peer, Config { max_task_bytes: 1_000_000, ..Config::default() }).await;
    let failure = world.call(json!({})).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::PeerGarbled);
    assert!(failure.message.contains("1000000 bytes"), "{}", failure.message);
    assert!(failure.message.contains("max_task_bytes under [calls]"), "{}", failure.message);
    assert!(sent.load(Ordering::SeqCst) <= 11, "nothing is read beyond the limit");
    let cancelled: Vec<_> =
        world.peer.cancels.lock().iter().map(|cancel| cancel.remote.task_id.clone()).collect();
    assert_eq!(cancelled, [Some("remote-1".to_owned())], "the agent is told to stop");
    let tasks = world
        .store
        .tasks(&world.caller.scope, &TaskFilter { limit: 10, ..TaskFilter::default() })
        .await
        .unwrap();
    assert_eq!(tasks.iter().map(|task| task.state).collect::<Vec<_>>(), [TaskState::Failed]);
    let kept = world.store.events(&tasks[0].id, 0).await.unwrap();
    let bytes = kept.iter().map(|recorded| recorded.event.size()).sum::<usize>();
    assert!(bytes > 500_000 && bytes < 1_100_000, "what was within the limit is kept: {bytes}");
}

#[tokio::test]
async fn an_agent_that_sends_too_many_events_is_cancelled_and_its_task_fails() {
    let (peer, sent) = endless(working());
    let world = world(peer, Config { max_task_events: 500, ..Config::default() }).await;
    let failure = world.call(json!({})).await.unwrap_err();
    assert!(failure.message.contains("500 events"), "{}", failure.message);
    assert!(failure.message.contains("max_task_events under [calls]"), "{}", failure.message);
    assert_eq!(sent.load(Ordering::SeqCst), 500);
    assert_eq!(world.peer.cancels.lock().len(), 1);
}

#[tokio::test]
async fn what_an_agent_sent_before_its_question_counts_too() {
    let peer = ScriptedPeer::with(|_| {
        let question = Event::Asked {
            ask: rialto_model::event::QuestionKind::Input,
            message: Some(crate::fixture::words("more?")),
            aside: EventAside::default(),
        };
        stream::iter([accepted("remote-1", "context-1"), piece(60_000), question]).boxed()
    });
    let world = world(peer, Config { max_task_bytes: 100_000, ..Config::default() }).await;
    let task = world.call(json!({})).await.unwrap();
    assert_eq!(task.head.state, TaskState::InputRequired);
    let mut request = world.request(json!({ "go": "on" }));
    request.task = Some(task.head.id.as_str().to_owned());
    let failure = world.engine.call(request).await.unwrap().finish().await.unwrap_err();
    assert!(failure.message.contains("max_task_bytes"), "{}", failure.message);
}

#[tokio::test]
async fn zero_is_without_a_limit() {
    let pieces: Vec<_> = (0..20).map(|_| piece(10_000)).collect();
    let peer = ScriptedPeer::with(move |_| {
        let end = Event::Finished { message: None, aside: EventAside::default() };
        stream::iter([accepted("remote-1", "c")])
            .chain(stream::iter(pieces.clone()))
            .chain(stream::iter([end]))
            .boxed()
    });
    let config = Config { max_task_bytes: 0, max_task_events: 0, ..Config::default() };
    let task = world(peer, config).await.call(json!({})).await.unwrap();
    assert_eq!(task.head.state, TaskState::Completed);
}

#[tokio::test]
async fn a_call_that_too_many_others_led_to_is_refused() {
    let world = world(ScriptedPeer::echo(), Config { max_hops: 3, ..Config::default() }).await;
    let with_hops = |hops: u8| {
        let mut request = world.request(json!({}));
        request.caller.hops = hops;
        request
    };
    world.engine.call(with_hops(2)).await.unwrap().finish().await.unwrap();
    assert_eq!(world.peer.calls.lock()[0].caller.hops, 2, "what is sent carries the count on");
    let failure = world.engine.call(with_hops(3)).await.unwrap_err();
    assert!(
        failure.message.contains("3 calls") && failure.message.contains("max_hops under [calls]"),
        "{failure:?}"
    );
    let mut traced = world.request(json!({}));
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    traced.trace = rialto_model::trace::Trace::parse(parent, Some("vendor=1,rialto=3")).map(Box::new);
    let failure = world.engine.call(traced).await.unwrap_err();
    assert!(failure.message.contains("max_hops"), "tracestate carries it too: {failure:?}");
    assert_eq!(world.peer.calls.lock().len(), 1);
}

#[tokio::test]
async fn an_agent_that_calls_itself_and_passes_nothing_on_is_refused_too() {
    let peer = ScriptedPeer::with(|_| stream::iter([accepted("r", "c")]).chain(stream::pending()).boxed());
    let mut world = world(peer, Config { max_hops: 3, ..Config::default() }).await;
    let agent = world.engine.registry().find(&world.caller.scope, "vercel_ops").unwrap();
    world.caller = Caller { kind: CallerKind::Agent, ..Caller::user(agent.id.as_str()) };
    let mut running = Vec::new();
    for _ in 0..3 {
        running.push(world.engine.call(world.request(json!({}))).await.unwrap());
    }
    let failure = world.engine.call(world.request(json!({}))).await.unwrap_err();
    assert!(failure.message.contains("max_hops"), "{failure:?}");
    assert_eq!(running.len(), 3);
}

#[tokio::test]
async fn large_arguments_reach_the_agent_and_are_kept_as_size_and_hash() {
    let world = world(ScriptedPeer::echo(), Config::default()).await;
    let task = world.call(json!({ "text": "x".repeat(200_000) })).await.unwrap();
    assert_eq!(world.peer.calls.lock()[0].args().get().len(), 200_011);
    let omitted = &task.head.args.value()["rialto/omitted"];
    assert_eq!(omitted["bytes"], 200_011);
    assert_eq!(omitted["sha256"].as_str().unwrap().len(), 64);
    assert!(omitted["why"].as_str().unwrap().contains("calls.max_kept_args_bytes"));
    for event in world.heard.events() {
        assert!(
            serde_json::to_string(&event).unwrap().len() < 2_000,
            "hooks and the audit log have the note"
        );
    }
    assert_eq!(world.heard.events().len(), 2);
    let small = world.call(json!({ "text": "x".repeat(1_000) })).await.unwrap();
    assert_eq!(small.head.args.value()["text"].as_str().unwrap().len(), 1_000);
}

#[tokio::test]
async fn an_org_that_keeps_more_than_its_quota_makes_no_new_calls() {
    let limits = limits::Config { org_storage_bytes: 300_000, ..limits::Config::default() };
    let big =
        ScriptedPeer::telling(rialto_testkit::peer::finished_with(vec![Part::text("x".repeat(200_000))]));
    let world = world(big, Config { limits, ..Config::default() }).await;
    world.call(json!({})).await.unwrap();
    world.call(json!({})).await.unwrap();
    let failure = world.call(json!({})).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Busy);
    assert!(failure.message.contains("limits.max_org_storage_bytes"), "{}", failure.message);
    assert!(failure.message.contains("keep_tasks_hours"), "{}", failure.message);
    let kept = world.store.org_bytes().await.unwrap();
    let bytes = kept[&world.caller.scope.org];
    assert!(bytes > 400_000 && bytes < 450_000, "the store counts the same: {bytes}");
    let quota = limits::Quota { storage_bytes: 1_000_000, ..limits::Quota::default() };
    let orgs = [(world.caller.scope.org.as_str().to_owned(), quota)].into();
    world.engine.limit(&limits::Config { orgs, org_storage_bytes: 1, ..limits::Config::default() });
    world.call(json!({})).await.unwrap();
}
