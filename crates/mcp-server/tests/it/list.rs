//! What `tools/list` shows, to whom, and page by page.

use std::collections::HashSet;

use insta::assert_json_snapshot;
use rialto_mcp_server::{LoadAgents, ToolNames};
use rialto_model::card::Skill;
use rialto_testkit::agents::{card, skill};
use serde_json::{Value, json};

use crate::{
    house::{House, Plan, steady},
    lines::Client,
    web::Web,
};

/// The names of the skills' tools, without our own five.
fn names(answer: &Value) -> Vec<String> {
    let tools = answer["result"]["tools"].as_array().unwrap_or_else(|| panic!("{answer}"));
    tools
        .iter()
        .filter(|tool| tool.get("annotations").is_none())
        .map(|tool| tool["name"].as_str().unwrap().into())
        .collect()
}

async fn names_for(house: &House, client: &'static str, path: &str) -> Vec<String> {
    let web = Web { client, path: path.into(), ..Web::new(house) };
    names(&web.ask("tools/list", json!({})).await.only())
}

fn skills(count: usize) -> Vec<Skill> {
    (0..count).map(|n| skill(&format!("s{n:05}"))).collect()
}

#[tokio::test]
async fn our_own_tools_come_first_and_then_the_skills_in_order() {
    let house = Plan::default().build().await;
    house.meet(card("Alpha", vec![skill("z"), skill("a")])).await;
    let list = Web::new(&house).ask("tools/list", json!({})).await.only();
    assert_json_snapshot!(steady(&list));
    assert_eq!(names(&list), ["alpha.a", "alpha.z", "weather.forecast"]);
}

#[tokio::test]
async fn each_client_is_shown_names_it_can_bear() {
    let house = Plan { config: rialto_mcp_server::Config::default(), ..Plan::default() }.build().await;
    assert_eq!(names_for(&house, "claude-code", "/mcp").await, ["weather.forecast"]);
    assert_eq!(names_for(&house, "claude-ai", "/mcp").await, ["a2a_weather_forecast"]);
    assert_eq!(names_for(&house, "claude-ai", "/mcp?names=canonical").await, ["weather.forecast"]);
    assert_eq!(names_for(&house, "x", "/mcp?a=b&names=legacy").await, ["a2a_weather_forecast"]);
    assert_eq!(names_for(&house, "x", "/mcp?names=both").await, ["weather.forecast", "a2a_weather_forecast"]);
    let web = Web { path: "/mcp?names=pretty".into(), ..Web::new(&house) };
    assert_eq!(web.ask("tools/list", json!({})).await.status, 400);
}

#[tokio::test]
async fn an_older_client_is_known_by_its_handshake() {
    let house = Plan { config: rialto_mcp_server::Config::default(), ..Plan::default() }.build().await;
    let mut client = Client::initialized(&house, "2025-06-18", "cursor-vscode").await;
    assert_eq!(names(&client.ask("tools/list", json!({})).await), ["a2a_weather_forecast"]);
    let mut web = Web { client: "cursor-vscode", ..Web::new(&house) };
    web.initialize("2025-06-18").await;
    assert_eq!(names(&web.ask_legacy("tools/list", json!({})).await.only()), ["a2a_weather_forecast"]);
}

#[tokio::test]
async fn the_configuration_chooses_for_everybody() {
    let mut plan = Plan::default();
    plan.config.tool_names = ToolNames::Both;
    let house = plan.build().await;
    assert_eq!(names_for(&house, "claude-ai", "/mcp").await, ["weather.forecast", "a2a_weather_forecast"]);
}

#[tokio::test]
async fn a_name_that_was_cut_works_when_it_is_called() {
    let long = "a-skill-whose-id-is-far-too-long-for-some-of-the-clients-that-we-know";
    let plan = Plan { agents: vec![card("Weather", vec![skill(long)])], ..Plan::default() };
    let house = plan.build().await;
    for client in ["cursor", "gemini-cli-mcp-client", "codex-mcp-client"] {
        let name = names_for(&house, client, "/mcp").await.remove(0);
        assert!(name.len() < 50, "{name}");
        Web::new(&house).call(&name, json!({})).await;
    }
    assert_eq!(house.peer.calls.lock().len(), 3);
}

#[tokio::test]
async fn names_that_a_client_would_make_equal_are_kept_apart() {
    let agents = vec![
        card("a", vec![skill("b_c")]),
        card("a b", vec![skill("c")]),
        // Our own tool, once the dot is rewritten.
        card("send", vec![skill("message")]),
    ];
    let house = Plan { agents, ..Plan::default() }.build().await;
    assert_eq!(names_for(&house, "x", "/mcp").await, ["a.b_c", "a_b.c", "send.message"]);
    let names = names_for(&house, "claude-code", "/mcp").await;
    let rewritten: HashSet<_> = names.iter().map(|name| name.replace('.', "_")).collect();
    assert_eq!(rewritten.len(), 3, "{names:?}");
    assert!(!rewritten.contains("send_message"));
    for name in &names {
        Web::new(&house).call(name, json!({})).await;
    }
    let called: HashSet<_> = house.peer.calls.lock().iter().map(|call| call.target.verb()).collect();
    assert_eq!(called.len(), 3);
}

