//! `/api/v1`: responses and permissions.

use rialto_api::{Route, routes};
use rialto_model::agent::AgentTrust;
use rialto_testkit::{
    agents,
    peer::{ScriptedPeer, accepted, finished_with_data, working},
};
use serde_json::json;

use crate::fixture::{ANN, BOB, Fixture};

const DESK: &str = "https://desk.example.com";

async fn fixture() -> Fixture {
    let mut events = vec![accepted("t-1", "c-1"), working()];
    events.extend(finished_with_data(json!({ "n": 1 })));
    let fixture = Fixture::new(ScriptedPeer::telling(events)).await;
    fixture.register(DESK, agents::card("Desk", vec![agents::skill("ask")]), AgentTrust::Trusted).await;
    fixture
}

#[tokio::test]
async fn a_caller_without_scope_or_policy_cannot_change_anything() {
    let fixture = fixture().await;
    let mut told = Vec::new();
    // Streams have tests of their own.
    let others =
        |route: &&Route| !route.path.ends_with("/openapi.json") && !route.path.ends_with("v1/events");
    for route in routes().filter(others) {
        let path = route.path.replace("{key}", "desk").replace("{id}", "x").replace("{name}", "starter");
        let answer = fixture.api(BOB, route.method, &path, "{}").await;
        told.push(format!("{} {} {}", route.method, route.path, answer.status));
    }
    insta::assert_snapshot!(told.join("\n"));
}

#[tokio::test]
async fn the_openapi_document_lists_every_route() {
    let fixture = fixture().await;
    let document = fixture.api(BOB, "GET", "/api/v1/openapi.json", "").await.json();
    assert_eq!(document["openapi"], "3.1.0");
    let paths = document["paths"].as_object().unwrap();
    let listed: usize = paths.values().map(|item| item.as_object().unwrap().len()).sum();
    assert_eq!(listed, routes().count());
}

