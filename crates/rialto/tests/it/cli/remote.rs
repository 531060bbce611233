//! `--server`: the same commands, given to a server on another machine.

use std::{
    io::{Read, Write},
    net::TcpListener,
};

use serde_json::{Value, json};

use crate::harness::{
    agent::SampleAgent,
    rialto::{CommandOutput, Rialto},
    server::ServerProcess,
};

/// What somebody must be permitted to administer everything.
const ADMIN: [&str; 5] = ["admin_agents", "admin_policies", "admin_tokens", "admin_audit", "approve_call"];

/// A folder with a server on it, and somebody elsewhere with a token of the one who works at the folder's machine.
pub(super) struct ServerAndLocal {
    pub(super) here: Rialto,
    pub(super) elsewhere: Rialto,
    pub(super) server: ServerProcess,
}

// === impl ServerAndLocal ===

impl ServerAndLocal {
    pub(super) fn new() -> Self {
        let here = Rialto::fresh()
            .with("RIALTO_SERVER__ALLOW_PRIVATE_OVER_API", "true")
            .with("RIALTO_SERVER__ALLOW_COMMANDS_OVER_API", "true");
        for action in ADMIN {
            here.cli(&["policy", "add", "allow-admin", action, "--caller", "local"]).ok();
        }
        let token = token(&here, "local");
        let server = here.serve(&[]);
        let elsewhere = Rialto::fresh().with("RIALTO_TOKEN", &token);
        Self { here, elsewhere, server }
    }

    /// Gives a command to the server.
    #[track_caller]
    pub(super) fn there(&self, args: &[&str]) -> CommandOutput {
        self.elsewhere.cli(&[args, &["--server", &self.server.url]].concat())
    }

    /// Gives a command to both, which must say the same.
    #[track_caller]
    fn same(&self, args: &[&str]) -> CommandOutput {
        let (before, there) = (self.here.cli(args), self.there(args));
        let told = |said: &CommandOutput| (said.status, said.out.clone());
        // A server looks after what waits there, so a run may move on between two looks: then both sides of the change are seen here.
        let here = if told(&before) == told(&there) { before } else { self.here.cli(args) };
        assert_eq!(told(&here), told(&there), "{args:?}\n{}\n{}", here.err, there.err);
        there
    }
}

fn token(rialto: &Rialto, caller: &str) -> String {
    let all = ["--scope", "call", "--scope", "discover", "--scope", "admin", "--json"];
    let made = rialto.json(&[&["tokens", "create", caller], &all[..]].concat());
    made["token"].as_str().unwrap().to_owned()
}

#[test]
fn agents_are_listed_and_shown_there_as_they_are_here() {
    let both = ServerAndLocal::new();
    let (desk, clerk) = (SampleAgent::named("Desk"), SampleAgent::named("Clerk"));
    assert!(both.same(&["agents", "list"]).out.contains("No agents yet"));
    both.here.cli(&["agents", "add", &desk.url, "--secret", "env:DESK_TOKEN", "--auth", "bearer"]).ok();
    both.here.cli(&["agents", "add", &clerk.url, "--trust", "trusted"]).ok();
    clerk.change_card(|card| card["skills"][0]["description"] = json!("something else, 1.10"));
    both.here.cli(&["agents", "refresh", "clerk"]).ok();
    for args in [
        &["agents", "list"][..],
        &["agents", "list", "--json"],
        &["agents", "show", "desk"],
        &["agents", "show", "desk", "--json"],
        &["agents", "show", "clerk"],
        &["agents", "show", &clerk.url, "--json"],
        &["agents", "show", "nobody"],
        &["agents", "show", "nobody", "--json"],
        &["agents", "show", ""],
    ] {
        both.same(args);
    }
    let shown = both.there(&["agents", "show", "clerk"]).ok().out;
    assert!(shown.contains("something else, 1.10") && shown.contains("card changed"), "{shown}");
    assert!(both.there(&["agents", "show", "desk"]).ok().out.contains("env:DESK_TOKEN"));
    both.there(&["agents", "show", "nobody"]).exit(4);
}

