//! `rialto tokens`: who is let in, for what, and until when.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::harness::{rialto::Rialto, server::ServerProcess};

/// Makes a token and answers what is shown of it.
#[track_caller]
fn made(rialto: &Rialto, args: &[&str]) -> Value {
    rialto.json(&[&["tokens", "create"], args, &["--json"]].concat())
}

#[track_caller]
fn status(server: &ServerProcess, token: &Value) -> u16 {
    server.request("/mcp", "tools/list", json!({}), token["token"].as_str()).status
}

#[test]
fn a_token_made_while_the_server_runs_lets_its_caller_in_at_once() {
    let rialto = Rialto::fresh();
    let server = rialto.serve(&[]);
    let ann = made(&rialto, &["ann"]);
    assert_eq!(status(&server, &ann), 200);
    let listed = rialto.cli(&["tokens", "list", "--json"]).ok();
    assert!(listed.out.contains("ann") && !listed.out.contains(ann["token"].as_str().unwrap()));
}

#[test]
fn a_revoked_token_is_refused_at_the_very_next_request_and_stays_listed() {
    let rialto = Rialto::fresh();
    let server = rialto.serve(&[]);
    let (ann, bob) = (made(&rialto, &["ann"]), made(&rialto, &["bob"]));
    for (token, named) in [(&ann, "ann"), (&bob, bob["id"].as_str().unwrap())] {
        assert_eq!(status(&server, token), 200);
        rialto.cli(&["tokens", "revoke", named]).ok();
        assert_eq!(status(&server, token), 401);
    }
    let listed = rialto.json(&["tokens", "list", "--json"]);
    let state = |id: &Value| {
        let row = listed.as_array().unwrap().iter().find(|row| row["id"] == *id).unwrap();
        row["state"].clone()
    };
    assert_eq!((state(&ann["id"]), state(&bob["id"])), (json!("revoked"), json!("revoked")));
    assert!(
        rialto.cli(&["tokens", "revoke", bob["id"].as_str().unwrap()]).ok().out.contains("already revoked")
    );
}

#[test]
fn a_name_with_several_tokens_is_not_guessed() {
    let rialto = Rialto::fresh();
    let ids = [made(&rialto, &["ann"])["id"].clone(), made(&rialto, &["ann"])["id"].clone()];
    let said = rialto.cli(&["tokens", "revoke", "ann"]).exit(2);
    assert!(ids.iter().all(|id| said.err.contains(id.as_str().unwrap())), "{}", said.err);
    assert!(rialto.cli(&["tokens", "revoke", "nobody"]).exit(2).err.contains("tokens list"));
}

#[test]
fn a_token_is_made_for_what_is_asked_and_says_so() {
    let rialto = Rialto::fresh();
    let plain = made(&rialto, &["ann"]);
    assert_eq!(plain["scopes"], json!(["call", "discover"]));
    assert_eq!((&plain["expiresAt"], &plain["kind"]), (&Value::Null, &json!("user")));
    let full = made(
        &rialto,
        &[
            "ci",
            "--kind",
            "agent",
            "--scope",
            "call",
            "--scope",
            "admin",
            "--expires",
            "30d",
            "--org",
            "acme",
            "--project",
            "web",
        ],
    );
    assert_eq!((&full["scopes"], &full["kind"]), (&json!(["call", "admin"]), &json!("agent")));
    assert_eq!((&full["org"], &full["project"]), (&json!("acme"), &json!("web")));
    assert!(full["expiresAt"].is_string());
    for wrong in [["--expires", "soon"], ["--scope", "everything"], ["--org", "a/b"], ["--kind", "robot"]] {
        rialto.cli(&[&["tokens", "create", "x"], &wrong[..]].concat()).exit(2);
    }
    let shown = rialto.cli(&["tokens", "list"]).ok().out;
    assert!(shown.contains("acme/web") && shown.contains("call admin"), "{shown}");
}

#[test]
fn the_first_token_is_in_a_file_of_its_owner_and_its_hash_everywhere_else() {
    let rialto = Rialto::fresh();
    let server = rialto.serve(&[]);
    let token = server.token.clone().unwrap();
    assert!(!server.greeting.contains(&token), "{}", server.greeting);
    assert!(!server.log().contains(&token), "what is logged may be kept by others");
    let file = rialto.data().join("owner-token");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let listed = rialto.json(&["tokens", "list", "--json"]);
    assert_eq!(listed[0]["caller"], "owner");
    assert_eq!(listed[0]["scopes"], json!(["call", "discover", "admin"]));
    assert_eq!(listed[0]["role"], "owner");
    drop(server);
    for file in std::fs::read_dir(rialto.data()).unwrap().map(|file| file.unwrap().path()) {
        if file.is_file() && !file.ends_with("owner-token") {
            let bytes = std::fs::read(&file).unwrap();
            let is_there = bytes.windows(token.len()).any(|window| window == token.as_bytes());
            assert!(!is_there, "the token stands in {}", file.display());
        }
    }
}

#[test]
fn a_short_token_in_the_environment_makes_nobody_the_owner() {
    let refused =
        Rialto::fresh().with("RIALTO_TOKEN", "abc").cli(&["serve", "--addr", "127.0.0.1:0"]).exit(2);
    assert!(refused.err.contains("at least 32") && !refused.err.contains("abc"), "{}", refused.err);
}
