//! What becomes of tasks whose process is gone.

use std::{sync::Arc, time::Duration};

use futures::{StreamExt, stream};
use rialto_model::{
    agent::AgentTrust,
    card::Skill,
    clock::Clock as _,
    event::{Event, EventAside, QuestionKind},
    failure::FailureKind,
    ids::{ProcessId, TaskId},
    message::Part,
    task::{Task, TaskState},
};
use rialto_testkit::{
    agents,
    faulty_store::Fault,
    peer::{ScriptedPeer, accepted, finished_with, working},
};
use serde_json::{Value, json};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::fixture::World;

/// Longer than a process may be silent.
const LATER: Duration = Duration::from_secs(60);

/// A process that began a task with this skill and these arguments, heard `events`, and was never heard of again.
async fn dead(skill: Skill, args: Value, events: Vec<Event>) -> (World, TaskId) {
    let count = events.len() as u64 + 1;
    let peer = ScriptedPeer::with(move |call| {
        let is_silent = call.args().get().contains("silence");
        let told = if is_silent { Vec::new() } else { events.clone() };
        stream::iter(told).chain(stream::pending()).boxed()
    });
    let world = World::empty(peer, rialto_engine::Config::default()).await;
    world.register(skill, AgentTrust::Trusted).await;
    world.engine.take_post().await.unwrap();
    let id = world.say(world.talk("m-1", Some("ours"), args)).await;
    let mut following = world.engine.follow(&world.caller, id.as_str()).await.unwrap().1;
    while world.engine.look(&world.caller, id.as_str()).await.unwrap().head.version < count {
        following.next().await.unwrap();
    }
    (world, id)
}

/// Another process, a minute later, that keeps its post for as long as the guard lives.
async fn heir(of: &World, peer: Arc<ScriptedPeer>) -> (World, DropGuard) {
    let heir = of.later(peer, LATER).await;
    heir.engine.take_post().await.unwrap();
    let stop = CancellationToken::new();
    let (engine, until) = (heir.engine.clone(), stop.clone());
    tokio::spawn(async move { engine.keep_post(until).await });
    (heir, stop.drop_guard())
}

/// The task once it is over.
async fn ended(world: &World, id: &TaskId) -> Task {
    let (mut task, mut following) = world.engine.follow(&world.caller, id.as_str()).await.unwrap();
    while !task.head.state.is_terminal() {
        for recorded in following.next().await.unwrap() {
            assert!(task.apply(&recorded.event, recorded.at));
        }
    }
    let kept = world.engine.look(&world.caller, id.as_str()).await.unwrap();
    // Who works on it may have changed since the first look, and no event tells that.
    task.head.runner = kept.head.runner;
    assert_eq!(task, kept);
    task
}

#[tokio::test]
async fn a_task_that_its_agent_has_named_is_followed_to_its_end() {
    let (world, id) =
        dead(agents::skill("deploy"), json!({}), vec![accepted("remote-7", "context-7"), working()]).await;
    let peer = ScriptedPeer::telling(Vec::new());
    peer.will_tell(finished_with(vec![Part::text("done at last")]));
    let (heir, _post) = heir(&world, peer).await;
    let task = ended(&heir, &id).await;
    assert_eq!((task.head.state, task.artifacts.len()), (TaskState::Completed, 1));
    assert!(heir.peer.calls.lock().is_empty(), "it was asked for, not sent again");
    assert_eq!(heir.phases(), ["post-verb completed"]);
}

#[tokio::test]
async fn a_task_that_its_agent_no_longer_knows_ends_with_the_reason() {
    let (world, id) = dead(agents::skill("deploy"), json!({}), vec![accepted("remote-7", "context-7")]).await;
    let peer = ScriptedPeer::telling(Vec::new());
    peer.will_fail(
        rialto_model::failure::Failure::new(FailureKind::PeerFailed, "no such task")
            .with_data(rialto_model::json::Json::encode(&json!({ "remoteCode": -32001 }))),
    );
    let (heir, _post) = heir(&world, peer).await;
    let task = ended(&heir, &id).await;
    assert_eq!(task.head.state, TaskState::Failed);
    assert_eq!(task.failure.unwrap().message, "no such task");
}

