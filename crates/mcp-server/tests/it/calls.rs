//! What a client sees of a call: its result, its progress, its end.

use std::time::Duration;

use axum::Extension;
use futures::{StreamExt, stream};
use http::StatusCode;
use http_body_util::BodyExt;
use insta::assert_json_snapshot;
use rialto_mcp_server::ToolErrors;
use rialto_model::{
    event::{Event, EventAside, QuestionKind},
    failure::{Failure, FailureKind},
    message::{Artifact, Content, Message, Part, Role},
};
use rialto_testkit::{
    agents::{card, skill, skill_with_schema},
    peer::{ScriptedPeer, accepted, finished_with, working},
};
use serde_json::{Value, json};
use tokio::{
    io::AsyncWriteExt,
    net::{TcpListener, TcpStream},
};

use crate::{
    house::{House, Plan, ann, steady, within},
    lines::Client,
    web::Web,
};

fn forecast(args: Value) -> Value {
    json!({ "name": "weather.forecast", "arguments": args })
}

/// A house whose agent tells these events and then nothing more.
fn stuck_after(events: Vec<Event>) -> Plan {
    Plan::with(ScriptedPeer::with(move |_| stream::iter(events.clone()).chain(stream::pending()).boxed()))
}

fn says(text: &str) -> Event {
    let message = Message::new("m", Role::Agent, vec![Part::text(text)]);
    Event::Progress { working: true, message: Some(message), aside: EventAside::default() }
}

fn asks(question: &str) -> Event {
    let message = Some(Message::new("m", Role::Agent, vec![Part::text(question)]));
    Event::Asked { ask: QuestionKind::Input, message, aside: EventAside::default() }
}

