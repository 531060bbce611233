//! A call that takes long becomes a task for clients that declare MCP's tasks extension, and it is the task of the journal.

use std::{sync::Arc, time::Duration};

use futures::{StreamExt, stream};
use insta::assert_json_snapshot;
use parking_lot::Mutex;
use rialto_model::{
    call::Caller,
    card::Skill,
    event::{Event, QuestionKind},
    failure::{Failure, FailureKind},
    json::Json,
    message::Part,
};
use rialto_testkit::{
    agents::{card, skill},
    peer::{ScriptedPeer, accepted, finished_with, working},
};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::{
    asking::{asks, colour, inquisitive},
    house::{House, Plan, steady, within},
    lines::{Client, modern},
    web::Web,
};

const TASKS: &str = "io.modelcontextprotocol/tasks";

fn declared(elicitation: bool) -> Value {
    let mut capabilities = json!({ "extensions": { TASKS: {} } });
    if elicitation {
        capabilities["elicitation"] = json!({});
    }
    json!({ "io.modelcontextprotocol/clientCapabilities": capabilities })
}

fn forecast() -> Value {
    json!({ "name": "weather.forecast", "arguments": {} })
}

/// A skill that says that it takes long.
fn long() -> Skill {
    Skill { tags: vec!["long-running".to_owned()], ..skill("forecast") }
}

/// An agent that works until it is let on, and then tells these events.
fn held(events: Vec<Event>) -> (Arc<ScriptedPeer>, oneshot::Sender<()>) {
    let (on, gate) = oneshot::channel::<()>();
    let gate = Mutex::new(Some(gate));
    let peer = ScriptedPeer::with(move |_| {
        let (gate, events) = (gate.lock().take(), events.clone());
        let rest = stream::once(async move {
            if let Some(gate) = gate {
                let _ = gate.await;
            }
        });
        let begun = stream::iter([accepted("remote-1", "context-1"), working()]);
        begun.chain(rest.flat_map(move |()| stream::iter(events.clone()))).boxed()
    });
    (peer, on)
}

async fn house(peer: Arc<ScriptedPeer>) -> House {
    let agents = vec![card("Weather", vec![long()])];
    Plan { agents, ..Plan::with(peer) }.build().await
}

async fn begin(web: &Web) -> Value {
    let reply = web.ask_with("tools/call", forecast(), declared(true)).await;
    reply.only()["result"].clone()
}

async fn about(web: &Web, method: &str, task: &Value, more: Value) -> Value {
    let mut params = json!({ "taskId": task["taskId"] });
    params.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
    web.ask_with(method, params, declared(true)).await.only()
}

async fn get(web: &Web, task: &Value) -> Value {
    about(web, "tasks/get", task, json!({})).await["result"].clone()
}