#[tokio::test]
async fn pages_follow_each_other_without_a_gap() {
    let mut plan = Plan { agents: vec![card("Weather", skills(25))], ..Plan::default() };
    plan.config.page_size = 10;
    let house = plan.build().await;
    let web = Web::new(&house);
    let (mut all, mut cursor, mut pages) = (Vec::new(), Value::Null, 0);
    loop {
        let params = if cursor.is_null() { json!({}) } else { json!({ "cursor": cursor }) };
        let page = web.ask("tools/list", params).await.only();
        all.extend(names(&page));
        pages += 1;
        cursor = page["result"]["nextCursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!((pages, all.len()), (3, 25));
    assert!(all.is_sorted());
}

#[tokio::test]
async fn a_page_after_a_change_goes_on_where_the_last_one_ended() {
    let mut plan = Plan { agents: vec![card("m", skills(4))], ..Plan::default() };
    plan.config.page_size = 2;
    let house = plan.build().await;
    let web = Web::new(&house);
    let first = web.ask("tools/list", json!({})).await.only();
    house.meet(card("a", skills(3))).await;
    house.meet(card("z", skills(1))).await;
    let second = web.ask("tools/list", json!({ "cursor": first["result"]["nextCursor"] })).await.only();
    assert_eq!(names(&second), ["m.s00002", "m.s00003"]);
    let third = web.ask("tools/list", json!({ "cursor": second["result"]["nextCursor"] })).await.only();
    assert_eq!(names(&third), ["z.s00000"]);
}

#[tokio::test]
async fn a_cursor_that_is_not_ours_is_refused() {
    let house = Plan::default().build().await;
    let reply = Web::new(&house).ask("tools/list", json!({ "cursor": "***" })).await;
    assert_eq!(reply.only()["error"]["code"], -32602);
}

#[tokio::test]
async fn what_a_caller_may_not_see_is_neither_listed_nor_there() {
    let policy = "@id(\"hidden\") forbid (principal, action == Action::\"a2a_discover\", resource) \
                  when { resource is Skill && resource.skillId == \"s00001\" };";
    let plan = Plan { agents: vec![card("Weather", skills(3))], policy, ..Plan::default() };
    let house = plan.build().await;
    assert_eq!(names_for(&house, "x", "/mcp").await, ["weather.s00000", "weather.s00002"]);
    let reply =
        Web::new(&house).ask("tools/call", json!({ "name": "weather.s00001", "arguments": {} })).await;
    let near = reply.only()["error"]["data"]["near"].clone();
    assert!(!near.as_array().unwrap().contains(&json!("weather.s00001")), "{near}");
}

#[tokio::test]
async fn an_agent_that_cannot_be_reached_is_not_listed() {
    let house = Plan { load_agents: LoadAgents::Session, ..Plan::default() }.build().await;
    house.discovery.stop("https://weather.example.com");
    let agent = house.engine.registry().find(&crate::house::ann().scope, "weather").unwrap();
    house.engine.registry().refresh(&agent).await.unwrap_err();
    assert!(names_for(&house, "x", "/mcp").await.is_empty());
    let reply =
        Web::new(&house).ask("tools/call", json!({ "name": "weather.forecast", "arguments": {} })).await;
    assert_eq!(reply.only()["error"]["code"], -32202);
}

#[tokio::test]
async fn a_skill_is_listed_under_the_name_it_was_given_and_answers_to_all() {
    let mut plan = Plan::default();
    plan.config.tool_aliases = serde_json::from_value(json!({ "rain": "weather.forecast" })).unwrap();
    let house = plan.build().await;
    let web = Web::new(&house);
    let listed = web.ask("tools/list", json!({})).await.only();
    let names: Vec<_> =
        listed["result"]["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names.last().unwrap().as_str(), Some("rain"));
    assert!(!names.contains(&&json!("weather.forecast")));
    for name in ["rain", "weather.forecast", "a2a_weather_forecast"] {
        web.call(name, json!({})).await;
    }
    let calls = house.peer.calls.lock();
    assert_eq!(calls.len(), 3);
    assert!(calls.iter().all(|call| call.target.verb() == "weather.forecast"));
}

#[tokio::test]
async fn clients_that_need_it_or_ask_for_it_are_shown_portable_schemas() {
    let schema = json!({
        "type": "object", "properties": { "day": { "$ref": "#/$defs/day" } }, "$defs": { "day": { "type": "string" } },
    });
    let skill = rialto_testkit::agents::skill_with_schema("forecast", schema.clone());
    let house = Plan { agents: vec![card("Weather", vec![skill])], ..Plan::default() }.build().await;
    let portable = json!({ "type": "object", "properties": { "day": { "type": "string" } } });
    for (client, path, is_portable) in [
        ("claude-code", "/mcp", true),
        ("claude-code", "/mcp?schemas=original", false),
        ("x", "/mcp", false),
        ("x", "/mcp?tools=all&schemas=portable", true),
    ] {
        let web = Web { client, path: path.into(), ..Web::new(&house) };
        let listed = web.ask("tools/list", json!({})).await.only();
        let tools = listed["result"]["tools"].as_array().unwrap();
        let tool = tools.iter().find(|tool| tool["_meta"]["rialto/canonical"] == "weather.forecast").unwrap();
        assert_eq!(
            tool["inputSchema"],
            if is_portable { portable.clone() } else { schema.clone() },
            "{client} {path}"
        );
        assert_eq!(
            tool["_meta"].get("rialto/inputSchema"),
            is_portable.then_some(&schema),
            "{client} {path}"
        );
        let described = web.call("describe_tool", json!({ "name": "weather.forecast" })).await;
        assert_eq!(
            described["result"]["structuredContent"]["inputSchema"], tool["inputSchema"],
            "{client} {path}"
        );
    }
    let web = Web { path: "/mcp?schemas=pretty".into(), ..Web::new(&house) };
    assert_eq!(web.ask("tools/list", json!({})).await.status, 400);
}
