//! `rialto backup`, `rialto restore` and `rialto check` beside a server, and a server whose store is damaged or gone.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use serde_json::{Value, json};

use crate::harness::{agent::SampleAgent, http, rialto::Rialto, server::ServerProcess, until};

fn world() -> (Rialto, SampleAgent) {
    let (rialto, agent) = (Rialto::fresh(), SampleAgent::named("Desk"));
    rialto.trust(&agent.url);
    (rialto, agent)
}

fn ready(server: &ServerProcess) -> (u16, Value) {
    let answer = http::get(&format!("{}/readyz", server.url)).unwrap();
    (answer.status, serde_json::from_str(&answer.body).unwrap())
}

/// Flips one bit in the middle of a file.
fn flip_a_bit(file: &Path) {
    let mut bytes = fs::read(file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(file, bytes).unwrap();
}

#[test]
fn a_backup_of_a_busy_server_is_restored_with_everything_acknowledged_before_it_began() {
    let (rialto, _agent) = world();
    let server = rialto.serve(&["--allow-no-auth"]);
    let (url, stop) = (server.mcp(), Arc::new(AtomicBool::new(false)));
    let busy: Vec<_> = (0..4)
        .map(|_| {
            let (url, stop) = (url.clone(), Arc::clone(&stop));
            thread::spawn(move || {
                let mut calls = 0;
                while !stop.load(Ordering::Relaxed) {
                    let params = json!({ "name": "desk.echo", "arguments": { "text": "hello" } });
                    let answer = crate::harness::server::request(&url, "tools/call", params, None, &[]);
                    assert_eq!(answer.status, 200);
                    calls += 1;
                }
                calls
            })
        })
        .collect();
    for _ in 0..20 {
        server.call("desk.echo", &json!({ "text": "before" })).result();
    }
    let before = rialto.json(&["tasks", "list", "--limit", "100000", "--json"]).as_array().unwrap().len();
    assert!(before >= 20);
    let said = rialto.cli(&["backup", "one.tar"]).ok();
    assert!(said.out.contains("one.tar: "), "{}", said.out);
    stop.store(true, Ordering::Relaxed);
    let calls: usize = busy.into_iter().map(|lane| lane.join().unwrap()).sum();
    assert!(calls > 0);
    let file = rialto.folder().join("one.tar");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let left: Vec<_> =
        fs::read_dir(rialto.folder()).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().starts_with(".one")), "{left:?}");
    rialto.cli(&["backup", "one.tar"]).exit(1);
    rialto.cli(&["backup", "one.tar", "--force", "--files-only"]).ok();
    rialto.cli(&["backup", "one.tar", "--force"]).ok();

    let (target, shown) = (rialto.folder().join("restored"), "restored");
    rialto.cli(&["restore", "one.tar", "--data", shown]).ok();
    assert!(target.join("policies").is_dir() && !target.join("owner-token").exists());
    let report = rialto.json(&["check", "--data", shown, "--json"]);
    assert_eq!((&report["sound"], &report["findings"]), (&json!(true), &json!([])), "{report}");
    assert!(report["tasks"].as_u64().unwrap() >= before as u64, "{report}");
    let agents = rialto.json(&["agents", "list", "--data", shown, "--json"]);
    assert_eq!(agents.as_array().unwrap().len(), 1);
    // Until it is used, the restored folder is what the backup says.
    let changed = rialto.folder().join("changed");
    rialto.cli(&["restore", "one.tar", "--data", "changed"]).ok();
    flip_a_bit(&changed.join("rialto.db"));
    for command in [&["check"][..], &["serve", "--addr", "127.0.0.1:0"]] {
        let refused = rialto.cli(&[command, &["--data", "changed"]].concat()).exit(1);
        let said = refused.err.clone() + &refused.out;
        assert!(said.contains("rialto.db has changed since it was restored"), "{said}");
    }
    // Never over something that is there, and never from a file that was changed.
    let refused = rialto.cli(&["restore", "one.tar", "--data", shown]).exit(1);
    assert!(refused.err.contains("is not empty"), "{}", refused.err);
    flip_a_bit(&file);
    let refused = rialto.cli(&["restore", "one.tar", "--data", "other"]).exit(1);
    assert!(refused.err.contains("is damaged"), "{}", refused.err);
    assert!(!rialto.folder().join("other").exists());
}

