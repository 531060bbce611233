//! An agent that asks something is answered by the person at the client, in the same task: the result of a call is a
//! question, and the same call again brings the answer.

use std::sync::Arc;

use futures::{StreamExt, stream};
use insta::assert_json_snapshot;
use rialto_model::{
    call::{Call, Caller},
    event::{Event, EventAside, QuestionKind},
    json::Json,
    message::{Content, Message, Part, Role},
};
use rialto_testkit::{
    agents::{card, skill, skill_with_schema},
    peer::{ScriptedPeer, accepted, finished_with, working},
};
use serde_json::{Value, json};

use crate::{
    house::{House, Plan, steady},
    lines::Client,
    web::{Reply, Web},
};

/// A question.
pub(crate) fn asks(ask: QuestionKind, parts: Vec<Part>) -> Vec<Event> {
    let message = Some(Message::new("m", Role::Agent, parts));
    vec![accepted("remote-1", "context-1"), Event::Asked { ask, message, aside: EventAside::default() }]
}

pub(crate) fn heard(call: &Call) -> Value {
    json!(
        call.parts
            .iter()
            .map(|part| match &part.content {
                Content::Text(text) => json!(text),
                Content::Data(data) => data.value(),
                _ => json!("?"),
            })
            .collect::<Vec<_>>()
    )
}

/// Asks `questions` one after the other, then tells what it heard last.
pub(crate) fn inquisitive(questions: Vec<Vec<Event>>) -> Arc<ScriptedPeer> {
    let round = std::sync::atomic::AtomicUsize::new(0);
    ScriptedPeer::with(move |call| {
        let round = if call.continues.task_id.is_some() {
            round.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1
        } else {
            round.store(0, std::sync::atomic::Ordering::Relaxed);
            0
        };
        let answer = || finished_with(vec![Part::data(Json::encode(&heard(call)))]);
        stream::iter(questions.get(round).cloned().unwrap_or_else(answer)).boxed()
    })
}

pub(crate) fn colour() -> Vec<Event> {
    asks(QuestionKind::Input, vec![Part::text("which colour?")])
}

pub(crate) fn number() -> Vec<Event> {
    let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] });
    asks(QuestionKind::Input, vec![Part::text("how many?"), Part::data(Json::encode(&schema))])
}

pub(crate) async fn house(questions: Vec<Vec<Event>>) -> House {
    let agents = vec![card("Weather", vec![skill("forecast"), skill("history")])];
    Plan { agents, ..Plan::with(inquisitive(questions)) }.build().await
}

fn elicits(how: Value) -> Value {
    json!({ "io.modelcontextprotocol/clientCapabilities": { "elicitation": how } })
}

async fn call(web: &Web, more: Value) -> Reply {
    let mut params = json!({ "name": "weather.forecast", "arguments": { "city": "Venice" } });
    params.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
    web.ask_with("tools/call", params, elicits(json!({ "form": {}, "url": {} }))).await
}

async fn ask(web: &Web) -> Value {
    call(web, json!({})).await.only()["result"].clone()
}

async fn answer(web: &Web, asked: &Value, responses: Value) -> Value {
    call(web, json!({ "requestState": asked["requestState"], "inputResponses": responses })).await.only()
}

pub(crate) fn accept(content: Value) -> Value {
    json!({ "answer": { "action": "accept", "content": content } })
}

#[tokio::test]
async fn a_question_is_the_result_and_the_same_call_again_answers_it() {
    let house = house(vec![colour()]).await;
    let web = Web::new(&house);
    let asked = ask(&web).await;
    let mut shown = steady(&asked);
    shown["requestState"] = json!("[sealed]");
    assert_json_snapshot!(shown);
    let done = answer(&web, &asked, accept(json!({ "answer": "red" }))).await;
    assert_json_snapshot!(steady(&done));
    let calls = house.peer.calls.lock();
    assert_eq!(calls.len(), 2);
    assert_eq!(calls[1].continues.task_id.as_deref(), Some("remote-1"));
    assert_eq!(calls[1].continues.context_id.as_deref(), Some("context-1"));
    assert_eq!(
        (calls[0].task.clone(), calls[0].target.verb()),
        (calls[1].task.clone(), calls[1].target.verb())
    );
}

