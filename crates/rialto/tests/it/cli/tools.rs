//! Deployed MCP servers and functions: one name on every endpoint, and isolated failures.

use std::thread;

use serde_json::{Value, json};

use crate::harness::{
    agent::SampleAgent,
    http::{self, HttpAnswer},
    mcp_upstream::McpUpstream,
    rialto::Rialto,
    server::ServerProcess,
    until,
};

const PATH: (&str, &str) = ("PATH", "/usr/bin:/bin");

fn fresh() -> Rialto {
    Rialto::fresh().with(PATH.0, PATH.1)
}

fn post(server: &ServerProcess, name: &str, args: &Value) -> HttpAnswer {
    http::post(&format!("{}/call/{name}", server.url), &[], &args.to_string())
}

fn problem(answer: &HttpAnswer) -> Value {
    assert!(answer.head.contains("application/problem+json"), "{answer:?}");
    serde_json::from_str(&answer.body).unwrap()
}

fn is_listed(server: &ServerProcess, name: &str) -> Option<()> {
    server.list().iter().any(|listed| listed == name).then_some(())
}

fn configure(rialto: &Rialto, text: &str) {
    std::fs::write(rialto.folder().join("rialto.toml"), text).unwrap();
}

#[test]
fn a_tool_has_one_name_at_every_door_without_a_restart() {
    let rialto = fresh();
    let server = rialto.serve(&["--allow-no-auth"]);
    let upstream = McpUpstream::new(&rialto, "weather", &["echo", "slowly"]);
    let added = upstream.add(&rialto, &[]);
    assert_eq!(added["tools"][0]["name"], "echo");
    assert_eq!(added["tools"][0]["repeatable"], true);
    until("the running server lists it", || is_listed(&server, "echo"));
    for name in ["echo", "weather.echo"] {
        assert_eq!(server.call(name, &json!({})).text(), "hello from weather");
        let answer = post(&server, name, &json!({}));
        assert_eq!(
            (answer.status, answer.body.as_str()),
            (200, "\"hello from weather\""),
            "it asked for JSON"
        );
        assert_eq!(rialto.cli(&["tools", "call", name]).ok().out, "hello from weather\n");
    }
    let said = rialto.cli(&["call", "slowly"]).ok();
    assert_eq!((said.out.as_str(), said.err.contains("half way")), ("done\n", true));
    rialto.cli(&["tools", "remove", "weather"]).ok();
    until("it has gone", || is_listed(&server, "echo").is_none().then_some(()));
    until("its program has ended", || (!upstream.runs()).then_some(()));
}

#[test]
fn a_server_that_ends_at_a_question_of_newer_ones_is_greeted_as_they_used_to_be() {
    let rialto = fresh();
    let added = McpUpstream::new(&rialto, "aged", &["echo"]).add(&rialto, &["--env", "BRITTLE=1"]);
    assert_eq!(added["tools"][0]["name"], "echo");
    assert_eq!(rialto.cli(&["call", "echo"]).ok().out, "hello from aged\n");
}

#[test]
fn what_a_tool_says_about_its_failure_is_told() {
    let rialto = fresh();
    McpUpstream::new(&rialto, "weather", &["fail", "echo"]).add(&rialto, &[]);
    let server = rialto.serve(&["--allow-no-auth"]);
    let failed = server.call("fail", &json!({}));
    assert_eq!(failed.error(-32204, "RemoteA2ATaskFailedError")["message"], "fail failed: no luck");
    let answer = post(&server, "fail", &json!({}));
    assert_eq!(answer.status, 502);
    let told = problem(&answer);
    assert_eq!((&told["code"], &told["detail"]), (&json!(-32204), &json!("fail failed: no luck")));
    assert!(told["taskId"].is_string());
    let wrong = post(&server, "echo", &json!({ "n": "one" }));
    assert_eq!((wrong.status, &problem(&wrong)["path"]), (400, &json!("/n")));
    assert_eq!(post(&server, "nothing", &json!({})).status, 404);
    assert_eq!(http::post(&format!("{}/call/echo", server.url), &[], "{").status, 400);
}

