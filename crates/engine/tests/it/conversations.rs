//! Callers that keep a conversation: messages that come twice, contexts, and what is kept of what was said.

use std::{sync::Arc, time::Duration};

use futures::{StreamExt, stream};
use rialto_engine::{Request, Said};
use rialto_model::{
    event::Event,
    ids::TaskId,
    message::{MAX_PARTS, Part},
    task::TaskState,
};
use rialto_testkit::peer::{ScriptedPeer, accepted, finished_with_data};
use serde_json::json;

use crate::fixture::World;

async fn said(world: &World, request: Request) -> (TaskId, bool) {
    match world.engine.say(request).await.unwrap() {
        Said::Begun { running, .. } => (running.task().clone(), true),
        Said::Again(task) => (task, false),
    }
}

async fn echoing() -> World {
    World::with(ScriptedPeer::echo()).await
}

#[tokio::test]
async fn the_same_message_twice_is_one_task() {
    let world = echoing().await;
    let first = world.say(world.talk("m-1", None, json!({ "n": 1 }))).await;
    assert_eq!(said(&world, world.talk("m-1", None, json!({ "n": 1 }))).await, (first.clone(), false));
    assert_eq!(world.in_the_end(&first).await.head.state, TaskState::Completed);
    // Also when it is over.
    assert_eq!(said(&world, world.talk("m-1", Some("c"), json!({ "n": 1 }))).await, (first, false));
    assert_eq!(world.peer.calls.lock().len(), 1);
}

#[tokio::test]
async fn a_message_of_the_same_name_that_says_something_else_is_another_task() {
    let world = echoing().await;
    let first = world.say(world.talk("m-1", None, json!({ "n": 1 }))).await;
    let second = world.say(world.talk("m-1", None, json!({ "n": 2 }))).await;
    assert_ne!(first, second);
    let mut plain = world.talk("m-1", None, json!({ "n": 1 }));
    plain.target.skill = None;
    let third = world.say(plain.clone()).await;
    world.in_the_end(&third).await;
    // Each of them is remembered, also by another process.
    for world in [&world, &world.beside(ScriptedPeer::echo()).await] {
        assert_eq!(said(world, world.talk("m-1", None, json!({ "n": 1 }))).await, (first.clone(), false));
        assert_eq!(said(world, world.talk("m-1", None, json!({ "n": 2 }))).await, (second.clone(), false));
        assert_eq!(said(world, plain.clone()).await, (third.clone(), false));
    }
    assert_eq!(world.peer.calls.lock().len(), 3);
}

#[tokio::test]
async fn a_message_that_held_a_secret_is_known_again() {
    let world = echoing().await;
    let login = json!({ "password": { "old": "a", "new": "b" }, "user": "ann" });
    let first = world.say(world.talk("m-1", None, login.clone())).await;
    world.in_the_end(&first).await;
    let other = world.beside(ScriptedPeer::echo()).await;
    assert_eq!(said(&other, other.talk("m-1", None, login)).await, (first, false));
}

#[tokio::test]
async fn the_same_message_many_times_at_once_is_one_task() {
    let world = echoing().await;
    let all = (0..32).map(|_| said(&world, world.talk("m-1", None, json!({ "n": 1 }))));
    let all = futures::future::join_all(all).await;
    assert_eq!(all.iter().filter(|(_, is_new)| *is_new).count(), 1);
    assert!(all.iter().all(|(task, _)| *task == all[0].0), "{all:?}");
    world.in_the_end(&all[0].0).await;
    assert_eq!(world.peer.calls.lock().len(), 1);
}

#[tokio::test]
async fn the_same_message_to_another_process_is_one_task() {
    let world = echoing().await;
    let first = world.say(world.talk("m-1", None, json!({}))).await;
    world.in_the_end(&first).await;
    let other = world.beside(ScriptedPeer::echo()).await;
    assert_eq!(said(&other, other.talk("m-1", None, json!({}))).await, (first, false));
    assert!(other.peer.calls.lock().is_empty());
}

