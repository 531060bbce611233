//! Servers that share one data folder: how they are listed and drained.

use serde_json::{Value, json};

use crate::harness::{http, nodes, rialto::Rialto, server::ServerProcess, until};

/// Token of the owner.
const OWNER: &str = "0123456789abcdef0123456789abcdef";

fn fresh() -> Rialto {
    Rialto::fresh().with("PATH", "/usr/bin:/bin")
}

fn named(rialto: &Rialto, name: &str) -> ServerProcess {
    nodes::serve_named(rialto, name, &["--allow-no-auth"])
}

#[test]
fn nodes_are_listed_by_name_with_their_state_until_they_stop() {
    let rialto = fresh().with("RIALTO_TOKEN", OWNER);
    assert_eq!(rialto.cli(&["nodes", "list"]).ok().out, "No server is running on this store.\n");
    let (mut first, second) = (nodes::serve_named(&rialto, "a", &[]), nodes::serve_named(&rialto, "b", &[]));
    let listed = nodes::list(&rialto, &[]);
    let listed_there = nodes::list(&rialto, &["--server", &second.url]);
    assert_eq!(listed, listed_there, "a command on the folder and a server show the same");
    let facts = |row: &Value| [row["name"].clone(), row["state"].clone(), row["process"].clone()];
    let rows: Vec<_> = listed.as_array().unwrap().iter().map(facts).collect();
    let expected = [("a", first.pid()), ("b", second.pid())];
    assert_eq!(rows, expected.map(|(name, pid)| [json!(name), json!("serving"), json!(pid)]));
    assert_eq!(listed[0]["address"], first.url.trim_start_matches("http://"));
    assert_eq!(listed[0]["version"], env!("CARGO_PKG_VERSION"));
    assert!(first.log().contains("node a serves at"), "{}", first.log());
    first.stop();
    assert_eq!(nodes::states(&rialto), [("b".to_owned(), "serving".to_owned())]);
    second.kill();
    let lost = || nodes::states(&rialto).first().filter(|(_, state)| state == "lost").cloned();
    assert_eq!(until("its lock is free", lost).0, "b");
}

#[test]
fn a_drained_node_is_not_ready_and_serves_until_it_is_undone() {
    let rialto = fresh();
    let (first, second) = (named(&rialto, "a"), named(&rialto, "b"));
    assert_eq!(nodes::ready(&first).0, 200);
    let said = rialto.cli(&["nodes", "drain", "a"]).ok();
    assert_eq!(said.out, "a is drained; it is draining\n");
    let reasons = until("it notices", || Some(nodes::ready(&first)).filter(|(status, _)| *status == 503)).1;
    assert_eq!(reasons["reasons"][0]["check"], "draining", "{reasons}");
    assert!(first.list().len() > 1, "requests are still answered");
    assert_eq!(nodes::ready(&second).0, 200);
    let metrics = http::get(&format!("{}/metrics", first.url)).unwrap().body;
    assert!(metrics.contains("rialto_node_info{node=\"a\"} 1"), "{metrics}");
    assert!(metrics.contains("rialto_node_draining 1"), "{metrics}");
    let states =
        [("a", "draining"), ("b", "serving")].map(|(name, state)| (name.to_owned(), state.to_owned()));
    assert_eq!(nodes::states(&rialto), states);
    rialto.cli(&["nodes", "drain", "a", "--undo"]).ok();
    until("it is ready again", || (nodes::ready(&first).0 == 200).then_some(()));
    let records = rialto.json(&["audit", "--admin", "--json"]);
    let verbs: Vec<_> = records.as_array().unwrap().iter().map(|record| &record["event"]["verb"]).collect();
    assert_eq!(verbs, ["node.undrain", "node.drain"], "{records}");
}

#[test]
fn a_drained_node_stays_drained_when_it_is_started_again() {
    let rialto = fresh();
    let mut server = named(&rialto, "a");
    rialto.cli(&["nodes", "drain", "a"]).ok();
    server.stop();
    assert_eq!(nodes::states(&rialto), [("a".to_owned(), "stopped".to_owned())]);
    let server = named(&rialto, "a");
    assert_eq!(nodes::ready(&server).0, 503, "from its first answer on");
    rialto.cli(&["nodes", "drain", "a", "--undo"]).ok();
    until("it is ready", || (nodes::ready(&server).0 == 200).then_some(()));
}

#[test]
fn a_node_that_is_not_there_is_refused_with_the_names_of_those_that_are() {
    let rialto = fresh();
    let _server = named(&rialto, "a");
    let said = rialto.cli(&["nodes", "drain", "b"]);
    assert_ne!(said.status, 0);
    assert!(said.err.contains("there is no node \"b\"; there are a"), "{}", said.err);
    let wrong = fresh().with("RIALTO_SERVER__NODE_NAME", "a b").cli(&[
        "serve",
        "--allow-no-auth",
        "--addr",
        "127.0.0.1:0",
    ]);
    assert!(wrong.err.contains("[server] node_name = \"a b\" cannot be a name"), "{}", wrong.err);
}

#[test]
fn the_audit_trail_says_which_node_made_a_call() {
    let rialto = fresh();
    let function = "[[functions]]\nname = \"now\"\ncommand = [\"sh\", \"-c\", \"cat >/dev/null; echo 1\"]\n";
    std::fs::write(rialto.folder().join("rialto.toml"), function).unwrap();
    let (first, second) = (named(&rialto, "a"), named(&rialto, "b"));
    // A node writes its records shortly after it answers: the second call begins when the first is recorded.
    for (count, server) in [(1, &first), (2, &second)] {
        server.call("now", &json!({}));
        until("the call is recorded", || (ended_calls(&rialto).len() == count).then_some(()));
    }
    assert_eq!(ended_calls(&rialto), ["b", "a"], "newest first");
}

/// Nodes of the recorded ends of calls, newest first.
fn ended_calls(rialto: &Rialto) -> Vec<String> {
    let records = rialto.json(&["audit", "--json"]);
    let ends = records.as_array().unwrap().iter().filter(|record| record["event"]["phase"] == "post-verb");
    ends.map(|record| record["event"]["node"].as_str().unwrap_or_default().to_owned()).collect()
}
