//! Coding agents on this machine, driven over A2A.

use serde_json::{Value, json};

use crate::harness::{
    coding_agent::CodingAgent,
    http,
    rialto::Rialto,
    server::{ServerProcess, message},
    until,
};

fn house(more: &str) -> (Rialto, CodingAgent, ServerProcess) {
    let rialto = Rialto::fresh().with("PATH", "/usr/bin:/bin");
    let coder = CodingAgent::configure(&rialto, more);
    let server = rialto.serve(&["--allow-no-auth"]);
    (rialto, coder, server)
}

fn a2a(server: &ServerProcess, method: &str, params: &Value) -> Value {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let answer = http::post(&format!("{}/a2a", server.url), &[], &body.to_string());
    let answer: Value =
        serde_json::from_str(&answer.body).unwrap_or_else(|error| panic!("{error}: {answer:?}"));
    assert!(answer.get("error").is_none(), "{answer}");
    answer["result"].clone()
}

/// Says something, in a context or a task.
fn say(server: &ServerProcess, place: &Value, parts: &Value) -> Value {
    let mut message = json!({ "messageId": fresh(), "role": "user", "kind": "message", "parts": parts });
    message.as_object_mut().unwrap().extend(place.as_object().unwrap().clone());
    let configuration = json!({ "blocking": true });
    a2a(
        server,
        "message/send",
        &json!({ "message": message, "configuration": configuration, "metadata": { "skillId": "coder.prompt" } }),
    )
}

fn text(text: &str) -> Value {
    json!([{ "kind": "text", "text": text }])
}

fn fresh() -> String {
    rialto_model::ids::fresh()
}

fn state(task: &Value) -> &str {
    task["status"]["state"].as_str().unwrap()
}

fn answer(task: &Value) -> &str {
    task["artifacts"][0]["parts"][0]["text"].as_str().unwrap_or_else(|| panic!("{task}"))
}

fn until_over(server: &ServerProcess, task: &Value) -> Value {
    let id = task["id"].clone();
    until("the task is over", || {
        let task = a2a(server, "tasks/get", &json!({ "id": id }));
        (!["working", "submitted", "input-required"].contains(&state(&task))).then_some(task)
    })
}

#[test]
fn a_coding_agent_is_on_the_card_and_answers_with_one_text() {
    let (_rialto, coder, server) = house("");
    let card = http::get(&format!("{}/.well-known/agent-card.json", server.url)).unwrap();
    let card: Value = serde_json::from_str(&card.body).unwrap();
    assert!(card["skills"].to_string().contains("prompt"), "{card}");
    assert!(coder.noted("starts").is_empty(), "it is started when it is needed");
    let task = say(&server, &json!({}), &text("please count"));
    assert_eq!(state(&task), "completed", "{task}");
    assert!(answer(&task).starts_with("turn 1 in s-"), "{task}");
    let hello: Value = serde_json::from_str(&coder.noted("hello")).unwrap();
    assert_eq!(
        hello["params"]["clientCapabilities"]["fs"],
        json!({ "readTextFile": false, "writeTextFile": false })
    );
}

#[test]
fn a_context_keeps_its_session_and_a_concurrent_task_gets_its_own() {
    let (_rialto, coder, server) = house("");
    let first = say(&server, &json!({ "contextId": "ctx-1" }), &text("please count"));
    let second = say(&server, &json!({ "contextId": "ctx-1" }), &text("please count"));
    let session = answer(&first).strip_prefix("turn 1 in ").unwrap().to_owned();
    assert_eq!(answer(&second), format!("turn 2 in {session}"));
    let other = say(&server, &json!({ "contextId": "ctx-2" }), &text("please count"));
    assert!(!answer(&other).contains(&session), "{other}");
    let message = json!({ "messageId": fresh(), "role": "user", "kind": "message", "contextId": "ctx-1", "parts": text("please hang") });
    let params = json!({ "message": message, "configuration": { "blocking": false }, "metadata": { "skillId": "coder.prompt" } });
    let hanging = a2a(&server, "message/send", &params);
    until("it hangs", || (coder.noted(&format!("turns-{session}")).lines().count() == 3).then_some(()));
    let beside = say(&server, &json!({ "contextId": "ctx-1" }), &text("please count"));
    assert!(answer(&beside).starts_with("turn 1 in ") && !answer(&beside).ends_with(&session), "{beside}");
    let canceled = a2a(&server, "tasks/cancel", &json!({ "id": hanging["id"] }));
    assert_eq!(state(&canceled), "canceled");
    assert_eq!(coder.noted("cancels").trim(), session);
}

