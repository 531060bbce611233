//! Round trips through protobuf equal round trips through JSON, except for data that protobuf cannot hold.

use proptest::{collection::vec, prelude::*, sample::select};
use rialto_model::{
    json::Json,
    message::{Content, Message, Part, Role},
};
use serde_json::{Value, json};

use super::{any, bent, held, samples};
use crate::{
    answer,
    error::ErrorCode,
    grpc::{self, GrpcCall, frame::Frames},
    request::{A2aOperation, A2aRequest, SendRequest},
    task::{A2aState, A2aStatus, A2aTask, StreamEvent},
    wire::Wire,
};

fn wire() -> impl Strategy<Value = Wire> {
    select(vec![Wire::V10, Wire::V03Proto])
}

/// The one message in a body.
fn message(body: &[u8]) -> Vec<u8> {
    let mut frames = Frames::new(body.len());
    frames.feed(body);
    let message = frames.next_message().unwrap().unwrap();
    assert!(!frames.is_cut());
    message.to_vec()
}

/// The JSON that comes out at the other end of protobuf.
fn across(wire: Wire, operation: A2aOperation, text: &str) -> String {
    let body = grpc::encode_answer(wire, operation, text).unwrap();
    grpc::answer_text(wire, operation, &message(&body)).unwrap()
}

