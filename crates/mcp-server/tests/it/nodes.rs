//! Sessions at any node: two servers on one store, and a client whose requests reach now one of them and now the other.

use std::time::Duration;

use axum::{Router, body::Body};
use futures::StreamExt;
use http::{Request, StatusCode};
use rialto_mcp_server::{Config, LoadAgents, McpEndpoint, McpEndpointOptions, ToolErrors, ToolNames};
use rialto_model::call::Caller;
use rialto_testkit::{
    agents::{card, skill},
    peer::{ScriptedPeer, accepted, working},
};
use serde_json::{Value, json};

use crate::{
    asking::{colour, house as inquisitive},
    house::{House, Plan, ann, within},
    web::{Web, read},
};

/// A node of its own on the store of a house.
fn node(house: &House, config: Config) -> Router {
    let config = Config { tool_errors: ToolErrors::Protocol, tool_names: ToolNames::Canonical, ..config };
    let control = McpEndpointOptions { load_agents: LoadAgents::Session };
    McpEndpoint::new(house.engine.clone(), config, control).router(house.stop.clone())
}

fn two_nodes(house: &House) -> (Web, Web) {
    let web = || Web::on(node(house, Config::default()), ann());
    (web(), web())
}

/// The same client at another node.
fn at(node: &mut Web, session: &Web) {
    node.session.clone_from(&session.session);
}

fn forecast(id: u64) -> Value {
    let params = json!({ "name": "weather.forecast", "arguments": { "city": "Venice" }, "_meta": { "progressToken": id } });
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
}

async fn end(web: &Web) -> StatusCode {
    let session = web.session.clone().unwrap();
    let end = Request::delete("/mcp").header("host", "localhost").header("mcp-session-id", session);
    web.send(end.body(Body::empty()).unwrap()).await.status()
}

