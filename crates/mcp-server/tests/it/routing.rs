//! The tools that choose an agent.

use std::sync::Arc;

use futures::{StreamExt, stream};
use insta::assert_json_snapshot;
use rialto_mcp_server::{InvokeConfig, LoadAgents};
use rialto_model::{
    card::{Binding, Card, Dialect, Interface},
    event::{Event, EventAside, QuestionKind},
    failure::{Failure, FailureKind},
    message::{Message, Part, Role},
};
use rialto_testkit::{
    agents::{card, tagged_skill},
    peer::{ScriptedPeer, accepted, finished_with},
};
use serde_json::{Value, json};

use crate::{
    house::{House, Plan, ann, steady},
    lines::Client,
    web::Web,
};

fn tester(name: &str) -> Card {
    card(name, vec![tagged_skill("run_tests", &["qa"])])
}

fn telling(text: &'static str) -> Arc<ScriptedPeer> {
    ScriptedPeer::with(move |_| stream::iter(finished_with(vec![Part::text(text)])).boxed())
}

async fn house_of(peer: Arc<ScriptedPeer>, agents: Vec<Card>) -> House {
    let mut plan = Plan { agents, ..Plan::with(peer) };
    plan.calls.routing.seed = Some(7);
    plan.build().await
}

/// The same with ids of choices that are the same in every run.
fn without_ids(value: &Value) -> Value {
    let text = steady(value).to_string();
    let mut steady = String::new();
    let mut rest = text.as_str();
    for (at, _) in text.match_indices("dsp_") {
        let start = at - (text.len() - rest.len());
        steady.push_str(&rest[..start]);
        steady.push_str("dsp_1");
        rest = &rest[start + 36..];
    }
    steady.push_str(rest);
    serde_json::from_str(&steady).unwrap()
}

#[tokio::test]
async fn they_are_listed_when_somebody_wants_so_and_work_in_any_case() {
    let names = |list: &Value| -> Vec<String> {
        let tools = list["result"]["tools"].as_array().unwrap().iter();
        tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    };
    let plain = house_of(telling("tested"), vec![tester("Anna")]).await;
    let list = Web::new(&plain).ask("tools/list", json!({})).await.only();
    assert!(!names(&list).contains(&"dispatch".to_owned()));
    assert!(
        Web::new(&plain).call("dispatch", json!({ "work_type": "qa", "description": "x" })).await["result"]
            .is_object()
    );

    let mut plan = Plan { agents: vec![tester("Anna")], ..Plan::default() };
    plan.config.routing_tools = true;
    let house = plan.build().await;
    let list = Web::new(&house).ask("tools/list", json!({})).await.only();
    assert_eq!(names(&list)[5..8], ["dispatch", "mesh_resolve", "invoke_a2a"]);
    assert_json_snapshot!(list["result"]["tools"].as_array().unwrap()[5..8]);
    let mut client = Client::initialized(&house, "2025-06-18", "test").await;
    let older = client.ask("tools/list", json!({})).await;
    assert_eq!(names(&older)[5..8], ["dispatch", "mesh_resolve", "invoke_a2a"]);
}

#[tokio::test]
async fn dispatched_work_is_answered_with_the_result_and_who_did_it() {
    let house = house_of(telling("all green"), vec![tester("Anna")]).await;
    let args = json!({ "work_type": "qa", "description": "run the tests", "required_skills": ["run_tests"] });
    let answer = Web::new(&house).call("dispatch", args).await;
    assert_json_snapshot!(without_ids(&answer["result"]));
    let calls = house.peer.calls.lock();
    assert_eq!(calls[0].target.verb(), "anna.run_tests");
    assert_eq!(calls[0].parts, [Part::text("run the tests")]);
}

#[tokio::test]
async fn nobody_who_fits_is_an_error_that_says_so() {
    let house = house_of(telling(""), vec![tester("Anna")]).await;
    let call = json!({ "name": "dispatch", "arguments": { "description": "roses", "required_skills": ["gardening"] } });
    let error = Web::new(&house).ask("tools/call", call).await.only()["error"].clone();
    assert_eq!(
        (&error["code"], &error["data"]["reason"]),
        (&json!(-32602), &json!("nobody-left")),
        "{error}"
    );
    for args in [json!({}), json!({ "work_type": "qa" }), json!({ "description": 5 })] {
        let call = json!({ "name": "dispatch", "arguments": args });
        assert_eq!(Web::new(&house).ask("tools/call", call).await.only()["error"]["code"], -32602);
    }
}

