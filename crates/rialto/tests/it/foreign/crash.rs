//! kill -9 in the middle of many calls: what was acknowledged is there, whole.

use serde_json::{Value, json};

use crate::harness::{
    client::{McpClient, McpEra, Sdk},
    foreign_agent::ForeignAgent,
    rialto::Rialto,
    store_reader::consistent_heads,
    until,
};

const CALLS: usize = 64;

/// Every second call writes ten events a second, so that the kill meets a store that is being written to.
const STEPS: usize = 40;

#[test]
fn killed_in_the_middle_of_64_calls_it_knows_every_one_of_them_and_brings_them_to_their_end() {
    let agent = ForeignAgent::start("py_1_3", &[]);
    let rialto = Rialto::fresh();
    rialto.trust(&agent.url);
    killed_in_the_middle(&rialto);

    let heads = consistent_heads(&rialto.data());
    assert_eq!(heads.len(), CALLS);
    assert!(heads.values().all(|head| !head.state.is_terminal()), "{heads:?}");
    let server = rialto.serve(&["--allow-no-auth"]);
    assert!(server.list().contains(&"py13_agent.slow".to_owned()));
    let findings = rialto.json(&["doctor", "--json"]);
    let store = findings.as_array().unwrap().iter().find(|finding| finding["what"] == "store").unwrap();
    assert_eq!(store["level"], "ok");

    let tasks = listed(&rialto);
    assert_eq!(tasks.len(), CALLS);
    let is_named = |task: &&Value| heads[task["id"].as_str().unwrap()].remote.task_id.is_some();
    assert!(tasks.iter().any(|task| is_named(&task)), "the server died before any call was under way");
    for task in &tasks {
        // The next server has taken it over: an agent that has named it is asked, everything else ends with the reason.
        let over = if is_named(&task) { "completed" } else { "failed" };
        let id = task["id"].as_str().unwrap();
        let done = until("the task is over", || {
            let seen = rialto.json(&["tasks", "show", id, "--json"]);
            (seen["state"] == over).then_some(seen)
        });
        if is_named(&task) {
            assert_eq!(result_of(&done), expected_of(task), "{done}");
        } else {
            assert!(done.to_string().contains("the process stopped while this ran"), "{done}");
        }
    }
    consistent_heads(&rialto.data());
}

/// Kills a server as soon as all calls are written down, and at least some are under way.
fn killed_in_the_middle(rialto: &Rialto) {
    let server = rialto.serve(&["--allow-no-auth"]);
    let mut client = McpClient::start(Sdk::Python, McpEra::Auto, &server.door());
    for id in (1..).take(CALLS) {
        let (tool, args) = if id % 2 == 0 {
            ("py13_agent.slow", json!({ "seconds": 5 }))
        } else {
            ("py13_agent.count", json!({ "steps": STEPS }))
        };
        client.begin(id, tool, &args);
    }
    until("64 tasks are written down", || {
        let tasks = listed(rialto);
        let under_way = tasks.iter().filter(|task| task["state"] == "working").count();
        (tasks.len() == CALLS && under_way > 0).then_some(())
    });
    server.kill();
}

fn listed(rialto: &Rialto) -> Vec<Value> {
    let mut tasks = rialto.json(&["tasks", "list", "--limit", "100", "--json"]);
    std::mem::take(tasks.as_array_mut().unwrap())
}

/// All text a task has made.
fn result_of(task: &Value) -> String {
    let artifacts = task["artifacts"].as_array().unwrap().iter();
    let parts = artifacts.flat_map(|artifact| artifact["parts"].as_array().unwrap());
    parts.filter_map(|part| part["content"]["text"].as_str()).collect()
}

/// What an undisturbed call would have brought: no chunk twice, none missing.
fn expected_of(task: &Value) -> String {
    if task["skill"] == "slow" {
        return "done at last".to_owned();
    }
    (1..=STEPS).map(|step| step.to_string()).collect::<Vec<_>>().join(" ")
}
