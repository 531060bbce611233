//! Responses of the API against the OpenAPI document: every response of any test here is validated against the schema of its operation
//! ([`Fixture::send`](crate::fixture::Fixture::send)), and one test calls all operations.

use std::{collections::BTreeSet, sync::LazyLock};

use futures::{StreamExt, stream};
use rialto_api::{Route, routes};
use rialto_model::{
    agent::AgentTrust,
    event::{Event, EventAside, QuestionKind},
    message::{Message, Part, Role},
};
use rialto_testkit::{
    agents,
    peer::{ScriptedPeer, accepted, finished_with},
};
use serde_json::{Value, json};

use crate::fixture::{ANN, Fixture, TestResponse};

static DOCUMENT: LazyLock<Value> = LazyLock::new(|| serde_json::from_str(&rialto_api::document()).unwrap());

/// Validates a response against the OpenAPI document.
#[track_caller]
pub(crate) fn check(method: &str, path: &str, answer: &TestResponse) {
    let Some(route) = route(method, path) else { return };
    if !(200..300).contains(&answer.status) || !answer.header("content-type").starts_with("application/json")
    {
        return;
    }
    let item = &DOCUMENT["paths"][route.path.trim_start_matches("/api/v1")][method.to_lowercase()];
    let told = &item["responses"][answer.status.to_string()];
    assert!(told.is_object(), "{method} {path}: {} is not in the document", answer.status);
    let mut schema = told["content"]["application/json"]["schema"].clone();
    assert!(schema.is_object(), "{method} {path} has no schema");
    schema["components"] = DOCUMENT["components"].clone();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let body = answer.json();
    let wrong: Vec<String> =
        validator.iter_errors(&body).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(wrong.is_empty(), "{method} {path} is not as the document says: {wrong:#?}\n{body:#}");
}

/// Route of a path; a route without parameters comes first.
fn route(method: &str, path: &str) -> Option<&'static Route> {
    let path = path.split('?').next()?;
    let fits = |route: &&Route| {
        let (known, given) = (route.path.split('/'), path.split('/'));
        let same = |(known, given): (&str, &str)| known == given || known.starts_with('{');
        route.method == method && known.clone().count() == given.clone().count() && known.zip(given).all(same)
    };
    routes().filter(fits).min_by_key(|route| route.path.matches('{').count())
}

/// A fixture in which everything has happened once, and the operations that were asked for.
struct Tour {
    fixture: Fixture,
    asked: BTreeSet<String>,
}

// === impl Tour ===

impl Tour {
    async fn new() -> Self {
        let asks = vec![
            accepted("t-1", "c-1"),
            Event::Asked {
                ask: QuestionKind::Input,
                message: Some(Message::new("m", Role::Agent, vec![Part::text("which colour?")])),
                aside: EventAside::default(),
            },
        ];
        let peer = ScriptedPeer::with(move |call| {
            let is_asked = call.target.skill.as_ref().is_some_and(|skill| skill.id.as_str() == "choose");
            let done = || finished_with(vec![Part::text("well done")]);
            stream::iter(if is_asked && call.continues.task_id.is_none() { asks.clone() } else { done() })
                .boxed()
        });
        let fixture = Fixture::pinned_with(peer, "// machine-secrets").await;
        let schema = json!({ "type": "object", "properties": { "to": { "type": "string" } } });
        let skills = vec![agents::skill_with_schema("ask", schema), agents::skill("choose")];
        fixture.register("https://desk.example.com", agents::card("Desk", skills), AgentTrust::Trusted).await;
        fixture.discovery.serve("mcp:near", agents::card("near", vec![agents::skill("look")]));
        fixture.keep_approvals();
        Self { fixture, asked: BTreeSet::new() }
    }

    /// Sends a request as ann that must succeed.
    async fn ask(&mut self, method: &str, path: &str, body: &str) -> Value {
        let path = format!("/api/v1{path}");
        let answer = self.fixture.api(ANN, method, &path, body).await;
        assert!((200..300).contains(&answer.status), "{method} {path}: {answer:?}");
        self.asked.extend(route(method, &path).map(name));
        if answer.body.is_empty() { Value::Null } else { answer.json() }
    }

    async fn get(&mut self, path: &str) -> Value {
        self.ask("GET", path, "").await
    }

    async fn post(&mut self, path: &str, body: Value) -> Value {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        self.ask("POST", path, &body).await
    }