#[tokio::test]
async fn an_agent_that_cannot_be_asked_is_asked_again() {
    let (world, id) = dead(agents::skill("deploy"), json!({}), vec![accepted("remote-7", "context-7")]).await;
    let peer = ScriptedPeer::telling(Vec::new());
    peer.will_fail(rialto_model::failure::Failure::new(FailureKind::PeerUnreachable, "nobody answers"));
    let (heir, _post) = heir(&world, Arc::clone(&peer)).await;
    while peer.follows.lock().is_empty() {
        tokio::task::yield_now().await;
    }
    assert!(!heir.engine.look(&heir.caller, id.as_str()).await.unwrap().head.state.is_terminal());
    peer.will_tell(finished_with(vec![Part::text("done")]));
    assert_eq!(ended(&heir, &id).await.head.state, TaskState::Completed);
    assert_eq!(peer.follows.lock().len(), 2);
}

#[tokio::test]
async fn a_task_of_a_skill_that_may_be_repeated_is_run_again() {
    let (world, id) = dead(agents::repeatable_skill("deploy"), json!({ "n": 1 }), vec![working()]).await;
    let (heir, _post) = heir(&world, ScriptedPeer::echo()).await;
    let task = ended(&heir, &id).await;
    assert_eq!(task.head.state, TaskState::Completed);
    let calls = heir.peer.calls.lock();
    assert_eq!((calls.len(), calls[0].args().get()), (1, r#"{"n":1}"#));
    assert_eq!(calls[0].task, id);
}

#[tokio::test]
async fn a_task_of_a_skill_that_may_not_be_repeated_ends_with_the_reason() {
    let (world, id) = dead(agents::skill("deploy"), json!({}), vec![working()]).await;
    let (heir, _post) = heir(&world, ScriptedPeer::echo()).await;
    let task = ended(&heir, &id).await;
    assert_eq!(task.head.state, TaskState::Failed);
    let reason = task.failure.unwrap().message;
    assert!(reason.contains("nothing says that it can safely be run twice"), "{reason}");
    assert!(heir.peer.calls.lock().is_empty());
    assert_eq!(heir.phases(), ["post-verb failed", "verb-error"]);
}

#[tokio::test]
async fn a_task_whose_arguments_held_secrets_is_not_run_again() {
    let (world, id) =
        dead(agents::repeatable_skill("deploy"), json!({ "password": "hunter2" }), vec![working()]).await;
    let (heir, _post) = heir(&world, ScriptedPeer::echo()).await;
    let task = ended(&heir, &id).await;
    let reason = task.failure.unwrap().message;
    assert!(reason.contains("held secrets that are not kept"), "{reason}");
    assert!(heir.peer.calls.lock().is_empty());
}

#[tokio::test]
async fn a_task_whose_agent_was_removed_ends_with_the_reason() {
    let (world, id) = dead(agents::repeatable_skill("deploy"), json!({}), vec![working()]).await;
    let agent = world.engine.registry().agents(&world.caller.scope).remove(0);
    world.engine.registry().remove(&agent).await.unwrap();
    let (heir, _post) = heir(&world, ScriptedPeer::echo()).await;
    let reason = ended(&heir, &id).await.failure.unwrap().message;
    assert!(reason.contains("its agent was removed"), "{reason}");
}

#[tokio::test]
async fn a_task_that_waits_for_its_caller_is_left_and_can_be_answered() {
    let asked = Event::Asked { ask: QuestionKind::Input, message: None, aside: EventAside::default() };
    let (world, id) =
        dead(agents::skill("deploy"), json!({}), vec![accepted("remote-7", "context-7"), asked]).await;
    // They are taken over in order: when the second one has ended, the first was looked at.
    let second = world.say(world.talk("m-2", None, json!({ "answer": "silence" }))).await;
    let (heir, _post) = heir(&world, ScriptedPeer::echo()).await;
    ended(&heir, &second).await;
    let mut answer = heir.talk("m-3", Some("ours"), json!({ "colour": "red" }));
    answer.task = Some(id.as_str().to_owned());
    assert_eq!(
        heir.engine.look(&heir.caller, id.as_str()).await.unwrap().head.state,
        TaskState::InputRequired
    );
    let rialto_engine::Said::Begun { running, .. } = heir.engine.say(answer).await.unwrap() else {
        panic!("it was not taken")
    };
    assert_eq!(running.finish().await.unwrap().head.state, TaskState::Completed);
}

#[tokio::test]
async fn a_task_whose_answer_is_being_recorded_is_not_taken_over() {
    let asked = Event::Asked { ask: QuestionKind::Input, message: None, aside: EventAside::default() };
    let (world, id) =
        dead(agents::skill("deploy"), json!({}), vec![accepted("remote-7", "context-7"), asked]).await;
    let (answering, switch) = world.later_with_faults(ScriptedPeer::echo(), LATER).await;
    answering.engine.take_post().await.unwrap();
    let mut answer = answering.talk("m-3", Some("ours"), json!({ "colour": "red" }));
    answer.task = Some(id.as_str().to_owned());
    // The answer is in the store, and its process does not know that yet.
    switch.set_for(&["append"], Fault::HangsAfterwards);
    let engine = answering.engine.clone();
    let said = tokio::spawn(async move { engine.say(answer).await });
    while world.engine.look(&world.caller, id.as_str()).await.unwrap().head.state.is_waiting() {
        tokio::task::yield_now().await;
    }
    let now = answering.clock.now();
    let taken = world.store.take_over_tasks(ProcessId::fresh(), now, 10).await.unwrap();
    assert!(taken.is_empty(), "{taken:?}");
    switch.set(Fault::None);
    let rialto_engine::Said::Begun { running, .. } = said.await.unwrap().unwrap() else {
        panic!("it was not taken")
    };
    assert_eq!(running.finish().await.unwrap().head.state, TaskState::Completed);
    // It is a task of the process that went on with it.
    answering.engine.leave_post().await;
    assert!(world.store.take_over_tasks(ProcessId::fresh(), now, 10).await.unwrap().is_empty(), "it is over");
}

#[tokio::test]
async fn tasks_of_a_process_that_is_at_work_are_left_to_it() {
    let (world, id) = dead(agents::repeatable_skill("deploy"), json!({}), vec![working()]).await;
    let neighbour = world.beside(ScriptedPeer::echo()).await;
    neighbour.engine.take_post().await.unwrap();
    let stop = CancellationToken::new();
    let keeping = neighbour.engine.keep_post(stop.clone());
    let look = async {
        // Whatever is taken over is taken over before the first pause.
        tokio::time::sleep(Duration::from_millis(50)).await;
        stop.cancel();
    };
    tokio::join!(keeping, look);
    assert!(neighbour.peer.calls.lock().is_empty());
    assert_eq!(
        neighbour.engine.look(&world.caller, id.as_str()).await.unwrap().head.state,
        TaskState::Working
    );
    // It retires, and whoever looks next takes over at once.
    world.engine.leave_post().await;
    let stop = CancellationToken::new();
    let (engine, until) = (neighbour.engine.clone(), stop.clone());
    let post = tokio::spawn(async move { engine.keep_post(until).await });
    assert_eq!(ended(&neighbour, &id).await.head.state, TaskState::Completed);
    stop.cancel();
    post.await.unwrap();
}

#[tokio::test]
async fn what_an_heir_hears_passes_the_guardrails_too() {
    let (world, id) =
        dead(agents::skill("deploy"), json!({}), vec![accepted("remote-7", "context-7"), working()]).await;
    let peer = ScriptedPeer::telling(Vec::new());
    peer.will_tell(finished_with(vec![Part::text("write to ann@example.org")]));
    let later = world.later(peer, LATER).await;
    crate::guardrails::guard(&later, json!({ "checks": [{ "type": "pii" }] }));
    later.engine.take_post().await.unwrap();
    let stop = CancellationToken::new();
    let (engine, until) = (later.engine.clone(), stop.clone());
    tokio::spawn(async move { engine.keep_post(until).await });
    let _post = stop.drop_guard();
    let task = ended(&later, &id).await;
    assert_eq!((task.head.state, task.artifacts.len()), (TaskState::Failed, 0));
    assert_eq!(task.failure.unwrap().kind, FailureKind::Blocked);
}
