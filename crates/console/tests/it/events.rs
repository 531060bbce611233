//! `/api/v1/events`: records and changes that each caller gets.

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

use crate::fixture::{ANN, BOB, EventReader, Fixture};

const WORK: &str = r#"{"requiredSkills":["ask"],"description":"do it"}"#;

/// Hides the agent `secret` from bob.
const HIDDEN: &str = r#"@id("ops-only") forbid (principal == User::"bob", action == Action::"a2a_discover", resource is A2AAgent)
    when { resource.slug == "secret" };"#;

/// Makes every call wait for approval.
const ASKS: &str = r#"@id("ask-ops") @approval("the ops team")
    forbid (principal, action == Action::"a2a_invoke", resource) unless { context.approved };"#;

async fn fixture() -> Fixture {
    fixture_with(HIDDEN).await
}

async fn fixture_with(policies: &str) -> Fixture {
    let peer = ScriptedPeer::telling(finished_with(vec![Part::text("well done")]));
    let fixture = Fixture::with_policies(peer, policies).await;
    register(&fixture, "Desk", "ask").await;
    fixture
}

async fn register(fixture: &Fixture, name: &str, skill: &str) {
    let url = format!("https://{}.example.com", name.to_lowercase());
    fixture.register(&url, agents::card(name, vec![agents::skill(skill)]), AgentTrust::Trusted).await;
}

async fn change(listening: &mut EventReader) -> Value {
    loop {
        let (name, data) = listening.next().await;
        if name == "admin" {
            // Administrative operations are sent too.
            continue;
        }
        assert_eq!(name, "change", "{data}");
        return data["what"].clone();
    }
}

#[tokio::test]
async fn a_stream_has_the_records_of_its_caller_and_an_auditor_gets_all() {
    let fixture = fixture().await;
    let (mut ann, mut bob) = (fixture.listen(ANN, &[]).await, fixture.listen(BOB, &[]).await);
    for token in [ANN, BOB] {
        assert_eq!(fixture.api(token, "POST", "/api/v1/dispatch", WORK).await.status, 200);
    }
    for caller in ["ann", "ann", "bob", "bob"] {
        assert_eq!(ann.next().await.1["event"]["caller"], caller);
    }
    for phase in ["pre-verb", "post-verb"] {
        let (name, data) = bob.next().await;
        assert_eq!((name.as_str(), &data["event"]["caller"]), (phase, &json!("bob")));
    }
    let mut again = fixture.listen(BOB, &[("last-event-id", "0")]).await;
    assert_eq!(again.next().await.1["event"]["caller"], "bob", "those of others are passed over");
    let bearer = format!("Bearer {BOB}");
    let soon = [("authorization", bearer.as_str()), ("last-event-id", "soon")];
    assert_eq!(fixture.send("GET", "/api/v1/events", &soon, "").await.status, 400);
}

#[tokio::test]
async fn a_change_is_sent_to_callers_that_may_see_it() {
    let fixture = fixture().await;
    let (mut ann, mut bob) = (fixture.listen(ANN, &[]).await, fixture.listen(BOB, &[]).await);
    register(&fixture, "Secret", "hide").await;
    assert_eq!(change(&mut ann).await, "agents");
    let text = r#"{"text":"@id(\"x\") permit (principal, action, resource);"}"#;
    assert_eq!(fixture.api(ANN, "PUT", "/api/v1/policies/x", text).await.status, 200);
    assert_eq!(change(&mut ann).await, "policies");
    let flow = "name: two\nstatus: active\nnodes: { one: { type: tool, tool: desk.ask } }\n";
    assert_eq!(fixture.api(ANN, "POST", "/api/v1/workflows", flow).await.status, 200);
    let both = [change(&mut ann).await, change(&mut ann).await];
    assert_eq!(both, ["tools", "workflows"], "what is published is a row too");
    assert_eq!(change(&mut bob).await, "workflows", "he sees neither that agent nor policies nor tools");
}

#[tokio::test]
async fn a_requested_and_a_decided_approval_are_changes() {
    let fixture = fixture_with(ASKS).await;
    fixture.keep_approvals();
    let mut ann = fixture.listen(ANN, &[]).await;
    assert_eq!(fixture.api(BOB, "GET", "/api/v1/approvals", "").await.status, 403);
    let begun = fixture.submit(BOB, "/factory/agents/desk/try/ask", "json=%7B%7D").await;
    assert_eq!(begun.status, 303, "{begun:?}");
    let what = until_change(&mut ann).await;
    assert_eq!(what, "approvals");
    let waiting = fixture.api(ANN, "GET", "/api/v1/approvals", "").await.json();
    let id = waiting["approvals"][0]["id"].as_str().unwrap().to_owned();
    fixture.api(ANN, "POST", &format!("/api/v1/approvals/{id}/deny"), "").await;
    assert_eq!(until_change(&mut ann).await, "approvals");
}

async fn until_change(listening: &mut EventReader) -> Value {
    loop {
        let (name, data) = listening.next().await;
        if name == "change" {
            return data["what"].clone();
        }
    }
}

#[tokio::test]
async fn a_thousand_changes_are_combined_into_a_few_events() {
    let fixture = fixture().await;
    let mut ann = fixture.listen(ANN, &[]).await;
    let registry = fixture.engine.registry();
    for n in 0..1_000 {
        let desk = registry.find(&Scope::default(), "desk").unwrap();
        let trust = if n % 2 == 0 { AgentTrust::External } else { AgentTrust::Trusted };
        registry.set_trust(&desk, trust).await.unwrap();
    }
    fixture.api(ANN, "PUT", "/api/v1/policies/x", r#"{"text":"// nothing"}"#).await;
    let mut told = 0;
    while change(&mut ann).await == "agents" {
        told += 1;
    }
    assert!((1..100).contains(&told), "{told}");
}

#[tokio::test]
async fn a_caller_with_the_scope_discover_gets_changes_and_no_records() {
    let fixture = fixture().await;
    fixture.add_token("bob", "bob's other token", TokenScopes::from_scopes([TokenScope::Discover])).await;
    let mut looks = fixture.listen("bob's other token", &[]).await;
    assert_eq!(fixture.api(BOB, "POST", "/api/v1/dispatch", WORK).await.status, 200);
    register(&fixture, "New", "do").await;
    assert_eq!(change(&mut looks).await, "agents");
}
