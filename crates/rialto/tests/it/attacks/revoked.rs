//! A token that was revoked, by another process than the server: nothing that was open for it goes on.

use std::{
    sync::mpsc::{Receiver, channel},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::harness::{
    agent::SampleAgent,
    http,
    rialto::Rialto,
    server::{ServerProcess, meta},
};

/// Open streams must end within this time after the revocation.
const SOON: Duration = Duration::from_secs(5);

struct RevokedCaller {
    rialto: Rialto,
    agent: SampleAgent,
    server: ServerProcess,
    bearer: String,
    id: String,
}

fn victim() -> RevokedCaller {
    let (rialto, agent) = (Rialto::fresh(), SampleAgent::named("Desk"));
    rialto.trust(&agent.url);
    let server = rialto.serve(&[]);
    let token = rialto.json(&["tokens", "create", "ann", "--json"]);
    let bearer = format!("Bearer {}", token["token"].as_str().unwrap());
    RevokedCaller { rialto, agent, server, bearer, id: token["id"].as_str().unwrap().to_owned() }
}

// === impl RevokedCaller ===

impl RevokedCaller {
    /// Reads a stream in the background. Says when its first line came and when it was over.
    fn open(
        &self,
        method: &'static str,
        path: &str,
        more: &[(&str, &str)],
        body: &Value,
    ) -> Receiver<Instant> {
        let url = format!("{}{path}", self.server.url);
        let headers = [&[("Authorization", self.bearer.as_str())], more].concat();
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let (head, mut lines) = http::listen_with(method, &url, &headers, &body);
        assert!(head.contains("200 OK") && head.to_lowercase().contains("event-stream"), "{path}: {head}");
        let (said, heard) = channel();
        thread::spawn(move || {
            while lines.next().is_some() {}
            let _ = said.send(Instant::now());
        });
        heard
    }

    /// The session of an MCP client of an older version.
    fn mcp_session(&self) -> String {
        let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
        let hello =
            json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params }).to_string();
        let headers =
            [("Authorization", self.bearer.as_str()), ("Accept", "application/json, text/event-stream")];
        let answer = http::post(&self.server.mcp(), &headers, &hello);
        answer.session.clone().unwrap_or_else(|| panic!("{answer:?}"))
    }
}

