//! What is not done here, and how that is said on each binding.

use http::Request;
use rialto_a2a_server::Config;
use serde_json::{Value, json};

use crate::house::{House, asked, post, said, said_0_3, steady, weather};

/// A message with a file of this kind.
fn file(kind: &str) -> Value {
    let mut params = said("");
    params["message"]["parts"] = json!([{ "raw": "dGNr", "filename": "a", "mediaType": kind }]);
    params
}

#[tokio::test]
async fn a_kind_of_content_that_a_skill_does_not_take_is_refused() {
    let house = House::of_function(weather()).await;
    let ann = house.ann();
    insta::assert_json_snapshot!(ann.rpc("SendMessage", file("image/png")).await);
    let rest = ann.send(post("/a2a/message:send"), file("image/png").to_string()).await;
    assert_eq!(rest.status, 415);
    insta::assert_json_snapshot!(rest.json());
    assert!(house.peer.calls.lock().is_empty());
    assert_eq!(ann.rpc("SendMessage", file("application/json")).await.get("error"), None);
    // Text and data are what skills are called with, whatever they are called.
    let mut params = said("hello");
    params["message"]["parts"] = json!([{ "text": "# hello", "mediaType": "text/markdown" }, { "data": 1, "mediaType": "application/json" }]);
    assert_eq!(ann.rpc("SendMessage", params).await.get("error"), None);
}

#[tokio::test]
async fn an_agent_that_does_not_say_what_it_takes_gets_everything() {
    let house = House::new().await;
    let task = house.ann().rpc("SendMessage", file("image/png")).await;
    assert_eq!(task["result"]["task"]["status"]["state"], "TASK_STATE_COMPLETED", "{task}");
}

#[tokio::test]
async fn a_body_that_says_it_is_not_json_is_refused() {
    let house = House::new().await;
    let plain = |path: &str| Request::post(path).header("content-type", "text/plain");
    let body = asked("SendMessage", &said("hello")).to_string();
    let rpc = house.ann().send(plain("/a2a"), body.clone()).await.json();
    assert_eq!(rpc["error"]["code"], -32005, "{rpc}");
    let rest = house.ann().send(plain("/a2a/message:send"), said("hello").to_string()).await;
    assert_eq!((rest.status.as_u16(), rest.kind.as_str()), (415, "application/json"), "{}", rest.text);
    assert!(house.peer.calls.lock().is_empty());
    // Who says nothing is believed.
    let silent = house.ann().send(Request::post("/a2a"), body).await.json();
    assert_eq!(silent["result"]["task"]["status"]["state"], "TASK_STATE_COMPLETED");
}

#[tokio::test]
async fn each_release_of_1_0_has_its_own_statuses() {
    let house = House::new().await;
    let ann = house.ann();
    let id = ann.tell("hello").await["id"].take();
    let path = format!("/a2a/tasks/{}:cancel", id.as_str().unwrap());
    let first = ann.send(post(&path), "{}").await;
    let second = ann.send(Request::post(&path).header("content-type", "application/a2a+json"), "{}").await;
    assert_eq!((first.status.as_u16(), second.status.as_u16()), (409, 400));
    insta::assert_json_snapshot!(steady(&json!([first.json(), second.json()])));
    let old = ann.send(post(&format!("/a2a/v1/tasks/{}:cancel", id.as_str().unwrap())), "{}").await;
    assert_eq!((old.status.as_u16(), old.kind.as_str()), (409, "application/json"));
}

#[tokio::test]
async fn errors_over_rest_say_what_they_are() {
    let house = House::new().await;
    let ann = house.ann();
    let mut told = Vec::new();
    for request in [
        Request::get("/a2a/tasks/nowhere"),
        Request::get("/a2a/v1/tasks/nowhere"),
        Request::get("/a2a/tasks/nowhere/else"),
        Request::delete("/a2a/tasks"),
        Request::get("/a2a/tasks?pageSize=many"),
    ] {
        let reply = ann.send(request, "").await;
        told.push(json!([reply.status.as_u16(), reply.json()]));
    }
    for body in ["{", "{}", r#"{"message":{}}"#] {
        let reply = ann.send(post("/a2a/message:send"), body).await;
        told.push(json!([reply.status.as_u16(), reply.json()]));
    }
    insta::assert_json_snapshot!(told);
}

