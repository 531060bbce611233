//! First contact of ordinary agents, clients and servers, without any option set.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::{
    agent::SampleAgent,
    http,
    mcp_upstream::{McpUpstream, PICTURE_BASE64_LEN},
    rialto::Rialto,
    root,
    server::ServerProcess,
    silent_agent::SilentAgent,
};

/// Tool name pattern of OpenAI and Anthropic: letters, digits, `_` and `-`, at most 64.
fn is_legal_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 64
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// The one listed tool whose name ends so.
#[track_caller]
fn find_tool(server: &ServerProcess, end: &str) -> String {
    let listed = server.list();
    listed.iter().find(|name| name.ends_with(end)).unwrap_or_else(|| panic!("{end}: {listed:?}")).clone()
}

/// Sends a message to an agent's own A2A endpoint.
fn post_message(
    server: &ServerProcess,
    agent: &str,
    id: &str,
    text: &str,
) -> std::io::Result<http::HttpAnswer> {
    let message = json!({ "messageId": id, "role": "ROLE_USER", "parts": [{ "text": text }] });
    let params = json!({ "message": message });
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params });
    let url = format!("{}/a2a/agents/{agent}", server.url);
    http::try_post(&url, &[("a2a-version", "1.0")], &request.to_string())
}

#[test]
fn a_text_agent_is_sent_the_message_as_text() {
    let (rialto, agent) = (Rialto::with_defaults(), SampleAgent::named("Desk"));
    agent.change_card(|card| card["defaultInputModes"] = json!(["text/plain"]));
    rialto.trust(&agent.url);
    let server = rialto.serve(&["--allow-no-auth"]);
    server.call(&find_tool(&server, "echo"), &json!({ "message": "What is new?" })).result();
    let sent: Value = serde_json::from_str(&agent.heard()[0]).unwrap();
    let parts = sent["params"]["message"]["parts"].as_array().unwrap();
    let texts: String = parts.iter().filter_map(|part| part["text"].as_str()).collect();
    assert_eq!(texts, "What is new?", "the agent reads the text parts alone: {sent}");
}

#[test]
fn model_vendors_accept_the_name_of_every_listed_tool() {
    let (rialto, agent) = (Rialto::with_defaults(), SampleAgent::named("Desk"));
    rialto.trust(&agent.url);
    let server = rialto.serve(&["--allow-no-auth"]);
    let mut stdio = rialto.mcp(&["--agent", &agent.url]);
    stdio.initialize();
    let over_stdio = stdio.ask("tools/list", &json!({}))["result"]["tools"].take();
    for listed in [server.list_at("/mcp")["tools"].take(), over_stdio] {
        let names: Vec<&str> =
            listed.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        assert!(names.iter().any(|name| name.ends_with("echo")), "{names:?}");
        let illegal: Vec<&&str> = names.iter().filter(|name| !is_legal_name(name)).collect();
        assert_eq!(illegal, Vec::<&&str>::new(), "vendors refuse a request with these names");
    }
}

/// The call failed with a result in which a model reads the reason.
#[track_caller]
fn assert_readable_failure(server: &ServerProcess, tool: &str, reason: &str) {
    let failed = server.call(&find_tool(server, tool), &json!({}));
    assert_eq!(failed.result()["isError"], true, "{failed:?}");
    assert!(failed.text().contains(reason), "{failed:?}");
}

#[test]
fn a_failed_task_is_a_result_that_a_model_can_read() {
    let (rialto, agent) = (Rialto::with_defaults(), SampleAgent::named("Desk"));
    rialto.trust(&agent.url);
    let server = rialto.serve(&["--allow-no-auth"]);
    assert_readable_failure(&server, "fail", "it broke on purpose");
}

#[test]
fn a_failed_upstream_tool_is_a_result_that_a_model_can_read() {
    let rialto = Rialto::with_defaults().with("PATH", "/usr/bin:/bin");
    McpUpstream::new(&rialto, "weather", &["fail"]).add(&rialto, &[]);
    assert_readable_failure(&rialto.serve(&["--allow-no-auth"]), "fail", "no luck");
}

#[test]
fn a_picture_of_an_upstream_tool_is_in_the_result_once() {
    let rialto = Rialto::with_defaults().with("PATH", "/usr/bin:/bin");
    McpUpstream::new(&rialto, "screen", &["picture"]).add(&rialto, &[]);
    let server = rialto.serve(&["--allow-no-auth"]);
    let taken = server.call(&find_tool(&server, "picture"), &json!({}));
    let result = taken.result();
    assert_eq!(result["content"][1]["type"], "image");
    assert_eq!(result["content"][1]["data"].as_str().unwrap().len(), PICTURE_BASE64_LEN);
    let length = result.to_string().len();
    assert!(
        length < PICTURE_BASE64_LEN + 2_000,
        "{length} bytes for a picture of {PICTURE_BASE64_LEN} in base64"
    );
    assert_eq!(result.get("structuredContent"), None, "the server sent none");
}