#[tokio::test]
async fn who_could_do_it_is_told_with_the_reasons() {
    let house = house_of(telling(""), vec![tester("Anna"), tester("Berta")]).await;
    let answer = Web::new(&house).call("mesh_resolve", json!({ "capability": "run tests" })).await;
    let mut told = answer["result"]["structuredContent"].clone();
    let candidates = told["candidates"].as_array_mut().unwrap();
    candidates.sort_by_key(|one| one["agent"].as_str().unwrap().to_owned());
    for one in candidates {
        assert!(one["agentId"].as_str().unwrap().starts_with("agt_"));
        one["agentId"] = json!("agt");
        // The draws come from a seed, but which is whose is for the next test.
        for member in ["draw", "score", "verdict"] {
            assert!(!one[member].is_null());
            one[member] = json!(member);
        }
    }
    assert_json_snapshot!(told);
    assert!(house.peer.calls.lock().is_empty());
}

#[tokio::test]
async fn an_agent_is_invoked_by_address_by_name_by_capability_or_by_default() {
    let mut plan =
        Plan { agents: vec![tester("Anna"), card("Default", Vec::new())], ..Plan::with(telling("done")) };
    plan.config.invoking = InvokeConfig {
        default_agent_card_url: Some("https://default.example.com".into()),
        ..InvokeConfig::default()
    };
    plan.load_agents = LoadAgents::refused();
    let house = plan.build().await;
    let web = Web::new(&house);
    let all = json!({ "agent_card_url": "https://anna.example.com/.well-known/agent-card.json", "agent_name": "Default", "capability": "qa", "message": "go" });
    for (without, expected) in [
        (None, "anna"),
        (Some("agent_card_url"), "default"),
        (Some("agent_name"), "anna"),
        (Some("capability"), "default"),
    ] {
        let mut args = all.clone();
        for name in ["agent_card_url", "agent_name", "capability"] {
            if without.is_some() {
                args.as_object_mut().unwrap().remove(name);
            }
            if without == Some(name) {
                break;
            }
        }
        let answer = web.call("invoke_a2a", args.clone()).await;
        assert_eq!(answer["result"]["structuredContent"]["agent"], expected, "{args}: {answer}");
    }
    assert!(house.peer.calls.lock()[0].target.skill.is_none());
    assert_json_snapshot!(without_ids(
        &web.call("invoke_a2a", json!({ "agent_name": "anna", "message": { "a": 1 } })).await["result"]
    ));
}

#[tokio::test]
async fn an_address_that_nobody_vouches_for_is_not_called_over_http() {
    let mut plan = Plan { agents: Vec::new(), ..Plan::with(telling("done")) };
    plan.load_agents = LoadAgents::refused();
    let house = plan.build().await;
    house.discovery.serve("https://news.example.com", tester("News"));
    for place in ["https://news.example.com", "/etc/passwd", "file:///etc/passwd"] {
        let call = json!({ "name": "invoke_a2a", "arguments": { "agent_card_url": place, "message": "x" } });
        let reply = Web::new(&house).ask("tools/call", call).await.only();
        assert_eq!(reply["error"]["code"], -32003, "{reply}");
    }
    assert!(house.engine.registry().all().is_empty() && house.peer.calls.lock().is_empty());
}

