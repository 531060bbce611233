//! The program on a PostgreSQL database.

use rialto_testkit::postgres::{PASSWORD, Server as Postgres};
use serde_json::{Value, json};

use crate::harness::{agent::SampleAgent, http, rialto::Rialto, simultaneous::send_twice, until};

/// A machine with nothing on it but the address of the database.
fn machine(url: &str) -> Rialto {
    Rialto::fresh().with("RIALTO_STORE_URL", url)
}

#[test]
fn a_server_that_is_killed_has_on_record_what_it_answered_for() {
    let (postgres, agent) = (Postgres::start(), SampleAgent::named("Desk"));
    let rialto = machine(&postgres.database());
    rialto.trust(&agent.url);
    let server = rialto.serve(&["--allow-no-auth"]);
    for number in 0..20 {
        server.call("desk.echo", &json!({ "number": number })).result();
    }
    server.kill();

    let server = rialto.serve(&["--allow-no-auth"]);
    server.call("desk.echo", &json!({ "number": 20 })).result();
    let tasks = rialto.json(&["tasks", "list", "--limit", "100", "--json"]);
    let tasks = tasks.as_array().unwrap();
    assert_eq!(tasks.len(), 21);
    assert!(tasks.iter().all(|task| task["state"] == "completed"), "{tasks:?}");
    let verified = rialto.json(&["audit", "verify", "--json"]);
    assert_eq!(
        (&verified["sound"], verified["records"].as_u64() >= Some(42)),
        (&json!(true), true),
        "{verified}"
    );
    assert!(!rialto.data().join("rialto.db").exists(), "nothing is kept in a file");
}

#[test]
fn what_one_machine_changes_holds_on_the_other_at_its_very_next_call() {
    let (postgres, agent) = (Postgres::start(), SampleAgent::named("Desk"));
    let url = postgres.database();
    let (here, there) = (machine(&url), machine(&url));
    let (first, second) = (here.serve(&["--allow-no-auth"]), there.serve(&["--allow-no-auth"]));
    assert!(!second.list().contains(&"desk.echo".to_owned()));

    here.trust(&agent.url);
    for server in [&first, &second] {
        server.call("desk.echo", &json!({})).result();
    }
    there.cli(&["agents", "remove", "desk"]).ok();
    for server in [&first, &second] {
        assert!(server.call("desk.echo", &json!({})).answer.is_err(), "the agent is gone");
    }
}

#[test]
fn the_same_message_to_two_machines_at_once_is_one_task() {
    let (postgres, agent) = (Postgres::start(), SampleAgent::named("Desk"));
    let url = postgres.database();
    let (here, there) = (machine(&url), machine(&url));
    here.trust(&agent.url);
    let (first, second) = (here.serve(&["--allow-no-auth"]), there.serve(&["--allow-no-auth"]));
    let (tasks, calls) = send_twice([&first, &second], &agent, 50);
    assert_eq!((tasks.len(), calls), (50, 50));
}

#[test]
fn a_database_that_cannot_be_reached_is_told_of_with_its_fix_and_without_the_password() {
    let mut postgres = Postgres::start();
    let rialto = machine(&postgres.database());
    let server = rialto.serve(&["--allow-no-auth"]);
    let ready = || http::get(&format!("{}/readyz", server.url)).unwrap();
    assert_eq!(ready().status, 200);
    let shown = rialto.cli(&["config", "show"]).ok().out;
    assert!(shown.contains(":***@127.0.0.1"), "{shown}");
    let well = rialto.json(&["doctor", "--json"]);
    let found = |what: &str| well.as_array().unwrap().iter().find(|finding| finding["what"] == what).unwrap();
    assert!(found("store")["finding"].as_str().unwrap().contains(":***@127.0.0.1"), "{well}");
    assert_eq!(found("files")["level"], "ok", "{well}");

    postgres.stop();
    let silent = ready();
    assert_eq!(silent.status, 503);
    assert!(silent.body.contains("[store] url"), "{}", silent.body);
    let findings = rialto.cli(&["doctor", "--json"]).exit(1);
    let told: Value = findings.json();
    assert_eq!((&told[1]["what"], &told[1]["level"]), (&json!("store"), &json!("error")), "{told}");
    assert!(told[1]["finding"].as_str().unwrap().contains("start it, or mend [store] url"), "{told}");
    // A client's own server does not go on without what is kept there.
    let refused = rialto.cli(&["mcp"]).exit(1);
    for text in [&silent.body, &findings.out, &findings.err, &refused.err, &shown, &server.log()] {
        assert!(!text.contains(PASSWORD), "{text}");
    }

    postgres.restart();
    until("the server is ready again", || (ready().status == 200).then_some(()));
}

#[test]
fn a_policy_goes_to_the_database_and_holds_on_every_machine_at_its_very_next_call() {
    let (postgres, agent) = (Postgres::start(), SampleAgent::named("Desk"));
    let url = postgres.database();
    let (here, there) = (machine(&url), machine(&url));
    let server = there.serve(&["--allow-no-auth"]);
    here.cli(&["agents", "add", &agent.url]).ok();
    let call = || server.call("desk.echo", &json!({}));
    call().error(-32003, "AuthorizationError");
    let added = here.json(&["policy", "add", "allow-agent", "desk", "--json"]);
    let file = added["file"].as_str().unwrap();
    assert!(file.starts_with("store:"), "{file}");
    call().result();
    here.cli(&["policy", "remove", file]).ok();
    call().error(-32003, "AuthorizationError");
    assert_eq!(there.json(&["policy", "history", file, "--json"]).as_array().unwrap().len(), 2);
    there.cli(&["policy", "restore", file, "1"]).ok();
    call().result();
    // A file is of one machine only.
    here.cli(&["policy", "add", "deny-agent", "desk", "--as-file"]).ok();
    call().result();
    here.cli(&["call", "desk.echo"]).exit(3);
}