async fn until(web: &Web, task: &Value, status: &str) -> Value {
    within(async {
        loop {
            let got = get(web, task).await;
            if got["status"] == status {
                return got;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await
}

#[tokio::test]
async fn a_call_that_takes_long_is_a_task_and_its_result_is_fetched() {
    let (peer, on) = held(finished_with(vec![Part::text("sunny")]).split_off(1));
    let house = house(peer).await;
    let web = Web::new(&house);
    let task = begin(&web).await;
    assert_json_snapshot!("handle", steady(&task));
    assert_json_snapshot!("working", steady(&until(&web, &task, "working").await));
    on.send(()).unwrap();
    assert_json_snapshot!("completed", steady(&until(&web, &task, "completed").await));
    assert_eq!(house.peer.calls.lock().len(), 1);
}

#[tokio::test]
async fn a_call_that_is_quick_enough_is_answered() {
    let mut plan = Plan::default();
    plan.config.task_after_ms = 10_000;
    let house = plan.build().await;
    let answered = begin(&Web::new(&house)).await;
    assert_eq!((&answered["resultType"], &answered["taskId"]), (&json!("complete"), &Value::Null));
}

#[tokio::test]
async fn a_call_that_is_not_known_to_take_long_is_waited_for_a_while() {
    let (peer, _on) = held(Vec::new());
    let mut plan = Plan::with(peer);
    plan.config.task_after_ms = 50;
    let house = plan.build().await;
    assert_eq!(begin(&Web::new(&house)).await["resultType"], "task");
}

#[tokio::test]
async fn who_does_not_declare_tasks_waits_and_cannot_ask_for_them() {
    let (peer, on) = held(finished_with(vec![Part::text("sunny")]).split_off(1));
    on.send(()).unwrap();
    let house = house(peer).await;
    let web = Web::new(&house);
    assert_eq!(web.call("weather.forecast", json!({})).await["result"]["content"][0]["text"], "sunny");
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let params = json!({ "taskId": "task_1", "inputResponses": {} });
        assert_eq!(web.ask(method, params).await.only()["error"]["code"], -32021, "{method}");
    }
    let mut old = Client::connect(&house);
    old.initialize_with("2025-11-25", "test", json!({ "extensions": { TASKS: {} } })).await;
    assert_eq!(old.ask("tools/call", forecast()).await["result"]["content"][0]["text"], "sunny");
    assert_eq!(old.ask("tasks/get", json!({ "taskId": "task_1" })).await["error"]["code"], -32601);
}

#[tokio::test]
async fn nobody_sees_the_task_of_another() {
    let (peer, _on) = held(Vec::new());
    let house = house(peer).await;
    let task = begin(&Web::new(&house)).await;
    let bob = Web::of(&house, Caller::user("bob"));
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let refused = about(&bob, method, &task, json!({ "inputResponses": {} })).await;
        assert_eq!(refused["error"]["code"], -32602, "{method}: {refused}");
    }
    assert!(house.peer.cancels.lock().is_empty());
}

#[tokio::test]
async fn the_header_names_the_task() {
    let (peer, _on) = held(Vec::new());
    let house = house(peer).await;
    let web = Web::new(&house);
    let task = begin(&web).await;
    let mut request = web.modern("tasks/get", json!({ "taskId": task["taskId"] }), declared(true));
    request.headers_mut().insert("mcp-name", "task_other".parse().unwrap());
    let refused = crate::web::read(web.send(request).await).await;
    assert_eq!((refused.status.as_u16(), &refused.only()["error"]["code"]), (400, &json!(-32020)));
}

#[tokio::test]
async fn a_task_is_called_off_at_its_agent_and_again_without_harm() {
    let (peer, _on) = held(Vec::new());
    let house = house(peer).await;
    let web = Web::new(&house);
    let task = begin(&web).await;
    until(&web, &task, "working").await;
    for _ in 0..2 {
        let acknowledged = about(&web, "tasks/cancel", &task, json!({})).await;
        assert_eq!(acknowledged["result"]["resultType"], "complete", "{acknowledged}");
        assert_eq!(acknowledged["result"]["taskId"], Value::Null);
    }
    assert_json_snapshot!(steady(&until(&web, &task, "cancelled").await));
    assert!(!house.peer.cancels.lock().is_empty());
}

#[tokio::test]
async fn a_tool_that_failed_has_completed_and_a_call_that_failed_has_failed() {
    let refusal = Failure::new(FailureKind::PeerFailed, "no such city");
    let broken = Failure::new(FailureKind::PeerFailed, "out of cheese")
        .with_data(Json::encode(&json!({ "remoteCode": -32603, "remoteMessage": "out of cheese" })));
    for (failure, status) in [(refusal, "completed"), (broken, "failed")] {
        let (peer, on) = held(vec![Event::failed(failure)]);
        let house = house(peer).await;
        let web = Web::new(&house);
        let task = begin(&web).await;
        on.send(()).unwrap();
        let got = until(&web, &task, status).await;
        assert_json_snapshot!(format!("failed_as_{status}"), steady(&got));
    }
}

#[tokio::test]
async fn a_task_that_asks_is_answered_and_goes_on() {
    let house = house(inquisitive(vec![colour(), colour()])).await;
    let web = Web::new(&house);
    let task = begin(&web).await;
    let first = until(&web, &task, "input_required").await;
    assert_json_snapshot!(steady(&first));
    let unknown = json!({ "inputResponses": { "other": { "action": "accept" } } });
    assert_eq!(about(&web, "tasks/update", &task, unknown).await["result"]["resultType"], "complete");
    let key_of = |shown: &Value| shown["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
    let red = json!({ "action": "accept", "content": { "answer": "red" } });
    let key = key_of(&first);
    let wrong = json!({ "inputResponses": { &key: 5 } });
    assert_eq!(about(&web, "tasks/update", &task, wrong).await["error"]["code"], -32602);
    let answers = json!({ "inputResponses": { &key: red } });
    assert_eq!(about(&web, "tasks/update", &task, answers).await["result"]["resultType"], "complete");
    let second = within(async {
        loop {
            let got = until(&web, &task, "input_required").await;
            if key_of(&got) != key {
                return got;
            }
        }
    })
    .await;
    let blue = json!({ "action": "accept", "content": { "answer": "blue" } });
    about(&web, "tasks/update", &task, json!({ "inputResponses": { key_of(&second): blue } })).await;
    let done = until(&web, &task, "completed").await;
    assert_eq!(done["result"]["structuredContent"], json!(["blue"]));
}

#[tokio::test]
async fn several_questions_can_be_answered_one_by_one() {
    let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } } });
    let named = |name: &str| Part::data(Json::encode(&json!({ "name": name, "schema": schema })));
    let house = house(inquisitive(vec![asks(QuestionKind::Input, vec![named("a"), named("b")])])).await;
    let web = Web::new(&house);
    let task = begin(&web).await;
    let asked = until(&web, &task, "input_required").await;
    let keys: Vec<String> = asked["inputRequests"].as_object().unwrap().keys().cloned().collect();
    let number = |n: u32| json!({ "action": "accept", "content": { "n": n } });
    about(&web, "tasks/update", &task, json!({ "inputResponses": { &keys[0]: number(1) } })).await;
    let rest = get(&web, &task).await;
    assert_eq!(rest["status"], "input_required");
    assert_eq!(rest["inputRequests"].as_object().unwrap().keys().collect::<Vec<_>>(), [&keys[1]]);
    assert_eq!(house.peer.calls.lock().len(), 1, "nothing was said yet");
    about(&web, "tasks/update", &task, json!({ "inputResponses": { &keys[1]: number(2) } })).await;
    let done = until(&web, &task, "completed").await;
    assert_eq!(done["result"]["structuredContent"], json!([{ "n": 1 }, { "n": 2 }]));
    let calls = house.peer.calls.lock();
    assert_eq!(calls[1].parts[1].metadata.as_ref().unwrap().value(), json!({ "inputRequest": "b" }));
}

