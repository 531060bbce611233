//! `rialto serve`: authentication, lists and messages.

use serde_json::{Value, json};

use crate::harness::{
    agent::SampleAgent, client::names, http, rialto::Rialto, server::message, simultaneous::send_twice, until,
};

#[test]
fn the_first_start_shows_a_token_once_and_nobody_is_let_in_without_it() {
    let (rialto, agent) = (Rialto::fresh(), SampleAgent::named("Desk"));
    rialto.trust(&agent.url);
    let server = rialto.serve(&[]);
    let token = server.token.clone().expect("the first start shows a token");
    let list = |token: Option<&str>| server.request("/mcp", "tools/list", json!({}), token);
    let refused = list(None);
    assert_eq!(refused.status, 401);
    assert!(refused.head.contains("\r\nwww-authenticate: bearer"), "{}", refused.head);
    let wrong = list(Some("rialto_0000"));
    assert_eq!(wrong.status, 401);
    // What the refusals advise can be done.
    for advice in [refused, wrong] {
        let command =
            advice.body.split('`').find_map(|text| text.strip_prefix("rialto ")).unwrap_or_default();
        let words: Vec<&str> = command.split(' ').chain(["--help"]).collect();
        rialto.cli(&words).ok();
    }
    assert_eq!(list(Some(&token)).status, 200);
    let call = json!({ "name": "desk.echo", "arguments": {} });
    assert_eq!(server.request("/mcp", "tools/call", call, None).status, 401);
    assert_eq!(agent.heard(), Vec::<String>::new());
    server.call("desk.echo", &json!({})).result();
    assert_eq!(http::get(&format!("{}/healthz", server.url)).unwrap().status, 200);

    drop(server);
    let again = rialto.serve(&[]);
    assert_eq!(again.token, None, "{}", again.greeting);
    assert_eq!(again.request("/mcp", "tools/list", json!({}), Some(&token)).status, 200);
}

#[test]
fn a_token_of_the_environment_is_let_in_and_none_is_made() {
    let rialto = Rialto::fresh().with("RIALTO_TOKEN", "owners-token-of-at-least-32-characters");
    let server = rialto.serve(&[]);
    assert_eq!(server.token, None);
    assert_eq!(
        server
            .request("/mcp", "tools/list", json!({}), Some("owners-token-of-at-least-32-characters"))
            .status,
        200
    );
    assert_eq!(server.request("/mcp", "tools/list", json!({}), Some("yours")).status, 401);
}

#[test]
fn one_caller_does_not_see_the_tasks_of_another() {
    let (rialto, agent) = (Rialto::fresh(), SampleAgent::named("Desk"));
    rialto.trust(&agent.url);
    let token = rialto.json(&["tokens", "create", "ann", "--json"])["token"].as_str().unwrap().to_owned();
    let other = rialto.json(&["tokens", "create", "bob", "--json"])["token"].as_str().unwrap().to_owned();
    let mut server = rialto.serve(&[]);
    server.token = Some(token);
    let done = server.call("desk.greet", &json!({ "name": "Ann" }));
    let task = done.result()["_meta"]["rialto/taskId"].clone();
    assert_eq!(server.call("get_task", &json!({ "task_id": task })).data()["state"], "completed");
    server.token = Some(other);
    server.call("get_task", &json!({ "task_id": task })).error(-32602, "NotFoundError");
    server.call("cancel_task", &json!({ "task_id": task })).error(-32602, "NotFoundError");
}

#[test]
fn without_auth_it_serves_on_loopback_only() {
    let rialto = Rialto::fresh();
    for address in ["0.0.0.0:0", "[::]:0"] {
        let said = rialto.cli(&["serve", "--addr", address, "--allow-no-auth"]).exit(2);
        assert!(said.err.contains("loopback"), "{}", said.err);
        assert_eq!(said.out, "");
    }
    let server = rialto.serve(&["--allow-no-auth"]);
    assert_eq!(server.token, None);
    assert!(server.list().contains(&"list_agents".to_owned()));
}

#[test]
fn a_web_page_of_somebody_else_is_turned_away() {
    let server = Rialto::fresh().serve(&["--allow-no-auth"]);
    let ask = |headers: &[(&str, &str)]| http::post(&server.mcp(), headers, "{}").status;
    assert_eq!(ask(&[("Origin", "https://evil.example.com")]), 403);
}

