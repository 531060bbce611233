//! The fast path past rmcp: most requests take it, and their answers are those of rmcp's path.

use std::time::Duration;

use axum::body::Body;
use futures::{StreamExt, stream};
use http::Request;
use rialto_model::message::Part;
use rialto_testkit::{
    agents::{card, skill},
    peer::{ScriptedPeer, finished_with, working},
};
use serde_json::{Value, json};

use crate::{
    house::{Plan, steady},
    web::{Reply, Web, read},
};

/// Requests of the comparison that are well-formed, so that the fast path takes them.
const WELL_FORMED: u64 = 14;

/// A web page that may call. Such requests go the long way, because rmcp knows which pages may.
const PAGE: &str = "https://app.example.com";

fn plan() -> Plan {
    let script = |call: &rialto_model::call::Call| {
        let events = match call.args().get() {
            r#"{"fail":true}"# => vec![rialto_model::event::Event::failed(
                rialto_model::failure::Failure::new(rialto_model::failure::FailureKind::PeerFailed, "no"),
            )],
            r#"{"pretty":true}"# => finished_with(vec![Part::data(
                rialto_model::json::Json::parse("{\r\n  \"a\": 1\n}").unwrap(),
            )]),
            r#"{"large":true}"# => finished_with(vec![Part::text("x".repeat(3_000))]),
            _ => finished_with(vec![Part::data(call.args())]),
        };
        let slowly = |event| async {
            tokio::time::sleep(Duration::from_millis(10)).await;
            event
        };
        stream::iter([working()]).chain(stream::iter(events)).then(slowly).boxed()
    };
    let agents = vec![card("Weather", vec![skill("forecast"), skill("history")])];
    let mut plan = Plan { agents, ..Plan::with(ScriptedPeer::with(script)) };
    plan.config.allowed_origins = vec![format!("{PAGE}:443")];
    (plan.config.page_size, plan.config.inline_limit_kb) = (1, 2);
    plan
}

fn call(name: &str, args: Value) -> Value {
    json!({ "name": name, "arguments": args })
}

/// What can be told apart about a reply.
fn seen(reply: Reply) -> (u16, String, Vec<Value>) {
    (reply.status.as_u16(), reply.kind, reply.messages.iter().map(steady).collect())
}

#[tokio::test]
async fn both_ways_answer_alike() {
    let house = plan().build().await;
    let web = Web::new(&house);
    let long_way = |mut request: Request<Body>| {
        request.headers_mut().insert("origin", PAGE.parse().unwrap());
        request
    };
    let (token, mut taken) = (json!({ "progressToken": 7 }), 0);
    for (method, params, meta) in [
        ("tools/call", call("weather.forecast", json!({ "city": "Venice", "n": 1.5 })), json!({})),
        ("tools/call", call("weather.forecast", json!({ "pretty": true })), json!({})),
        ("tools/call", call("weather.forecast", json!({ "pretty": true })), token.clone()),
        ("tools/call", call("weather.forecast", json!({ "large": true })), json!({})),
        ("tools/call", call("weather.forecast", json!({ "large": true })), token.clone()),
        ("tools/call", call("weather.forecast", json!({ "fail": true })), json!({})),
        ("tools/call", call("weather.forecast", json!({ "fail": true })), token.clone()),
        ("tools/call", call("weather.forecast", json!([1])), json!({})),
        ("tools/call", json!({ "name": "weather.forecast" }), json!({})),
        ("tools/call", call("weather.nothing", json!({})), json!({})),
        ("tools/call", call("list_agents", json!({ "query": "nobody" })), json!({})),
        ("tools/call", call("get_task", json!({})), json!({})),
        ("tools/call", call("weather.forecast", json!({})), json!({ "progressToken": 1.5 })),
        (
            "tools/call",
            call("weather.forecast", json!({})),
            json!({ "io.modelcontextprotocol/clientCapabilities": 5 }),
        ),
        (
            "tools/call",
            call("weather.forecast", json!({})),
            json!({ "io.modelcontextprotocol/clientInfo": 5 }),
        ),
        (
            "tools/call",
            call("weather.forecast", json!({})),
            json!({ "io.modelcontextprotocol/protocolVersion": "2025-11-25" }),
        ),
        ("tools/list", json!({}), json!({})),
        ("tools/list", json!({ "cursor": "d2VhdGhlci5mb3JlY2FzdA" }), json!({})),
        ("tools/list", json!({ "cursor": "???" }), json!({})),
        ("tools/list", json!({ "cursor": 5 }), json!({})),
    ] {
        let request = || web.modern(method, params.clone(), meta.clone());
        let before = house.door.fast_path_requests();
        let short = seen(read(web.send(request()).await).await);
        let is_well_formed = house.door.fast_path_requests() - before;
        let long = seen(read(web.send(long_way(request())).await).await);
        assert_eq!(short, long, "{method} {params} {meta}");
        assert_eq!(house.door.fast_path_requests() - before, is_well_formed, "{method} {params} {meta}");
        taken += is_well_formed;
    }
    assert_eq!(taken, WELL_FORMED);
}

#[tokio::test]
async fn without_the_fast_path_rmcp_answers_every_request() {
    let (fast, mut slow) = (plan().build().await, plan());
    slow.config.fast_path = false;
    let slow = slow.build().await;
    for (method, params) in
        [("tools/call", call("weather.forecast", json!({ "city": "Venice" }))), ("tools/list", json!({}))]
    {
        let mut answers = Vec::new();
        for house in [&fast, &slow] {
            answers.push(seen(Web::new(house).ask(method, params.clone()).await));
        }
        assert_eq!(answers[0], answers[1], "{method}");
    }
    assert_eq!((fast.door.fast_path_requests(), slow.door.fast_path_requests()), (2, 0));
}

#[tokio::test]
async fn what_is_no_message_is_refused_in_plain_words() {
    let house = plan().build().await;
    let web = Web::new(&house);
    for (body, code) in [("{\"jsonrpc\"", -32700), ("[]", -32600), ("{\"method\":5}", -32600)] {
        let head = web.post().header("mcp-protocol-version", "2026-07-28").header("mcp-method", "tools/call");
        let reply = read(web.send(head.header("mcp-name", "x").body(Body::from(body)).unwrap()).await).await;
        assert_eq!(
            (reply.status.as_u16(), &reply.only()["error"]["code"]),
            (400, &json!(code)),
            "{}",
            reply.text
        );
    }
    let plain = web.post().body(Body::from("hello")).unwrap();
    let (mut head, body) = plain.into_parts();
    head.headers.insert("content-type", "text/plain".parse().unwrap());
    assert_eq!(web.send(Request::from_parts(head, body)).await.status(), 415);
}

#[tokio::test]
async fn arguments_and_results_keep_every_digit() {
    let house = Plan::default().build().await;
    let web = Web::new(&house);
    let mut request = web.modern("tools/call", call("weather.forecast", json!({ "n": 0 })), json!({}));
    let body = read_body(&mut request).await.replace("{\"n\":0}", "{\"n\":12345678901234567890.10}");
    *request.body_mut() = Body::from(body);
    let reply = read(web.send(request).await).await;
    assert!(reply.text.contains(r#""structuredContent":{"n":12345678901234567890.10}"#), "{}", reply.text);
}

async fn read_body(request: &mut Request<Body>) -> String {
    let body = std::mem::replace(request.body_mut(), Body::empty());
    String::from_utf8(axum::body::to_bytes(body, 1 << 20).await.unwrap().to_vec()).unwrap()
}
