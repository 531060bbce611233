//! Agents that speak gRPC: the same calls, events and failures as over JSON.

use std::{sync::Arc, time::Duration};

use rialto_a2a::backend::Config;
use rialto_a2a_codec::{
    error::{ErrorCode, RpcError},
    grpc::{self, GrpcStatus},
    request::{A2aOperation, A2aRequest},
    rpc::{self, Id},
    wire::Wire,
};
use rialto_http_client::{self as client};
use rialto_model::{
    agent::Agent,
    card::{Binding, Dialect, Interface},
    failure::FailureKind,
    trace::Trace,
};

use crate::{
    rows::{Desk, agent, call, failure, quick, row, send, streaming, told, with_token},
    script::{Answer, Heard, Script, http},
    streams::{DONE as OVER, FIRST, SECOND, STEP, TASK},
};

const DONE: &str = r#"{"task":{"id":"t","contextId":"c","status":{"state":"TASK_STATE_COMPLETED"}}}"#;

/// The messages of an answer that goes well.
fn said(wire: Wire, operation: A2aOperation, texts: &[&str]) -> Answer {
    Answer::Grpc(messages(wire, operation, texts), Some(GrpcStatus::OK))
}

fn messages(wire: Wire, operation: A2aOperation, texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| grpc::encode_answer(wire, operation, text).unwrap()).collect()
}

fn refused(status: GrpcStatus) -> Answer {
    Answer::Grpc(Vec::new(), Some(status))
}

fn error(wire: Wire, code: ErrorCode, message: &str) -> Answer {
    refused(GrpcStatus::of(wire, &RpcError::new(code, message)))
}

