//! A client that calls its call off: the agent hears of it.

use serde_json::{Value, json};

use crate::harness::{
    client::{McpClient, McpEra, McpTransport, Sdk},
    foreign_agent::ForeignAgent,
    http,
    rialto::Rialto,
    until,
};

const CALL: u32 = 1;

/// Every kind of client, and two that have little in common.
const ALL: [(Sdk, McpEra); 4] = [
    (Sdk::Python, McpEra::Auto),
    (Sdk::Python, McpEra::Legacy),
    (Sdk::TypeScript, McpEra::Auto),
    (Sdk::TypeScript, McpEra::Legacy),
];
const TWO: [(Sdk, McpEra); 2] = [(Sdk::Python, McpEra::Auto), (Sdk::TypeScript, McpEra::Legacy)];

#[test]
fn a_call_that_is_called_off_is_canceled_at_an_agent_of_1_0() {
    let agent = ForeignAgent::start("py_1_3", &[]);
    cancels(&agent, "py13_agent.slow", &ALL, |task| {
        state_at(&agent, "GetTask", task) == "TASK_STATE_CANCELED"
    });
}

#[test]
fn a_call_that_is_called_off_is_canceled_at_an_agent_of_0_3() {
    let agent = ForeignAgent::start("py_0_3", &[]);
    cancels(&agent, "py03_agent.slow", &TWO, |task| state_at(&agent, "tasks/get", task) == "canceled");
}

#[test]
fn a_call_that_is_called_off_is_canceled_at_an_agent_of_0_1() {
    let agent = ForeignAgent::start("plain_0_1", &[]);
    cancels(&agent, "plain01_agent.slow", &TWO, |task| state_at(&agent, "tasks/get", task) == "canceled");
}

#[test]
fn cancel_task_cancels_at_the_agent_what_took_too_long() {
    let agent = ForeignAgent::start("js_1_3", &[]);
    let rialto = Rialto::fresh().with("RIALTO_CALLS__TIMEOUT_MS", "1000");
    let mut client = McpClient::start(Sdk::Python, McpEra::Auto, &rialto.stdio(&["--agent", &agent.url]));
    let late = client.call("js13_agent.slow", &json!({ "seconds": 60 }));
    let data = late.error(-32201, "RemoteA2ATimeoutError")["data"].clone();
    let cancelled = client.call("cancel_task", &json!({ "task_id": data["taskId"] }));
    assert_eq!(cancelled.data()["state"], "canceled");
    let state = state_at(&agent, "GetTask", data["remoteTaskId"].as_str().unwrap());
    assert_eq!(state, "TASK_STATE_CANCELED");
    let seen = client.call("get_task", &json!({ "task_id": data["taskId"] }));
    assert_eq!(seen.data()["state"], "canceled");
}

#[test]
fn a_call_from_the_command_line_is_canceled_at_the_agent_by_ctrl_c() {
    let agent = ForeignAgent::start("py_1_3", &[]);
    let rialto = Rialto::fresh();
    rialto.trust(&agent.url);
    let mut call = rialto.start(&["call", "py13_agent.slow", r#"{"seconds":60}"#]);
    until("the call is under way", || call.stderr().contains("this takes a while").then_some(()));
    call.signal("INT");
    assert_eq!(call.end().code(), Some(1), "{}", call.stderr());
    let task = rialto.json(&["tasks", "list", "--json"])[0].clone();
    assert_eq!(task["state"], "canceled");
    assert_eq!(
        state_at(&agent, "GetTask", task["remote"]["task_id"].as_str().unwrap()),
        "TASK_STATE_CANCELED"
    );
}

fn cancels(agent: &ForeignAgent, tool: &str, clients: &[(Sdk, McpEra)], is_canceled: impl Fn(&str) -> bool) {
    let served = Rialto::fresh();
    served.trust(&agent.url);
    let server = served.serve(&["--allow-no-auth"]);
    for &(sdk, era) in clients {
        let alone = Rialto::fresh();
        let doors: [(&Rialto, McpTransport); 2] =
            [(&alone, alone.stdio(&["--agent", &agent.url])), (&served, server.door())];
        for (rialto, door) in doors {
            let remote = cancel_one(rialto, &door, sdk, era, tool);
            assert!(is_canceled(&remote), "{sdk:?} {era:?} {door:?}");
        }
    }
}

/// Begins a call, calls it off, waits until that is written down, and answers the agent's id of the task.
fn cancel_one(rialto: &Rialto, door: &McpTransport, sdk: Sdk, era: McpEra, tool: &str) -> String {
    let mut client = McpClient::start(sdk, era, door);
    client.begin(CALL, tool, &json!({ "seconds": 60 }));
    client.hear_progress(CALL);
    client.cancel(CALL);
    let task = until("the call is off", || {
        let newest = rialto.json(&["tasks", "list", "--limit", "1", "--json"])[0].clone();
        (newest["state"] == "canceled").then_some(newest)
    });
    // The connection is as good as before.
    assert!(client.list().contains(&tool.to_owned()));
    client.leave();
    task["remote"]["task_id"].as_str().unwrap_or_else(|| panic!("no remote id: {task}")).to_owned()
}

/// What the agent itself says about a task.
fn state_at(agent: &ForeignAgent, method: &str, task: &str) -> String {
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": { "id": task } });
    let answer = http::post(&format!("{}/", agent.url), &[("A2A-Version", "1.0")], &request.to_string());
    let answer: Value = serde_json::from_str(&answer.body).unwrap();
    answer["result"]["status"]["state"].as_str().unwrap_or_else(|| panic!("no state: {answer}")).to_owned()
}
