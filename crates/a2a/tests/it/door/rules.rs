//! What the protocol asks of a request besides its words: tenants, versions, what a message must have, and who wants no answer.

use http::{HeaderMap, Request, Version};
use rialto_a2a::server::Config;
use rialto_a2a_codec::{
    grpc::{self, GrpcStatus},
    request::{A2aRequest as Asked, SendRequest},
    wire::Wire,
};
use rialto_model::message::{Message, Part, Role};
use rialto_testkit::agents::{card, skill};
use serde_json::{Value, json};

use super::house::{Client, House, asked, post, said, said_0_3, steady, weather};

fn code(answer: &Value) -> &Value {
    &answer["error"]["code"]
}

fn tenant(mut params: Value, slug: &str) -> Value {
    params["tenant"] = json!(slug);
    params
}

/// Sends a text over gRPC, and gives the headers of the answer.
async fn over_grpc(client: &Client, text: &str, tenant: Option<&str>, timeout: &str) -> HeaderMap {
    let message = Message::new(rialto_model::ids::fresh(), Role::User, vec![Part::text(text)]);
    let mut send = SendRequest::new(message);
    send.tenant = tenant.map(str::to_owned);
    let call = grpc::encode(Wire::V10, &Asked::Send(send)).unwrap();
    let request = Request::post(call.path)
        .version(Version::HTTP_2)
        .header("content-type", grpc::MEDIA_TYPE)
        .header("grpc-timeout", timeout);
    client.respond(request, call.body).await.headers().clone()
}

#[tokio::test]
async fn a_client_of_0_3_over_grpc_names_the_agent_beside_its_call() {
    let house = two_agents().await;
    let ann = house.ann();
    let message = Message::new("m-1", Role::User, vec![Part::text("hello")]);
    let send = SendRequest { skill: Some("work".into()), ..SendRequest::new(message) };
    let call = grpc::encode(Wire::V03Proto, &Asked::Send(send)).unwrap();
    let asked = async |slug: &str| {
        let request = Request::post(&call.path).version(Version::HTTP_2);
        let request = request.header("content-type", grpc::MEDIA_TYPE).header("rialto-agent", slug);
        ann.respond(request, call.body.clone()).await.headers().clone()
    };
    assert_eq!(asked("other").await.get("grpc-status"), None);
    assert_eq!(house.peer.calls.lock()[0].target.agent.slug, "other");
    assert_eq!(GrpcStatus::read(&asked("nobody").await).unwrap().number, 5);
}

#[tokio::test]
async fn the_name_of_an_agent_stands_for_it_where_a_skill_is_named() {
    let house = two_agents().await;
    let mut params = said("hello");
    params["metadata"] = json!({ "skillId": "other" });
    let sent = house.ann().rpc("SendMessage", params).await;
    assert_eq!(sent["result"]["task"]["status"]["state"], "TASK_STATE_COMPLETED", "{sent}");
    let calls = house.peer.calls.lock();
    assert_eq!((calls[0].target.agent.slug.as_str(), calls[0].target.skill.is_none()), ("other", true));
}

async fn two_agents() -> House {
    let house = House::new().await;
    house.meet(card("Other", vec![skill("work")])).await;
    house
}

#[tokio::test]
async fn a_tenant_is_the_agent_that_is_asked_on_every_binding() {
    let house = two_agents().await;
    let ann = house.ann();
    let sent = ann.rpc("SendMessage", tenant(said("one"), "other")).await;
    assert_eq!(sent["result"]["task"]["status"]["state"], "TASK_STATE_COMPLETED", "{sent}");
    let rest = ann.send(post("/a2a/other/message:send"), said("two").to_string()).await;
    assert_eq!(rest.json()["task"]["status"]["state"], "TASK_STATE_COMPLETED", "{}", rest.text);
    assert_eq!(over_grpc(&ann, "three", Some("other"), "9S").await.get("grpc-status"), None);
    let asked: Vec<String> =
        house.peer.calls.lock().iter().map(|call| call.target.agent.slug.clone()).collect();
    assert_eq!(asked, ["other", "other", "other"]);
    // Its tasks are told there, and those of others are not.
    let list = ann.rpc("ListTasks", json!({ "tenant": "other" })).await;
    assert_eq!(list["result"]["totalSize"], 3);
    assert_eq!(ann.rpc("ListTasks", json!({ "tenant": "desk" })).await["result"]["totalSize"], 0);
}

