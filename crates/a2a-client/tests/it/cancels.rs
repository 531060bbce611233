//! Calling tasks off.

use rialto_model::{
    card::{Binding, Dialect},
    failure::FailureKind,
};

use crate::{
    rows::{Desk, agent, told},
    script::{Answer, Script, error, json, result},
};

fn proto(state: &str) -> Answer {
    result(&proto_body(state))
}

fn proto_body(state: &str) -> String {
    format!(r#"{{"id":"task-1","contextId":"ctx-1","status":{{"state":"TASK_STATE_{state}"}}}}"#)
}

async fn cancel(answers: Vec<Answer>) -> (Vec<String>, Script) {
    let script = Script::start(answers).await;
    let events = Desk::new().cancel(&agent(&script, Dialect::V10, Binding::JsonRpc)).await.unwrap();
    (told(&events), script)
}

#[tokio::test]
async fn a_canceled_task_is_told() {
    let (told, script) = cancel(vec![proto("CANCELED")]).await;
    assert_eq!(told, ["accepted task-1 ctx-1", "canceled"]);
    insta::assert_snapshot!(script.heard()[0].body, @r#"{"jsonrpc":"2.0","id":1700000000000,"method":"CancelTask","params":{"id":"task-1"}}"#);
}

#[tokio::test]
async fn a_task_that_takes_its_time_to_stop_is_waited_for() {
    // Q4: a2a-sdk 0.3.26 says nothing more on open streams.
    let (told, script) = cancel(vec![proto("WORKING"), proto("WORKING"), proto("CANCELED")]).await;
    assert_eq!(told, ["accepted task-1 ctx-1", "working", "canceled"]);
    assert_eq!(script.asked(), ["CancelTask", "GetTask", "GetTask"]);
}

#[tokio::test]
async fn a_task_that_never_stops_is_not_waited_for_long() {
    let mut answers = vec![proto("WORKING")];
    answers.extend((0..500).map(|_| proto("WORKING")));
    let (told, _) = cancel(answers).await;
    assert_eq!(told, ["accepted task-1 ctx-1", "working"]);
}

#[tokio::test]
async fn a_task_that_is_over_already_is_told_as_it_ended() {
    // Q8: a2a-sdk refuses a second cancel, @a2a-js/sdk answers with the task.
    let (told, script) = cancel(vec![error(-32002, "Task cannot be canceled"), proto("COMPLETED")]).await;
    assert_eq!(told, ["accepted task-1 ctx-1", "finished"]);
    assert_eq!(script.asked(), ["CancelTask", "GetTask"]);
    let (told, script) = cancel(vec![proto("CANCELED")]).await;
    assert_eq!(told, ["accepted task-1 ctx-1", "canceled"]);
    assert_eq!(script.asked(), ["CancelTask"]);
}

#[tokio::test]
async fn a_task_is_canceled_over_rest() {
    let script = Script::start([json(&proto_body("CANCELLED"))]).await;
    let agent = agent(&script, Dialect::V03, Binding::HttpJson);
    let events = Desk::new().cancel(&agent).await.unwrap();
    assert_eq!(told(&events), ["accepted task-1 ctx-1", "canceled"]);
    assert_eq!(script.asked(), ["POST /v1/tasks/task-1:cancel"]);
}

#[tokio::test]
async fn a_task_that_is_not_there_cannot_be_canceled() {
    let script = Script::start([error(-32001, "no such task")]).await;
    let failure = Desk::new().cancel(&agent(&script, Dialect::V10, Binding::JsonRpc)).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::PeerFailed);
}