#[test]
fn a_tool_that_never_answers_is_waited_for_and_called_off() {
    let rialto = fresh().with("RIALTO_CALLS__TIMEOUT_MS", "300");
    let upstream = McpUpstream::new(&rialto, "weather", &["hang", "echo"]);
    upstream.add(&rialto, &[]);
    let server = rialto.serve(&["--allow-no-auth"]);
    let late = post(&server, "hang", &json!({}));
    assert_eq!(late.status, 504);
    let task = problem(&late)["taskId"].as_str().unwrap().to_owned();
    assert_eq!(server.call("echo", &json!({})).text(), "hello from weather", "others go on");
    server.call("cancel_task", &json!({ "task_id": task })).result();
    upstream.noted("cancelled");
}

#[test]
fn a_server_that_dies_in_the_middle_is_started_again() {
    let rialto = fresh();
    let upstream = McpUpstream::new(&rialto, "weather", &["hang", "echo"]);
    upstream.add(&rialto, &[]);
    let server = rialto.serve(&["--allow-no-auth"]);
    assert_eq!(server.call("echo", &json!({})).text(), "hello from weather");
    let url = format!("{}/call/hang", server.url);
    let hung = thread::spawn(move || http::post(&url, &[], "{}"));
    upstream.noted("hung");
    upstream.kill();
    let broken = hung.join().unwrap();
    assert_eq!(broken.status, 502, "{broken:?}");
    assert_eq!(problem(&broken)["code"], -32202);
    until("it is back", || (post(&server, "echo", &json!({})).status == 200).then_some(()));
}

#[test]
fn a_list_of_tools_that_changes_is_asked_for_again() {
    let rialto = fresh();
    McpUpstream::new(&rialto, "weather", &["grow"]).add(&rialto, &[]);
    let server = rialto.serve(&["--allow-no-auth"]);
    assert!(is_listed(&server, "grown").is_none());
    server.call("grow", &json!({})).result();
    until("the new tool is listed", || is_listed(&server, "grown"));
}