#[tokio::test]
async fn a_tenant_that_is_not_there_is_refused_on_every_binding() {
    let house = two_agents().await;
    let ann = house.ann();
    let rpc = ann.rpc("SendMessage", tenant(said("one"), "nobody")).await;
    let rest = ann.send(post("/a2a/nobody/message:send"), said("two").to_string()).await;
    assert_eq!(rest.status, 404);
    let status = GrpcStatus::read(&over_grpc(&ann, "three", Some("nobody"), "9S").await).unwrap();
    assert_eq!(status.number, 5);
    let grpc = status.error().data.unwrap().value();
    insta::assert_json_snapshot!(json!({ "rpc": rpc, "rest": rest.json(), "grpc": grpc }));
    // One agent by itself is no other.
    let body = asked("SendMessage", &tenant(said("four"), "desk")).to_string();
    let other = ann.send(post("/a2a/agents/other"), body).await.json();
    assert_eq!(other["error"]["data"][0]["reason"], "NOT_FOUND", "{other}");
    assert!(house.peer.calls.lock().is_empty());
}

#[tokio::test]
async fn a_message_of_1_0_has_a_name_a_speaker_and_content() {
    let house = House::new().await;
    let ann = house.ann();
    let with = |name: &str, value: Value| {
        let mut params = said("hello");
        params["message"][name] = value;
        params
    };
    let wrong = [
        with("messageId", json!("")),
        with("messageId", Value::Null),
        with("role", json!("ROLE_AGENT")),
        with("role", Value::Null),
        with("parts", json!([])),
        with("parts", json!([{ "text": "a" }, { "metadata": {} }])),
    ];
    for params in wrong {
        let answer = ann.rpc("SendMessage", params.clone()).await;
        assert_eq!(code(&answer), -32602, "{params}: {answer}");
    }
    assert!(house.peer.calls.lock().is_empty());
    let mut old = said_0_3("hello");
    old["message"].as_object_mut().unwrap().retain(|name, _| name == "parts");
    assert_eq!(ann.rpc("message/send", old).await["result"]["status"]["state"], "completed");
}

#[tokio::test]
async fn a_request_without_an_id_is_done_and_not_answered() {
    let house = House::new().await;
    let ann = house.ann();
    let told = |method: &str| {
        let mut params = said("hello");
        params["id"] = json!("nowhere");
        json!({ "jsonrpc": "2.0", "method": method, "params": params })
    };
    for (method, calls) in [("SendMessage", 1), ("SendStreamingMessage", 2), ("GetTask", 2)] {
        let reply = ann.send(post("/a2a"), told(method).to_string()).await;
        assert_eq!((reply.status.as_u16(), reply.text.as_str()), (202, ""), "{method}");
        house.engine.running().drain(std::time::Duration::from_secs(5)).await;
        assert_eq!(house.peer.calls.lock().len(), calls, "{method}");
    }
}

#[tokio::test]
async fn in_a_batch_only_what_has_an_id_is_answered() {
    let house = House::new().await;
    let ann = house.ann();
    let told = json!({ "jsonrpc": "2.0", "method": "message/send", "params": said_0_3("one") });
    let answers = ann.say(&json!([told, asked("message/send", &said_0_3("two"))])).await;
    assert_eq!(answers.as_array().unwrap().len(), 1);
    assert_eq!(answers[0]["id"], 1);
    let reply = ann.send(post("/a2a"), json!([told]).to_string()).await;
    assert_eq!((reply.status.as_u16(), reply.text.as_str()), (202, ""));
    // What is no sound request cannot say so.
    assert_eq!(code(&ann.say(&json!({ "id": null })).await), -32600);
    assert_eq!(code(&ann.say(&json!({ "method": "SendMessage" })).await), -32600);
    let unsound = |method: &str| json!({ "jsonrpc": "2.0", "method": method, "params": { "": 1 } });
    let answer = ann.say(&unsound("message/ssend")).await;
    assert_eq!((code(&answer), &answer["id"]), (&json!(-32601), &Value::Null));
    assert_eq!(code(&ann.say(&unsound("message/send")).await), -32602);
}

