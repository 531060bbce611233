//! Shutdown of a server: calls in progress end, or are detached, and every caller receives a response.

use std::{thread, time::Instant};

use serde_json::{Value, json};

use crate::harness::{
    agent::SampleAgent,
    http,
    outcome::CallOutcome,
    rialto::Rialto,
    server::{self, ServerProcess, message},
    until,
};

/// Calls a tool from a thread of its own.
fn call(server: &ServerProcess, tool: &str, arguments: Value) -> thread::JoinHandle<CallOutcome> {
    let (url, tool) = (server.mcp(), tool.to_owned());
    thread::spawn(move || {
        let params = json!({ "name": tool, "arguments": arguments });
        CallOutcome::of(message(&server::request(&url, "tools/call", params, None, &[])), Vec::new())
    })
}

fn drain(server: &ServerProcess) -> Value {
    server.signal("TERM");
    let answer = until("it says that it is draining", || {
        http::get(&format!("{}/readyz", server.url)).filter(|answer| answer.status == 503)
    });
    serde_json::from_str(&answer.body).unwrap()
}

fn world(drain_secs: &str) -> (Rialto, SampleAgent, ServerProcess) {
    let rialto = Rialto::fresh().with("RIALTO_SERVER__DRAIN_SECS", drain_secs);
    let agent = SampleAgent::named("Desk");
    agent.learn("later");
    rialto.trust(&agent.url);
    let server = rialto.serve(&["--allow-no-auth"]);
    (rialto, agent, server)
}

#[test]
fn a_call_under_way_is_answered_before_the_server_ends() {
    let (_rialto, agent, mut server) = world("30");
    let calling = call(&server, "desk.slow", json!({ "ms": 1500 }));
    until("the agent has heard of it", || (!agent.heard().is_empty()).then_some(()));
    let told = drain(&server);
    assert_eq!(told["reasons"][0]["check"], "draining");
    let refused = server.request("/mcp", "tools/list", json!({}), None);
    assert_eq!((refused.status, refused.body.contains("\"draining\"")), (503, true), "{refused:?}");
    assert!(refused.head.contains("\r\nretry-after: 1"), "{}", refused.head);
    assert_eq!(calling.join().unwrap().text(), "done at last");
    assert!(server.end().success());
}

#[test]
fn a_call_that_outlasts_the_stop_is_handed_back_and_fetched_after_a_restart() {
    let (rialto, agent, mut server) = world("1");
    let calling = call(&server, "desk.later", json!({ "ms": 4000 }));
    until("the agent has heard of it", || (!agent.heard().is_empty()).then_some(()));
    server.signal("TERM");
    let handed_back = calling.join().unwrap();
    let error = handed_back.error(-32201, "RemoteA2ATimeoutError");
    assert!(handed_back.complaint().contains("stopping"), "{error}");
    assert_eq!(error["data"]["remoteTaskId"], "task-1");
    let task = error["data"]["taskId"].clone();
    assert!(server.end().success());

    let again = rialto.serve(&["--allow-no-auth"]);
    let done = until("the task is done", || {
        let seen = again.call("get_task", &json!({ "task_id": task }));
        (seen.data()["state"] == "completed").then_some(seen)
    });
    assert_eq!(done.text(), "done at last");
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let (_rialto, agent, mut server) = world("600");
    let calling = call(&server, "desk.later", json!({ "ms": 600_000 }));
    until("the agent has heard of it", || (!agent.heard().is_empty()).then_some(()));
    drain(&server);
    let begun = Instant::now();
    server.signal("TERM");
    assert_eq!(server.end().code(), Some(1));
    assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
    assert!(server.log().contains("second signal"), "{}", server.log());
    assert!(calling.join().is_err(), "its connection was cut");
}

/// Asks for the list of tools on a connection of its own. Returns the status, and whether the connection is to be closed.
fn listed(server: &ServerProcess) -> (u16, bool) {
    let answer = server.request("/mcp", "tools/list", json!({}), None);
    (answer.status, answer.head.to_ascii_lowercase().contains("\r\nconnection: close"))
}

#[test]
fn requests_are_served_while_load_balancers_learn_that_the_server_stops() {
    let rialto = Rialto::fresh().with("RIALTO_SERVER__SHUTDOWN_GRACE_SECS", "3");
    let mut server = rialto.serve(&["--allow-no-auth"]);
    assert_eq!(listed(&server), (200, false));
    let begun = Instant::now();
    assert_eq!(drain(&server)["reasons"][0]["check"], "draining");
    let mut served = 0;
    while begun.elapsed().as_millis() < 2_500 {
        assert_eq!(listed(&server), (200, true), "{served} were served");
        served += 1;
    }
    assert!(served > 5, "{served}");
    assert!(server.end().success());
    assert!(begun.elapsed().as_secs() >= 3, "{:?}", begun.elapsed());
}

#[test]
fn a_person_at_a_terminal_waits_for_no_load_balancer() {
    let rialto = Rialto::fresh().with("RIALTO_SERVER__SHUTDOWN_GRACE_SECS", "60");
    let mut server = rialto.serve(&["--allow-no-auth"]);
    let begun = Instant::now();
    server.signal("INT");
    assert!(server.end().success());
    assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
}
