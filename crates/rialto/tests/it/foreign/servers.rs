//! MCP servers that others wrote: each of their tools is a tool here, whatever carries it.

use serde_json::{Value, json};

use crate::harness::{
    foreign_agent::ForeignAgent, http, interop, rialto::Rialto, server::ServerProcess, until,
};

/// A fresh installation that can start what `interop/run` starts.
pub(super) fn fresh() -> Rialto {
    let path = std::env::var_os("PATH").unwrap().into_string().unwrap();
    let home = std::env::var_os("RIALTO_INTEROP_HOME").map_or_else(
        || format!("{}/.cache/rialto/interop", std::env::var_os("HOME").unwrap().display()),
        |home| home.into_string().unwrap(),
    );
    Rialto::fresh().with("PATH", &path).with("INTEROP", &home)
}

fn add_command(rialto: &Rialto, name: &str) -> Value {
    let run = interop().display().to_string();
    let home = "RIALTO_INTEROP_HOME=${INTEROP}";
    rialto.json(&["tools", "add", "far", "--json", "--env", home, "--", &run, name])
}

fn names(shown: &Value) -> Vec<String> {
    let mut names: Vec<String> = shown["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect();
    names.sort();
    names
}

fn post(server: &ServerProcess, name: &str, args: &Value) -> (u16, Value) {
    let answer = http::post(&format!("{}/call/{name}", server.url), &[], &args.to_string());
    (answer.status, serde_json::from_str(&answer.body).unwrap_or(Value::String(answer.body)))
}

fn the_python_tools_cross(rialto: &Rialto) {
    let server = rialto.serve(&["--allow-no-auth"]);
    until("the server is healthy", || server.list().iter().any(|name| name == "py_sum").then_some(()));
    assert_eq!(server.call("py_sum", &json!({ "a": 1, "b": 2 })).data(), &json!({ "sum": 3 }));
    assert_eq!(post(&server, "py_sum", &json!({ "a": 1, "b": 2 })), (200, json!({ "sum": 3 })));
    assert_eq!(server.call("py_say", &json!({ "text": "hi" })).data(), &json!({ "result": "hi" }));
    let picture = server.call("py_picture", &json!({}));
    assert_eq!(picture.result()["content"][0]["mimeType"], "image/png");
    let boom = server.call("py_boom", &json!({}));
    assert!(boom.complaint().contains("no luck today"), "{boom:?}");
    assert_eq!(post(&server, "py_sum", &json!({ "a": "x", "b": 2 })).0, 400, "checked before it leaves");
    let said = rialto.cli(&["call", "py_steps"]).ok();
    assert!(said.err.contains("step 1") && said.err.contains("step 2"), "{said:?}");
}

#[test]
fn a_server_of_the_python_sdk_on_stdio_is_a_set_of_tools() {
    let rialto = fresh();
    let added = add_command(&rialto, "mcp_server_py");
    assert_eq!(names(&added), ["py_boom", "py_picture", "py_say", "py_steps", "py_sum"]);
    the_python_tools_cross(&rialto);
}

#[test]
fn a_server_of_the_python_sdk_over_http_is_a_set_of_tools() {
    let rialto = fresh();
    let peer = ForeignAgent::start("mcp_server_py", &[]);
    rialto.cli(&["tools", "add", "far", "--url", &format!("{}/mcp", peer.url)]).ok();
    the_python_tools_cross(&rialto);
}

#[test]
fn a_server_of_the_typescript_sdk_on_stdio_is_a_set_of_tools() {
    let rialto = fresh();
    let added = add_command(&rialto, "mcp_server_ts");
    assert_eq!(names(&added), ["ts_boom", "ts_sum"]);
    let server = rialto.serve(&["--allow-no-auth"]);
    assert_eq!(server.call("ts_sum", &json!({ "a": 1, "b": 2 })).data(), &json!({ "sum": 3 }));
    assert!(server.call("ts_boom", &json!({})).complaint().contains("no luck today"));
}
