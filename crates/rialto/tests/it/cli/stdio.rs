//! `rialto mcp`: nothing but protocol on stdout, whatever happens.

use std::time::Duration;

use serde_json::json;

use crate::harness::{agent::SampleAgent, client::names, rialto::Rialto, stdio::StdioServer, until};

#[test]
fn garbage_on_stdin_does_not_end_it() {
    let agent = SampleAgent::named("Desk");
    let rialto = Rialto::fresh();
    let mut server = rialto.mcp(&["--agent", &agent.url]);
    feed_garbage(&mut server);
    server.initialize();
    feed_garbage(&mut server);
    assert_eq!(server.call("desk.greet", &json!({ "name": "Ann" })).text(), "hello Ann");
    server.leave();
}

#[test]
fn it_greets_its_client_while_an_agent_is_still_asked_for_its_card() {
    let agent = SampleAgent::named("Desk");
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let rialto = Rialto::fresh().with("A2A_DISCOVERY_TIMEOUT_MS", "600000");
    let mut server = rialto.mcp(&["--agent", &url, "--agent", &agent.url]);
    server.initialize();
    // Whoever wants to see tools waits until it is known which there are.
    drop(silent);
    assert_eq!(server.call("desk.greet", &json!({ "name": "Ann" })).text(), "hello Ann");
    server.leave();
}

#[test]
fn agents_with_equal_names_have_the_same_tools_at_every_start() {
    let (first, second) = (SampleAgent::named("Desk"), SampleAgent::named("Desk"));
    second.change_card(|card| card["skills"] = json!([]));
    second.learn("digits");
    for (slow, quick) in [(&first, &second), (&second, &first)] {
        slow.delay_card(Duration::from_millis(500));
        quick.delay_card(Duration::ZERO);
        let rialto = Rialto::fresh();
        let mut server = rialto.mcp(&["--agent", &first.url, "--agent", &second.url, "--names", "legacy"]);
        server.initialize();
        let listed = server.ask("tools/list", &json!({}))["result"].take();
        let tools = names(&listed["tools"]);
        let has = |name: &str| tools.iter().any(|tool| tool == name);
        assert!(has("a2a_desk_greet") && has("a2a_desk_2_digits"), "{tools:?}");
        server.leave();
    }
}

#[test]
fn an_agent_that_is_loaded_again_with_a_token_is_called_with_it() {
    let (rialto, agent) = (Rialto::fresh(), SampleAgent::named("Desk"));
    let mut server = rialto.mcp(&[]);
    server.initialize();
    server.call("load_agent", &json!({ "url": agent.url })).result();
    server.call("desk.greet", &json!({ "name": "Ann" })).result();
    assert_eq!(agent.tokens(), Vec::<String>::new());
    for token in ["first", "second"] {
        server.call("load_agent", &json!({ "url": agent.url, "token": token })).result();
        server.call("desk.greet", &json!({ "name": "Ann" })).result();
    }
    assert_eq!(agent.tokens(), ["Bearer first", "Bearer second"]);
    server.leave();
}

#[test]
fn a_request_that_is_not_understood_is_answered_with_an_error() {
    let rialto = Rialto::fresh();
    let mut server = rialto.mcp(&[]);
    server.initialize();
    assert_eq!(server.ask("no/such/method", &json!({}))["error"]["code"], -32601);
    assert_eq!(server.ask("tools/call", &json!({ "arguments": {} }))["error"]["code"], -32602);
    let unknown = server.call("no_such_tool", &json!({}));
    assert_eq!(unknown.answer.unwrap_err()["code"], -32602);
    server.leave();
}

#[test]
fn it_ends_content_when_its_client_leaves_without_a_word() {
    let rialto = Rialto::fresh();
    rialto.mcp(&[]).leave();
    let mut server = rialto.mcp(&[]);
    server.initialize();
    server.leave();
}

