//! Streams, and what is done when they break.

use rialto_model::card::{Binding, Dialect};

use crate::{
    rows::{Desk, call, failure, send, streaming, told},
    script::{Answer, Script, data, envelope, error, events, http, json, result},
};

pub(crate) const TASK: &str =
    r#"{"task":{"id":"task-1","contextId":"ctx-1","status":{"state":"TASK_STATE_SUBMITTED"}}}"#;
pub(crate) const STEP: &str = r#"{"statusUpdate":{"taskId":"task-1","contextId":"ctx-1","status":{"state":"TASK_STATE_WORKING",
    "message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"step 1/2"}]}}}}"#;
pub(crate) const FIRST: &str = r#"{"artifactUpdate":{"taskId":"task-1","contextId":"ctx-1","artifact":{"artifactId":"a-1",
    "parts":[{"text":"1 "}]}}}"#;
pub(crate) const SECOND: &str = r#"{"artifactUpdate":{"taskId":"task-1","contextId":"ctx-1","artifact":{"artifactId":"a-1",
    "parts":[{"text":"2"}]},"append":true,"lastChunk":true}}"#;
pub(crate) const DONE: &str =
    r#"{"statusUpdate":{"taskId":"task-1","contextId":"ctx-1","status":{"state":"TASK_STATE_COMPLETED"}}}"#;

const TOLD: [&str; 6] = [
    "accepted task-1 ctx-1",
    "queued",
    "working: step 1/2",
    r#"artifact a-1 Text("1 ")"#,
    r#"artifact a-1 + . Text("2")"#,
    "finished",
];

/// The whole task as 1.0 gives it back on a look.
pub(crate) fn snapshot(state: &str, artifacts: &str) -> String {
    format!(
        r#"{{"id":"task-1","contextId":"ctx-1","status":{{"state":"{state}"}},"artifacts":[{artifacts}]}}"#
    )
}

pub(crate) const BOTH: &str = r#"{"artifactId":"a-1","parts":[{"text":"1 "},{"text":"2"}]}"#;

/// What is told by a streaming 1.0 agent with these answers, and what it was asked.
async fn stream(answers: Vec<Answer>) -> (Vec<String>, Vec<String>) {
    let script = Script::start(answers).await;
    let events = send(&streaming(&script, Dialect::V10, Binding::JsonRpc)).await;
    (told(&events), script.asked())
}

#[tokio::test]
async fn a_stream_is_told_event_by_event() {
    let (told, asked) = stream(vec![events(&[TASK, STEP, FIRST, SECOND, DONE])]).await;
    assert_eq!(told, TOLD);
    assert_eq!(asked, ["SendStreamingMessage"]);
}

#[tokio::test]
async fn a_stream_of_0_3_is_told_the_same() {
    let script = Script::start([events(&[
        r#"{"contextId":"ctx-1","history":[],"id":"task-1","kind":"task","status":{"state":"submitted"}}"#,
        r#"{"contextId":"ctx-1","final":false,"kind":"status-update","status":{"message":{"kind":"message",
        "messageId":"m","parts":[{"kind":"text","text":"step 1/2"}],"role":"agent"},"state":"working"},"taskId":"task-1"}"#,
        r#"{"artifact":{"artifactId":"a-1","parts":[{"kind":"text","text":"1 "}]},"contextId":"ctx-1",
        "kind":"artifact-update","taskId":"task-1"}"#,
        r#"{"append":true,"artifact":{"artifactId":"a-1","parts":[{"kind":"text","text":"2"}]},"contextId":"ctx-1",
        "kind":"artifact-update","lastChunk":true,"taskId":"task-1"}"#,
        r#"{"contextId":"ctx-1","final":true,"kind":"status-update","status":{"state":"completed"},"taskId":"task-1"}"#,
    ])])
    .await;
    let events = send(&streaming(&script, Dialect::V03, Binding::JsonRpc)).await;
    assert_eq!(told(&events), TOLD);
}

