//! The shapes the seeds print, the downgrades, and what is accepted beyond the letter.

use rialto_model::{
    json::Json,
    message::{Content, Message, Part, Role},
};

use crate::{
    answer,
    error::{ErrorCode, RpcError},
    request::{A2aRequest, SendRequest},
    rest::{self, Release},
    rpc::{self, DecodedRequest, Id},
    task::{A2aState, A2aStatus, A2aTask, SendAnswer, StreamEvent},
    wire::Wire,
};

fn part_on(wire: Wire, part: Part) -> String {
    let text = answer::encode_message(wire, &Message::new("m", Role::User, vec![part])).text();
    let (_, parts) = text.split_once(":[").unwrap();
    parts.trim_end_matches("]}").to_owned()
}

fn event(wire: Wire, text: &str) -> StreamEvent {
    answer::decode_stream_event(wire, answer::parse(text.as_bytes()).unwrap()).unwrap()
}

fn sent(body: &str) -> SendRequest {
    match rpc::decode_request(body.as_bytes()).unwrap() {
        DecodedRequest { request: A2aRequest::Send(send), .. } => send,
        other => panic!("not a message: {other:?}"),
    }
}

fn refusal(body: &str) -> (String, ErrorCode) {
    let refused = rpc::decode_request(body.as_bytes()).unwrap_err();
    (refused.id.get().to_owned(), refused.error.known().unwrap())
}

#[test]
fn the_bare_arguments_of_s3_are_a_data_part() {
    let body = r#"{"jsonrpc":"2.0","id":"1","method":"tasks/send",
        "params":{"skill":"weather-lookup","message":{"city":"San Francisco"}}}"#;
    let send = sent(body);
    assert_eq!(send.skill_id().as_deref(), Some("weather-lookup"));
    assert_eq!(send.message.parts, [Part::data(Json::parse(r#"{"city":"San Francisco"}"#).unwrap())]);
}

#[test]
fn the_answer_of_s3_is_read() {
    let text = r#"{"id":"task_abc123","status":{"state":"completed"},"artifacts":[{"name":"weather-lookup-result",
        "parts":[{"type":"text","text":"{}"}]}]}"#;
    for wire in Wire::ALL {
        let answer = answer::decode_send(wire, answer::parse(text.as_bytes()).unwrap()).unwrap();
        let SendAnswer::Task(task) = answer else { panic!("not a task") };
        assert_eq!(task.status.state, A2aState::Completed);
        assert_eq!(task.artifacts[0].parts[0].content, Content::Text("{}".to_owned()));
    }
}

