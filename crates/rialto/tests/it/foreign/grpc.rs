//! The official gRPC clients at the A2A door.

use serde_json::{Value, json};

use crate::harness::grpc::{GrpcClient, house, said};

/// A message for a skill in 0.3, and wait for the answer.
fn said_in_0_3(id: &str, skill: &str, data: &Value) -> Value {
    let message = json!({ "messageId": id, "role": "ROLE_USER", "content": [{ "data": { "data": data } }] });
    json!({ "message": message, "configuration": { "blocking": true }, "metadata": { "skillId": skill } })
}

/// Events without the ids that differ, and how the stream ended.
fn stations(lines: &[Value]) -> Vec<String> {
    let station = |line: &Value| {
        let event = &line["event"];
        match event.as_object().and_then(|event| event.keys().next()).map(String::as_str) {
            Some("task") => format!("task {}", event["task"]["status"]["state"]),
            Some("statusUpdate") => format!("status {}", event["statusUpdate"]["status"]["state"]),
            Some("artifactUpdate") => {
                format!("artifact {}", event["artifactUpdate"]["artifact"]["parts"][0])
            }
            _ => line.to_string(),
        }
    };
    lines.iter().map(station).collect()
}

#[test]
fn the_client_of_the_python_sdk_1_3_is_served() {
    let (_rialto, _agent, server) = house();
    let mut client = GrpcClient::start("a2a_grpc_1_3", &server, server.token.as_deref());
    let data = json!({ "n": 42, "list": [1.5, null, { "a": "ü" }] });
    let sent = client.ask("SendMessage", &said("m-1", "desk.echo", &data));
    let task = &sent["result"]["task"];
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED", "{sent}");
    assert_eq!(
        task["artifacts"][0]["parts"][0]["data"],
        json!({ "n": 42.0, "list": [1.5, null, { "a": "ü" }] })
    );
    let got = client.ask("GetTask", &json!({ "id": task["id"] }));
    assert_eq!(got["result"]["id"], task["id"], "{got}");
    let listed = client.ask("ListTasks", &json!({ "pageSize": 10 }));
    assert_eq!(listed["result"]["totalSize"], 1, "{listed}");

    let lines = client.stream("SendStreamingMessage", &said("m-2", "desk.later", &json!({ "ms": 300 })));
    let told = stations(&lines);
    assert!(told[0].starts_with("task"), "{told:?}");
    let end = [r#"artifact {"text":"done at last"}"#, r#"status "TASK_STATE_COMPLETED""#, r#"{"end":true}"#];
    assert_eq!(told[told.len() - 3..], end, "{told:?}");

    let hook = json!({ "taskId": task["id"], "id": "h", "url": "https://hook.example" });
    let made = client.ask("CreateTaskPushNotificationConfig", &hook);
    assert_eq!(made["result"]["id"], "h", "{made}");
    let listed = client.ask("ListTaskPushNotificationConfigs", &json!({ "taskId": task["id"] }));
    assert_eq!(listed["result"]["configs"][0]["url"], "https://hook.example", "{listed}");
    let gone = client.ask("DeleteTaskPushNotificationConfig", &json!({ "taskId": task["id"], "id": "h" }));
    assert_eq!(gone, json!({ "result": null }));

    let card = client.ask("GetExtendedAgentCard", &json!({}));
    assert!(card["result"]["skills"].as_array().is_some_and(|skills| !skills.is_empty()), "{card}");
}

#[test]
fn errors_are_the_exceptions_of_the_python_sdk_1_3() {
    let (_rialto, _agent, server) = house();
    let mut client = GrpcClient::start("a2a_grpc_1_3", &server, server.token.as_deref());
    let done = client.ask("SendMessage", &said("m-1", "desk.echo", &json!({})));
    let id = &done["result"]["task"]["id"];
    let hook = json!({ "taskId": id, "url": "ftp://hook.example" });
    for (method, params, name) in [
        ("GetTask", json!({ "id": "nobody" }), "TaskNotFoundError"),
        ("CancelTask", json!({ "id": id }), "TaskNotCancelableError"),
        ("CreateTaskPushNotificationConfig", hook, "InvalidParamsError"),
        ("SendMessage", said("m-2", "desk.nothing", &json!({})), "InvalidParamsError"),
    ] {
        let said = client.ask(method, &params);
        assert_eq!(said["error"]["type"], name, "{method}: {said}");
    }
    let lines = client.stream("SubscribeToTask", &json!({ "id": id }));
    assert_eq!(lines[0]["error"]["type"], "UnsupportedOperationError", "{lines:?}");
    let mut stranger = GrpcClient::start("a2a_grpc_1_3", &server, None);
    let refused = stranger.ask("SendMessage", &said("m-3", "desk.echo", &json!({})));
    let words = refused["error"]["message"].as_str().unwrap();
    assert!(words.contains("UNAUTHENTICATED"), "{refused}");
}

#[test]
fn a_task_is_followed_and_called_off_by_the_python_sdk_1_3() {
    let (_rialto, _agent, server) = house();
    let mut client = GrpcClient::start("a2a_grpc_1_3", &server, server.token.as_deref());
    let mut params = said("m-1", "desk.later", &json!({ "ms": 1_500 }));
    params["configuration"] = json!({ "returnImmediately": true });
    let begun = client.ask("SendMessage", &params);
    let id = &begun["result"]["task"]["id"];
    let told = stations(&client.stream("SubscribeToTask", &json!({ "id": id })));
    assert!(told[0].starts_with("task"), "{told:?}");
    assert_eq!(told.last().unwrap(), r#"{"end":true}"#);
    assert!(told.contains(&r#"status "TASK_STATE_COMPLETED""#.to_owned()), "{told:?}");

    let mut params = said("m-2", "desk.slow", &json!({ "ms": 20_000 }));
    params["configuration"] = json!({ "returnImmediately": true });
    let begun = client.ask("SendMessage", &params);
    let canceled = client.ask("CancelTask", &json!({ "id": begun["result"]["task"]["id"] }));
    assert_eq!(canceled["result"]["status"]["state"], "TASK_STATE_CANCELED", "{canceled}");
}

#[test]
fn the_stubs_of_the_python_sdk_0_3_are_served() {
    let (_rialto, _agent, server) = house();
    let mut client = GrpcClient::start("a2a_grpc_0_3", &server, server.token.as_deref());
    let sent = client.ask("SendMessage", &said_in_0_3("m-1", "desk.echo", &json!({ "n": 42 })));
    let task = &sent["result"]["task"];
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED", "{sent}");
    assert_eq!(task["artifacts"][0]["parts"][0]["data"]["data"], json!({ "n": 42.0 }));
    let name = format!("tasks/{}", task["id"].as_str().unwrap());
    let got = client.ask("GetTask", &json!({ "name": name }));
    assert_eq!(got["result"]["id"], task["id"], "{got}");
    let lines =
        client.stream("SendStreamingMessage", &said_in_0_3("m-2", "desk.later", &json!({ "ms": 300 })));
    let told = stations(&lines);
    assert_eq!(told.last().unwrap(), r#"{"end":true}"#, "{told:?}");
    assert!(told.contains(&r#"status "TASK_STATE_COMPLETED""#.to_owned()), "{told:?}");
    let refused = client.ask("CancelTask", &json!({ "name": name }));
    assert_eq!(refused["error"]["type"], "UNIMPLEMENTED", "{refused}");
    assert!(
        refused["error"]["message"].as_str().unwrap().starts_with("TaskNotCancelableError: "),
        "{refused}"
    );
    let card = client.ask("GetAgentCard", &json!({}));
    assert_eq!(card["result"]["protocolVersion"], "0.3.0", "{card}");
}
