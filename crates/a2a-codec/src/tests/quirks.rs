//! Quirks of real agents, measured (A2A-WIRE §6), as far as they concern the codec. Q4 and the retries of Q7, Q8 and Q12 are
//! the peer's to handle and to test.

use rialto_model::{
    card::{Binding, Dialect},
    message::{Content, Message, Part, Role},
};

use crate::{
    answer, card,
    error::ErrorCode,
    request::{A2aRequest, SendRequest},
    rest,
    rpc::{self, Id},
    sse,
    task::{A2aState, SendAnswer, StreamEvent},
    wire::Wire,
};

fn event(wire: Wire, text: &str) -> StreamEvent {
    answer::decode_stream_event(wire, answer::parse(text.as_bytes()).unwrap()).unwrap()
}

fn first_content(wire: Wire, part: &str) -> Content {
    let text =
        format!(r#"{{"messageId":"m","role":"user","kind":"message","content":[{part}],"parts":[{part}]}}"#);
    let message = answer::decode_message(wire, answer::parse(text.as_bytes()).unwrap()).unwrap();
    message.parts[0].content.clone()
}

#[test]
fn q1_pretty_printed_json_over_many_data_lines_is_one_event() {
    let stream = "data: {\ndata:   \"task\": {\ndata:     \"id\": \"t\",\ndata:     \"status\": {\ndata:       \
                  \"state\": \"TASK_STATE_WORKING\"\ndata:     }\ndata:   }\ndata: }\n\n";
    let events = sse::SseParser::new(1000).feed(stream.as_bytes()).unwrap();
    assert_eq!(events.len(), 1);
    let StreamEvent::Task(task) = event(Wire::V03Proto, &events[0].data) else { panic!("not a task") };
    assert_eq!(task.status.state, A2aState::Working);
}

#[test]
fn q2_an_error_in_a_json_rpc_stream_is_read() {
    let stream = b"event: error\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32603,\"message\":\"boom\"}}\n\n";
    let events = sse::SseParser::new(1000).feed(stream).unwrap();
    assert_eq!(events[0].event.as_deref(), Some("error"));
    let error = rpc::decode_response(events[0].data.as_bytes()).unwrap().result.unwrap_err();
    assert_eq!((error.known(), error.message.as_str()), (Some(ErrorCode::Internal), "boom"));
}

#[test]
fn q2_an_error_in_a_rest_stream_is_read() {
    let data = r#"{"error":{"code":400,"status":"FAILED_PRECONDITION","message":"no","details":[{"@type":
        "type.googleapis.com/google.rpc.ErrorInfo","reason":"UNSUPPORTED_OPERATION","domain":"a2a-protocol.org"}]}}"#;
    let error = rest::decode_error(500, data.as_bytes());
    assert_eq!(error.known(), Some(ErrorCode::UnsupportedOperation));
}