#[test]
fn one_dead_server_never_hurts_the_rest_and_the_configuration_has_the_last_word() {
    let rialto = fresh();
    let upstream = McpUpstream::new(&rialto, "weather", &["echo"]);
    let function = "[[functions]]\nname = \"up\"\ncommand = [\"tr\", \"a-z\", \"A-Z\"]\n";
    let dead = "[[mcp_servers]]\nname = \"dead\"\ncommand = \"/no/such/program\"\n";
    configure(&rialto, &format!("{dead}{}{function}", upstream.entry()));
    let mut server = rialto.serve(&["--allow-no-auth"]);
    until("the living are listed", || is_listed(&server, "echo"));
    assert_eq!(post(&server, "up", &json!({ "a": "b" })).body, r#"{"A":"B"}"#);
    let shown = until("the dead one was asked", || {
        let shown = rialto.json(&["tools", "list", "--json"]);
        let dead = shown.as_array().unwrap().iter().find(|row| row["name"] == "dead").cloned();
        dead.filter(|dead| dead["health"] == "unreachable")
    });
    assert_eq!((&shown["available"], &shown["configured"]), (&json!(false), &json!(true)));
    assert!(
        shown["lastError"].as_str().unwrap().contains("/no/such/program could not be started"),
        "{shown}"
    );
    let refused = rialto.cli(&["tools", "remove", "weather"]);
    assert!(refused.status != 0 && refused.err.contains("stands in the configuration"), "{refused:?}");
    server.stop();
    assert!(!upstream.runs(), "it ends with the server");

    configure(&rialto, function);
    let server = rialto.serve(&["--allow-no-auth"]);
    assert!(is_listed(&server, "up").is_some() && is_listed(&server, "echo").is_none());
    let left = rialto.json(&["tools", "list", "--json"]);
    assert_eq!(left.as_array().unwrap().len(), 1, "{left}");
}

#[test]
fn a_tool_of_a_configured_server_is_called_from_the_command_line_without_a_server() {
    let rialto = fresh();
    configure(&rialto, &McpUpstream::new(&rialto, "weather", &["echo"]).entry());
    assert_eq!(rialto.cli(&["call", "echo"]).ok().out, "hello from weather\n");
    let doctor = rialto.json(&["doctor", "--json"]);
    let seen = doctor.as_array().unwrap().iter().find(|it| it["what"] == "mcp weather").unwrap();
    assert_eq!((&seen["level"], &seen["finding"]), (&json!("ok"), &json!("1 tools")));
}

#[test]
fn of_two_tools_with_one_name_the_first_keeps_it() {
    let rialto = fresh();
    McpUpstream::new(&rialto, "weather", &["echo", "get_task"]).add(&rialto, &[]);
    McpUpstream::new(&rialto, "stocks", &["echo"]).add(&rialto, &[]);
    let server = rialto.serve(&["--allow-no-auth"]);
    for (name, from) in [("echo", "weather"), ("weather.echo", "weather"), ("stocks.echo", "stocks")] {
        assert_eq!(server.call(name, &json!({})).text(), format!("hello from {from}"), "{name}");
    }
    let listed = server.list();
    assert_eq!(listed.iter().filter(|name| *name == "get_task").count(), 1, "{listed:?}");
    assert!(listed.iter().any(|name| name == "weather.get_task"), "{listed:?}");
}

#[test]
fn a_secret_is_shown_to_the_server_and_to_nobody_else() {
    let rialto = fresh().with("WEATHER_SECRET", "hunter2hunter2").with("RIALTO_LOG", "debug");
    let upstream = McpUpstream::new(&rialto, "weather", &["tell"]);
    let args = ["tools", "add", "weather", "--env", "TOKEN=hunter2hunter2", "--", upstream.script.as_str()];
    let refused = rialto.cli(&args);
    assert!(refused.status != 0 && refused.err.contains("looks like a secret"), "{refused:?}");
    assert!(!refused.err.contains("hunter2"), "{refused:?}");
    let added = upstream.add(&rialto, &["--env", "TOKEN=${WEATHER_SECRET}"]);
    assert_eq!(added["settings"]["TOKEN"], "env:WEATHER_SECRET");
    let server = rialto.serve(&["--allow-no-auth"]);
    assert_eq!(server.call("tell", &json!({})).text(), "told");
    until("it was logged", || server.log().contains("weather: my token is [secret]").then_some(()));
    let listed = rialto.cli(&["tools", "list", "--json"]).ok();
    let shown = rialto.cli(&["tools", "show", "weather"]).ok();
    for said in [&listed.out, &listed.err, &shown.out, &server.log()] {
        assert!(!said.contains("hunter2"), "{said}");
    }
    for file in std::fs::read_dir(rialto.data()).unwrap().map_while(Result::ok) {
        let bytes = std::fs::read(file.path()).unwrap_or_default();
        assert!(!bytes.windows(7).any(|piece| piece == b"hunter2"), "{}", file.path().display());
    }
}

#[test]
fn two_hundred_calls_at_once_all_come_back() {
    let rialto = fresh();
    McpUpstream::new(&rialto, "weather", &["echo"]).add(&rialto, &[]);
    let limits = "[limits]\nconcurrent_calls = 0\n";
    configure(&rialto, limits);
    let server = rialto.serve(&["--allow-no-auth"]);
    let calls: Vec<_> = (0..200)
        .map(|n| {
            let url = format!("{}/call/echo", server.url);
            thread::spawn(move || http::post(&url, &[], &json!({ "n": n }).to_string()))
        })
        .collect();
    for call in calls {
        let answer = call.join().unwrap();
        assert_eq!((answer.status, answer.body.as_str()), (200, "\"hello from weather\""), "{answer:?}");
    }
}

#[test]
fn a_function_is_checked_ended_and_heard() {
    let rialto = fresh();
    configure(
        &rialto,
        r#"
[[functions]]
name = "add"
description = "Adds"
command = ["sh", "-c", "cat >/dev/null; echo 3"]
input_schema = { type = "object", required = ["a"] }
output_schema = { type = "integer" }
idempotent = true
[[functions]]
name = "liar"
command = ["sh", "-c", "echo three"]
output_schema = { type = "integer" }
[[functions]]
name = "sleeper"
command = ["sh", "-c", "sleep 600"]
timeout = 0.3
[[functions]]
name = "broken"
command = ["sh", "-c", "echo first >&2; echo last words >&2; exit 7"]
"#,
    );
    let server = rialto.serve(&["--allow-no-auth"]);
    assert_eq!(post(&server, "add", &json!({ "a": 1 })).body, "3");
    let wrong = post(&server, "add", &json!({}));
    assert_eq!(wrong.status, 400, "{wrong:?}");
    let lied = post(&server, "liar", &json!({}));
    assert!(lied.status == 502 && lied.body.contains("does not fit its output_schema"), "{lied:?}");
    let slept = problem(&post(&server, "sleeper", &json!({})));
    assert_eq!((&slept["status"], &slept["code"]), (&json!(504), &json!(-32201)));
    assert!(slept["detail"].as_str().unwrap().contains("was ended"), "{slept}");
    let broken = problem(&post(&server, "broken", &json!({})));
    assert_eq!((&broken["exitCode"], &broken["stderr"]), (&json!(7), &json!("first\nlast words")));
    let openapi: Value =
        serde_json::from_str(&http::get(&format!("{}/call/openapi.json", server.url)).unwrap().body).unwrap();
    let add = &openapi["paths"]["/add"]["post"];
    assert_eq!(add["description"], "Adds");
    assert_eq!(add["requestBody"]["content"]["application/json"]["schema"]["required"], json!(["a"]));
    assert_eq!(
        add["responses"]["200"]["content"]["application/json"]["schema"],
        json!({ "type": "integer" })
    );
}

#[test]
fn a_configuration_that_cannot_be_is_refused_with_its_place() {
    let rialto = fresh();
    configure(&rialto, "[[functions]]\nname = \"a\"\n");
    let said = rialto.cli(&["tools", "list"]);
    assert!(
        said.status != 0 && said.err.contains("functions[0].url: `command` or `url` is required"),
        "{said:?}"
    );
}

#[test]
fn another_gateway_is_a_server_over_http_and_its_changes_are_heard() {
    let (far, near) = (
        fresh().with("RIALTO_TOKEN", "far-token-of-at-least-32-characters"),
        fresh().with("FAR", "far-token-of-at-least-32-characters"),
    );
    let up = ["tools", "add", "up", "--function", "--", "tr", "a-z", "A-Z"];
    far.cli(&up).ok();
    let far_server = far.serve(&[]);
    let url = far_server.mcp();
    let refused = near.cli(&["tools", "add", "far", "--url", &url]);
    assert!(refused.status != 0, "it wants a token: {refused:?}");
    let header = "Authorization: Bearer ${FAR}";
    let added = near.json(&["tools", "add", "far", "--url", &url, "--header", header, "--json"]);
    assert_eq!(added["settings"]["Authorization"], "env:FAR");
    let server = near.serve(&["--allow-no-auth"]);
    assert_eq!(server.call("up", &json!({ "a": "b" })).data(), &json!({ "A": "B" }));
    assert!(is_listed(&server, "far.get_task").is_some(), "{:?}", server.list());
    far.cli(&["tools", "add", "down", "--function", "--", "tr", "A-Z", "a-z"]).ok();
    until("the new tool is listed", || is_listed(&server, "down"));
    assert_eq!(server.call("down", &json!({ "A": "B" })).data(), &json!({ "a": "b" }));
    far_server.kill();
    let gone = server.call("up", &json!({}));
    gone.error(-32202, "RemoteA2ATransportError");
    until("its tools have left the list", || is_listed(&server, "up").is_none().then_some(()));
    let shown = near.json(&["tools", "show", "far", "--json"]);
    assert_eq!(shown["available"], false, "{shown}");
    assert!(shown["tools"].as_array().unwrap().iter().any(|tool| tool["name"] == "up"), "they stay known");
}

/// What an A2A client that sends this hears, in the task that is named if there is one.
fn said(server: &ServerProcess, skill: &str, what: impl Into<Value>, task: Option<&Value>) -> Value {
    let part = match what.into() {
        Value::String(text) => json!({ "text": text }),
        data => json!({ "data": data }),
    };
    let mut message = json!({ "messageId": fresh_id(), "role": "ROLE_USER", "parts": [part] });
    if let Some(task) = task {
        message["taskId"] = task.clone();
    }
    let params = json!({ "message": message, "metadata": { "skillId": skill } });
    let asked = json!({ "jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params });
    let answer = http::post(&format!("{}/a2a", server.url), &[], &asked.to_string());
    let mut answer: Value = serde_json::from_str(&answer.body).unwrap();
    assert!(answer.get("error").is_none(), "{answer}");
    answer["result"]["task"].take()
}

fn fresh_id() -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static LAST: AtomicU32 = AtomicU32::new(0);
    format!("message-{}", LAST.fetch_add(1, Ordering::Relaxed))
}

fn state(task: &Value) -> &Value {
    &task["status"]["state"]
}

#[test]
fn what_a_tool_asks_is_answered_by_the_next_message() {
    let rialto = fresh();
    let upstream = McpUpstream::new(&rialto, "paint", &["ask"]);
    upstream.add(&rialto, &[]);
    let server = rialto.serve(&["--allow-no-auth"]);
    let asked = said(&server, "ask", json!({}), None);
    assert_eq!(state(&asked), "TASK_STATE_INPUT_REQUIRED", "{asked}");
    let question = &asked["status"]["message"]["parts"];
    assert_eq!(question[0]["text"], "Which color?");
    assert_eq!(
        question[1]["data"]["requestedSchema"]["properties"]["color"]["enum"],
        json!(["red", "green"])
    );
    let again = said(&server, "ask", "blue", Some(&asked["id"]));
    assert_eq!(state(&again), "TASK_STATE_INPUT_REQUIRED", "{again}");
    let why = again["status"]["message"]["parts"][0]["text"].as_str().unwrap();
    assert!(why.starts_with("That is no answer: `color` must be one of red, green."), "{why}");
    let done = said(&server, "ask", "green", Some(&asked["id"]));
    assert_eq!(state(&done), "TASK_STATE_COMPLETED", "{done}");
    assert_eq!(done["artifacts"][0]["parts"][0]["text"], "green it is");
    let declined = said(&server, "ask", json!({}), None);
    let done = said(&server, "ask", "decline", Some(&declined["id"]));
    assert_eq!(done["artifacts"][0]["parts"][0]["text"], "no color then", "{done}");
}

#[test]
fn a_tool_that_is_called_off_while_it_asks_hears_so() {
    let rialto = fresh();
    let upstream = McpUpstream::new(&rialto, "paint", &["ask"]);
    upstream.add(&rialto, &[]);
    let server = rialto.serve(&["--allow-no-auth"]);
    let asked = said(&server, "ask", json!({}), None);
    let cancel =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "CancelTask", "params": { "id": asked["id"] } });
    let answer = http::post(&format!("{}/a2a", server.url), &[], &cancel.to_string());
    assert!(answer.body.contains("TASK_STATE_CANCELED"), "{}", answer.body);
    upstream.noted("cancelled");
}