#[test]
fn a_server_tells_its_tools_by_the_names_that_are_asked_for() {
    let (rialto, agent) = (Rialto::fresh(), SampleAgent::named("Linear (prod)"));
    agent.change_card(|card| {
        card["skills"] = json!([{ "id": "create-issue", "name": "x", "description": "", "tags": [] }]);
    });
    rialto.trust(&agent.url);
    let server = rialto.serve(&["--allow-no-auth"]);
    let (canonical, legacy) = ("linear_prod.create-issue", "a2a_linear_prod_create_issue");
    for (path, expected) in [
        ("/mcp", vec![canonical]),
        ("/mcp?names=canonical", vec![canonical]),
        ("/mcp?names=legacy", vec![legacy]),
        ("/mcp?names=both", vec![legacy, canonical]),
    ] {
        let listed = names(&server.list_at(path)["tools"]);
        let mut skills: Vec<_> = listed.iter().filter(|name| name.contains("linear")).collect();
        skills.sort();
        assert_eq!(skills, expected, "{path}");
    }
    let description = server.list_at("/mcp")["tools"].to_string();
    assert!(
        description.contains("Invokes the create-issue skill on remote A2A agent Linear (prod)"),
        "{description}"
    );
}

#[test]
fn a_long_list_comes_in_pages_that_are_the_whole_list() {
    let rialto = Rialto::fresh().with("RIALTO_MCP__PAGE_SIZE", "2");
    let (one, other) = (SampleAgent::named("One"), SampleAgent::named("Other"));
    rialto.trust(&other.url);
    rialto.trust(&one.url);
    let server = rialto.serve(&["--allow-no-auth"]);
    let (mut listed, mut cursor, mut pages) = (Vec::new(), None, 0);
    loop {
        let params = cursor.as_ref().map_or_else(|| json!({}), |cursor| json!({ "cursor": cursor }));
        let answer = server.request("/mcp", "tools/list", params, None);
        let result = message(&answer)["result"].take();
        listed.extend(names(&result["tools"]));
        pages += 1;
        match &result["nextCursor"] {
            Value::Null => break,
            next => cursor = Some(next.clone()),
        }
    }
    let skills: Vec<&String> = listed.iter().filter(|name| name.contains('.')).collect();
    assert_eq!((skills.len(), pages > 5), (12, true), "{listed:?} on {pages} pages");
    assert!(skills.is_sorted(), "{skills:?}");
    listed.sort();
    listed.dedup();
    assert_eq!(listed.len(), 12 + 7, "each tool is listed once");
    let wrong = server.request("/mcp", "tools/list", json!({ "cursor": "no cursor" }), None);
    assert_eq!(message(&wrong)["error"]["code"], -32602);
}

#[test]
fn a_tool_carries_the_schema_of_its_skill_and_wrong_arguments_do_not_leave() {
    let (rialto, agent) = (Rialto::fresh(), SampleAgent::named("Desk"));
    rialto.trust(&agent.url);
    let server = rialto.serve(&["--allow-no-auth"]);
    let tools = server.list_at("/mcp")["tools"].clone();
    let schema = |name: &str| {
        let tool = tools.as_array().unwrap().iter().find(|tool| tool["name"] == name).unwrap();
        tool["inputSchema"].clone()
    };
    assert_eq!(schema("desk.greet")["required"], json!(["name"]));
    assert_eq!(schema("desk.echo"), json!({ "type": "object", "additionalProperties": true }));
    let wrong = server.call("desk.greet", &json!({ "name": 7 }));
    assert_eq!(wrong.error(-32602, "InvalidArgumentsError")["data"]["path"], "/name");
    assert_eq!(agent.heard(), Vec::<String>::new());
}

#[test]
fn errors_are_told_as_results_where_that_is_wanted() {
    let rialto = Rialto::fresh().with("RIALTO_MCP__TOOL_ERRORS", "result");
    let agent = SampleAgent::named("Desk");
    rialto.trust(&agent.url);
    let server = rialto.serve(&["--allow-no-auth"]);
    let failed = server.call("desk.fail", &json!({}));
    assert_eq!(failed.result()["isError"], true);
    assert_eq!(failed.data()["error"]["code"], -32204);
    assert_eq!(failed.data()["error"]["data"]["class"], "RemoteA2ATaskFailedError");
    assert!(failed.text().contains("it broke on purpose"));
}

