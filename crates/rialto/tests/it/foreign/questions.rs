//! Official MCP clients of both eras answer what an agent asks, by the callback that their SDK has for it.

use serde_json::json;

use crate::harness::{
    client::{McpClient, McpEra, Sdk},
    foreign_agent::ForeignAgent,
    rialto::Rialto,
};

#[test]
fn the_python_sdk_answers_questions_in_both_eras_over_stdio_and_http() {
    answers_questions(Sdk::Python);
}

#[test]
fn the_typescript_sdk_answers_questions_in_both_eras_over_stdio_and_http() {
    answers_questions(Sdk::TypeScript);
}

fn answers_questions(sdk: Sdk) {
    let agent = ForeignAgent::start("py_1_3", &[]);
    let rialto = Rialto::fresh();
    rialto.trust(&agent.url);
    let server = rialto.serve(&[]);
    let stdio = Rialto::fresh();
    for era in [McpEra::Auto, McpEra::Legacy] {
        for door in [stdio.stdio(&["--agent", &agent.url]), server.door()] {
            let red = json!({ "action": "accept", "content": { "answer": "red" } });
            let mut client = McpClient::answering(sdk, era, &door, &red);
            assert_eq!(client.call("py13_agent.ask", &json!({})).text(), "you chose red");
            let asked = client.hear_question();
            assert_eq!(asked["message"], "which colour?", "{sdk:?} {era:?}: {asked}");
            client.leave();

            let mut client = McpClient::answering(sdk, era, &door, &json!({ "action": "accept" }));
            assert_eq!(client.call("py13_agent.login", &json!({})).text(), "signed in");
            let asked = client.hear_question();
            assert_eq!(asked["url"], "https://login.example.com/start", "{sdk:?} {era:?}: {asked}");
            client.leave();

            for action in ["cancel", "decline"] {
                let mut client = McpClient::answering(sdk, era, &door, &json!({ "action": action }));
                let waits = client.call("py13_agent.ask", &json!({}));
                assert!(waits.text().contains("the task keeps waiting"), "{sdk:?} {era:?}: {waits:?}");
                assert_eq!(waits.data()["state"], "input-required", "{sdk:?} {era:?}: {waits:?}");
                client.leave();
            }
        }
    }
}
