//! How many calls an agent gets at a time.

use std::time::Duration;

use futures::{StreamExt, future::join_all};
use rialto_a2a_client::backend::Config;
use rialto_engine::peer::Peer;
use rialto_model::{
    card::{Binding, Dialect},
    failure::FailureKind,
};

use crate::{
    rows::{Desk, agent, call, failure, permit, quick},
    script::{Answer, Script, result},
};

const DONE: &str = r#"{"kind":"task","id":"t","contextId":"c","status":{"state":"completed"}}"#;

#[tokio::test]
async fn calls_beyond_the_limit_wait_for_their_turn() {
    let slowly = || Answer::Later(Duration::from_millis(20), Box::new(result(DONE)));
    let script = Script::start((0..6).map(|_| slowly())).await;
    let agent = agent(&script, Dialect::V03, Binding::JsonRpc);
    let desk = Desk::with(Config { max_in_flight: 2, ..quick() });
    let calls = join_all((0..6).map(|_| desk.send(call(&agent)))).await;
    assert!(calls.iter().all(|events| events.last().unwrap().name() == "finished"));
}

#[tokio::test]
async fn a_call_that_would_wait_too_long_is_turned_away() {
    let script = Script::start([Answer::Silence]).await;
    let agent = agent(&script, Dialect::V03, Binding::JsonRpc);
    let desk = Desk::with(Config { max_in_flight: 1, max_wait_ms: 20, ..quick() });
    let mut first = desk.peer.send(permit(call(&agent)));
    let busy = async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        failure(&desk.send(call(&agent)).await)
    };
    let failure = tokio::select! {
        failure = busy => failure,
        event = first.next() => panic!("{event:?}"),
    };
    assert_eq!(failure.kind, FailureKind::Busy);
    assert!(failure.message.contains("max_in_flight"), "{}", failure.message);
}

#[tokio::test]
async fn a_call_that_was_given_up_leaves_its_place() {
    let script = Script::start([Answer::Silence, result(DONE)]).await;
    let agent = agent(&script, Dialect::V03, Binding::JsonRpc);
    let desk = Desk::with(Config { max_in_flight: 1, ..quick() });
    tokio::select! {
        events = desk.send(call(&agent)) => panic!("{events:?}"),
        () = script.is_asked() => {}
    }
    assert_eq!(desk.send(call(&agent)).await.last().unwrap().name(), "finished");
}