    async fn agents(&mut self) {
        for path in ["/me", "/overview", "/openapi.json", "/agents?limit=1", "/agents/desk", "/refresh"] {
            self.get(path).await;
        }
        let other = "https://other.example.com";
        self.fixture.discovery.serve(other, agents::card("Other", vec![agents::skill("do")]));
        for _ in 0..2 {
            self.post("/agents", json!({ "url": other, "allow": true })).await;
        }
        self.changed_card(other).await;
        self.ask("DELETE", "/agents/other", "").await;
    }

    async fn changed_card(&mut self, other: &str) {
        self.post("/agents/other/trust", json!({ "trust": "trusted" })).await;
        self.ask("PUT", "/agents/other/credential", "null").await;
        self.post("/agents/other/refresh", Value::Null).await;
        self.fixture.discovery.serve(other, agents::card("Other", vec![agents::skill("more")]));
        self.post("/refresh", json!({ "agents": ["other"] })).await;
        for path in ["/agents/other", "/agents/other/history"] {
            assert!(self.get(path).await["pending"].is_object(), "{path}");
        }
        self.post("/agents/other/approve", Value::Null).await;
        self.post("/refresh?wait=false", json!({ "agents": ["other"] })).await;
        assert_eq!(self.get("/refresh").await["all"], 1);
        self.get("/agents/other/history").await;
        self.get("/agents/other/probes").await;
    }

    async fn tools(&mut self) {
        for _ in 0..2 {
            self.post("/tools", json!({ "name": "near", "url": "https://tools.example.com/mcp" })).await;
        }
        self.get("/tools").await;
        self.get("/tools/near").await;
        self.ask("DELETE", "/tools/near", "").await;
    }

    async fn tasks(&mut self) {
        let begun = self.post("/tasks", json!({ "name": "desk.choose", "arguments": {} })).await;
        let task = format!("/tasks/{}", begun["taskId"].as_str().unwrap());
        self.fixture.wait_for(&format!("/factory{task}"), "which colour?").await;
        self.get("/tasks").await;
        self.get(&format!("{task}/events")).await;
        self.post(&format!("{task}/messages"), json!({ "text": "red" })).await;
        self.fixture.wait_for(&format!("/factory{task}"), "well done").await;
        for more in ["", "/events", "/inspect"] {
            self.get(&format!("{task}{more}")).await;
        }
        let begun = self.post("/tasks", json!({ "name": "desk.choose", "arguments": {} })).await;
        let task = format!("/tasks/{}", begun["taskId"].as_str().unwrap());
        self.fixture.wait_for(&format!("/factory{task}"), "which colour?").await;
        self.post(&format!("{task}/cancel"), Value::Null).await;
        self.get("/tasks/undelivered").await;
        let work = json!({ "workType": "qa", "description": "ask", "requiredSkills": ["ask"] });
        self.post("/resolve", work.clone()).await;
        let dispatched = self.post("/dispatch", work).await;
        self.get("/dispatches").await;
        self.get(&format!("/dispatches/{}", dispatched["dispatchId"].as_str().unwrap())).await;
        assert_eq!(self.get("/agents/desk/standings").await["standings"][0]["workType"], "qa");
    }

    async fn workflows(&mut self) {
        let choose = "name: choose\nstatus: active\nnodes: { ask: { type: tool, tool: desk.choose } }\n";
        let may = "name: may\nstatus: active\nnodes: { may: { type: approval, question: May I? } }\n";
        assert_eq!(self.ask("POST", "/check-workflow", "nodes: [").await["name"], Value::Null);
        self.ask("POST", "/check-workflow", choose).await;
        self.ask("POST", "/workflows", choose).await;
        self.ask("POST", "/workflows", may).await;
        for path in ["/workflows", "/workflows/choose", "/workflows/choose/versions"] {
            self.get(path).await;
        }
        let waits = self.post("/workflows/choose/runs", Value::Null).await;
        assert_eq!(waits["state"], "input-required");
        let run = format!("/runs/{}", waits["taskId"].as_str().unwrap());
        self.get(&run).await;
        self.post(&run, json!({ "message": "red" })).await;
        self.get("/workflows/choose/runs").await;
        self.post("/runs", json!({ "workflow": choose.replace("desk.choose", "desk.ask") })).await;
        let begun = self.post("/workflows/choose/runs", Value::Null).await;
        let run = format!("/runs/{}", begun["taskId"].as_str().unwrap());
        self.post(&format!("{run}/resume?wait=false"), Value::Null).await;
        self.post(&format!("{run}/cancel"), Value::Null).await;
        self.get("/runs").await;
        self.post("/workflows/choose/status", json!({ "status": "archived" })).await;
        self.ask("DELETE", "/workflows/choose", "").await;
    }