#[tokio::test]
async fn the_same_message_to_two_processes_at_work_is_one_task() {
    let first = echoing().await;
    first.engine.take_post().await.unwrap();
    let one = first.say(first.talk("m-1", None, json!({}))).await;
    first.in_the_end(&one).await;
    // The first has been alone so far, and must learn that it is not any more.
    let second = first.beside(ScriptedPeer::echo()).await;
    second.engine.take_post().await.unwrap();
    let two = second.say(second.talk("m-2", None, json!({}))).await;
    second.in_the_end(&two).await;
    assert_eq!(said(&first, first.talk("m-2", None, json!({}))).await, (two, false));
    assert_eq!(said(&second, second.talk("m-1", None, json!({}))).await, (one, false));
}

#[tokio::test]
async fn the_same_message_to_two_processes_at_once_is_one_task() {
    let first = echoing().await;
    first.engine.take_post().await.unwrap();
    let second = first.beside(ScriptedPeer::echo()).await;
    second.engine.take_post().await.unwrap();
    for n in 0..50 {
        let id = format!("m-{n}");
        let (one, other) = tokio::join!(
            said(&first, first.talk(&id, None, json!({ "n": n }))),
            said(&second, second.talk(&id, None, json!({ "n": n }))),
        );
        assert_eq!(one.0, other.0, "one task");
        assert_ne!(one.1, other.1, "begun once");
    }
    first.engine.drain(Duration::from_secs(60)).await;
    second.engine.drain(Duration::from_secs(60)).await;
    assert_eq!(first.peer.calls.lock().len() + second.peer.calls.lock().len(), 50);
}

#[tokio::test]
async fn a_claim_of_a_call_that_was_refused_is_given_up() {
    let first = echoing().await;
    first.engine.take_post().await.unwrap();
    let second = first.beside(ScriptedPeer::echo()).await;
    second.engine.take_post().await.unwrap();
    let mut request = first.talk("m-1", None, json!({}));
    request.parts = vec![Part::text("x"); MAX_PARTS + 1];
    assert!(first.engine.say(request).await.is_err());
    assert!(said(&second, second.talk("m-1", None, json!({}))).await.1, "the message may be sent again");
}

#[tokio::test]
async fn words_in_brackets_are_no_masks() {
    let world = echoing().await;
    let mut tasks = Vec::new();
    for text in ["deploy [staging] now", "deploy [production] now", "deploy staging now"] {
        let (task, is_new) = said(&world, world.talk("m-1", None, json!({ "text": text }))).await;
        assert!(is_new, "{text}");
        world.in_the_end(&task).await;
        tasks.push(task);
    }
    assert_eq!(world.peer.calls.lock().len(), 3);
    let again = said(&world, world.talk("m-1", None, json!({ "text": "deploy [production] now" }))).await;
    assert_eq!(again, (tasks[1].clone(), false));
}

#[tokio::test]
async fn a_caller_that_hangs_up_while_its_task_is_written_down_leaves_none_that_nobody_works_on() {
    for n in 0..20 {
        let world = echoing().await;
        let saying = world.engine.say(world.talk("m-1", None, json!({ "n": n })));
        let is_there = async || {
            let found = world.store.tasks_by_message(&world.caller.scope, &world.caller.id, "m-1").await;
            !found.unwrap().is_empty()
        };
        let written = async { while !is_there().await {} };
        tokio::select! {
            biased;
            () = written => {}
            said = saying => drop(said),
        }
        // Whoever comes again finds the one task, and it ends.
        let (task, is_new) = said(&world, world.talk("m-1", None, json!({ "n": n }))).await;
        assert!(!is_new);
        assert_eq!(world.in_the_end(&task).await.head.state, TaskState::Completed);
        assert_eq!(world.peer.calls.lock().len(), 1);
    }
}

#[tokio::test]
async fn another_callers_message_of_the_same_name_is_another_task() {
    let world = echoing().await;
    let first = world.say(world.talk("m-1", None, json!({}))).await;
    let mut request = world.talk("m-1", None, json!({}));
    request.caller = rialto_model::call::Caller::user("bob");
    let (second, is_new) = said(&world, request).await;
    assert!(is_new && second != first);
}

#[tokio::test]
async fn messages_without_a_name_are_never_the_same() {
    let world = echoing().await;
    let first = world.say(world.talk("", None, json!({}))).await;
    let second = world.say(world.talk("", None, json!({}))).await;
    assert_ne!(first, second);
}

