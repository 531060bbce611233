//! Work that names nobody, among five agents of the official SDK: two good ones, one that fails every second task, one that is
//! slow, and one that dies in the middle.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicUsize, Ordering},
};

use serde_json::{Value, json};

use crate::harness::{foreign_agent::ForeignAgent, rialto::Rialto, server::request, until};

const DISPATCHES: usize = 500;
const AT_ONCE: usize = 8;

#[test]
fn five_hundred_dispatches_go_mostly_to_the_good_ones_and_none_is_lost() {
    let rialto = Rialto::fresh()
        .with("RIALTO_TOKEN", "owners-token-of-at-least-32-characters")
        .with("RIALTO_ROUTING__SEED", "11")
        .with("RIALTO_ROUTING__TARGET_SECS", "0.5")
        .with("RIALTO_CALLS__PROBE_INTERVAL_SECS", "2");
    let start = |name: &'static str, more: &[&str]| {
        let peer = ForeignAgent::start("worker", &[&["--name", name], more].concat());
        rialto.trust(&peer.url);
        peer
    };
    let _good = [start("Good One", &[]), start("Good Two", &[])];
    let _flaky = start("Flaky", &["--fails", "2"]);
    let _slow = start("Slow", &["--delay", "2.5"]);
    let mortal = std::sync::Mutex::new(start("Mortal", &[]));
    let server = rialto.serve(&[]);
    let middle = || mortal.lock().unwrap().kill();
    dispatch_all(&server.mcp(), middle);
    let records = until("every dispatch has come to its end", || {
        let records = all(&rialto);
        let is_over = |record: &Value| {
            record["attempts"].as_array().unwrap().iter().all(|one| one["outcome"].is_string())
        };
        (records.iter().all(is_over)).then_some(records)
    });
    assert_eq!(records.len(), DISPATCHES, "each is on record");
    let by_agent = tally(&records, "agent");
    let outcomes = tally(&records, "outcome");
    let count = |name: &str| by_agent.get(name).copied().unwrap_or_default();
    let good = count("good_one") + count("good_two") + count("mortal");
    assert!(good >= DISPATCHES * 3 / 4, "{by_agent:?} {outcomes:?}");
    assert!(count("good_one") + count("good_two") >= DISPATCHES / 3, "{by_agent:?}");
    assert!(count("flaky") + count("slow") <= DISPATCHES / 5, "{by_agent:?} {outcomes:?}");
    assert!(outcomes["completed"] >= DISPATCHES * 85 / 100, "{outcomes:?}");
    let id = records[0]["id"].as_str().unwrap();
    let one = rialto.json(&["dispatches", id, "--json"]);
    assert_eq!(one["candidates"].as_array().unwrap().len(), 5, "{one}");
    let dead = one["candidates"].as_array().unwrap().iter().find(|one| one["agent"] == "mortal").unwrap();
    assert!(dead["verdict"]["out"].is_string(), "{dead}");
    let moved = records.iter().filter(|record| record["attempts"].as_array().unwrap().len() > 1).count();
    println!("{by_agent:?} {outcomes:?}, {moved} went on to another agent");
}

/// Dispatches everything, several at once, and does something in the middle.
fn dispatch_all(url: &str, in_the_middle: impl Fn() + Sync) {
    let begun = AtomicUsize::new(0);
    let work = json!({ "work_type": "labour", "description": "work as you are told" });
    let dispatch = || {
        loop {
            let number = begun.fetch_add(1, Ordering::SeqCst);
            if number >= DISPATCHES {
                return;
            }
            if number == DISPATCHES / 2 {
                in_the_middle();
            }
            let call = json!({ "name": "dispatch", "arguments": work });
            let answer =
                request(url, "tools/call", call, Some("owners-token-of-at-least-32-characters"), &[]);
            // It was done, or it was tried: -32204 is a task that failed, -32202 an agent that died over it.
            let is_told = ["\"result\"", "-32204", "-32202"].iter().any(|word| answer.body.contains(word));
            assert!(is_told, "{answer:?}");
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(dispatch);
        }
    });
}

/// How often each value stands in the last attempts.
fn tally(records: &[Value], member: &str) -> BTreeMap<String, usize> {
    let mut tally = BTreeMap::new();
    for record in records {
        let last = record["attempts"].as_array().unwrap().last().unwrap();
        *tally.entry(last[member].as_str().unwrap().to_owned()).or_default() += 1;
    }
    tally
}

/// All decisions, page by page.
fn all(rialto: &Rialto) -> Vec<Value> {
    let mut all: Vec<Value> = Vec::new();
    loop {
        let before = all.last().map(|last| last["id"].as_str().unwrap().to_owned());
        let mut args = vec!["dispatches", "--limit", "200", "--json"];
        if let Some(before) = &before {
            args.extend(["--before", before]);
        }
        let page = rialto.json(&args);
        let page = page.as_array().unwrap();
        if page.is_empty() {
            return all;
        }
        all.extend(page.iter().cloned());
    }
}