/// Asks until the answer has this status.
async fn until_status(web: &Web, status: StatusCode) {
    within(async {
        while web.ask_legacy("tools/list", json!({})).await.status != status {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_session_is_served_by_a_node_that_did_not_open_it() {
    let house = Plan::default().build().await;
    let (mut one, mut other) = two_nodes(&house);
    one.initialize("2025-06-18").await;
    at(&mut other, &one);
    for web in [&other, &one, &other] {
        let listed = web.ask_legacy("tools/list", json!({})).await;
        assert_eq!(listed.status, StatusCode::OK, "{}", listed.text);
        assert!(listed.text.contains("weather.forecast"), "{}", listed.text);
    }
    let called = other.say(&forecast(4)).await;
    assert_eq!(called.only()["id"], 4, "{}", called.text);
    let all = (0..20).map(|n| {
        let web = Web::on(node(&house, Config::default()), ann());
        let session = one.session.clone();
        async move {
            let web = Web { session, ..web };
            web.say(&forecast(n)).await.only()["id"].clone()
        }
    });
    assert_eq!(futures::future::join_all(all).await, (0..20).map(|n| json!(n)).collect::<Vec<_>>());
}

#[tokio::test]
async fn requests_that_come_at_once_rebuild_a_session_once() {
    let house = Plan::default().build().await;
    let plan = Config { max_sessions_per_caller: 1, ..Config::default() };
    let mut one = Web::on(node(&house, Config::default()), ann());
    one.initialize("2025-06-18").await;
    let other = Web { session: one.session.clone(), ..Web::on(node(&house, plan), ann()) };
    let answers = futures::future::join_all((0..30).map(|n| {
        let call = forecast(n);
        let other = &other;
        async move { other.say(&call).await }
    }));
    let answers = answers.await;
    assert_eq!(answers.len(), 30);
    assert!(answers.iter().all(|answer| answer.status == StatusCode::OK), "{:?}", answers[0].text);
}

#[tokio::test]
async fn a_session_stays_its_openers_at_every_node() {
    let house = Plan::default().build().await;
    let (mut one, _) = two_nodes(&house);
    one.initialize("2025-06-18").await;
    let session = one.session.clone().unwrap();
    let ask = async |caller: Caller, session: &str| {
        let web = Web::on(node(&house, Config::default()), caller);
        Web { session: Some(session.to_owned()), ..web }.ask_legacy("tools/list", json!({})).await.status
    };
    assert_eq!(ask(ann(), &session).await, StatusCode::OK);
    assert_eq!(ask(Caller::user("bob"), &session).await, StatusCode::NOT_FOUND);
    let elsewhere = Caller { token: Some("tok_other".into()), ..ann() };
    assert_eq!(ask(elsewhere, &session).await, StatusCode::NOT_FOUND, "another token of the same caller");
    let (text, code) = session.split_once('.').unwrap();
    for invented in [text, code, "unknown", "", &format!("{text}.{text}"), &format!("{session}A")] {
        assert_eq!(ask(ann(), invented).await, StatusCode::NOT_FOUND, "{invented:?}");
    }
    let stranger = Plan::default().build().await;
    let strange = Web::on(node(&stranger, Config::default()), ann());
    let strange = Web { session: Some(session), ..strange };
    assert_eq!(
        strange.ask_legacy("tools/list", json!({})).await.status,
        StatusCode::NOT_FOUND,
        "another key"
    );
}

#[tokio::test]
async fn a_session_that_its_client_ends_is_over_at_every_node() {
    let house = Plan::default().build().await;
    let (mut one, mut other) = two_nodes(&house);
    one.initialize("2025-06-18").await;
    at(&mut other, &one);
    assert_eq!(other.ask_legacy("tools/list", json!({})).await.status, StatusCode::OK);
    let third = Web { session: one.session.clone(), ..Web::on(node(&house, Config::default()), ann()) };
    let stream = one.listen().await;
    assert_eq!(end(&third).await, StatusCode::NO_CONTENT, "at a node that never held it");
    assert_eq!(third.ask_legacy("tools/list", json!({})).await.status, StatusCode::NOT_FOUND);
    until_status(&one, StatusCode::NOT_FOUND).await;
    until_status(&other, StatusCode::NOT_FOUND).await;
    assert!(stream.ends().await);
    assert_eq!(end(&third).await, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_question_is_answered_at_another_node() {
    let house = inquisitive(vec![colour()]).await;
    let (mut one, mut other) = two_nodes(&house);
    one.initialize_with("2025-06-18", json!({ "elicitation": {} })).await;
    at(&mut other, &one);
    // A node that only knows the session by its id asks like the one that opened it.
    for (asking, answering) in [(&one, &other), (&other, &one)] {
        let mut open = asking.open_legacy(&forecast(5)).await;
        let asked = open.hear().await;
        assert_eq!(asked["method"], "elicitation/create", "{asked}");
        let answer = json!({ "action": "accept", "content": { "answer": "red" } });
        let said = answering.say(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": answer })).await;
        assert_eq!(said.status, StatusCode::ACCEPTED, "{}", said.text);
        let done = open.hear().await;
        assert_eq!(done["id"], 5, "{done}");
        assert_eq!(done["result"]["content"][0]["text"], r#"["red"]"#, "{done}");
    }
}

#[tokio::test]
async fn a_call_is_cancelled_at_another_node() {
    let begun = vec![accepted("remote-1", "context-1"), working()];
    let stuck = ScriptedPeer::with(move |_| {
        futures::stream::iter(begun.clone()).chain(futures::stream::pending()).boxed()
    });
    let house = Plan::with(stuck).build().await;
    let (mut one, mut other) = two_nodes(&house);
    one.initialize("2025-06-18").await;
    at(&mut other, &one);
    let mut open = one.open_legacy(&forecast(5)).await;
    assert_eq!(open.hear().await["params"]["message"], "working");
    let cancelled = json!({ "requestId": 5, "reason": "enough" });
    other.say(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled })).await;
    within(async {
        while house.peer.cancels.lock().is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_stream_at_any_node_reports_changed_lists_once() {
    let house = Plan::default().build().await;
    let (mut one, mut other) = two_nodes(&house);
    // The client says to one node that it is ready, and listens at the other.
    one.initialize("2025-06-18").await;
    at(&mut other, &one);
    let (mut there, mut here) = (other.listen().await, one.listen().await);
    for name in ["Maps", "Trains"] {
        house.meet(card(name, vec![skill("route")])).await;
        assert_eq!(there.hear().await["method"], "notifications/tools/list_changed");
        assert_eq!(here.hear().await["method"], "notifications/tools/list_changed");
    }
    house.stop.cancel();
    assert!(there.ends().await && here.ends().await, "nothing was said twice");
}

#[tokio::test]
async fn a_stream_is_not_resumed_with_events_of_another_one() {
    let house = Plan::default().build().await;
    let (mut one, mut other) = two_nodes(&house);
    one.initialize("2025-06-18").await;
    at(&mut other, &one);
    let answered = one.say(&forecast(1)).await;
    let last = answered.text.lines().find_map(|line| line.strip_prefix("id: ")).unwrap().to_owned();
    other.say(&forecast(2)).await;
    let resume = Request::get("/mcp")
        .header("host", "localhost")
        .header("accept", "text/event-stream")
        .header("last-event-id", last)
        .header("mcp-session-id", other.session.clone().unwrap());
    let resumed = read(other.send(resume.body(Body::empty()).unwrap()).await).await;
    assert_eq!((resumed.status, resumed.messages.len()), (StatusCode::OK, 0), "{}", resumed.text);
}