#[tokio::test]
async fn an_agent_may_ask_again_and_again_and_in_forms() {
    let house = house(vec![colour(), number(), colour()]).await;
    let web = Web::new(&house);
    let first = ask(&web).await;
    let second = answer(&web, &first, accept(json!({ "answer": "red" }))).await["result"].clone();
    let form = &second["inputRequests"]["answer"]["params"];
    assert_eq!(form["requestedSchema"]["properties"]["n"]["type"], "integer");
    let third = answer(&web, &second, accept(json!({ "n": 5 }))).await["result"].clone();
    assert_eq!(third["resultType"], "input_required");
    let done = answer(&web, &third, accept(json!({ "answer": "blue" }))).await;
    assert_eq!(done["result"]["structuredContent"], json!(["blue"]));
    let heard: Vec<Value> = house.peer.calls.lock().iter().skip(1).map(heard).collect();
    assert_eq!(heard, [json!(["red"]), json!([{ "n": 5 }]), json!(["blue"])]);
}

#[tokio::test]
async fn a_state_that_is_not_ours_changes_nothing() {
    let house = house(vec![colour()]).await;
    let web = Web::new(&house);
    let asked = ask(&web).await;
    let state = asked["requestState"].as_str().unwrap();
    let red = accept(json!({ "answer": "red" }));
    let with = |state: String| json!({ "requestState": state, "inputResponses": red });
    let refused = |reply: Reply| {
        let error = reply.only()["error"].clone();
        assert_eq!(error["code"], -32602, "{}", reply.text);
        error["message"].as_str().unwrap().to_owned()
    };
    let tampered = refused(call(&web, with(format!("{state}-TAMPERED"))).await);
    assert!(tampered.contains("was changed"), "{tampered}");
    let other = Web::of(&house, Caller::user("bob"));
    assert_eq!(refused(call(&other, with(state.to_owned())).await), tampered, "bob learns nothing");
    let mut abroad = Caller::user("ann");
    abroad.scope.project = "elsewhere".into();
    let abroad = call(&Web::of(&house, abroad), with(state.to_owned())).await;
    assert_eq!(abroad.only()["error"]["code"], -32602);
    let mut params = with(state.to_owned());
    params["name"] = json!("weather.history");
    assert_eq!(refused(call(&web, params).await), tampered, "of another tool");
    assert_eq!(house.peer.calls.lock().len(), 1, "nothing reached the agent");
    let done = answer(&web, &asked, red.clone()).await;
    assert_eq!(done["result"]["structuredContent"], json!(["red"]), "the question was still open");
}

#[tokio::test]
async fn a_question_is_answered_once() {
    let house = house(vec![colour()]).await;
    let web = Web::new(&house);
    let asked = ask(&web).await;
    let red = accept(json!({ "answer": "red" }));
    answer(&web, &asked, red.clone()).await;
    let again = answer(&web, &asked, red).await;
    assert_json_snapshot!(steady(&again));
    assert_eq!(house.peer.calls.lock().len(), 2);
}

#[tokio::test]
async fn two_answers_at_once_are_one() {
    let house = house(vec![colour()]).await;
    let web = Web::new(&house);
    let asked = ask(&web).await;
    let (red, blue) = (accept(json!({ "answer": "red" })), accept(json!({ "answer": "blue" })));
    let (one, two) = tokio::join!(answer(&web, &asked, red), answer(&web, &asked, blue));
    let failed = [&one, &two].into_iter().filter(|answer| answer.get("error").is_some()).count();
    assert_eq!(failed, 1, "{one} {two}");
    assert_eq!(house.peer.calls.lock().len(), 2);
}