#[test]
fn q3_file_bytes_encoded_twice_are_read_once() {
    // "hello, \xff" in base64, and that once more.
    let twice = first_content(Wire::V03Proto, r#"{"file":{"fileWithBytes":"YUdWc2JHOHNJUDg9"}}"#);
    assert_eq!(twice, Content::Raw("aGVsbG8sIP8=".to_owned()));
    let once = first_content(Wire::V03Proto, r#"{"file":{"fileWithBytes":"aGVsbG8sIP8="}}"#);
    assert_eq!(once, Content::Raw("aGVsbG8sIP8=".to_owned()));
}

#[test]
fn q3_a_short_text_file_encoded_once_is_not_mistaken() {
    let once =
        first_content(Wire::V03Proto, r#"{"file":{"fileWithBytes":"dGVzdA==","mimeType":"text/plain"}}"#);
    assert_eq!(once, Content::Raw("dGVzdA==".to_owned()));
}

#[test]
fn q3_other_wires_encode_file_bytes_once() {
    let raw = Content::Raw("YUdWc2JHOHNJUDg9".to_owned());
    assert_eq!(first_content(Wire::V03, r#"{"kind":"file","file":{"bytes":"YUdWc2JHOHNJUDg9"}}"#), raw);
    assert_eq!(first_content(Wire::V10, r#"{"raw":"YUdWc2JHOHNJUDg9"}"#), raw);
}

#[test]
fn q5_a_rest_request_to_0_3_always_says_whether_to_wait() {
    let request = A2aRequest::Send(SendRequest::new(Message::new("m", Role::User, vec![Part::text("hi")])));
    let body = rest::encode(Wire::V03Proto, &request).unwrap().body.unwrap();
    assert!(body.contains(r#""configuration":{"blocking":true}"#), "{body}");
    let silent = br#"{"message":{"messageId":"m","role":"ROLE_USER","content":[]}}"#;
    let read = rest::decode_request("POST", "/v1/message:send", "", silent).unwrap();
    assert!(matches!(read.request, A2aRequest::Send(send) if send.configuration.return_immediately));
}

#[test]
fn q6_a_stream_may_begin_with_an_artifact() {
    let first =
        r#"{"artifactUpdate":{"taskId":"t","contextId":"c","artifact":{"artifactId":"a","parts":[]}}}"#;
    assert!(matches!(event(Wire::V10, first), StreamEvent::Artifact(_)));
}

#[test]
fn q7_a_version_that_is_not_spoken_is_recognised() {
    let body = br#"{"jsonrpc":"2.0","id":"1","error":{"code":-32009,"message":"A2A version '0.3' is not supported"}}"#;
    let error = rpc::decode_response(body).unwrap().result.unwrap_err();
    assert_eq!(error.known(), Some(ErrorCode::VersionNotSupported));
}

#[test]
fn q8_both_answers_to_a_second_cancel_are_read() {
    let js = br#"{"jsonrpc":"2.0","id":1,"result":{"id":"t","contextId":"c","status":{"state":"TASK_STATE_CANCELED"}}}"#;
    let task = rpc::decode_response(js).unwrap().result.unwrap();
    assert_eq!(answer::decode_task(Wire::V10, task).unwrap().status.state, A2aState::Canceled);
    let python = br#"{"jsonrpc":"2.0","id":1,"error":{"code":-32002,"message":"Task cannot be canceled"}}"#;
    let error = rpc::decode_response(python).unwrap().result.unwrap_err();
    assert_eq!(error.known(), Some(ErrorCode::TaskNotCancelable));
}

#[test]
fn q9_a_card_of_0_2_can_be_called() {
    let card = r#"{"name":"a","url":"http://a","protocolVersion":"0.2.6","skills":[]}"#;
    let interface = &card::decode(card).unwrap().interfaces[0];
    assert_eq!((interface.dialect, &interface.binding), (Dialect::V02, &Binding::JsonRpc));
    assert_eq!(Wire::of(interface.dialect, &interface.binding), Some(Wire::V03));
}

#[test]
fn q10_a_slash_at_the_end_of_a_path_changes_nothing() {
    let body = br#"{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"hi"}]}}"#;
    let bare = rest::decode_request("POST", "/message:send", "", body).unwrap();
    assert_eq!(rest::decode_request("POST", "/message:send/", "", body).unwrap(), bare);
    let bare = rest::decode_request("GET", "/v1/tasks/1", "", b"").unwrap();
    assert_eq!(rest::decode_request("GET", "/v1/tasks/1/", "", b"").unwrap(), bare);
}

#[test]
fn q11_the_refusal_of_a_0_1_server_has_no_id_and_is_read() {
    let body = br#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"A2aRequest payload validation error"}}"#;
    let answer = rpc::decode_response(body).unwrap();
    assert_eq!(
        (&answer.id, answer.result.unwrap_err().known()),
        (&Id::null(), Some(ErrorCode::InvalidRequest))
    );
    let body = br#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"no"}}"#;
    assert!(rpc::decode_response(body).is_ok_and(|answer| answer.result.is_err()));
}

#[test]
fn q12_a_host_that_says_1_0_and_answers_in_0_3_is_understood() {
    let error = br#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found"}}"#;
    let error = rpc::decode_response(error).unwrap().result.unwrap_err();
    assert_eq!(error.known(), Some(ErrorCode::MethodNotFound));
    let text = r#"{"kind":"task","id":"t","contextId":"c","status":{"state":"input-required","message":{"kind":"message",
        "messageId":"m","role":"agent","parts":[{"kind":"text","text":"which?"}]}}}"#;
    let answer = answer::decode_send(Wire::V10, answer::parse(text.as_bytes()).unwrap()).unwrap();
    let SendAnswer::Task(task) = answer else { panic!("not a task") };
    assert_eq!(task.status.state, A2aState::InputRequired);
    let message = task.status.message.unwrap();
    assert_eq!((message.role, message.text().as_str()), (Role::Agent, "which?"));
}

#[test]
fn a_0_3_rest_body_with_the_names_of_the_proto_file_is_read() {
    // a2a-sdk 1.3.0, CompatRestTransport: `preserving_proto_field_name=True`.
    let body =
        br#"{"request":{"message_id":"m-1","context_id":"c-1","role":"ROLE_USER","content":[{"text":"hi"}]},
        "configuration":{"accepted_output_modes":["text/plain"],"history_length":3,"blocking":true,
        "push_notification":{"url":"https://hook.example","token":"t"}},"metadata":{"skillId":"say"}}"#;
    for path in ["/v1/message:send", "/v1/message:stream"] {
        let read = rest::decode_request("POST", path, "", body).unwrap();
        assert_eq!(read.wire, Wire::V03Proto);
        let (A2aRequest::Send(send) | A2aRequest::Stream(send)) = read.request else {
            panic!("not a message")
        };
        assert_eq!((send.message.id.as_str(), send.message.context_id.as_deref()), ("m-1", Some("c-1")));
        assert_eq!(send.message.text(), "hi");
        assert!(send.extra.is_empty() && !send.configuration.return_immediately);
        assert_eq!(send.configuration.push.unwrap().url, "https://hook.example");
    }
    let body =
        br#"{"parent":"tasks/t-1","config_id":"c-1","config":{"name":"tasks/t-1/pushNotificationConfigs/c-1",
        "push_notification_config":{"id":"c-1","url":"https://hook.example","token":"t"}}}"#;
    let read = rest::decode_request("POST", "/v1/tasks/t-1/pushNotificationConfigs", "", body).unwrap();
    let A2aRequest::PushCreate(config) = read.request else { panic!("not a webhook") };
    assert_eq!((config.task_id.as_deref(), config.id.as_deref()), (Some("t-1"), Some("c-1")));
}

#[test]
fn errors_of_0_3_rest_name_the_class_that_its_client_looks_for() {
    let error = crate::error::RpcError::new(ErrorCode::TaskNotFound, "no");
    let (status, body) = rest::encode_error(Wire::V03Proto, rest::Release::First, &error);
    assert_eq!((status, body.as_str()), (404, r#"{"message":"no","type":"TaskNotFoundError"}"#));
}

#[test]
fn a_message_without_an_id_is_written_with_one_that_stays_the_same() {
    let id = |wire, text: &str| {
        let message = Message::new("", Role::Agent, vec![Part::text(text)]);
        let answer = answer::encode_send(wire, &SendAnswer::Message(message)).text();
        let SendAnswer::Message(read) =
            answer::decode_send(wire, answer::parse(answer.as_bytes()).unwrap()).unwrap()
        else {
            panic!("not a message")
        };
        read.id
    };
    for wire in [Wire::V10, Wire::V03, Wire::V03Proto] {
        assert!(!id(wire, "hi").is_empty());
        assert_eq!(id(wire, "hi"), id(Wire::V10, "hi"));
        assert_ne!(id(wire, "hi"), id(wire, "ho"));
    }
}
