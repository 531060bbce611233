//! `/api/v1/events`: who hears of what, as it happens.

use rialto_model::{
    agent::AgentTrust,
    ids::Scope,
    message::Part,
    token_scopes::{TokenScope, TokenScopes},
};
use rialto_testkit::{
    agents,
    peer::{ScriptedPeer, finished_with},
};
use serde_json::{Value, json};

use crate::house::{ANN, BOB, House, Listening};

const WORK: &str = r#"{"requiredSkills":["ask"],"description":"do it"}"#;

/// Lets nobody but ann see the agent `secret`.
const HIDDEN: &str = r#"@id("ops-only") forbid (principal == User::"bob", action == Action::"a2a_discover", resource is A2AAgent)
    when { resource.slug == "secret" };"#;

/// Has every call wait.
const ASKS: &str = r#"@id("ask-ops") @approval("the ops team")
    forbid (principal, action == Action::"a2a_invoke", resource) unless { context.approved };"#;

async fn house() -> House {
    house_with(HIDDEN).await
}

async fn house_with(policies: &str) -> House {
    let peer = ScriptedPeer::telling(finished_with(vec![Part::text("well done")]));
    let house = House::with_policies(peer, policies).await;
    register(&house, "Desk", "ask").await;
    house
}

async fn register(house: &House, name: &str, skill: &str) {
    let url = format!("https://{}.example.com", name.to_lowercase());
    house.register(&url, agents::card(name, vec![agents::skill(skill)]), AgentTrust::Trusted).await;
}

async fn change(listening: &mut Listening) -> Value {
    loop {
        let (name, data) = listening.next().await;
        if name == "admin" {
            // That somebody has changed something is told too.
            continue;
        }
        assert_eq!(name, "change", "{data}");
        return data["what"].clone();
    }
}

#[tokio::test]
async fn everybody_sees_its_own_calls_and_whoever_may_read_the_trail_sees_all() {
    let house = house().await;
    let (mut ann, mut bob) = (house.listen(ANN, &[]).await, house.listen(BOB, &[]).await);
    for token in [ANN, BOB] {
        assert_eq!(house.ask(token, "POST", "/api/v1/dispatch", WORK).await.status, 200);
    }
    for caller in ["ann", "ann", "bob", "bob"] {
        assert_eq!(ann.next().await.1["event"]["caller"], caller);
    }
    for phase in ["pre-verb", "post-verb"] {
        let (name, data) = bob.next().await;
        assert_eq!((name.as_str(), &data["event"]["caller"]), (phase, &json!("bob")));
    }
    let mut again = house.listen(BOB, &[("last-event-id", "0")]).await;
    assert_eq!(again.next().await.1["event"]["caller"], "bob", "those of others are passed over");
    let bearer = format!("Bearer {BOB}");
    let soon = [("authorization", bearer.as_str()), ("last-event-id", "soon")];
    assert_eq!(house.send("GET", "/api/v1/events", &soon, "").await.status, 400);
}

#[tokio::test]
async fn a_change_is_told_to_those_who_may_see_it() {
    let house = house().await;
    let (mut ann, mut bob) = (house.listen(ANN, &[]).await, house.listen(BOB, &[]).await);
    register(&house, "Secret", "hide").await;
    assert_eq!(change(&mut ann).await, "agents");
    let text = r#"{"text":"@id(\"x\") permit (principal, action, resource);"}"#;
    assert_eq!(house.ask(ANN, "PUT", "/api/v1/policies/x", text).await.status, 200);
    assert_eq!(change(&mut ann).await, "policies");
    let flow = "name: two\nstatus: active\nnodes: { one: { type: tool, tool: desk.ask } }\n";
    assert_eq!(house.ask(ANN, "POST", "/api/v1/workflows", flow).await.status, 200);
    let both = [change(&mut ann).await, change(&mut ann).await];
    assert_eq!(both, ["tools", "workflows"], "what is published is a row too");
    assert_eq!(change(&mut bob).await, "workflows", "he sees neither that agent nor policies nor tools");
}

#[tokio::test]
async fn what_is_asked_and_what_is_decided_is_a_change() {
    let house = house_with(ASKS).await;
    house.keep_approvals();
    let mut ann = house.listen(ANN, &[]).await;
    assert_eq!(house.ask(BOB, "GET", "/api/v1/approvals", "").await.status, 403);
    let begun = house.submit(BOB, "/factory/agents/desk/try/ask", "json=%7B%7D").await;
    assert_eq!(begun.status, 303, "{begun:?}");
    let what = until_change(&mut ann).await;
    assert_eq!(what, "approvals");
    let waiting = house.ask(ANN, "GET", "/api/v1/approvals", "").await.json();
    let id = waiting["approvals"][0]["id"].as_str().unwrap().to_owned();
    house.ask(ANN, "POST", &format!("/api/v1/approvals/{id}/deny"), "").await;
    assert_eq!(until_change(&mut ann).await, "approvals");
}

async fn until_change(listening: &mut Listening) -> Value {
    loop {
        let (name, data) = listening.next().await;
        if name == "change" {
            return data["what"].clone();
        }
    }
}

#[tokio::test]
async fn a_thousand_changes_are_a_few_events() {
    let house = house().await;
    let mut ann = house.listen(ANN, &[]).await;
    let registry = house.engine.registry();
    for n in 0..1_000 {
        let desk = registry.find(&Scope::default(), "desk").unwrap();
        let trust = if n % 2 == 0 { AgentTrust::External } else { AgentTrust::Trusted };
        registry.set_trust(&desk, trust).await.unwrap();
    }
    house.ask(ANN, "PUT", "/api/v1/policies/x", r#"{"text":"// nothing"}"#).await;
    let mut told = 0;
    while change(&mut ann).await == "agents" {
        told += 1;
    }
    assert!((1..100).contains(&told), "{told}");
}

#[tokio::test]
async fn who_may_only_look_hears_of_changes_and_of_no_calls() {
    let house = house().await;
    house.add_token("bob", "bob's other token", TokenScopes::from_scopes([TokenScope::Discover])).await;
    let mut looks = house.listen("bob's other token", &[]).await;
    assert_eq!(house.ask(BOB, "POST", "/api/v1/dispatch", WORK).await.status, 200);
    register(&house, "New", "do").await;
    assert_eq!(change(&mut looks).await, "agents");
}