#[tokio::test]
async fn a_message_that_was_refused_can_be_sent_again() {
    let world = echoing().await;
    let mut refused = world.talk("m-1", None, json!({}));
    refused.parts = vec![Part::text("x"); rialto_model::message::MAX_PARTS + 1];
    assert!(world.engine.say(refused).await.is_err());
    let (_, is_new) = said(&world, world.talk("m-1", None, json!({}))).await;
    assert!(is_new);
}

#[tokio::test]
async fn a_context_is_the_agents_own_context_there_and_nobody_elses() {
    let world = World::telling(finished_with_data(json!(1))).await;
    let first = world.say(world.talk("m-1", Some("ours"), json!({}))).await;
    world.in_the_end(&first).await;
    let second = world.say(world.talk("m-2", Some("ours"), json!({}))).await;
    let third = world.say(world.talk("m-3", Some("another"), json!({}))).await;
    world.in_the_end(&third).await;
    let continued: Vec<_> =
        world.peer.calls.lock().iter().map(|call| call.continues.context_id.clone()).collect();
    assert_eq!(continued, [None, Some("context-1".to_owned()), None]);
    for (task, context) in [(&first, "ours"), (&second, "ours"), (&third, "another")] {
        let head = world.engine.look(&world.caller, task.as_str()).await.unwrap().head;
        assert_eq!(head.context.as_ref().map(rialto_model::ids::ContextId::as_str), Some(context));
    }
    // Another process knows it too.
    let other = world.beside(ScriptedPeer::telling(finished_with_data(json!(1)))).await;
    let fourth = other.say(other.talk("m-4", Some("ours"), json!({}))).await;
    other.in_the_end(&fourth).await;
    assert_eq!(other.peer.calls.lock()[0].continues.context_id.as_deref(), Some("context-1"));
}

#[tokio::test]
async fn secrets_in_messages_reach_the_agent_and_are_not_kept() {
    let world = echoing().await;
    let mut request = world.talk("m-1", None, json!({ "password": "hunter2", "note": "plain" }));
    let message = &mut Arc::get_mut(&mut request.talk.as_mut().unwrap().spoken).unwrap().message;
    message.parts.push(Part::text("use ghp_abcdef"));
    message.metadata = Some(rialto_model::json::Json::encode(&json!({ "token": "hunter3" })));
    let id = world.say(request).await;
    let task = world.in_the_end(&id).await;
    let kept = serde_json::to_string(&task.history).unwrap();
    for secret in ["hunter2", "hunter3", "ghp_abcdef"] {
        assert!(!kept.contains(secret), "{kept}");
    }
    assert!(kept.contains("plain") && !task.head.args.get().contains("hunter2"), "{kept}");
    let events = world.store.events(&id, 0).await.unwrap();
    assert!(!format!("{:?}", &events[..1]).contains("hunter"), "{events:?}");
    assert!(world.peer.calls.lock()[0].args().get().contains("hunter2"));
}

#[tokio::test]
async fn an_answer_goes_to_the_task_that_waits_and_begins_none() {
    let peer = ScriptedPeer::with(|call| {
        let events = if call.continues.task_id.is_some() {
            finished_with_data(json!("thanks"))
        } else {
            let ask = rialto_model::event::QuestionKind::Input;
            let asked =
                Event::Asked { ask, message: None, aside: rialto_model::event::EventAside::default() };
            vec![accepted("remote-1", "context-1"), asked]
        };
        stream::iter(events).boxed()
    });
    let world = World::with(Arc::clone(&peer)).await;
    let id = world.say(world.talk("m-1", Some("c"), json!({}))).await;
    assert_eq!(world.in_the_end(&id).await.head.state, TaskState::InputRequired);
    let mut answer = world.talk("m-2", Some("c"), json!({ "colour": "red" }));
    answer.task = Some(id.as_str().to_owned());
    assert_eq!(said(&world, answer.clone()).await, (id.clone(), true));
    let task = world.in_the_end(&id).await;
    assert_eq!((task.head.state, task.history.len()), (TaskState::Completed, 2));
    // The same answer again goes nowhere.
    assert_eq!(said(&world, answer).await, (id, false));
    assert_eq!(peer.calls.lock().len(), 2);
}