/// A message as the field `number` of another.
fn nested(number: u8, message: &[u8]) -> Vec<u8> {
    let (mut out, mut length) = (vec![number << 3 | 2], message.len());
    while length >= 0x80 {
        out.push((length & 0x7f) as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
    out.extend_from_slice(message);
    out
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

proptest! {
    #[test]
    fn a_stream_event_comes_back(wire in wire(), event in any::stream_event()) {
        let text = across(wire, A2aOperation::Stream, &answer::encode_stream_event(wire, &event).text());
        let read = answer::decode_stream_event(wire, answer::parse(text.as_bytes()).unwrap()).unwrap();
        let expected = bent::stream_event(wire, event).map(held::stream_event);
        prop_assert_eq!(Some(read), expected, "{}", text);
    }

    #[test]
    fn a_task_comes_back(wire in wire(), task in any::task()) {
        let text = across(wire, A2aOperation::Get, &answer::encode_task(wire, &task).text());
        let read = answer::decode_task(wire, answer::parse(text.as_bytes()).unwrap()).unwrap();
        prop_assert_eq!(read, held::task(bent::task(wire, task)), "{}", text);
    }

    #[test]
    fn a_page_of_tasks_comes_back(mut list in any::task_list()) {
        let text = across(Wire::V10, A2aOperation::List, &answer::encode_task_list(Wire::V10, &list).text());
        let read = answer::decode_task_list(Wire::V10, answer::parse(text.as_bytes()).unwrap()).unwrap();
        list.tasks = list.tasks.into_iter().map(|task| bent::task(Wire::V10, task)).collect();
        prop_assert_eq!(read, held::task_list(list), "{}", text);
    }

    #[test]
    fn a_webhook_comes_back(wire in wire(), push in any::push()) {
        let text = across(wire, A2aOperation::PushGet, &answer::encode_push(wire, &push).text());
        let read = answer::decode_push(wire, answer::parse(text.as_bytes()).unwrap()).unwrap();
        prop_assert_eq!(read, held::push(bent::push(wire, push)), "{}", text);
    }

    #[test]
    fn a_request_comes_back(wire in wire(), request in any::request()) {
        let Ok(GrpcCall { path, body }) = grpc::encode(wire, &request) else { return Ok(()) };
        let read = grpc::decode_request(&path, &message(&body)).unwrap();
        prop_assert_eq!(read.wire, wire);
        prop_assert_eq!(read.request, held::request(wire, bent::rest_request(wire, request)), "{}", path);
    }

    #[test]
    fn bytes_do_no_harm(bytes in vec(any::<u8>(), 0..80), wire in wire(), operation in select(A2aOperation::ALL.to_vec())) {
        if let Ok(text) = grpc::answer_text(wire, operation, &bytes) {
            serde_json::from_str::<Value>(&text).unwrap();
        }
        let _ = grpc::decode_request("/a2a.v1.A2AService/SendMessage", &bytes);
        let mut frames = Frames::new(40);
        frames.feed(&bytes);
        while let Ok(Some(_)) = frames.next_message() {}
    }

    #[test]
    fn a_message_with_a_flipped_bit_does_no_harm(
        wire in wire(), event in any::stream_event(), place in any::<prop::sample::Index>(), bit in 0..8_u32,
    ) {
        let body = grpc::encode_answer(wire, A2aOperation::Stream, &answer::encode_stream_event(wire, &event).text());
        let mut bytes = message(&body.unwrap());
        let place = place.index(bytes.len());
        bytes[place] ^= 1 << bit;
        if let Ok(text) = grpc::answer_text(wire, A2aOperation::Stream, &bytes) {
            serde_json::from_str::<Value>(&text).unwrap();
        }
    }

    #[test]
    fn messages_that_follow_each_other_are_one(first in any::task(), second in any::task()) {
        // What protobuf says of any message, and what makes it right to put pieces together.
        let bytes = |task: &A2aTask| {
            let text = answer::encode_task(Wire::V10, task).text();
            message(&grpc::encode_answer(Wire::V10, A2aOperation::Get, &text).unwrap())
        };
        let both = [bytes(&first), bytes(&second)].concat();
        let text = grpc::answer_text(Wire::V10, A2aOperation::Get, &both).unwrap();
        let read = answer::decode_task(Wire::V10, answer::parse(text.as_bytes()).unwrap()).unwrap();
        prop_assert_eq!(read.id, second.id);
        prop_assert_eq!(read.artifacts.len(), first.artifacts.len() + second.artifacts.len());
        prop_assert_eq!(read.context_id, second.context_id.or(first.context_id));
    }
}

#[test]
fn requests_on_the_wire() {
    for wire in [Wire::V10, Wire::V03Proto] {
        let mut lines = String::new();
        for request in samples::requests() {
            let Ok(GrpcCall { path, body }) = grpc::encode(wire, &request) else {
                lines += &format!("{}: not in this dialect\n", request.operation());
                continue;
            };
            lines += &format!("{path}\n  {}\n", hex(&body));
        }
        insta::assert_snapshot!(format!("requests_over_grpc_{wire:?}"), lines);
    }
}

#[test]
fn the_names_of_both_packages_lead_to_the_same_operations() {
    for wire in [Wire::V10, Wire::V03Proto] {
        for request in samples::requests() {
            let Ok(call) = grpc::encode(wire, &request) else { continue };
            assert_eq!(grpc::place(&call.path), Some((wire, request.operation())));
        }
    }
    for path in ["", "/", "/lf.a2a.v1.A2AService", "/lf.a2a.v1.A2AService/TaskSubscription", "/x/SendMessage"]
    {
        assert_eq!(grpc::place(path), None);
        assert_eq!(
            grpc::decode_request(path, &[]).unwrap_err().error.known(),
            Some(ErrorCode::MethodNotFound)
        );
    }
}

#[test]
fn a_state_that_nobody_knows_is_unspecified() {
    // status { state: 77 }
    let text = grpc::answer_text(Wire::V10, A2aOperation::Get, &[0x0a, 1, b't', 0x1a, 2, 0x08, 77]).unwrap();
    let task = answer::decode_task(Wire::V10, answer::parse(text.as_bytes()).unwrap()).unwrap();
    assert_eq!(task.status.state, A2aState::Unspecified);
}

#[test]
fn a_canceled_task_has_two_spellings_and_one_number() {
    let task = A2aTask::new("t", A2aStatus::new(A2aState::Canceled));
    for (wire, name) in [(Wire::V10, "TASK_STATE_CANCELED"), (Wire::V03Proto, "TASK_STATE_CANCELLED")] {
        let text = answer::encode_task(wire, &task).text();
        let body = grpc::encode_answer(wire, A2aOperation::Get, &text).unwrap();
        assert_eq!(hex(&message(&body)), "0a01741a020805");
        assert!(grpc::answer_text(wire, A2aOperation::Get, &message(&body)).unwrap().contains(name));
    }
}

#[test]
fn whole_numbers_stay_whole_and_others_are_doubles() {
    let data = r#"[42,-7,0.5,1e3,9007199254740993,1e300,-0.0]"#;
    let event =
        StreamEvent::Message(Message::new("m", Role::Agent, vec![Part::data(Json::parse(data).unwrap())]));
    let text =
        across(Wire::V10, A2aOperation::Stream, &answer::encode_stream_event(Wire::V10, &event).text());
    assert!(text.contains("[42,-7,0.5,1000,9007199254740992.0,1e+300,-0.0]"), "{text}");
}

#[test]
fn what_protobuf_would_turn_into_something_else_is_refused_with_its_place() {
    let said = |part: Part| {
        let request = A2aRequest::Send(SendRequest::new(Message::new("m", Role::User, vec![part])));
        grpc::encode(Wire::V10, &request).unwrap_err().to_string()
    };
    let why = said(Part::data(Json::parse("1e400").unwrap()));
    assert!(why.contains("message.parts[0].data") && why.contains("double"), "{why}");
    let why = said(Part::new(Content::Raw("not base64!".to_owned())));
    assert!(why.contains("message.parts[0].raw") && why.contains("base64"), "{why}");
}

#[test]
fn bytes_are_read_in_either_alphabet() {
    let request = |raw: &str| {
        let part = Part::new(Content::Raw(raw.to_owned()));
        grpc::encode(
            Wire::V10,
            &A2aRequest::Send(SendRequest::new(Message::new("m", Role::User, vec![part]))),
        )
        .unwrap()
    };
    assert_eq!(request("-_8"), request("+/8="));
}

#[test]
fn what_is_too_deep_is_refused_before_the_stack_is_used_up() {
    // A list in a list in a list: `Value { list_value: ListValue { values: … } }`.
    let mut value = Vec::new();
    while value.len() < 20_000 {
        value = nested(6, &nested(1, &value));
    }
    let whole = nested(2, &nested(5, &nested(4, &value)));
    let garbled = grpc::answer_text(Wire::V10, A2aOperation::Send, &whole).unwrap_err().to_string();
    assert!(garbled.contains("100 levels"), "{garbled}");
}

#[test]
fn a_card_crosses_with_its_login() {
    let card = json!({
        "name": "A", "description": "d", "version": "1", "capabilities": { "streaming": true },
        "supportedInterfaces": [{ "url": "http://a", "protocolBinding": "GRPC", "protocolVersion": "1.0" }],
        "securitySchemes": { "b": { "httpAuthSecurityScheme": { "scheme": "Bearer" } } },
        "securityRequirements": [{ "schemes": { "b": { "list": ["read"] } } }],
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "skills": [{ "id": "s", "name": "S", "description": "d", "tags": ["t"] }],
    });
    let text = across(Wire::V10, A2aOperation::ExtendedCard, &card.to_string());
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), card);
    let text = across(Wire::V03Proto, A2aOperation::ExtendedCard, &card.to_string());
    let old: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(old["security"], card["securityRequirements"]);
    assert_eq!(old["securitySchemes"], card["securitySchemes"]);
}
