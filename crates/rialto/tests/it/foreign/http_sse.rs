//! MCP servers of official Python SDKs that serve the HTTP+SSE transport of 2024-11-05 and no other.

use std::{fs, path::PathBuf};

use serde_json::{Value, json};

use super::servers::fresh;
use crate::harness::{foreign_agent::ForeignAgent, http, rialto::Rialto, server::ServerProcess, until};

/// File that the server writes its notes to.
fn notes_file(rialto: &Rialto) -> PathBuf {
    rialto.folder().join("notes.json")
}

/// Starts a server of this SDK and registers it under the name `old`.
fn add(rialto: &Rialto, sdk: &'static str) -> ForeignAgent {
    let peer = ForeignAgent::start(sdk, &["old", &notes_file(rialto).display().to_string()]);
    let added = rialto.json(&["tools", "add", "old", "--json", "--url", &format!("{}/sse", peer.url)]);
    assert!(added["tools"].to_string().contains("\"old_data\""), "{added}");
    peer
}

fn is_listed(server: &ServerProcess, name: &str) -> Option<()> {
    server.list().iter().any(|listed| listed == name).then_some(())
}

/// Sends an A2A message to a tool.
fn send(server: &ServerProcess, id: &str, skill: &str, part: &Value, task: Option<&Value>) -> Value {
    let mut message = json!({ "messageId": id, "role": "ROLE_USER", "parts": [part] });
    if let Some(task) = task {
        message["taskId"] = task.clone();
    }
    let params = json!({ "message": message, "metadata": { "skillId": skill } });
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params });
    let answer = http::post(&format!("{}/a2a", server.url), &[], &request.to_string());
    let mut answer: Value = serde_json::from_str(&answer.body).unwrap();
    answer["result"]["task"].take()
}

/// Calls, progress, a changed tool list, cancellation, and a server that goes away and comes back.
fn the_tools_cross(sdk: &'static str) {
    let rialto = fresh().with("RIALTO_CALLS__TIMEOUT_MS", "4000");
    let mut peer = add(&rialto, sdk);
    let server = rialto.serve(&["--allow-no-auth"]);
    let called = server.call("old_data", &json!({ "value": { "n": 1 } }));
    assert!(
        called.result().to_string().contains("\\\"n\\\": 1") || called.data() == &json!({ "n": 1 }),
        "{called:?}"
    );
    let shown = rialto.cli(&["call", "old_steps"]).ok();
    assert_eq!(shown.out, "done\n");
    assert!(shown.err.contains('3'), "progress is shown: {shown:?}");

    assert!(is_listed(&server, "old_grown").is_none());
    server.call("old_grow", &json!({})).result();
    until("the new tool is listed", || is_listed(&server, "old_grown"));
    assert_eq!(server.call("old_grown", &json!({})).text(), "the new one");

    let late = http::post(&format!("{}/call/old_slow", server.url), &[], r#"{"seconds":60}"#);
    let late: Value = serde_json::from_str(&late.body).unwrap();
    server.call("cancel_task", &json!({ "task_id": late["taskId"] })).result();
    until("the server was told of the cancellation", || {
        let notes: Value = serde_json::from_str(&fs::read_to_string(notes_file(&rialto)).ok()?).ok()?;
        (notes["cancelled"] == 1).then_some(())
    });

    peer.kill();
    peer.revive();
    until("its tools are called again", || {
        let answer = http::post(&format!("{}/call/old_steps", server.url), &[], "{}");
        (answer.status == 200).then_some(())
    });
    until("the new process has no new tool", || is_listed(&server, "old_grown").is_none().then_some(()));
}

#[test]
fn a_server_of_2024_11_05_over_http_sse_is_a_set_of_tools() {
    the_tools_cross("mcp_server_py_1_7");
}

#[test]
fn a_server_of_2025_11_25_over_http_sse_is_a_set_of_tools() {
    the_tools_cross("mcp_server_py_1_30");
}

#[test]
fn what_a_server_asks_over_http_sse_is_answered_by_the_next_message() {
    let rialto = fresh();
    let _peer = add(&rialto, "mcp_server_py_1_30");
    let server = rialto.serve(&["--allow-no-auth"]);
    let asked = send(&server, "m1", "old_ask", &json!({ "data": {} }), None);
    assert_eq!(asked["status"]["state"], "TASK_STATE_INPUT_REQUIRED", "{asked}");
    assert_eq!(asked["status"]["message"]["parts"][0]["text"], "which colour?");
    let done = send(&server, "m2", "old_ask", &json!({ "text": "green" }), Some(&asked["id"]));
    assert_eq!(done["status"]["state"], "TASK_STATE_COMPLETED", "{done}");
    assert_eq!(done["artifacts"][0]["parts"][0]["text"], "chose green");
}