#[tokio::test]
async fn a_stream_of_0_1_is_told_without_a_task_to_begin_with() {
    let script = Script::start([events(&[
        r#"{"id":"task-1","status":{"state":"working"},"final":false}"#,
        r#"{"id":"task-1","artifact":{"parts":[{"type":"text","text":"1 "}],"index":0,"append":false}}"#,
        r#"{"id":"task-1","artifact":{"parts":[{"type":"text","text":"2"}],"index":0,"append":true,"lastChunk":true}}"#,
        r#"{"id":"task-1","status":{"state":"completed"},"final":true}"#,
    ])])
    .await;
    let told = told(&send(&streaming(&script, Dialect::V01, Binding::JsonRpc)).await);
    assert_eq!(told.len(), 5, "{told:?}");
    assert_eq!(told[0], "accepted task-1 -");
    assert!(told[3].contains('+') && told[3].ends_with(r#". Text("2")"#), "{told:?}");
    assert_eq!(script.asked(), ["tasks/sendSubscribe"]);
}

#[tokio::test]
async fn json_spread_over_many_data_lines_is_one_event_and_comes_out_on_one() {
    // Q1: 0.3.26 over REST.
    let pretty = "data: {\r\ndata:   \"task\": {\r\ndata:     \"id\": \"task-1\",\r\ndata:     \"contextId\": \"ctx-1\",\r\n\
        data:     \"artifacts\": [{\"artifactId\": \"a-1\", \"parts\": [{\"data\": {\"data\": {\r\ndata:   \"n\": 1\r\ndata: }}}]}],\r\n\
        data:     \"status\": {\"state\": \"TASK_STATE_COMPLETED\"}\r\ndata:   }\r\ndata: }\r\n\r\n";
    let script = Script::start([Answer::Events(vec![": ping\r\n\r\n".into(), pretty.into()])]).await;
    let events = send(&streaming(&script, Dialect::V03, Binding::HttpJson)).await;
    assert_eq!(told(&events), ["accepted task-1 ctx-1", r#"artifact a-1 . Data({   "n": 1 })"#, "finished"]);
    assert_eq!(script.asked(), ["POST /v1/message:stream"]);
}

#[tokio::test]
async fn an_error_in_the_middle_of_a_stream_ends_it_with_the_agents_words() {
    // Q2: a2a-sdk 1.3 and @a2a-js/sdk.
    let broken = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"executor crashed"}}"#;
    let error = format!("event: error\r\ndata: {broken}\r\n\r\n");
    let script = Script::start([Answer::Open(vec![data(&envelope(TASK)), error])]).await;
    let events = send(&streaming(&script, Dialect::V10, Binding::JsonRpc)).await;
    assert_eq!(
        told(&events),
        [
            "accepted task-1 ctx-1",
            "queued",
            "failed PeerFailed: the agent answered with error -32603: executor crashed"
        ]
    );
}

#[tokio::test]
async fn an_error_in_the_middle_of_a_rest_stream_is_told_as_well() {
    let error = "event: error\ndata: {\"error\":{\"code\":500,\"status\":\"INTERNAL\",\"message\":\"executor crashed\"}}\n\n";
    let script = Script::start([Answer::Open(vec![data(TASK), error.into()])]).await;
    let failure = failure(&send(&streaming(&script, Dialect::V10, Binding::HttpJson)).await);
    assert!(failure.message.ends_with("executor crashed"), "{}", failure.message);
}

#[tokio::test]
async fn a_continued_stream_may_begin_with_an_artifact() {
    // Q6: a2a-sdk 1.3 after input-required.
    let (told, _) = stream(vec![events(&[FIRST, DONE])]).await;
    assert_eq!(told, ["accepted task-1 ctx-1", r#"artifact a-1 Text("1 ")"#, "finished"]);
}

#[tokio::test]
async fn a_continued_stream_may_begin_with_the_question_that_was_answered() {
    // @a2a-js/sdk shows the task as it waited, and only then goes on.
    let waiting =
        r#"{"task":{"id":"task-1","contextId":"ctx-1","status":{"state":"TASK_STATE_INPUT_REQUIRED"}}}"#;
    for (answers, ends_with) in [
        (vec![events(&[waiting, FIRST, DONE])], "finished"),
        // It asked again and hung up: what the task waits for now is looked up.
        (
            vec![
                events(&[waiting]),
                error(-32004, "not running"),
                result(&snapshot("TASK_STATE_INPUT_REQUIRED", "")),
            ],
            "asked Input",
        ),
    ] {
        let script = Script::start(answers).await;
        let mut call = call(&streaming(&script, Dialect::V10, Binding::JsonRpc));
        call.continues.task_id = Some("task-1".into());
        let told = told(&Desk::new().send(call).await);
        assert_eq!(told[0], "accepted task-1 ctx-1");
        assert_eq!(told.last().unwrap(), ends_with, "{told:?}");
    }
}

#[tokio::test]
async fn a_stream_that_is_a_message_is_the_whole_answer() {
    let message = r#"{"message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"hi"}]}}"#;
    let (told, _) = stream(vec![events(&[message])]).await;
    assert_eq!(told, ["replied: hi"]);
}

#[tokio::test]
async fn a_stream_that_stays_open_after_the_end_is_left() {
    let open = Answer::Open([TASK, DONE].iter().map(|event| data(&envelope(event))).collect());
    let (told, _) = stream(vec![open]).await;
    assert_eq!(told.last().unwrap(), "finished");
}

#[tokio::test]
async fn a_plain_answer_to_a_request_for_a_stream_is_taken_as_it_is() {
    let done = snapshot("TASK_STATE_COMPLETED", BOTH);
    let (told, asked) = stream(vec![result(&format!(r#"{{"task":{done}}}"#))]).await;
    assert_eq!(told, ["accepted task-1 ctx-1", r#"artifact a-1 . Text("1 ") Text("2")"#, "finished"]);
    assert_eq!(asked, ["SendStreamingMessage"]);
}

#[tokio::test]
async fn an_agent_that_cannot_stream_after_all_is_asked_plainly_and_remembered() {
    let done = format!(r#"{{"task":{}}}"#, snapshot("TASK_STATE_COMPLETED", BOTH));
    let script = Script::start([error(-32004, "no streaming"), result(&done), result(&done)]).await;
    let agent = streaming(&script, Dialect::V10, Binding::JsonRpc);
    let desk = Desk::new();
    for _ in 0..2 {
        assert_eq!(desk.send(call(&agent)).await.last().unwrap().name(), "finished");
    }
    assert_eq!(script.asked(), ["SendStreamingMessage", "SendMessage", "SendMessage"]);
}

#[tokio::test]
async fn a_refusal_that_is_not_about_streams_does_not_end_them() {
    // @a2a-js/sdk refuses a message to a task that is over with the code for what is not supported.
    let over = || error(-32004, "Task task-1 is in a terminal state");
    let script = Script::start([over(), over(), events(&[TASK, DONE])]).await;
    let agent = streaming(&script, Dialect::V10, Binding::JsonRpc);
    let desk = Desk::new();
    assert!(failure(&desk.send(call(&agent)).await).message.ends_with("in a terminal state"));
    desk.send(call(&agent)).await;
    assert_eq!(script.asked(), ["SendStreamingMessage", "SendMessage", "SendStreamingMessage"]);
}

#[tokio::test]
async fn an_agent_that_says_in_the_stream_that_it_cannot_stream_is_asked_plainly() {
    let error = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32004,"message":"Streaming is not supported"}}"#;
    let done = format!(r#"{{"task":{}}}"#, snapshot("TASK_STATE_COMPLETED", BOTH));
    let (told, asked) = stream(vec![Answer::Events(vec![data(error)]), result(&done)]).await;
    assert_eq!(told.last().unwrap(), "finished");
    assert_eq!(asked, ["SendStreamingMessage", "SendMessage"]);
}

#[tokio::test]
async fn a_method_for_streams_that_no_dialect_has_leads_to_a_plain_call() {
    let done = format!(r#"{{"task":{}}}"#, snapshot("TASK_STATE_COMPLETED", BOTH));
    let no = || error(-32601, "no");
    let script = Script::start([no(), no(), no(), result(&done)]).await;
    let desk = Desk::new();
    let events = desk.send(call(&streaming(&script, Dialect::V10, Binding::JsonRpc))).await;
    assert_eq!(told(&events).last().unwrap(), "finished");
    assert_eq!(
        script.asked(),
        ["SendStreamingMessage", "message/stream", "tasks/sendSubscribe", "SendMessage"]
    );
    assert!(desk.notes.dialects().is_empty());
}

#[tokio::test]
async fn a_rest_agent_without_streams_is_asked_plainly() {
    let done = format!(r#"{{"task":{}}}"#, snapshot("TASK_STATE_COMPLETED", BOTH));
    let script = Script::start([http(501, r#"{"message":"not implemented"}"#), json(&done)]).await;
    let events = send(&streaming(&script, Dialect::V10, Binding::HttpJson)).await;
    assert_eq!(told(&events).last().unwrap(), "finished");
    assert_eq!(script.asked(), ["POST /message:stream", "POST /message:send"]);
}

#[tokio::test]
async fn a_stream_that_ends_early_is_joined_again() {
    let working = snapshot("TASK_STATE_WORKING", r#"{"artifactId":"a-1","parts":[{"text":"1 "}]}"#);
    let done = snapshot("TASK_STATE_COMPLETED", BOTH);
    let (told, asked) = stream(vec![
        events(&[TASK, FIRST]),
        events(&[&format!(r#"{{"task":{working}}}"#), SECOND, DONE]),
        result(&working),
        result(&done),
    ])
    .await;
    assert_eq!(
        told,
        [
            "accepted task-1 ctx-1",
            "queued",
            r#"artifact a-1 Text("1 ")"#,
            "working",
            r#"artifact a-1 . Text("1 ") Text("2")"#,
            "finished"
        ]
    );
    assert_eq!(asked, ["SendStreamingMessage", "SubscribeToTask", "GetTask", "GetTask"]);
}

#[tokio::test]
async fn a_stream_joined_again_that_shows_no_snapshot_is_looked_up() {
    // 0.3.26 sends no task first, and none at all for a task that is over.
    let script = Script::start([
        events(&[r#"{"contextId":"ctx-1","id":"task-1","kind":"task","status":{"state":"submitted"}}"#]),
        Answer::Open(Vec::new()),
        result(
            r#"{"contextId":"ctx-1","id":"task-1","kind":"task","status":{"state":"completed"},"artifacts":[{
            "artifactId":"a-1","parts":[{"kind":"text","text":"1"}]}]}"#,
        ),
    ])
    .await;
    let events = send(&streaming(&script, Dialect::V03, Binding::JsonRpc)).await;
    assert_eq!(told(&events), ["accepted task-1 ctx-1", "queued", r#"artifact a-1 . Text("1")"#, "finished"]);
    assert_eq!(script.asked(), ["message/stream", "tasks/resubscribe", "tasks/get"]);
}

#[tokio::test]
async fn a_stream_that_breaks_twice_is_polled_to_the_end() {
    let working = snapshot("TASK_STATE_WORKING", "");
    let done = snapshot("TASK_STATE_COMPLETED", BOTH);
    let (told, asked) =
        stream(vec![events(&[TASK, STEP]), events(&[]), result(&working), result(&working), result(&done)])
            .await;
    assert_eq!(told.last().unwrap(), "finished");
    assert_eq!(asked, ["SendStreamingMessage", "SubscribeToTask", "GetTask", "GetTask", "GetTask"]);
}

#[tokio::test]
async fn a_stream_that_says_nothing_at_all_is_garbled() {
    let (told, _) = stream(vec![events(&[])]).await;
    assert_eq!(
        told,
        [
            "failed PeerGarbled: the agent closed its stream without a result and without naming a task to ask for"
        ]
    );
}

#[tokio::test]
async fn an_event_that_is_not_a2a_is_garbled() {
    let (told, _) = stream(vec![Answer::Open(vec![data("hello")])]).await;
    assert!(told[0].starts_with("failed PeerGarbled: the agent's answer is not A2A"), "{told:?}");
}