#[test]
fn what_an_agent_does_for_a_client_that_is_gone_is_found_by_the_next_one() {
    let (rialto, agent) = (Rialto::fresh(), SampleAgent::named("Desk"));
    agent.learn("later");
    let mut server = rialto.mcp(&["--agent", &agent.url]);
    server.initialize();
    // Longer than calls are waited for whose client has closed stdin.
    let params = json!({ "name": "desk.later", "arguments": { "ms": 8000 } });
    let call = json!({ "jsonrpc": "2.0", "id": "long", "method": "tools/call", "params": params });
    server.write(call.to_string().as_bytes());
    until("the agent has heard of it", || (!agent.heard().is_empty()).then_some(()));
    server.leave();

    let mut next = rialto.mcp(&["--agent", &agent.url]);
    next.initialize();
    let latest = next.call("get_task", &json!({}));
    let task = &latest.data()["tasks"][0];
    assert_eq!((&task["called"], &task["state"]), (&json!("desk.later"), &json!("working")));
    let done = until("the task is done", || {
        let seen = next.call("get_task", &json!({ "task_id": task["task_id"] }));
        (seen.data()["state"] == "completed").then_some(seen)
    });
    assert_eq!(done.text(), "done at last");
    next.leave();
}

#[test]
fn the_agents_that_are_named_are_loaded_trusted_and_not_kept() {
    let (rialto, agent) = (Rialto::fresh(), SampleAgent::named("Desk"));
    let mut server = rialto.mcp(&["--agent", &agent.url]);
    server.initialize();
    let listed = names(&server.ask("tools/list", &json!({}))["result"]["tools"]);
    let own = ["load_agent", "list_agents", "send_message", "get_task", "cancel_task"];
    for name in own.iter().chain(&["desk.echo", "desk.greet"]) {
        assert!(listed.contains(&(*name).to_owned()), "{name} is not in {listed:?}");
    }
    let found = server.call("desk.echo", &json!({ "q": "ü" }));
    assert_eq!(found.data(), &json!({ "q": "ü" }));
    server.leave();
    assert_eq!(rialto.json(&["agents", "list", "--json"]), json!([]));
}

#[test]
fn an_agent_that_is_not_there_is_no_reason_not_to_start() {
    let agent = SampleAgent::named("Desk");
    let rialto = Rialto::fresh();
    let mut server = rialto.mcp(&["--agent", "http://127.0.0.1:2", "--agent", &agent.url]);
    server.initialize();
    assert_eq!(server.call("desk.greet", &json!({ "name": "Ann" })).text(), "hello Ann");
    let log = server.leave();
    assert!(log.contains("127.0.0.1:2"), "{log}");
}

#[test]
fn an_agent_that_is_loaded_adds_its_tools_and_the_client_is_told() {
    let agent = SampleAgent::named("Desk");
    let rialto = Rialto::fresh();
    let mut server = rialto.mcp(&[]);
    server.initialize();
    server.write(
        json!({ "jsonrpc": "2.0", "id": "load", "method": "tools/call",
                "params": { "name": "load_agent", "arguments": { "url": agent.url } } })
        .to_string()
        .as_bytes(),
    );
    let (mut loaded, mut told) = (false, false);
    while !(loaded && told) {
        let message = server.hear();
        loaded |=
            message["id"] == "load" && message["result"]["structuredContent"]["agent"]["slug"] == "desk";
        told |= message["method"] == "notifications/tools/list_changed";
    }
    assert_eq!(server.call("a2a_desk_greet", &json!({ "name": "Ann" })).text(), "hello Ann");
    server
        .call("load_agent", &json!({ "url": "http://127.0.0.1:2" }))
        .error(-32202, "RemoteA2ATransportError");
    server.leave();
}

