//! Limits of a server, and its responses beyond them.

use std::thread;

use rialto_model::json::MAX_DEPTH;
use serde_json::{Value, json};

use crate::harness::{
    agent::SampleAgent,
    http,
    outcome::CallOutcome,
    rialto::Rialto,
    server::{self, message},
    until,
};

#[test]
fn a_caller_that_asks_too_often_is_told_when_to_come_again() {
    let rialto = Rialto::fresh()
        .with("RIALTO_LIMITS__REQUESTS_PER_SECOND", "1")
        .with("RIALTO_LIMITS__BURST", "3")
        .with("RIALTO_TOKEN", "owners-token-of-at-least-32-characters");
    let other = rialto.json(&["tokens", "create", "ann", "--json"])["token"].as_str().unwrap().to_owned();
    let server = rialto.serve(&[]);
    let list = |token: &str| server.request("/mcp", "tools/list", json!({}), Some(token));
    let refused = (0..20)
        .map(|_| list("owners-token-of-at-least-32-characters"))
        .find(|answer| answer.status != 200)
        .expect("there is a limit");
    assert_eq!(refused.status, 429, "{refused:?}");
    assert!(refused.head.contains("\r\nretry-after: 1"), "{}", refused.head);
    let told: Value = serde_json::from_str(&refused.body).unwrap();
    assert_eq!((&told["error"], &told["retryAfter"]), (&json!("too-many-requests"), &json!(1)));
    assert_eq!(list(&other).status, 200, "another caller is not affected");
    assert_eq!(http::get(&format!("{}/readyz", server.url)).unwrap().status, 200);
}

#[test]
fn an_address_that_guesses_tokens_is_shut_out_whatever_it_shows_then() {
    let rialto = Rialto::fresh()
        .with("RIALTO_LIMITS__WRONG_TOKENS_PER_MINUTE", "2")
        .with("RIALTO_SERVER__TRUST_PROXY", "true")
        .with("RIALTO_TOKEN", "owners-token-of-at-least-32-characters");
    let server = rialto.serve(&[]);
    let list = |token: &str, from: &str| {
        let from = [("X-Forwarded-For", from)];
        server::request(&server.mcp(), "tools/list", json!({}), Some(token), &from).status
    };
    let guesses: Vec<_> = (0..5).map(|n| list(&format!("guess{n}"), "203.0.113.9")).collect();
    assert_eq!(guesses, [401, 401, 401, 429, 429]);
    assert_eq!(list("owners-token-of-at-least-32-characters", "203.0.113.9"), 429);
    assert_eq!(list("owners-token-of-at-least-32-characters", "203.0.113.10"), 200);
}

#[test]
fn a_caller_has_so_many_calls_under_way() {
    let rialto = Rialto::fresh().with("RIALTO_LIMITS__CONCURRENT_CALLS", "1");
    let agent = SampleAgent::named("Desk");
    rialto.trust(&agent.url);
    let server = rialto.serve(&["--allow-no-auth"]);
    let url = server.mcp();
    let slow = thread::spawn(move || {
        let params = json!({ "name": "desk.slow", "arguments": { "ms": 1500 } });
        CallOutcome::of(message(&server::request(&url, "tools/call", params, None, &[])), Vec::new())
    });
    until("the agent has heard of it", || (!agent.heard().is_empty()).then_some(()));
    let refused = server.call("desk.echo", &json!({}));
    assert_eq!(refused.error(-32205, "OverloadedError")["data"]["retryAfter"], 1);
    assert_eq!(slow.join().unwrap().text(), "done at last");
    server.call("desk.echo", &json!({})).result();
}

#[test]
fn an_org_has_so_many_calls_a_day() {
    let (rialto, agent) = (Rialto::fresh(), SampleAgent::named("Desk"));
    std::fs::write(rialto.folder().join("rialto.toml"), "[limits.orgs.default]\ncalls_per_day = 2\n")
        .unwrap();
    rialto.trust(&agent.url);
    let mut server = rialto.mcp(&[]);
    server.initialize();
    for _ in 0..2 {
        server.call("desk.echo", &json!({})).result();
    }
    let refused = server.call("desk.echo", &json!({}));
    let wait = refused.error(-32205, "OverloadedError")["data"]["retryAfter"].as_u64().unwrap();
    assert!((1..=24 * 60 * 60).contains(&wait), "{wait}");
    assert!(refused.complaint().contains("calls_per_day"), "{}", refused.complaint());
    assert_eq!(agent.heard().len(), 2);
}

#[test]
fn what_is_nested_too_deep_is_refused_on_every_road() {
    let (rialto, agent) = (Rialto::fresh(), SampleAgent::named("Desk"));
    rialto.trust(&agent.url);
    let server = rialto.serve(&["--allow-no-auth"]);
    let nested = |levels: usize| (0..levels).fold(json!(1), |inner, _| json!([inner]));
    // The message, its params, and the arguments are three levels themselves.
    let call = |levels: usize| json!({ "name": "desk.echo", "arguments": { "deep": nested(levels - 3) } });
    assert_eq!(server.request("/mcp", "tools/call", call(MAX_DEPTH), None).status, 200);
    let echoed = message(&server.request("/mcp", "tools/call", call(MAX_DEPTH - 10), None));
    assert!(echoed["result"].is_object(), "{echoed}");
    let refused = server.request("/mcp", "tools/call", call(MAX_DEPTH + 1), None);
    assert_eq!((refused.status, &message(&refused)["error"]["code"]), (400, &json!(-32600)), "{refused:?}");
    assert!(refused.body.contains("deeper than 100 levels"), "{}", refused.body);
    let old = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call(MAX_DEPTH + 1) });
    let refused = http::post(&server.mcp(), &[("MCP-Protocol-Version", "2025-06-18")], &old.to_string());
    assert_eq!((refused.status, &message(&refused)["error"]["code"]), (400, &json!(-32600)), "{refused:?}");

    let mut stdio = rialto.mcp(&[]);
    stdio.initialize();
    stdio.write("[".repeat(100_000).as_bytes());
    // An agent's answer has a few more levels around it.
    assert!(stdio.ask("tools/call", &call(MAX_DEPTH - 10))["result"].is_object());
    for levels in [MAX_DEPTH + 1, 1_000] {
        let refused = stdio.ask("tools/call", &call(levels));
        assert_eq!(refused["error"]["code"], -32600, "{refused}");
        assert!(refused["error"]["message"].as_str().unwrap().contains("100 levels"), "{refused}");
    }
    assert_eq!(stdio.call("desk.echo", &json!({})).result()["isError"], Value::Null);
    stdio.leave();
}

#[test]
fn headers_may_be_so_many_and_so_large() {
    let server = Rialto::fresh().serve(&["--allow-no-auth"]);
    let url = format!("{}/healthz", server.url);
    let names: Vec<String> = (0..101).map(|n| format!("X-Header-{n}")).collect();
    let many: Vec<_> = names.iter().map(|name| (name.as_str(), "x")).collect();
    assert_eq!(http::get_with(&url, None, &many[..50]).status, 200);
    assert_eq!(http::get_with(&url, None, &many).status, 431);
    assert_eq!(http::get_with(&url, None, &[("X-Large", &"x".repeat(300_000))]).status, 200);
    assert_eq!(http::get_with(&url, None, &[("X-Large", &"x".repeat(500_000))]).status, 431);
}