async fn until_called(house: &House) {
    within(async {
        while house.peer.calls.lock().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

async fn until_cancelled(house: &House) {
    within(async {
        while house.peer.cancels.lock().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    assert_eq!(house.peer.cancels.lock()[0].remote.task_id.as_deref(), Some("remote-1"));
}

#[tokio::test]
async fn arguments_reach_the_agent_as_one_data_part() {
    let house = Plan::default().build().await;
    Web::new(&house).call("weather.forecast", json!({ "city": "Venice" })).await;
    let calls = house.peer.calls.lock();
    assert_eq!(calls[0].args().get(), r#"{"city":"Venice"}"#);
    assert_eq!(calls[0].target.verb(), "weather.forecast");
}

#[tokio::test]
async fn every_name_of_a_skill_works_whatever_was_listed() {
    let house = Plan::default().build().await;
    let web = Web::new(&house);
    for name in ["weather.forecast", "a2a_weather_forecast"] {
        web.call(name, json!({})).await;
    }
    let calls = house.peer.calls.lock();
    assert_eq!(calls.len(), 2);
    assert!(calls.iter().all(|call| call.target.verb() == "weather.forecast"));
}

#[tokio::test]
async fn a_tool_that_is_not_there_is_answered_with_those_that_may_be_meant() {
    let house = Plan::default().build().await;
    let reply =
        Web::new(&house).ask("tools/call", json!({ "name": "weather.forcast", "arguments": {} })).await;
    assert_json_snapshot!(reply.only());
    let mut client = Client::initialized(&house, "2025-06-18", "test").await;
    let answer = client.ask("tools/call", json!({ "name": "send_mesage", "arguments": {} })).await;
    assert_eq!(answer["error"]["code"], -32602);
    assert_eq!(answer["error"]["data"]["near"], json!(["send_message"]));
}

#[tokio::test]
async fn arguments_that_do_not_fit_are_refused_with_the_place() {
    let schema =
        json!({ "type": "object", "properties": { "city": { "type": "string" } }, "required": ["city"] });
    let plan = Plan {
        agents: vec![card("Weather", vec![skill_with_schema("forecast", schema)])],
        ..Plan::default()
    };
    let house = plan.build().await;
    let reply = Web::new(&house).ask("tools/call", forecast(json!({ "city": 1 }))).await;
    assert_json_snapshot!(reply.only());
    assert!(house.peer.calls.lock().is_empty());
}

#[tokio::test]
async fn a_failed_task_is_an_error_with_its_class() {
    let failure = Failure::new(FailureKind::PeerFailed, "no such city");
    let plan =
        || Plan::with(ScriptedPeer::telling(vec![accepted("remote-1", "c"), Event::failed(failure.clone())]));
    let house = plan().build().await;
    let reply = Web::new(&house).ask("tools/call", forecast(json!({}))).await;
    assert_eq!(reply.status, StatusCode::OK);
    assert_json_snapshot!(steady(&reply.only()));

    let mut plan = plan();
    plan.config.tool_errors = ToolErrors::Result;
    let house = plan.build().await;
    let answer = Web::new(&house).call("weather.forecast", json!({})).await;
    assert_json_snapshot!(steady(&answer));
}

#[tokio::test]
async fn a_denied_call_names_the_command_that_would_allow_it() {
    let policy = "@id(\"no-weather\") forbid (principal, action == Action::\"a2a_invoke\", resource);";
    let house = Plan { policy, ..Plan::default() }.build().await;
    let reply = Web::new(&house).ask("tools/call", forecast(json!({}))).await;
    assert_eq!(reply.only()["error"]["code"], -32003);
    assert_eq!(reply.only()["error"]["data"]["class"], "AuthorizationError");
    assert!(house.peer.calls.lock().is_empty());
}

#[tokio::test]
async fn a_call_that_takes_too_long_leaves_its_task_id() {
    let mut plan = stuck_after(vec![accepted("remote-1", "context-1"), working()]);
    plan.calls.timeout_ms = 50;
    let house = plan.build().await;
    let web = Web::new(&house);
    let error = web.ask("tools/call", forecast(json!({}))).await.only();
    assert_json_snapshot!(steady(&error));
    let id = &error["error"]["data"]["taskId"];
    let looked_at = web.call("get_task", json!({ "task_id": id })).await;
    assert_eq!(looked_at["result"]["structuredContent"]["state"], "working");
}

#[tokio::test]
async fn progress_counts_up_and_then_comes_the_result() {
    let piece = Event::Artifact {
        artifact: Artifact::new("result", vec![Part::text("clouds")]),
        append: false,
        last: false,
        aside: EventAside::default(),
    };
    let mut events = vec![accepted("remote-1", "context-1"), says("looking"), piece];
    events.extend(finished_with(vec![Part::text("sun")]).split_off(2));
    let script = move |_: &_| {
        let told = stream::iter(events.clone()).then(|event| async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            event
        });
        told.boxed()
    };
    let house = Plan::with(ScriptedPeer::with(script)).build().await;
    let web = Web::new(&house);
    let reply = web.ask_with("tools/call", forecast(json!({})), json!({ "progressToken": "p" })).await;
    assert!(reply.kind.starts_with("text/event-stream"));
    assert_json_snapshot!(reply.messages.iter().map(steady).collect::<Vec<_>>());
    // Without a token nobody asked for progress.
    assert_eq!(web.ask("tools/call", forecast(json!({}))).await.messages.len(), 1);

    let mut client = Client::initialized(&house, "2025-06-18", "test").await;
    let mut params = forecast(json!({}));
    params["_meta"] = json!({ "progressToken": 7 });
    let id = client.begin("tools/call", params).await;
    let heard = [client.hear().await, client.hear().await, client.hear().await];
    assert_eq!(heard[0]["params"], json!({ "progressToken": 7, "progress": 1.0, "message": "looking" }));
    assert_eq!(heard[1]["params"]["progress"], 2.0);
    assert_eq!(heard[2]["id"], id);
}

#[tokio::test]
async fn a_silent_call_is_heard_of_again_and_again() {
    let mut plan = stuck_after(vec![accepted("remote-1", "context-1")]);
    plan.calls.heartbeat_secs = 1;
    let house = plan.build().await;
    let mut open =
        Web::new(&house).open("tools/call", forecast(json!({})), json!({ "progressToken": "p" })).await;
    assert_eq!(open.hear().await["params"]["message"], "weather is still working");
    assert_eq!(open.hear().await["params"]["progress"], 2.0);
}

#[tokio::test]
async fn hanging_up_over_http_calls_the_remote_task_off() {
    let house = stuck_after(vec![accepted("remote-1", "context-1"), working()]).build().await;
    let web = Web::new(&house);
    // Before the first message, and on an open stream.
    tokio::select! {
        response = web.send(web.modern("tools/call", forecast(json!({})), json!({}))) => panic!("{response:?}"),
        () = until_called(&house) => {}
    }
    until_cancelled(&house).await;

    house.peer.cancels.lock().clear();
    let mut open = web.open("tools/call", forecast(json!({})), json!({ "progressToken": "p" })).await;
    open.hear().await;
    drop(open);
    until_cancelled(&house).await;
}

#[tokio::test]
async fn a_connection_that_breaks_calls_the_remote_task_off() {
    let house = stuck_after(vec![accepted("remote-1", "context-1"), working()]).build().await;
    let router = house.door.router(house.stop.clone()).layer(Extension(ann()));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut connection = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    tokio::spawn(axum::serve(listener, router).into_future());
    let (head, body) = Web::new(&house).modern("tools/call", forecast(json!({})), json!({})).into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let mut request = format!("POST /mcp HTTP/1.1\r\ncontent-length: {}\r\n", body.len());
    for (name, value) in &head.headers {
        request.push_str(&format!("{name}: {}\r\n", value.to_str().unwrap()));
    }
    connection.write_all(request.as_bytes()).await.unwrap();
    connection.write_all(b"\r\n").await.unwrap();
    connection.write_all(&body).await.unwrap();
    until_called(&house).await;
    drop(connection);
    until_cancelled(&house).await;
}

#[tokio::test]
async fn a_cancelled_request_calls_the_remote_task_off() {
    let house = stuck_after(vec![accepted("remote-1", "context-1"), working()]).build().await;
    let mut client = Client::initialized(&house, "2025-06-18", "test").await;
    let mut params = forecast(json!({}));
    params["_meta"] = json!({ "progressToken": 7 });
    let id = client.begin("tools/call", params).await;
    assert_eq!(client.hear().await["params"]["message"], "working");
    let cancelled = json!({ "requestId": id, "reason": "enough" });
    client.say(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled })).await;
    until_cancelled(&house).await;
    // A cancelled request gets no answer; the next one does.
    client.ask("ping", json!({})).await;
}

#[tokio::test]
async fn a_request_that_timed_out_at_its_client_goes_on_without_it() {
    let begun = vec![accepted("remote-1", "context-1"), working()];
    let house = Plan::with(ScriptedPeer::with(move |_: &_| {
        let rest = stream::iter(finished_with(vec![Part::text("late")]).split_off(1));
        let later =
            stream::once(tokio::time::sleep(Duration::from_millis(300))).flat_map(move |()| rest.clone());
        stream::iter(begun.clone()).chain(later).boxed()
    }))
    .build()
    .await;
    let mut client = Client::initialized(&house, "2025-06-18", "test").await;
    let mut params = forecast(json!({}));
    params["_meta"] = json!({ "progressToken": 7 });
    let id = client.begin("tools/call", params).await;
    assert_eq!(client.hear().await["params"]["message"], "working");
    let given_up = json!({ "requestId": id, "reason": "McpError: MCP error -32001: Request timed out" });
    client.say(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": given_up })).await;
    let task = house.peer.calls.lock()[0].task.to_string();
    within(async {
        let fetch = json!({ "name": "get_task", "arguments": { "task_id": task } });
        while client.ask("tools/call", fetch.clone()).await["result"]["content"][0]["text"] != "late" {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    assert!(house.peer.cancels.lock().is_empty());
}

#[tokio::test]
async fn a_client_that_is_gone_calls_nothing_off() {
    let house = stuck_after(vec![accepted("remote-1", "context-1"), working()]).build().await;
    let mut client = Client::initialized(&house, "2025-06-18", "test").await;
    let mut params = forecast(json!({}));
    params["_meta"] = json!({ "progressToken": 7 });
    client.begin("tools/call", params).await;
    client.hear().await;
    client.hang_up().await.unwrap();
    assert_eq!(house.engine.running().count(), 1);
    house.engine.running().detach_all().await;
    assert_eq!(house.engine.running().count(), 0);
    assert!(house.peer.cancels.lock().is_empty());
}

#[tokio::test]
async fn a_client_that_reads_structured_content_first_gets_none_beside_a_picture() {
    let picture = Part { media_type: Some("image/png".into()), ..Part::new(Content::Raw("AAAA".into())) };
    let parts = vec![Part::text("a pixel"), picture];
    let house =
        Plan::with(ScriptedPeer::with(move |_: &_| stream::iter(finished_with(parts.clone())).boxed()));
    let house = house.build().await;
    let picture = json!({ "type": "image", "data": "AAAA", "mimeType": "image/png" });
    for (name, is_told) in
        [("codex-mcp-client", false), ("claude-code", false), ("gemini-cli-mcp-client", true)]
    {
        let mut client = Client::initialized(&house, "2025-06-18", name).await;
        let drawn = client.ask("tools/call", forecast(json!({}))).await;
        assert_eq!(drawn["result"]["content"][1], picture, "{drawn}");
        assert_eq!(drawn["result"]["structuredContent"].is_object(), is_told, "{drawn}");
        let sent = json!({ "name": "send_message", "arguments": { "agent": "weather", "message": "draw" } });
        let sent = client.ask("tools/call", sent).await;
        assert_eq!(sent["result"]["content"][1], picture, "{sent}");
        assert_eq!(sent["result"]["structuredContent"].is_object(), is_told, "{sent}");
        if !is_told {
            let standing = steady(&sent)["result"]["content"][2]["text"].take();
            assert_eq!(standing, "task_id task_1, context_id context-1, state completed");
        }
    }
}

#[tokio::test]
async fn a_question_is_a_result_that_says_how_to_answer_it() {
    let peer = ScriptedPeer::with(|call| {
        let events = match &call.continues.task_id {
            None => vec![accepted("remote-1", "context-1"), asks("Which city?")],
            Some(_) => finished_with(vec![Part::text("sunny in Venice")]).split_off(1),
        };
        stream::iter(events).boxed()
    });
    let house = Plan::with(peer).build().await;
    let web = Web::new(&house);
    let question = web.call("weather.forecast", json!({})).await;
    assert_json_snapshot!(steady(&question));
    let asked = &question["result"]["structuredContent"];
    let args = json!({ "agent": asked["agent"], "task_id": asked["task_id"], "message": "Venice" });
    let answer = web.call("send_message", args).await;
    assert_json_snapshot!(steady(&answer));
}

/// A house whose agent takes a moment.
fn slow() -> Plan {
    Plan::with(ScriptedPeer::with(|_: &_| {
        let events = stream::iter(finished_with(vec![Part::text("late")]));
        stream::once(tokio::time::sleep(Duration::from_millis(100)))
            .flat_map(move |()| events.clone())
            .boxed()
    }))
}

#[tokio::test]
async fn calls_in_flight_are_answered_when_the_server_stops() {
    let house = slow().build().await;
    let mut older = Web::new(&house);
    older.initialize("2025-06-18").await;
    let newer = Web::new(&house);
    let stop = async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        house.stop.cancel();
    };
    let (newer, older, ()) = tokio::join!(
        newer.ask("tools/call", forecast(json!({}))),
        older.ask_legacy("tools/call", forecast(json!({}))),
        stop
    );
    assert_eq!(newer.only()["result"]["content"][0]["text"], "late");
    assert_eq!(older.only()["result"]["content"][0]["text"], "late");
}

#[tokio::test]
async fn calls_in_flight_are_answered_when_the_input_ends() {
    let house = slow().build().await;
    let mut client = Client::initialized(&house, "2025-06-18", "test").await;
    let id = client.begin("tools/call", forecast(json!({}))).await;
    client.end_input().await;
    let answer = client.hear().await;
    assert_eq!((&answer["id"], &answer["result"]["content"][0]["text"]), (&json!(id), &json!("late")));
}

#[tokio::test]
async fn a_skill_that_takes_no_object_gets_what_its_wrapper_holds() {
    let numbers = skill_with_schema("sum", json!({ "type": "array", "items": { "type": "number" } }));
    let plan = Plan { agents: vec![card("Maths", vec![numbers, skill("other")])], ..Plan::default() };
    let house = plan.build().await;
    let answer = Web::new(&house).call("maths.sum", json!({ "input": [1, 2] })).await;
    assert_eq!(answer["result"]["structuredContent"], json!([1, 2]));
}

#[tokio::test]
async fn a_call_may_go_on_with_a_conversation_or_answer_a_task() {
    let peer = ScriptedPeer::with(|call| {
        let events = match (&call.continues.task_id, call.args().get()) {
            (None, r#"{"ask":true}"#) => vec![accepted("remote-1", "context-1"), asks("Which city?")],
            (None, _) => finished_with(vec![Part::data(call.args())]),
            (Some(_), _) => finished_with(vec![Part::data(call.args())]).split_off(1),
        };
        stream::iter(events).boxed()
    });
    let mut plan = Plan::with(peer);
    plan.agents.push(card("News", vec![skill("headlines")]));
    let house = plan.build().await;
    let web = Web::new(&house);
    let first = web.call("weather.forecast", json!({ "n": 1 })).await["result"].clone();
    let context = &first["_meta"]["rialto/contextId"];
    web.call("weather.forecast", json!({ "n": 2, "a2a_context_id": context })).await;
    assert_eq!(house.peer.calls.lock()[1].continues.context_id.as_deref(), Some("context-1"));
    assert_eq!(house.peer.calls.lock()[1].args().get(), r#"{"n":2}"#);

    let asked = web.call("weather.forecast", json!({ "ask": true })).await["result"].clone();
    let task = &asked["_meta"]["rialto/taskId"];
    let elsewhere = json!({ "name": "news.headlines", "arguments": { "a2a_task_id": task } });
    let refused = web.ask("tools/call", elsewhere).await.only();
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    let done = web.call("weather.forecast", json!({ "city": "Venice", "a2a_task_id": task })).await;
    assert_eq!(done["result"]["structuredContent"], json!({ "city": "Venice" }));
    assert_eq!(&done["result"]["_meta"]["rialto/taskId"], task);
    let unknown = json!({ "name": "weather.forecast", "arguments": { "a2a_task_id": "task_0" } });
    assert_eq!(web.ask("tools/call", unknown).await.only()["error"]["code"], -32602);
}

#[tokio::test]
async fn an_argument_that_is_repeated_in_a_header_is_the_same_there() {
    let schema = json!({ "type": "object", "properties": { "region": { "type": "string", "x-mcp-header": "Region" } } });
    let agents = vec![card("Weather", vec![skill_with_schema("forecast", schema), skill("history")])];
    let house = Plan { agents, ..Plan::default() }.build().await;
    let web = Web::new(&house);
    let with = |header: Option<&str>| {
        let mut request = web.modern("tools/call", forecast(json!({ "region": "eu" })), json!({}));
        if let Some(header) = header {
            request.headers_mut().insert("mcp-param-region", header.parse().unwrap());
        }
        request
    };
    for header in [None, Some("us")] {
        let refused = crate::web::read(web.send(with(header)).await).await;
        assert_eq!((refused.status.as_u16(), &refused.only()["error"]["code"]), (400, &json!(-32020)));
    }
    assert!(house.peer.calls.lock().is_empty());
    let done = crate::web::read(web.send(with(Some("eu"))).await).await;
    assert_eq!(done.only()["result"]["structuredContent"], json!({ "region": "eu" }), "{}", done.text);
    web.call("weather.history", json!({ "region": "eu" })).await;
}
