//! What was begun with a token does not go on after it was revoked or has expired.

use rialto_engine::{Config, approvals::Decider};
use rialto_model::{
    call::CallerKind,
    failure::FailureKind,
    store::Token,
    task::{Task, TaskState},
    token_scopes::TokenScopes,
};
use rialto_testkit::peer::ScriptedPeer;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::fixture::World;

const OPS: &str = r#"@id("ask-ops") @approval("the ops team") forbid (principal, action == Action::"a2a_invoke", resource)
    unless { context.approved };"#;

/// A call of ann's that waits for approval, made with a token that expires so much later.
async fn held(seconds: Option<i64>) -> (World, Task) {
    let mut world = World::with_policies(ScriptedPeer::echo(), Config::default(), OPS).await;
    let now = world.engine.now();
    let token = Token {
        id: "tok_1".to_owned(),
        hash: "0".repeat(64),
        scope: world.caller.scope.clone(),
        caller: world.caller.id.clone(),
        kind: CallerKind::User,
        rights: TokenScopes::ALL,
        created_at: now,
        expires_at: seconds.map(|seconds| now + std::time::Duration::from_secs(seconds.unsigned_abs())),
        revoked_at: None,
        created_by: None,
        session_of: None,
    };
    world.store.put_token(&token).await.unwrap();
    world.caller.token = Some("tok_1".into());
    let task = world.call(json!({})).await.unwrap();
    assert_eq!(task.head.state, TaskState::InputRequired);
    (world, task)
}

async fn ended(world: &World, task: &Task) -> Task {
    let (mut task, mut following) = world.engine.follow(&world.caller, task.head.id.as_str()).await.unwrap();
    while !task.head.state.is_terminal() {
        for recorded in following.next().await.unwrap() {
            task.apply(&recorded.event, recorded.at);
        }
    }
    task
}

fn keep(world: &World) -> tokio_util::sync::DropGuard {
    let (engine, stop) = (world.engine.clone(), CancellationToken::new());
    let until = stop.clone();
    tokio::spawn(async move { engine.keep_approvals(until).await });
    stop.drop_guard()
}

#[tokio::test]
async fn a_call_that_waits_for_approval_is_denied_when_its_token_is_revoked() {
    let (world, task) = held(None).await;
    let _keeper = keep(&world);
    world.store.revoke_token("tok_1", world.engine.now()).await.unwrap();
    let failure = ended(&world, &task).await.failure.unwrap();
    assert_eq!(failure.kind, FailureKind::Denied);
    let why = "vercel_ops.deploy was not approved: the token that ann made this call with was revoked or has expired";
    assert_eq!(failure.message, why);
    assert!(world.peer.calls.lock().is_empty(), "it was not made");
}

#[tokio::test]
async fn approving_a_call_whose_token_was_revoked_does_not_make_it() {
    let (world, task) = held(None).await;
    let by = Decider::Operator("olga".to_owned());
    world.store.revoke_token("tok_1", world.engine.now()).await.unwrap();
    let waiting = world.engine.approvals(&by, Default::default()).await.unwrap().remove(0);
    let approval = world.engine.decide_on(&by, waiting.id.as_str(), true, None).await.unwrap();
    world.engine.go_on_here(&approval).await.unwrap();
    let failure = ended(&world, &task).await.failure.unwrap();
    assert!(
        failure.kind == FailureKind::Denied && failure.message.contains("so it was not made"),
        "{failure}"
    );
    assert!(world.peer.calls.lock().is_empty());
}

#[tokio::test]
async fn a_call_of_a_good_token_is_made_once_it_is_approved() {
    let (world, task) = held(Some(1_000)).await;
    let _keeper = keep(&world);
    let by = Decider::Operator("olga".to_owned());
    let waiting = world.engine.approvals(&by, Default::default()).await.unwrap().remove(0);
    world.engine.decide_on(&by, waiting.id.as_str(), true, None).await.unwrap();
    assert_eq!(ended(&world, &task).await.head.state, TaskState::Completed);
    assert_eq!(world.peer.calls.lock().len(), 1);
}

#[tokio::test]
async fn an_expired_token_denies_what_waits_in_the_next_process() {
    let (world, task) = held(Some(10)).await;
    let later = world.later(ScriptedPeer::echo(), std::time::Duration::from_secs(60)).await;
    let _keeper = keep(&later);
    let failure = ended(&later, &task).await.failure.unwrap();
    assert!(failure.message.contains("was revoked or has expired"), "{failure}");
    assert!(later.peer.calls.lock().is_empty());
}

#[tokio::test]
async fn a_call_that_waited_still_counts_the_calls_that_led_to_it() {
    let mut world = World::with_policies(ScriptedPeer::echo(), Config::default(), OPS).await;
    world.caller.hops = 5;
    let task = world.call(json!({})).await.unwrap();
    assert_eq!(task.head.state, TaskState::InputRequired);
    let _keeper = keep(&world);
    let by = Decider::Operator("olga".to_owned());
    let waiting = world.engine.approvals(&by, Default::default()).await.unwrap().remove(0);
    world.engine.decide_on(&by, waiting.id.as_str(), true, None).await.unwrap();
    assert_eq!(ended(&world, &task).await.head.state, TaskState::Completed);
    assert_eq!(world.peer.calls.lock()[0].caller.hops, 5);
}