#[tokio::test]
async fn a_state_expires() {
    let mut plan = Plan::with(inquisitive(vec![colour()]));
    plan.config.question_ttl_secs = 0;
    let house = plan.build().await;
    let web = Web::new(&house);
    let asked = ask(&web).await;
    let late = answer(&web, &asked, accept(json!({ "answer": "red" }))).await;
    assert_json_snapshot!(steady(&late));
    assert_eq!(house.peer.calls.lock().len(), 1);
}

#[tokio::test]
async fn an_answer_that_is_missing_or_wrong_leaves_the_question_open() {
    let house = house(vec![number()]).await;
    let web = Web::new(&house);
    let asked = ask(&web).await;
    let again = answer(&web, &asked, json!({ "wrong_key": { "action": "accept", "content": {} } })).await;
    assert_eq!(again["result"]["inputRequests"], asked["inputRequests"]);
    let wrong = answer(&web, &asked, accept(json!({ "n": "many" }))).await;
    assert_eq!(wrong["error"]["code"], -32602);
    let no_map = call(&web, json!({ "requestState": asked["requestState"], "inputResponses": 5 })).await;
    assert_eq!(no_map.only()["error"]["code"], -32602);
    assert_eq!(house.peer.calls.lock().len(), 1);
    let done = answer(&web, &asked, accept(json!({ "n": 5 }))).await;
    assert_eq!(done["result"]["structuredContent"], json!([{ "n": 5 }]));
}

#[tokio::test]
async fn a_declined_or_cancelled_question_never_reaches_the_agent_and_keeps_waiting() {
    let house = house(vec![colour()]).await;
    let web = Web::new(&house);
    for action in ["decline", "cancel"] {
        let asked = ask(&web).await;
        let calls = house.peer.calls.lock().len();
        let waits = answer(&web, &asked, json!({ "answer": { "action": action } })).await;
        assert_json_snapshot!(format!("after_{action}"), steady(&waits));
        assert_eq!(house.peer.calls.lock().len(), calls, "the agent was told nothing");
        let done =
            answer(&web, &asked, json!({ "answer": { "action": "accept", "content": { "answer": "red" } } }))
                .await;
        assert_eq!(done["result"]["structuredContent"], json!(["red"]), "{done}");
    }
    assert!(house.peer.cancels.lock().is_empty());
}

#[tokio::test]
async fn an_agent_that_notices_a_login_is_told_nothing() {
    let login =
        asks(QuestionKind::Auth, vec![Part::text("please sign in at https://login.example.com/start")]);
    let house = house(vec![login.clone()]).await;
    let web = Web::new(&house);
    house.peer.will_tell(login);
    let asked = ask(&web).await;
    let params = &asked["inputRequests"]["login"]["params"];
    assert_eq!((&params["mode"], &params["url"]), (&json!("url"), &json!("https://login.example.com/start")));
    house.peer.will_tell(finished_with(vec![Part::text("signed in")]));
    let done = answer(&web, &asked, json!({ "login": { "action": "accept" } })).await;
    assert_eq!(done["result"]["content"][0]["text"], "signed in", "{done}");
    assert_eq!(house.peer.calls.lock().len(), 1);
}

