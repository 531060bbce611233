//! Official MCP clients of both eras, over stdio and HTTP.

use serde_json::{Value, json};

use crate::harness::{
    client::{McpClient, McpEra, McpTransport, Sdk},
    foreign_agent::ForeignAgent,
    process::ChildProcess,
    rialto::Rialto,
};

#[test]
fn the_python_sdk_lists_and_calls_in_both_eras_over_stdio_and_http() {
    lists_and_calls(Sdk::Python);
}

#[test]
fn the_typescript_sdk_lists_and_calls_in_both_eras_over_stdio_and_http() {
    lists_and_calls(Sdk::TypeScript);
}

#[test]
fn the_inspector_lists_and_calls_over_stdio_and_http() {
    let agent = ForeignAgent::start("plain_0_1", &[]);
    let rialto = Rialto::fresh();
    rialto.trust(&agent.url);
    let server = rialto.serve(&[]);
    let stdio = Rialto::fresh();
    for door in [stdio.stdio(&["--agent", &agent.url]), server.door()] {
        for era in ["legacy", "modern"] {
            let listed = inspect(&["--era", era, "list"], &door).unwrap();
            assert!(listed.to_string().contains("plain01_agent.say"), "{era}: {listed}");
            let call = ["--era", era, "call", "plain01_agent.say", r#"{"name":"Ann"}"#];
            let called = inspect(&call, &door).unwrap();
            assert_eq!(called["result"]["content"][0]["text"], "hello Ann", "{era}: {called}");
            let failed = inspect(&["--era", era, "call", "plain01_agent.fail", "{}"], &door).unwrap_err();
            assert!(failed.contains("it broke on purpose"), "{era}: {failed}");
        }
    }
}

#[test]
fn a_client_without_the_token_is_not_let_in() {
    let server = Rialto::fresh().serve(&[]);
    let without = McpTransport::Http { url: server.mcp(), token: None, ca: None };
    let wrong = McpTransport::Http { url: server.mcp(), token: Some("rialto_0000".to_owned()), ca: None };
    for era in [McpEra::Auto, McpEra::Legacy] {
        McpClient::refused(Sdk::Python, era, &without);
        McpClient::refused(Sdk::TypeScript, era, &without);
    }
    McpClient::refused(Sdk::Python, McpEra::Auto, &wrong);
    inspect(&["list"], &without).unwrap_err();
}

fn lists_and_calls(sdk: Sdk) {
    let agent = ForeignAgent::start("plain_0_1", &[]);
    let rialto = Rialto::fresh();
    rialto.trust(&agent.url);
    let server = rialto.serve(&[]);
    assert!(server.token.is_some());
    let stdio = Rialto::fresh();
    for era in [McpEra::Auto, McpEra::Legacy] {
        for door in [stdio.stdio(&["--agent", &agent.url]), server.door()] {
            let mut client = McpClient::start(sdk, era, &door);
            assert_eq!(client.greeting["server"]["name"], "rialto");
            let listed = client.greeted_with();
            let count = |name: &str| listed.iter().filter(|listed| *listed == name).count();
            for name in
                ["plain01_agent.say", "list_agents", "send_message", "get_task", "cancel_task", "invoke_a2a"]
            {
                assert_eq!(count(name), 1, "{name} in {listed:?}");
            }
            // The person at the machine, and the owner of the server.
            assert_eq!(count("load_agent"), 1, "{listed:?}");
            assert_eq!(client.list(), listed);
            assert_eq!(client.call("plain01_agent.say", &json!({ "name": "Ann" })).text(), "hello Ann");
            assert_eq!(client.call("plain01_agent.echo", &json!({ "a": [1] })).data(), &json!({ "a": [1] }));
            let counted = client.call("plain01_agent.count", &json!({}));
            assert_eq!(counted.text(), "1 2 3");
            assert!(counted.progress.iter().any(|told| told["message"] == "step 1/3"), "{counted:?}");
            let failed = client.call("plain01_agent.fail", &json!({}));
            assert!(
                failed.error(-32204, "RemoteA2ATaskFailedError")["message"]
                    .as_str()
                    .unwrap()
                    .contains("on purpose")
            );
            let unknown = client.call("plain01_agent.nothing", &json!({})).answer.unwrap_err();
            assert_eq!(unknown["code"], -32602, "{unknown}");
            several_calls_run_at_once(&mut client);
            client.leave();
        }
        let made = rialto.json(&["tokens", "create", "guest", "--json"]);
        let guest = McpTransport::Http {
            url: server.mcp(),
            token: made["token"].as_str().map(str::to_owned),
            ca: None,
        };
        let listed = McpClient::start(sdk, era, &guest).greeted_with();
        assert!(!listed.contains(&"load_agent".to_owned()), "{listed:?}");
        assert!(listed.contains(&"plain01_agent.say".to_owned()), "{listed:?}");
    }
}

fn several_calls_run_at_once(client: &mut McpClient) {
    for id in 1..=8 {
        client.begin(id, "plain01_agent.say", &json!({ "name": id.to_string() }));
    }
    for id in 1..=8 {
        assert_eq!(client.finish(id).text(), format!("hello {id}"));
    }
}

/// Runs the Inspector once: its answer, or its complaint.
fn inspect(words: &[&str], door: &McpTransport) -> Result<Value, String> {
    let words = [&["inspector"], words].concat();
    let mut process = ChildProcess::start(words.join(" "), &mut door.entered_by(&words));
    process.hang_up();
    if !process.end().success() {
        return Err(process.stderr());
    }
    let lines: Vec<String> = std::iter::from_fn(|| process.line_now()).collect();
    Ok(serde_json::from_str(&lines.join("\n")).unwrap())
}
