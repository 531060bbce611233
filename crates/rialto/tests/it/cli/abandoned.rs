//! Commands and servers on stdin that end, or are killed, while tasks are in progress: no task stays open without an owner.

use std::fs;

use serde_json::{Value, json};

use crate::harness::{agent::SampleAgent, rialto::Rialto, until};

/// A folder whose function `slow` takes longer than anybody waits, and leaves a file once it has begun.
fn folder() -> Rialto {
    let rialto = Rialto::fresh();
    let slow = "[[functions]]\nname = \"slow\"\ncommand = [\"sh\", \"-c\", \"touch begun; exec sleep 60\"]\n";
    fs::write(rialto.folder().join("rialto.toml"), slow).unwrap();
    rialto
}

/// The only task.
fn task(rialto: &Rialto) -> Option<Value> {
    rialto.json(&["tasks", "list", "--json"]).as_array().unwrap().first().cloned()
}

/// The failure of the only task, once it has failed.
fn failed(rialto: &Rialto) -> String {
    let task = until("it has failed", || task(rialto).filter(|task| task["state"] == "failed"));
    let shown = rialto.json(&["tasks", "show", task["id"].as_str().unwrap(), "--json"]);
    shown["failure"]["message"].as_str().unwrap().to_owned()
}

/// The files by which processes show that they are at work.
fn shown(rialto: &Rialto) -> usize {
    let names = fs::read_dir(rialto.data()).unwrap().map(|entry| entry.unwrap().file_name());
    names.filter(|name| name.to_str().unwrap().starts_with("runner-")).count()
}

#[test]
fn what_runs_in_a_command_ends_when_the_command_waits_no_longer() {
    let rialto = folder();
    let said = rialto.cli(&["call", "slow", "{}", "--timeout-ms", "300"]).exit(6);
    assert!(said.err.contains("it was ended, because it runs only as long as this command"), "{}", said.err);
    assert!(failed(&rialto).contains("took longer than 300 ms"));
    assert_eq!(shown(&rialto), 0, "a command that is over leaves nothing behind");
}

#[test]
fn a_command_that_waits_no_longer_says_how_to_fetch_what_an_agent_goes_on_with() {
    let (rialto, agent) = (Rialto::fresh(), SampleAgent::named("Desk"));
    agent.learn("later");
    rialto.trust(&agent.url);
    let said = rialto.cli(&["call", "desk.later", r#"{"ms":1500}"#, "--timeout-ms", "300"]).exit(6);
    let id = task(&rialto).unwrap()["id"].as_str().unwrap().to_owned();
    assert!(said.err.contains(&format!("`rialto tasks show {id}` fetches its result")), "{}", said.err);
    until("it is done", || {
        (rialto.json(&["tasks", "show", &id, "--json"])["state"] == "completed").then_some(())
    });
}

#[test]
fn what_a_killed_command_leaves_is_ended_by_a_server() {
    let rialto = folder();
    let server = rialto.serve(&["--allow-no-auth"]);
    let mut call = rialto.start(&["call", "slow", "{}"]);
    until("it runs", || rialto.folder().join("begun").exists().then_some(()));
    let state = task(&rialto).unwrap()["state"].clone();
    assert!(["submitted", "working"].iter().any(|open| state == *open), "{state}: {}", server.log());
    call.kill();
    let why = failed(&rialto);
    assert!(why.contains("the process stopped while this ran"), "{why}");
}

#[test]
fn what_an_agent_does_for_a_killed_command_is_followed_by_a_server() {
    let (rialto, agent) = (Rialto::fresh(), SampleAgent::named("Desk"));
    agent.learn("later");
    rialto.trust(&agent.url);
    let _server = rialto.serve(&["--allow-no-auth"]);
    let mut call = rialto.start(&["call", "desk.later", r#"{"ms":1500}"#]);
    until("the agent has begun", || {
        let head = task(&rialto)?;
        let shown = rialto.json(&["tasks", "show", head["id"].as_str()?, "--json"]);
        shown["remoteTaskId"].is_string().then_some(())
    });
    call.kill();
    // Nobody asks the agent but the server: listing does not.
    until("it is done", || task(&rialto).filter(|task| task["state"] == "completed"));
}

#[test]
fn what_a_killed_server_on_stdin_leaves_is_ended_by_the_next() {
    let rialto = folder();
    let mut first = rialto.mcp(&[]);
    first.initialize();
    let call = json!({
        "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": { "name": "slow", "arguments": {} }
    });
    first.write(call.to_string().as_bytes());
    until("it runs", || rialto.folder().join("begun").exists().then_some(()));
    first.kill();
    let mut next = rialto.mcp(&[]);
    next.initialize();
    let why = failed(&rialto);
    assert!(why.contains("the process stopped while this ran"), "{why}");
    next.leave();
    assert_eq!(shown(&rialto), 0, "what was left behind was taken away");
}
