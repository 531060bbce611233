//! Readiness while configured MCP servers start.

use std::{fs, os::unix::fs::PermissionsExt};

use serde_json::{Value, json};

use crate::harness::{http, mcp_upstream::McpUpstream, rialto::Rialto, server::ServerProcess, until};

fn fresh() -> Rialto {
    Rialto::fresh().with("PATH", "/usr/bin:/bin").with("A2A_DISCOVERY_TIMEOUT_MS", "1000")
}

fn ready(server: &ServerProcess) -> (u16, Value) {
    let answer = http::get(&format!("{}/readyz", server.url)).unwrap();
    (answer.status, serde_json::from_str(&answer.body).unwrap())
}

#[test]
fn a_server_is_ready_once_a_slow_mcp_server_has_listed_its_tools() {
    let rialto = fresh();
    let upstream = McpUpstream::new(&rialto, "slow", &["echo"]);
    let (script, go) = (rialto.folder().join("slow.sh"), rialto.folder().join("go"));
    let wait = format!("while [ ! -e {} ]; do sleep 0.05; done", go.display());
    fs::write(&script, format!("#!/bin/sh\n{wait}\nexec {}\n", upstream.script)).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let entry = upstream.entry().replace(&upstream.script, &script.display().to_string());
    fs::write(rialto.folder().join("rialto.toml"), entry).unwrap();
    let server = rialto.serve(&["--allow-no-auth"]);
    let waits = json!([{ "check": "mcp-servers", "message": "waiting for the first tool list of MCP servers: slow" }]);
    assert_eq!(ready(&server), (503, json!({ "ready": false, "reasons": waits })));
    until("a probe has timed out", || {
        let rows = rialto.json(&["tools", "list", "--json"]);
        (rows[0]["health"] == "unreachable").then_some(())
    });
    assert_eq!(ready(&server).0, 503, "its program is still starting");
    fs::write(&go, "").unwrap();
    until("it is ready", || (ready(&server).0 == 200).then_some(()));
    assert!(server.list().iter().any(|name| name == "echo"), "ready means that its tools are listed");
}

#[test]
fn a_dead_mcp_server_does_not_keep_a_server_from_being_ready() {
    let rialto = fresh();
    let dead = "[[mcp_servers]]\nname = \"dead\"\ncommand = \"/no/such/program\"\n";
    fs::write(rialto.folder().join("rialto.toml"), dead).unwrap();
    let begun = std::time::Instant::now();
    let server = rialto.serve(&["--allow-no-auth"]);
    until("it is ready", || (ready(&server).0 == 200).then_some(()));
    assert!(begun.elapsed() < std::time::Duration::from_secs(9), "it is ready before the limit of the wait");
}
