//! Log lines about calls: enough to find them, without their content.

use serde_json::{Value, json};

use crate::harness::{agent::SampleAgent, rialto::Rialto, server::ServerProcess, until};

const SECRET: &str = "hunter2";

/// A server that logs all it can, after calls that ended well, badly, and not at all.
fn logged(format: &str) -> (Value, String) {
    let rialto = Rialto::fresh()
        .with("RIALTO_TOKEN", &format!("{SECRET}-token-of-at-least-32-characters"))
        .with("RIALTO_LOG", "trace")
        .with("RIALTO_TELEMETRY__LOG", format);
    let (agent, stranger) = (SampleAgent::named("Desk"), SampleAgent::named("Stranger"));
    rialto.trust(&agent.url);
    rialto.cli(&["agents", "add", &stranger.url]).ok();
    let row = rialto.json(&["agents", "list", "--json"]);
    let mut server = rialto.serve(&[]);
    server.token = Some(format!("{SECRET}-token-of-at-least-32-characters"));
    let args = json!({ "password": format!("{SECRET}-args"), "name": format!("{SECRET}-name") });
    let done = server.call("desk.echo", &args);
    let task = done.result()["_meta"]["rialto/taskId"].clone();
    server.call("desk.fail", &args).error(-32204, "RemoteA2ATaskFailedError");
    server.call("desk.nonsense", &args).error(-32203, "RemoteA2AInvalidResponseError");
    server.call("stranger.echo", &args).error(-32003, "AuthorizationError");
    server.request("/mcp", "tools/list", json!({}), Some(&format!("{SECRET}-wrong")));
    let log = settled(&server);
    assert!(row.to_string().contains("Desk"), "{row}");
    (task, log)
}

/// The log, once the last of those calls is in it.
fn settled(server: &ServerProcess) -> String {
    until("the last call is logged", || Some(server.log()).filter(|log| log.contains("-32003")))
}

#[test]
fn a_line_about_a_call_has_its_ids_and_no_line_has_a_secret() {
    let (task, log) = logged("text");
    assert!(!log.contains(SECRET), "{log}");
    let line = |what: &str| {
        log.lines().find(|line| line.contains(what)).unwrap_or_else(|| panic!("{what} is not in {log}"))
    };
    let done = line("call of desk.echo by owner is done");
    for field in
        ["DEBUG", task.as_str().unwrap(), "skill.id=\"echo\"", "caller.id=\"owner\"", "agent.id=\"agt_"]
    {
        assert!(done.contains(field), "{field} is not in {done}");
    }
    let failed = line("call of desk.fail by owner failed");
    assert!(failed.contains("WARN") && failed.contains("code=-32204"), "{failed}");
    assert!(line("call of stranger.echo").contains("code=-32003"));
}

#[test]
fn in_json_every_line_is_an_object_with_the_same_fields() {
    let (task, log) = logged("json");
    assert!(!log.contains(SECRET), "{log}");
    let lines: Vec<Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect();
    let about = |skill: &str| {
        lines.iter().find(|line| line["skill.id"] == skill).unwrap_or_else(|| panic!("{skill}: {log}"))
    };
    let done = about("echo");
    assert_eq!(
        (&done["task.id"], &done["level"], &done["caller.id"]),
        (&task, &json!("DEBUG"), &json!("owner"))
    );
    let failed = about("fail");
    assert_eq!(
        (&failed["level"], &failed["code"], &failed["org.id"]),
        (&json!("WARN"), &json!(-32204), &json!("default"))
    );
}

#[test]
fn calls_that_end_well_are_logged_when_that_is_wanted() {
    let rialto = Rialto::fresh().with("RIALTO_TELEMETRY__LOG_CALLS", "true");
    let agent = SampleAgent::named("Desk");
    rialto.trust(&agent.url);
    let server = rialto.serve(&["--allow-no-auth", "--log-format", "json"]);
    server.call("desk.echo", &json!({})).result();
    let log = until("the call is logged", || Some(server.log()).filter(|log| log.contains("desk.echo")));
    assert!(log.contains(r#""level":"INFO""#) && log.contains("task.id"), "{log}");
}

#[test]
fn a_password_in_an_agents_address_is_not_repeated() {
    let url = format!("http://user:{SECRET}@127.0.0.1:1");
    let mut server = Rialto::fresh().with("RIALTO_LOG", "trace").mcp(&["--agent", &url]);
    server.initialize();
    let log = server.leave();
    assert!(log.contains("was not loaded") && !log.contains(SECRET), "{log}");
}
