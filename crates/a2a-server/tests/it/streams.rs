//! What happens, as it happens.

use http::Request;
use serde_json::{Value, json};

use crate::house::{House, asked, post, said, said_0_3, steady};

#[tokio::test]
async fn a_task_is_streamed_in_1_0() {
    let house = House::new().await;
    let events = house.ann().events("SendStreamingMessage", said("count")).await;
    insta::assert_json_snapshot!(steady(&Value::from(events)));
}

#[tokio::test]
async fn a_task_is_streamed_in_0_3() {
    let house = House::new().await;
    let events = house.ann().events("message/stream", said_0_3("count")).await;
    insta::assert_json_snapshot!(steady(&Value::from(events)));
}

#[tokio::test]
async fn a_task_is_streamed_in_0_1() {
    let house = House::new().await;
    let message = json!({ "role": "user", "parts": [{ "type": "text", "text": "count" }] });
    let events =
        house.ann().events("tasks/sendSubscribe", json!({ "id": "own-1", "message": message })).await;
    insta::assert_json_snapshot!(steady(&Value::from(events)));
}

#[tokio::test]
async fn a_task_is_streamed_over_rest() {
    let house = House::new().await;
    let ann = house.ann();
    let reply = ann.send(post("/a2a/message:stream"), said("count").to_string()).await;
    assert_eq!(reply.kind, "text/event-stream");
    let rpc = ann.events("SendStreamingMessage", said("count")).await;
    let bare: Vec<Value> = rpc.into_iter().map(|mut event| event["result"].take()).collect();
    assert_eq!(steady(&Value::from(reply.events())), steady(&Value::from(bare)));
}

#[tokio::test]
async fn a_failure_ends_a_stream_with_its_words() {
    let house = House::new().await;
    let events = house.ann().events("message/stream", said_0_3("fail")).await;
    let last = &events.last().unwrap()["result"];
    assert_eq!((&last["final"], &last["status"]["state"]), (&json!(true), &json!("failed")));
    assert_eq!(last["status"]["message"]["parts"][0]["text"], "it broke on purpose");
}

#[tokio::test]
async fn who_comes_later_is_shown_the_task_first_and_hears_the_rest() {
    let house = House::new().await;
    let ann = house.ann();
    let id = ann.tell("ask").await["id"].take();
    let subscribe = asked("SubscribeToTask", &json!({ "id": id })).to_string();
    let mut first = ann.open(post("/a2a"), subscribe.clone()).await;
    let path = format!("/a2a/tasks/{}:subscribe", id.as_str().unwrap());
    let mut second = ann.open(Request::get(path), "").await;
    let left = ann.open(post("/a2a"), subscribe).await;
    let shown = first.next().await.unwrap()["result"].take();
    assert_eq!(shown["task"]["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
    assert_eq!(second.next().await.unwrap(), shown);
    drop(left);
    let mut answer = said("red");
    answer["message"]["taskId"] = id.clone();
    ann.rpc("SendMessage", answer).await;
    let mut heard = Vec::new();
    while let Some(mut event) = first.next().await {
        heard.push(event["result"].take());
        assert_eq!(second.next().await.as_ref(), heard.last());
    }
    assert_eq!(second.next().await, None);
    assert_eq!(heard.last().unwrap()["statusUpdate"]["status"]["state"], "TASK_STATE_COMPLETED", "{heard:?}");
}

#[tokio::test]
async fn before_1_0_a_stream_is_over_when_its_task_waits() {
    let house = House::new().await;
    let ann = house.ann();
    let id = ann.tell("ask").await["id"].take();
    let events = ann.events("tasks/resubscribe", json!({ "id": id })).await;
    assert_eq!(events.len(), 1, "{events:?}");
    assert_eq!(events[0]["result"]["status"]["state"], "input-required");
}

#[tokio::test]
async fn there_is_nothing_to_hear_of_a_task_that_is_over() {
    let house = House::new().await;
    let ann = house.ann();
    let id = ann.tell("hello").await["id"].take();
    let refused = ann.rpc("SubscribeToTask", json!({ "id": id })).await;
    assert_eq!(refused["error"]["code"], -32004);
    let path = format!("/a2a/tasks/{}:subscribe", id.as_str().unwrap());
    assert_eq!(ann.send(post(&path), "").await.status, 400);
    assert_eq!(ann.rpc("tasks/resubscribe", json!({ "id": "nowhere" })).await["error"]["code"], -32001);
}

#[tokio::test]
async fn an_old_client_that_reads_only_events_is_told_errors_as_one() {
    let house = House::new().await;
    let request = || post("/a2a").header("accept", "text/event-stream");
    let old = asked("tasks/resubscribe", &json!({ "id": "nowhere" })).to_string();
    let reply = house.ann().send(request(), old).await;
    assert_eq!(reply.kind, "text/event-stream");
    assert_eq!(reply.events()[0]["error"]["code"], -32001);
    let new = asked("SubscribeToTask", &json!({ "id": "nowhere" })).to_string();
    assert_eq!(house.ann().send(request(), new).await.kind, "application/json");
}

#[tokio::test]
async fn a_reader_that_does_not_read_holds_up_nobody() {
    let house = House::new().await;
    let ann = house.ann();
    let id = ann.tell("ask").await["id"].take();
    let subscribe = asked("SubscribeToTask", &json!({ "id": id })).to_string();
    let mut slow = ann.open(post("/a2a"), subscribe).await;
    let mut answer = said("red");
    answer["message"]["taskId"] = id.clone();
    let answered = ann.rpc("SendMessage", answer).await;
    assert_eq!(answered["result"]["task"]["status"]["state"], "TASK_STATE_COMPLETED");
    // All is there when it comes to read at last, up to the end.
    let mut last = Value::Null;
    while let Some(event) = slow.next().await {
        last = event;
    }
    assert_eq!(last["result"]["statusUpdate"]["status"]["state"], "TASK_STATE_COMPLETED");
}

#[tokio::test]
async fn a_server_that_stops_ends_streams_that_would_wait() {
    let house = House::new().await;
    let mut open =
        house.ann().open(post("/a2a"), asked("SendStreamingMessage", &said("hang")).to_string()).await;
    assert_eq!(open.next().await.unwrap()["result"]["task"]["status"]["state"], "TASK_STATE_SUBMITTED");
    house.stop.cancel();
    while open.next().await.is_some() {}
}
