//! Watching calls as they happen: `GET /api/v1/events` and `rialto audit --follow`.

use serde_json::{Value, json};

use crate::harness::{agent::SampleAgent, http, rialto::Rialto, server::ServerProcess, until};

/// A server with one agent, and a token of somebody who may administer if a policy says so.
fn served() -> (Rialto, SampleAgent, ServerProcess, String) {
    let (rialto, agent) = (Rialto::fresh(), SampleAgent::named("Desk"));
    rialto.trust(&agent.url);
    let server = rialto.serve(&[]);
    let token = rialto.json(&["tokens", "create", "ann", "--scope", "admin", "--json"]);
    let token = format!("Bearer {}", token["token"].as_str().unwrap());
    (rialto, agent, server, token)
}

fn allow(rialto: &Rialto) {
    rialto.cli(&["policy", "add", "allow-admin", "admin_audit", "--caller", "ann"]).ok();
}

/// The next record: its id, its name and its data.
fn next(lines: &mut impl Iterator<Item = String>) -> (String, String, Value) {
    let event = loop {
        let event: Vec<String> =
            lines.by_ref().skip_while(String::is_empty).take_while(|line| !line.is_empty()).collect();
        if !event.iter().any(|line| line.trim() == "event: change") {
            break event;
        }
    };
    let field = |name: &str| {
        let found = event.iter().find_map(|line| line.strip_prefix(name));
        found.unwrap_or_else(|| panic!("no {name} in {event:?}")).trim().to_owned()
    };
    (field("id:"), field("event:"), serde_json::from_str(&field("data:")).unwrap())
}

#[test]
fn calls_are_seen_as_they_happen_and_a_stream_goes_on_where_it_was() {
    let (rialto, _agent, server, token) = served();
    allow(&rialto);
    let url = format!("{}/api/v1/events", server.url);
    let (head, mut lines) = http::listen(&url, &[("Authorization", &token)]);
    assert!(head.contains("200 OK") && head.to_lowercase().contains("text/event-stream"), "{head}");
    server.call("desk.greet", &json!({ "name": "Ann" }));
    let (id, name, data) = next(&mut lines);
    let first: u64 = id.parse().unwrap();
    assert_eq!(name, "pre-verb");
    assert_eq!((&data["record"], &data["event"]["verb"]), (&json!(first), &json!("desk.greet")));
    assert_eq!(data["event"]["args"], json!({ "name": "Ann" }));
    assert_eq!(next(&mut lines).1, "post-verb");
    drop(lines);
    server.call("desk.fail", &json!({}));
    let (_, mut lines) = http::listen(&url, &[("Authorization", &token), ("Last-Event-ID", id.as_str())]);
    let seen: Vec<String> = (0..4).map(|_| next(&mut lines).0).collect();
    assert_eq!(seen, (first + 1..=first + 4).map(|id| id.to_string()).collect::<Vec<_>>());
}

#[test]
fn others_calls_are_for_those_whom_a_policy_lets_see_them() {
    let (rialto, _agent, server, token) = served();
    let url = format!("{}/api/v1/events", server.url);
    assert_eq!(http::get_with(&url, None, &[]).status, 401);
    let wrong = http::get_with(&url, None, &[("Authorization", &token), ("Last-Event-ID", "soon")]);
    assert_eq!(wrong.status, 400, "{wrong:?}");
    let caller = rialto.json(&["tokens", "create", "bob", "--json"]);
    let bob = format!("Bearer {}", caller["token"].as_str().unwrap());
    let watch = |token: &str| http::listen(&url, &[("Authorization", token)]).1;
    let mut his = watch(&bob);
    server.call("desk.greet", &json!({ "name": "Ann" }));
    let called = http::post(
        &format!("{}/call/desk.greet", server.url),
        &[("Authorization", &bob)],
        r#"{"name":"Bob"}"#,
    );
    assert_eq!(called.status, 200, "{called:?}");
    let (_, name, data) = next(&mut his);
    assert_eq!((name.as_str(), &data["event"]["caller"]), ("pre-verb", &json!("bob")), "not the owner's");
}

#[test]
fn who_loses_the_permit_sees_nothing_more() {
    let (rialto, _agent, server, token) = served();
    allow(&rialto);
    let url = format!("{}/api/v1/events", server.url);
    let (_, mut lines) = http::listen(&url, &[("Authorization", &token)]);
    server.call("desk.echo", &json!({}));
    assert_eq!((next(&mut lines).1, next(&mut lines).1), ("pre-verb".to_owned(), "post-verb".to_owned()));
    let policies = rialto.json(&["policy", "list", "--json"]);
    let is_ours = |file: &&Value| file["text"].as_str().unwrap().contains("admin_audit");
    let ours = policies["files"].as_array().unwrap().iter().find(is_ours).unwrap();
    rialto.cli(&["policy", "remove", ours["name"].as_str().unwrap()]).ok();
    server.call("desk.echo", &json!({}));
    assert_eq!(lines.filter(|line| line.starts_with("id:")).count(), 0);
}

#[test]
fn a_stop_ends_the_streams_of_those_who_watch() {
    let (rialto, _agent, mut server, token) = served();
    allow(&rialto);
    let url = format!("{}/api/v1/events", server.url);
    let (_, lines) = http::listen(&url, &[("Authorization", &token)]);
    assert!(server.stop().success());
    assert_eq!(lines.filter(|line| line.starts_with("id:")).count(), 0);
}

#[test]
fn the_record_can_be_followed_from_another_process() {
    let (rialto, agent) = (Rialto::fresh(), SampleAgent::named("Desk"));
    rialto.trust(&agent.url);
    let followers = [&["--json"][..], &["--outcome", "failed"]]
        .map(|args| rialto.start(&[&["audit", "--follow"], args].concat()));
    for follower in &followers {
        until("it follows", || follower.stderr().contains("Shows new records").then_some(()));
    }
    rialto.cli(&["call", "desk.greet", r#"{"name":"Ann"}"#]).ok();
    rialto.cli(&["call", "desk.fail"]).exit(1);
    let records: Vec<Value> =
        (0..5).map(|_| serde_json::from_str(&followers[0].line().unwrap()).unwrap()).collect();
    assert_eq!(
        records.iter().map(|record| record["record"].as_u64().unwrap()).collect::<Vec<_>>(),
        [2, 3, 4, 5, 6]
    );
    let line = followers[1].line().unwrap();
    assert!(line.starts_with('5') && line.contains("desk.fail") && line.contains("failed"), "{line}");
    rialto.cli(&["audit", "--follow", "--since", "2h"]).exit(2);
}