#[test]
fn messages_with_one_id_and_other_words_are_other_tasks() {
    let (rialto, agent) = (Rialto::with_defaults(), SampleAgent::named("Desk"));
    agent.change_card(|card| card["defaultInputModes"] = json!(["text/plain"]));
    rialto.trust(&agent.url);
    let server = rialto.serve(&["--allow-no-auth"]);
    let texts = ["deploy [staging] now", "deploy [production] now", "deploy staging now"];
    let send = |text: &str| {
        let answer: Value =
            serde_json::from_str(&post_message(&server, "desk", "m-1", text).unwrap().body).unwrap();
        answer["result"]["task"]["id"].as_str().unwrap_or_else(|| panic!("{text}: {answer}")).to_owned()
    };
    let tasks = texts.map(send);
    let heard = agent.heard();
    for text in texts {
        assert!(
            heard.iter().any(|body| body.contains(text)),
            "\"{text}\" never reached the agent: {heard:?}"
        );
    }
    let distinct: std::collections::BTreeSet<&String> = tasks.iter().collect();
    assert_eq!(distinct.len(), 3, "{tasks:?}");
    assert_eq!(send(texts[1]), tasks[1], "the same message again is the same task");
    assert_eq!(agent.heard().len(), 3);
}

#[test]
fn a_token_given_after_the_agent_refused_a_call_is_sent_with_the_next_one() {
    let (rialto, agent) = (Rialto::with_defaults(), SampleAgent::named("Desk"));
    agent.demand_token("s3cret");
    let mut stdio = rialto.mcp(&[]);
    stdio.initialize();
    stdio.call("load_agent", &json!({ "url": agent.url })).result();
    let listed = stdio.ask("tools/list", &json!({}))["result"]["tools"].take();
    let tools = listed.as_array().unwrap().iter().filter_map(|tool| tool["name"].as_str());
    let tool = tools.into_iter().find(|name| name.ends_with("greet")).unwrap().to_owned();
    let refused = stdio.call(&tool, &json!({ "name": "Ann" }));
    assert!(format!("{refused:?}").contains("401"), "{refused:?}");
    stdio.call("load_agent", &json!({ "url": agent.url, "token": "s3cret" })).result();
    let greeted = stdio.call(&tool, &json!({ "name": "Ann" }));
    assert_eq!(greeted.text(), "hello Ann");
    stdio.leave();
}

#[test]
fn a_body_of_0_3_rest_with_the_message_as_request_is_a_message() {
    let (rialto, agent) = (Rialto::with_defaults(), SampleAgent::named("Desk"));
    rialto.trust(&agent.url);
    let server = rialto.serve(&["--allow-no-auth"]);
    // As the HTTP+JSON client for 0.3 of a2a-sdk 1.3.0 writes it.
    let message = json!({
        "message_id": "m-1", "role": "ROLE_USER", "content": [{ "data": { "data": { "name": "Ann" } } }],
    });
    let body = json!({
        "request": message,
        "configuration": { "accepted_output_modes": ["text/plain"], "blocking": true },
        "metadata": { "skillId": "desk.greet" },
    });
    let answer = http::post(&format!("{}/a2a/v1/message:send", server.url), &[], &body.to_string());
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(answer.body.contains("hello Ann"), "{answer:?}");
}

#[test]
fn a_tool_whose_agent_closes_its_stream_without_a_result_fails_within_seconds() {
    let (rialto, agent) = (Rialto::with_defaults(), SilentAgent::start());
    rialto.trust(&agent.url);
    let server = rialto.serve(&["--allow-no-auth"]);
    let begun = Instant::now();
    let failed = format!("{:?}", server.call(&find_tool(&server, "work"), &json!({})));
    assert!(begun.elapsed() < Duration::from_secs(10), "it took {:?}: {failed}", begun.elapsed());
    assert!(failed.contains("closed its stream without a result"), "{failed}");
}

#[test]
fn a_relayed_task_whose_agent_closes_its_stream_without_a_result_fails_within_seconds() {
    let (rialto, agent) = (Rialto::with_defaults(), SilentAgent::start());
    rialto.trust(&agent.url);
    let server = rialto.serve(&["--allow-no-auth"]);
    let begun = Instant::now();
    let answer = post_message(&server, "silent", "m-1", "work").map(|answer| answer.body);
    let states = || {
        let tasks = rialto.json(&["tasks", "list", "--json"]);
        let states = tasks.as_array().unwrap().iter().map(|task| task["state"].as_str().unwrap().to_owned());
        states.collect::<Vec<_>>()
    };
    assert!(
        begun.elapsed() < Duration::from_secs(10),
        "it took {:?}: {answer:?}, and the task is {:?}",
        begun.elapsed(),
        states()
    );
    assert!(answer.unwrap().contains("closed its stream without a result"));
    assert_eq!(states(), ["failed"], "no task stays open");
}

#[test]
fn release_is_fast_to_build_and_packages_have_a_profile_of_their_own() {
    let manifest: toml::Table = std::fs::read_to_string(root().join("Cargo.toml")).unwrap().parse().unwrap();
    let release = &manifest["profile"]["release"];
    for slow in ["lto", "codegen-units", "package"] {
        assert!(
            release.get(slow).is_none(),
            "{slow} makes the first `cargo run --release` take minutes more"
        );
    }
    assert_eq!(manifest["profile"]["dist"]["lto"].as_str(), Some("fat"));
    for file in ["order.txt", "build.rs"] {
        assert!(!root().join("crates/rialto").join(file).exists(), "{file} orders functions for the linker");
    }
}
