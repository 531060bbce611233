//! Agents that fail for a moment are served again a moment later.

use std::{
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::harness::{
    http,
    outcome::CallOutcome,
    rialto::Rialto,
    server::{self, ServerProcess, message},
    unreliable_agent::{FailureMode, UnreliableAgent},
    until,
};

/// Time between two calls of a steady load.
const CALL_INTERVAL: Duration = Duration::from_millis(25);

fn started(rialto: &Rialto) -> (UnreliableAgent, ServerProcess) {
    let agent = UnreliableAgent::start();
    rialto.trust(&agent.url);
    let server = rialto.serve(&["--allow-no-auth"]);
    until("the agent answers", || works(&server.mcp()).then_some(()));
    (agent, server)
}

fn works(mcp: &str) -> bool {
    let params = json!({ "name": "stumbling.work", "arguments": { "text": "do it" } });
    let answer = server::request(mcp, "tools/call", params, None, &[]);
    let answer = message(&answer);
    answer["result"].is_object() && answer["result"]["isError"] != true
}

/// Calls the agent again and again for a time; returns when each call was made, since the beginning, and whether it worked.
fn calls_for(server: &ServerProcess, time: Duration) -> Vec<(Duration, bool)> {
    let (begun, mut calls) = (Instant::now(), Vec::new());
    while begun.elapsed() < time {
        let at = begun.elapsed();
        calls.push((at, works(&server.mcp())));
        thread::sleep(CALL_INTERVAL);
    }
    calls
}

#[test]
fn callers_see_errors_for_about_as_long_as_an_agent_is_unavailable() {
    let rialto = Rialto::fresh();
    let (agent, server) = started(&rialto);
    agent.set(FailureMode::Unavailable);
    let during = calls_for(&server, Duration::from_millis(500));
    agent.set(FailureMode::Answers);
    let after = calls_for(&server, Duration::from_secs(3));
    assert!(during.len() >= 3 && during.iter().all(|(_, works)| !works), "{during:?}");
    let last_error = after.iter().filter(|(_, works)| !works).map(|(at, _)| *at).max().unwrap_or_default();
    assert!(
        last_error < Duration::from_millis(1500),
        "errors go on for {last_error:?} after the agent is back"
    );
    assert!(after.iter().filter(|(_, works)| *works).count() >= 10, "{after:?}");

    let metrics = http::get(&format!("{}/metrics", server.url)).unwrap().body;
    assert!(metrics.contains("rialto_breakers{state=\"closed\"} 1"), "{metrics}");
}

#[test]
fn an_agent_that_comes_and_goes_is_served_while_it_is_there() {
    let rialto = Rialto::fresh();
    let (agent, server) = started(&rialto);
    let (mut good, mut served) = (0, 0);
    for _ in 0..2 {
        agent.set(FailureMode::Unavailable);
        calls_for(&server, Duration::from_secs(3));
        agent.set(FailureMode::Answers);
        let calls = calls_for(&server, Duration::from_secs(3));
        good += calls.len();
        served += calls.iter().filter(|(_, works)| *works).count();
    }
    assert!(good >= 20, "{good}");
    assert!(served * 2 > good, "{served} of {good} calls were served while the agent was there");
}

#[test]
fn an_agent_that_left_calls_unanswered_is_served_when_it_answers_again() {
    let rialto =
        Rialto::fresh().with("RIALTO_AGENTS__MAX_IN_FLIGHT", "4").with("RIALTO_CALLS__TIMEOUT_MS", "2000");
    let (agent, server) = started(&rialto);
    let before = agent.messages();
    agent.set(FailureMode::Hangs);
    let mcp = server.mcp();
    let waiting: Vec<_> = (0..4)
        .map(|_| {
            let mcp = mcp.clone();
            thread::spawn(move || {
                let params = json!({ "name": "stumbling.work", "arguments": { "text": "do it" } });
                CallOutcome::of(message(&server::request(&mcp, "tools/call", params, None, &[])), Vec::new())
            })
        })
        .collect();
    until("the agent holds all calls", || (agent.messages() == before + 4).then_some(()));
    for late in waiting {
        late.join().unwrap().error(-32201, "RemoteA2ATimeoutError");
    }
    agent.set(FailureMode::Answers);
    let calls: Vec<bool> = (0..10).map(|_| works(&mcp)).collect();
    let served = calls.iter().filter(|works| **works).count();
    assert!(served >= 8, "{calls:?}");
}

#[test]
fn the_state_of_a_breaker_is_shown_with_its_agent_and_in_the_metrics() {
    // The card is served all the time: only the breaker notices that the agent fails.
    let rialto = Rialto::fresh().with("RIALTO_ROUTING__BREAKER_PAUSE_SECS", "600");
    let rialto = rialto.with("RIALTO_ROUTING__BREAKER_LONGEST_SECS", "600");
    let (agent, server) = started(&rialto);
    let shown = || -> Value {
        let answer = http::get(&format!("{}/api/v1/agents/stumbling", server.url)).unwrap();
        serde_json::from_str(&answer.body).unwrap()
    };
    assert_eq!(shown()["breaker"]["state"], "closed");
    agent.set(FailureMode::Breaks);
    until("its breaker is open", || {
        works(&server.mcp());
        (shown()["breaker"]["state"] == "open").then_some(())
    });
    let breaker = &shown()["breaker"];
    assert_eq!(breaker["opened"], 1);
    assert!(breaker["until"].is_string() && breaker["reason"].as_str().unwrap().contains("503"), "{breaker}");
    let before = agent.messages();
    assert!(!works(&server.mcp()));
    assert_eq!(agent.messages(), before, "an open breaker lets nothing through");
    let metrics = http::get(&format!("{}/metrics", server.url)).unwrap().body;
    assert!(metrics.contains("rialto_breakers{state=\"open\"} 1"), "{metrics}");
    assert!(metrics.contains("rialto_breaker_opened_total{"), "{metrics}");
}
