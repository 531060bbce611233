//! Administration leaves a trace: every operation is one record, who, what, before and after; refused attempts too.

use std::collections::BTreeSet;

use rialto_console::api::routes;
use rialto_model::{
    agent::AgentTrust,
    audit_event::{AuditEvent, InvocationOutcome},
    ids::Scope,
    store::{AuditFilter, ChainVerification},
    token_scopes::TokenScopes,
};
use rialto_testkit::{agents, peer::ScriptedPeer};
use serde_json::{Value, json};

use crate::house::{ANN, BOB, House};

/// One operation: how it is asked for, and what its record says.
struct Op {
    method: &'static str,
    route: &'static str,
    path: String,
    body: String,
    verb: &'static str,
    /// Whether there was something before, and is something after.
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

async fn house() -> House {
    let house = House::pinned_with(ScriptedPeer::echo(), MACHINE).await;
    let card = || agents::card("Desk", vec![agents::skill("ask")]);
    house.register("https://desk.example.com", card(), AgentTrust::External).await;
    house.discovery.serve("https://new.example.com", agents::card("New", vec![]));
    house.discovery.serve("mcp:files", agents::card("Files", vec![]));
    house
}

async fn records(house: &House) -> Vec<AuditEvent> {
    let filter = AuditFilter { admin: true, ..AuditFilter::newest(1_000) };
    let found = house.store.audit_records(&Scope::default(), &filter).await.unwrap();
    found.into_iter().map(|record| record.event).collect()
}

/// Asks for something that leaves one record, and answers that with the answer.
async fn one_record(house: &House, token: &str, op: &Op) -> (crate::house::Answer, AuditEvent) {
    let before = records(house).await.len();
    let answer = house.ask(token, op.method, &op.path, &op.body).await;
    let mut after = records(house).await;
    assert_eq!(after.len(), before + 1, "{} {}: {answer:?}", op.method, op.path);
    (answer, after.remove(0))
}

/// Every administrative route, in an order in which each can do its work.
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

/// What operations need that is there before.
async fn prepared(house: &House) -> Vec<Op> {
    let webhook = house.ask(ANN, "POST", "/api/v1/webhooks", r#"{"url":"https://good.example.com/a"}"#).await;
    let webhook = webhook.json()["id"].as_str().unwrap().to_owned();
    house.add_node("a").await;
    house.cookie(BOB).await;
    let sessions = house.ask(ANN, "GET", "/api/v1/sessions", "").await.json();
    let session = sessions["sessions"][0]["id"].as_str().unwrap().to_owned();
    let token = house.ask(ANN, "POST", "/api/v1/tokens", r#"{"caller":"dora"}"#).await.json();
    operations(&webhook, &session, token["id"].as_str().unwrap(), "apr_none")
}

#[tokio::test]
async fn every_administrative_operation_is_one_record() {
    let house = house().await;
    for op in prepared(&house).await {
        if op.route == "/agents/{key}/approve" {
            // There must be a card that waits.
            let card = agents::card("Desk", vec![agents::skill("ask"), agents::skill("tell")]);
            house.discovery.serve("https://desk.example.com", card);
            house.ask(ANN, "POST", "/api/v1/agents/desk/refresh", "").await;
        }
        let (answer, record) = one_record(&house, ANN, &op).await;
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
    let all = serde_json::to_string(&records(&house).await).unwrap();
    for secret in ["hunter2", "rialto_fresh", "whsec_made"] {
        assert!(!all.contains(secret), "{secret} is on record");
    }
    assert!(matches!(house.store.verify_audit().await.unwrap(), ChainVerification::Sound { .. }));
}

#[tokio::test]
async fn every_refused_attempt_is_one_record() {
    let house = house().await;
    for op in prepared(&house).await {
        let (answer, record) = one_record(&house, BOB, &op).await;
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
    assert!(matches!(house.store.verify_audit().await.unwrap(), ChainVerification::Sound { .. }));
}

#[tokio::test]
async fn a_request_that_cannot_be_read_is_one_record_too() {
    let house = house().await;
    let takes_body = |op: &Op| {
        let path = format!("/api/v1{}", op.route);
        routes().any(|route| route.method == op.method && route.path == path && route.body.is_some())
    };
    let mut garbled = 0;
    for op in prepared(&house).await {
        let mut attempts = vec![Op { path: format!("{}?hunter2=1", op.path), body: String::new(), ..op }];
        if takes_body(&op) {
            garbled += 1;
            attempts.push(Op { path: op.path.clone(), body: r#"{"hunter2": "#.to_owned(), ..op });
        }
        for attempt in attempts {
            let (answer, record) = one_record(&house, ANN, &attempt).await;
            let what = format!("{} {}: {answer:?} {record:?}", attempt.method, attempt.path);
            assert_eq!(answer.status, 400, "{what}");
            assert_eq!((&*record.verb.verb, &*record.verb.caller), (op.verb, "ann"), "{what}");
            assert_eq!(record.outcome, Some(InvocationOutcome::Failed), "{what}");
        }
    }
    assert!(garbled > 10, "{garbled}");
    let all = serde_json::to_string(&records(&house).await).unwrap();
    assert!(all.contains("bad input") && !all.contains("hunter2"), "what was sent is not repeated");
}

#[test]
fn no_administrative_route_is_missing_from_the_table() {
    let ops = operations("", "", "", "");
    let tested: BTreeSet<String> =
        ops.iter().map(|op| format!("{} /api/v1{}", op.method, op.route)).collect();
    let known = routes().filter(|route| route.is_administrative());
    let known: BTreeSet<String> = known.map(|route| format!("{} {}", route.method, route.path)).collect();
    assert_eq!(tested, known);
    assert!(known.len() > 20);
}

#[tokio::test]
async fn the_console_and_the_api_record_alike_and_both_show_it() {
    let house = house().await;
    let before = records(&house).await.len();
    let made = house.submit(ANN, "/factory/tokens", "caller=carl&scope=call").await;
    assert_eq!(made.status, 201, "{made:?}");
    let after = records(&house).await;
    assert_eq!((after.len() - before, after[0].verb.verb.as_str()), (1, "token.create"));
    let found = house.ask(ANN, "GET", "/api/v1/audit?admin=true", "").await.json();
    assert_eq!(found["records"][0]["event"]["verb"], "token.create");
    assert!(found["records"].as_array().unwrap().iter().all(|record| record["event"]["phase"] == "admin"));
    let page = house.page("/factory/audit?admin=true").await.body;
    assert!(page.contains("token.create") && page.contains("carl"), "{page}");
    assert_eq!(house.ask(ANN, "GET", "/api/v1/audit?admin=perhaps", "").await.status, 400);
}

#[tokio::test]
async fn signing_in_and_out_is_recorded_and_so_is_a_wrong_token() {
    let house = house().await;
    let wrong =
        house.send("POST", "/factory/sign-in", &[("origin", "http://localhost")], "token=wrong").await;
    assert_eq!(wrong.status, 401);
    let refused = records(&house).await.remove(0);
    assert!(refused.verb.verb == "session.sign_in" && refused.context.denied, "{refused:?}");
    let cookie = house.cookie(ANN).await;
    let signed_in = records(&house).await.remove(0);
    assert_eq!((&*signed_in.verb.verb, &*signed_in.verb.caller), ("session.sign_in", "ann"));
    assert_eq!(signed_in.outcome, Some(InvocationOutcome::Completed));
    sign_out(&house, &cookie).await;
    let signed_out = records(&house).await.remove(0);
    assert_eq!((&*signed_out.verb.verb, &*signed_out.verb.caller), ("session.sign_out", "ann"));
}

#[tokio::test]
async fn a_copied_cookie_is_refused_after_signing_out_and_a_session_can_be_ended() {
    let house = house().await;
    let (mine, other) = (house.cookie(ANN).await, house.cookie(ANN).await);
    let looks =
        async |cookie: &str| house.send("GET", "/api/v1/tokens", &[("cookie", cookie)], "").await.status;
    assert_eq!((looks(&mine).await, looks(&other).await), (200, 200));
    sign_out(&house, &mine).await;
    assert_eq!((looks(&mine).await, looks(&other).await), (401, 200), "only the one that signed out");
    let sessions = house.ask(ANN, "GET", "/api/v1/sessions", "").await.json();
    let id = sessions["sessions"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(sessions["sessions"].as_array().unwrap().len(), 1, "{sessions}");
    assert_eq!(house.ask(BOB, "DELETE", &format!("/api/v1/sessions/{id}"), "").await.status, 404, "not his");
    let ended = house.submit(ANN, &format!("/factory/sessions/{id}/end"), "").await;
    assert_eq!((ended.status, looks(&other).await), (303, 401));
    assert!(
        house.ask(ANN, "GET", "/api/v1/tokens", "").await.json()["tokens"].to_string().contains("tok_ann")
    );
}

#[tokio::test]
async fn nobody_makes_a_token_in_the_name_of_another_caller() {
    let house = house().await;
    let refused = house.ask(ANN, "POST", "/api/v1/tokens", r#"{"caller":"bob"}"#).await;
    assert!(refused.status == 403 && refused.body.contains("rialto tokens create bob"), "{refused:?}");
    let own = house.ask(ANN, "POST", "/api/v1/tokens", r#"{"caller":"ann"}"#).await;
    assert_eq!((own.status, &own.json()["createdBy"]), (201, &json!("ann")), "{own:?}");
    let tokens = house.ask(ANN, "GET", "/api/v1/tokens", "").await.json();
    let id = tokens["tokens"].as_array().unwrap().iter().find(|token| token["caller"] == "bob").unwrap();
    house.ask(ANN, "DELETE", &format!("/api/v1/tokens/{}", id["id"].as_str().unwrap()), "").await;
    let refused = house.ask(ANN, "POST", "/api/v1/tokens", r#"{"caller":"bob"}"#).await;
    assert_eq!(refused.status, 403, "his tasks are still there: {refused:?}");
}

#[tokio::test]
async fn a_revoked_token_and_an_ended_session_receive_nothing_more() {
    let house = house().await;
    house.follow_revocations();
    let mut stream = house.listen(ANN, &[]).await;
    let cookie = house.cookie(ANN).await;
    let mut page = house.listen_with_cookie(&cookie).await;
    sign_out(&house, &cookie).await;
    page.until_over().await;
    house.store.revoke_token("tok_bob", rialto_model::clock::Timestamp::UNIX_EPOCH).await.unwrap();
    let made = house.ask(ANN, "POST", "/api/v1/tokens", r#"{"caller":"carl"}"#).await;
    assert_eq!(made.status, 201, "ann's own stream is as it was");
    house.store.revoke_token("tok_ann", rialto_model::clock::Timestamp::UNIX_EPOCH).await.unwrap();
    stream.until_over().await;
}

async fn sign_out(house: &House, cookie: &str) {
    let headers = [("accept", "text/html"), ("cookie", cookie), ("origin", "http://localhost")];
    let csrf = house.send("GET", "/factory", &headers[..2], "").await.csrf();
    let out = house.send("POST", "/factory/sign-out", &headers, &format!("csrf={csrf}")).await;
    assert_eq!(out.status, 303, "{out:?}");
}

#[tokio::test]
async fn who_may_not_write_policies_deploys_external_servers_alone() {
    let carl = r#"permit (principal == User::"carl", action == Action::"admin_agents", resource);"#;
    let house = House::with_policies(ScriptedPeer::echo(), carl).await;
    house.add_token("carl", "carl's token", TokenScopes::ALL).await;
    house.discovery.serve("mcp:files", agents::card("Files", vec![agents::skill("read")]));
    let deploy = async |token: &str, trust: Value| {
        let body =
            json!({ "kind": "mcp", "name": "files", "url": "https://files.example.com", "trust": trust });
        house.ask(token, "POST", "/api/v1/tools", &body.to_string()).await
    };
    assert_eq!(deploy("carl's token", Value::Null).await.json()["trust"], "external");
    let refused = deploy("carl's token", json!("trusted")).await;
    assert_eq!(refused.status, 403, "{refused:?}");
    let kept = deploy(ANN, Value::Null).await.json();
    assert_eq!(kept["trust"], "external", "a known one stays what it is: {kept}");
    assert_eq!(deploy(ANN, json!("trusted")).await.json()["trust"], "trusted");
    let refused = deploy(ANN, json!("system")).await;
    assert!(refused.status == 400 && refused.body.contains("cannot be given"), "{refused:?}");
    assert_eq!(house.ask(ANN, "DELETE", "/api/v1/tools/files", "").await.status, 204);
    assert_eq!(
        deploy(ANN, Value::Null).await.json()["trust"],
        "system",
        "who writes policies vouches for it"
    );
}

#[tokio::test]
async fn a_policy_in_a_file_is_shown_as_such() {
    let house = house().await;
    let listed = house.ask(ANN, "GET", "/api/v1/policies", "").await.json();
    let created = listed["policies"].as_array().unwrap().iter().map(|policy| &policy["createdBy"]);
    let created: Vec<&Value> = created.collect();
    assert!(created.len() > 1 && created.iter().all(|by| **by == "file"), "{listed}");
    let shown = house.ask(ANN, "GET", "/api/v1/policies/starter.cedar", "").await.json();
    assert_eq!(shown["createdBy"], "file");
    assert!(house.page("/factory/policies").await.body.contains("Created by <bdi>file</bdi>"));
}