fn task(state: &str) -> String {
    format!(r#"{{"id":"task-1","contextId":"ctx-1","status":{{"state":"TASK_STATE_{state}"}}}}"#)
}

/// What was asked, in the words of JSON-RPC 1.0.
fn asked(heard: &Heard) -> A2aRequest {
    grpc::decode_request(&heard.path, &heard.bytes[5..]).unwrap().request
}

async fn v10(answers: impl IntoIterator<Item = Answer>) -> (Script, Arc<Agent>) {
    let script = Script::start(answers).await;
    let agent = agent(&script, Dialect::V10, Binding::Grpc);
    (script, agent)
}

/// How a call ends that is answered like this.
async fn failing(answer: Answer) -> rialto_model::failure::Failure {
    let (_script, agent) = v10([answer]).await;
    failure(&send(&agent).await)
}

#[tokio::test]
async fn a_skill_is_called_in_both_packages() {
    for (dialect, wire) in [(Dialect::V10, Wire::V10), (Dialect::V03, Wire::V03Proto)] {
        let script = Script::start([said(wire, A2aOperation::Send, &[DONE])]).await;
        let events = send(&agent(&script, dialect, Binding::Grpc)).await;
        assert_eq!(told(&events), ["accepted t c", "finished"]);
        let heard = &script.heard()[0];
        let headers: Vec<_> = ["a2a-version", "accept", "content-type", "grpc-timeout", "te"]
            .map(|name| format!("{name}: {}", heard.header(name)))
            .into();
        let body = rpc::encode(Wire::V10, &Id::from(1), &asked(heard)).unwrap();
        let shown = format!("{} {}\n{}\n\n{body}", heard.method, heard.path, headers.join("\n"));
        insta::assert_snapshot!(format!("a_skill_is_called_over_grpc_{wire:?}"), shown);
    }
}

#[tokio::test]
async fn a_stream_is_told_event_by_event() {
    for (dialect, wire) in [(Dialect::V10, Wire::V10), (Dialect::V03, Wire::V03Proto)] {
        let artifacts = [FIRST, SECOND];
        let texts = [TASK, STEP, artifacts[0], artifacts[1], OVER];
        let texts = texts.map(|text| if wire == Wire::V10 { text.to_owned() } else { old(text) });
        let texts = texts.each_ref().map(String::as_str);
        let script = Script::start([said(wire, A2aOperation::Stream, &texts)]).await;
        let events = send(&streaming(&script, dialect, Binding::Grpc)).await;
        let expected = [
            "accepted task-1 ctx-1",
            "queued",
            "working: step 1/2",
            r#"artifact a-1 Text("1 ")"#,
            r#"artifact a-1 + . Text("2")"#,
            "finished",
        ];
        assert_eq!(told(&events), expected);
        assert_eq!(script.heard()[0].header("grpc-timeout"), "");
    }
}

/// The same in 0.3, whose messages have content.
fn old(text: &str) -> String {
    if text.contains("statusUpdate") { text.replace("\"parts\"", "\"content\"") } else { text.to_owned() }
}

#[tokio::test]
async fn a_task_that_is_not_done_is_asked_for_by_its_name() {
    for (dialect, wire) in [(Dialect::V10, Wire::V10), (Dialect::V03, Wire::V03Proto)] {
        let script = Script::start([
            said(wire, A2aOperation::Send, &[TASK]),
            said(wire, A2aOperation::Get, &[&task("WORKING")]),
            said(wire, A2aOperation::Get, &[&task("COMPLETED")]),
        ])
        .await;
        let events = send(&agent(&script, dialect, Binding::Grpc)).await;
        assert_eq!(told(&events), ["accepted task-1 ctx-1", "queued", "working", "finished"]);
        let A2aRequest::Get(get) = asked(&script.heard()[2]) else { panic!("{:?}", script.asked()) };
        assert_eq!(get.id, "task-1");
    }
}

#[tokio::test]
async fn a_task_is_canceled_in_both_spellings() {
    for (dialect, wire, state) in
        [(Dialect::V10, Wire::V10, "CANCELED"), (Dialect::V03, Wire::V03Proto, "CANCELLED")]
    {
        let script = Script::start([said(wire, A2aOperation::Cancel, &[&task(state)])]).await;
        let events = Desk::new().cancel(&agent(&script, dialect, Binding::Grpc)).await.unwrap();
        assert_eq!(told(&events), ["accepted task-1 ctx-1", "canceled"]);
        let A2aRequest::Cancel(cancel) = asked(&script.heard()[0]) else { panic!("{:?}", script.asked()) };
        assert_eq!(cancel.id, "task-1");
    }
}

#[tokio::test]
async fn a_task_that_is_over_already_is_told_as_it_ended() {
    // 0.3.26 says so with the status for methods that are not there, and the name of the error before its message.
    for (dialect, wire) in [(Dialect::V10, Wire::V10), (Dialect::V03, Wire::V03Proto)] {
        let script = Script::start([
            error(wire, ErrorCode::TaskNotCancelable, "Task cannot be canceled"),
            said(wire, A2aOperation::Get, &[&task("COMPLETED")]),
        ])
        .await;
        let events = Desk::new().cancel(&agent(&script, dialect, Binding::Grpc)).await.unwrap();
        assert_eq!(told(&events), ["accepted task-1 ctx-1", "finished"]);
    }
}

#[tokio::test]
async fn a_stream_that_breaks_is_joined_again() {
    let script = Script::start([
        Answer::Grpc(messages(Wire::V10, A2aOperation::Stream, &[TASK, STEP]), None),
        said(Wire::V10, A2aOperation::Subscribe, &[OVER]),
        said(Wire::V10, A2aOperation::Get, &[&task("WORKING")]),
        said(Wire::V10, A2aOperation::Get, &[&task("COMPLETED")]),
    ])
    .await;
    let events = send(&streaming(&script, Dialect::V10, Binding::Grpc)).await;
    assert_eq!(told(&events).last().unwrap(), "finished");
    let methods: Vec<_> =
        script.heard().iter().map(|heard| heard.path.rsplit('/').next().unwrap().to_owned()).collect();
    assert_eq!(methods, ["SendStreamingMessage", "SubscribeToTask", "GetTask", "GetTask"]);
}

#[tokio::test]
async fn an_agent_that_cannot_stream_is_asked_without() {
    for (dialect, wire) in [(Dialect::V10, Wire::V10), (Dialect::V03, Wire::V03Proto)] {
        let script = Script::start([
            error(wire, ErrorCode::UnsupportedOperation, "no streams"),
            said(wire, A2aOperation::Send, &[DONE]),
            said(wire, A2aOperation::Send, &[DONE]),
        ])
        .await;
        let (desk, agent) = (Desk::new(), streaming(&script, dialect, Binding::Grpc));
        for _ in 0..2 {
            assert_eq!(told(&desk.send(call(&agent)).await).last().unwrap(), "finished");
        }
        assert_eq!(script.heard().len(), 3);
    }
}

#[tokio::test]
async fn an_agent_of_the_other_package_is_found_out_and_remembered() {
    let script = Script::start([
        refused(GrpcStatus::new(GrpcStatus::UNIMPLEMENTED, "Method not found!")),
        said(Wire::V03Proto, A2aOperation::Send, &[DONE]),
        said(Wire::V03Proto, A2aOperation::Send, &[DONE]),
    ])
    .await;
    let (desk, agent) = (Desk::new(), agent(&script, Dialect::V10, Binding::Grpc));
    for _ in 0..2 {
        assert_eq!(told(&desk.send(call(&agent)).await).last().unwrap(), "finished");
    }
    let packages: Vec<_> = script.heard().iter().map(|heard| heard.path[1..4].to_owned()).collect();
    assert_eq!(packages, ["lf.", "a2a", "a2a"]);
    assert_eq!(desk.notes.dialects(), [Dialect::V03]);
}

#[tokio::test]
async fn what_the_agent_refuses_is_its_failure() {
    let failure = failing(error(Wire::V10, ErrorCode::ContentTypeNotSupported, "no data here")).await;
    assert_eq!(failure.kind, FailureKind::PeerFailed);
    assert_eq!(failure.message, "the agent answered with error -32005: no data here");
    let data = failure.data.unwrap().value();
    assert_eq!(data["remoteData"][0]["reason"], "CONTENT_TYPE_NOT_SUPPORTED");
}

#[tokio::test]
async fn what_is_no_error_of_the_protocol_is_told_by_whose_fault_it_is() {
    for (number, kind, words) in [
        (GrpcStatus::UNAVAILABLE, FailureKind::PeerUnreachable, "gRPC status 14: too busy"),
        (GrpcStatus::RESOURCE_EXHAUSTED, FailureKind::PeerUnreachable, "gRPC status 8: too busy"),
        (GrpcStatus::DEADLINE_EXCEEDED, FailureKind::PeerTimeout, "gRPC status 4: too busy"),
        (GrpcStatus::UNAUTHENTICATED, FailureKind::PeerUnreachable, "--secret env:NAME"),
        (GrpcStatus::PERMISSION_DENIED, FailureKind::PeerUnreachable, "--secret env:NAME"),
        (2, FailureKind::PeerFailed, "error -32603: too busy"),
    ] {
        let failure = failing(refused(GrpcStatus::new(number, "too busy"))).await;
        assert_eq!(failure.kind, kind, "{failure}");
        assert!(failure.message.contains(words), "{failure}");
    }
}

#[tokio::test]
async fn a_status_behind_messages_counts_as_one_before_them() {
    let late = GrpcStatus::of(Wire::V10, &RpcError::new(ErrorCode::InvalidParams, "on second thought"));
    let failure = failing(Answer::Grpc(messages(Wire::V10, A2aOperation::Send, &[DONE]), Some(late))).await;
    assert_eq!(failure.message, "the agent answered with error -32602: on second thought");
}

#[tokio::test]
async fn an_answer_that_is_not_grpc_is_said_to_be_none() {
    let mut two = messages(Wire::V10, A2aOperation::Send, &[DONE]);
    two.extend(two.clone());
    let compressed = vec![1, 0, 0, 0, 1, 0];
    for (answer, kind, words) in [
        (http(200, "{}"), FailureKind::PeerGarbled, "application/json"),
        (http(503, "<h1>down</h1>"), FailureKind::PeerUnreachable, "HTTP status 503"),
        (
            Answer::Grpc(vec![vec![0, 0, 0, 0, 1, 0xff]], Some(GrpcStatus::OK)),
            FailureKind::PeerGarbled,
            "protobuf",
        ),
        (Answer::Grpc(vec![compressed], Some(GrpcStatus::OK)), FailureKind::PeerGarbled, "compressed"),
        (Answer::Grpc(two, Some(GrpcStatus::OK)), FailureKind::PeerGarbled, "one message, found more"),
        (refused(GrpcStatus::OK), FailureKind::PeerGarbled, "found nothing"),
        (
            Answer::Grpc(vec![vec![0, 0, 0]], Some(GrpcStatus::OK)),
            FailureKind::PeerUnreachable,
            "before it was complete",
        ),
        (
            Answer::Grpc(messages(Wire::V10, A2aOperation::Send, &[DONE]), None),
            FailureKind::PeerUnreachable,
            "complete",
        ),
    ] {
        let failure = failing(answer).await;
        assert_eq!(failure.kind, kind, "{failure}");
        assert!(failure.message.contains(words), "{failure}");
    }
}

#[tokio::test]
async fn an_answer_that_is_too_large_is_refused_by_what_it_announces() {
    let (_script, agent) = v10([Answer::Grpc(vec![vec![0, 0, 0, 4, 1, 0]], Some(GrpcStatus::OK))]).await;
    let outbound = client::Config { max_response_bytes: 1024, ..client::Config::default() };
    let failure = failure(&Desk::on(quick(), &outbound).send(call(&agent)).await);
    assert_eq!(failure.kind, FailureKind::PeerGarbled);
    assert!(failure.message.contains("limit of 1024 bytes"), "{failure}");
}

#[tokio::test]
async fn an_agent_that_says_nothing_is_not_waited_for_forever() {
    let (_script, agent) = v10([Answer::Silence]).await;
    let failure = failure(&Desk::with(Config { patience_ms: 50, ..quick() }).send(call(&agent)).await);
    assert_eq!(failure.kind, FailureKind::PeerTimeout);
}

#[tokio::test]
async fn a_call_that_was_given_up_leaves_its_place() {
    let (script, agent) = v10([Answer::Silence, said(Wire::V10, A2aOperation::Send, &[DONE])]).await;
    let desk = Desk::with(Config { max_in_flight: 1, ..quick() });
    tokio::select! {
        events = desk.send(call(&agent)) => panic!("{events:?}"),
        () = script.is_asked() => {}
    }
    assert_eq!(desk.send(call(&agent)).await.last().unwrap().name(), "finished");
}

#[tokio::test]
async fn the_token_and_the_trace_travel_as_metadata_and_the_token_comes_out_nowhere() {
    let leak = GrpcStatus::of(Wire::V10, &RpcError::new(ErrorCode::Internal, "you sent hunter2"));
    let (script, agent) = v10([refused(leak)]).await;
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let mut call = call(&with_token(&agent, "TOKEN"));
    call.trace = Trace::parse(trace, None).map(Arc::new);
    let failure = failure(&Desk::new().send(call).await);
    let heard = &script.heard()[0];
    assert_eq!(heard.header("authorization"), "Bearer hunter2");
    assert!(heard.header("traceparent").starts_with("00-0af7651916cd43dd8448eb211c80319c-"));
    assert!(!format!("{failure:?}").contains("hunter2"), "{failure:?}");
    assert!(failure.message.contains("[secret]"), "{failure}");
}

#[tokio::test]
async fn a_token_that_is_refused_is_said_to_be() {
    let (_script, agent) = v10([refused(GrpcStatus::new(GrpcStatus::UNAUTHENTICATED, "no"))]).await;
    let failure = failure(&send(&with_token(&agent, "TOKEN")).await);
    assert!(failure.message.contains("does not accept the token"), "{failure}");
}

#[tokio::test]
async fn a_target_without_a_scheme_is_called_and_a_private_one_only_with_leave() {
    let script = Script::start([said(Wire::V10, A2aOperation::Send, &[DONE])]).await;
    let interface = Interface {
        url: script.address.to_string(),
        binding: Binding::Grpc,
        dialect: Dialect::V10,
        tenant: Some("acme".into()),
    };
    let mut agent = row(&script.url(), vec![interface], false);
    assert_eq!(told(&send(&Arc::new(agent.clone())).await).last().unwrap(), "finished");
    assert_eq!(asked(&script.heard()[0]).tenant(), Some("acme"));
    agent.allow_private = false;
    let failure = failure(&send(&Arc::new(agent)).await);
    assert_eq!(failure.kind, FailureKind::PeerUnreachable);
    assert!(failure.message.contains("127.0.0.1 is a loopback address"), "{failure}");
    assert_eq!(script.heard().len(), 1);
}

#[tokio::test]
async fn what_protobuf_cannot_hold_is_not_sent() {
    let (script, agent) = v10([]).await;
    let mut call = call(&agent);
    call.parts = vec![rialto_model::message::Part::data(rialto_model::json::Json::parse("1e400").unwrap())];
    let failure = failure(&Desk::new().send(call).await);
    assert_eq!(failure.kind, FailureKind::Unsupported);
    assert!(failure.message.contains("message.parts[0].data"), "{failure}");
    assert!(script.heard().is_empty());
}

#[tokio::test]
async fn many_calls_share_a_connection() {
    let slowly =
        || Answer::Later(Duration::from_millis(20), Box::new(said(Wire::V10, A2aOperation::Send, &[DONE])));
    let (script, agent) = v10((0..8).map(|_| slowly())).await;
    let desk = Desk::new();
    let calls = futures::future::join_all((0..8).map(|_| desk.send(call(&agent)))).await;
    assert!(calls.iter().all(|events| events.last().unwrap().name() == "finished"));
    assert_eq!(script.heard().len(), 8);
}