#[test]
fn an_agent_is_not_loaded_through_a_server() {
    let (rialto, agent) = (Rialto::fresh(), SampleAgent::named("Desk"));
    let server = rialto.serve(&["--allow-no-auth"]);
    server.call("load_agent", &json!({ "url": agent.url })).error(-32003, "AuthorizationError");
    assert!(!server.list().contains(&"desk.echo".to_owned()));
}

#[test]
fn an_address_in_use_is_said_so() {
    let rialto = Rialto::fresh();
    let server = rialto.serve(&["--allow-no-auth"]);
    let taken = server.url.strip_prefix("http://").unwrap();
    let said = rialto.cli(&["serve", "--addr", taken]).exit(1);
    assert!(said.err.contains(taken), "{}", said.err);
}

#[test]
fn a_call_that_takes_too_long_goes_on_and_its_result_is_fetched_later() {
    let rialto = Rialto::fresh().with("RIALTO_CALLS__TIMEOUT_MS", "200");
    let agent = SampleAgent::named("Desk");
    rialto.trust(&agent.url);
    let server = rialto.serve(&["--allow-no-auth"]);
    let late = server.call("desk.slow", &json!({ "ms": 1000 }));
    let task = late.error(-32201, "RemoteA2ATimeoutError")["data"]["taskId"].clone();
    let done = until("the task is done", || {
        let seen = server.call("get_task", &json!({ "task_id": task }));
        (seen.data()["state"] == "completed").then_some(seen)
    });
    assert_eq!(done.text(), "done at last");
}

#[test]
fn a_server_that_is_told_to_stop_stops() {
    let rialto = Rialto::fresh();
    let mut process = rialto.start(&["serve", "--addr", "127.0.0.1:0", "--allow-no-auth"]);
    while !process.line().expect("it greets").contains("/mcp") {}
    process.signal("TERM");
    assert!(process.end().success());
}

#[test]
fn the_same_message_to_two_processes_of_one_folder_at_once_is_one_task() {
    let (rialto, agent) = (Rialto::fresh(), SampleAgent::named("Desk"));
    rialto.trust(&agent.url);
    let (first, second) = (rialto.serve(&["--allow-no-auth"]), rialto.serve(&["--allow-no-auth"]));
    let (tasks, calls) = send_twice([&first, &second], &agent, 50);
    assert_eq!((tasks.len(), calls), (50, 50));
}

#[test]
fn load_agent_is_for_callers_that_may_administer_agents_and_listed_to_no_others() {
    let (rialto, agent) = (
        Rialto::fresh()
            .with("RIALTO_SERVER__ALLOW_PRIVATE_OVER_API", "true")
            .with("RIALTO_SERVER__ALLOW_COMMANDS_OVER_API", "true"),
        SampleAgent::named("Desk"),
    );
    let server = rialto.serve(&[]);
    let token = |caller: &str| {
        let made = rialto.json(&[
            "tokens", "create", caller, "--scope", "admin", "--scope", "call", "--scope", "discover",
            "--json",
        ]);
        made["token"].as_str().unwrap().to_owned()
    };
    let (ann, bob) = (token("ann"), token("bob"));
    rialto.cli(&["policy", "add", "allow-admin", "admin_agents", "--caller", "ann"]).ok();
    let ask = |method: &str, params: Value, token: &str| {
        message(&server.request("/mcp", method, params, Some(token)))
    };
    let lists = |token: &str| {
        names(&ask("tools/list", json!({}), token)["result"]["tools"]).contains(&"load_agent".to_owned())
    };
    assert_eq!((lists(&ann), lists(&bob)), (true, false));
    let load = json!({ "name": "load_agent", "arguments": { "url": agent.url, "token": "s3cret-token" } });
    assert_eq!(ask("tools/call", load.clone(), &bob)["error"]["code"], -32003);
    assert_eq!(rialto.json(&["agents", "list", "--json"]), json!([]));
    let loaded = ask("tools/call", load, &ann);
    assert_eq!(loaded["result"]["structuredContent"]["agent"]["slug"], "desk", "{loaded}");
    let known = rialto.json(&["agents", "show", "desk", "--json"]).to_string();
    assert!(known.contains("external") && known.contains(r#""store":"agent-"#), "{known}");
    assert!(!known.contains("s3cret-token") && !loaded.to_string().contains("s3cret-token"));
}
