//! Calls while the store is away: nothing that an agent did is lost, and nobody is told what is not so.

use std::{
    os::unix::fs::PermissionsExt,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use futures::{StreamExt, stream};
use rialto_engine::{Config, Step};
use rialto_model::{
    audit_event::{AuditEvent, AuditPhase},
    event::{Event, EventAside},
    failure::FailureKind,
    ids::{Scope, TaskId},
    message::{Artifact, Part},
    store::{AuditFilter, Store, TaskFilter},
    task::{Task, TaskState},
};
use rialto_testkit::{
    faulty_store::{Fault, FaultSwitch},
    peer::{ScriptedPeer, accepted, finished_with, working},
};
use serde_json::json;
use tokio::sync::watch;

use crate::fixture::World;

/// Longest time from the store's return until everything is recorded.
const RECORDED_WITHIN: Duration = Duration::from_secs(5);

/// An agent that names its task at once and answers when it may.
fn waiting_peer() -> (Arc<ScriptedPeer>, watch::Sender<bool>) {
    let (gate, opened) = watch::channel(false);
    let number = AtomicUsize::new(0);
    let peer = ScriptedPeer::with(move |_| {
        let mut opened = opened.clone();
        let id = format!("remote-{}", number.fetch_add(1, Ordering::SeqCst));
        let first = accepted(&id, "context-1");
        let rest = stream::once(async move {
            opened.wait_for(|is_open| *is_open).await.unwrap();
            stream::iter(finished_with(vec![Part::text("done")]).into_iter().skip(1))
        });
        stream::iter([first]).chain(rest.flatten()).boxed()
    });
    (peer, gate)
}

/// Waits until something is so, for as long as a slow machine may take.
async fn eventually(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(20);
    while !is_so().await {
        assert!(Instant::now() < until, "{what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn task_in(store: &dyn Store, id: &TaskId) -> Option<(TaskState, Vec<Event>)> {
    let head = store.task(&Scope::default(), id.as_str()).await.unwrap()?;
    let events = store.events(id, 0).await.unwrap();
    Some((head.state, events.into_iter().map(|recorded| recorded.event).collect()))
}

/// The phases on record for a task, the oldest first.
async fn audited(store: &dyn Store, id: &TaskId) -> Vec<AuditPhase> {
    let filter = AuditFilter { limit: 10_000, ..AuditFilter::default() };
    let trail = store.audit_records(&Scope::default(), &filter).await.unwrap();
    let of_task = trail.iter().rev().filter(|record| *record.event.verb.task_id == *id.as_str());
    of_task.map(|record| record.event.phase).collect()
}

async fn begin_all(world: &World, count: usize) -> Vec<rialto_engine::Running> {
    let mut calls = Vec::new();
    for number in 0..count {
        let mut running = world.engine.call(world.request(json!({ "number": number }))).await.unwrap();
        assert!(matches!(running.next().await, Step::Event(_)), "the agent has named the task");
        calls.push(running);
    }
    calls
}

async fn hold_one(world: &World, switch: &FaultSwitch, gate: &watch::Sender<bool>) -> rialto_engine::Running {
    let running = begin_all(world, 1).await.remove(0);
    switch.set(Fault::Unavailable);
    gate.send_replace(true);
    eventually("the result is held", async || world.engine.held_counts().writes == 1).await;
    running
}

#[tokio::test(flavor = "multi_thread")]
async fn results_that_arrive_while_the_store_is_away_are_recorded_once_when_it_is_back() {
    let (peer, gate) = waiting_peer();
    let (world, switch) = World::faulty(peer, Config::default()).await;
    let calls = begin_all(&world, 40).await;
    let ids: Vec<TaskId> = calls.iter().map(|call| call.task().clone()).collect();
    let waiting: Vec<_> = calls.into_iter().map(|call| tokio::spawn(call.finish())).collect();
    switch.set(Fault::Unavailable);
    gate.send_replace(true);
    eventually("all results are held", async || world.engine.held_counts().writes == 40).await;
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    assert!(waiting.iter().all(|call| !call.is_finished()), "nobody is told what is not recorded");
    switch.set(Fault::None);
    let back = Instant::now();
    for call in waiting {
        let task = call.await.unwrap().unwrap();
        assert_eq!(task.head.state, TaskState::Completed);
    }
    assert!(back.elapsed() < RECORDED_WITHIN, "{:?}", back.elapsed());
    assert_eq!(ids.len(), 40);
    for id in &ids {
        let (state, events) = task_in(&*world.store, id).await.unwrap();
        assert_eq!((state, events.len()), (TaskState::Completed, 3), "none is recorded twice");
        assert_eq!(audited(&*world.store, id).await, [AuditPhase::PreVerb, AuditPhase::PostVerb]);
    }
    eventually("nothing is held any more", async || world.engine.held_counts().bytes == 0).await;
}

#[tokio::test]
async fn a_caller_whose_deadline_is_over_is_told_that_the_agent_has_answered() {
    let (peer, gate) = waiting_peer();
    let (world, switch) = World::faulty(peer, Config { timeout_ms: 1_500, ..Config::default() }).await;
    let running = hold_one(&world, &switch, &gate).await;
    let id = running.task().clone();
    let failure = running.finish().await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::PeerTimeout);
    for words in ["the agent has answered", "held", "recorded when the store is back", id.as_str()] {
        assert!(failure.message.contains(words), "{words}: {failure}");
    }
    assert!(!failure.message.contains("not made"), "{failure}");
    assert_eq!(failure.data.unwrap().value()["taskId"], id.as_str());
    let unread = world.engine.look(&world.caller, id.as_str()).await.unwrap_err();
    assert_eq!(unread.kind, FailureKind::StoreUnavailable);
    assert!(unread.message.starts_with("the task could not be read"), "{unread}");
    switch.set(Fault::None);
    let task = world.in_the_end(&id).await;
    assert_eq!(task.head.state, TaskState::Completed);
    assert_eq!(audited(&*world.store, &id).await, [AuditPhase::PreVerb, AuditPhase::PostVerb]);
}

#[tokio::test]
async fn a_caller_is_told_that_the_agent_may_have_done_it_when_only_its_first_words_are_held() {
    let peer =
        ScriptedPeer::with(|_| stream::iter([accepted("r-1", "c-1")]).chain(stream::pending()).boxed());
    let (world, switch) = World::faulty(peer, Config { timeout_ms: 1_200, ..Config::default() }).await;
    switch.set_for(&["append"], Fault::Unavailable);
    let failure = world.call(json!({})).await.unwrap_err();
    assert!(failure.message.contains("the agent may have done it"), "{failure}");
    assert!(!failure.message.contains("has answered"), "{failure}");
    switch.set(Fault::None);
    eventually("its name for the task is recorded", async || {
        let data = failure.data.as_ref().unwrap().value();
        let id = TaskId::from(data["taskId"].as_str().unwrap());
        task_in(&*world.store, &id).await.is_some_and(|(_, events)| events.len() == 1)
    })
    .await;
}

#[tokio::test]
async fn a_write_that_was_done_though_it_failed_is_not_done_again() {
    let (peer, gate) = waiting_peer();
    let (world, switch) = World::faulty(peer, Config::default()).await;
    let running = begin_all(&world, 1).await.remove(0);
    let id = running.task().clone();
    switch.set_for(&["append"], Fault::FailsAfterwards);
    gate.send_replace(true);
    assert_eq!(running.finish().await.unwrap().head.state, TaskState::Completed);
    assert!(switch.faults() > 0, "the first attempt has failed");
    let (_, events) = task_in(&*world.store, &id).await.unwrap();
    assert_eq!(events.len(), 3);
    assert_eq!(audited(&*world.store, &id).await, [AuditPhase::PreVerb, AuditPhase::PostVerb]);
    assert_eq!(world.phases(), ["pre-verb", "post-verb completed"]);
}

async fn one_task(store: &dyn Store) -> Option<Task> {
    let filter = TaskFilter { limit: 10, ..TaskFilter::default() };
    let mut heads = store.tasks(&Scope::default(), &filter).await.unwrap();
    assert!(heads.len() <= 1);
    heads.pop().map(Task::new)
}

#[tokio::test]
async fn a_task_that_was_opened_though_that_failed_ends_as_not_made() {
    let (world, switch) = World::faulty(ScriptedPeer::echo(), Config::default()).await;
    switch.set_for(&["open_task"], Fault::FailsAfterwards);
    let failure = world.call(json!({})).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::StoreUnavailable);
    assert!(failure.message.contains("so it was not made"), "{failure}");
    assert!(world.peer.calls.lock().is_empty());
    eventually("the task ends", async || {
        one_task(&*world.store).await.is_some_and(|task| task.head.state == TaskState::Failed)
    })
    .await;
    let id = one_task(&*world.store).await.unwrap().head.id;
    let task = world.engine.look(&world.caller, id.as_str()).await.unwrap();
    assert!(task.failure.unwrap().message.contains("it was not made"));
    assert_eq!(
        audited(&*world.store, &id).await,
        [AuditPhase::PreVerb, AuditPhase::PostVerb, AuditPhase::VerbError]
    );
}

#[tokio::test]
async fn a_caller_is_answered_at_its_deadline_though_the_store_hangs_while_its_task_is_opened() {
    let config = Config { timeout_ms: 1_000, ..Config::default() };
    let (world, switch) = World::faulty(ScriptedPeer::echo(), config).await;
    switch.set_for(&["begin_task"], Fault::HangsAfterwards);
    let began = Instant::now();
    let failure = match world.engine.say(world.talk("m-1", None, json!({}))).await {
        Ok(_) => panic!("it was begun"),
        Err(failure) => failure,
    };
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    assert!(failure.message.contains("so it was not made"), "{failure}");
    eventually("the task does not stay open", async || {
        one_task(&*world.store).await.is_some_and(|task| task.head.state == TaskState::Failed)
    })
    .await;
    assert!(world.peer.calls.lock().is_empty());
}

#[tokio::test]
async fn a_store_that_hangs_is_waited_for_no_longer_than_its_timeout() {
    let config = Config { store_timeout_secs: 1, ..Config::default() };
    let (world, switch) = World::faulty(ScriptedPeer::echo(), config).await;
    let id = world.call(json!({})).await.unwrap().head.id;
    switch.set(Fault::Hangs);
    for _ in 0..2 {
        let began = Instant::now();
        let failure = world.call(json!({})).await.unwrap_err();
        assert_eq!(failure.kind, FailureKind::StoreUnavailable);
        assert_eq!(failure.data.unwrap().value(), json!({ "retryAfter": 1 }));
        assert!(world.engine.look(&world.caller, id.as_str()).await.is_err());
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    }
    assert_eq!(world.peer.calls.lock().len(), 1);
}

#[tokio::test]
async fn an_answer_that_may_be_recorded_though_it_was_not_sent_is_asked_for_again() {
    let asked = Event::Asked {
        ask: rialto_model::event::QuestionKind::Input,
        message: None,
        aside: EventAside::default(),
    };
    let (world, switch) =
        World::faulty(ScriptedPeer::telling(vec![accepted("r-1", "c-1"), asked]), Config::default()).await;
    let id = world.call(json!({})).await.unwrap().head.id;
    switch.set_for(&["append"], Fault::FailsAfterwards);
    let mut request = world.request(json!({ "answer": 1 }));
    request.task = Some(id.to_string());
    let failure = world.engine.call(request).await.unwrap_err();
    assert!(failure.message.contains("so it was not made"), "{failure}");
    switch.set(Fault::None);
    eventually("it waits again", async || {
        let (state, events) = task_in(&*world.store, &id).await.unwrap();
        state.is_waiting() && events.len() == 4
    })
    .await;
    assert_eq!(world.peer.calls.lock().len(), 1, "the answer was not sent");
}

#[tokio::test]
async fn an_agent_is_read_no_further_than_held_results_may_take() {
    let produced = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&produced);
    let peer = ScriptedPeer::with(move |_| {
        let counter = Arc::clone(&counter);
        let pieces = stream::iter(0..200).then(move |number| {
            let counter = Arc::clone(&counter);
            async move {
                tokio::time::sleep(Duration::from_millis(1)).await;
                counter.fetch_add(1, Ordering::SeqCst);
                let artifact = Artifact::new("result", vec![Part::text(format!("{number:01000}"))]);
                Event::Artifact {
                    artifact,
                    append: number > 0,
                    last: number == 199,
                    aside: EventAside::default(),
                }
            }
        });
        let end = Event::Finished { message: None, aside: EventAside::default() };
        stream::iter([accepted("r-1", "c-1")]).chain(pieces).chain(stream::iter([end])).boxed()
    });
    let config = Config { max_held_bytes: 20_000, ..Config::default() };
    let (world, switch) = World::faulty(peer, config).await;
    let mut running = world.engine.call(world.request(json!({}))).await.unwrap();
    assert!(matches!(running.next().await, Step::Event(_)));
    switch.set(Fault::Unavailable);
    eventually("it is full", async || world.engine.held_counts().bytes >= 20_000).await;
    let read = produced.load(Ordering::SeqCst);
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(produced.load(Ordering::SeqCst) <= read + 1, "nothing more is read");
    assert!(read < 100 && world.engine.held_counts().bytes < 40_000, "{read}");
    switch.set(Fault::None);
    let task = running.finish().await.unwrap();
    let expected: Vec<_> = (0..200).map(|number| Part::text(format!("{number:01000}"))).collect();
    assert_eq!(task.artifacts[0].parts, expected);
}