#[test]
fn thoughts_tools_and_plans_are_progress() {
    let (_rialto, _coder, server) = house("");
    let message =
        json!({ "messageId": fresh(), "role": "user", "kind": "message", "parts": text("please think") });
    let params = json!({ "message": message, "metadata": { "skillId": "coder.prompt" } });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "message/stream", "params": params });
    let told: Vec<String> =
        http::lines_of(&format!("{}/a2a", server.url), &body.to_string()).unwrap().collect();
    let told = told.join("\n");
    for word in ["hm, well", "Read a.txt (in progress)", "- read (completed)", "rialto/acp", "thought"] {
        assert!(told.contains(word), "{word}: {told}");
    }
    assert!(!told.contains("rawInput"));
}

#[test]
fn a_wish_to_use_a_tool_waits_for_approval_in_the_same_turn() {
    let (rialto, _coder, server) = house("");
    for (word, expected) in [("approve", "removed"), ("deny", "kept")] {
        let asked = say(&server, &json!({}), &text("please remove"));
        assert_eq!(state(&asked), "input-required", "{asked}");
        let question = &asked["status"]["message"]["parts"][1]["data"];
        assert_eq!(question["tool"], "rm -r build");
        assert_eq!(question["arguments"], json!({ "command": "rm -r build", "token": "[redacted]" }));
        let place = json!({ "taskId": asked["id"] });
        let perhaps = say(&server, &place, &text("perhaps"));
        assert_eq!(state(&perhaps), "input-required", "{perhaps}");
        let done = say(&server, &place, &text(word));
        assert_eq!((state(&done), answer(&done)), ("completed", expected), "{done}");
    }
    let asked = say(&server, &json!({}), &text("please remove"));
    let waiting = rialto.json(&["approvals", "list", "--json"]);
    let id = waiting[0]["id"].as_str().unwrap();
    assert_eq!(waiting[0]["tool"], "rm -r build");
    rialto.cli(&["approvals", "approve", id]).ok();
    assert_eq!(answer(&until_over(&server, &asked)), "removed");
}

#[test]
fn wishes_can_be_settled_beforehand() {
    for (permission, expected) in [("allow", "removed"), ("deny", "kept")] {
        let (_rialto, _coder, server) = house(&format!("permission = \"{permission}\""));
        assert_eq!(answer(&say(&server, &json!({}), &text("please remove"))), expected);
    }
}

#[test]
fn files_and_data_arrive_as_attachments_with_a_header() {
    let (_rialto, coder, server) = house(
        "[[agents.local.skills]]\nid = \"review\"\ndescription = \"Reviews\"\ninstructions = \"Be strict.\"",
    );
    let parts = json!([
        { "kind": "text", "text": "please look" },
        { "kind": "file", "file": { "name": "notes.txt", "mimeType": "text/plain", "bytes": "aGVsbG8=" } },
        { "kind": "data", "data": { "a": 1, "b": 2 } },
    ]);
    let message = json!({ "messageId": fresh(), "role": "user", "kind": "message", "parts": parts });
    let params = json!({ "message": message, "configuration": { "blocking": true }, "metadata": { "skillId": "coder.review" } });
    let task = a2a(&server, "message/send", &params);
    assert_eq!(answer(&task), "seen");
    let prompt: Value = serde_json::from_str(&coder.noted("prompt")).unwrap();
    let blocks = &prompt["params"]["prompt"];
    assert_eq!(blocks[0]["text"], "Be strict.");
    assert_eq!(
        blocks[1]["text"],
        "Attached to this message:\n- notes.txt (text/plain, 5 bytes)\n- part-3.json (application/json, 13 bytes)"
    );
    assert_eq!(blocks[2]["text"], "please look");
    assert_eq!(blocks[3]["resource"]["text"], "hello");
    let parts = json!([{ "kind": "file", "file": { "name": "x", "mimeType": "image/png", "uri": "file:///etc/passwd" } }]);
    let refused = say(&server, &json!({}), &parts);
    assert_eq!(state(&refused), "failed");
    assert!(refused.to_string().contains("only addresses that begin with http or https"), "{refused}");
}

