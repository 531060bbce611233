//! Circuit breakers: agents that fail get no calls for a moment, and nobody else's faults count against them.

use std::{sync::Arc, time::Duration};

use futures::{StreamExt, stream};
use parking_lot::Mutex;
use rialto_engine::{Config, peer::DiscoveryError, routing};
use rialto_model::{
    agent::{AgentTrust, Health},
    call::{Call, CallerId},
    event::Event,
    failure::{Failure, FailureKind},
    json::Json,
    message::Part,
};
use rialto_testkit::{
    agents,
    peer::{ScriptedPeer, finished_with},
};
use serde_json::json;

use crate::fixture::{URL, World};

/// A backend that answers with what `next` makes of a call.
pub(crate) fn answering(
    next: impl Fn(&Call) -> Option<Failure> + Send + Sync + 'static,
) -> Arc<ScriptedPeer> {
    ScriptedPeer::with(move |call| {
        let events = match next(call) {
            Some(failure) => vec![Event::failed(failure)],
            None => finished_with(vec![Part::text("done")]),
        };
        stream::iter(events).boxed()
    })
}

pub(crate) fn status(status: u16) -> Failure {
    let data = json!({ "status": status });
    Failure::new(FailureKind::PeerUnreachable, format!("status {status}")).with_data(Json::encode(&data))
}

async fn call(world: &World) -> Result<(), Failure> {
    world.call(json!({})).await.map(drop)
}

/// How often the backend was called.
fn calls(world: &World) -> usize {
    world.peer.calls.lock().len()
}

pub(crate) fn state(world: &World) -> &'static str {
    let agents = world.engine.registry().all();
    world.engine.breaker(&agents[0].id).state
}

#[tokio::test]
async fn an_agent_that_answers_503_gets_no_calls_until_a_probe_is_answered() {
    let is_down = Arc::new(Mutex::new(true));
    let down = Arc::clone(&is_down);
    let peer = answering(move |_| down.lock().then(|| status(503)));
    // Long pauses: the clock of the test passes them.
    let routing = routing::Config {
        breaker_window_secs: 3_600.0,
        breaker_pause_secs: 1_000.0,
        breaker_longest_secs: 10_000.0,
        ..routing::Config::default()
    };
    let world = World::empty(peer, Config { routing, ..Config::default() }).await;
    world.register(agents::skill("deploy"), AgentTrust::Trusted).await;
    for _ in 0..10 {
        assert_eq!(call(&world).await.unwrap_err().message, "status 503");
    }
    assert_eq!(state(&world), "open");
    let refused = call(&world).await.unwrap_err();
    assert!(refused.message.contains("circuit breaker is open: status 503"), "{refused}");
    assert!(refused.is_not_sent());
    assert_eq!(calls(&world), 10, "the refused call never left");

    world.clock.forward(Duration::from_secs(1_001));
    assert_eq!(call(&world).await.unwrap_err().message, "status 503", "one call is the probe");
    assert!(call(&world).await.unwrap_err().message.contains("circuit breaker"));
    assert_eq!(calls(&world), 11);

    *is_down.lock() = false;
    world.clock.forward(Duration::from_secs(2_001));
    for _ in 0..3 {
        call(&world).await.unwrap();
    }
    assert_eq!(state(&world), "closed");
}

#[tokio::test]
async fn errors_that_are_answers_and_our_own_faults_open_nothing() {
    let failures = [
        status(400),
        status(401),
        status(500),
        Failure::new(FailureKind::PeerFailed, "no such city"),
        Failure::new(FailureKind::Internal, "no file descriptors left").not_sent(),
        Failure::new(FailureKind::Busy, "too many calls"),
    ];
    for failure in failures {
        let answer = failure.clone();
        let world = World::with(answering(move |_| Some(answer.clone()))).await;
        for _ in 0..30 {
            assert_eq!(call(&world).await.unwrap_err().message, failure.message);
        }
        assert_eq!((calls(&world), state(&world)), (30, "closed"), "{failure}");
    }
}

#[tokio::test]
async fn one_caller_whose_calls_fail_does_not_keep_others_from_the_agent() {
    let world =
        World::with(answering(|call| (call.caller.id.as_str() == "clumsy").then(|| status(502)))).await;
    for _ in 0..30 {
        let mut request = world.request(json!({}));
        request.caller.id = CallerId::from("clumsy");
        world.engine.call(request).await.unwrap().finish().await.unwrap_err();
        call(&world).await.unwrap();
    }
    assert_eq!((calls(&world), state(&world)), (60, "closed"));
}

#[tokio::test]
async fn a_probe_that_this_machine_cannot_make_says_nothing_about_the_agent() {
    let world = World::with(ScriptedPeer::echo()).await;
    let registry = world.engine.registry();
    let agent = registry.all().remove(0);
    registry.probe(&agent).await.unwrap();
    let before = registry.get(&agent.id).unwrap().health;
    let reason = "this server has no file descriptors left".to_owned();
    world.discovery.fail(URL, DiscoveryError::Local { url: URL.to_owned(), reason });
    let error = registry.probe(&agent).await.unwrap_err();
    assert!(error.to_string().contains("no file descriptors left"), "{error}");
    assert_eq!(registry.get(&agent.id).unwrap().health, before);
    assert_ne!(before, Health::Unreachable);
    call(&world).await.unwrap();
}
