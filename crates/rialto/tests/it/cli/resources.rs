//! A result that is too large for a context is linked, and read from the journal by its caller: whoever serves it, and after a crash.

use serde_json::{Value, json};

use crate::harness::{
    agent::SampleAgent,
    rialto::Rialto,
    server::{ServerProcess, message, request},
};

fn token(rialto: &Rialto, caller: &str) -> String {
    rialto.json(&["tokens", "create", caller, "--json"])["token"].as_str().unwrap().to_owned()
}

#[track_caller]
fn read(server: &ServerProcess, uri: &str, token: &str) -> Value {
    let params = json!({ "uri": uri });
    message(&request(&server.mcp(), "resources/read", params, Some(token), &[("Mcp-Name", uri)]))
}

/// The address in a result that has nothing else but words.
#[track_caller]
fn link(result: &Value) -> String {
    assert_eq!(result["content"][0]["type"], "resource_link", "{result}");
    assert!(result.to_string().len() < 4_000, "{result}");
    result["content"][0]["uri"].as_str().unwrap().to_owned()
}

#[test]
fn a_large_result_is_read_in_pieces_after_the_server_was_killed_and_by_nobody_else() {
    let (rialto, agent) = (Rialto::fresh(), SampleAgent::named("Desk"));
    rialto.trust(&agent.url);
    let (ann, bob) = (token(&rialto, "ann"), token(&rialto, "bob"));
    let server = rialto.serve(&[]);
    let args = json!({ "text": "große Ergebnisse ".repeat(20_000) });
    let called = json!({ "name": "desk.echo", "arguments": args });
    let called = message(&server.request("/mcp", "tools/call", called, Some(&ann)));
    let uri = link(&called["result"]);
    server.kill();

    let server = rialto.serve(&[]);
    let (mut text, mut next) = (String::new(), Some(uri.clone()));
    while let Some(uri) = next {
        let piece = read(&server, &uri, &ann)["result"].take();
        assert!(piece["contents"][0]["text"].as_str().unwrap().len() <= 64 * 1_024);
        text += piece["contents"][0]["text"].as_str().unwrap();
        next = piece["_meta"]["rialto/next"].as_str().map(str::to_owned);
    }
    let told: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(told["text"], args["text"]);
    assert_eq!(read(&server, &uri, &bob)["error"]["code"], -32602);
    let listed = message(&server.request("/mcp", "resources/list", json!({}), Some(&ann)));
    assert_eq!(listed["result"]["resources"][0]["uri"], uri.as_str(), "{listed}");
}

#[test]
fn a_client_on_stdin_reads_it_too() {
    let (rialto, agent) =
        (Rialto::fresh().with("RIALTO_MCP__INLINE_LIMIT_KB", "1"), SampleAgent::named("Desk"));
    let mut stdio = rialto.mcp(&["--agent", &agent.url]);
    stdio.initialize();
    let args = json!({ "text": "x".repeat(2_000) });
    let uri = link(stdio.call("desk.echo", &args).result());
    let piece = stdio.ask("resources/read", &json!({ "uri": uri }));
    let told: Value = serde_json::from_str(piece["result"]["contents"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(told["text"], args["text"]);
    let missing = stdio.ask("resources/read", &json!({ "uri": "rialto://tasks/task_1/artifacts/0/parts/0" }));
    assert_eq!(missing["error"]["code"], -32002);
    stdio.leave();
}