#[test]
fn an_agent_is_spoken_to_by_url_id_slug_or_name() {
    let agent = SampleAgent::named("The Desk");
    let rialto = Rialto::fresh();
    let mut server = rialto.mcp(&["--agent", &agent.url]);
    server.initialize();
    let agents = server.call("list_agents", &json!({}));
    let id = agents.data()["agents"][0]["id"].as_str().unwrap().to_owned();
    for key in [agent.url.as_str(), &id, "the_desk", "The Desk"] {
        let sent = server.call("send_message", &json!({ "agent": key, "message": { "x": 1 } }));
        assert_eq!(sent.data()["state"], "completed", "{key}");
    }
    assert_eq!(agent.heard().len(), 4);
    server.call("send_message", &json!({ "agent": "nobody", "message": "x" })).error(-32602, "NotFoundError");
    server.leave();
}

#[test]
fn a_policy_file_may_forbid_what_the_person_at_the_client_named() {
    let (rialto, agent) = (Rialto::fresh(), SampleAgent::named("Desk"));
    let file = rialto.folder().join("strict.cedar");
    std::fs::write(&file, r#"@id("look") permit (principal, action == Action::"a2a_discover", resource);"#)
        .unwrap();
    let mut server = rialto.mcp(&["--agent", &agent.url, "--policy", file.to_str().unwrap()]);
    server.initialize();
    server.call("desk.echo", &json!({})).error(-32003, "AuthorizationError");
    assert_eq!(agent.heard(), Vec::<String>::new());
    server.leave();
}

#[test]
fn an_agent_that_is_registered_but_was_not_named_needs_a_permit() {
    let (rialto, agent) = (Rialto::fresh(), SampleAgent::named("Desk"));
    rialto.cli(&["agents", "add", &agent.url]).ok();
    let mut server = rialto.mcp(&[]);
    server.initialize();
    server.call("desk.echo", &json!({})).error(-32003, "AuthorizationError");
    rialto.cli(&["agents", "trust", "desk", "trusted"]).ok();
    server.call("desk.echo", &json!({})).result();
    server.leave();
}

#[test]
fn a_permit_holds_at_the_next_call_also_when_an_agent_is_loaded_in_between() {
    let (rialto, known, loaded) =
        (Rialto::fresh(), SampleAgent::named("Known"), SampleAgent::named("Loaded"));
    rialto.cli(&["agents", "add", &known.url]).ok();
    let mut server = rialto.mcp(&[]);
    server.initialize();
    server.call("known.echo", &json!({})).error(-32003, "AuthorizationError");
    rialto.cli(&["policy", "allow", "known"]).ok();
    server.call("load_agent", &json!({ "url": loaded.url })).result();
    server.call("known.echo", &json!({})).result();
    server.leave();
}

#[test]
fn each_client_is_shown_names_that_it_accepts() {
    let agent = SampleAgent::named("Desk");
    for (client, name) in
        [("claude-ai", "a2a_desk_echo"), ("other", "a2a_desk_echo"), ("claude-code", "desk.echo")]
    {
        let rialto = Rialto::with_defaults();
        let mut server = rialto.mcp(&["--agent", &agent.url]);
        server.initialize_as(client);
        let listed = names(&server.ask("tools/list", &json!({}))["result"]["tools"]);
        let echoes: Vec<&String> = listed.iter().filter(|name| name.ends_with("echo")).collect();
        assert_eq!(echoes, [name], "{client}");
        server.leave();
    }
}

#[test]
fn each_old_protocol_version_is_answered_in_itself() {
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let rialto = Rialto::fresh();
        let mut server = rialto.mcp(&[]);
        let client = json!({ "name": "old", "version": "1" });
        let params = json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": client });
        let answer = server.ask("initialize", &params);
        assert_eq!(answer["result"]["protocolVersion"], version, "{answer}");
        server.leave();
    }
}

fn feed_garbage(server: &mut StdioServer) {
    for line in [
        &b"garbage"[..],
        b"",
        b"{",
        b"[]",
        b"null",
        b"42",
        br#""text""#,
        br#"{"a":1}"#,
        br#"{"jsonrpc":"2.0"}"#,
        br#"{"jsonrpc":"1.0","id":9000,"method":"tools/list"}"#,
        b"\xff\xfe\x00 not text",
    ] {
        server.write(line);
    }
}