    async fn approvals(&mut self) {
        for approve in ["approve", "deny"] {
            let begun = self.post("/workflows/may/runs?wait=false", json!({})).await;
            let run = format!("/runs/{}", begun["runId"].as_str().unwrap());
            self.fixture.wait_for(&format!("/factory{run}"), "/approve\"").await;
            let waiting = self.get("/approvals").await;
            let asked = format!("/approvals/{}", waiting["approvals"][0]["id"].as_str().unwrap());
            self.get(&asked).await;
            self.post(&format!("{asked}/{approve}"), json!({ "reason": "because" })).await;
        }
        self.get("/approvals?state=all").await;
    }

    async fn rules(&mut self) {
        let text = r#"@id("mine") @summary("no") forbid (principal == User::"bob", action, resource);"#;
        let asked = json!({ "name": "mine", "text": text });
        self.post("/policies/validate", asked.clone()).await;
        self.post("/policies/validate", json!({ "text": "permit (" })).await;
        self.post("/policies/what-if", asked.clone()).await;
        self.ask("PUT", "/policies/mine", &asked.to_string()).await;
        self.ask("PUT", "/policies/mine", &json!({ "text": format!("{text}//") }).to_string()).await;
        for path in ["", "?texts=true", "/check", "/templates", "/mine"] {
            self.get(&format!("/policies{path}")).await;
        }
        let history = self.get("/policies/mine/history").await;
        self.post("/policies/mine/restore", json!({ "version": history["versions"][0]["version"] })).await;
        let usual = json!({ "kind": "deny-skill", "target": "desk.ask", "caller": "carl" });
        self.post("/policies/templates", usual).await;
        for caller in ["ann", "bob"] {
            let asked = json!({ "caller": caller, "action": "a2a_invoke", "target": "desk.ask" });
            self.post("/policies/test", asked).await;
        }
        self.get("/policies/matrix?callers=ann,bob").await;
        self.ask("DELETE", "/policies/mine", "").await;
        self.get("/guardrails").await;
        let guarded = json!({ "text": "mail ann@example.com", "checks": ["pii"], "action": "redact" });
        self.post("/guardrails/test", guarded).await;
    }

    async fn records(&mut self) {
        for path in ["/audit?limit=3", "/audit/verify", "/costs?by=caller", "/overview"] {
            self.get(path).await;
        }
        let made = self.post("/tokens", json!({ "caller": "carl", "expiresDays": 3 })).await;
        self.ask("DELETE", &format!("/tokens/{}", made["id"].as_str().unwrap()), "").await;
        self.get("/tokens").await;
        self.fixture.sign_in(ANN).await;
        let sessions = self.get("/sessions").await;
        self.ask("DELETE", &format!("/sessions/{}", sessions["sessions"][0]["id"].as_str().unwrap()), "")
            .await;
        let made = self.post("/webhooks", json!({ "url": "https://good.example.com/" })).await;
        let hook = format!("/webhooks/{}", made["id"].as_str().unwrap());
        self.get("/webhooks").await;
        self.post(&format!("{hook}/test"), Value::Null).await;
        self.post(&format!("{hook}/retry"), Value::Null).await;
        self.ask("DELETE", &hook, "").await;
        self.ask("PUT", "/secrets/key", r#"{"value":"hunter2"}"#).await;
        self.get("/secrets").await;
        self.ask("DELETE", "/secrets/key", "").await;
    }

    async fn tenants(&mut self) {
        self.post("/projects", json!({ "project": "ops" })).await;
        self.get("/projects").await;
        self.get("/orgs").await;
        self.fixture.add_node("a").await;
        self.get("/nodes").await;
        self.post("/nodes/a/drain", Value::Null).await;
        self.ask("DELETE", "/nodes/a/drain", "").await;
        self.ask("DELETE", "/projects/ops", "").await;
    }
}

fn name(route: &Route) -> String {
    format!("{} {}", route.method, route.path)
}

#[tokio::test]
async fn every_response_matches_its_schema() {
    let mut tour = Tour::new().await;
    tour.agents().await;
    tour.tools().await;
    tour.tasks().await;
    tour.workflows().await;
    tour.approvals().await;
    tour.rules().await;
    tour.records().await;
    tour.tenants().await;
    // A stream has no end. Orgs are created and removed on the server's machine.
    let is_elsewhere = |route: &&Route| {
        route.path == "/api/v1/events" || route.path.starts_with("/api/v1/orgs") && route.method != "GET"
    };
    let all = routes().filter(|route| !is_elsewhere(route)).map(name);
    let missing: Vec<String> = all.filter(|name| !tour.asked.contains(name)).collect();
    assert_eq!(missing, Vec::<String>::new());
}