#[test]
fn a_question_that_a_restart_has_lost_says_so() {
    let rialto = fresh();
    McpUpstream::new(&rialto, "paint", &["ask"]).add(&rialto, &[]);
    let server = rialto.serve(&["--allow-no-auth"]);
    let asked = said(&server, "ask", json!({}), None);
    drop(server);
    let server = rialto.serve(&["--allow-no-auth"]);
    let lost = said(&server, "ask", "green", Some(&asked["id"]));
    assert_eq!(state(&lost), "TASK_STATE_FAILED", "{lost}");
    assert!(lost.to_string().contains("call it again"), "{lost}");
}

#[test]
fn what_a_server_would_have_a_model_say_is_said_by_the_agent_that_is_configured() {
    let (rialto, agent) = (fresh(), SampleAgent::named("Desk"));
    rialto.trust(&agent.url);
    McpUpstream::new(&rialto, "singer", &["muse"]).add(&rialto, &["--sampling", "desk.echo"]);
    assert_eq!(rialto.cli(&["tools", "call", "muse"]).ok().out, "somebody sang\n");
    let heard = agent.heard();
    assert!(heard.len() == 1 && heard[0].contains("\"sing\""), "{heard:?}");
    rialto.cli(&["tools", "remove", "singer"]).ok();
    let script = rialto.folder().join("singer").join("server.sh").display().to_string();
    let tools = format!("TOOLS={}", rialto.folder().join("singer").join("tools").display());
    rialto.cli(&["tools", "add", "mute", "--env", &tools, "--", &script]).ok();
    assert_eq!(rialto.cli(&["tools", "call", "muse"]).ok().out, "silence\n", "nobody is configured");
    assert_eq!(agent.heard().len(), 1);
}