#[tokio::test]
async fn at_the_machine_itself_an_address_or_a_card_file_will_do() {
    let mut plan = Plan { agents: Vec::new(), ..Plan::with(telling("done")) };
    plan.config.invoking.read_card = Some(Arc::new(|path: &str| {
        if path != "/cards/filed.json" {
            return Err("it is not there".to_owned());
        }
        let url = "https://filed.example.com".to_owned();
        let interface = Interface { url, binding: Binding::JsonRpc, dialect: Dialect::V10, tenant: None };
        Ok(Card { interfaces: vec![interface], ..tester("Filed") })
    }));
    let house = plan.build().await;
    house.discovery.serve("https://news.example.com", tester("News"));
    let web = Web::new(&house);
    for (place, agent) in [
        ("https://news.example.com", "news"),
        ("/cards/filed.json", "filed"),
        ("file:///cards/filed.json", "filed"),
    ] {
        let call = json!({ "name": "invoke_a2a", "arguments": { "agent_card_url": place, "message": "x" } });
        let answer = web.ask("tools/call", call).await.only();
        assert_eq!(answer["result"]["structuredContent"]["agent"], agent, "{answer}");
    }
    let filed = house.engine.registry().find(&ann().scope, "filed").unwrap();
    assert_eq!(filed.url, "https://filed.example.com");
    house.engine.registry().probe(&filed).await.unwrap();
    let after = house.engine.registry().find(&ann().scope, "filed").unwrap();
    assert_eq!(after.health, filed.health, "nobody is asked for a card that came by hand");
    let call = json!({ "name": "invoke_a2a", "arguments": { "agent_card_url": "/cards/none.json", "message": "x" } });
    assert_eq!(web.ask("tools/call", call).await.only()["error"]["code"], -32602);
}

#[tokio::test]
async fn a_task_is_continued_with_a_message_and_looked_at_without() {
    let question = Message::new("m", Role::Agent, vec![Part::text("which one?")]);
    let asked =
        Event::Asked { ask: QuestionKind::Input, message: Some(question), aside: EventAside::default() };
    let peer = ScriptedPeer::with(move |call| {
        if call.continues.task_id.is_some() {
            return stream::iter(finished_with(vec![Part::text("the red one")])).boxed();
        }
        stream::iter(vec![accepted("remote-1", "context-1"), asked.clone()]).boxed()
    });
    let house = house_of(peer, vec![tester("Anna")]).await;
    let web = Web::new(&house);
    let first = web.call("invoke_a2a", json!({ "capability": "run_tests", "message": "go" })).await;
    let told = &first["result"]["structuredContent"];
    assert_eq!((&told["state"], &told["status_message"]), (&json!("input-required"), &json!("which one?")));
    let looked = web.call("invoke_a2a", json!({ "task_id": told["task_id"] })).await;
    assert_eq!(looked["result"]["structuredContent"]["state"], "input-required");
    let on = json!({ "task_id": told["task_id"], "context_id": told["context_id"], "message": "red" });
    let last = web.call("invoke_a2a", on).await;
    assert_eq!(last["result"]["structuredContent"]["state"], "completed", "{last}");
    assert_eq!(last["result"]["content"][0]["text"], "the red one");
}

#[tokio::test]
async fn what_takes_too_long_is_answered_with_its_task() {
    let events = vec![accepted("remote-1", "context-1")];
    let peer = ScriptedPeer::with(move |_| stream::iter(events.clone()).chain(stream::pending()).boxed());
    let house = house_of(peer, vec![tester("Anna")]).await;
    let args = json!({ "agent_name": "anna", "message": "x", "timeout": 0.05 });
    let answer = Web::new(&house).call("invoke_a2a", args).await;
    assert_eq!(answer["result"]["structuredContent"]["state"], "submitted", "{answer}");
    let call =
        json!({ "name": "invoke_a2a", "arguments": { "agent_name": "anna", "message": "x", "timeout": 0 } });
    assert_eq!(Web::new(&house).ask("tools/call", call).await.only()["error"]["code"], -32602);
}

#[tokio::test]
async fn who_goes_on_after_one_that_was_not_there_is_the_one_that_is_named() {
    let peer = ScriptedPeer::with(|call| {
        if call.target.agent.slug == "dead" {
            let gone = Failure::new(FailureKind::PeerUnreachable, "connection refused").not_sent();
            return stream::iter(vec![Event::failed(gone)]).boxed();
        }
        stream::iter(finished_with(vec![Part::text("done")])).boxed()
    });
    let house = house_of(peer, vec![tester("Dead"), tester("Alive")]).await;
    for _ in 0..12 {
        let answer =
            Web::new(&house).call("dispatch", json!({ "work_type": "qa", "description": "x" })).await;
        assert_eq!(answer["result"]["structuredContent"]["agent"], "alive", "{answer}");
    }
    let dead = house.peer.calls.lock().iter().filter(|call| call.target.agent.slug == "dead").count();
    assert!(dead > 0);
}