#[tokio::test]
async fn a_client_with_nobody_to_ask_gets_the_question_as_the_result() {
    let house = house(inquisitive(vec![colour()])).await;
    let web = Web::new(&house);
    let task = begin(&web).await;
    until(&web, &task, "input_required").await;
    let params = json!({ "taskId": task["taskId"] });
    let got = web.ask_with("tasks/get", params, declared(false)).await.only()["result"].clone();
    assert_eq!(got["status"], "completed");
    assert_eq!(got["result"]["structuredContent"]["question"], "which colour?");
}

#[tokio::test]
async fn a_question_that_comes_soon_is_asked_first_and_the_rest_is_a_task() {
    let round = std::sync::atomic::AtomicBool::new(false);
    let peer = ScriptedPeer::with(move |_| {
        if round.swap(true, std::sync::atomic::Ordering::Relaxed) {
            return stream::iter([working()]).chain(stream::pending()).boxed();
        }
        stream::iter(colour()).boxed()
    });
    let mut plan = Plan::with(peer);
    plan.config.task_after_ms = 500;
    let house = plan.build().await;
    let web = Web::new(&house);
    let asked = begin(&web).await;
    assert_eq!((&asked["resultType"], &asked["taskId"]), (&json!("input_required"), &Value::Null));
    let mut params = forecast();
    params["requestState"] = asked["requestState"].clone();
    params["inputResponses"] = json!({ "answer": { "action": "accept", "content": { "answer": "red" } } });
    let task = web.ask_with("tools/call", params, declared(true)).await.only()["result"].clone();
    assert_eq!((&task["resultType"], &task["requestState"]), (&json!("task"), &Value::Null));
}

#[tokio::test]
async fn on_stdin_and_stdout_the_same_happens() {
    let (peer, on) = held(finished_with(vec![Part::text("sunny")]).split_off(1));
    let house = house(peer).await;
    let mut client = Client::connect(&house);
    let meta = modern("test", declared(true));
    let mut params = forecast();
    params["_meta"] = meta.clone();
    let task = client.ask("tools/call", params).await["result"].clone();
    assert_eq!(task["resultType"], "task");
    on.send(()).unwrap();
    let about = json!({ "taskId": task["taskId"], "_meta": meta });
    within(async {
        while client.ask("tasks/get", about.clone()).await["result"]["status"] != "completed" {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn who_listens_is_told_how_a_task_goes_on() {
    let (peer, on) = held(finished_with(vec![Part::text("sunny")]).split_off(1));
    let house = house(peer).await;
    let web = Web::new(&house);
    let task = begin(&web).await;
    until(&web, &task, "working").await;
    let wanted = json!({ "notifications": { "taskIds": [task["taskId"], "task_of_nobody"], "toolsListChanged": true } });
    let mut open = web.open("subscriptions/listen", wanted, declared(true)).await;
    let acknowledged = open.hear().await;
    assert_json_snapshot!("acknowledged", steady(&acknowledged));
    assert_json_snapshot!("told", steady(&open.hear().await));
    house.meet(card("News", vec![skill("headlines")])).await;
    assert_eq!(open.hear().await["method"], "notifications/tools/list_changed");
    on.send(()).unwrap();
    let told = within(async {
        loop {
            let told = open.hear().await;
            if told["params"]["status"] == "completed" {
                return told;
            }
        }
    })
    .await;
    assert_eq!(told["params"]["result"]["content"][0]["text"], "sunny");
    house.stop.cancel();
    assert_eq!(open.hear().await["result"]["resultType"], "complete");
    assert!(open.ends().await);
}

#[tokio::test]
async fn listening_ends_with_the_last_task_and_others_tasks_are_not_heard_of() {
    let (peer, on) = held(finished_with(vec![Part::text("sunny")]).split_off(1));
    let house = house(peer).await;
    let web = Web::new(&house);
    let task = begin(&web).await;
    let wanted = json!({ "notifications": { "taskIds": [task["taskId"]] } });
    let bob = Web::of(&house, Caller::user("bob"));
    let mut open = bob.open("subscriptions/listen", wanted.clone(), declared(true)).await;
    assert_eq!(open.hear().await["params"]["notifications"], json!({ "taskIds": [] }));
    assert_eq!(open.hear().await["result"]["resultType"], "complete");
    let mut open = web.open("subscriptions/listen", wanted, declared(true)).await;
    open.hear().await;
    on.send(()).unwrap();
    let end = within(async {
        loop {
            let told = open.hear().await;
            if told["id"] == 1 {
                return told;
            }
        }
    })
    .await;
    assert_eq!(end["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 1);
    assert!(open.ends().await);
}