#[tokio::test]
async fn an_agent_that_is_not_there_is_said_under_the_requests_own_id() {
    let house = House::new().await;
    let body = asked("SendMessage", &said("hello")).to_string();
    let reply = house.ann().send(post("/a2a/agents/nobody"), body).await.json();
    assert_eq!((&reply["id"], &reply["error"]["data"][0]["domain"]), (&json!(1), &json!("rialto")));
}

#[tokio::test]
async fn a_caller_over_grpc_is_answered_in_the_time_it_gives() {
    let house = House::new().await;
    let ann = house.ann();
    assert_eq!(over_grpc(&ann, "hello", None, "5S").await.get("grpc-status"), None);
    let late = GrpcStatus::read(&over_grpc(&ann, "hang", None, "50m").await).unwrap();
    assert_eq!(late.number, GrpcStatus::DEADLINE_EXCEEDED);
    // The task goes on.
    let list = ann.rpc("ListTasks", json!({ "status": "TASK_STATE_WORKING" })).await;
    assert_eq!(list["result"]["totalSize"], 1);
}

#[tokio::test]
async fn http_json_is_spoken_at_the_root_too() {
    let house = House::new().await;
    let ann = house.ann();
    let sent = ann.send(post("/message:send"), said("hello").to_string()).await.json();
    let id = sent["task"]["id"].as_str().unwrap();
    assert_eq!(ann.send(Request::get(format!("/tasks/{id}")), "").await.json()["id"], *id);
    assert_eq!(ann.send(Request::get("/tasks"), "").await.json()["totalSize"], 1);
    let reply = ann.send(post(&format!("/tasks/{id}:cancel")), "{}").await;
    assert_eq!(reply.json()["error"]["details"][0]["reason"], "TASK_NOT_CANCELABLE");
    let streamed = ann.send(post("/message:stream"), said("count").to_string()).await;
    assert_eq!(streamed.kind, "text/event-stream");
}

