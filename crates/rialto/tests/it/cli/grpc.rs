//! The A2A endpoint over gRPC, in both packages, on the port of the HTTP server.

use rialto_a2a_codec::{error::ErrorCode, wire::Wire};
use serde_json::{Value, json};

use crate::harness::{
    grpc::{call, house, said, send},
    http,
};

const BOTH: [Wire; 2] = [Wire::V10, Wire::V03Proto];

/// The part that the task's only artifact has.
fn part(task: &Value) -> &Value {
    &task["artifacts"][0]["parts"][0]
}

#[test]
fn a_skill_is_called_and_its_task_is_found_again() {
    let (_rialto, _agent, server) = house();
    for wire in BOTH {
        let params = said(&format!("m-{wire:?}"), "desk.greet", &json!({ "name": "Ann" }));
        let sent = call(&server, wire, "SendMessage", &params).result();
        assert_eq!(sent["task"]["status"]["state"], "TASK_STATE_COMPLETED", "{sent}");
        assert_eq!(part(&sent["task"])["text"], "hello Ann");
        let got = call(&server, wire, "GetTask", &json!({ "id": sent["task"]["id"] })).result();
        assert_eq!(got["id"], sent["task"]["id"]);
        assert_eq!(part(&got)["text"], "hello Ann");
    }
    let listed = call(&server, Wire::V10, "ListTasks", &json!({})).result();
    assert_eq!((&listed["totalSize"], listed["tasks"].as_array().unwrap().len()), (&json!(2), 2));
}

#[test]
fn numbers_and_structures_come_back_as_doubles_say_them() {
    let (_rialto, _agent, server) = house();
    let data = json!({ "n": 42, "half": 0.5, "list": [1, "two", null, { "three": true }], "umlaut": "ü" });
    for wire in BOTH {
        let params = said(&format!("m-{wire:?}"), "desk.echo", &data);
        let task = &call(&server, wire, "SendMessage", &params).result()["task"];
        let found = if wire == Wire::V10 { &part(task)["data"] } else { &part(task)["data"]["data"] };
        assert_eq!(*found, data);
    }
}

#[test]
fn a_stream_tells_the_task_and_then_what_happens() {
    let (_rialto, _agent, server) = house();
    for wire in BOTH {
        let params = said(&format!("m-{wire:?}"), "desk.later", &json!({ "ms": 300 }));
        let events = call(&server, wire, "SendStreamingMessage", &params).events();
        assert!(events[0]["task"]["id"].is_string(), "{events:?}");
        let last = &events.last().unwrap()["statusUpdate"];
        assert_eq!(last["status"]["state"], "TASK_STATE_COMPLETED", "{events:?}");
        assert!(
            events
                .iter()
                .any(|event| event["artifactUpdate"]["artifact"]["parts"][0]["text"] == "done at last")
        );
    }
}

