//! Agents that are gone, slow, or make no sense: each has its own code, through both doors.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::harness::{
    client::{McpClient, McpEra, Sdk},
    foreign_agent::ForeignAgent,
    outcome::CallOutcome,
    rialto::Rialto,
    until,
};

#[test]
fn an_agent_that_died_after_registration_is_a_transport_error() {
    let mut agent = ForeignAgent::start("py_1_3", &[]);
    let (mut clients, _rialto) = clients_of(std::slice::from_ref(&agent), "30000");
    agent.kill();
    for client in &mut clients {
        // The first call finds out, the second is told what is known by then.
        for _ in 0..2 {
            let dead = client.call("py13_agent.echo", &json!({}));
            dead.error(-32202, "RemoteA2ATransportError");
        }
        let again = client.call("send_message", &json!({ "agent": "py13_agent", "message": "echo" }));
        again.error(-32202, "RemoteA2ATransportError");
    }
}

#[test]
fn nonsense_is_an_invalid_response() {
    each_breaks("nonsense", &["minimal", "0.3", "1.0"], |outcome| {
        outcome.error(-32203, "RemoteA2AInvalidResponseError");
    });
}

#[test]
fn json_without_an_envelope_is_an_invalid_response() {
    each_breaks("no-envelope", &["minimal", "0.3", "1.0"], |outcome| {
        outcome.error(-32203, "RemoteA2AInvalidResponseError");
    });
}

#[test]
fn an_http_error_is_a_transport_error_with_its_status() {
    each_breaks("http500", &["minimal", "0.3", "1.0"], |outcome| {
        let error = outcome.error(-32202, "RemoteA2ATransportError");
        assert!(error.to_string().contains("500"), "{error}");
    });
}

#[test]
fn an_agent_that_never_answers_is_a_timeout_with_a_task_id_and_a_sign_of_life_before() {
    each_breaks("hang", &["minimal", "1.0"], |outcome| {
        let error = outcome.error(-32201, "RemoteA2ATimeoutError");
        assert!(error["data"]["taskId"].is_string(), "{error}");
        assert!(!outcome.progress.is_empty(), "a client must hear that the call still runs");
    });
}

#[test]
fn a_stream_that_breaks_off_is_taken_up_again() {
    let kinds = [("0.3", "refuse"), ("0.3", "follow"), ("1.0", "refuse"), ("1.0", "follow")];
    let agents = kinds.map(|(card, resubscribe)| {
        ForeignAgent::start(
            "broken",
            &["--mode", "midstream-cut", "--card", card, "--resubscribe", resubscribe],
        )
    });
    let (mut clients, _rialto) = clients_of(&agents, "30000");
    for client in &mut clients {
        for tool in skills_named(client, "work") {
            assert_eq!(client.call(&tool, &json!({})).text(), "finished all the same", "{tool}");
        }
    }
}

#[test]
fn an_executor_that_crashes_is_an_error_within_seconds() {
    let kinds = ["crashing_0_3", "crashing_0_2"];
    let agents: Vec<ForeignAgent> = kinds
        .into_iter()
        .flat_map(|kind| {
            ["at_once", "submitted", "working"].map(|when| ForeignAgent::start(kind, &["--when", when]))
        })
        .collect();
    let (mut clients, _rialto) = clients_of(&agents, "30000");
    for client in &mut clients {
        let tools = skills_named(client, "work");
        assert_eq!(tools.len(), agents.len());
        for tool in tools {
            let begun = Instant::now();
            let outcome = client.call(&tool, &json!({}));
            let told = format!("{outcome:?}");
            assert!(told.contains("-32203") || told.contains("-32202"), "{tool}: {told}");
            assert!(told.contains("closed its stream without a result"), "{tool}: {told}");
            assert!(begun.elapsed() < Duration::from_secs(10), "{tool}: {:?}", begun.elapsed());
        }
    }
}

#[test]
fn a_slow_message_answers_with_its_task_and_get_task_brings_the_result() {
    let agent = ForeignAgent::start("py_0_3", &[]);
    let (mut clients, _rialto) = clients_of(std::slice::from_ref(&agent), "1000");
    for client in &mut clients {
        let sent = client.call("send_message", &json!({ "agent": "py03_agent", "message": "slow 3" }));
        assert_eq!(sent.data()["state"], "working");
        let task = sent.data()["task_id"].clone();
        let done = until("the task is done", || {
            let seen = client.call("get_task", &json!({ "task_id": task }));
            (seen.data()["state"] == "completed").then_some(seen)
        });
        assert_eq!(done.text(), "done at last");
    }
}

#[test]
fn the_agents_own_id_of_a_task_finds_it_too() {
    let agent = ForeignAgent::start("py_0_3", &[]);
    let (mut clients, _rialto) = clients_of(std::slice::from_ref(&agent), "30000");
    for client in &mut clients {
        let said = client.call("py03_agent.say", &json!({ "name": "Ann" }));
        let remote = said.result()["_meta"]["rialto/remoteTaskId"].clone();
        let seen = client.call("get_task", &json!({ "task_id": remote }));
        assert_eq!(seen.data()["task_id"], said.result()["_meta"]["rialto/taskId"]);
        let cancelled = client.call("cancel_task", &json!({ "task_id": remote }));
        cancelled.error(-32206, "ConflictError");
    }
}

/// Calls the one skill of each broken agent through both doors.
#[track_caller]
fn each_breaks(mode: &str, cards: &[&str], check: impl Fn(&CallOutcome)) {
    let start = |card: &&str| ForeignAgent::start("broken", &["--mode", mode, "--card", card]);
    let agents: Vec<ForeignAgent> = cards.iter().map(start).collect();
    let (mut clients, _rialto) = clients_of(&agents, "2500");
    for client in &mut clients {
        let tools = skills_named(client, "work");
        assert_eq!(tools.len(), cards.len());
        for tool in tools {
            check(&client.call(&tool, &json!({})));
        }
        // It has survived that.
        assert!(client.list().contains(&"list_agents".to_owned()));
    }
}

fn skills_named(client: &McpClient, skill: &str) -> Vec<String> {
    client.greeted_with().into_iter().filter(|tool| tool.ends_with(&format!(".{skill}"))).collect()
}

/// A client at each door of a program that knows the agents, and what must live as long as they do.
fn clients_of(agents: &[ForeignAgent], wall_clock: &str) -> ([McpClient; 2], impl Sized + use<>) {
    let homes = [(); 2].map(|()| {
        Rialto::fresh()
            .with("RIALTO_CALLS__TIMEOUT_MS", wall_clock)
            .with("RIALTO_CALLS__HEARTBEAT_SECS", "1")
            .with("RIALTO_CALLS__PROBE_INTERVAL_SECS", "3600")
    });
    let [alone, served] = &homes;
    let mut args = Vec::new();
    for agent in agents {
        served.trust(&agent.url);
        args.extend(["--agent", &agent.url]);
    }
    let server = served.serve(&["--allow-no-auth"]);
    let doors = [alone.stdio(&args), server.door()];
    (doors.map(|door| McpClient::start(Sdk::Python, McpEra::Auto, &door)), (server, homes))
}