#[tokio::test]
async fn an_agent_is_registered_shown_trusted_refreshed_and_removed() {
    let fixture = fixture().await;
    fixture.discovery.serve("https://new.example.com", agents::card("New One", vec![agents::skill("do")]));
    let body = json!({ "url": "https://new.example.com/", "trust": "external", "allow": true }).to_string();
    let made = fixture.api(ANN, "POST", "/api/v1/agents", &body).await;
    assert_eq!(made.status, 201, "{made:?}");
    assert_eq!(made.json()["slug"], "new_one");
    assert!(
        fixture.engine.policies().active().ids().contains(&"allow-new_one".to_owned()),
        "{:?}",
        fixture.engine.policies().active()
    );
    assert_eq!(
        fixture.api(ANN, "POST", "/api/v1/agents", &body).await.status,
        200,
        "the same again is the same"
    );
    let trusted = fixture.api(ANN, "POST", "/api/v1/agents/new_one/trust", r#"{"trust":"trusted"}"#).await;
    assert_eq!(trusted.json()["trust"], "trusted");
    assert_eq!(
        fixture.api(ANN, "POST", "/api/v1/agents/new_one/trust", r#"{"trust":"system"}"#).await.status,
        400
    );
    let refreshed = fixture.api(ANN, "POST", "/api/v1/agents/new_one/refresh", "").await;
    assert_eq!(refreshed.json()["outcome"], "unchanged");
    fixture.discovery.serve("https://new.example.com", agents::card("New One", vec![agents::skill("other")]));
    fixture.api(ANN, "POST", "/api/v1/refresh", "").await;
    let history = fixture.api(ANN, "GET", "/api/v1/agents/new_one/history", "").await.json();
    assert_eq!(history["history"][0]["changes"]["added"], json!(["other"]));
    assert_eq!(fixture.api(ANN, "POST", "/api/v1/agents/new_one/approve", "").await.status, 409);
    assert_eq!(fixture.api(ANN, "DELETE", "/api/v1/agents/new_one", "").await.status, 204);
    assert_eq!(fixture.api(ANN, "GET", "/api/v1/agents/new_one", "").await.status, 404);
}

#[tokio::test]
async fn a_failed_registration_reports_its_reason() {
    let fixture = fixture().await;
    let post = async |body: serde_json::Value| {
        let answer = fixture.api(ANN, "POST", "/api/v1/agents", &body.to_string()).await;
        assert_eq!(answer.header("content-type"), "application/problem+json");
        (answer.status, answer.json()["detail"].as_str().unwrap().to_owned())
    };
    let mut told = vec![
        post(json!({ "url": "not a url" })).await,
        post(json!({ "url": "https://nobody.example.com" })).await,
        post(json!({ "url": DESK, "trust": "system" })).await,
        post(json!({ "url": DESK, "secret": "env:TOKEN" })).await,
        post(json!({ "url": DESK, "secret": "hunter2" })).await,
    ];
    let garbled = fixture.api(ANN, "POST", "/api/v1/agents", r#"{"uri":"x"}"#).await;
    told.push((garbled.status, garbled.json()["detail"].as_str().unwrap().to_owned()));
    insta::assert_debug_snapshot!(told);
    assert_eq!(fixture.engine.registry().all().len(), 1, "nothing was stored");
}

#[tokio::test]
async fn sources_of_secrets_are_visible_to_administrators_only() {
    let fixture = fixture().await;
    let desk = fixture.engine.registry().find(&rialto_model::ids::Scope::default(), "desk").unwrap();
    let source = rialto_model::credential::SecretSource::Env("DESK_TOKEN".into());
    let credential = rialto_model::credential::Credential::new(source);
    fixture.engine.registry().set_credential(&desk, Some(credential)).await.unwrap();
    for path in ["/api/v1/agents", "/api/v1/agents/desk"] {
        assert!(fixture.api(ANN, "GET", path, "").await.body.contains("DESK_TOKEN"));
        assert!(!fixture.api(BOB, "GET", path, "").await.body.contains("DESK_TOKEN"));
    }
}

#[tokio::test]
async fn a_token_without_the_scope_discover_lists_no_agents() {
    let fixture = fixture().await;
    fixture.api(ANN, "POST", "/api/v1/tokens", r#"{"caller":"carl","scopes":["call"]}"#).await;
    for (path, status) in [("/api/v1/agents", 403), ("/api/v1/agents/desk", 403), ("/api/v1/tasks", 200)] {
        assert_eq!(fixture.api("rialto_fresh", "GET", path, "").await.status, status, "{path}");
    }
    let overview = fixture.api("rialto_fresh", "GET", "/api/v1/overview", "").await.json();
    assert_eq!((overview["agents"]["all"].as_u64(), overview["skills"].as_u64()), (Some(0), Some(0)));
}

#[tokio::test]
async fn lists_have_pages() {
    let fixture = fixture().await;
    for n in 0..5 {
        let name = format!("Agent {n}");
        fixture
            .register(&format!("https://a{n}.example.com"), agents::card(&name, vec![]), AgentTrust::External)
            .await;
    }
    let mut path = "/api/v1/agents?limit=2&q=agent".to_owned();
    let mut slugs = Vec::new();
    loop {
        let page = fixture.api(BOB, "GET", &path, "").await.json();
        assert_eq!(page["total"], 5);
        slugs.extend(
            page["agents"].as_array().unwrap().iter().map(|agent| agent["slug"].as_str().unwrap().to_owned()),
        );
        let Some(next) = page["next"].as_str() else { break };
        path = format!("/api/v1/agents?limit=2&q=agent&cursor={next}");
    }
    assert_eq!(slugs, ["agent_0", "agent_1", "agent_2", "agent_3", "agent_4"]);
    let trusted = fixture.api(BOB, "GET", "/api/v1/agents?trust=trusted", "").await.json();
    assert_eq!((trusted["total"].as_u64(), &trusted["agents"][0]["slug"]), (Some(1), &json!("desk")));
    assert_eq!(fixture.api(BOB, "GET", "/api/v1/agents?health=fine", "").await.status, 400);
}

#[tokio::test]
async fn a_caller_sees_its_own_tasks_and_an_auditor_sees_all_tasks() {
    let fixture = fixture().await;
    let bob = rialto_model::call::Caller {
        rights: rialto_model::token_scopes::TokenScopes::default(),
        ..rialto_model::call::Caller::user("bob")
    };
    let target = fixture.engine.calls().resolve(&bob, "desk.ask").unwrap();
    let request = rialto_engine::CallRequest::skill(
        bob,
        rialto_model::call::EntryProtocol::Http,
        target,
        rialto_model::json::Json::parse(r#"{"big":12345678901234567890123}"#).unwrap(),
    );
    let task = fixture
        .engine
        .calls()
        .start(request)
        .await
        .unwrap()
        .into_handle()
        .unwrap()
        .finish()
        .await
        .unwrap()
        .head
        .id;
    let own = fixture.api(BOB, "GET", "/api/v1/tasks", "").await;
    assert_eq!(own.json()["tasks"][0]["id"], json!(task));
    assert!(own.body.contains("12345678901234567890123"), "numbers keep every digit");
    assert_eq!(
        fixture.api(ANN, "GET", "/api/v1/tasks", "").await.json()["tasks"].as_array().unwrap().len(),
        1
    );
    assert_eq!(fixture.api(ANN, "GET", "/api/v1/tasks?own=true", "").await.json()["tasks"], json!([]));
    let shown = fixture.api(ANN, "GET", &format!("/api/v1/tasks/{task}"), "").await.json();
    assert_eq!(shown["artifacts"][0]["parts"][0]["content"]["data"], json!({ "n": 1 }));
    let events = fixture.api(BOB, "GET", &format!("/api/v1/tasks/{task}/events"), "").await.json();
    let names: Vec<_> =
        events["events"].as_array().unwrap().iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert!(names.len() >= 3 && names.is_sorted());
    let stream = fixture
        .send(
            "GET",
            &format!("/api/v1/tasks/{task}/events"),
            &[("authorization", &format!("Bearer {BOB}")), ("accept", "text/event-stream")],
            "",
        )
        .await;
    assert!(stream.body.contains("event: finished") && stream.body.starts_with("id: 1\n"), "{}", stream.body);
    for token in [ANN, BOB] {
        let told = fixture.api(token, "POST", &format!("/api/v1/tasks/{task}/cancel"), "").await;
        assert_eq!(
            told.status, 409,
            "who may administer agents may call it off too, but it is over: {told:?}"
        );
    }
    let audit = fixture.api(ANN, "GET", "/api/v1/audit?caller=bob&since=1h", "").await.json();
    assert_eq!(audit["records"].as_array().unwrap().len(), 2);
    assert_eq!(fixture.api(ANN, "GET", "/api/v1/audit/verify", "").await.json()["sound"], true);
    let overview = fixture.api(ANN, "GET", "/api/v1/overview", "").await.json();
    assert_eq!((overview["calls"]["ended"].as_u64(), overview["agents"]["all"].as_u64()), (Some(1), Some(1)));
}

#[tokio::test]
async fn policies_are_checked_saved_tested_and_removed() {
    let fixture = fixture().await;
    let text =
        r#"@id("no-desk") forbid (principal, action == Action::"a2a_invoke", resource in A2AAgent::"x");"#;
    let broken = fixture
        .api(ANN, "POST", "/api/v1/policies/validate", r#"{"text":"permit (principal, action"}"#)
        .await;
    assert!(!broken.json()["problems"].as_array().unwrap().is_empty());
    let body = json!({ "text": text }).to_string();
    assert_eq!(
        fixture.api(ANN, "POST", "/api/v1/policies/validate", &body).await.json()["problems"],
        json!([])
    );
    let kept = fixture.api(ANN, "PUT", "/api/v1/policies/mine", &body).await;
    assert_eq!((kept.status, kept.json()["name"].as_str()), (200, Some("mine.cedar")));
    assert!(
        fixture.engine.policies().active().ids().contains(&"no-desk".to_owned()),
        "it is in force at once"
    );
    let shown = fixture.api(ANN, "GET", "/api/v1/policies/mine", "").await.json();
    assert_eq!(shown["text"], text);
    let refused = fixture.api(ANN, "PUT", "/api/v1/policies/mine", r#"{"text":"nonsense"}"#).await;
    assert_eq!(refused.status, 400);
    let asked = json!({ "caller": "bob", "action": "a2a_invoke", "target": "desk.ask" }).to_string();
    let tested = fixture.api(ANN, "POST", "/api/v1/policies/test", &asked).await.json();
    assert_eq!(tested["decision"], "allow");
    let usual = json!({ "kind": "deny-agent", "target": "desk", "caller": "bob" }).to_string();
    assert_eq!(fixture.api(ANN, "POST", "/api/v1/policies/templates", &usual).await.status, 201);
    let tested = fixture.api(ANN, "POST", "/api/v1/policies/test", &asked).await.json();
    assert_eq!(tested["decision"], "deny");
    let matrix = fixture.api(ANN, "GET", "/api/v1/policies/matrix?callers=ann,bob", "").await.json();
    assert_eq!(matrix["rows"][0], json!({ "target": "desk.ask", "may": [true, false] }));
    let gone = fixture.api(ANN, "DELETE", "/api/v1/policies/mine", "").await;
    assert_eq!(
        (gone.status, gone.json()),
        (200, json!({ "name": "mine.cedar", "file": "/policies/mine.cedar" }))
    );
    assert_eq!(fixture.api(ANN, "GET", "/api/v1/policies/mine", "").await.status, 404);
}

#[tokio::test]
async fn a_token_is_returned_once_and_has_no_more_rights_than_its_creator() {
    let fixture = fixture().await;
    let made = fixture
        .api(ANN, "POST", "/api/v1/tokens", r#"{"caller":"carl","scopes":["discover"],"expiresDays":7}"#)
        .await;
    let id = made.json()["id"].as_str().unwrap().to_owned();
    assert_eq!((made.status, made.json()["token"].as_str()), (201, Some("rialto_fresh")));
    assert_eq!(fixture.api("rialto_fresh", "GET", "/api/v1/agents", "").await.status, 200);
    let listed = fixture.api(ANN, "GET", "/api/v1/tokens", "").await;
    assert!(!listed.body.contains("rialto_fresh") && !listed.body.contains("hash"), "{listed:?}");
    assert_eq!(fixture.api(ANN, "DELETE", &format!("/api/v1/tokens/{id}"), "").await.status, 204);
    assert_eq!(fixture.api("rialto_fresh", "GET", "/api/v1/agents", "").await.status, 401);
    assert_eq!(fixture.api(ANN, "DELETE", "/api/v1/tokens/tok_nobody", "").await.status, 404);
}

#[tokio::test]
async fn operations_of_pages_are_available_in_the_api() {
    let fixture = fixture().await;
    let text = r#"@id("mine") forbid (principal == User::"bob", action, resource);"#;
    let body = json!({ "name": "mine", "text": text }).to_string();
    let told = fixture.api(ANN, "POST", "/api/v1/policies/what-if", &body).await.json();
    let expected = json!({ "caller": "bob", "target": "desk.ask", "isAdmin": false, "allowed": false });
    assert_eq!(told, json!({ "differences": [expected], "problems": [] }));
    let checked =
        fixture.api(ANN, "POST", "/api/v1/check-workflow", "nodes: { a: { type: nothing } }").await.json();
    assert_eq!(
        (checked["name"].is_null(), checked["problems"][0]["line"].as_u64()),
        (true, Some(1)),
        "{checked}"
    );
    let good = "name: hello\nnodes: { a: { type: set, value: 1 } }";
    let checked = fixture.api(ANN, "POST", "/api/v1/check-workflow", good).await.json();
    assert_eq!((checked["name"].as_str(), &checked["problems"]), (Some("hello"), &json!([])));
    assert!(fixture.api(ANN, "GET", "/api/v1/refresh", "").await.json().is_null());
    let some = fixture.api(ANN, "POST", "/api/v1/refresh", r#"{"agents":["Desk"]}"#).await.json();
    assert_eq!((some["refreshed"].as_u64(), some["outcomes"].as_array().unwrap().len()), (Some(1), 1));
    assert_eq!(fixture.api(ANN, "POST", "/api/v1/refresh", r#"{"agents":["nobody"]}"#).await.status, 404);
    let begun = fixture.api(ANN, "POST", "/api/v1/refresh?wait=false", "").await;
    assert_eq!((begun.status, begun.json()["all"].as_u64()), (202, Some(1)));
    fixture.wait_for("/factory/refresh", " data-over").await;
    let over = fixture.api(ANN, "GET", "/api/v1/refresh", "").await.json();
    assert_eq!((over["answered"].as_u64(), over["isOver"].as_bool()), (Some(1), Some(true)), "{over}");
    let work = json!({ "workType": "qa", "description": "ask", "message": "hello" }).to_string();
    assert_eq!(fixture.api(ANN, "POST", "/api/v1/dispatch", &work).await.status, 200);
    let known = fixture.api(ANN, "GET", "/api/v1/agents/desk/standings", "").await.json();
    assert_eq!(known["standings"][0]["workType"], "qa", "{known}");
    let bobs = fixture.api(BOB, "GET", "/api/v1/agents/desk/standings", "").await.json();
    assert_eq!(bobs["standings"], json!([]), "what others give away is theirs to know");
}