#[test]
fn a_question_is_answered_on_its_task() {
    let (_rialto, _agent, server) = house();
    let task = call(&server, Wire::V10, "SendMessage", &said("m-1", "desk.ask", &json!({}))).result();
    assert_eq!(task["task"]["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
    let answer = json!({ "message": {
        "messageId": "m-2", "role": "ROLE_USER", "taskId": task["task"]["id"], "parts": [{ "text": "blue" }],
    }});
    let done = call(&server, Wire::V10, "SendMessage", &answer).result();
    assert_eq!(part(&done["task"])["text"], "you chose blue", "{done}");
}

#[test]
fn what_went_wrong_is_said_by_status_and_reason() {
    let (_rialto, _agent, server) = house();
    let done = call(&server, Wire::V10, "SendMessage", &said("m-1", "desk.echo", &json!({}))).result();
    let id = &done["task"]["id"];
    let hook = json!({ "taskId": id, "url": "ftp://hook.example" });
    let unknown = said("m-2", "desk.nothing", &json!({}));
    for (method, params, number, code) in [
        ("GetTask", json!({ "id": "nobody" }), 5, ErrorCode::TaskNotFound),
        ("CancelTask", json!({ "id": id }), 9, ErrorCode::TaskNotCancelable),
        ("SubscribeToTask", json!({ "id": id }), 9, ErrorCode::UnsupportedOperation),
        ("CreateTaskPushNotificationConfig", hook, 3, ErrorCode::InvalidParams),
        ("SendMessage", unknown, 3, ErrorCode::InvalidParams),
    ] {
        let (status, error) = call(&server, Wire::V10, method, &params).error();
        assert_eq!((status, error.known()), (number, Some(code)), "{method}: {error:?}");
        assert!(error.data.is_some(), "{method} says its reason");
        // 0.3 has other numbers, and names in place of reasons.
        let (_, error) = call(&server, Wire::V03Proto, method, &params).error();
        assert_eq!((error.known(), error.data), (Some(code), None), "{method}");
    }
}

#[test]
fn webhooks_of_a_task_are_made_found_and_deleted() {
    let (_rialto, _agent, server) = house();
    let done = call(&server, Wire::V10, "SendMessage", &said("m-1", "desk.echo", &json!({}))).result();
    let task = &done["task"]["id"];
    for wire in BOTH {
        let hook = json!({ "taskId": task, "id": "h", "url": "https://hook.example/x", "token": "t" });
        let made = call(&server, wire, "CreateTaskPushNotificationConfig", &hook).result();
        let inner = |config: &Value| {
            let inner = if wire == Wire::V10 { config } else { &config["pushNotificationConfig"] };
            (inner["id"].clone(), inner["url"].clone())
        };
        let expected = (json!("h"), json!("https://hook.example/x"));
        assert_eq!(inner(&made), expected, "{made}");
        let one = json!({ "taskId": task, "id": "h" });
        assert_eq!(inner(&call(&server, wire, "GetTaskPushNotificationConfig", &one).result()), expected);
        let all = |wire| {
            call(&server, wire, "ListTaskPushNotificationConfigs", &json!({ "taskId": task })).result()
        };
        assert_eq!(inner(&all(wire)["configs"][0]), expected);
        assert_eq!(call(&server, wire, "DeleteTaskPushNotificationConfig", &one).result(), json!({}));
        assert!(all(wire)["configs"].as_array().is_none_or(Vec::is_empty));
    }
}

#[test]
fn a_failure_of_the_agent_is_a_task_that_failed() {
    let (_rialto, _agent, server) = house();
    let sent = call(&server, Wire::V10, "SendMessage", &said("m-1", "desk.fail", &json!({}))).result();
    assert_eq!(sent["task"]["status"]["state"], "TASK_STATE_FAILED");
}

#[test]
fn what_is_no_call_is_told_so() {
    let (_rialto, _agent, server) = house();
    let path = "/lf.a2a.v1.A2AService/GetTask";
    let status = |told: crate::harness::grpc::GrpcResponse| told.status.map(|status| status.number);
    assert_eq!(status(send(&server, "/lf.a2a.v1.A2AService/Fly", vec![0; 5], &[])), Some(12));
    assert_eq!(status(send(&server, path, vec![0, 0, 0, 0, 9], &[])), Some(13), "half a message");
    assert_eq!(status(send(&server, path, vec![1, 0, 0, 0, 0], &[])), Some(12), "a compressed one");
    assert_eq!(status(send(&server, path, vec![0, 0, 0, 0, 1, 0xff], &[])), Some(3), "no protobuf");
    let odd = send(&server, path, vec![0, 0, 0, 0, 3, 0x12, 1, b't'], &[("a2a-version", "9.9")]);
    assert_eq!(odd.error().1.known(), Some(ErrorCode::VersionNotSupported));
    assert_eq!(send(&server, path, Vec::new(), &[("content-type", "text/plain")]).http, 415);
    let large = send(&server, path, vec![0; 5 << 20], &[]);
    assert_eq!(large.http, 413, "what is announced is refused at the gate");
    let token = format!("Bearer {}", server.token.as_deref().unwrap());
    let headers = [("content-type", "application/grpc"), ("authorization", &token)];
    assert_eq!(http::post(&format!("{}{path}", server.url), &headers, "").status, 505, "HTTP/1.1");
}

#[test]
fn nobody_is_let_in_without_a_token_and_nobody_sees_the_tasks_of_another() {
    let (rialto, agent, mut server) = house();
    let done = call(&server, Wire::V10, "SendMessage", &said("m-1", "desk.echo", &json!({}))).result();
    let heard = agent.heard().len();
    let other = rialto.json(&["tokens", "create", "bob", "--json"])["token"].as_str().unwrap().to_owned();
    server.token = Some(other);
    let (number, _) = call(&server, Wire::V10, "GetTask", &json!({ "id": done["task"]["id"] })).error();
    assert_eq!(number, 5);
    for token in [None, Some("rialto_0000".to_owned())] {
        server.token = token;
        let told = call(&server, Wire::V10, "SendMessage", &said("m-2", "desk.echo", &json!({})));
        assert_eq!((told.http, told.status.is_none()), (401, true));
    }
    assert_eq!(agent.heard().len(), heard);
}

#[test]
fn the_card_says_where_grpc_is_spoken_and_can_be_had_over_it() {
    let (_rialto, _agent, server) = house();
    let answer = http::get(&format!("{}/.well-known/agent-card.json", server.url)).unwrap();
    let card: Value = serde_json::from_str(&answer.body).unwrap();
    let target = server.url.strip_prefix("http://").unwrap();
    let new = json!({ "url": target, "protocolBinding": "GRPC", "protocolVersion": "1.0" });
    assert!(card["supportedInterfaces"].as_array().unwrap().contains(&new), "{card}");
    let old = json!({ "url": target, "transport": "GRPC" });
    assert!(card["additionalInterfaces"].as_array().unwrap().contains(&old), "{card}");
    let extended = call(&server, Wire::V10, "GetExtendedAgentCard", &json!({})).result();
    assert!(
        extended["skills"].as_array().unwrap().iter().any(|skill| skill["id"] == "desk.echo"),
        "{extended}"
    );
    assert_eq!(extended["securitySchemes"]["bearer"]["httpAuthSecurityScheme"]["scheme"], "Bearer");
    let extended = call(&server, Wire::V03Proto, "GetExtendedAgentCard", &json!({})).result();
    assert_eq!(extended["security"][0]["schemes"]["bearer"], json!({}), "{extended}");
}

#[test]
fn one_agent_is_asked_by_naming_it_as_the_tenant() {
    let (_rialto, _agent, server) = house();
    let card = http::get(&format!("{}/a2a/agents/desk/.well-known/agent-card.json", server.url)).unwrap();
    let card: Value = serde_json::from_str(&card.body).unwrap();
    let target = server.url.strip_prefix("http://").unwrap();
    let own = json!({ "url": target, "protocolBinding": "GRPC", "protocolVersion": "1.0", "tenant": "desk" });
    assert!(card["supportedInterfaces"].as_array().unwrap().contains(&own), "{card}");
    let mut params = said("m-1", "greet", &json!({ "name": "Ann" }));
    params["tenant"] = json!("desk");
    let sent = call(&server, Wire::V10, "SendMessage", &params).result();
    assert_eq!(part(&sent["task"])["text"], "hello Ann", "{sent}");
    params["tenant"] = json!("nobody");
    assert_eq!(call(&server, Wire::V10, "SendMessage", &params).error().0, 5);
}

#[test]
fn a_task_is_called_off() {
    let (_rialto, _agent, server) = house();
    let mut params = said("m-1", "desk.slow", &json!({ "ms": 20_000 }));
    params["configuration"] = json!({ "returnImmediately": true });
    let begun = call(&server, Wire::V10, "SendMessage", &params).result();
    let canceled = call(&server, Wire::V10, "CancelTask", &json!({ "id": begun["task"]["id"] })).result();
    assert_eq!(canceled["status"]["state"], "TASK_STATE_CANCELED", "{canceled}");
}