#[test]
fn an_agent_that_dies_fails_its_task_and_is_started_again_with_its_sessions() {
    let (_rialto, coder, server) = house("");
    let first = say(&server, &json!({ "contextId": "ctx-1" }), &text("please count"));
    let session = answer(&first).strip_prefix("turn 1 in ").unwrap().to_owned();
    let died = say(&server, &json!({ "contextId": "ctx-2" }), &text("please die"));
    assert_eq!(state(&died), "failed");
    assert!(died.to_string().contains("ended in the middle of its work"), "{died}");
    let again = say(&server, &json!({ "contextId": "ctx-1" }), &text("please count"));
    assert_eq!(answer(&again), format!("turn 2 in {session}"), "the session was loaded");
    assert_eq!(coder.noted("loads").trim(), session);
    assert_eq!(coder.noted("starts").lines().count(), 2);
    let refused = say(&server, &json!({}), &text("please refuse"));
    assert_eq!(state(&refused), "failed");
    assert!(refused.to_string().contains("the agent refused"), "{refused}");
}

#[test]
fn what_waited_in_a_server_that_was_killed_says_so() {
    let (rialto, _coder, server) = house("");
    let asked = say(&server, &json!({}), &text("please remove"));
    server.kill();
    let server = rialto.serve(&["--allow-no-auth"]);
    say(&server, &json!({ "taskId": asked["id"] }), &text("approve"));
    let over = until_over(&server, &asked);
    assert_eq!(state(&over), "failed");
    assert!(over.to_string().contains("the process in which the agent waited for this has ended"), "{over}");
}

#[test]
fn a_session_is_its_callers_alone_also_over_mcp() {
    let rialto = Rialto::fresh()
        .with("PATH", "/usr/bin:/bin")
        .with("RIALTO_TOKEN", "owners-token-of-at-least-32-characters");
    let _coder = CodingAgent::configure(&rialto, "");
    let token =
        |name: &str| rialto.json(&["tokens", "create", name, "--json"])["token"].as_str().unwrap().to_owned();
    let (ann, bob) = (token("ann"), token("bob"));
    let server = rialto.serve(&[]);
    let call = |token: &str, context: Option<&str>| {
        let arguments = json!({ "message": "please count", "a2a_context_id": context });
        let arguments = if context.is_some() { arguments } else { json!({ "message": "please count" }) };
        let params = json!({ "name": "coder.prompt", "arguments": arguments });
        let answer = message(&server.request("/mcp", "tools/call", params, Some(token)));
        let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"));
        text.to_owned()
    };
    let first = call(&ann, None);
    let session = first.strip_prefix("turn 1 in ").unwrap();
    assert_eq!(call(&ann, Some(session)), format!("turn 2 in {session}"));
    for _ in 0..2 {
        let others = call(&bob, Some(session));
        assert!(others.starts_with("turn 1 in ") && !others.ends_with(session), "{others}");
    }
}

#[test]
fn calls_that_others_led_to_get_a_program_that_counts_on() {
    let (_rialto, coder, server) = house("");
    let call = |hops: &str| {
        let message =
            json!({ "messageId": fresh(), "role": "user", "kind": "message", "parts": text("please count") });
        let params = json!({ "message": message, "metadata": { "skillId": "coder.prompt" } });
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "message/send", "params": params });
        http::post(&format!("{}/a2a", server.url), &[("Rialto-Hops", hops)], &body.to_string()).body
    };
    for hops in ["0", "2", "0", "2", "8"] {
        let answered = call(hops);
        assert_eq!(answered.contains("max_hops"), hops == "8", "{answered}");
    }
    assert_eq!(coder.noted("hops"), "1\n3\n", "one program for each depth");
}