#[tokio::test]
async fn a_subscriber_hears_of_an_event_once_it_is_recorded() {
    let (peer, gate) = waiting_peer();
    let (world, switch) = World::faulty(peer, Config::default()).await;
    let running = begin_all(&world, 1).await.remove(0);
    let (_, mut following) = world.engine.follow(&world.caller, running.task().as_str()).await.unwrap();
    switch.set(Fault::Unavailable);
    gate.send_replace(true);
    let early = tokio::time::timeout(Duration::from_millis(1_200), following.next()).await;
    assert!(early.is_err(), "the stream neither ends nor tells what is not recorded");
    switch.set(Fault::None);
    let heard = tokio::time::timeout(RECORDED_WITHIN, following.next()).await.unwrap().unwrap();
    assert!(heard.iter().any(|recorded| matches!(recorded.event, Event::Artifact { .. })));
}

#[tokio::test]
async fn the_record_of_a_refused_call_is_held_until_the_store_is_back() {
    let (world, switch) = World::faulty(ScriptedPeer::echo(), Config::default()).await;
    let refuse = |event: &mut AuditEvent| {
        if event.phase == AuditPhase::PreVerb {
            event.context.deny("not today");
        }
    };
    world.engine.bus().subscribe(Arc::new(refuse));
    let request = world.request(json!({}));
    switch.set_for(&["audit"], Fault::Unavailable);
    let began = Instant::now();
    let refused = world.engine.call(request).await.unwrap_err();
    assert_eq!(refused.kind, FailureKind::Denied);
    assert!(began.elapsed() < Duration::from_secs(2));
    switch.set(Fault::None);
    eventually("it is on record", async || {
        let filter = AuditFilter { limit: 10, ..AuditFilter::default() };
        world.store.audit_records(&Scope::default(), &filter).await.unwrap().len() == 3
    })
    .await;
    assert_eq!(world.phases(), ["pre-verb", "post-verb failed", "verb-error"]);
}

