//! Programs that are placed on nodes: what every store must show of them.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{http, mcp_upstream::McpUpstream, nodes, rialto::Rialto, server::ServerProcess, until};

/// A function that answers with the process id of the server that runs it.
const WHERE: &str =
    "[[functions]]\nname = \"where\"\ncommand = [\"sh\", \"-c\", \"cat >/dev/null; echo $PPID\"]\n";

/// A program whose node is gone runs elsewhere by then.
const MOVED: Duration = Duration::from_secs(5);

/// A call goes to the node that may run its program; without it, it is refused with the names of such nodes.
pub(crate) fn check_pins(machines: [&Rialto; 2]) {
    configure(machines, &format!("{WHERE}nodes = [\"a\"]\n"));
    let (first, second) = servers(machines);
    for server in [&first, &second] {
        assert_eq!(server.call("where", &json!({})).data(), &json!(first.pid()));
    }
    first.kill();
    let refused = until("its lease is over", || {
        let answer = http::post(&format!("{}/call/where", second.url), &[], "{}");
        answer.body.contains("a (lost)").then_some(answer)
    });
    let expected = "function:where runs on these nodes only: a (lost); start one of them";
    assert!(refused.body.contains(expected), "{}", refused.body);
}

/// A program runs on one node, and on another once that is gone.
pub(crate) fn check_singleton(machines: [&Rialto; 2]) {
    configure(machines, &format!("{WHERE}singleton = true\n"));
    let (first, second) = servers(machines);
    let place = |server: &ServerProcess| server.call("where", &json!({})).data().clone();
    assert_eq!(place(&second), json!(second.pid()), "it begins where it is wanted first");
    for _ in 0..3 {
        assert_eq!(place(&first), json!(second.pid()), "and stays there");
    }
    second.kill();
    let killed_at = Instant::now();
    let answer = http::post(&format!("{}/call/where", first.url), &[], "{}");
    assert!(answer.body.contains(&first.pid().to_string()), "{answer:?}");
    assert!(killed_at.elapsed() <= MOVED, "{:?}", killed_at.elapsed());
}

/// A stdio server on one node is called, asks and is cancelled from another.
pub(crate) fn check_stdio_server(machines: [&Rialto; 2]) {
    let upstream = McpUpstream::new(machines[0], "files", &["echo", "ask", "hang"]);
    configure(machines, &format!("{}nodes = [\"a\"]\n", upstream.entry()));
    let (first, second) = servers(machines);
    until("its tools are listed", || second.list().iter().any(|name| name == "hang").then_some(()));
    assert_eq!(second.call("echo", &json!({})).text(), "hello from files");
    // It asks its caller, and the answer finds the process that waits for it.
    let asked = send(&second, "ask", &json!({}), None, false);
    assert_eq!(asked["status"]["state"], "TASK_STATE_INPUT_REQUIRED", "{asked}");
    let answered = send(&second, "ask", &json!({ "color": "green" }), asked["id"].as_str(), false);
    assert_eq!(answered["status"]["state"], "TASK_STATE_COMPLETED", "{answered}");
    assert!(answered.to_string().contains("green it is"), "{answered}");
    // A cancellation reaches it too.
    let hanging = send(&second, "hang", &json!({}), None, true);
    upstream.noted("hung");
    let cancelled = a2a(&second, "CancelTask", &json!({ "id": hanging["id"] }));
    assert_eq!(cancelled["result"]["status"]["state"], "TASK_STATE_CANCELED", "{cancelled}");
    upstream.noted("cancelled");
    drop(first);
}

/// A program that is lost on the way: its caller is told that it may have been done.
pub(crate) fn check_lost_call(machines: [&Rialto; 2]) {
    let upstream = McpUpstream::new(machines[0], "files", &["hang"]);
    configure(machines, &format!("{}nodes = [\"a\"]\n", upstream.entry()));
    let (first, second) = servers(machines);
    until("its tools are listed", || second.list().iter().any(|name| name == "hang").then_some(()));
    let task = send(&second, "hang", &json!({}), None, true);
    upstream.noted("hung");
    first.kill();
    let ended = until("it ends", || {
        let task = a2a(&second, "GetTask", &json!({ "id": task["id"] }));
        (task["result"]["status"]["state"] == "TASK_STATE_FAILED").then_some(task)
    });
    assert!(
        ended.to_string().contains("the node that ran this has stopped; it may have been done"),
        "{ended}"
    );
}

fn configure(machines: [&Rialto; 2], text: &str) {
    for machine in machines {
        std::fs::write(machine.folder().join("rialto.toml"), text).unwrap();
    }
}

fn servers([first, second]: [&Rialto; 2]) -> (ServerProcess, ServerProcess) {
    let serve = |rialto, name| nodes::serve_named(rialto, name, &["--allow-no-auth"]);
    (serve(first, "a"), serve(second, "b"))
}

/// Sends a message to a tool over A2A, and answers its task.
fn send(server: &ServerProcess, tool: &str, data: &Value, task: Option<&str>, at_once: bool) -> Value {
    let id = format!("m-{tool}-{}", task.unwrap_or("new"));
    let mut message = json!({ "messageId": id, "role": "ROLE_USER", "parts": [{ "data": data }] });
    if let Some(task) = task {
        message["taskId"] = json!(task);
    }
    let params = json!({
        "message": message, "configuration": { "returnImmediately": at_once }, "metadata": { "skillId": tool },
    });
    let mut answer = a2a(server, "SendMessage", &params);
    assert!(answer["result"]["task"].is_object(), "{answer}");
    answer["result"]["task"].take()
}

fn a2a(server: &ServerProcess, method: &str, params: &Value) -> Value {
    let headers = [("content-type", "application/json"), ("a2a-version", "1.0")];
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let answer = http::post(&format!("{}/a2a", server.url), &headers, &request.to_string());
    serde_json::from_str(&answer.body).unwrap_or_else(|error| panic!("{error}: {}", answer.body))
}
