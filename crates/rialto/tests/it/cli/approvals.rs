//! Calls that wait for approval, through the whole program.

use serde_json::{Value, json};

use crate::harness::{
    http::{self, HttpAnswer},
    rialto::Rialto,
    server::ServerProcess,
};

const SECRET: &str = "sk-hunter2hunter2hunter2";

/// A function that needs approval, and a caller.
fn guarded(by: &[&str]) -> (Rialto, String) {
    let rialto = Rialto::fresh()
        .with("PATH", "/usr/bin:/bin")
        .with("RIALTO_TOKEN", "owners-token-of-at-least-32-characters")
        .with("USER", "olga");
    rialto.cli(&["tools", "add", "up", "--function", "--", "tr", "a-z", "A-Z"]).ok();
    rialto.cli(&[&["policy", "add", "require-approval", "up.up"], by].concat()).ok();
    let token = rialto.json(&["tokens", "create", "ann", "--json"])["token"].as_str().unwrap().to_owned();
    (rialto, token)
}

fn call(server: &ServerProcess, token: &str, args: &Value) -> HttpAnswer {
    let bearer = format!("Bearer {token}");
    http::post(&format!("{}/call/up", server.url), &[("Authorization", &bearer)], &args.to_string())
}

/// An A2A request.
fn a2a(server: &ServerProcess, token: &str, method: &str, params: &Value) -> Value {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let bearer = format!("Bearer {token}");
    let answer = http::post(&format!("{}/a2a", server.url), &[("Authorization", &bearer)], &body.to_string());
    serde_json::from_str(&answer.body).unwrap_or_else(|error| panic!("{error}: {answer:?}"))
}

fn message(id: &str, task: Option<&str>, part: &Value) -> Value {
    let mut message = json!({ "messageId": id, "role": "user", "kind": "message", "parts": [part] });
    if let Some(task) = task {
        message["taskId"] = json!(task);
    }
    json!({ "message": message, "metadata": { "skillId": "up" } })
}

fn text(text: &str) -> Value {
    json!({ "kind": "text", "text": text })
}

fn state(server: &ServerProcess, token: &str, task: &str) -> (String, Value) {
    let got = a2a(server, token, "tasks/get", &json!({ "id": task }));
    (got["result"]["status"]["state"].as_str().unwrap().to_owned(), got["result"].clone())
}

