//! What agents answer, and what we tell of it.

use rialto_model::{
    card::{Binding, Dialect},
    event::Event,
    failure::FailureKind,
};

use crate::{
    rows::{agent, failure, send, told},
    script::{Script, error, json, result},
};

/// What is told of one answer to a 0.3 call.
async fn heard(answer: &str) -> Vec<String> {
    let script = Script::start([result(answer)]).await;
    told(&send(&agent(&script, Dialect::V03, Binding::JsonRpc)).await)
}

fn task(state: &str) -> String {
    format!(
        r#"{{"contextId":"ctx-1","id":"task-1","kind":"task","status":{{"message":{{"kind":"message",
        "messageId":"m-1","parts":[{{"kind":"text","text":"well"}}],"role":"agent"}},"state":"{state}",
        "timestamp":"2026-11-15T20:00:00.000000+00:00"}}}}"#
    )
}

#[tokio::test]
async fn a_completed_task_is_told_with_its_artifacts_in_every_dialect() {
    let told_of = ["accepted task-1 ctx-1", r#"artifact a-1 . Data({"sky":"clear"})"#, "finished"];
    for (dialect, binding, answer) in [
        (
            Dialect::V10,
            Binding::JsonRpc,
            r#"{"jsonrpc":"2.0","id":1,"result":{"task":{"id":"task-1","contextId":"ctx-1","status":{
            "state":"TASK_STATE_COMPLETED","timestamp":"2026-11-15T20:00:00.000Z"},"artifacts":[{"artifactId":"a-1",
            "parts":[{"data":{"sky":"clear"}}]}]}}}"#,
        ),
        (
            Dialect::V10,
            Binding::HttpJson,
            r#"{"task":{"id":"task-1","contextId":"ctx-1","status":{"state":"TASK_STATE_COMPLETED"},
            "artifacts":[{"artifactId":"a-1","parts":[{"data":{"sky":"clear"}}]}]}}"#,
        ),
        (
            Dialect::V03,
            Binding::JsonRpc,
            r#"{"jsonrpc":"2.0","id":1,"result":{"artifacts":[{"artifactId":"a-1","name":"forecast","parts":[
            {"data":{"sky":"clear"},"kind":"data"}]}],"contextId":"ctx-1","history":[{"kind":"message",
            "messageId":"m","parts":[{"kind":"text","text":"?"}],"role":"user"}],"id":"task-1","kind":"task",
            "status":{"state":"completed","timestamp":"2026-11-15T20:00:00.000000+00:00"}}}"#,
        ),
        (
            Dialect::V03,
            Binding::HttpJson,
            r#"{"task":{"id":"task-1","contextId":"ctx-1","status":{"state":"TASK_STATE_COMPLETED"},
            "artifacts":[{"artifactId":"a-1","parts":[{"data":{"data":{"sky":"clear"}}}]}]}}"#,
        ),
        (
            Dialect::V02,
            Binding::JsonRpc,
            r#"{"jsonrpc":"2.0","id":1,"result":{"artifacts":[{"artifactId":"a-1","parts":[{"kind":"data",
            "data":{"sky":"clear"}}]}],"contextId":"ctx-1","id":"task-1","kind":"task",
            "status":{"state":"completed"}}}"#,
        ),
    ] {
        let script = Script::start([json(answer)]).await;
        let events = send(&agent(&script, dialect, binding.clone())).await;
        assert_eq!(told(&events), told_of, "{dialect} over {binding:?}");
    }
}

