//! Tasks that are not over at the first answer, and tasks asked for later.

use rialto_model::{
    card::{Binding, Dialect},
    failure::FailureKind,
};

use crate::{
    rows::{Desk, agent, remote, send, streaming, target, tell, told},
    script::{Answer, Script, error, events, http, json, result},
};

fn task(state: &str) -> String {
    format!(r#"{{"contextId":"ctx-1","id":"task-1","kind":"task","status":{{"state":"{state}"}}}}"#)
}

fn proto(state: &str) -> String {
    format!(r#"{{"id":"task-1","contextId":"ctx-1","status":{{"state":"TASK_STATE_{state}"}}}}"#)
}

#[tokio::test]
async fn a_task_that_still_works_is_polled_and_nothing_is_told_twice() {
    let script = Script::start([
        result(&task("submitted")),
        result(&task("submitted")),
        result(&task("working")),
        result(&task("working")),
        result(&task("completed")),
    ])
    .await;
    let events = send(&agent(&script, Dialect::V03, Binding::JsonRpc)).await;
    assert_eq!(told(&events), ["accepted task-1 ctx-1", "queued", "working", "finished"]);
    assert_eq!(script.asked(), ["message/send", "tasks/get", "tasks/get", "tasks/get", "tasks/get"]);
}

#[tokio::test]
async fn a_rest_agent_that_answers_at_once_is_polled() {
    // Q5: 0.3.26 over REST.
    let submitted = format!(r#"{{"task":{}}}"#, proto("SUBMITTED"));
    let script = Script::start([json(&submitted), json(&proto("COMPLETED"))]).await;
    let events = send(&agent(&script, Dialect::V03, Binding::HttpJson)).await;
    assert_eq!(told(&events), ["accepted task-1 ctx-1", "queued", "finished"]);
    assert_eq!(script.asked(), ["POST /v1/message:send", "GET /v1/tasks/task-1"]);
}

#[tokio::test]
async fn polling_survives_a_short_outage() {
    let script = Script::start([
        result(&task("working")),
        http(503, "restarting"),
        http(502, ""),
        result(&task("completed")),
    ])
    .await;
    let events = send(&agent(&script, Dialect::V03, Binding::JsonRpc)).await;
    assert_eq!(told(&events).last().unwrap(), "finished");
}

#[tokio::test]
async fn polling_gives_up_when_the_agent_stays_away() {
    let script = Script::start([result(&task("working"))]).await;
    let events = send(&agent(&script, Dialect::V03, Binding::JsonRpc)).await;
    let told = told(&events);
    assert_eq!(told.last().unwrap(), "failed PeerUnreachable: the agent answered with HTTP status 500");
    assert!(script.asked().len() < 20);
}

#[tokio::test]
async fn a_task_that_the_agent_has_forgotten_ends_with_its_words() {
    let script = Script::start([result(&task("working")), error(-32001, "no such task")]).await;
    let events = send(&agent(&script, Dialect::V03, Binding::JsonRpc)).await;
    assert_eq!(
        told(&events).last().unwrap(),
        "failed PeerFailed: the agent answered with error -32001: no such task"
    );
}

#[tokio::test]
async fn a_task_is_looked_at_once() {
    let script = Script::start([result(&proto("WORKING"))]).await;
    let followed = Desk::new().follow(&agent(&script, Dialect::V10, Binding::JsonRpc), false).await;
    let told: Vec<_> = followed.iter().map(|event| tell(event.as_ref().unwrap())).collect();
    assert_eq!(told, ["accepted task-1 ctx-1", "working"]);
    insta::assert_snapshot!(script.heard()[0].body, @r#"{"jsonrpc":"2.0","id":1700000000000,"method":"GetTask","params":{"id":"task-1","historyLength":0}}"#);
}

#[tokio::test]
async fn a_task_is_followed_to_the_end_by_polling() {
    let script = Script::start([result(&proto("WORKING")), result(&proto("COMPLETED"))]).await;
    let followed = Desk::new().follow(&agent(&script, Dialect::V10, Binding::JsonRpc), true).await;
    let told: Vec<_> = followed.iter().map(|event| tell(event.as_ref().unwrap())).collect();
    assert_eq!(told, ["accepted task-1 ctx-1", "working", "finished"]);
}

#[tokio::test]
async fn a_task_is_followed_to_the_end_by_its_stream() {
    let update = r#"{"statusUpdate":{"taskId":"task-1","contextId":"ctx-1","status":{"state":"TASK_STATE_COMPLETED"}}}"#;
    let script = Script::start([
        result(&proto("WORKING")),
        events(&[&format!(r#"{{"task":{}}}"#, proto("WORKING")), update]),
        result(&proto("WORKING")),
        result(&proto("COMPLETED")),
    ])
    .await;
    let followed = Desk::new().follow(&streaming(&script, Dialect::V10, Binding::JsonRpc), true).await;
    let told: Vec<_> = followed.iter().map(|event| tell(event.as_ref().unwrap())).collect();
    assert_eq!(told, ["accepted task-1 ctx-1", "working", "finished"]);
    assert_eq!(script.asked(), ["GetTask", "SubscribeToTask", "GetTask", "GetTask"]);
    insta::assert_snapshot!(script.heard()[1].body, @r#"{"jsonrpc":"2.0","id":1700000000001,"method":"SubscribeToTask","params":{"id":"task-1"}}"#);
}

#[tokio::test]
async fn trouble_in_asking_says_nothing_about_the_task() {
    let script = Script::start([error(-32001, "no such task")]).await;
    let followed = Desk::new().follow(&agent(&script, Dialect::V10, Binding::JsonRpc), true).await;
    let [Err(failure)] = followed.as_slice() else { panic!("{followed:?}") };
    assert_eq!(failure.kind, FailureKind::PeerFailed);
}

#[tokio::test]
async fn a_task_without_a_name_cannot_be_asked_for() {
    use futures::StreamExt;
    use rialto_engine::peer::Peer;
    let script = Script::start([]).await;
    let agent = agent(&script, Dialect::V10, Binding::JsonRpc);
    let follow = rialto_model::call::FollowRequest {
        caller: crate::rows::caller(),
        target: target(&agent),
        remote: rialto_model::event::RemoteIds { task_id: None, ..remote("") },
        to_the_end: true,
    };
    let followed: Vec<_> = Desk::new().peer.follow(crate::rows::permit(follow)).collect().await;
    assert!(matches!(&followed[..], [Err(failure)] if failure.kind == FailureKind::Conflict));
    assert!(script.heard().is_empty());
}

#[tokio::test]
async fn a_stream_can_be_left_at_any_time() {
    use futures::StreamExt;
    use rialto_engine::peer::Peer;
    let script = Script::start([Answer::Silence]).await;
    let call = crate::rows::call(&agent(&script, Dialect::V03, Binding::JsonRpc));
    let mut events = Desk::new().peer.send(crate::rows::permit(call));
    let heard = tokio::time::timeout(std::time::Duration::from_millis(50), events.next()).await;
    assert!(heard.is_err());
}
