//! From inside: an agent with a name that is a policy, a secret in the arguments, a call that policy refuses.

use std::{fs, path::Path};

use serde_json::json;

use crate::harness::{agent::SampleAgent, rialto::Rialto};

/// What nobody may find anywhere afterwards.
const SECRET: &str = "hunter2-correct-horse";

#[test]
fn an_agent_whose_name_is_a_policy_is_allowed_no_more_than_any_other() {
    let rialto = Rialto::fresh();
    let names = [
        r#"x"); permit(principal, action, resource); //"#,
        "y\n@id(\"all\")\npermit(principal, action, resource);",
        r#"z" || true || "" == ""#,
        "\\\" } permit(principal,action,resource);",
    ];
    let victim = SampleAgent::named("Victim");
    rialto.cli(&["agents", "add", &victim.url]).ok();
    for name in names {
        let agent = SampleAgent::named(name);
        let added = rialto.json(&["agents", "add", &agent.url, "--allow", "--json"]);
        let slug = added["slug"].as_str().unwrap();
        rialto.cli(&["policy", "check"]).ok();
        rialto.cli(&["call", &format!("{slug}.echo"), "{}"]).ok();
        rialto.cli(&["policy", "add", "deny-agent", slug]).ok();
        rialto.cli(&["call", &format!("{slug}.echo"), "{}"]).exit(3);
        let said = rialto.cli(&["call", "victim.echo", "{}"]).exit(3);
        assert!(said.err.contains("-32003") || said.err.contains("not allowed"), "{}", said.err);
    }
    assert_eq!(victim.heard(), [""; 0]);
}

#[test]
fn a_secret_in_the_arguments_is_kept_nowhere() {
    let (rialto, agent) = (Rialto::fresh().with("RIALTO_LOG", "trace"), SampleAgent::named("Desk"));
    rialto.trust(&agent.url);
    let server = rialto.serve(&["--allow-no-auth"]);
    let calls = [
        json!({ "name": "Ann", "password": SECRET }),
        json!({ "name": "Ann", "nested": [{ "apiKey": SECRET }] }),
        json!({ "name": "Ann", "Authorization": format!("Bearer {SECRET}") }),
        json!({ "name": "Ann", "note": format!("Bearer {SECRET}") }),
    ];
    for args in &calls {
        server.call("desk.greet", args);
        server.call("desk.fail", args);
        rialto.cli(&["call", "desk.greet", &args.to_string()]).ok();
    }
    let heard = agent.heard();
    assert_eq!(heard.iter().filter(|body| body.contains(SECRET)).count(), 3 * calls.len());
    rialto.cli(&["tasks", "list"]).ok();
    let log = server.log();
    assert!(log.contains("desk"), "it logs: {log}");
    for (place, said) in [
        ("the log", log),
        ("the audit trail", rialto.cli(&["audit", "--json", "--limit", "1000"]).ok().out),
        ("the tasks", rialto.cli(&["tasks", "list", "--json"]).ok().out),
    ] {
        assert!(!said.contains(SECRET), "{place}");
    }
    drop(server);
    let mut files = 0;
    each_file(&rialto.data(), &mut |path, bytes| {
        files += 1;
        let is_there = bytes.windows(SECRET.len()).any(|window| window == SECRET.as_bytes());
        assert!(!is_there, "{}", path.display());
    });
    assert!(files > 2);
}

#[test]
fn a_refused_call_sends_nothing_is_told_three_times_and_is_no_task() {
    let rialto = Rialto::fresh().with("RIALTO_CALLS__PROBE_INTERVAL_SECS", "0");
    let agent = SampleAgent::named("Desk");
    rialto.cli(&["agents", "add", &agent.url]).ok();
    let server = rialto.serve(&["--allow-no-auth"]);
    let before = agent.connections();
    server.call("desk.echo", &json!({})).error(-32003, "AuthorizationError");
    rialto.cli(&["call", "desk.echo", "{}"]).exit(3);
    assert_eq!(agent.connections(), before, "somebody connected");
    let trail = rialto.json(&["audit", "--json"]);
    let records = || trail.as_array().unwrap().iter().filter(|record| record["event"]["phase"] != "admin");
    let phases: Vec<&str> = records().map(|record| record["event"]["phase"].as_str().unwrap()).collect();
    assert_eq!(phases, ["verb-error", "post-verb", "pre-verb"].repeat(2));
    assert_eq!(rialto.json(&["tasks", "list", "--json"]), json!([]));
    let ids = records().map(|record| &record["event"]["taskId"]);
    for id in ids {
        let told = server.call("get_task", &json!({ "task_id": id }));
        assert!(told.complaint().contains(id.as_str().unwrap()), "{told:?}");
    }
}

/// Looks at every file below a folder.
fn each_file(folder: &Path, look: &mut impl FnMut(&Path, &[u8])) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            each_file(&path, look);
        } else {
            look(&path, &fs::read(&path).unwrap());
        }
    }
}