#[tokio::test]
async fn an_agent_that_works_on_after_a_login_is_followed() {
    let login = asks(QuestionKind::Auth, vec![Part::text("sign in at https://login.example.com/start")]);
    let house = house(vec![login.clone()]).await;
    let web = Web::new(&house);
    let asked = ask(&web).await;
    house.peer.will_tell(vec![working()]);
    let answered = answer(&web, &asked, json!({ "login": { "action": "accept" } }));
    let noticed = crate::house::within(async {
        while house.peer.follows.lock().iter().all(|follow| !follow.to_the_end) {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        house.peer.will_tell(finished_with(vec![Part::text("signed in")]));
    });
    let (done, ()) = tokio::join!(answered, noticed);
    assert_eq!(done["result"]["content"][0]["text"], "signed in", "{done}");
}

#[tokio::test]
async fn an_agent_that_does_not_notice_a_login_is_told() {
    let login = asks(QuestionKind::Auth, vec![Part::text("sign in at https://login.example.com/start")]);
    let house = house(vec![login.clone()]).await;
    house.peer.will_tell(login);
    let web = Web::new(&house);
    let asked = ask(&web).await;
    let done = answer(&web, &asked, json!({ "login": { "action": "accept" } })).await;
    assert_eq!(done["result"]["structuredContent"], json!(["The login is done."]), "{done}");
}

#[tokio::test]
async fn a_client_that_cannot_ask_gets_the_question_as_its_result() {
    let house = house(vec![colour()]).await;
    let web = Web::new(&house);
    let params = json!({ "name": "weather.forecast", "arguments": {} });
    for meta in [json!({}), elicits(json!({ "url": {} }))] {
        let reply = web.ask_with("tools/call", params.clone(), meta).await;
        let result = &reply.only()["result"];
        assert_eq!(result["resultType"], "complete");
        assert_eq!(result["structuredContent"]["question"], "which colour?");
    }
}

#[tokio::test]
async fn an_answer_is_checked_by_policy_and_not_against_the_arguments_schema() {
    let schema = json!({ "type": "object", "required": ["city"] });
    let agents = vec![card("Weather", vec![skill_with_schema("forecast", schema)])];
    let house = Plan { agents, ..Plan::with(inquisitive(vec![colour()])) }.build().await;
    let web = Web::new(&house);
    let asked = ask(&web).await;
    let agent = house.engine.registry().find(&crate::house::ann().scope, "weather").unwrap();
    house.engine.registry().set_trust(&agent, rialto_model::agent::AgentTrust::External).await.unwrap();
    let denied = answer(&web, &asked, accept(json!({ "answer": "red" }))).await;
    assert_eq!(denied["error"]["code"], -32003, "{denied}");
    assert_eq!(house.peer.calls.lock().len(), 1);
    let agent = house.engine.registry().find(&crate::house::ann().scope, "weather").unwrap();
    house.engine.registry().set_trust(&agent, rialto_model::agent::AgentTrust::Trusted).await.unwrap();
    let done = answer(&web, &asked, accept(json!({ "answer": "red" }))).await;
    assert_eq!(done["result"]["structuredContent"], json!(["red"]));
}

#[tokio::test]
async fn on_stdin_and_stdout_the_same_happens() {
    let house = house(vec![colour()]).await;
    let mut client = Client::connect(&house);
    let meta = crate::lines::modern("test", elicits(json!({})));
    let mut params = json!({ "name": "weather.forecast", "arguments": {}, "_meta": meta });
    let asked = client.ask("tools/call", params.clone()).await["result"].clone();
    assert_eq!(asked["resultType"], "input_required");
    params["requestState"] = asked["requestState"].clone();
    params["inputResponses"] = accept(json!({ "answer": "red" }));
    let done = client.ask("tools/call", params).await;
    assert_eq!(done["result"]["structuredContent"], json!(["red"]), "{done}");
}

#[tokio::test]
async fn a_state_is_taken_by_every_process_of_the_same_store() {
    let house = house(vec![colour()]).await;
    let asked = ask(&Web::new(&house)).await;
    // What another process is made of, but for the store.
    let control =
        rialto_mcp_server::McpEndpointOptions { load_agents: rialto_mcp_server::LoadAgents::Session };
    let other = rialto_mcp_server::McpEndpoint::new(
        house.engine.clone(),
        rialto_mcp_server::Config::default(),
        control,
    );
    let web = Web::on(other.router(house.stop.clone()), crate::house::ann());
    let done = answer(&web, &asked, accept(json!({ "answer": "red" }))).await;
    assert_eq!(done["result"]["structuredContent"], json!(["red"]), "{done}");
}
