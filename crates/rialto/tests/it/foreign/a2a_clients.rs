//! Official A2A clients of every generation at the A2A door: what a registered agent and a deployed function can do is theirs.

use serde_json::{Value, json};

use super::operations::{Operation, Visit};
use crate::harness::{
    a2a_client::{A2aClient, ClientVariant, KINDS, PROTO_NAMES},
    foreign_agent::ForeignAgent,
    http,
    rialto::Rialto,
    server::ServerProcess,
    until,
    webhook_receiver::WebhookReceiver,
};

/// Functions that do what the foreign agents do, as far as a command can.
const FUNCTIONS: &str = r#"
[a2a]
push_private = true
public_skills = "all"

[[functions]]
name = "say"
command = ["python3", "-c", "import json, sys; print('hello', json.load(sys.stdin)['name'])"]

[[functions]]
name = "count"
command = ["echo", "1 2 3"]

[[functions]]
name = "slow"
command = ["sh", "-c", 'sleep $(tr -dc 0-9); echo "done at last"']

[[functions]]
name = "fail"
command = ["sh", "-c", "echo it broke on purpose >&2; exit 1"]
"#;

#[test]
fn the_python_sdk_1_3_drives_the_door_over_json_rpc() {
    drives(ClientVariant::of("a2a_py_1_3", "jsonrpc"));
}

#[test]
fn the_python_sdk_1_3_drives_the_door_over_http_json() {
    drives(ClientVariant::of("a2a_py_1_3", "rest"));
}

#[test]
fn the_python_sdk_1_3_drives_the_door_over_grpc() {
    drives(ClientVariant::of("a2a_py_1_3", "grpc"));
}

#[test]
fn the_javascript_sdk_1_3_drives_the_door_over_json_rpc() {
    drives(ClientVariant::of("a2a_js_1_3", "jsonrpc"));
}

#[test]
fn the_javascript_sdk_1_3_drives_the_door_over_http_json() {
    drives(ClientVariant::of("a2a_js_1_3", "rest"));
}

#[test]
fn the_python_sdk_0_3_drives_the_door_over_json_rpc() {
    drives(ClientVariant::of("a2a_py_0_3", "jsonrpc"));
}

#[test]
fn the_python_sdk_0_3_drives_the_door_over_http_json() {
    drives(ClientVariant::of("a2a_py_0_3", "rest"));
}

#[test]
fn the_python_sdk_1_3_drives_the_door_over_http_json_of_0_3() {
    drives(PROTO_NAMES);
}

#[test]
fn the_python_sdk_0_3_drives_the_door_over_grpc() {
    drives(ClientVariant::of("a2a_py_0_3", "grpc"));
}

#[test]
fn the_python_sdk_0_2_drives_the_door() {
    drives(ClientVariant::of("a2a_py_0_2", "jsonrpc"));
}

#[test]
fn a_client_of_0_1_drives_the_door() {
    drives(ClientVariant::of("a2a_plain_0_1", "jsonrpc"));
}

#[test]
fn a_client_without_the_token_reads_the_card_and_gets_no_further() {
    let (_rialto, server) = serving(None);
    for &kind in KINDS {
        let mut client = A2aClient::start(kind, &server.url, None).unwrap();
        assert_eq!(client.card["schemes"], json!(["bearer"]), "{}", kind.name);
        let refused = client.call("get", json!({ "task": "any" })).unwrap_err();
        let is_refused = refused.contains("401") || refused.contains("UNAUTHENTICATED");
        assert!(is_refused, "{}: {refused}", kind.name);
    }
}

/// A server with a token, and everything that clients are to find there.
fn serving(agent: Option<&ForeignAgent>) -> (Rialto, ServerProcess) {
    let rialto = Rialto::fresh().with("PATH", "/usr/local/bin:/usr/bin:/bin");
    std::fs::write(rialto.folder().join("rialto.toml"), FUNCTIONS).unwrap();
    if let Some(agent) = agent {
        rialto.trust(&agent.url);
    }
    let server = rialto.serve(&[]);
    assert!(server.token.is_some());
    (rialto, server)
}

/// All that a client's generation can do, with an agent's skills and with functions.
fn drives(kind: ClientVariant) {
    let agent = ForeignAgent::start("py_1_3", &[]);
    let (rialto, server) = serving(Some(&agent));
    let receiver = WebhookReceiver::start();
    let mut client = A2aClient::start(kind, &server.url, server.token.as_deref()).unwrap();
    let skills: Vec<&str> =
        client.card["skills"].as_array().unwrap().iter().filter_map(|skill| skill.as_str()).collect();
    for skill in ["py13_agent.say", "py13_agent.ask", "say", "slow", "fail"] {
        assert!(skills.contains(&skill), "{skill} is not in {skills:?}");
    }
    assert_eq!((&client.card["streaming"], &client.card["push"]), (&true.into(), &true.into()));
    let of_the_agent = ("py13_agent.", true, &Operation::ALL[..]);
    let of_functions = ("", false, &Operation::OF_A_FUNCTION[..]);
    let mut wrong = Vec::new();
    for (prefix, tells_steps, operations) in [of_the_agent, of_functions] {
        for &operation in operations {
            if operation.is_known_to(&client) {
                let mut visit = Visit { client: &mut client, prefix, tells_steps, receiver: &receiver };
                if let Err(why) = visit.perform(operation) {
                    wrong.push(format!("{prefix}{}: {why}", operation.name()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}\n{}", kind.name, wrong.join("\n"), server.log());
    every_call_is_closed_on_record(&rialto);
    assert!(!server.log().contains("ERROR"), "{}", server.log());
    if client.can("card") {
        let extended = client.call("card", json!({})).unwrap();
        assert_eq!(extended["schemes"], json!(["bearer"]));
        assert!(extended["skills"].as_array().unwrap().contains(&"say".into()));
    }
    let card = http::get(&format!("{}/.well-known/agent.json", server.url)).unwrap();
    assert_eq!(card.status, 200);
}

/// Also what was called off, however that came about.
fn every_call_is_closed_on_record(rialto: &Rialto) {
    let count = |records: &Value, phase: &str| {
        records.as_array().unwrap().iter().filter(|record| record["event"]["phase"] == phase).count()
    };
    until("every call is closed on record", || {
        let records = rialto.json(&["audit", "--json", "--limit", "1000"]);
        let (begun, closed) = (count(&records, "pre-verb"), count(&records, "post-verb"));
        (begun > 0 && begun == closed).then_some(())
    });
}