#[test]
fn a_newer_tool_is_called_again_with_the_answer() {
    let rialto = fresh();
    McpUpstream::new(&rialto, "paint", &["round"]).add(&rialto, &["--env", "MODERN=1"]);
    let server = rialto.serve(&["--allow-no-auth"]);
    let asked = said(&server, "round", json!({ "n": 3 }), None);
    assert_eq!(asked["status"]["message"]["parts"][0]["text"], "How large?", "{asked}");
    let done = said(&server, "round", "7", Some(&asked["id"]));
    assert_eq!(done["artifacts"][0]["parts"][0]["text"], "7 for 3", "{done}");
}

#[test]
fn a_task_of_a_tool_asks_goes_on_and_survives_a_restart() {
    let rialto = fresh();
    McpUpstream::new(&rialto, "paint", &["later"]).add(&rialto, &["--env", "MODERN=1"]);
    let server = rialto.serve(&["--allow-no-auth"]);
    let asked = said(&server, "later", json!({}), None);
    assert_eq!(asked["status"]["message"]["parts"][0]["text"], "Go on?", "{asked}");
    drop(server);
    let server = rialto.serve(&["--allow-no-auth"]);
    let done = said(&server, "later", "yes", Some(&asked["id"]));
    assert_eq!(state(&done), "TASK_STATE_COMPLETED", "{done}");
    assert_eq!(done["artifacts"][0]["parts"][0]["text"], "did it");
    let said_before = done["history"].to_string();
    assert!(said_before.contains("at it") && said_before.contains("Go on?"), "{done}");
}

