//! Whoever listens to a task hears each of its events once and in order, however slow it is and whoever writes.

use std::sync::Arc;

use futures::{StreamExt, stream};
use rialto_engine::Following;
use rialto_model::{
    event::{Event, EventAside, RecordedEvent},
    ids::TaskId,
    task::TaskState,
};
use rialto_testkit::peer::{ScriptedPeer, accepted, finished_with_data};
use serde_json::json;
use tokio::sync::Semaphore;

use crate::fixture::{World, words};

/// A peer that makes as many steps as it gets permits, and ends when it gets more.
fn stepping(steps: usize) -> (Arc<ScriptedPeer>, Arc<Semaphore>) {
    let permits = Arc::new(Semaphore::new(0));
    let gate = Arc::clone(&permits);
    let peer = ScriptedPeer::with(move |_| {
        let progress = (1..=steps).map(|step| Event::Progress {
            working: true,
            message: Some(words(&step.to_string())),
            aside: EventAside::default(),
        });
        let end = Event::Finished { message: None, aside: EventAside::default() };
        let events: Vec<Event> =
            std::iter::once(accepted("remote-1", "context-1")).chain(progress).chain([end]).collect();
        let gate = Arc::clone(&gate);
        stream::iter(events)
            .then(move |event| {
                let gate = Arc::clone(&gate);
                async move {
                    gate.acquire().await.unwrap().forget();
                    event
                }
            })
            .boxed()
    });
    (peer, permits)
}

/// Everything up to the end of the task.
async fn everything(mut following: Following) -> Vec<RecordedEvent> {
    let mut heard = Vec::new();
    while !heard.last().is_some_and(|last: &RecordedEvent| matches!(last.event, Event::Finished { .. })) {
        heard.extend(following.next().await.unwrap());
    }
    heard
}

/// Each event once, in order, beginning with this one.
fn assert_whole(heard: &[RecordedEvent], first: u64, last: u64) {
    let numbers: Vec<u64> = heard.iter().map(|recorded| recorded.seq).collect();
    assert_eq!(numbers, (first..=last).collect::<Vec<_>>());
    let steps: Vec<String> = heard
        .iter()
        .filter_map(|recorded| match &recorded.event {
            Event::Progress { message: Some(message), .. } => Some(message.text()),
            _ => None,
        })
        .collect();
    let expected: Vec<String> = (last - steps.len() as u64 - 2..last - 2).map(|n| n.to_string()).collect();
    assert_eq!(steps, expected);
}

/// A task of so many steps that waits for its first permit.
async fn begun(steps: usize) -> (World, TaskId, Arc<Semaphore>) {
    let (peer, permits) = stepping(steps);
    let world = World::with(peer).await;
    let id = world.say(world.talk("m-1", None, json!({}))).await;
    (world, id, permits)
}

#[tokio::test]
async fn a_listener_hears_every_event_once_and_in_order_as_it_happens() {
    let (world, id, permits) = begun(100).await;
    let (task, following) = world.engine.follow(&world.caller, id.as_str()).await.unwrap();
    assert_eq!((task.head.state, task.head.version), (TaskState::Submitted, 1));
    let heard = tokio::spawn(everything(following));
    for _ in 0..102 {
        permits.add_permits(1);
        tokio::task::yield_now().await;
    }
    assert_whole(&heard.await.unwrap(), 2, 103);
}

#[tokio::test]
async fn a_listener_that_is_a_thousand_events_behind_hears_them_all() {
    let (world, id, permits) = begun(1_000).await;
    let (_, following) = world.engine.follow(&world.caller, id.as_str()).await.unwrap();
    permits.add_permits(1_002);
    world.in_the_end(&id).await;
    assert_whole(&everything(following).await, 2, 1_003);
}

#[tokio::test]
async fn a_listener_that_comes_in_the_middle_hears_what_its_snapshot_does_not_show() {
    let (world, id, permits) = begun(300).await;
    let (_, mut early) = world.engine.follow(&world.caller, id.as_str()).await.unwrap();
    permits.add_permits(120);
    let mut heard = Vec::new();
    while heard.len() < 120 {
        heard.extend(early.next().await.unwrap());
    }
    let (task, late) = world.engine.follow(&world.caller, id.as_str()).await.unwrap();
    assert_eq!(task.head.version, 121);
    permits.add_permits(182);
    assert_whole(&everything(late).await, 122, 303);
    heard.extend(everything(early).await);
    assert_whole(&heard, 2, 303);
}

#[tokio::test]
async fn many_listeners_hear_the_same() {
    let (world, id, permits) = begun(400).await;
    let mut listeners = Vec::new();
    for _ in 0..50 {
        let (_, following) = world.engine.follow(&world.caller, id.as_str()).await.unwrap();
        listeners.push(tokio::spawn(everything(following)));
    }
    // One that never listens must not hold up the others.
    let idle = world.engine.follow(&world.caller, id.as_str()).await.unwrap().1;
    permits.add_permits(402);
    for listener in listeners {
        assert_whole(&listener.await.unwrap(), 2, 403);
    }
    assert_whole(&everything(idle).await, 2, 403);
}

#[tokio::test]
async fn a_listener_hears_what_another_process_writes() {
    let (world, id, permits) = begun(600).await;
    let other = world.beside(ScriptedPeer::echo()).await;
    let (_, following) = other.engine.follow(&other.caller, id.as_str()).await.unwrap();
    let heard = tokio::spawn(everything(following));
    permits.add_permits(300);
    tokio::task::yield_now().await;
    permits.add_permits(302);
    assert_whole(&heard.await.unwrap(), 2, 603);
}

#[tokio::test]
async fn waiting_that_was_given_up_loses_nothing() {
    let (world, id, permits) = begun(50).await;
    let (_, mut following) = world.engine.follow(&world.caller, id.as_str()).await.unwrap();
    let mut heard: Vec<RecordedEvent> = Vec::new();
    while heard.len() < 52 {
        permits.add_permits(1);
        tokio::select! {
            biased;
            () = tokio::task::yield_now() => {}
            events = following.next() => heard.extend(events.unwrap()),
        }
    }
    assert_whole(&heard, 2, 53);
}

#[tokio::test]
async fn nobody_listens_to_somebody_elses_task() {
    let world = World::telling(finished_with_data(json!(1))).await;
    let id = world.say(world.talk("m-1", None, json!({}))).await;
    let bob = rialto_model::call::Caller::user("bob");
    assert!(world.engine.follow(&bob, id.as_str()).await.is_err());
}