#[tokio::test]
async fn errors_over_json_rpc_say_what_they_are() {
    let house = House::new().await;
    let ann = house.ann();
    let mut told = Vec::new();
    for body in [
        "{".to_owned(),
        "{}".to_owned(),
        json!({ "jsonrpc": "1.0", "id": 1, "method": "GetTask" }).to_string(),
        json!({ "jsonrpc": "2.0", "id": { "no": 1 }, "method": "GetTask" }).to_string(),
        asked("NoSuchMethod", &json!({})).to_string(),
        asked("no/such/method", &json!({})).to_string(),
        asked("SendMessage", &json!({})).to_string(),
        asked("message/send", &json!({ "message": { "kind": "message" } })).to_string(),
        asked("GetTask", &json!({ "id": "nowhere" })).to_string(),
        asked("tasks/get", &json!({ "id": "nowhere" })).to_string(),
    ] {
        let reply = ann.send(post("/a2a"), body).await;
        assert_eq!(reply.status, 200);
        told.push(reply.json());
    }
    insta::assert_json_snapshot!(told);
}

#[tokio::test]
async fn a_message_without_parts_is_refused() {
    let house = House::new().await;
    let mut params = said("hello");
    params["message"]["parts"] = json!([]);
    assert_eq!(house.ann().rpc("SendMessage", params).await["error"]["code"], -32602);
    let mut params = said_0_3("hello");
    params["message"]["parts"] = json!([]);
    assert_eq!(house.ann().rpc("message/send", params).await["error"]["code"], -32602);
}

#[tokio::test]
async fn a_version_that_nobody_speaks_is_refused() {
    let house = House::new().await;
    let body = || asked("SendMessage", &said("hello")).to_string();
    let by_header = |version: &str| post("/a2a").header("a2a-version", version);
    let refused = house.ann().send(by_header("99.0"), body()).await.json();
    assert_eq!(refused["error"]["code"], -32009, "{refused}");
    for version in ["1.0", "1.0.1", "0.3", ""] {
        let reply = house.ann().send(by_header(version), body()).await.json();
        assert_eq!(reply.get("error"), None, "{version}: {reply}");
    }
    let by_query = post("/a2a/message:send?A2A-Version=99.0");
    let refused = house.ann().send(by_query, said("hello").to_string()).await;
    assert_eq!(refused.status, 400);
    assert_eq!(refused.json()["error"]["details"][0]["reason"], "VERSION_NOT_SUPPORTED");
}

#[tokio::test]
async fn extensions_that_nobody_here_knows_do_no_harm() {
    let house = House::new().await;
    let request = post("/a2a").header("a2a-extensions", "https://example.com/ext/v1");
    let reply = house.ann().send(request, asked("SendMessage", &said("hello")).to_string()).await.json();
    assert_eq!(reply["result"]["task"]["status"]["state"], "TASK_STATE_COMPLETED");
}

#[tokio::test]
async fn there_is_an_extended_card_where_callers_show_who_they_are() {
    let house = House::new().await;
    let ann = house.ann();
    assert_eq!(ann.rpc("GetExtendedAgentCard", json!({})).await["error"]["code"], -32004);
    let old = ann.rpc("agent/getAuthenticatedExtendedCard", json!({})).await;
    assert_eq!(old["error"]["code"], -32007);
    let house = House::with(Config::default()).await;
    let card = house.ann().rpc("GetExtendedAgentCard", json!({})).await["result"].take();
    assert_eq!(card["skills"][0]["id"], "desk.work");
    let rest = house.ann().send(Request::get("/a2a/extendedAgentCard"), "").await;
    assert_eq!(rest.json(), card);
}
