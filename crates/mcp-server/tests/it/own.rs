//! The five tools that are Rialto's own.

use futures::{StreamExt, stream};
use insta::assert_json_snapshot;
use rialto_mcp_server::LoadAgents;
use rialto_model::{
    agent::{AgentTrust, RowStorage},
    credential::{Credential, SecretSource},
    event::{Event, EventAside},
    message::{Content, Part},
};
use rialto_testkit::{
    agents::{card, skill},
    peer::{ScriptedPeer, accepted, finished_with, working},
};
use serde_json::{Value, json};

use crate::{
    house::{Plan, ann, steady},
    lines::Client,
    web::Web,
};

/// The same JSON with ids of agents that are the same in every run.
fn without_ids(mut value: Value) -> Value {
    match &mut value {
        Value::Object(members) => {
            if members.get("id").and_then(Value::as_str).is_some_and(|id| id.starts_with("agt_")) {
                members.insert("id".into(), json!("agt_1"));
            }
            for member in members.values_mut() {
                *member = without_ids(member.take());
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| *item = without_ids(item.take())),
        _ => {}
    }
    value
}

#[tokio::test]
async fn loading_an_agent_makes_its_skills_tools_and_tells_the_client() {
    let house = Plan { agents: vec![], ..Plan::default() }.build().await;
    house
        .discovery
        .serve("https://news.example.com", card("News", vec![skill("headlines"), skill("search")]));
    let mut client = Client::initialized(&house, "2025-06-18", "test").await;
    client.ask("ping", json!({})).await;
    let args = json!({ "url": "https://news.example.com/.well-known/agent-card.json", "token": "s3cret" });
    let id = client.begin("tools/call", json!({ "name": "load_agent", "arguments": args })).await;
    let (mut told, mut answer) = (Value::Null, Value::Null);
    for _ in 0..2 {
        let heard = client.hear().await;
        if heard["id"] == id { answer = heard } else { told = heard }
    }
    assert_eq!(told["method"], "notifications/tools/list_changed");
    assert_json_snapshot!(without_ids(answer));
    let agent = house.engine.registry().find(&ann().scope, "news").unwrap();
    assert_eq!(
        (agent.trust, agent.keep, agent.allow_private),
        (AgentTrust::Trusted, RowStorage::Session, true)
    );
    assert_eq!(agent.credential, Some(Credential::new(SecretSource::Held("s3cret".into()))));
    let call = client.ask("tools/call", json!({ "name": "news.search", "arguments": { "q": "x" } })).await;
    assert_eq!(call["result"]["structuredContent"], json!({ "q": "x" }));
}

#[tokio::test]
async fn an_agent_that_does_not_answer_is_not_loaded() {
    let house = Plan::default().build().await;
    let mut client = Client::initialized(&house, "2025-06-18", "test").await;
    let args = json!({ "url": "http://127.0.0.1:9" });
    let answer = client.ask("tools/call", json!({ "name": "load_agent", "arguments": args })).await;
    assert_json_snapshot!(answer);
}

#[tokio::test]
async fn where_agents_are_an_administrators_business_none_is_loaded() {
    let house = Plan { load_agents: LoadAgents::refused(), ..Plan::default() }.build().await;
    let args = json!({ "name": "load_agent", "arguments": { "url": "https://news.example.com" } });
    let reply = Web::new(&house).ask("tools/call", args).await;
    assert_json_snapshot!(reply.only());
}

#[tokio::test]
async fn arguments_of_our_own_tools_are_checked() {
    let house = Plan::default().build().await;
    let web = Web::new(&house);
    for (tool, args) in [
        ("load_agent", json!({})),
        ("load_agent", json!({ "url": 5 })),
        ("list_agents", json!({ "nonsense": true })),
        ("send_message", json!({ "message": "hi" })),
        ("send_message", json!({ "agent": "weather", "message": 5 })),
        ("get_task", json!({ "task_id": ["a"] })),
    ] {
        let reply = web.ask("tools/call", json!({ "name": tool, "arguments": args })).await;
        assert_eq!(reply.only()["error"]["code"], -32602, "{tool} {args}: {}", reply.text);
    }
}

#[tokio::test]
async fn agents_are_listed_with_their_skills() {
    let house = Plan::default().build().await;
    house.meet(card("News", vec![skill("headlines")])).await;
    let web = Web::new(&house);
    let all = web.call("list_agents", json!({})).await;
    assert_json_snapshot!(without_ids(all["result"].clone())["structuredContent"]);
    let some = web.call("list_agents", json!({ "query": "HEADLINE" })).await;
    assert_eq!(some["result"]["structuredContent"]["agents"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_message_is_sent_as_text_or_as_data() {
    let house = Plan::default().build().await;
    let web = Web::new(&house);
    let answer = web.call("send_message", json!({ "agent": "Weather", "message": "sun?" })).await;
    assert_json_snapshot!(steady(&answer["result"]));
    web.call("send_message", json!({ "agent": "https://weather.example.com/", "message": { "a": 1 } })).await;
    let calls = house.peer.calls.lock();
    assert_eq!(calls[0].parts[0].content, Content::Text("sun?".into()));
    assert!(matches!(&calls[1].parts[0].content, Content::Data(data) if data.get() == r#"{"a":1}"#));
}

#[tokio::test]
async fn a_message_that_takes_too_long_gives_the_task_id() {
    let events = vec![accepted("remote-1", "context-1"), working()];
    let script = move |_: &_| stream::iter(events.clone()).chain(stream::pending()).boxed();
    let mut plan = Plan::with(ScriptedPeer::with(script));
    plan.calls.timeout_ms = 50;
    let house = plan.build().await;
    let web = Web::new(&house);
    let answer = web.call("send_message", json!({ "agent": "weather", "message": "sun?" })).await;
    assert_json_snapshot!(steady(&answer["result"]));
    let id = &answer["result"]["structuredContent"]["task_id"];
    let cancelled = web.call("cancel_task", json!({ "task_id": id })).await;
    assert_eq!(cancelled["result"]["structuredContent"]["state"], "canceled");
    let reply = web.ask("tools/call", json!({ "name": "cancel_task", "arguments": { "task_id": id } })).await;
    assert_eq!(reply.only()["error"]["code"], -32206);
}

#[tokio::test]
async fn who_knows_no_id_is_told_its_latest_tasks_and_nobody_elses() {
    let house = Plan::default().build().await;
    let web = Web::new(&house);
    let none = web.call("get_task", json!({})).await;
    assert_eq!(none["result"]["content"][0]["text"], "you have no tasks yet");
    web.call("weather.forecast", json!({ "city": "Venice" })).await;
    web.call("send_message", json!({ "agent": "weather", "message": "sun?" })).await;
    let latest = web.call("get_task", json!({})).await;
    assert_json_snapshot!(steady(&latest["result"]));
    let newest = &latest["result"]["structuredContent"]["tasks"][0]["task_id"];
    let fetched = web.call("get_task", json!({ "task_id": newest })).await;
    assert_eq!(fetched["result"]["structuredContent"]["state"], "completed");
    let others = Web::of(&house, rialto_model::call::Caller::user("bob")).call("get_task", json!({})).await;
    assert_eq!(others["result"]["structuredContent"]["tasks"], json!([]));
}

#[tokio::test]
async fn a_message_goes_on_with_its_task_at_the_agent_that_has_it() {
    let peer = ScriptedPeer::with(|call| {
        let asked = Event::Asked {
            ask: rialto_model::event::QuestionKind::Input,
            message: None,
            aside: EventAside::default(),
        };
        let events = match &call.continues.task_id {
            None => vec![accepted("remote-1", "context-1"), asked],
            Some(_) => finished_with(vec![Part::text("ok")]).split_off(1),
        };
        stream::iter(events).boxed()
    });
    let house = Plan::with(peer).build().await;
    house.meet(card("News", vec![skill("headlines")])).await;
    let web = Web::new(&house);
    let first = web.call("send_message", json!({ "agent": "weather", "message": "hi" })).await;
    let id = &first["result"]["structuredContent"]["task_id"];
    let args =
        json!({ "name": "send_message", "arguments": { "agent": "news", "task_id": id, "message": "x" } });
    let wrong = web.ask("tools/call", args).await.only();
    assert_eq!(wrong["error"]["code"], -32602, "{wrong}");
    let right = web.call("send_message", json!({ "task_id": id, "message": "x" })).await;
    assert_eq!(right["result"]["structuredContent"]["state"], "completed");
    let calls = house.peer.calls.lock();
    assert_eq!(calls[1].continues.task_id.as_deref(), Some("remote-1"));
}

#[tokio::test]
async fn a_task_is_found_by_its_id_alone_and_only_by_its_owner() {
    let house = Plan::default().build().await;
    let web = Web::new(&house);
    let call = web.call("weather.forecast", json!({ "a": 1 })).await;
    let id = &call["result"]["_meta"]["rialto/taskId"];
    let mine = web.call("get_task", json!({ "task_id": id })).await;
    assert_eq!(mine["result"]["structuredContent"]["state"], "completed");
    assert_eq!(mine["result"]["content"][0]["text"], r#"{"a":1}"#);
    let theirs = Web::of(&house, rialto_model::call::Caller::user("bob"));
    let reply = theirs.ask("tools/call", json!({ "name": "get_task", "arguments": { "task_id": id } })).await;
    assert_eq!(reply.only()["error"]["code"], -32602);
}
