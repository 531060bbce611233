//! Audit records of administrative operations: one for every attempt, also for denied and unreadable ones.

use std::collections::BTreeSet;

use rialto_api::routes;
use rialto_model::{
    agent::AgentTrust,
    audit_event::{AuditEvent, InvocationOutcome},
    ids::Scope,
    store::{AuditFilter, ChainVerification},
    token_scopes::TokenScopes,
};
use rialto_testkit::{agents, peer::ScriptedPeer};
use serde_json::{Value, json};

use crate::fixture::{ANN, BOB, Fixture};

/// Administrative operation: its request, and the expected record.
struct Op {
    method: &'static str,
    route: &'static str,
    path: String,
    body: String,
    verb: &'static str,
    /// Whether the record has a state before and a state after.
    states: (bool, bool),
}

const MACHINE: &str = "// machine-secrets";
const POLICY: &str = r#"@id("p") forbid (principal == User::"eve", action, resource);"#;
const FLOW: &str = "name: greet\nstatus: active\nnodes: { a: { type: tool, tool: desk.ask } }\n";

fn op(
    (method, route): (&'static str, &'static str),
    path: &str,
    body: Value,
    verb: &'static str,
    states: (bool, bool),
) -> Op {
    let body = match body {
        Value::Null => String::new(),
        Value::String(text) => text,
        body => body.to_string(),
    };
    Op { method, route, path: format!("/api/v1{path}"), body, verb, states }
}

async fn fixture() -> Fixture {
    let fixture = Fixture::pinned_with(ScriptedPeer::echo(), MACHINE).await;
    let card = || agents::card("Desk", vec![agents::skill("ask")]);
    fixture.register("https://desk.example.com", card(), AgentTrust::External).await;
    fixture.discovery.serve("https://new.example.com", agents::card("New", vec![]));
    fixture.discovery.serve("mcp:files", agents::card("Files", vec![]));
    fixture
}

async fn records(fixture: &Fixture) -> Vec<AuditEvent> {
    let filter = AuditFilter { admin: true, ..AuditFilter::newest(1_000) };
    let found = fixture.store.audit_records(&Scope::default(), &filter).await.unwrap();
    found.into_iter().map(|record| record.event).collect()
}

/// Sends a request that writes one record. Returns the response and the record.
async fn one_record(fixture: &Fixture, token: &str, op: &Op) -> (crate::fixture::TestResponse, AuditEvent) {
    let before = records(fixture).await.len();
    let answer = fixture.api(token, op.method, &op.path, &op.body).await;
    let mut after = records(fixture).await;
    assert_eq!(after.len(), before + 1, "{} {}: {answer:?}", op.method, op.path);
    (answer, after.remove(0))
}

