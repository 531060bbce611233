//! Numbers keep their digits, whatever carries them.

use serde_json::json;

use crate::harness::{
    agent::{DIGITS, SampleAgent},
    http::{self, HttpAnswer},
    rialto::Rialto,
};

/// What every JSON library in the world can hold: 64 bits, and doubles in their shortest spelling.
const COMMON: &str =
    r#"{"most":18446744073709551615,"least":-9223372036854775808,"odd":9007199254740993,"tenth":0.1}"#;

#[test]
fn every_digit_crosses_from_the_command_line() {
    let (rialto, agent) = (Rialto::fresh(), SampleAgent::named("Desk"));
    rialto.trust(&agent.url);
    let flat = |text: String| text.split_whitespace().collect::<String>();
    for form in [&["call", "desk.echo", DIGITS][..], &["call", "desk.echo", DIGITS, "--json"]] {
        let said = rialto.cli(form).ok();
        assert!(agent.heard().last().unwrap().contains(DIGITS), "sent: {:?}", agent.heard().last());
        assert!(flat(said.out.clone()).contains(DIGITS), "answered: {}", said.out);
    }
    let task = rialto.json(&["tasks", "list", "--json"])[0]["id"].as_str().unwrap().to_owned();
    assert!(flat(rialto.cli(&["tasks", "show", &task, "--json"]).ok().out).contains(DIGITS));
}

#[test]
fn sixty_four_bits_cross_over_mcp_both_ways() {
    let (agent, answer) = echo_over_mcp(COMMON);
    assert!(agent.heard()[0].contains(COMMON), "sent: {}", agent.heard()[0]);
    assert!(structured(&answer).starts_with(COMMON), "answered: {}", answer.body);
}

#[test]
fn the_text_of_a_result_has_every_digit_that_the_agent_wrote() {
    let (rialto, agent) = (Rialto::fresh(), SampleAgent::named("Desk"));
    agent.change_card(|card| card["skills"][0]["id"] = json!("digits"));
    rialto.trust(&agent.url);
    let result = rialto.serve(&["--allow-no-auth"]).call("desk.digits", &json!({}));
    assert_eq!(result.text(), DIGITS);
}

#[test]
fn every_digit_crosses_over_mcp() {
    let (agent, answer) = echo_over_mcp(DIGITS);
    assert!(agent.heard()[0].contains(DIGITS), "sent: {}", agent.heard()[0]);
    assert!(structured(&answer).starts_with(DIGITS), "answered: {}", answer.body);
}

/// Sends the arguments as they are written: no JSON library of the test's stands between.
fn echo_over_mcp(args: &str) -> (SampleAgent, HttpAnswer) {
    let (rialto, agent) = (Rialto::fresh(), SampleAgent::named("Desk"));
    rialto.trust(&agent.url);
    let server = rialto.serve(&["--allow-no-auth"]);
    let meta = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"}}"#;
    let params = format!(r#"{{"name":"desk.echo","arguments":{args},"_meta":{meta}}}"#);
    let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
    let headers =
        [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/call"), ("Mcp-Name", "desk.echo")];
    let answer = http::post(&server.mcp(), &headers, &body);
    (agent, answer)
}

fn structured(answer: &HttpAnswer) -> &str {
    answer.body.split("\"structuredContent\":").nth(1).unwrap_or_default()
}