#[test]
fn every_kind_of_open_stream_ends() {
    let victim = victim();
    let events = ("Accept", "text/event-stream");
    let session = victim.mcp_session();
    let message = json!({ "messageId": "m-1", "role": "user", "kind": "message", "parts": [{ "kind": "data", "data": { "ms": 60_000 } }] });
    let params = json!({ "message": message, "metadata": { "skillId": "desk.slow" } });
    let said = json!({ "jsonrpc": "2.0", "id": 1, "method": "message/stream", "params": params });
    let listens = json!({
        "jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen",
        "params": { "notifications": { "toolsListChanged": true }, "_meta": meta() },
    });
    let modern = [
        ("Accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "subscriptions/listen"),
    ];
    let mut open = vec![
        ("A2A message/stream", victim.open("POST", "/a2a", &[events], &said)),
        ("MCP subscriptions/listen", victim.open("POST", "/mcp", &modern, &listens)),
        ("MCP GET", victim.open("GET", "/mcp", &[events, ("mcp-session-id", &session)], &Value::Null)),
        ("console events", victim.open("GET", "/api/v1/events", &[], &Value::Null)),
    ];
    let bearer = [("Authorization", victim.bearer.as_str())];
    let tasks = http::get_with(&format!("{}/api/v1/tasks", victim.server.url), None, &bearer);
    let tasks: Value = serde_json::from_str(&tasks.body).unwrap();
    let task = tasks["tasks"][0]["id"].as_str().unwrap_or_else(|| panic!("{tasks}")).to_owned();
    let resubscribe =
        json!({ "jsonrpc": "2.0", "id": 2, "method": "tasks/resubscribe", "params": { "id": task } });
    open.push(("A2A tasks/resubscribe", victim.open("POST", "/a2a", &[events], &resubscribe)));
    let path = format!("/api/v1/tasks/{task}/events");
    open.push(("task events", victim.open("GET", &path, &[events], &Value::Null)));
    thread::sleep(Duration::from_millis(300));
    for (name, over) in &open {
        assert!(over.try_recv().is_err(), "{name} was over before");
    }
    victim.rialto.cli(&["tokens", "revoke", &victim.id]).ok();
    let revoked = Instant::now();
    for (name, over) in open {
        let over = over.recv_timeout(SOON).unwrap_or_else(|_| panic!("{name} goes on"));
        assert!(over.saturating_duration_since(revoked) < SOON, "{name}");
    }
    assert_eq!(http::get_with(&format!("{}/api/v1/tasks", victim.server.url), None, &bearer).status, 401);
    assert!(!victim.agent.heard().is_empty());
}

#[test]
fn a_call_that_waits_for_approval_is_not_made_after_its_only_token_is_revoked() {
    let victim = victim();
    victim.rialto.cli(&["policy", "add", "require-approval", "desk.greet", "--by", "the ops team"]).ok();
    let url = format!("{}/call/desk.greet", victim.server.url);
    let waits = http::post(&url, &[("Authorization", &victim.bearer)], r#"{"name":"Eve"}"#);
    assert_eq!(waits.status, 202, "{waits:?}");
    let listed = victim.rialto.json(&["approvals", "list", "--json"]);
    let id = listed[0]["id"].as_str().unwrap().to_owned();
    victim.rialto.cli(&["tokens", "revoke", &victim.id]).ok();
    let begun = Instant::now();
    let state = || victim.rialto.json(&["approvals", "show", &id, "--json"])["state"].clone();
    while state() == "waiting" {
        assert!(begun.elapsed() < SOON, "it still waits");
    }
    assert_eq!(state(), "denied");
    let late = victim.rialto.cli(&["approvals", "approve", &id]).exit(1);
    assert!(late.err.contains("revocation"), "{}", late.err);
    assert!(!victim.agent.heard().iter().any(|heard| heard.contains("Eve")), "it was not made");
}

#[test]
fn administration_at_the_command_line_is_recorded_once_and_the_trail_verifies() {
    let victim = victim();
    let records = || {
        let found = victim.rialto.json(&["audit", "--admin", "--json"]);
        found.as_array().unwrap().clone()
    };
    let before = records();
    let verbs: Vec<&str> = before.iter().map(|record| record["event"]["verb"].as_str().unwrap()).collect();
    assert_eq!(verbs, ["token.create", "token.create", "agent.register"], "{before:#?}");
    victim.rialto.cli(&["tokens", "revoke", &victim.id]).ok();
    let after = records();
    assert_eq!(after.len(), before.len() + 1);
    let event = &after[0]["event"];
    assert_eq!((&event["verb"], &event["args"]["object"]), (&json!("token.revoke"), &json!(victim.id)));
    assert_eq!(
        (&event["args"]["before"]["state"], &event["args"]["after"]["state"]),
        (&json!("good"), &json!("revoked"))
    );
    assert!(event["caller"].as_str().is_some_and(|caller| !caller.is_empty()), "{event}");
    assert!(
        !after.iter().any(|record| record.to_string().contains(victim.bearer.trim_start_matches("Bearer ")))
    );
    victim.rialto.cli(&["audit", "verify"]).ok();
}

#[test]
fn the_data_folder_is_closed_to_others_whatever_it_was() {
    use std::{fs, os::unix::fs::PermissionsExt};
    let rialto = Rialto::fresh();
    rialto.cli(&["tokens", "create", "ann"]).ok();
    let database = rialto.data().join("rialto.db");
    let open =
        |path: &std::path::Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let data = rialto.data().to_owned();
    assert_eq!((mode(&data), mode(&database)), (0o700, 0o600));
    open(&data, 0o755);
    open(&database, 0o644);
    let told = rialto.cli(&["doctor"]);
    assert!(
        told.out.contains("other users can read") && told.out.contains("chmod -R go-rwx"),
        "{}",
        told.out
    );
    open(&data, 0o755);
    open(&database, 0o644);
    rialto.cli(&["tokens", "list"]).ok();
    for entry in fs::read_dir(&data).unwrap() {
        let path = entry.unwrap().path();
        let is_policies = path.ends_with("policies");
        assert!(is_policies || mode(&path) & 0o077 == 0, "{} is {:o}", path.display(), mode(&path));
    }
    assert_eq!((mode(&data), mode(&database)), (0o700, 0o600));
}