#[test]
fn tasks_records_costs_and_tokens_are_told_there_as_they_are_here() {
    let (both, desk) = (ServerAndLocal::new(), SampleAgent::named("Desk"));
    desk.change_card(|card| card["skills"][0]["costPerTask"] = json!(0.5));
    both.here.trust(&desk.url);
    both.here.cli(&["call", "desk.echo", r#"{"n":12345678901234567890.10}"#]).ok();
    both.here.cli(&["call", "desk.fail"]).exit(1);
    both.here.cli(&["call", "desk.ask"]).ok();
    both.here.cli(&["tokens", "create", "ann", "--expires", "2d", "--scope", "call"]).ok();
    let listed = both.here.json(&["tasks", "list", "--json"]);
    let ids: Vec<&str> = listed.as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), 3);
    for args in [
        &["tasks", "list"][..],
        &["tasks", "list", "--json"],
        &["tasks", "list", "--open", "--limit", "1"],
        &["tasks", "list", "--before", ids[0], "--json"],
        &["tasks", "list", "--agent", "desk"],
        &["tasks", "list", "--agent", "nobody"],
        &["tasks", "undelivered"],
        &["tasks", "undelivered", "--json"],
        &["tasks", "show", "task_nowhere"],
        &["inspect", "task_nowhere", "--json"],
        &["audit"],
        &["audit", "--json"],
        &["audit", "--outcome", "failed", "--agent", "desk", "--since", "1h"],
        &["audit", "--limit", "2", "--json"],
        &["audit", "--since", "soon"],
        &["audit", "verify"],
        &["audit", "verify", "--json"],
        &["costs"],
        &["costs", "--json"],
        &["costs", "--by", "skill", "--caller", "local", "--since", "1h"],
        &["tokens", "list"],
        &["tokens", "list", "--json"],
        &["tokens", "revoke", "nobody"],
    ] {
        both.same(args);
    }
    for id in ids {
        both.same(&["tasks", "show", id]);
        both.same(&["tasks", "show", id, "--json"]);
        both.same(&["inspect", id]);
        let told = both.same(&["inspect", id, "--json"]).ok().out;
        assert!(!told.contains("12345678901234567000"), "{told}");
    }
    assert!(both.there(&["audit", "--json"]).ok().out.contains("12345678901234567890.10"));
    let costs = both.there(&["costs", "--json"]).ok().json();
    assert_eq!(costs["total"]["estimatedCents"], 0.5);
}

