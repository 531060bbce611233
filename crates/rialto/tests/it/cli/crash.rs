//! The server is killed in the middle of its work.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use serde_json::{Value, json};

use crate::harness::{
    agent::SampleAgent,
    http,
    rialto::Rialto,
    server::{VERSION, meta},
    until,
};

/// How many calls are made, by how many at once, and after how many the server dies.
const CALLS: usize = 1_000;
const CALLERS: usize = 16;
const ENOUGH: usize = 300;

/// One call that says its number. The caller may find nobody there, or be left without an answer.
fn call(url: &str, number: usize) -> Option<Value> {
    let mut params = json!({ "name": "desk.echo", "arguments": { "number": number } });
    params["_meta"] = meta();
    let body = json!({ "jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params });
    let headers =
        [("MCP-Protocol-Version", VERSION), ("Mcp-Method", "tools/call"), ("Mcp-Name", "desk.echo")];
    let answer = http::try_post(url, &headers, &body.to_string()).ok()?;
    serde_json::from_str(&answer.body).ok()
}

#[test]
fn a_server_that_is_killed_during_a_thousand_calls_loses_no_record_that_it_answered_for() {
    let (rialto, agent) = (Rialto::fresh(), SampleAgent::named("Desk"));
    rialto.trust(&agent.url);
    let server = rialto.serve(&["--allow-no-auth"]);
    let (url, next) = (server.mcp(), AtomicUsize::new(0));
    let answered = Mutex::new(BTreeSet::new());
    thread::scope(|scope| {
        for _ in 0..CALLERS {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::SeqCst);
                    if number >= CALLS {
                        return;
                    }
                    if call(&url, number).is_some_and(|answer| answer["result"].is_object()) {
                        answered.lock().unwrap().insert(number);
                    }
                }
            });
        }
        until("many calls are answered", || (answered.lock().unwrap().len() >= ENOUGH).then_some(()));
        server.kill();
    });
    let answered = answered.into_inner().unwrap();
    assert!(answered.len() < CALLS, "it died too late to tell");

    let verified = rialto.json(&["audit", "verify", "--json"]);
    assert_eq!(verified["sound"], true, "{verified}");
    let trail = rialto.json(&["audit", "--json", "--limit", "10000"]);
    let events: Vec<&Value> = trail.as_array().unwrap().iter().map(|record| &record["event"]).collect();
    let of = |phase: &'static str| events.iter().filter(move |event| event["phase"] == phase);
    let number = |event: &Value| usize::try_from(event["args"]["number"].as_u64().unwrap()).unwrap();
    let asked: BTreeMap<usize, &str> =
        of("pre-verb").map(|event| (number(event), event["taskId"].as_str().unwrap())).collect();
    let ended: BTreeSet<&str> = of("post-verb").map(|event| event["taskId"].as_str().unwrap()).collect();
    for number in &answered {
        let task = asked.get(number).unwrap_or_else(|| panic!("call {number} is not on record"));
        assert!(ended.contains(task), "the end of call {number} is not on record");
    }
    // Whatever reached the agent was on record before.
    let heard = agent.heard();
    for body in &heard {
        let body: Value = serde_json::from_str(body).unwrap();
        let data = &body["params"]["message"]["parts"][0]["data"]["number"];
        let number = usize::try_from(data.as_u64().unwrap()).unwrap();
        assert!(asked.contains_key(&number), "call {number} left without a record");
    }
    rialto.serve(&["--allow-no-auth"]).call("desk.echo", &json!({ "number": CALLS })).result();
}
