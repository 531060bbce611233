//! What commands ask a server for: calls by name, both sides of them, what they cost, and who asks.

use rialto_model::agent::AgentTrust;
use rialto_testkit::{
    agents,
    peer::{ScriptedPeer, accepted, finished_with_data, working},
};
use serde_json::{Value, json};

use crate::house::{ANN, BOB, House};

const DESK: &str = "https://desk.example.com";

async fn house() -> House {
    let mut events = vec![accepted("t-1", "c-1"), working()];
    events.extend(finished_with_data(json!({ "n": 1 })));
    let house = House::new(ScriptedPeer::telling(events)).await;
    house.register(DESK, agents::card("Desk", vec![agents::skill("ask")]), AgentTrust::Trusted).await;
    house
}

/// Has bob make a call, and answers what he is told when it has begun, once it is over.
async fn call(house: &House, body: &Value) -> Value {
    let begun = house.ask(BOB, "POST", "/api/v1/tasks", &body.to_string()).await;
    assert_eq!(begun.status, 202, "{begun:?}");
    let begun = begun.json();
    let events = format!("/api/v1/tasks/{}/events", begun["taskId"].as_str().unwrap());
    let headers = [("authorization", &*format!("Bearer {BOB}")), ("accept", "text/event-stream")];
    let told = house.send("GET", &events, &headers, "").await;
    assert!(told.body.contains("event: finished"), "{told:?}");
    begun
}