#[test]
fn tools_and_choices_are_told_there_as_they_are_here() {
    let (both, desk) = (ServerAndLocal::new(), SampleAgent::named("Desk"));
    both.here.trust(&desk.url);
    for args in [&["tools", "list"][..], &["tools", "list", "--json"], &["dispatches"]] {
        both.same(args);
    }
    let there =
        ["tools", "add", "shout", "--server", &both.server.url, "--function", "--description", "Shouts"];
    let added = both.elsewhere.cli(&[&there[..], &["--", "tr", "a-z", "A-Z"]].concat()).ok();
    assert!(added.out.starts_with("deployed shout (function):"), "{}", added.out);
    let done = both.there(&["dispatch", "--skills", "echo", "--input", r#"{"n":1.10}"#, "do it"]).ok();
    assert!(done.out.contains("1.10") && done.err.contains("Done by desk"), "{} {}", done.out, done.err);
    let told = both.there(&["dispatch", "--skills", "echo", "again", "--json"]).ok().json();
    assert_eq!(told["task"]["state"], "completed");
    let id = told["dispatchId"].as_str().unwrap();
    for args in [
        &["tools", "list"][..],
        &["tools", "list", "--json"],
        &["tools", "show", "shout"],
        &["tools", "show", "shout", "--json"],
        &["tools", "show", "nothing"],
        &["dispatches"],
        &["dispatches", "--json"],
        &["dispatches", "--limit", "1"],
        &["dispatches", "--before", id, "--json"],
        &["dispatches", id],
        &["dispatches", id, "--json"],
        &["dispatches", "dsp_none"],
        &["dispatch", "--skills", "gardening", "roses"],
    ] {
        both.same(args);
    }
    both.there(&["route", "explain", "--skills", "echo", "x"]).ok();
    assert_eq!(both.there(&["tools", "remove", "shout"]).ok().out, "removed shout\n");
    both.same(&["tools", "remove", "shout"]).exit(4);
}

#[test]
fn workflows_are_kept_run_and_shown_there_as_they_are_here() {
    let (both, desk) = (ServerAndLocal::new(), SampleAgent::named("Desk"));
    both.here.trust(&desk.url);
    let file = both.elsewhere.folder().join("ask.yaml");
    std::fs::write(&file, "status: active\nnodes: { one: { type: tool, tool: desk.ask } }\n").unwrap();
    let file = file.to_str().unwrap().to_owned();
    both.same(&["workflow", "list"]);
    assert!(both.there(&["workflow", "add", &file]).ok().out.contains("as version 1, active"));
    let wrong = both.elsewhere.folder().join("wrong.yaml");
    std::fs::write(&wrong, "nodes: 7\n").unwrap();
    let said = both.there(&["workflow", "add", wrong.to_str().unwrap()]).exit(2);
    assert!(said.err.contains("wrong.yaml:1:"), "{}", said.err);
    let ran = both.there(&["workflow", "run", "ask", "--json"]).ok().json();
    assert_eq!(ran["state"], "input-required");
    let run = ran["taskId"].as_str().unwrap();
    for args in [
        &["workflow", "list"][..],
        &["workflow", "list", "--json"],
        &["pipeline", "list"],
        &["workflow", "show", "ask"],
        &["workflow", "show", "ask", "--json"],
        &["workflow", "show", "nothing"],
        &["workflow", "runs"],
        &["workflow", "runs", "--json", "--state", "waiting"],
        &["workflow", "runs", "--name", "other"],
        &["workflow", "runs", run],
        &["workflow", "runs", run, "--json"],
        &["workflow", "runs", "task_none"],
    ] {
        both.same(args);
    }
    assert!(both.there(&["workflow", "resume", run, "red"]).ok().out.contains("you chose red"));
    both.same(&["workflow", "runs", run, "--json"]);
    let inline = both.there(&["workflow", "run", &file, "--json"]).ok().json();
    let canceled =
        both.there(&["workflow", "cancel", inline["taskId"].as_str().unwrap(), "--json"]).ok().json();
    assert_eq!(canceled["state"], "canceled");
    both.same(&["workflow", "status", "ask", "archived"]).ok();
    both.same(&["workflow", "runs", "--json"]);
    both.there(&["workflow", "remove", "ask"]).ok();
    both.same(&["workflow", "remove", "ask"]).exit(4);
}

#[test]
fn approvals_are_listed_and_decided_there_as_they_are_here() {
    let (both, desk) = (ServerAndLocal::new(), SampleAgent::named("Desk"));
    both.here.trust(&desk.url);
    both.same(&["approvals", "list"]);
    both.here.cli(&["policy", "add", "require-approval", "desk.echo", "--by", "local"]).ok();
    let held = both.here.json(&["call", "desk.echo", r#"{"n":1.10}"#, "--json"]);
    let waiting = both.here.json(&["approvals", "list", "--json"]);
    let id = waiting[0]["id"].as_str().unwrap();
    for args in [
        &["approvals", "list"][..],
        &["approvals", "list", "--json"],
        &["approvals", "show", id],
        &["approvals", "show", id, "--json"],
        &["approvals", "show", "apr_none"],
    ] {
        both.same(args);
    }
    let denied = both.there(&["approvals", "deny", id, "--reason", "not today", "--json"]).ok().json();
    assert_eq!((&denied["state"], &denied["task"]), (&json!("denied"), &held["taskId"]));
    both.same(&["approvals", "list", "--all", "--json"]);
}

#[test]
fn policies_are_asked_and_changed_there_as_they_are_here() {
    let (both, desk) = (ServerAndLocal::new(), SampleAgent::named("Desk"));
    both.here.cli(&["agents", "add", &desk.url]).ok();
    let file = both.elsewhere.folder().join("mine.cedar");
    let write = |text: &str| std::fs::write(&file, text).unwrap();
    write("@id(\"mine\") permit (principal == User::\"ann\", action, resource);");
    let path = file.to_str().unwrap();
    assert!(both.there(&["policy", "add", "--file", path]).ok().out.contains("mine: "));
    write("@id(\"mine\") permit (principal == User::\"bob\", action, resource);");
    both.there(&["policy", "add", "--file", path, "--json"]).ok();
    write("nonsense");
    both.there(&["policy", "add", "--file", path]).exit(2);
    let same = |all: &[&[&str]]| all.iter().for_each(|args| drop(both.same(args)));
    same(&[
        &["policy", "check"],
        &["policy", "list"],
        &["policy", "list", "--json"],
        &["policy", "list", "--store", "--json"],
        &["policy", "history", "mine"],
        &["policy", "history", "mine", "--json"],
        &["policy", "history", "nothing"],
        &["policy", "test", "desk.echo"],
        &["policy", "test", "desk.echo", "--caller", "bob", "--json"],
        &["policy", "test", "desk.echo", "--caller", "desk", "--caller-kind", "agent", "--json"],
        &["policy", "explain", "desk.echo", "--json"],
        &["policy", "explain", "desk.echo"],
        &["policy", "test", "--action", "admin_agents"],
        &["policy", "test", "--action", "fly"],
        &["policy", "test", "desk", "--action", "admin_agents"],
        &["policy", "add", "allow-skill", "desk"],
        &["policy", "add", "allow-admin", "admin_agents"],
        &["policy", "add", "allow-trust", "blind"],
        &["policy", "remove", "starter-cancel"],
        &["policy", "remove", "nothing"],
        &["policy", "restore", "mine", "7"],
    ]);
    let versions = both.here.json(&["policy", "history", "mine", "--json"]);
    let version = versions[0]["version"].to_string();
    assert!(both.there(&["policy", "restore", "mine", &version]).ok().out.starts_with("restored "));
    both.here.cli(&["policy", "test", "desk.echo", "--caller", "ann"]).ok();
    same(&[
        &["policy", "add", "allow-skill", "desk.echo", "--caller", "carl", "--name", "carls"],
        &["policy", "add", "require-approval", "desk", "--by", "ops", "--name", "ops", "--store", "--json"],
        &["policy", "allow", "desk"],
        &["policy", "list", "--json"],
    ]);
    both.here.cli(&["policy", "test", "desk.greet", "--caller", "dora"]).exit(3);
    assert!(both.there(&["policy", "remove", "ops"]).ok().out.contains("removed store:ops"));
    both.here.cli(&["policy", "test", "desk.greet", "--caller", "dora"]).ok();
}

#[test]
fn guardrails_are_tried_out_there_as_they_are_here() {
    let both = ServerAndLocal::new();
    for args in [
        &["guard", "test", "write to ann@example.org"][..],
        &["guard", "test", "nice weather", "--json"],
        &["guard", "test", r#"{"n":1.50,"who":"ann@example.org"}"#, "--action", "redact", "--json"],
        &["guard", "test", "x", "--skill", "desk.echo"],
        &["guard", "test", "x", "--checks", "regex"],
    ] {
        both.same(args);
    }
}

#[test]
fn webhooks_and_secrets_are_kept_there_as_they_are_here() {
    let (both, desk) = (ServerAndLocal::new(), SampleAgent::named("Desk"));
    both.same(&["webhooks", "list"]);
    both.same(&["secrets", "list"]);
    let hook =
        both.there(&["webhooks", "add", "http://127.0.0.1:2/hook?x=1", "--events", "post-verb", "--json"]);
    let hook = hook.ok().json();
    assert!(hook["secret"].as_str().unwrap().starts_with("whsec_"), "{hook}");
    let set = ["secrets", "set", "desk", "--server", &both.server.url];
    let said = both.elsewhere.cli_fed(&set, "hunter2\n").ok();
    assert_eq!(said.out, "stored desk; use it with --secret store:desk\n");
    both.here.cli(&["agents", "add", &desk.url, "--secret", "store:desk", "--auth", "bearer"]).ok();
    let id = hook["id"].as_str().unwrap();
    for args in [
        &["webhooks", "list"][..],
        &["webhooks", "list", "--json"],
        &["webhooks", "retry", id],
        &["webhooks", "test", id],
        &["webhooks", "test", "hook_none"],
        &["webhooks", "add", "ftp://a.example"],
        &["secrets", "list"],
        &["secrets", "list", "--json"],
        &["secrets", "remove", "nothing"],
    ] {
        let said = both.same(args);
        assert!(!said.out.contains("hunter2") && !said.out.contains("whsec_"), "{}", said.out);
    }
    let gone = both.there(&["secrets", "remove", "desk"]).ok();
    assert!(gone.err.contains("desk uses it"), "{}", gone.err);
    both.there(&["webhooks", "remove", id]).ok();
    assert_eq!(both.here.json(&["webhooks", "list", "--json"]), json!([]));
}

#[test]
fn what_is_changed_there_is_changed_here() {
    let (both, desk, clerk) =
        (ServerAndLocal::new(), SampleAgent::named("Desk"), SampleAgent::named("Clerk"));
    let added = both.there(&["agents", "add", &desk.url, "--allow", "--json"]).ok().json();
    assert_eq!(both.here.json(&["agents", "list", "--json"])[0]["id"], added["id"]);
    assert!(both.here.cli(&["policy", "list"]).ok().out.contains("desk"));
    let said = both.elsewhere.cli_fed(
        &["agents", "import", "-", "--json", "--server", &both.server.url],
        &format!("{}\nhttp://127.0.0.1:2\n", clerk.url),
    );
    assert_eq!(said.exit(1).json()["registered"], 1);
    both.there(&["agents", "trust", "clerk", "trusted"]).ok();
    let shown = || both.here.json(&["agents", "show", "clerk", "--json"]);
    assert_eq!(shown()["trust"], "trusted");

    both.there(&["agents", "credential", "clerk", "--secret", "store:clerk", "--auth", "bearer"]).ok();
    both.there(&["agents", "credential", "clerk", "--for-caller", "ann", "--secret", "env:ANN"]).ok();
    assert_eq!(shown()["credential"]["store"], "clerk");
    assert_eq!(shown()["credential"]["callers"]["ann"]["env"], "ANN");
    both.there(&["agents", "credential", "clerk", "--remove"]).ok();
    assert_eq!(shown()["credential"], Value::Null);

    clerk.change_card(|card| card["description"] = json!("new"));
    assert!(both.there(&["agents", "refresh", "clerk"]).ok().out.contains("has changed"));
    drop(clerk);
    let refreshed = both.there(&["agents", "refresh", "--all", "--json"]).exit(5).json();
    assert_eq!(refreshed[0]["outcome"], "failed");
    assert_eq!(refreshed[1]["outcome"], "unchanged");
    assert!(both.there(&["agents", "remove", "clerk"]).ok().out.contains("removed clerk"));
    assert_eq!(both.here.json(&["agents", "list", "--json"]).as_array().unwrap().len(), 1);

    let made = both.there(&["tokens", "create", "bob", "--expires", "1d", "--json"]).ok().json();
    assert_eq!(both.server.request("/mcp", "tools/list", json!({}), made["token"].as_str()).status, 200);
    assert!(both.there(&["tokens", "revoke", "bob"]).ok().out.contains("Revoked the token"));
    assert_eq!(both.server.request("/mcp", "tools/list", json!({}), made["token"].as_str()).status, 401);
    let elsewhere = both.there(&["tokens", "create", "eve", "--org", "acme"]).exit(4);
    assert!(elsewhere.err.contains("are the token's"), "{}", elsewhere.err);
}

#[test]
fn who_is_not_let_in_is_told_how_to_be() {
    let both = ServerAndLocal::new();
    let list = ["agents", "list", "--server", &both.server.url];
    let nobody = Rialto::fresh().cli(&list).exit(3);
    assert!(
        nobody.err.contains("set RIALTO_TOKEN") && nobody.err.contains("tokens create"),
        "{}",
        nobody.err
    );
    let wrong = Rialto::fresh().with("RIALTO_TOKEN", "hunter2").cli(&list).exit(3);
    assert!(wrong.err.contains("not known") && !wrong.err.contains("hunter2"), "{}", wrong.err);
    let ann = Rialto::fresh().with("RIALTO_TOKEN", &token(&both.here, "ann"));
    ann.cli(&list).ok();
    let refused = ann.cli(&["audit", "--json", "--server", &both.server.url]).exit(3).json();
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.contains("rialto policy add allow-admin admin_audit --caller ann"), "{message}");
    assert_eq!(refused["error"]["class"], "AuthorizationError");
    both.here.cli(&["tokens", "revoke", "ann"]).ok();
    let revoked = ann.cli(&list).exit(3);
    assert!(revoked.err.contains("revoked"), "{}", revoked.err);
    let made = both.here.json(&["tokens", "create", "bob", "--scope", "discover", "--json"]);
    let bob = Rialto::fresh().with("RIALTO_TOKEN", made["token"].as_str().unwrap());
    bob.cli(&list).ok();
    let lacking = bob.cli(&["tasks", "list", "--server", &both.server.url]).exit(3);
    assert!(lacking.err.contains("call"), "{}", lacking.err);
}

#[test]
fn another_project_is_below_the_address() {
    let (both, desk) = (ServerAndLocal::new(), SampleAgent::named("Desk"));
    both.here.trust(&desk.url);
    let url = format!("{}/default/other", both.server.url);
    let listed = both.elsewhere.json(&["agents", "list", "--json", "--server", &url]);
    assert_eq!(listed, json!([]));
    both.elsewhere.cli(&["agents", "add", &desk.url, "--server", &url]).ok();
    let shown = both.elsewhere.json(&["agents", "list", "--json", "--server", &url]);
    assert_eq!(shown[0]["trust"], "external", "it is another row");
    let main = both.there(&["agents", "list", "--json"]).ok().json();
    assert_eq!((main.as_array().unwrap().len(), &main[0]["trust"]), (1, &json!("trusted")));
    let foreign = format!("{}/acme/web", both.server.url);
    let said = both.elsewhere.cli(&["agents", "list", "--server", &foreign]).exit(4);
    assert!(said.err.contains("org and project"), "{}", said.err);
}

#[test]
fn what_is_no_server_of_ours_is_told_apart() {
    let rialto = Rialto::fresh().with("RIALTO_TOKEN", "secret-token");
    let dead = rialto.cli(&["agents", "list", "--server", "http://127.0.0.1:2"]).exit(5);
    assert!(dead.err.contains("could not be reached") && dead.err.contains("rialto serve"), "{}", dead.err);
    for (status, kind) in
        [("200 OK", "text/html"), ("404 Not Found", "text/html"), ("200 OK", "application/json")]
    {
        let url = answering(status, kind, "<h1>welcome</h1>");
        let said = rialto.cli(&["agents", "list", "--server", &url]).exit(5);
        let fix = if kind.ends_with("json") { "update the older" } else { "is no Rialto server" };
        assert!(said.err.contains(fix), "{status} {kind}: {}", said.err);
    }
    let moved = answering("302 Found\r\nLocation: http://127.0.0.1:2/", "text/html", "");
    rialto.cli(&["tokens", "create", "x", "--server", &moved]).exit(5);
    // A document that says that it is a Rialto, and no such route.
    let document = r#"{"info":{"title":"Rialto's administration","version":"0.0.9"}}"#;
    let old = answering_at("/api/v1/openapi.json", document);
    let said = rialto.cli(&["agents", "list", "--server", &old]).exit(1);
    assert!(said.err.contains("0.0.9") && said.err.contains("GET /api/v1/agents"), "{}", said.err);
}

#[test]
fn a_token_does_not_leave_in_the_open() {
    let rialto = Rialto::fresh().with("RIALTO_TOKEN", "secret-token");
    let said = rialto.cli(&["agents", "list", "--server", "http://192.0.2.1:8420"]).exit(2);
    assert!(said.err.contains("--allow-plain-http") && said.err.contains("https"), "{}", said.err);
    let said = rialto.cli(&["agents", "list", "--server", "https://ann:secret-word@127.0.0.1"]).exit(2);
    assert!(!said.err.contains("secret-word"), "{}", said.err);
    let help = rialto.cli(&["agents", "--help"]).ok().out;
    assert!(help.contains("RIALTO_TOKEN") && !help.contains("secret-token"), "{help}");

    let both = ServerAndLocal::new();
    let token = token(&both.here, "local");
    let file = both.elsewhere.folder().join("token");
    std::fs::write(&file, format!("{token}\n")).unwrap();
    let (url, file) = (both.server.url.as_str(), file.display().to_string());
    let plain = Rialto::fresh();
    for log in ["debug", "trace"] {
        let args = ["agents", "list", "--server", url, "--token-from", &file, "--log", log];
        let said = plain.cli(&args).ok();
        assert!(!said.err.contains(&token) && !said.out.contains(&token), "{}", said.err);
    }
    plain.cli_fed(&["agents", "list", "--server", url, "--token-from", "-"], &token).ok();
    rialto.cli(&["agents", "list", "--server", url, "--token-from", &file]).ok();
    plain.cli(&["agents", "list", "--server", url, "--token", &token]).ok();
    assert!(!both.server.log().contains(&token));
    plain.cli(&["agents", "list", "--server", url, "--token-from", "/nowhere"]).exit(2);
    assert!(plain.cli(&["agents", "list", "--token", &token]).exit(2).err.contains("--server"));
    let encrypted = url.replace("http://", "https://");
    let said = plain.cli(&["agents", "list", "--server", &encrypted, "--token-from", &file]).exit(5);
    assert!(said.err.contains("ca_file") && !said.err.contains(&token), "{}", said.err);
}

#[test]
fn a_folder_and_a_server_are_not_both_meant() {
    let rialto = Rialto::fresh();
    let said = rialto.cli(&["agents", "list", "--server", "http://127.0.0.1:2", "--data", "x"]).exit(2);
    assert!(said.err.contains("--data") && said.err.contains("--server"), "{}", said.err);
    let around = Rialto::fresh().with("RIALTO_SERVER", "http://127.0.0.1:2");
    let said = around.cli(&["agents", "list"]).exit(2);
    assert!(said.err.contains("RIALTO_DATA") && said.err.contains("RIALTO_SERVER"), "{}", said.err);
    let folder = around.data().display().to_string();
    around.cli(&["agents", "list", "--data", &folder]).ok();
    around.cli(&["completions", "bash"]).ok();
    around.cli(&["config", "show"]).ok();
    for args in [&["serve"][..], &["keys", "show"], &["workflow", "validate", "x.yaml"], &["demo", "--once"]]
    {
        let said = rialto.cli(&[args, &["--server", "http://127.0.0.1:2"]].concat()).exit(2);
        assert!(said.err.contains("this machine"), "{args:?} {}", said.err);
    }
    let said = rialto.cli(&["secrets", "rotate-key", "--server", "http://127.0.0.1:2"]).exit(2);
    assert!(said.err.contains("on the server's machine"), "{}", said.err);
    let said = around.cli(&["secrets", "rotate-key"]).exit(2);
    assert!(said.err.contains("unset RIALTO_SERVER"), "{}", said.err);
}

/// Answers every request with this, and says where.
fn answering(status: &str, kind: &str, body: &str) -> String {
    let answer =
        format!("HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    serving(move |_| answer.clone())
}

/// Answers requests for this path with JSON, and all others with 404.
fn answering_at(path: &'static str, body: &'static str) -> String {
    serving(move |request| {
        let (status, body) = if request.contains(path) { ("200 OK", body) } else { ("404 Not Found", "") };
        format!(
            "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
    })
}

fn serving(answer: impl Fn(&str) -> String + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            let mut request = [0; 4096];
            let read = stream.read(&mut request).unwrap_or(0);
            let head = String::from_utf8_lossy(&request[..read]);
            let answer = answer(&head).replacen("\r\n", "\r\nConnection: close\r\n", 1);
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    url
}