#[tokio::test]
async fn a_client_of_0_1_is_told_history_only_when_it_asks_for_some() {
    let house = House::new().await;
    let ann = house.ann();
    let message = json!({ "role": "user", "parts": [{ "type": "text", "text": "hello" }] });
    let sent = ann.rpc("tasks/send", json!({ "id": "own-1", "message": message })).await;
    assert_eq!(sent["result"].get("history"), None, "{sent}");
    for (params, told) in [
        (json!({ "id": "own-1" }), 0),
        (json!({ "id": "own-1", "historyLength": 0 }), 0),
        (json!({ "id": "own-1", "historyLength": 5 }), 1),
    ] {
        let got = ann.rpc("tasks/get", params).await["result"].take();
        assert_eq!(got["history"].as_array().map_or(0, Vec::len), told, "{got}");
    }
    let params = json!({ "id": "own-2", "historyLength": 3, "message": message });
    let sent = ann.rpc("tasks/send", params).await;
    assert_eq!(sent["result"]["history"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_message_without_a_skill_goes_to_the_agent_that_is_configured() {
    let default_skill = Some("other".to_owned());
    let house = House::with(Config { needs_token: false, default_skill, ..Config::default() }).await;
    house.meet(card("Other", vec![skill("work"), skill("rest")])).await;
    house.ann().tell("hello").await;
    let calls = house.peer.calls.lock();
    assert_eq!((calls[0].target.agent.slug.as_str(), &calls[0].target.skill.is_none()), ("other", &true));
}

#[tokio::test]
async fn arguments_may_be_called_as_the_parts_of_a_message_are() {
    let house = House::of_function(weather()).await;
    let args = json!({ "role": "captain", "messageId": 7, "parts": { "bow": 1 } });
    let params = json!({ "skill": "weather-lookup", "message": args });
    let sent = house.ann().rpc("tasks/send", params).await;
    assert_eq!(sent["result"]["status"]["state"], "completed", "{sent}");
    assert_eq!(house.peer.calls.lock()[0].args().value(), args);
}

#[tokio::test]
async fn a_card_that_is_known_is_not_told_again_whatever_the_tag_is_called() {
    let house = House::new().await;
    let ann = house.ann();
    let card = "/.well-known/agent-card.json";
    let etag = ann.respond(Request::get(card), "").await.headers()["etag"].to_str().unwrap().to_owned();
    for tag in [etag.clone(), format!("W/{etag}"), format!("\"x\", W/{etag}"), "*".to_owned()] {
        assert_eq!(ann.send(Request::get(card).header("if-none-match", &tag), "").await.status, 304, "{tag}");
    }
    assert_eq!(ann.send(Request::get(card).header("if-none-match", "\"x\""), "").await.status, 200);
}

#[tokio::test]
async fn a_client_of_0_2_finds_the_extended_card_where_it_looks_for_it() {
    let house = House::with(Config { needs_token: true, ..Config::default() }).await;
    let ann = house.ann();
    let path = "/agent/authenticatedExtendedCard";
    for base in ["", "/a2a", "/_a2a"] {
        let reply = ann.send(Request::get(format!("{base}{path}")), "").await;
        assert_eq!((reply.status.as_u16(), reply.kind.as_str()), (200, "application/json"), "{base}");
        assert_eq!(reply.json()["supportsAuthenticatedExtendedCard"], true);
    }
    let one = ann.send(Request::get(format!("/a2a/agents/desk{path}")), "").await.json();
    assert_eq!(one["name"], "Desk");
    assert_eq!(ann.send(Request::get(format!("/a2a/agents/nobody{path}")), "").await.status, 404);
    // Where everybody is shown everything, there is no such card, and the public one says so.
    let open = House::new().await;
    assert_eq!(open.ann().send(Request::get(path), "").await.status, 404);
}

#[tokio::test]
async fn the_card_of_one_agent_declares_only_what_is_served_here() {
    for needs_token in [false, true] {
        let house = House::with(Config { needs_token, ..Config::default() }).await;
        house.meet_at("secured").await;
        let path = "/a2a/agents/secured/.well-known/agent-card.json";
        let card = house.ann().send(Request::get(path), "").await.json();
        let served =
            json!({ "streaming": true, "pushNotifications": true, "extendedAgentCard": needs_token });
        assert_eq!(card["capabilities"], served);
        assert_eq!(card["supportsAuthenticatedExtendedCard"].as_bool().unwrap_or_default(), needs_token);
        let text = card.to_string();
        for theirs in
            ["theirs", "SOAP", "https://secured.example.com", "signatures", "stateTransitionHistory"]
        {
            assert!(!text.contains(theirs), "{theirs}: {text}");
        }
        let interfaces = card["supportedInterfaces"].as_array().unwrap();
        assert_eq!(interfaces.len(), 5, "{interfaces:?}");
    }
}

#[tokio::test]
async fn what_a2a_has_no_error_for_has_a_reason_of_ours() {
    let house = House::new().await;
    let strangers = rialto_model::token_scopes::TokenScopes::from_scopes([
        rialto_model::token_scopes::TokenScope::Discover,
    ]);
    let eve = house
        .caller(rialto_model::call::Caller { rights: strangers, ..rialto_model::call::Caller::user("eve") });
    let rpc = eve.rpc("SendMessage", said("hello")).await;
    let old = eve.rpc("message/send", said_0_3("hello")).await;
    let rest = eve.send(post("/a2a/message:send"), said("hello").to_string()).await.json();
    let grpc = GrpcStatus::read(&over_grpc(&eve, "hello", None, "9S").await).unwrap();
    let grpc = json!({ "number": grpc.number, "details": grpc.error().data.unwrap().value() });
    insta::assert_json_snapshot!(steady(&json!({ "1.0": rpc, "0.3": old, "rest": rest, "grpc": grpc })));
}
