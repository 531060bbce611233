//! A list of three tools that find the others.

use insta::assert_json_snapshot;
use rialto_mcp_server::ToolList;
use rialto_testkit::agents::{card, skill};
use serde_json::{Value, json};

use crate::{
    house::{House, Plan, named, steady},
    lines::Client,
    web::Web,
};

fn names(tools: &Value) -> Vec<&str> {
    tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

fn searching(house: &House) -> Web {
    Web { path: "/mcp?tools=search".into(), ..Web::new(house) }
}

/// A house with a few agents whose skills are about different things.
async fn house() -> House {
    let house = Plan::default().build().await;
    let ops = vec![
        named("deploy", "Deploy", "Puts a new version of a web site on its servers"),
        named("rollback", "Roll back", "Goes back to the version before"),
        named("translate_text", "Translate", "Puts a text into another language"),
    ];
    house.meet(card("Ops", ops)).await;
    house
}

async fn found(web: &Web, query: &str) -> Vec<String> {
    let call = json!({ "name": "search_tools", "arguments": { "query": query } });
    let answer = web.ask("tools/call", call).await.only();
    let tools = &answer["result"]["structuredContent"]["tools"];
    names(tools).into_iter().map(str::to_owned).collect()
}

#[tokio::test]
async fn whoever_asks_for_it_is_shown_three_tools() {
    let house = house().await;
    let list = searching(&house).ask("tools/list", json!({})).await.only();
    assert_json_snapshot!(steady(&list));
    let all = Web::new(&house).ask("tools/list", json!({})).await.only();
    assert!(names(&all["result"]["tools"]).contains(&"ops.deploy"));
    let wrong = Web { path: "/mcp?tools=few".into(), ..Web::new(&house) };
    assert_eq!(wrong.ask("tools/list", json!({})).await.status, 400);
}

#[tokio::test]
async fn so_is_everybody_where_there_are_too_many_or_the_configuration_says_so() {
    for (list, above, many) in
        [(ToolList::Search, 0, true), (ToolList::All, 1, true), (ToolList::All, 9, false)]
    {
        let mut plan = Plan::default();
        (plan.config.tools, plan.config.search_above) = (list, above);
        let house = plan.build().await;
        house.meet(card("Ops", vec![skill("deploy")])).await;
        let shown = Web::new(&house).ask("tools/list", json!({})).await.only();
        assert_eq!(names(&shown["result"]["tools"]).len() == 3, many, "{list:?} {above}");
        let all = Web { path: "/mcp?tools=all".into(), ..Web::new(&house) };
        let shown = all.ask("tools/list", json!({})).await.only();
        assert_eq!(names(&shown["result"]["tools"]).len(), 7);
    }
    let mut plan = Plan::default();
    plan.config.tools = ToolList::Search;
    let house = plan.build().await;
    let mut older = Client::initialized(&house, "2025-06-18", "x").await;
    let shown = older.ask("tools/list", json!({})).await;
    assert_eq!(names(&shown["result"]["tools"]), ["search_tools", "describe_tool", "call_tool"]);
}

#[tokio::test]
async fn tools_are_found_by_what_they_are_about() {
    let house = house().await;
    let web = searching(&house);
    assert_eq!(found(&web, "deploy").await, ["ops.deploy"]);
    assert_eq!(found(&web, "web sites").await, ["ops.deploy"]);
    assert_eq!(found(&web, "deplpy").await, ["ops.deploy"], "a slip");
    assert_eq!(found(&web, "langua").await, ["ops.translate_text"], "a beginning");
    assert_eq!(found(&web, "version before").await[..1], ["ops.rollback"]);
    assert_eq!(found(&web, "nonsense quux").await, Vec::<String>::new());
    house.meet(card("Nets", vec![named("ping", "Ping", "Measures a quux")])).await;
    assert_eq!(found(&web, "quux").await, ["nets.ping"], "an index of the registry as it is now");
}

#[tokio::test]
async fn what_a_caller_may_not_see_is_not_found() {
    let hide = r#"@id("hide") forbid (principal, action == Action::"a2a_discover", resource);"#;
    let plan = Plan { policy: hide, ..Plan::default() };
    let house = plan.build().await;
    assert_eq!(found(&searching(&house), "forecast").await, Vec::<String>::new());
}

#[tokio::test]
async fn a_tool_is_described_and_called_as_itself() {
    let house = house().await;
    let web = searching(&house);
    let describe = json!({ "name": "describe_tool", "arguments": { "name": "weather.forecast" } });
    let told = web.ask("tools/call", describe).await.only();
    assert_eq!(told["result"]["structuredContent"]["name"], "weather.forecast");
    assert!(told["result"]["structuredContent"]["inputSchema"].is_object());
    let arguments = json!({ "name": "weather.forecast", "arguments": { "city": "Oslo" } });
    let called = web.ask("tools/call", json!({ "name": "call_tool", "arguments": arguments })).await.only();
    let direct = json!({ "name": "weather.forecast", "arguments": { "city": "Oslo" } });
    let itself = web.ask("tools/call", direct).await.only();
    assert_eq!(called["result"]["structuredContent"], itself["result"]["structuredContent"]);
    let calls = house.peer.calls.lock();
    assert_eq!((calls.len(), calls[0].target.verb()), (2, "weather.forecast".to_owned()));
}

#[tokio::test]
async fn what_cannot_be_called_is_said() {
    let house = house().await;
    let web = searching(&house);
    for (arguments, code) in [
        (json!({ "name": "nobody.nothing" }), -32602),
        (json!({ "name": "call_tool", "arguments": { "name": "weather.forecast" } }), -32602),
        (json!({ "arguments": {} }), -32602),
    ] {
        let answer =
            web.ask("tools/call", json!({ "name": "call_tool", "arguments": arguments })).await.only();
        assert_eq!(answer["error"]["code"], code, "{answer}");
    }
    let describe = json!({ "name": "describe_tool", "arguments": { "name": "nobody.nothing" } });
    let answer = web.ask("tools/call", describe).await.only();
    assert!(answer["error"]["message"].as_str().unwrap().contains("search_tools"), "{answer}");
}
