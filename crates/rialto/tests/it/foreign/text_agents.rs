//! Ordinary text agents on each official SDK: what they are asked in words reaches them, whichever way it comes in.

use serde_json::{Value, json};

use crate::harness::{foreign_agent::ForeignAgent, http, rialto::Rialto};

const WORDS: &str = "What is the weather in Oslo?";

#[test]
fn a_text_agent_of_every_sdk_echoes_what_it_is_asked_by_every_way_in() {
    for sdk in ["text_1_3", "text_0_3", "text_0_2", "text_js"] {
        let agent = ForeignAgent::start(sdk, &[]);
        let rialto = Rialto::with_defaults();
        let added = rialto.cli(&["agents", "add", &agent.url, "--trust", "trusted"]);
        assert_eq!(added.status, 0, "{sdk}: {added:?}");
        let server = rialto.serve(&["--allow-no-auth"]);

        let listed = server.list_at("/mcp");
        let tools = listed["tools"].as_array().unwrap_or_else(|| panic!("{sdk}: {listed}"));
        let tool = tools.iter().find(|tool| tool["name"] == "a2a_text_agent_ask").unwrap();
        assert_eq!(tool["inputSchema"]["properties"]["message"]["type"], "string", "{sdk}");

        let asked = server.call("a2a_text_agent_ask", &json!({ "message": WORDS }));
        assert_eq!(asked.text(), WORDS, "{sdk}: the MCP tool");
        let sent = server.call("send_message", &json!({ "agent": "text_agent", "message": WORDS }));
        assert!(sent.text().contains(WORDS), "{sdk}: send_message: {sent:?}");

        let called = rialto.cli(&["call", "text_agent.ask", WORDS]);
        assert_eq!((called.status, called.out.trim()), (0, WORDS), "{sdk}: rialto call: {called:?}");

        let url = format!("{}/call/text_agent.ask", server.url);
        let body = json!({ "message": WORDS }).to_string();
        let plain = http::post(&url, &[("content-type", "application/json")], &body);
        let quoted = json!(WORDS).to_string();
        assert_eq!((plain.status, &plain.body), (200, &quoted), "{sdk}: POST /call");
        let plain = http::post(&url, &[("content-type", "text/plain")], WORDS);
        assert_eq!((plain.status, &plain.body), (200, &quoted), "{sdk}: POST /call as text");

        let message = json!({ "messageId": "m-1", "role": "ROLE_USER", "parts": [{ "text": WORDS }] });
        let request = json!({
            "jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": { "message": message },
        });
        let headers = [("content-type", "application/json"), ("a2a-version", "1.0")];
        let relay = format!("{}/a2a/agents/text_agent", server.url);
        let relayed = http::post(&relay, &headers, &request.to_string());
        let relayed: Value = serde_json::from_str(&relayed.body).unwrap();
        assert!(relayed["result"].to_string().contains(WORDS), "{sdk}: the A2A relay: {relayed}");
    }
}