/// Every administrative route, in an order in which each can succeed.
#[expect(clippy::too_many_lines, reason = "it is one table")]
fn operations(webhook: &str, session: &str, token: &str, approval: &str) -> Vec<Op> {
    let r = |method, route| (method, route);
    vec![
        op(
            r("POST", "/agents"),
            "/agents",
            json!({ "url": "https://new.example.com" }),
            "agent.register",
            (false, true),
        ),
        op(
            r("POST", "/agents/{key}/refresh"),
            "/agents/new/refresh",
            Value::Null,
            "agent.refresh",
            (true, true),
        ),
        op(r("POST", "/refresh"), "/refresh", Value::Null, "agent.refresh", (true, true)),
        op(
            r("POST", "/agents/{key}/trust"),
            "/agents/desk/trust",
            json!({ "trust": "trusted" }),
            "agent.set_trust",
            (true, true),
        ),
        op(
            r("PUT", "/agents/{key}/credential"),
            "/agents/desk/credential",
            json!({ "env": "NAME" }),
            "agent.set_credential",
            (true, true),
        ),
        op(
            r("POST", "/agents/{key}/approve"),
            "/agents/desk/approve",
            Value::Null,
            "agent.approve_card",
            (true, true),
        ),
        op(r("DELETE", "/agents/{key}"), "/agents/new", Value::Null, "agent.remove", (true, false)),
        op(
            r("POST", "/tools"),
            "/tools",
            json!({ "name": "files", "url": "https://files.example.com" }),
            "tool.deploy",
            (false, true),
        ),
        op(r("DELETE", "/tools/{name}"), "/tools/files", Value::Null, "tool.remove", (true, false)),
        op(
            r("PUT", "/policies/{name}"),
            "/policies/eve",
            json!({ "text": POLICY }),
            "policy.save",
            (false, true),
        ),
        op(
            r("PUT", "/policies/{name}"),
            "/policies/eve",
            json!({ "text": POLICY.replace("eve", "mallory") }),
            "policy.save",
            (true, true),
        ),
        op(
            r("POST", "/policies/{name}/restore"),
            "/policies/eve/restore",
            json!({ "version": 1 }),
            "policy.restore",
            (true, true),
        ),
        op(r("DELETE", "/policies/{name}"), "/policies/eve", Value::Null, "policy.remove", (true, false)),
        op(
            r("POST", "/policies/templates"),
            "/policies/templates",
            json!({ "kind": "allow-agent", "target": "desk" }),
            "policy.save",
            (false, true),
        ),
        op(r("POST", "/workflows"), "/workflows", json!(FLOW), "workflow.save", (false, true)),
        op(
            r("POST", "/workflows/{name}/status"),
            "/workflows/greet/status",
            json!({ "status": "archived" }),
            "workflow.set_status",
            (true, true),
        ),
        op(
            r("DELETE", "/workflows/{name}"),
            "/workflows/greet",
            Value::Null,
            "workflow.remove",
            (true, false),
        ),
        op(
            r("PUT", "/secrets/{name}"),
            "/secrets/key",
            json!({ "value": "hunter2-hunter2" }),
            "secret.set",
            (false, true),
        ),
        op(r("DELETE", "/secrets/{name}"), "/secrets/key", Value::Null, "secret.remove", (true, false)),
        op(r("POST", "/tokens"), "/tokens", json!({ "caller": "carl" }), "token.create", (false, true)),
        op(
            r("DELETE", "/tokens/{id}"),
            &format!("/tokens/{token}"),
            Value::Null,
            "token.revoke",
            (true, true),
        ),
        op(
            r("DELETE", "/sessions/{id}"),
            &format!("/sessions/{session}"),
            Value::Null,
            "session.end",
            (true, false),
        ),
        op(
            r("POST", "/webhooks"),
            "/webhooks",
            json!({ "url": "https://good.example.com/hook" }),
            "webhook.add",
            (false, true),
        ),
        op(
            r("POST", "/webhooks/{id}/test"),
            &format!("/webhooks/{webhook}/test"),
            Value::Null,
            "webhook.test",
            (true, true),
        ),
        op(
            r("POST", "/webhooks/{id}/retry"),
            &format!("/webhooks/{webhook}/retry"),
            Value::Null,
            "webhook.retry",
            (true, true),
        ),
        op(
            r("DELETE", "/webhooks/{id}"),
            &format!("/webhooks/{webhook}"),
            Value::Null,
            "webhook.remove",
            (true, false),
        ),
        op(
            r("POST", "/approvals/{id}/approve"),
            &format!("/approvals/{approval}/approve"),
            Value::Null,
            "approve_call",
            (true, true),
        ),
        op(
            r("POST", "/approvals/{id}/deny"),
            &format!("/approvals/{approval}/deny"),
            Value::Null,
            "approve_call",
            (true, true),
        ),
        op(r("POST", "/projects"), "/projects", json!({ "project": "ops" }), "project.create", (false, true)),
        op(r("DELETE", "/projects/{project}"), "/projects/ops", Value::Null, "project.remove", (true, false)),
        op(r("POST", "/nodes/{name}/drain"), "/nodes/a/drain", Value::Null, "node.drain", (true, true)),
        op(r("DELETE", "/nodes/{name}/drain"), "/nodes/a/drain", Value::Null, "node.undrain", (true, true)),
        op(r("POST", "/orgs"), "/orgs", json!({ "org": "acme" }), "org.create", (false, false)),
        op(r("DELETE", "/orgs/{org}"), "/orgs/acme", Value::Null, "org.remove", (false, false)),
    ]
}