#[test]
fn a_task_of_a_tool_is_called_off_there() {
    let rialto = fresh();
    let upstream = McpUpstream::new(&rialto, "paint", &["later"]);
    upstream.add(&rialto, &["--env", "MODERN=1"]);
    let server = rialto.serve(&["--allow-no-auth"]);
    let asked = said(&server, "later", json!({}), None);
    let cancel =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "CancelTask", "params": { "id": asked["id"] } });
    let answer = http::post(&format!("{}/a2a", server.url), &[], &cancel.to_string());
    assert!(answer.body.contains("TASK_STATE_CANCELED"), "{}", answer.body);
}

#[test]
fn what_an_external_server_changes_is_held_shown_and_approved() {
    let rialto = fresh().with("RIALTO_CALLS__PROBE_INTERVAL_SECS", "1");
    let upstream = McpUpstream::new(&rialto, "weather", &["tell"]);
    let refused =
        rialto.cli(&["tools", "add", "weather", "--trust", "system", "--", upstream.script.as_str()]);
    assert!(refused.status != 0 && refused.err.contains("cannot be assigned"), "{refused:?}");
    assert_eq!(upstream.add(&rialto, &["--trust", "external"])["trust"], "external");
    upstream.offer(&["tell", "steal"]);
    let _server = rialto.serve(&["--allow-no-auth"]);
    let shown = until("the change is held", || {
        let shown = rialto.cli(&["tools", "show", "weather"]).ok().out;
        shown.contains("waiting for approval").then_some(shown)
    });
    assert!(shown.contains("steal") && shown.contains("rialto agents approve weather"), "{shown}");
    assert!(rialto.cli(&["tools", "list"]).ok().out.contains("change held"));
    rialto.cli(&["agents", "approve", "weather"]).ok();
    let told = rialto.json(&["tools", "show", "weather", "--json"]);
    assert_eq!(
        (told["changeHeld"].as_bool(), told["tools"].as_array().unwrap().len()),
        (Some(false), 2),
        "{told}"
    );
}