#[tokio::test]
async fn a_call_is_made_by_name_and_its_wait_is_told() {
    let house = house().await;
    let arguments: Value = serde_json::from_str(r#"{"n":1.10}"#).unwrap();
    let mut begun = call(&house, &json!({ "name": "desk.ask", "arguments": arguments })).await;
    assert!(begun["taskId"].take().as_str().unwrap().starts_with("task_"));
    insta::assert_json_snapshot!(begun, @r#"
    {
      "taskId": null,
      "called": "desk.ask",
      "after": 0,
      "timeoutMs": 30000
    }
    "#);
    let begun = call(&house, &json!({ "name": "desk", "text": "hello", "timeoutMs": 7 })).await;
    assert_eq!((&begun["called"], &begun["timeoutMs"]), (&json!("desk"), &json!(7)));
}

#[tokio::test]
async fn a_call_that_makes_no_sense_is_not_made() {
    let house = house().await;
    let mut told = Vec::new();
    for body in [
        json!({ "name": "desk" }),
        json!({ "name": "desk.ask", "text": "{no json" }),
        json!({ "name": "desk.ask", "text": "{}", "arguments": {} }),
        json!({ "name": "desk.as" }),
        json!({ "name": "nobody" }),
        json!({ "nam": "desk.ask" }),
    ] {
        let answer = house.ask(BOB, "POST", "/api/v1/tasks", &body.to_string()).await;
        told.push(format!("{} {}", answer.status, answer.json()["detail"].as_str().unwrap()));
    }
    insta::assert_snapshot!(told.join("\n"));
    house.ask(ANN, "POST", "/api/v1/tokens", r#"{"caller":"carl","scopes":["discover"]}"#).await;
    let looks = house.ask("rialto_fresh", "POST", "/api/v1/tasks", r#"{"name":"desk.ask"}"#).await;
    assert_eq!(looks.status, 403, "{looks:?}");
    assert_eq!(house.ask(ANN, "GET", "/api/v1/tasks", "").await.json()["tasks"], json!([]));
}

#[tokio::test]
async fn both_sides_of_a_call_are_for_its_caller_and_for_auditors() {
    let house = house().await;
    let begun =
        call(&house, &json!({ "name": "desk.ask", "text": r#"{"n":12345678901234567890.10}"# })).await;
    let path = format!("/api/v1/tasks/{}/inspect", begun["taskId"].as_str().unwrap());
    for token in [ANN, BOB] {
        let seen = house.ask(token, "GET", &path, "").await;
        assert!(seen.body.contains(r#""arguments":{"n":12345678901234567890.10}"#), "{seen:?}");
        let seen = seen.json();
        assert_eq!((&seen["state"], &seen["cameIn"]["caller"]), (&json!("completed"), &json!("bob")));
        assert_eq!((&seen["wentOut"]["agent"], &seen["decision"]["allowed"]), (&json!("desk"), &json!(true)));
        let who: Vec<&Value> =
            seen["timeline"].as_array().unwrap().iter().map(|entry| &entry["who"]).collect();
        assert!(who.contains(&&json!("agent")) && who.contains(&&json!("rialto")), "{who:?}");
    }
    house.ask(ANN, "POST", "/api/v1/tokens", r#"{"caller":"carl"}"#).await;
    assert_eq!(house.ask("rialto_fresh", "GET", &path, "").await.status, 404, "it is not his");
}

#[tokio::test]
async fn what_calls_cost_and_who_could_not_be_told_is_for_auditors() {
    let house = house().await;
    call(&house, &json!({ "name": "desk.ask" })).await;
    let costs = house.ask(ANN, "GET", "/api/v1/costs?by=caller&since=1h", "").await;
    insta::assert_snapshot!(costs.body, @r#"{"sums":[{"key":"bob","calls":1,"unknown":1,"estimatedCents":0}],"total":{"key":"total","calls":1,"unknown":1,"estimatedCents":0}}"#);
    assert_eq!(house.ask(ANN, "GET", "/api/v1/costs", "").await.json()["sums"][0]["key"], "desk");
    assert_eq!(house.ask(ANN, "GET", "/api/v1/costs?by=moon", "").await.status, 400);
    assert_eq!(house.ask(ANN, "GET", "/api/v1/tasks/undelivered", "").await.body, r#"{"undelivered":[]}"#);
    for path in ["/api/v1/costs", "/api/v1/tasks/undelivered"] {
        assert_eq!(house.ask(BOB, "GET", path, "").await.status, 403, "{path}");
    }
}

#[tokio::test]
async fn everybody_is_told_who_they_are_and_what_they_may() {
    let house = house().await;
    let me = async |token| {
        let mut me = house.ask(token, "GET", "/api/v1/me", "").await.json();
        assert_eq!(me["version"].take(), env!("CARGO_PKG_VERSION"));
        me
    };
    insta::assert_json_snapshot!(json!([me(ANN).await, me(BOB).await]));
}

#[tokio::test]
async fn secrets_of_the_machine_are_not_shown_to_agents_over_the_network() {
    let house = house().await;
    let path = "/api/v1/agents/desk/credential";
    let refused = house.ask(ANN, "PUT", path, r#"{"env":"HOME","scheme":{"kind":"bearer"}}"#).await;
    assert!(refused.status == 403 && refused.body.contains("allow_commands_over_api"), "{refused:?}");
    assert_eq!(house.ask(ANN, "PUT", path, r#"{"value":"hunter2"}"#).await.status, 400);
    assert_eq!(house.ask(BOB, "PUT", path, "null").await.status, 403);
    let removed = house.ask(ANN, "PUT", path, "null").await.json();
    assert_eq!((&removed["slug"], &removed["credential"]), (&json!("desk"), &Value::Null));
    let body = json!({ "url": DESK, "secret": "env:A", "credential": { "env": "B" } }).to_string();
    assert_eq!(house.ask(ANN, "POST", "/api/v1/agents", &body).await.status, 400, "one of both is meant");
}

#[tokio::test]
async fn what_came_of_each_refresh_is_told() {
    let house = house().await;
    house.register("https://a.example.com", agents::card("A", vec![]), AgentTrust::External).await;
    house.discovery.serve("https://a.example.com", agents::card("A", vec![agents::skill("new")]));
    let came = house.ask(ANN, "POST", "/api/v1/refresh", "").await.json();
    assert_eq!((&came["refreshed"], &came["failed"]), (&json!(2), &json!(0)));
    let outcomes: Vec<&Value> =
        came["outcomes"].as_array().unwrap().iter().map(|row| &row["outcome"]).collect();
    assert_eq!(outcomes, ["changed", "unchanged"]);
}

#[tokio::test]
async fn a_token_is_made_for_the_makers_own_org_and_until_a_moment() {
    let house = house().await;
    let make = async |body: Value| house.ask(ANN, "POST", "/api/v1/tokens", &body.to_string()).await;
    let end = "2099-01-01T00:00:00Z";
    let made = make(json!({ "caller": "carl", "org": "default", "project": "web", "expiresAt": end })).await;
    assert_eq!(
        (made.status, &made.json()["expiresAt"], &made.json()["project"]),
        (201, &json!(end), &json!("web"))
    );
    assert_eq!(make(json!({ "caller": "carl", "org": "acme" })).await.status, 403);
    assert_eq!(make(json!({ "caller": "carl", "project": "../x" })).await.status, 400);
    assert_eq!(make(json!({ "caller": "carl", "expiresAt": end, "expiresDays": 1 })).await.status, 400);
}