#[tokio::test]
async fn a_completed_task_of_0_1_is_told_under_the_id_we_gave_it() {
    let script = Script::start([result(
        r#"{"id":"a2a-agt_1-forecast-1","sessionId":"s-1","status":{"state":"completed",
        "timestamp":"2026-11-15T20:00:00.000"},"artifacts":[{"parts":[{"type":"text","text":"clear"}],"index":0}]}"#,
    )])
    .await;
    let events = send(&agent(&script, Dialect::V01, Binding::JsonRpc)).await;
    let told = told(&events);
    assert_eq!(told[0], "accepted a2a-agt_1-forecast-1 s-1");
    assert!(told[1].ends_with(r#"Text("clear")"#), "{told:?}");
    assert_eq!(told[2], "finished");
}

#[tokio::test]
async fn each_state_a_task_can_end_or_wait_in_is_told_for_what_it_is() {
    for (state, last) in [
        ("completed", "finished: well"),
        ("failed", "failed PeerFailed: well"),
        ("rejected", "rejected: well"),
        ("canceled", "canceled: well"),
        ("input-required", "asked Input: well"),
        ("auth-required", "asked Auth: well"),
    ] {
        assert_eq!(heard(&task(state)).await, ["accepted task-1 ctx-1", last], "{state}");
    }
}

#[tokio::test]
async fn a_failure_without_words_still_says_what_happened() {
    let script =
        Script::start([result(r#"{"kind":"task","id":"t","contextId":"c","status":{"state":"failed"}}"#)])
            .await;
    let failure = failure(&send(&agent(&script, Dialect::V03, Binding::JsonRpc)).await);
    assert_eq!(failure.message, "the agent says the task failed");
    insta::assert_snapshot!(failure.data.unwrap(), @r#"{"remoteState":"failed"}"#);
}

#[tokio::test]
async fn a_message_is_the_whole_answer() {
    let answer = r#"{"contextId":"ctx-1","kind":"message","messageId":"m-1","parts":[{"kind":"text","text":"hi"}],"role":"agent"}"#;
    assert_eq!(heard(answer).await, ["accepted - ctx-1", "replied: hi"]);
    let answer =
        r#"{"kind":"message","messageId":"m-1","parts":[{"kind":"text","text":"hi"}],"role":"agent"}"#;
    assert_eq!(heard(answer).await, ["replied: hi"]);
}

#[tokio::test]
async fn what_we_do_not_know_of_a_task_travels_along() {
    let script = Script::start([result(
        r#"{"kind":"task","id":"t","contextId":"c","metadata":{"cost":1.50},"x-trace":[1],"status":{"state":"completed"}}"#,
    )])
    .await;
    let events = send(&agent(&script, Dialect::V03, Binding::JsonRpc)).await;
    let Event::Accepted { aside, .. } = &events[0] else { panic!("{events:?}") };
    assert_eq!(aside.metadata.as_ref().unwrap().get(), r#"{"cost":1.50}"#);
    assert_eq!(aside.extra.get("x-trace").unwrap().get(), "[1]");
}

#[tokio::test]
async fn a_payload_spread_over_lines_comes_out_on_one() {
    let answer = "{\"kind\":\"message\",\"messageId\":\"m\",\"role\":\"agent\",\"parts\":[{\"kind\":\"data\",\"data\":{\r\n\"a\":1\n}}]}";
    let script = Script::start([result(answer)]).await;
    let events = send(&agent(&script, Dialect::V03, Binding::JsonRpc)).await;
    assert!(format!("{events:?}").contains(r#"Data({  "a":1 })"#), "{events:?}");
}

#[tokio::test]
async fn an_error_of_the_agent_carries_its_code_and_words() {
    let script = Script::start([error(-32000, "out of cheese")]).await;
    let failure = failure(&send(&agent(&script, Dialect::V03, Binding::JsonRpc)).await);
    assert_eq!(failure.kind, FailureKind::PeerFailed);
    assert_eq!(failure.message, "the agent answered with error -32000: out of cheese");
    insta::assert_snapshot!(failure.data.unwrap(), @r#"{"remoteCode":-32000,"remoteMessage":"out of cheese"}"#);
}

#[tokio::test]
async fn an_error_over_rest_carries_its_code_and_words() {
    let script = Script::start([crate::script::http(
        400,
        r#"{"error":{"code":400,"status":"INVALID_ARGUMENT","message":"no such type","details":[{"@type":
        "type.googleapis.com/google.rpc.ErrorInfo","reason":"CONTENT_TYPE_NOT_SUPPORTED","domain":"a2a-protocol.org"}]}}"#,
    )])
    .await;
    let failure = failure(&send(&agent(&script, Dialect::V10, Binding::HttpJson)).await);
    assert_eq!(failure.kind, FailureKind::PeerFailed);
    assert_eq!(failure.message, "the agent answered with error -32005: no such type");
}