fn until_over(server: &ServerProcess, token: &str, task: &str) -> Value {
    for _ in 0..600 {
        let (state, task) = state(server, token, task);
        if state != "input-required" && state != "working" {
            return task;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("{task} is not over");
}

/// Whether a text stands in any file of the data folder.
fn is_kept(rialto: &Rialto, text: &str) -> bool {
    let files = std::fs::read_dir(rialto.data()).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.is_file()).any(|path| {
        let bytes = std::fs::read(path).unwrap();
        bytes.windows(text.len()).any(|window| window == text.as_bytes())
    })
}

#[test]
fn somebody_at_the_command_line_approves_a_call_that_was_made_over_a2a() {
    let (rialto, token) = guarded(&["--by", "the ops team"]);
    let server = rialto.serve(&[]);
    let said = json!({ "kind": "data", "data": { "key": SECRET, "a": "b" } });
    let sent = a2a(&server, &token, "message/send", &message("m-1", None, &said));
    let task = sent["result"]["id"].as_str().unwrap().to_owned();
    assert_eq!(sent["result"]["status"]["state"], "input-required", "{sent}");
    let asked = &sent["result"]["status"]["message"];
    assert_eq!(asked["parts"][1]["data"]["tool"], "up");
    assert_eq!(asked["parts"][1]["data"]["arguments"], json!({ "key": "[redacted]", "a": "b" }));
    assert_eq!(asked["metadata"]["rialto/approval"]["by"], json!(["the ops team"]));
    let own = a2a(&server, &token, "message/send", &message("m-2", Some(&task), &text("approve")));
    assert_eq!(own["result"]["status"]["state"], "input-required", "it may not: {own}");
    let listed = rialto.json(&["approvals", "list", "--json"]);
    let id = listed[0]["id"].as_str().unwrap();
    assert_eq!((&listed[0]["tool"], &listed[0]["caller"]), (&json!("up"), &json!("ann")));
    assert!(rialto.cli(&["approvals", "show", id]).ok().out.contains("the ops team"));
    assert!(!is_kept(&rialto, SECRET), "what waits is sealed");
    assert!(rialto.json(&["secrets", "list", "--json"]).as_array().unwrap().is_empty());
    rialto.cli(&["approvals", "approve", id, "--reason", "checked"]).ok();
    let done = until_over(&server, &token, &task);
    assert_eq!(done["status"]["state"], "completed", "{done}");
    assert!(done["artifacts"].to_string().contains(&SECRET.to_uppercase()), "{done}");
    let late = rialto.cli(&["approvals", "deny", id]).exit(1);
    assert!(late.err.contains("was decided before: it is approved by olga"), "{}", late.err);
    let record = rialto.json(&["audit", "--caller", "olga", "--outcome", "completed", "--json"]);
    let first = record.as_array().unwrap().first().unwrap();
    assert_eq!(
        (&first["event"]["verb"], &first["event"]["args"]["reason"]),
        (&json!("approve_call"), &json!("checked"))
    );
}

#[test]
fn the_api_decides_for_those_whom_a_policy_permits_it() {
    let (rialto, token) = guarded(&["--by", "the ops team"]);
    let server = rialto.serve(&[]);
    let waits = call(&server, &token, &json!({ "a": "b" }));
    assert_eq!(waits.status, 202, "{waits:?}");
    let waits: Value = serde_json::from_str(&waits.body).unwrap();
    let url = format!("{}/api/v1/approvals", server.url);
    let ask = |token: &str| http::get_with(&url, None, &[("Authorization", &format!("Bearer {token}"))]);
    assert_eq!(http::get(&url).unwrap().status, 401);
    assert_eq!(ask(&token).status, 403, "it lacks the scope");
    rialto.cli(&["policy", "remove", "allow-admin-all"]).ok();
    let refused = ask("owners-token-of-at-least-32-characters");
    assert!(refused.status == 403 && refused.body.contains("approve_call"), "{refused:?}");
    assert!(refused.head.contains("application/problem+json"), "{}", refused.head);
    rialto.cli(&["policy", "add", "allow-admin", "approve_call", "--caller", "owner"]).ok();
    let listed: Value = serde_json::from_str(&ask("owners-token-of-at-least-32-characters").body).unwrap();
    let id = listed["approvals"][0]["id"].as_str().unwrap();
    assert_eq!(listed["approvals"][0]["state"], "waiting");
    let bearer = [("Authorization", "Bearer owners-token-of-at-least-32-characters")];
    let denied = http::post(&format!("{url}/{id}/deny"), &bearer, r#"{"reason":"not today"}"#);
    assert_eq!(denied.status, 200, "{denied:?}");
    let again = http::post(&format!("{url}/{id}/approve"), &bearer, "");
    assert_eq!(again.status, 409, "{again:?}");
    assert_eq!(http::post(&format!("{url}/apr_9/approve"), &bearer, "").status, 404);
    let task = until_over(&server, &token, waits["taskId"].as_str().unwrap());
    assert_eq!(task["status"]["state"], "failed");
    assert!(task.to_string().contains("up was denied by owner: not today"), "{task}");
    let listed: Value = serde_json::from_str(&ask("owners-token-of-at-least-32-characters").body).unwrap();
    assert_eq!(listed["approvals"], json!([]));
}

#[test]
fn a_caller_approves_its_own_call_where_nobody_else_is_named() {
    let (rialto, token) = guarded(&["--by", "caller"]);
    let server = rialto.serve(&[]);
    for (word, expected) in [("Approve", "completed"), ("deny", "failed")] {
        let said = json!({ "kind": "data", "data": { "a": word } });
        let sent = a2a(&server, &token, "message/send", &message(&format!("m-{word}"), None, &said));
        let task = sent["result"]["id"].as_str().unwrap().to_owned();
        let perhaps = message(&format!("p-{word}"), Some(&task), &text("perhaps"));
        let perhaps = a2a(&server, &token, "message/send", &perhaps);
        assert_eq!(perhaps["result"]["status"]["state"], "input-required", "{perhaps}");
        let answer = message(&format!("a-{word}"), Some(&task), &text(word));
        a2a(&server, &token, "message/send", &answer);
        assert_eq!(until_over(&server, &token, &task)["status"]["state"], expected);
    }
}

#[test]
fn a_call_that_waits_outlives_the_server_and_expires() {
    let (rialto, token) = guarded(&["--by", "the ops team"]);
    let server = rialto.serve(&[]);
    let args = json!({ "key": SECRET });
    let waits: Value = serde_json::from_str(&call(&server, &token, &args).body).unwrap();
    server.kill();
    let server = rialto.serve(&[]);
    let id = rialto.json(&["approvals", "list", "--json"])[0]["id"].as_str().unwrap().to_owned();
    rialto.cli(&["approvals", "approve", &id]).ok();
    let done = until_over(&server, &token, waits["taskId"].as_str().unwrap());
    assert!(done["artifacts"].to_string().contains(&SECRET.to_uppercase()), "{done}");
    drop(server);
    let rialto = rialto.with("RIALTO_APPROVALS__TIMEOUT_SECS", "1");
    let server = rialto.serve(&[]);
    let waits: Value = serde_json::from_str(&call(&server, &token, &json!({})).body).unwrap();
    let over = until_over(&server, &token, waits["taskId"].as_str().unwrap());
    assert_eq!(over["status"]["state"], "failed");
    assert!(over.to_string().contains("up was not approved: nobody decided before"), "{over}");
}

#[test]
fn without_a_server_the_command_line_carries_out_what_it_approves() {
    let (rialto, _) = guarded(&[]);
    let waits = rialto.cli(&["call", "up", r#"{"a":"b"}"#]);
    assert!(waits.err.contains("The call waits for approval"), "{waits:?}");
    let id = rialto.json(&["approvals", "list", "--json"])[0]["id"].as_str().unwrap().to_owned();
    let done = rialto.cli(&["approvals", "approve", &id]).ok();
    assert!(done.out.contains(r#""A""#), "{done:?}");
    assert_eq!(rialto.json(&["approvals", "list", "--json"]), json!([]));
}

#[test]
fn a_person_at_an_mcp_client_is_given_the_choice() {
    let (rialto, token) = guarded(&["--by", "caller"]);
    let server = rialto.serve(&[]);
    let capabilities = json!({ "elicitation": { "form": {} } });
    let meta = json!({ "io.modelcontextprotocol/clientCapabilities": capabilities });
    let params = json!({ "name": "up", "arguments": { "a": "b" }, "_meta": meta });
    let asked = server.request("/mcp", "tools/call", params.clone(), Some(&token));
    let asked = crate::harness::server::message(&asked);
    let request = &asked["result"]["inputRequests"]["answer"]["params"];
    assert_eq!(
        request["requestedSchema"]["properties"]["decision"]["enum"],
        json!(["approve", "deny"]),
        "{asked}"
    );
    let mut answer = params;
    answer["requestState"] = asked["result"]["requestState"].clone();
    answer["inputResponses"] =
        json!({ "answer": { "action": "accept", "content": { "decision": "approve" } } });
    let done = crate::harness::server::message(&server.request("/mcp", "tools/call", answer, Some(&token)));
    assert!(done["result"]["content"].to_string().contains("\\\"A\\\""), "{done}");
}
