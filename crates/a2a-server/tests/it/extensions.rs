//! Extensions of the protocol between a client and an agent behind the door, and what else is passed on to it.

use http::HeaderMap;
use serde_json::{Value, json};

use crate::house::{Client, House, asked, post, said, said_0_3};

const ONE: &str = "https://example.com/ext/v1";
const TWO: &str = "https://example.com/ext/v2";

async fn sent(ann: &Client, path: &str, header: &str, body: &Value) -> (HeaderMap, Value) {
    let request = post(path).header(header, format!("{ONE}, {TWO}"));
    let response = ann.respond(request, body.to_string()).await;
    let (parts, body) = response.into_parts();
    let body = axum::body::to_bytes(body, 1 << 20).await.unwrap();
    (parts.headers, serde_json::from_slice(&body).unwrap())
}

#[tokio::test]
async fn extensions_are_passed_on_from_header_and_message() {
    let house = House::new().await;
    let ann = house.ann();
    let mut params = said("hello");
    params["message"]["extensions"] = json!([TWO, "https://example.com/ext/v3"]);
    sent(&ann, "/a2a", "a2a-extensions", &asked("SendMessage", &params)).await;
    sent(&ann, "/a2a/message:send", "a2a-extensions", &said("hello")).await;
    sent(&ann, "/a2a", "x-a2a-extensions", &asked("message/send", &said_0_3("hello"))).await;
    let calls = house.peer.calls.lock();
    let wanted: Vec<Vec<String>> =
        calls.iter().map(|call| call.spoken.as_ref().unwrap().extensions.clone()).collect();
    assert_eq!(wanted[0], [ONE, TWO, "https://example.com/ext/v3"]);
    assert_eq!((&wanted[1], &wanted[2]), (&vec![ONE.to_owned(), TWO.to_owned()], &wanted[1]));
}

#[tokio::test]
async fn what_the_agent_says_is_in_use_is_told_in_the_clients_own_header() {
    let house = House::new().await;
    let ann = house.ann();
    let (headers, _) = sent(&ann, "/a2a", "a2a-extensions", &asked("SendMessage", &said("extend"))).await;
    assert_eq!(headers["a2a-extensions"], ONE, "of those that were asked for");
    let (headers, _) = sent(&ann, "/a2a/message:send", "a2a-extensions", &said("extend")).await;
    assert_eq!(headers["a2a-extensions"], ONE);
    let old = asked("message/send", &said_0_3("extend"));
    let (headers, _) = sent(&ann, "/a2a", "x-a2a-extensions", &old).await;
    assert_eq!(
        (headers.get("a2a-extensions"), &headers["x-a2a-extensions"].as_bytes()),
        (None, &ONE.as_bytes())
    );
    let (headers, _) = sent(&ann, "/a2a", "a2a-extensions", &asked("SendMessage", &said("hello"))).await;
    assert_eq!(headers.get("a2a-extensions"), None);
}

#[tokio::test]
async fn a_stream_begins_with_what_the_agent_says_is_in_use() {
    for (path, header, body) in [
        ("/a2a", "a2a-extensions", asked("SendStreamingMessage", &said("extend"))),
        ("/a2a/message:stream", "a2a-extensions", said("extend")),
        ("/a2a", "x-a2a-extensions", asked("message/stream", &said_0_3("extend"))),
    ] {
        let (house, request) = (House::new().await, post(path).header(header, format!("{ONE}, {TWO}")));
        let (parts, events) = house.ann().respond(request, body.to_string()).await.into_parts();
        assert_eq!(parts.headers[header], ONE, "{path}: of those that were asked for");
        let events = axum::body::to_bytes(events, 1 << 20).await.unwrap();
        let told = str::from_utf8(&events).unwrap();
        assert_eq!(told.matches("data:").count(), 3, "{path}: nothing is lost of {told}");
    }
}

#[tokio::test]
async fn an_agent_that_says_nothing_does_not_keep_a_stream_from_beginning() {
    let house = House::new().await;
    let request = post("/a2a").header("a2a-extensions", ONE);
    let body = asked("SendStreamingMessage", &said("hang")).to_string();
    let first = house.ann().open(request, body).await.next().await.unwrap();
    assert_eq!(first["result"]["task"]["status"]["state"], "TASK_STATE_SUBMITTED", "{first}");
}

#[tokio::test]
async fn an_agent_that_demands_an_extension_is_not_asked_without_it() {
    let house = House::new().await;
    house.meet_at("strict").await;
    let ann = house.ann();
    let at = "/a2a/agents/strict";
    let refused = ann.send(post(at), asked("SendMessage", &said("hello")).to_string()).await.json();
    assert_eq!(refused["error"]["code"], -32008, "{refused}");
    assert_eq!(refused["error"]["data"][0]["reason"], "EXTENSION_SUPPORT_REQUIRED");
    assert!(house.peer.calls.lock().is_empty());
    let (_, told) = sent(&ann, at, "a2a-extensions", &asked("SendMessage", &said("hello"))).await;
    assert_eq!(told["result"]["task"]["status"]["state"], "TASK_STATE_COMPLETED", "{told}");
    let mut params = said("hello");
    params["message"]["extensions"] = json!([ONE]);
    let told = ann.send(post(at), asked("SendMessage", &params).to_string()).await.json();
    assert_eq!(told.get("error"), None, "{told}");
    // Before 1.0 there is no word for it, and the agent decides.
    let old = ann.send(post(at), asked("message/send", &said_0_3("hello")).to_string()).await.json();
    assert_eq!(old.get("error"), None, "{old}");
}

#[tokio::test]
async fn references_and_modes_go_on_to_the_agent() {
    let house = House::new().await;
    let ann = house.ann();
    let known = ann.tell("hello").await["id"].take();
    let mut params = said("again");
    params["message"]["referenceTaskIds"] = json!([known, "elsewhere"]);
    params["configuration"] = json!({ "acceptedOutputModes": ["text/plain"] });
    let task = ann.rpc("SendMessage", params).await["result"]["task"].take();
    let spoken = house.peer.calls.lock().last().unwrap().spoken.clone().unwrap();
    assert_eq!((spoken.references[0].as_str(), spoken.references[1].as_str()), ("remote-1", "elsewhere"));
    assert_eq!(spoken.accepts, ["text/plain"]);
    // What is kept of the message are our own names.
    assert_eq!(task["history"][0]["referenceTaskIds"], json!([known, "elsewhere"]));
}
