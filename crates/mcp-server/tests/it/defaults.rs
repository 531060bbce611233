//! What a client gets when no option is set: legal tool names, and failures that its model can read.

use rialto_mcp_server::Config;
use rialto_model::{
    event::Event,
    failure::{Failure, FailureKind},
};
use rialto_testkit::{
    agents::{card, skill_with_schema},
    peer::{ScriptedPeer, accepted},
};
use serde_json::{Value, json};

use crate::{
    house::{Plan, within},
    lines::Client,
    web::Web,
};

fn plan(peer: std::sync::Arc<ScriptedPeer>) -> Plan {
    Plan { config: Config::default(), ..Plan::with(peer) }
}

/// The S0 code of each failure that a tool can end with, and how an agent or a request causes it.
fn failing(kind: FailureKind) -> Plan {
    let failure = Failure::new(kind, "no such city");
    plan(ScriptedPeer::telling(vec![accepted("remote-1", "c"), Event::failed(failure)]))
}

async fn call(plan: Plan, address: &str, args: Value) -> Value {
    let house = plan.build().await;
    let web = Web::new(&house);
    let params = json!({ "name": "a2a_weather_forecast", "arguments": args });
    let mut request = web.modern("tools/call", params, json!({}));
    *request.uri_mut() = address.parse().unwrap();
    crate::web::read(web.send(request).await).await.only()
}

#[tokio::test]
async fn every_s0_error_is_a_result_by_default_and_a_protocol_error_on_request() {
    let denied = "@id(\"no\") forbid (principal, action == Action::\"a2a_invoke\", resource);";
    let cases: [(i64, fn() -> Plan); 5] = [
        (-32201, || failing(FailureKind::PeerTimeout)),
        (-32202, || failing(FailureKind::PeerUnreachable)),
        (-32203, || failing(FailureKind::PeerGarbled)),
        (-32204, || failing(FailureKind::PeerFailed)),
        (-32003, || plan(ScriptedPeer::echo())),
    ];
    for (code, plan) in cases {
        let plan = || Plan { policy: if code == -32003 { denied } else { "" }, ..plan() };
        let error = call(plan(), "/mcp?errors=protocol", json!({})).await["error"].clone();
        let result = call(plan(), "/mcp", json!({})).await["result"].clone();
        assert_eq!(error["code"], code, "{error}");
        assert_eq!(result["isError"], true, "{result}");
        let inside = &result["structuredContent"]["error"];
        assert_eq!(inside["code"], code);
        assert!(error["data"]["class"].is_string());
        assert_eq!(inside["data"]["class"], error["data"]["class"]);
        let names = |data: &Value| data.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&inside["data"]), names(&error["data"]));
        assert_eq!(result["content"][0]["text"], error["message"], "the model reads the reason");
    }
}

#[tokio::test]
async fn a_model_can_correct_arguments_by_what_it_reads() {
    let schema =
        json!({ "type": "object", "properties": { "city": { "type": "string" } }, "required": ["city"] });
    let skill = skill_with_schema("forecast", schema);
    let plan = Plan { agents: vec![card("Weather", vec![skill])], ..plan(ScriptedPeer::echo()) };
    let result = call(plan, "/mcp", json!({ "city": 1 })).await["result"].clone();
    assert_eq!(result["isError"], true);
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("/city") && text.contains("string"), "{text}");
}

#[tokio::test]
async fn an_unknown_tool_and_an_unknown_form_of_errors_are_protocol_errors() {
    let house = plan(ScriptedPeer::echo()).build().await;
    let web = Web::new(&house);
    let reply = web.ask("tools/call", json!({ "name": "nothing", "arguments": {} })).await.only();
    assert_eq!(reply["error"]["code"], -32602, "{reply}");
    let mut request = web.modern("tools/list", json!({}), json!({}));
    *request.uri_mut() = "/mcp?errors=loud".parse().unwrap();
    assert_eq!(web.send(request).await.status(), 400);
}

#[tokio::test]
async fn only_clients_known_to_accept_dots_are_shown_them() {
    let house = plan(ScriptedPeer::echo()).build().await;
    for (name, listed) in [
        ("mcp", "a2a_weather_forecast"),
        ("ai-sdk-mcp-client", "a2a_weather_forecast"),
        ("rialto", "a2a_weather_forecast"),
        ("openai-agents", "a2a_weather_forecast"),
        ("claude-code", "weather.forecast"),
        ("gemini-cli-mcp-client", "weather.forecast"),
        ("codex-mcp-client", "weather.forecast"),
        ("inspector-cli", "weather.forecast"),
    ] {
        let mut client = Client::initialized(&house, "2025-06-18", name).await;
        let reply = within(client.ask("tools/list", json!({}))).await;
        let tools = reply["result"]["tools"].as_array().unwrap();
        let last = tools.last().unwrap()["name"].as_str().unwrap();
        assert_eq!(last, listed, "{name}");
        for called in ["weather.forecast", "a2a_weather_forecast"] {
            let params = json!({ "name": called, "arguments": {} });
            let reply = within(client.ask("tools/call", params)).await;
            assert!(!reply["result"]["isError"].as_bool().unwrap_or(false), "{reply}");
        }
    }
}