fn held_files(folder: &Path) -> Vec<std::fs::DirEntry> {
    std::fs::read_dir(folder).unwrap().map(Result::unwrap).collect()
}

#[test]
fn a_result_outlives_the_process_that_held_it() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (runtime(), runtime());
    let (store, switch, id) = first.block_on(async {
        let (peer, gate) = waiting_peer();
        let (world, switch) = World::faulty(peer, Config::default()).await;
        world.engine.spill_held_in(folder.path().to_owned()).await.unwrap();
        let running = hold_one(&world, &switch, &gate).await;
        let path = folder.path();
        eventually("it is in the file", async || {
            held_files(path).iter().any(|file| file.metadata().unwrap().len() > 0)
        })
        .await;
        let files = held_files(path);
        assert_eq!(files.len(), 1);
        assert_eq!(files[0].metadata().unwrap().permissions().mode() & 0o777, 0o600);
        (Arc::clone(&world.store), switch, running.task().clone())
    });
    // All its tasks end with it, as they do with a process.
    drop(first);
    switch.set(Fault::None);
    second.block_on(async {
        let (state, _) = task_in(&*store, &id).await.unwrap();
        assert!(!state.is_terminal(), "nobody has recorded it");
        let world = World::over(store, ScriptedPeer::echo());
        world.engine.spill_held_in(folder.path().to_owned()).await.unwrap();
        let (state, events) = task_in(&*world.store, &id).await.unwrap();
        assert_eq!((state, events.len()), (TaskState::Completed, 3));
        assert_eq!(audited(&*world.store, &id).await, [AuditPhase::PreVerb, AuditPhase::PostVerb]);
    });
    assert!(held_files(folder.path()).is_empty());
}

