//! What comes again: which messages are the same, and which only have the same name.

use serde_json::{Value, json};

use crate::house::{Client, House, asked, post, said};

fn code(answer: &Value) -> &Value {
    &answer["error"]["code"]
}

async fn at(client: &Client, slug: &str, params: &Value) -> Value {
    let path = format!("/a2a/agents/{slug}");
    client.send(post(&path), asked("SendMessage", params).to_string()).await.json()["result"]["task"].take()
}

/// A message of 0.1.
fn first(id: &str, text: &str) -> Value {
    json!({ "id": id, "message": { "role": "user", "parts": [{ "type": "text", "text": text }] } })
}

#[tokio::test]
async fn the_same_message_to_two_agents_is_a_task_at_each() {
    let house = House::new().await;
    house.meet(rialto_testkit::agents::card("Other", vec![rialto_testkit::agents::skill("work")])).await;
    let (ann, params) = (house.ann(), said("hello"));
    let (desk, other) = (at(&ann, "desk", &params).await, at(&ann, "other", &params).await);
    assert_ne!(desk["id"], other["id"]);
    assert_eq!(house.peer.calls.lock().len(), 2);
    // Again to each.
    assert_eq!(at(&ann, "desk", &params).await, desk);
    assert_eq!(at(&ann, "other", &params).await, other);
    // And with a skill it is another message than without.
    let mut to_skill = params;
    to_skill["metadata"] = json!({ "skillId": "work" });
    assert_ne!(at(&ann, "desk", &to_skill).await["id"], desk["id"]);
    assert_eq!(house.peer.calls.lock().len(), 3);
}

#[tokio::test]
async fn an_answer_that_is_sent_again_is_told_once() {
    let house = House::new().await;
    let ann = house.ann();
    let waiting = ann.tell("ask").await;
    let mut answer = said("red");
    answer["message"]["taskId"] = waiting["id"].clone();
    let one = ann.rpc("SendMessage", answer.clone());
    let (taken, beside) = futures::future::join(one, ann.rpc("SendMessage", answer.clone())).await;
    assert_eq!(taken, beside);
    assert_eq!(taken["result"]["task"]["artifacts"][0]["parts"], json!([{ "text": "you said red" }]));
    assert_eq!(ann.rpc("SendMessage", answer.clone()).await, taken);
    let streamed = ann.events("SendStreamingMessage", answer.clone()).await;
    assert_eq!(streamed[0]["result"]["task"]["id"], waiting["id"]);
    assert_eq!(house.peer.calls.lock().len(), 2);
    answer["message"]["parts"] = json!([{ "text": "blue" }]);
    assert_eq!(code(&ann.rpc("SendMessage", answer).await), -32004);
}

#[tokio::test]
async fn a_client_of_0_1_goes_on_with_its_task_and_begins_another_under_its_name_when_it_is_over() {
    let house = House::new().await;
    let ann = house.ann();
    assert_eq!(
        ann.rpc("tasks/send", first("own-1", "ask")).await["result"]["status"]["state"],
        "input-required"
    );
    let done = ann.rpc("tasks/send", first("own-1", "red")).await["result"].take();
    assert_eq!(done["artifacts"][0]["parts"][0]["text"], "you said red");
    // The answer again, and what it began with again.
    assert_eq!(ann.rpc("tasks/send", first("own-1", "red")).await["result"]["artifacts"], done["artifacts"]);
    assert_eq!(ann.rpc("tasks/send", first("own-1", "ask")).await["result"]["artifacts"], done["artifacts"]);
    assert_eq!(house.peer.calls.lock().len(), 2);
    let another = ann.rpc("tasks/send", first("own-1", "hello")).await["result"].take();
    assert_eq!(another["artifacts"][0]["parts"][0]["text"], "hello");
    assert_eq!(house.peer.calls.lock().len(), 3);
    // The newest is the one of that name.
    let got = ann.rpc("tasks/get", json!({ "id": "own-1" })).await["result"].take();
    assert_eq!(got["artifacts"], another["artifacts"]);
}

#[tokio::test]
async fn a_client_of_0_1_goes_on_with_a_task_that_we_named() {
    let house = House::new().await;
    let ann = house.ann();
    let id = ann.tell("ask").await["id"].take();
    let answer = first(id.as_str().unwrap(), "red");
    let done = ann.rpc("tasks/send", answer.clone()).await["result"].take();
    assert_eq!((&done["id"], &done["status"]["state"]), (&id, &json!("completed")), "{done}");
    assert_eq!(ann.rpc("tasks/send", answer).await["result"]["status"], done["status"]);
    assert_eq!(code(&ann.rpc("tasks/send", first(id.as_str().unwrap(), "blue")).await), -32004);
    assert_eq!(house.peer.calls.lock().len(), 2);
}

#[tokio::test]
async fn what_an_agent_calls_a_task_is_no_name_for_it_here() {
    let house = House::new().await;
    let ann = house.ann();
    let waiting = ann.tell("ask").await["id"].take();
    // The agent calls the one that waits by this name, and a client of 0.1 calls another so.
    for method in ["GetTask", "CancelTask", "tasks/get"] {
        assert_eq!(code(&ann.rpc(method, json!({ "id": "remote-1" })).await), -32001, "{method}");
    }
    ann.rpc("tasks/send", first("remote-1", "hello")).await;
    let got = ann.rpc("tasks/get", json!({ "id": "remote-1" })).await["result"].take();
    assert_eq!(got["status"]["state"], "completed");
    assert_eq!(code(&ann.rpc("tasks/cancel", json!({ "id": "remote-1" })).await), -32002);
    let mut answer = said("red");
    answer["message"]["taskId"] = waiting;
    assert_eq!(
        ann.rpc("SendMessage", answer).await["result"]["task"]["status"]["state"],
        "TASK_STATE_COMPLETED"
    );
}