#[test]
fn with_postgres_a_backup_names_the_dump_command_and_backs_up_the_files() {
    let rialto = Rialto::fresh().with("RIALTO_STORE_URL", "postgres://ann:hunter2@db.example/bridge");
    fs::create_dir_all(rialto.data().join("policies")).unwrap();
    fs::write(rialto.data().join("policies/mine.cedar"), "permit (principal, action, resource);").unwrap();
    let said = rialto.cli(&["backup", "keys.tar"]).exit(1);
    let command = "pg_dump --format=custom --file=keys.tar.dump 'postgres://ann@db.example/bridge'";
    assert!(said.err.contains(command) && said.err.contains("--files-only"), "{}", said.err);
    assert!(!said.err.contains("hunter2"), "{}", said.err);
    rialto.cli(&["backup", "keys.tar", "--files-only"]).ok();
    rialto.cli(&["restore", "keys.tar", "--data", "there"]).ok();
    assert!(rialto.folder().join("there/policies/mine.cedar").is_file());
}

#[test]
fn a_server_whose_data_folder_is_deleted_says_so_and_takes_no_calls() {
    let (rialto, agent) = world();
    let server = rialto.serve(&["--allow-no-auth"]);
    server.call("desk.echo", &json!({})).result();
    assert_eq!(ready(&server).0, 200);
    fs::remove_dir_all(rialto.data()).unwrap();
    let (status, body) = until("it is noticed", || Some(ready(&server)).filter(|(status, _)| *status == 503));
    assert_eq!((status, &body["reasons"][0]["check"]), (503, &json!("store")));
    let message = body["reasons"][0]["message"].as_str().unwrap();
    assert!(message.contains("deleted") && message.contains("rialto restore"), "{message}");
    let heard = agent.heard().len();
    let params = json!({ "name": "desk.echo", "arguments": {} });
    let answer = server.request("/mcp", "tools/call", params, None);
    assert!(answer.body.contains("\"error\"") || answer.body.contains("\"isError\":true"), "{}", answer.body);
    assert_eq!(agent.heard().len(), heard, "nothing is sent that cannot be written down");
}

#[test]
fn a_server_does_not_start_on_a_damaged_database_unless_it_is_told_to() {
    let (rialto, _agent) = world();
    let mut server = rialto.serve(&["--allow-no-auth"]);
    for _ in 0..20 {
        server.call("desk.echo", &json!({})).result();
        rialto.json(&["tasks", "list", "--json"]);
    }
    let log = rialto.data().join("rialto.db-wal");
    let (mut bytes, copy) = (fs::read(&log).unwrap(), rialto.folder().join("index"));
    fs::copy(rialto.data().join("rialto.db-shm"), &copy).unwrap();
    server.signal("KILL");
    server.end();
    if log.exists() {
        bytes = fs::read(&log).unwrap();
    }
    assert!(bytes.len() > 40_000, "there is a log of several commits");
    bytes[20_000] ^= 1;
    fs::write(&log, bytes).unwrap();
    let refused = rialto.cli(&["serve", "--addr", "127.0.0.1:0", "--allow-no-auth"]);
    assert_ne!(refused.status, 0);
    assert!(refused.err.contains("is damaged") && refused.err.contains("--accept-damage"), "{}", refused.err);
    let report = rialto.cli(&["check", "--json"]).exit(1);
    assert_eq!(report.json()["sound"], false);
    let server = rialto.serve(&["--allow-no-auth", "--accept-damage"]);
    assert_eq!(ready(&server).0, 200);
}
