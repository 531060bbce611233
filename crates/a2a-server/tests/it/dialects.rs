//! One door, every dialect: what goes in and what comes back, word for word.

use http::Request;
use serde_json::{Value, json};

use crate::house::{House, Reply, asked, post, said, said_0_3, steady};

/// A message that says which skill it means, in the words of 1.0.
fn message(id: &str, text: &str) -> Value {
    json!({ "messageId": id, "role": "ROLE_USER", "parts": [{ "text": text }] })
}

#[tokio::test]
async fn a_message_is_answered_in_1_0() {
    let house = House::new().await;
    let params = json!({ "message": message("m-1", "hello"), "metadata": { "skillId": "desk.work" } });
    insta::assert_json_snapshot!(steady(&house.ann().rpc("SendMessage", params).await));
}

#[tokio::test]
async fn a_message_is_answered_in_0_3() {
    let house = House::new().await;
    let message = json!({
        "kind": "message", "messageId": "m-1", "role": "user", "parts": [{ "kind": "text", "text": "hello" }],
    });
    insta::assert_json_snapshot!(steady(
        &house.ann().rpc("message/send", json!({ "message": message })).await
    ));
}

#[tokio::test]
async fn a_message_is_answered_in_0_1_under_the_name_its_client_gave_it() {
    let house = House::new().await;
    let ann = house.ann();
    let message = json!({ "role": "user", "parts": [{ "type": "text", "text": "hello" }] });
    let sent = ann.rpc("tasks/send", json!({ "id": "own-1", "message": message })).await;
    insta::assert_json_snapshot!(steady(&sent));
    let got = ann.rpc("tasks/get", json!({ "id": "own-1" })).await;
    assert_eq!(got["result"]["id"], "own-1");
    assert_eq!(got["result"]["status"]["state"], "completed");
}

#[tokio::test]
async fn a_message_is_answered_over_rest_in_1_0() {
    let house = House::new().await;
    let body = json!({ "message": message("m-1", "hello") });
    let reply = house.ann().send(post("/a2a/message:send"), body.to_string()).await;
    assert_eq!(reply.kind, "application/json");
    insta::assert_json_snapshot!(steady(&reply.json()));
}

#[tokio::test]
async fn a_message_is_answered_over_rest_in_0_3() {
    let house = House::new().await;
    // With the names of the proto file, as proto's JSON allows them.
    let message = json!({ "message_id": "m-1", "role": "ROLE_USER", "content": [{ "text": "hello" }] });
    let body = json!({ "message": message, "configuration": { "blocking": true } });
    let reply = house.ann().send(post("/a2a/v1/message:send"), body.to_string()).await;
    insta::assert_json_snapshot!(steady(&reply.json()));
}

#[tokio::test]
async fn a_client_that_names_1_0_1_s_media_type_is_answered_in_it() {
    let house = House::new().await;
    let body = json!({ "message": message("m-1", "hello") }).to_string();
    let second = Request::post("/a2a/message:send").header("content-type", "application/a2a+json");
    assert_eq!(house.ann().send(second, body).await.kind, "application/a2a+json");
    let accepting = Request::get("/a2a/tasks").header("accept", "application/a2a+json");
    assert_eq!(house.ann().send(accepting, "").await.kind, "application/a2a+json");
    assert_eq!(house.ann().send(Request::get("/a2a/tasks"), "").await.kind, "application/json");
}

#[tokio::test]
async fn an_agent_that_answers_with_a_message_is_passed_on_as_one() {
    let house = House::new().await;
    let ann = house.ann();
    let v10 = ann.rpc("SendMessage", said("reply")).await;
    let v03 = ann.rpc("message/send", said_0_3("reply")).await;
    insta::assert_json_snapshot!(steady(&json!([v10, v03])));
    let events = ann.events("SendStreamingMessage", said("reply")).await;
    assert_eq!(events.len(), 1, "{events:?}");
    assert_eq!(events[0]["result"]["message"]["parts"], json!([{ "text": "just a message" }]));
}

#[tokio::test]
async fn the_names_of_the_proto_file_are_understood() {
    let house = House::new().await;
    let ann = house.ann();
    let waiting = ann.tell("ask").await;
    let (task, context) = (&waiting["id"], &waiting["contextId"]);
    let message = json!({
        "message_id": "m-2", "task_id": task, "context_id": context, "role": "ROLE_USER",
        "parts": [{ "text": "red" }],
    });
    let answer = ann.rpc("SendMessage", json!({ "message": message })).await;
    assert_eq!(&answer["result"]["task"]["id"], task, "{answer}");
    let got = ann.rpc("GetTask", json!({ "id": task, "history_length": 1 })).await;
    assert_eq!(got["result"]["history"].as_array().unwrap().len(), 1, "{got}");
    // Nothing of it slips through to the agent under its other name.
    let spoken = house.peer.calls.lock().last().unwrap().spoken.clone().unwrap();
    assert!(spoken.message.extra.is_empty(), "{spoken:?}");
}

#[tokio::test]
async fn what_a_caller_says_beside_its_message_goes_on_but_is_not_remembered() {
    let house = House::new().await;
    let ann = house.ann();
    let mut params = json!({ "message": message("m-1", "hello") });
    params["message"]["own"] = json!({ "n": 1 });
    params["message"]["metadata"] = json!({ "trip": 7 });
    let task = ann.rpc("SendMessage", params).await["result"]["task"].take();
    assert_eq!(task["history"][0].get("own"), None, "{task}");
    assert_eq!(task["history"][0]["metadata"], json!({ "trip": 7 }));
    let spoken = house.peer.calls.lock().last().unwrap().spoken.clone().unwrap();
    assert_eq!(spoken.message.extra.get("own").unwrap().get(), r#"{"n":1}"#);
    assert_eq!(spoken.message.id, "m-1");
}

#[tokio::test]
async fn a_batch_is_answered_in_its_order() {
    let house = House::new().await;
    let batch = json!([
        asked("message/send", &said_0_3("one")),
        { "jsonrpc": "2.0", "id": "b", "method": "tasks/get", "params": { "id": "nowhere" } },
        { "jsonrpc": "2.0", "id": 3, "method": "message/stream", "params": said_0_3("three") },
    ]);
    insta::assert_json_snapshot!(steady(&house.ann().say(&batch).await));
    assert_eq!(house.peer.calls.lock().len(), 1, "what cannot be answered is not begun");
    let none: Reply = house.ann().send(post("/a2a"), "[]").await;
    assert_eq!(none.json()["error"]["code"], -32600);
}

#[tokio::test]
async fn both_forms_of_every_address_lead_here() {
    let house = House::new().await;
    for path in ["/", "/a2a", "/a2a/", "/_a2a", "/_a2a/", "/a2a/agents/desk", "/a2a/agents/desk/"] {
        let body = asked("SendMessage", &said("hello")).to_string();
        let reply = house.ann().send(post(path), body).await.json();
        assert_eq!(reply["result"]["task"]["status"]["state"], "TASK_STATE_COMPLETED", "{path}: {reply}");
    }
}
