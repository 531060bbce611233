//! Numbers keep every digit, whatever carries them.

use crate::harness::{agent::SampleAgent, http, rialto::Rialto};

/// More than 64 bits, more than a double, and a spelling of its own.
const ARGS: &str =
    r#"{"int":123456789012345678901234567890,"float":0.1234567890123456789,"exp":1e2,"zero":1.0}"#;

#[test]
fn every_digit_crosses_from_the_command_line() {
    let (rialto, agent) = (Rialto::fresh(), SampleAgent::named("Desk"));
    rialto.trust(&agent.url);
    let said = rialto.cli(&["call", "desk.echo", ARGS, "--json"]).ok();
    assert!(agent.heard()[0].contains(ARGS), "{}", agent.heard()[0]);
    assert!(said.out.contains("123456789012345678901234567890"), "{}", said.out);
    assert!(said.out.contains("0.1234567890123456789"), "{}", said.out);
}

#[test]
fn every_digit_crosses_over_mcp() {
    let (rialto, agent) = (Rialto::fresh(), SampleAgent::named("Desk"));
    rialto.trust(&agent.url);
    let server = rialto.serve(&["--allow-no-auth"]);
    let meta = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"}}"#;
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"desk.echo","arguments":{ARGS},"_meta":{meta}}}}}"#
    );
    let headers =
        [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/call"), ("Mcp-Name", "desk.echo")];
    let answer = http::post(&server.mcp(), &headers, &body);
    assert!(agent.heard()[0].contains(ARGS), "sent: {}", agent.heard()[0]);
    let structured = answer.body.split("\"structuredContent\":").nth(1).unwrap_or_default();
    assert!(structured.starts_with(ARGS), "answered: {}", answer.body);
}