#[test]
fn the_request_of_s0_is_written_and_read() {
    let mut send = SendRequest::new(Message::new("m", Role::User, vec![Part::data(Json::empty_object())]));
    send.skill = Some("deploy".to_owned());
    send.correlation_id = Some("a2a-1".to_owned());
    send.task_id = Some("a2a-1".to_owned());
    let body = rpc::encode(Wire::V03, &Id::from(1_717_281_600_000), &A2aRequest::Send(send)).unwrap();
    insta::assert_snapshot!(body, @r#"{"jsonrpc":"2.0","id":1717281600000,"method":"message/send","params":{"message":{"messageId":"m","role":"user","kind":"message","skill":{"skillId":"deploy"},"parts":[{"kind":"data","data":{}}],"metadata":{"skillId":"deploy"}},"correlationId":"a2a-1","taskId":"a2a-1","metadata":{"skillId":"deploy","correlationId":"a2a-1"}}}"#);
    let read = sent(&body);
    assert_eq!((read.skill.as_deref(), read.correlation_id.as_deref()), (Some("deploy"), Some("a2a-1")));
}

#[test]
fn the_skill_travels_in_metadata_to_1_0() {
    let mut send = SendRequest::new(Message::new("m", Role::User, vec![Part::text("hi")]));
    send.skill = Some("deploy".to_owned());
    send.correlation_id = Some("a2a-1".to_owned());
    send.task_id = Some("a2a-1".to_owned());
    send.metadata = Some(Json::parse(r#"{"n":1.50,"skillId":"other"}"#).unwrap());
    let body = rpc::encode(Wire::V10, &Id::from("x"), &A2aRequest::Send(send)).unwrap();
    insta::assert_snapshot!(body, @r#"{"jsonrpc":"2.0","id":"x","method":"SendMessage","params":{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"hi"}],"metadata":{"skillId":"deploy"}},"metadata":{"n":1.50,"skillId":"deploy","correlationId":"a2a-1"}}}"#);
    assert_eq!(sent(&body).skill_id().as_deref(), Some("deploy"));
}

#[test]
fn the_skill_is_found_in_the_order_of_the_spec() {
    let places = [(r#""skill":"a","#, "a"), ("", "b")];
    for (skill, expected) in places {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"message/send","params":{{{skill}"message":{{"messageId":"m","role":"user",
            "skill":{{"skillId":"b"}},"parts":[],"metadata":{{"skillId":"d"}}}},"metadata":{{"skillId":"c"}}}}}}"#
        );
        assert_eq!(sent(&body).skill_id().as_deref(), Some(expected));
    }
    let mut send = SendRequest::new(Message::new("m", Role::User, Vec::new()));
    send.message.metadata = Some(Json::parse(r#"{"skillId":"d"}"#).unwrap());
    assert_eq!(send.skill_id().as_deref(), Some("d"));
    send.metadata = Some(Json::parse(r#"{"skillId":"c"}"#).unwrap());
    assert_eq!(send.skill_id().as_deref(), Some("c"));
}

#[test]
fn data_that_is_no_object_is_wrapped_for_0_3_and_unwrapped_again() {
    let part = Part::data(Json::parse("[1,2.50]").unwrap());
    let text = part_on(Wire::V03, part);
    assert_eq!(text, r#"{"kind":"data","data":{"value":[1,2.50]},"metadata":{"data_part_compat":true}}"#);
    assert_eq!(
        part_on(Wire::V03Proto, Part::data(Json::null())),
        r#"{"data":{"data":{"value":null}},"metadata":{"data_part_compat":true}}"#
    );
}

#[test]
fn a_media_type_beside_text_exists_in_1_0_only() {
    let mut part = Part::text("# hi");
    part.media_type = Some("text/markdown".to_owned());
    assert_eq!(part_on(Wire::V10, part.clone()), r##"{"text":"# hi","mediaType":"text/markdown"}"##);
    assert_eq!(part_on(Wire::V03, part), r##"{"kind":"text","text":"# hi"}"##);
}

#[test]
fn a_canceled_task_is_spelt_as_each_wire_spells_it() {
    let task = A2aTask::new("t", A2aStatus::new(A2aState::Canceled));
    let spelt = |wire| answer::encode_task(wire, &task).text();
    assert!(spelt(Wire::V10).contains(r#""TASK_STATE_CANCELED""#));
    assert!(spelt(Wire::V03Proto).contains(r#""TASK_STATE_CANCELLED""#));
    assert!(spelt(Wire::V03).contains(r#""canceled""#));
    assert!(spelt(Wire::V01).contains(r#""canceled""#));
}

#[test]
fn events_of_0_1_become_updates() {
    let status = event(
        Wire::V01,
        r#"{"id":"t","status":{"state":"completed","timestamp":"2025-04-02T16:59:35"},"final":true}"#,
    );
    let StreamEvent::Status(update) = status else { panic!("not a status") };
    assert_eq!((update.task_id.as_str(), update.is_final), ("t", true));
    assert_eq!(update.status.timestamp.as_deref(), Some("2025-04-02T16:59:35"));
    let artifact = r#"{"id":"t","artifact":{"parts":[{"type":"text","text":"a"}],"index":2,"append":true,"lastChunk":null}}"#;
    let StreamEvent::Artifact(update) = event(Wire::V01, artifact) else { panic!("not an artifact") };
    assert_eq!((update.artifact.id.as_str(), update.append, update.last_chunk), ("artifact-2", true, false));
    assert_eq!(
        answer::encode_stream_event(Wire::V01, &StreamEvent::Artifact(update)).text(),
        r#"{"id":"t","artifact":{"parts":[{"type":"text","text":"a"}],"index":2,"append":true}}"#
    );
}

#[test]
fn an_empty_task_of_0_1_in_a_stream_can_be_read_again() {
    // Found by the fuzzer: an empty list makes it a task, and is not written again.
    let text = r#"{"id":"t","status":{},"history":[],"final":[1]}"#;
    let again = answer::encode_stream_event(Wire::V01, &event(Wire::V01, text)).text();
    assert!(matches!(event(Wire::V01, &again), StreamEvent::Status(_)));
}

#[test]
fn a_part_of_a_strange_kind_passes_through_every_wire() {
    let part = r#"{"kind":"hologram","file":{"uri":444}}"#;
    let text = format!(r#"{{"kind":"message","messageId":"m","role":"agent","parts":[{part}]}}"#);
    let StreamEvent::Message(message) = event(Wire::V03, &text) else { panic!("not a message") };
    for wire in Wire::ALL {
        let said = StreamEvent::Message(message.clone());
        let StreamEvent::Message(again) = event(wire, &answer::encode_stream_event(wire, &said).text())
        else {
            panic!("not a message")
        };
        assert_eq!(again.parts, [Part::new(Content::Unknown(Json::parse(part).unwrap()))]);
    }
}

#[test]
fn unknown_members_can_be_left_out_for_strict_servers() {
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"message/send","params":{"message":{"messageId":"m","role":"user",
        "parts":[{"kind":"text","text":"a","x":1}],"x":1},"configuration":{"x":1},"x":1}}"#;
    let call = rest::encode(Wire::V03Proto, &A2aRequest::Send(sent(body).without_unknown())).unwrap();
    assert!(!call.body.unwrap().contains(r#""x""#));
}

#[test]
fn results_without_a_kind_are_told_apart_by_what_they_have() {
    let bare = [
        r#"{"id":"t","status":{"state":"working"}}"#,
        r#"{"messageId":"m","role":"agent","parts":[]}"#,
        r#"{"taskId":"t","status":{"state":"working"}}"#,
        r#"{"taskId":"t","artifact":{"artifactId":"a","parts":[]}}"#,
    ];
    for wire in [Wire::V10, Wire::V03, Wire::V03Proto] {
        assert!(matches!(event(wire, bare[0]), StreamEvent::Task(_)));
        assert!(matches!(event(wire, bare[1]), StreamEvent::Message(_)));
        assert!(matches!(event(wire, bare[2]), StreamEvent::Status(_)));
        assert!(matches!(event(wire, bare[3]), StreamEvent::Artifact(_)));
    }
}

#[test]
fn unknown_members_survive_everywhere() {
    let text = r#"{"id":"t","kind":"task","contextId":"c","status":{"state":"working","message":{"messageId":"m","role":"agent","kind":"message","parts":[{"kind":"text","text":"a","p":1.000}],"m":[1]},"s":null},"artifacts":[{"artifactId":"a","parts":[{"kind":"hologram","h":1}],"a":{}}],"metadata":{"z":0.10,"a":12345678901234567890},"t":"x"}"#;
    let task = answer::decode_task(Wire::V03, answer::parse(text.as_bytes()).unwrap()).unwrap();
    assert_eq!(answer::encode_task(Wire::V03, &task).text(), text);
}

#[test]
fn of_members_with_one_name_the_last_counts_and_none_hides() {
    let text = r#"{"id":"a","id":"b","status":{"state":"working"},"metadata":{"x":1},"metadata":{"y":2}}"#;
    let task = answer::decode_task(Wire::V10, answer::parse(text.as_bytes()).unwrap()).unwrap();
    assert_eq!(task.id, "b");
    assert_eq!(task.metadata.unwrap().get(), r#"{"y":2}"#);
    assert!(task.extra.is_empty());
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let text = r#"{"task":{"id":"t","status":{"state":"working"},"artifacts":[{"parts":[{"text":"a"},{"text":7}]}]}}"#;
    let garbled = answer::decode_send(Wire::V10, answer::parse(text.as_bytes()).unwrap()).unwrap_err();
    assert_eq!(garbled.to_string(), "task.artifacts[0].parts[1].text: expected a string, found a number");
}

#[test]
fn a_request_that_is_none_is_refused_with_its_id() {
    assert_eq!(refusal("{"), ("null".to_owned(), ErrorCode::Parse));
    assert_eq!(refusal("[]"), ("null".to_owned(), ErrorCode::InvalidRequest));
    assert_eq!(refusal(r#"{"id":7,"method":"GetTask"}"#), ("7".to_owned(), ErrorCode::InvalidRequest));
    assert_eq!(
        refusal(r#"{"jsonrpc":"2.0","id":{},"method":"GetTask"}"#),
        ("null".to_owned(), ErrorCode::InvalidRequest)
    );
    let unknown = r#"{"jsonrpc":"2.0","id":"a","method":"tasks/teleport"}"#;
    assert_eq!(refusal(unknown), (r#""a""#.to_owned(), ErrorCode::MethodNotFound));
    let empty = r#"{"jsonrpc":"2.0","id":1,"method":"GetTask"}"#;
    let refused = rpc::decode_request(empty.as_bytes()).unwrap_err();
    assert_eq!(refused.to_string(), "invalid parameters: params.id: expected a string, found nothing");
}

#[test]
fn an_answer_without_the_envelope_is_garbled() {
    for body in ["", "<html>", "[]", r#"{"ok":true}"#] {
        assert!(rpc::decode_response(body.as_bytes()).is_err(), "{body}");
    }
    assert!(rpc::decode_response(br#"{"jsonrpc":"2.0","id":1,"result":null}"#).unwrap().result.is_ok());
}

#[test]
fn an_error_carries_its_reason_to_1_0_and_its_facts_to_0_3() {
    let error = RpcError::new(ErrorCode::TaskNotFound, "no such task")
        .with_data(Json::parse(r#"{"id":"t"}"#).unwrap());
    insta::assert_snapshot!(rpc::encode_error(Wire::V10, &Id::from(1), &error), @r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"no such task","data":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"TASK_NOT_FOUND","domain":"a2a-protocol.org","metadata":{"id":"t"}}]}}"#);
    insta::assert_snapshot!(rpc::encode_error(Wire::V03, &Id::from(1), &error), @r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"no such task","data":{"id":"t"}}}"#);
    let (status, body) = rest::encode_error(Wire::V10, Release::Second, &error);
    insta::assert_snapshot!(format!("{status} {body}"), @r#"404 {"error":{"code":404,"status":"NOT_FOUND","message":"no such task","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"TASK_NOT_FOUND","domain":"a2a-protocol.org","metadata":{"id":"t"}}]}}"#);
    assert_eq!(
        rest::encode_error(Wire::V03Proto, Release::Second, &error),
        (404, r#"{"message":"no such task","type":"TaskNotFoundError"}"#.to_owned())
    );
}

#[test]
fn every_error_comes_back_over_rest_and_json_rpc() {
    for code in ErrorCode::ALL {
        let error = RpcError::new(code, "no");
        for release in [Release::First, Release::Second] {
            let (status, body) = rest::encode_error(Wire::V10, release, &error);
            assert_eq!(rest::decode_error(status, body.as_bytes()).known(), Some(code));
        }
        let body = rpc::encode_error(Wire::V10, &Id::from(1), &error);
        let read = rpc::decode_response(body.as_bytes()).unwrap().result.unwrap_err();
        assert_eq!(read.known(), Some(code));
    }
}

#[test]
fn the_releases_of_1_0_differ_in_three_statuses() {
    let status = |release, code| rest::encode_error(Wire::V10, release, &RpcError::new(code, "no")).0;
    let differ = ErrorCode::ALL
        .into_iter()
        .filter(|code| status(Release::First, *code) != status(Release::Second, *code));
    let told: Vec<_> =
        differ.map(|code| (code, status(Release::First, code), status(Release::Second, code))).collect();
    assert_eq!(
        told,
        [
            (ErrorCode::TaskNotCancelable, 409, 400),
            (ErrorCode::ContentTypeNotSupported, 415, 400),
            (ErrorCode::InvalidAgentResponse, 502, 500),
        ]
    );
}

#[test]
fn the_names_of_the_proto_file_are_read_and_nothing_stays_behind_under_them() {
    let said = r#""role":"ROLE_USER","parts":[{"text":"hi","media_type":"text/plain"}]"#;
    let of = |names: &str| {
        sent(&format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{{"message":{{{names},{said}}}}}}}"#
        ))
        .message
    };
    let message = of(r#""message_id":"m","task_id":"t","context_id":"c""#);
    assert_eq!((message.id.as_str(), message.task_id.as_deref()), ("m", Some("t")));
    assert_eq!(message.parts[0].media_type.as_deref(), Some("text/plain"));
    assert!(message.extra.is_empty(), "{message:?}");
    let message = of(r#""task_id":"theirs","messageId":"m","taskId":"t","task_id":"again""#);
    assert_eq!(message.task_id.as_deref(), Some("t"));
    assert!(message.extra.is_empty(), "{message:?}");
    // What only looks like one is kept.
    let message = of(r#""messageId":"m","task_ids":"x","_task_id":"y""#);
    assert_eq!((message.task_id.as_deref(), message.extra.get("task_ids").is_some()), (None, true));
    let Ok(DecodedRequest { request: A2aRequest::Get(get), .. }) =
        rest::decode_request("GET", "/tasks/t", "history_length=2", b"")
    else {
        panic!("not read");
    };
    assert_eq!(get.history_length, Some(2));
}

#[test]
fn errors_newer_than_the_client_are_internal_to_it() {
    let error = RpcError::new(ErrorCode::VersionNotSupported, "no");
    assert!(rpc::encode_error(Wire::V03, &Id::from(1), &error).contains("-32603"));
    let error = RpcError::new(ErrorCode::ContentTypeNotSupported, "no");
    assert!(rpc::encode_error(Wire::V03, &Id::from(1), &error).contains("-32005"));
    assert!(rpc::encode_error(Wire::V01, &Id::from(1), &error).contains("-32603"));
}

#[test]
fn a_rest_error_without_a_reason_is_guessed_from_its_status() {
    let known = |status, body: &str| rest::decode_error(status, body.as_bytes()).known();
    assert_eq!(known(404, r#"{"message":"A2aTask not found"}"#), Some(ErrorCode::TaskNotFound));
    assert_eq!(known(404, "<html>nginx</html>"), Some(ErrorCode::MethodNotFound));
    assert_eq!(known(405, r#"{"detail":"Method Not Allowed"}"#), Some(ErrorCode::MethodNotFound));
    assert_eq!(known(409, r#"{"message":"no"}"#), Some(ErrorCode::TaskNotCancelable));
    assert_eq!(known(400, r#"{"code":-32005,"message":"no"}"#), Some(ErrorCode::ContentTypeNotSupported));
    assert_eq!(known(503, ""), Some(ErrorCode::Internal));
}

#[test]
fn an_id_cannot_break_out_of_its_path() {
    let request =
        A2aRequest::Get(crate::request::GetTask { id: "a/../b:cancel?x#y".to_owned(), ..Default::default() });
    let call = rest::encode(Wire::V10, &request).unwrap();
    assert_eq!(call.path, "/tasks/a%2F..%2Fb%3Acancel%3Fx%23y");
    assert_eq!(rest::decode_request("GET", &call.path, "", b"").unwrap().request, request);
}

#[test]
fn a_dialect_refuses_what_it_does_not_have() {
    let list = A2aRequest::List(crate::request::ListTasks::default());
    let error = rpc::encode(Wire::V03, &Id::from(1), &list).unwrap_err();
    assert_eq!(error.to_string(), "listing tasks is not part of A2A 0.3");
    assert!(rest::encode(Wire::V01, &list).is_err());
}