#[tokio::test]
async fn a_process_that_stops_while_the_store_is_away_keeps_its_results_in_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let (peer, gate) = waiting_peer();
    let (world, switch) = World::faulty(peer, Config::default()).await;
    world.engine.spill_held_in(folder.path().to_owned()).await.unwrap();
    let running = hold_one(&world, &switch, &gate).await;
    let began = Instant::now();
    world.engine.hand_back().await;
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    let failure = running.finish().await.unwrap_err();
    assert!(failure.message.contains("the agent has answered"), "{failure}");
    assert_eq!(held_files(folder.path()).len(), 1);
    // The store is back before the process has ended: the file is not needed any more.
    switch.set(Fault::None);
    eventually("the file is removed", async || held_files(folder.path()).is_empty()).await;
}

#[tokio::test]
async fn the_words_of_an_agent_are_held_in_their_order() {
    let (gate, opened) = watch::channel(0_usize);
    let peer = ScriptedPeer::with(move |_| {
        let opened = opened.clone();
        let words = stream::iter(1..=5_usize).then(move |number| {
            let mut opened = opened.clone();
            async move {
                opened.wait_for(|open| *open >= number).await.unwrap();
                if number == 5 {
                    Event::Finished { message: None, aside: EventAside::default() }
                } else {
                    working()
                }
            }
        });
        stream::iter([accepted("r-1", "c-1")]).chain(words).boxed()
    });
    let (world, switch) = World::faulty(peer, Config::default()).await;
    let running = begin_all(&world, 1).await.remove(0);
    let id = running.task().clone();
    let waiting = tokio::spawn(running.finish());
    switch.set(Fault::Unavailable);
    for number in 1..=5 {
        gate.send_replace(number);
        eventually("each is held", async || world.engine.held_counts().writes == number).await;
    }
    switch.set(Fault::None);
    assert_eq!(waiting.await.unwrap().unwrap().head.state, TaskState::Completed);
    let (_, events) = task_in(&*world.store, &id).await.unwrap();
    let names: Vec<_> = events.iter().map(Event::name).collect();
    assert_eq!(names, ["accepted", "progress", "progress", "progress", "progress", "finished"]);
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}
