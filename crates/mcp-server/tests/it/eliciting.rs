//! Clients of protocol versions before 2026-07-28 are asked by a request of the server's, while their own still waits.

use std::time::Duration;

use insta::assert_json_snapshot;
use rialto_model::{event::QuestionKind, message::Part};
use serde_json::{Value, json};

use crate::{
    asking::{asks, colour, house, inquisitive, number},
    house::{House, Plan, steady, within},
    lines::Client,
    web::Web,
};

const FORMS: &str = r#"{ "elicitation": {} }"#;

fn both() -> Value {
    json!({ "elicitation": { "form": {}, "url": {} } })
}

fn forecast() -> Value {
    json!({ "name": "weather.forecast", "arguments": {}, "_meta": { "progressToken": 7 } })
}

async fn client(house: &House, version: &str, capabilities: Value) -> Client {
    let mut client = Client::connect(house);
    client.initialize_with(version, "test", capabilities).await;
    client
}

async fn reply(client: &mut Client, asked: &Value, result: Value) {
    client.say(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": result })).await;
}

async fn until_cancelled(house: &House) {
    within(async {
        while house.peer.cancels.lock().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_question_is_a_request_and_its_answer_goes_to_the_same_task() {
    let house = house(vec![colour(), number()]).await;
    let mut client = client(&house, "2025-06-18", serde_json::from_str(FORMS).unwrap()).await;
    let id = client.begin("tools/call", forecast()).await;
    let asked = client.hear().await;
    assert_json_snapshot!(asked);
    reply(&mut client, &asked, json!({ "action": "accept", "content": { "answer": "red" } })).await;
    let asked = client.hear().await;
    assert_eq!(asked["params"]["requestedSchema"]["properties"]["n"]["type"], "integer");
    reply(&mut client, &asked, json!({ "action": "accept", "content": { "n": 5 } })).await;
    let done = client.hear().await;
    assert_eq!((&done["id"], &done["result"]["content"][0]["text"]), (&json!(id), &json!(r#"[{"n":5}]"#)));
    let calls = house.peer.calls.lock();
    assert_eq!(calls.len(), 3);
    assert!(calls.iter().skip(1).all(|call| call.continues.task_id.as_deref() == Some("remote-1")));
}

#[tokio::test]
async fn over_http_the_question_comes_on_the_stream_of_the_call() {
    let house = house(vec![colour()]).await;
    let mut web = Web::new(&house);
    web.initialize_with("2025-11-25", both()).await;
    let call = json!({ "jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": forecast() });
    let mut open = web.open_legacy(&call).await;
    let asked = open.hear().await;
    assert_eq!(asked["method"], "elicitation/create");
    let answer = json!({ "action": "accept", "content": { "answer": "red" } });
    web.say(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": answer })).await;
    let done = open.hear().await;
    assert_eq!(
        (&done["id"], &done["result"]["content"][0]["text"]),
        (&json!(5), &json!(r#"["red"]"#)),
        "{done}"
    );
}

#[tokio::test]
async fn a_person_is_sent_to_log_in_by_clients_that_can_since_2025_11_25() {
    let login =
        || asks(QuestionKind::Auth, vec![Part::text("please sign in at https://login.example.com/start")]);
    for (version, mode) in [("2025-11-25", "url"), ("2025-06-18", "form")] {
        let house = house(vec![login()]).await;
        house.peer.will_tell(login());
        let mut client = client(&house, version, both()).await;
        client.begin("tools/call", forecast()).await;
        let asked = client.hear().await;
        assert_eq!(asked["params"]["mode"], mode, "{version}");
        if mode == "url" {
            assert_json_snapshot!(steady(&asked));
        }
        house.peer.will_tell(rialto_testkit::peer::finished_with(vec![Part::text("signed in")]));
        reply(&mut client, &asked, json!({ "action": "accept", "content": { "done": true } })).await;
        assert_eq!(client.hear().await["result"]["content"][0]["text"], "signed in");
    }
}

#[tokio::test]
async fn a_client_that_cannot_or_does_not_ask_gets_the_question_as_its_result() {
    let house = house(vec![colour()]).await;
    let mut old = client(&house, "2025-03-26", both()).await;
    let told = old.ask("tools/call", forecast()).await;
    assert_eq!(told["result"]["structuredContent"]["question"], "which colour?");
    let mut plain = client(&house, "2025-11-25", json!({})).await;
    let told = plain.ask("tools/call", forecast()).await;
    assert_eq!(told["result"]["structuredContent"]["question"], "which colour?");
    let mut fails = client(&house, "2025-11-25", both()).await;
    fails.begin("tools/call", forecast()).await;
    let asked = fails.hear().await;
    let error = json!({ "code": -32601, "message": "no" });
    fails.say(&json!({ "jsonrpc": "2.0", "id": asked["id"], "error": error })).await;
    assert_eq!(fails.hear().await["result"]["structuredContent"]["question"], "which colour?");
}

#[tokio::test]
async fn nobody_hurries_a_person_and_the_client_hears_that_we_wait() {
    let mut plan = Plan::with(inquisitive(vec![colour()]));
    (plan.calls.heartbeat_secs, plan.calls.timeout_ms) = (1, 300);
    let house = plan.build().await;
    let mut client = client(&house, "2025-11-25", both()).await;
    client.begin("tools/call", forecast()).await;
    let asked = client.hear().await;
    let (one, two) = (client.hear().await, client.hear().await);
    assert_eq!(
        one["params"],
        json!({ "progressToken": 7, "progress": 1.0, "message": "waiting for an answer" })
    );
    assert_eq!(two["params"]["progress"], 2.0);
    reply(&mut client, &asked, json!({ "action": "accept", "content": { "answer": "red" } })).await;
    assert_eq!(client.hear().await["result"]["content"][0]["text"], r#"["red"]"#);
}

#[tokio::test]
async fn a_request_that_is_given_up_while_a_person_is_asked_calls_the_task_off() {
    let house = house(vec![colour()]).await;
    let mut client = client(&house, "2025-11-25", both()).await;
    let id = client.begin("tools/call", forecast()).await;
    let asked = client.hear().await;
    let cancelled = json!({ "requestId": id, "reason": "enough" });
    client.say(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled })).await;
    let taken_back = client.hear().await;
    assert_eq!(taken_back["method"], "notifications/cancelled");
    assert_eq!(taken_back["params"]["requestId"], asked["id"]);
    until_cancelled(&house).await;
}

#[tokio::test]
async fn a_client_that_goes_away_while_a_person_is_asked_calls_the_task_off() {
    let house = house(vec![colour()]).await;
    let mut client = client(&house, "2025-11-25", both()).await;
    client.begin("tools/call", forecast()).await;
    client.hear().await;
    drop(client);
    until_cancelled(&house).await;
}

#[tokio::test]
async fn a_cancelled_form_leaves_the_task_waiting() {
    let house = house(vec![colour()]).await;
    let mut client = client(&house, "2025-11-25", both()).await;
    client.begin("tools/call", forecast()).await;
    let asked = client.hear().await;
    reply(&mut client, &asked, json!({ "action": "cancel" })).await;
    let done = client.hear().await;
    assert_eq!(done["result"]["structuredContent"]["state"], "input-required", "{done}");
    assert_ne!(done["result"]["isError"], true, "{done}");
    assert!(house.peer.cancels.lock().is_empty());
}

#[tokio::test]
async fn a_cancelled_request_in_a_session_calls_the_remote_task_off() {
    let working =
        vec![rialto_testkit::peer::accepted("remote-1", "context-1"), rialto_testkit::peer::working()];
    let stuck = rialto_testkit::peer::ScriptedPeer::with(move |_| {
        use futures::StreamExt;
        futures::stream::iter(working.clone()).chain(futures::stream::pending()).boxed()
    });
    let house = Plan::with(stuck).build().await;
    let mut web = Web::new(&house);
    web.initialize("2025-06-18").await;
    let call = json!({ "jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": forecast() });
    let mut open = web.open_legacy(&call).await;
    assert_eq!(open.hear().await["params"]["message"], "working");
    let cancelled = json!({ "requestId": 5, "reason": "enough" });
    web.say(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled })).await;
    until_cancelled(&house).await;
}

#[tokio::test]
async fn a_client_without_a_session_gets_the_question_as_its_result() {
    let mut plan = Plan::with(inquisitive(vec![colour()]));
    plan.config.legacy_sessions = false;
    let house = plan.build().await;
    let mut params = forecast();
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = both();
    let told = Web::new(&house).ask_legacy("tools/call", params).await.only();
    assert_eq!(told["result"]["structuredContent"]["question"], "which colour?", "{told}");
}

#[tokio::test]
async fn a_question_that_nobody_answers_is_taken_back_in_the_end() {
    let mut plan = Plan::with(inquisitive(vec![colour()]));
    plan.config.question_ttl_secs = 1;
    let house = plan.build().await;
    let mut client = client(&house, "2025-11-25", both()).await;
    client.begin("tools/call", forecast()).await;
    let asked = client.hear().await;
    let taken_back = client.hear().await;
    assert_eq!(taken_back["params"]["requestId"], asked["id"]);
    assert_eq!(client.hear().await["result"]["structuredContent"]["question"], "which colour?");
}
