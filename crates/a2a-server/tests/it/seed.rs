//! The examples of the page that promised tools as an A2A agent, as they are printed there.

use http::Request;
use serde_json::json;

use crate::house::{House, post, steady, weather};

const SEND: &str = r#"{
    "jsonrpc": "2.0",
    "id": "1",
    "method": "tasks/send",
    "params": {
      "skill": "weather-lookup",
      "message": { "city": "San Francisco" }
    }
  }"#;

#[tokio::test]
async fn the_card_tells_of_the_tool() {
    let house = House::of_function(weather()).await;
    let card = house.ann().send(Request::get("/.well-known/agent.json"), "").await.json();
    assert_eq!(card, house.ann().send(Request::get("/.well-known/agent-card.json"), "").await.json());
    assert_eq!(card["description"], "AI agent powered by Rialto with 1 tool(s)");
    assert_eq!(card["capabilities"]["streaming"], true);
    let skill = &card["skills"][0];
    assert_eq!((&skill["id"], &skill["name"]), (&json!("weather-lookup"), &json!("weather-lookup")));
    assert_eq!(skill["inputModes"], json!(["application/json"]));
    insta::assert_json_snapshot!(steady(&card));
}

#[tokio::test]
async fn a_task_is_sent_got_and_too_late_to_be_called_off() {
    let house = House::of_function(weather()).await;
    let ann = house.ann();
    let sent = ann.send(post("/_a2a/"), SEND).await.json();
    assert_eq!(
        steady(&sent),
        json!({
            "jsonrpc": "2.0",
            "id": "1",
            "result": {
                "id": "task_1",
                "status": { "state": "completed" },
                "artifacts": [{
                    "name": "weather-lookup-result",
                    "parts": [{ "type": "text", "text": "{\"temp\":62,\"condition\":\"foggy\"}" }],
                }],
            },
        })
    );
    assert_eq!(house.peer.calls.lock()[0].args().get(), r#"{ "city": "San Francisco" }"#);
    let id = &sent["result"]["id"];
    let get = json!({ "jsonrpc": "2.0", "id": "2", "method": "tasks/get", "params": { "id": id } });
    let got = ann.send(post("/_a2a/"), get.to_string()).await.json();
    assert_eq!(got, json!({ "jsonrpc": "2.0", "id": "2", "result": sent["result"] }));
    let cancel = json!({ "jsonrpc": "2.0", "id": "3", "method": "tasks/cancel", "params": { "id": id } });
    let refused = ann.send(post("/_a2a/"), cancel.to_string()).await.json();
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!("3"), &json!(-32002)), "{refused}");
}

#[tokio::test]
async fn a_task_is_streamed() {
    let house = House::of_function(weather()).await;
    let body = SEND.replace("tasks/send", "tasks/sendSubscribe");
    let reply = house.ann().send(post("/_a2a/"), body).await;
    assert_eq!(reply.kind, "text/event-stream");
    insta::assert_json_snapshot!(steady(&json!(reply.events())));
}

#[tokio::test]
async fn an_unknown_skill_is_an_invalid_parameter() {
    let house = House::of_function(weather()).await;
    let body = SEND.replace("weather-lookup", "weather-forecast");
    let refused = house.ann().send(post("/_a2a/"), body).await.json();
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!("1"), &json!(-32602)));
    insta::assert_snapshot!(refused["error"]["message"].as_str().unwrap(), @r#"there is no skill "weather-forecast"; choose one of weather-lookup in metadata.skillId"#);
}
