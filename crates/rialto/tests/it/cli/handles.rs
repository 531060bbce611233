//! A call that became a task at the MCP door is the task of the journal: it is there after the server was killed, and for its
//! caller only.

use std::fs;

use serde_json::{Value, json};

use crate::harness::{
    rialto::Rialto,
    server::{ServerProcess, message, request},
    slow_agent::SlowAgent,
    until,
};

fn ask(server: &ServerProcess, token: &str, method: &str, mut params: Value) -> Value {
    let capabilities = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    params["_meta"] = json!({ "io.modelcontextprotocol/clientCapabilities": capabilities });
    let named = params["taskId"].as_str().map(str::to_owned);
    let more: Vec<_> = named.iter().map(|name| ("Mcp-Name", name.as_str())).collect();
    message(&request(&format!("{}/mcp", server.url), method, params, Some(token), &more))
}

#[test]
fn a_task_outlives_the_server_and_is_its_callers_alone() {
    let worker = SlowAgent::start();
    let rialto = Rialto::fresh();
    rialto.trust(&worker.url);
    fs::write(rialto.folder().join("rialto.toml"), "[mcp]\ntask_after_ms = 20\n").unwrap();
    let server = rialto.serve(&[]);
    let ann = server.token.clone().unwrap();
    let task = ask(&server, &ann, "tools/call", json!({ "name": "worker.count", "arguments": {} }))["result"]
        .clone();
    assert_eq!((&task["resultType"], &task["ttlMs"]), (&json!("task"), &json!(86_400_000)), "{task}");
    let about = json!({ "taskId": task["taskId"] });
    // Its agent must have named it, or nobody could be asked about it later.
    until("the agent has begun", || {
        let got = ask(&server, &ann, "tasks/get", about.clone());
        (got["result"]["status"] == "working" && !worker.heard().is_empty()).then_some(())
    });
    server.kill();

    let server = rialto.serve(&[]);
    let done = until("the task is done", || {
        let got = ask(&server, &ann, "tasks/get", about.clone())["result"].clone();
        (got["status"] != "working").then_some(got)
    });
    assert_eq!(done["status"], "completed", "{done}");
    let made: Vec<_> = done["result"]["content"].as_array().unwrap().iter().map(|one| &one["text"]).collect();
    assert_eq!(json!(made), json!(SlowAgent::whole()));
    let bob = rialto.json(&["tokens", "create", "bob", "--json"])["token"].as_str().unwrap().to_owned();
    assert_eq!(ask(&server, &bob, "tasks/get", about)["error"]["code"], -32602);
}