/// Operations with the objects that they need.
async fn prepared(fixture: &Fixture) -> Vec<Op> {
    let webhook =
        fixture.api(ANN, "POST", "/api/v1/webhooks", r#"{"url":"https://good.example.com/a"}"#).await;
    let webhook = webhook.json()["id"].as_str().unwrap().to_owned();
    fixture.add_node("a").await;
    fixture.sign_in(BOB).await;
    let sessions = fixture.api(ANN, "GET", "/api/v1/sessions", "").await.json();
    let session = sessions["sessions"][0]["id"].as_str().unwrap().to_owned();
    let token = fixture.api(ANN, "POST", "/api/v1/tokens", r#"{"caller":"dora"}"#).await.json();
    operations(&webhook, &session, token["id"].as_str().unwrap(), "apr_none")
}

#[tokio::test]
async fn every_administrative_operation_writes_one_audit_record() {
    let fixture = fixture().await;
    for op in prepared(&fixture).await {
        if op.route == "/agents/{key}/approve" {
            // A changed card must be pending.
            let card = agents::card("Desk", vec![agents::skill("ask"), agents::skill("tell")]);
            fixture.discovery.serve("https://desk.example.com", card);
            fixture.api(ANN, "POST", "/api/v1/agents/desk/refresh", "").await;
        }
        let (answer, record) = one_record(&fixture, ANN, &op).await;
        let what = format!("{} {}: {answer:?} {record:?}", op.method, op.path);
        assert_eq!((&*record.verb.verb, &*record.verb.caller), (op.verb, "ann"), "{what}");
        let args = record.verb.args.value();
        assert!(args["object"].as_str().is_some_and(|object| !object.is_empty()), "{what}");
        assert_eq!(args["tokenId"], "tok_ann", "{what}");
        if op.verb.starts_with("org.") {
            assert!(answer.status == 403 && record.context.denied, "orgs come and go at the machine: {what}");
            continue;
        }
        if op.verb == "approve_call" {
            assert!(answer.status == 404 && record.outcome == Some(InvocationOutcome::Failed), "{what}");
            continue;
        }
        assert!((200..300).contains(&answer.status), "{what}");
        assert_eq!((record.outcome, &record.error), (Some(InvocationOutcome::Completed), &None), "{what}");
        assert_eq!((!args["before"].is_null(), !args["after"].is_null()), op.states, "{what}");
        assert!(
            args["before"] != args["after"]
                || op.verb.ends_with("refresh")
                || op.verb.starts_with("webhook."),
            "{what}"
        );
    }
    let all = serde_json::to_string(&records(&fixture).await).unwrap();
    for secret in ["hunter2", "rialto_fresh", "whsec_made"] {
        assert!(!all.contains(secret), "{secret} is on record");
    }
    assert!(matches!(fixture.store.verify_audit().await.unwrap(), ChainVerification::Sound { .. }));
}

#[tokio::test]
async fn every_denied_attempt_writes_one_audit_record() {
    let fixture = fixture().await;
    for op in prepared(&fixture).await {
        let (answer, record) = one_record(&fixture, BOB, &op).await;
        let what = format!("{} {}: {answer:?} {record:?}", op.method, op.path);
        let is_own = op.verb == "session.end";
        assert_eq!(answer.status, if is_own { 204 } else { 403 }, "{what}");
        assert_eq!((&*record.verb.verb, &*record.verb.caller), (op.verb, "bob"), "{what}");
        assert_eq!(record.context.denied, !is_own, "{what}");
        assert!(
            is_own || record.context.reason.is_some_and(|reason| reason.contains("scope admin")),
            "{what}"
        );
    }
    assert!(matches!(fixture.store.verify_audit().await.unwrap(), ChainVerification::Sound { .. }));
}

#[tokio::test]
async fn an_unreadable_request_writes_one_audit_record() {
    let fixture = fixture().await;
    let takes_body = |op: &Op| {
        let path = format!("/api/v1{}", op.route);
        routes().any(|route| route.method == op.method && route.path == path && route.body.is_some())
    };
    let mut with_body = 0;
    for op in prepared(&fixture).await {
        let mut attempts = vec![Op { path: format!("{}?hunter2=1", op.path), body: String::new(), ..op }];
        if takes_body(&op) {
            with_body += 1;
            attempts.push(Op { path: op.path.clone(), body: r#"{"hunter2": "#.to_owned(), ..op });
        }
        for attempt in attempts {
            let (answer, record) = one_record(&fixture, ANN, &attempt).await;
            let what = format!("{} {}: {answer:?} {record:?}", attempt.method, attempt.path);
            assert_eq!(answer.status, 400, "{what}");
            assert_eq!((&*record.verb.verb, &*record.verb.caller), (op.verb, "ann"), "{what}");
            assert_eq!(record.outcome, Some(InvocationOutcome::Failed), "{what}");
        }
    }
    assert!(with_body > 10, "{with_body}");
    let all = serde_json::to_string(&records(&fixture).await).unwrap();
    assert!(all.contains("bad input") && !all.contains("hunter2"), "what was sent is not repeated");
}

#[test]
fn the_test_covers_every_administrative_route() {
    let ops = operations("", "", "", "");
    let tested: BTreeSet<String> =
        ops.iter().map(|op| format!("{} /api/v1{}", op.method, op.route)).collect();
    let known = routes().filter(|route| route.is_administrative());
    let known: BTreeSet<String> = known.map(|route| format!("{} {}", route.method, route.path)).collect();
    assert_eq!(tested, known);
    assert!(known.len() > 20);
}

#[tokio::test]
async fn console_and_api_write_the_same_records_and_both_list_them() {
    let fixture = fixture().await;
    let before = records(&fixture).await.len();
    let made = fixture.submit(ANN, "/factory/tokens", "caller=carl&scope=call").await;
    assert_eq!(made.status, 201, "{made:?}");
    let after = records(&fixture).await;
    assert_eq!((after.len() - before, after[0].verb.verb.as_str()), (1, "token.create"));
    let found = fixture.api(ANN, "GET", "/api/v1/audit?admin=true", "").await.json();
    assert_eq!(found["records"][0]["event"]["verb"], "token.create");
    assert!(found["records"].as_array().unwrap().iter().all(|record| record["event"]["phase"] == "admin"));
    let page = fixture.page("/factory/audit?admin=true").await.body;
    assert!(page.contains("token.create") && page.contains("carl"), "{page}");
    assert_eq!(fixture.api(ANN, "GET", "/api/v1/audit?admin=perhaps", "").await.status, 400);
}

#[tokio::test]
async fn sign_in_sign_out_and_failed_sign_in_are_recorded() {
    let fixture = fixture().await;
    let wrong =
        fixture.send("POST", "/factory/sign-in", &[("origin", "http://localhost")], "token=wrong").await;
    assert_eq!(wrong.status, 401);
    let refused = records(&fixture).await.remove(0);
    assert!(refused.verb.verb == "session.sign_in" && refused.context.denied, "{refused:?}");
    let cookie = fixture.sign_in(ANN).await;
    let signed_in = records(&fixture).await.remove(0);
    assert_eq!((&*signed_in.verb.verb, &*signed_in.verb.caller), ("session.sign_in", "ann"));
    assert_eq!(signed_in.outcome, Some(InvocationOutcome::Completed));
    sign_out(&fixture, &cookie).await;
    let signed_out = records(&fixture).await.remove(0);
    assert_eq!((&*signed_out.verb.verb, &*signed_out.verb.caller), ("session.sign_out", "ann"));
}

#[tokio::test]
async fn a_copied_cookie_is_rejected_after_sign_out_and_a_session_can_be_ended() {
    let fixture = fixture().await;
    let (mine, other) = (fixture.sign_in(ANN).await, fixture.sign_in(ANN).await);
    let looks =
        async |cookie: &str| fixture.send("GET", "/api/v1/tokens", &[("cookie", cookie)], "").await.status;
    assert_eq!((looks(&mine).await, looks(&other).await), (200, 200));
    sign_out(&fixture, &mine).await;
    assert_eq!((looks(&mine).await, looks(&other).await), (401, 200), "only the one that signed out");
    let sessions = fixture.api(ANN, "GET", "/api/v1/sessions", "").await.json();
    let id = sessions["sessions"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(sessions["sessions"].as_array().unwrap().len(), 1, "{sessions}");
    assert_eq!(
        fixture.api(BOB, "DELETE", &format!("/api/v1/sessions/{id}"), "").await.status,
        404,
        "not his"
    );
    let ended = fixture.submit(ANN, &format!("/factory/sessions/{id}/end"), "").await;
    assert_eq!((ended.status, looks(&other).await), (303, 401));
    assert!(
        fixture.api(ANN, "GET", "/api/v1/tokens", "").await.json()["tokens"].to_string().contains("tok_ann")
    );
}

#[tokio::test]
async fn a_token_cannot_be_created_for_another_existing_caller() {
    let fixture = fixture().await;
    let refused = fixture.api(ANN, "POST", "/api/v1/tokens", r#"{"caller":"bob"}"#).await;
    assert!(refused.status == 403 && refused.body.contains("rialto tokens create bob"), "{refused:?}");
    let own = fixture.api(ANN, "POST", "/api/v1/tokens", r#"{"caller":"ann"}"#).await;
    assert_eq!((own.status, &own.json()["createdBy"]), (201, &json!("ann")), "{own:?}");
    let tokens = fixture.api(ANN, "GET", "/api/v1/tokens", "").await.json();
    let id = tokens["tokens"].as_array().unwrap().iter().find(|token| token["caller"] == "bob").unwrap();
    fixture.api(ANN, "DELETE", &format!("/api/v1/tokens/{}", id["id"].as_str().unwrap()), "").await;
    let refused = fixture.api(ANN, "POST", "/api/v1/tokens", r#"{"caller":"bob"}"#).await;
    assert_eq!(refused.status, 403, "his tasks are still there: {refused:?}");
}

#[tokio::test]
async fn streams_end_with_a_revoked_token_and_an_ended_session() {
    let fixture = fixture().await;
    fixture.follow_revocations();
    let mut stream = fixture.listen(ANN, &[]).await;
    let cookie = fixture.sign_in(ANN).await;
    let mut page = fixture.listen_with_cookie(&cookie).await;
    sign_out(&fixture, &cookie).await;
    page.read_to_end().await;
    fixture.store.revoke_token("tok_bob", rialto_model::clock::Timestamp::UNIX_EPOCH).await.unwrap();
    let made = fixture.api(ANN, "POST", "/api/v1/tokens", r#"{"caller":"carl"}"#).await;
    assert_eq!(made.status, 201, "ann's own stream is as it was");
    fixture.store.revoke_token("tok_ann", rialto_model::clock::Timestamp::UNIX_EPOCH).await.unwrap();
    stream.read_to_end().await;
}

async fn sign_out(fixture: &Fixture, cookie: &str) {
    let headers = [("accept", "text/html"), ("cookie", cookie), ("origin", "http://localhost")];
    let csrf = fixture.send("GET", "/factory", &headers[..2], "").await.csrf();
    let out = fixture.send("POST", "/factory/sign-out", &headers, &format!("csrf={csrf}")).await;
    assert_eq!(out.status, 303, "{out:?}");
}

#[tokio::test]
async fn without_permission_to_write_policies_only_external_servers_are_deployed() {
    let carl = r#"permit (principal == User::"carl", action == Action::"admin_agents", resource);"#;
    let fixture = Fixture::with_policies(ScriptedPeer::echo(), carl).await;
    fixture.add_token("carl", "carl's token", TokenScopes::ALL).await;
    fixture.discovery.serve("mcp:files", agents::card("Files", vec![agents::skill("read")]));
    let deploy = async |token: &str, trust: Value| {
        let body =
            json!({ "kind": "mcp", "name": "files", "url": "https://files.example.com", "trust": trust });
        fixture.api(token, "POST", "/api/v1/tools", &body.to_string()).await
    };
    assert_eq!(deploy("carl's token", Value::Null).await.json()["trust"], "external");
    let refused = deploy("carl's token", json!("trusted")).await;
    assert_eq!(refused.status, 403, "{refused:?}");
    let kept = deploy(ANN, Value::Null).await.json();
    assert_eq!(kept["trust"], "external", "a known one stays what it is: {kept}");
    assert_eq!(deploy(ANN, json!("trusted")).await.json()["trust"], "trusted");
    let refused = deploy(ANN, json!("system")).await;
    assert!(refused.status == 400 && refused.body.contains("cannot be assigned"), "{refused:?}");
    assert_eq!(fixture.api(ANN, "DELETE", "/api/v1/tools/files", "").await.status, 204);
    assert_eq!(
        deploy(ANN, Value::Null).await.json()["trust"],
        "system",
        "who writes policies vouches for it"
    );
}

#[tokio::test]
async fn a_policy_in_a_file_has_the_author_file() {
    let fixture = fixture().await;
    let listed = fixture.api(ANN, "GET", "/api/v1/policies", "").await.json();
    let created = listed["policies"].as_array().unwrap().iter().map(|policy| &policy["createdBy"]);
    let created: Vec<&Value> = created.collect();
    assert!(created.len() > 1 && created.iter().all(|by| **by == "file"), "{listed}");
    let shown = fixture.api(ANN, "GET", "/api/v1/policies/starter.cedar", "").await.json();
    assert_eq!(shown["createdBy"], "file");
    assert!(fixture.page("/factory/policies").await.body.contains("Created by <bdi>file</bdi>"));
}
