//! Nothing that can arrive makes a decoder panic, and whatever it accepts can be written and read again.

use proptest::{collection::vec, prelude::*, sample::select};

use rialto_model::json::Json;

use super::any;
use crate::{
    answer, card,
    rest::{self, RestCall},
    rpc::{self, Id},
    wire::Wire,
};

const WORDS: &[&str] = &[
    "kind",
    "type",
    "text",
    "data",
    "raw",
    "url",
    "file",
    "bytes",
    "uri",
    "fileWithBytes",
    "parts",
    "content",
    "role",
    "messageId",
    "contextId",
    "taskId",
    "id",
    "status",
    "state",
    "message",
    "timestamp",
    "artifact",
    "artifacts",
    "artifactId",
    "index",
    "append",
    "lastChunk",
    "final",
    "history",
    "metadata",
    "task",
    "statusUpdate",
    "artifactUpdate",
    "data_part_compat",
    "value",
    "configuration",
    "blocking",
    "historyLength",
    "skill",
    "skillId",
    "pushNotificationConfig",
    "config",
    "name",
    "jsonrpc",
    "method",
    "params",
    "2.0",
    "message/send",
    "SendMessage",
    "tasks/send",
    "tasks/get",
    "CreateTaskPushNotificationConfig",
    "ROLE_USER",
    "user",
    "completed",
    "skills",
    "supportedInterfaces",
    "additionalInterfaces",
    "capabilities",
    "signatures",
    "error",
    "result",
    "code",
    "details",
];

/// JSON made of the protocol's own words, in the wrong places.
fn babble() -> impl Strategy<Value = String> {
    let word = || select(WORDS).prop_map(|word| format!("\"{word}\""));
    let leaf = prop_oneof![
        4 => word(),
        1 => select(vec!["null", "true", "false", "0", "-1", "1e400", "7.0", "\"\"", "\"\\ud800\"", "{}", "[]"])
            .prop_map(str::to_owned),
    ];
    leaf.prop_recursive(6, 64, 6, move |inner| {
        prop_oneof![
            1 => vec(inner.clone(), 0..3).prop_map(|list| format!("[{}]", list.join(","))),
            3 => vec((word(), inner), 0..7).prop_map(|members| {
                let members: Vec<String> =
                    members.into_iter().map(|(name, value)| format!("{name}:{value}")).collect();
                format!("{{{}}}", members.join(","))
            }),
        ]
    })
}

fn hear(wire: Wire, text: &str) {
    let Ok(raw) = answer::parse(text.as_bytes()) else { return };
    let read_again = |text: String, what: &str| {
        let raw = Json::from(answer::parse(text.as_bytes()).unwrap());
        assert_ne!(raw.get(), "null", "{what} could not be written");
        raw
    };
    if let Ok(task) = answer::decode_task(wire, raw) {
        for other in Wire::ALL {
            let raw = read_again(answer::encode_task(other, &task).text(), "a task");
            answer::decode_task(other, raw.raw()).unwrap();
        }
    }
    if let Ok(event) = answer::decode_stream_event(wire, raw) {
        for other in Wire::ALL {
            let raw = read_again(answer::encode_stream_event(other, &event).text(), "an event");
            answer::decode_stream_event(other, raw.raw()).unwrap();
        }
    }
    if let Ok(push) = answer::decode_push(wire, raw) {
        for other in Wire::ALL {
            let raw = read_again(answer::encode_push(other, &push).text(), "a webhook");
            answer::decode_push(other, raw.raw()).unwrap();
        }
    }
    let _ = answer::decode_send(wire, raw);
    let _ = answer::decode_message(wire, raw);
    let _ = answer::decode_task_list(wire, raw);
    let _ = answer::decode_push_list(wire, raw);
}

fn serve(body: &[u8], path: &str) {
    let incoming = [
        rpc::decode_request(body),
        rest::decode_request("POST", path, "historyLength=3", body),
        rest::decode_request("GET", path, "pageSize=x&status=working", body),
    ];
    for incoming in incoming.into_iter().flatten() {
        for wire in Wire::ALL {
            if let Ok(body) = rpc::encode(wire, &Id::from(1), &incoming.request) {
                rpc::decode_request(body.as_bytes()).unwrap();
            }
            if let Ok(RestCall { body: Some(body), .. }) = rest::encode(wire, &incoming.request) {
                answer::parse(body.as_bytes()).unwrap();
            }
        }
    }
    for wire in Wire::ALL {
        let apart = rpc::decode_response(body).and_then(|response| match response.result {
            Ok(result) => answer::decode_send(wire, result).map(Ok),
            Err(error) => Ok(Err(error)),
        });
        assert_eq!(rpc::decode_send(wire, &rpc::id_of(body), body), apart, "read in one go and in two");
    }
    let _ = rest::decode_error(400, body);
}

proptest! {
    #[test]
    fn bytes_do_no_harm(bytes in vec(any::<u8>(), 0..80), path in "\\PC{0,30}") {
        serve(&bytes, &path);
        let _ = answer::parse(&bytes);
        let _ = card::decode(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn any_json_does_no_harm(wire in any::wire(), json in any::json()) {
        hear(wire, json.get());
        serve(json.get().as_bytes(), "/tasks/1");
        let _ = card::decode(json.get());
    }

    #[test]
    fn words_in_the_wrong_place_do_no_harm(wire in any::wire(), text in babble()) {
        hear(wire, &text);
        for path in ["/message:send", "/v1/message:send", "/v1/tasks/1/pushNotificationConfigs", "/t/tasks/1:cancel"] {
            serve(text.as_bytes(), path);
        }
        for method in ["message/send", "SendMessage", "tasks/send", "tasks/pushNotificationConfig/set"] {
            serve(format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{text}}}"#).as_bytes(), "/");
        }
        let _ = card::decode(&text);
        let _ = card::signature::verify(&text, &card::signature::VerificationKeys::new());
    }

    #[test]
    fn a_card_that_is_read_can_be_written(text in babble()) {
        let text = format!(r#"{{"name":"n","skills":[{{"id":"s","examples":["e"]}}],"url":"u","x":{text}}}"#);
        let read = card::decode(&text).unwrap();
        let again = card::decode(&card::encode(&read)).unwrap();
        prop_assert_eq!((&again.name, &again.skills), (&read.name, &read.skills));
    }
}

#[test]
fn a_webhook_with_a_member_named_like_its_wrapper_is_not_a_wrapper() {
    for name in ["pushNotificationConfig", "config"] {
        let webhook = format!(r#"{{"url":"https://a.example","{name}":"kind"}}"#);
        let wrapped = format!(r#"{{"pushNotificationConfig":{webhook}}}"#);
        for wire in Wire::ALL {
            hear(wire, &webhook);
            hear(wire, &wrapped);
            let read = answer::decode_push(wire, answer::parse(webhook.as_bytes()).unwrap()).unwrap();
            assert_eq!(read.extra.get(name).map(Json::get), Some(r#""kind""#));
        }
    }
}
