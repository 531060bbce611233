//! Agents that are gone, slow, or make no sense: each has its own code, through both doors.

use serde_json::{Value, json};

use crate::harness::{
    client::{Era, McpClient, Sdk},
    outcome::Outcome,
    peer::Peer,
    rialto::Rialto,
    until,
};

#[test]
fn an_agent_that_died_after_registration_is_a_transport_error() {
    let mut agent = Peer::start("py_1_3", &[]);
    let (mut clients, _rialto) = clients_of(&agent.url, "30000");
    agent.kill();
    for client in &mut clients {
        // The first call finds out, the second is told what is known by then.
        for _ in 0..2 {
            let dead = client.call("py13_agent.echo", json!({}));
            dead.error(-32202, "RemoteA2ATransportError");
        }
        let again = client.call("send_message", json!({ "agent": "py13_agent", "message": "echo" }));
        again.error(-32202, "RemoteA2ATransportError");
    }
}

#[test]
fn nonsense_is_an_invalid_response() {
    for card in ["minimal", "0.3", "1.0"] {
        each_door("nonsense", card, |outcome| {
            drop(outcome.error(-32203, "RemoteA2AInvalidResponseError").clone())
        });
    }
}

#[test]
fn json_without_an_envelope_is_an_invalid_response() {
    for card in ["minimal", "0.3", "1.0"] {
        each_door("no-envelope", card, |outcome| {
            drop(outcome.error(-32203, "RemoteA2AInvalidResponseError").clone())
        });
    }
}

#[test]
fn an_http_error_is_a_transport_error_with_its_status() {
    for card in ["minimal", "0.3", "1.0"] {
        each_door("http500", card, |outcome| {
            let error = outcome.error(-32202, "RemoteA2ATransportError");
            assert!(error.to_string().contains("500"), "{error}");
        });
    }
}

#[test]
fn an_agent_that_never_answers_is_a_timeout_with_a_task_id() {
    each_door("hang", "minimal", |outcome| {
        let error = outcome.error(-32201, "RemoteA2ATimeoutError");
        assert!(error["data"]["taskId"].is_string(), "{error}");
    });
}

#[test]
fn a_stream_that_breaks_off_is_taken_up_again() {
    for (card, resubscribe) in [("0.3", "refuse"), ("0.3", "follow"), ("1.0", "refuse"), ("1.0", "follow")] {
        let args = ["--mode", "midstream-cut", "--card", card, "--resubscribe", resubscribe];
        let agent = Peer::start("broken", &args);
        let (mut clients, _rialto) = clients_of(&agent.url, "30000");
        for client in &mut clients {
            let outcome = client.call("broken_midstream_cut.work", json!({}));
            assert_eq!(outcome.text(), "finished all the same", "{card}, {resubscribe}");
        }
    }
}

#[test]
fn a_slow_message_answers_with_its_task_and_get_task_brings_the_result() {
    let agent = Peer::start("py_0_3", &[]);
    let (mut clients, _rialto) = clients_of(&agent.url, "1000");
    for client in &mut clients {
        let sent = client.call("send_message", json!({ "agent": "py03_agent", "message": "slow 3" }));
        assert_eq!(sent.data()["state"], "working");
        let task = sent.data()["task_id"].clone();
        let done = until("the task is done", || {
            let seen = client.call("get_task", json!({ "task_id": task }));
            (seen.data()["state"] == "completed").then_some(seen)
        });
        assert_eq!(done.text(), "done at last");
    }
}

#[test]
fn the_agents_own_id_of_a_task_finds_it_too() {
    let agent = Peer::start("py_0_3", &[]);
    let (mut clients, _rialto) = clients_of(&agent.url, "30000");
    for client in &mut clients {
        let said = client.call("py03_agent.say", json!({ "name": "Ann" }));
        let remote = said.result()["_meta"]["rialto/remoteTaskId"].clone();
        let seen = client.call("get_task", json!({ "task_id": remote }));
        assert_eq!(seen.data()["task_id"], said.result()["_meta"]["rialto/taskId"]);
        let cancelled = client.call("cancel_task", json!({ "task_id": remote }));
        cancelled.error(-32206, "ConflictError");
    }
}

/// Calls the one skill of a broken agent through both doors.
#[track_caller]
fn each_door(mode: &str, card: &str, check: impl Fn(&Outcome)) {
    let agent = Peer::start("broken", &["--mode", mode, "--card", card]);
    let (mut clients, _rialto) = clients_of(&agent.url, "1500");
    for client in &mut clients {
        let tool = format!("broken_{}.work", mode.replace('-', "_"));
        check(&client.call(&tool, Value::Object(serde_json::Map::new())));
        // It has survived that, and says so.
        assert!(client.list().contains(&"list_agents".to_owned()));
    }
}

/// A client at each door of a program that knows the agent, and what must live as long as they do.
fn clients_of(url: &str, wall_clock: &str) -> ([McpClient; 2], impl Sized + use<>) {
    let homes = [(); 2].map(|()| {
        Rialto::fresh()
            .with("RIALTO_CALLS__TIMEOUT_MS", wall_clock)
            .with("RIALTO_CALLS__PROBE_INTERVAL_SECS", "3600")
    });
    let [alone, served] = &homes;
    served.trust(url);
    let server = served.serve(&["--allow-no-auth"]);
    let doors = [alone.stdio(&["--agent", url]), server.door()];
    (doors.map(|door| McpClient::start(Sdk::Python, Era::Auto, &door)), (server, homes))
}
