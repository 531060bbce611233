//! `/call`: what goes over the wire.

use http::StatusCode;
use rialto_engine::registry::Registration;
use rialto_http_client::fetch::FetchResponse;
use rialto_model::{agent::AgentTrust, backing::FunctionBacking, json::Json, message::Part};
use rialto_testkit::{
    agents,
    peer::{ScriptedPeer, finished_with},
};
use serde_json::{Value, json};

use crate::fixture::{Fixture, function};

const ANY: &str = "*/*";

/// A house with the function `run` that answers `body`, and an agent `Desk` whose skill `ask` tells these parts.
async fn fixture(body: &'static str, parts: Vec<Part>) -> Fixture {
    let reply = Box::new(move || Ok(FetchResponse::fixed(StatusCode::OK, body)));
    let fixture = Fixture::new(reply, ScriptedPeer::telling(finished_with(parts))).await;
    let schema = Some(Json::from(json!({ "type": "object", "properties": { "n": { "type": "integer" } } })));
    fixture.deploy(vec![FunctionBacking { input_schema: schema, ..function("run") }], false).await;
    let url = "https://desk.example.com";
    fixture.discovery.serve(url, agents::card("Desk", vec![agents::skill("ask")]));
    let wanted = Registration { trust: Some(AgentTrust::Trusted), ..Registration::new(url) };
    fixture.engine.registry().register(wanted).await.unwrap();
    fixture
}

#[tokio::test]
async fn a_result_is_answered_in_its_plainest_form() {
    let fixture = fixture("hello", vec![Part::text("one"), Part::data(Json::from(json!({ "n": 1 })))]).await;
    let plain = fixture.ask("POST", "/call/run", ANY, "").await;
    assert_eq!(
        (plain.status, plain.kind.as_str(), plain.body.as_str()),
        (200, "text/plain; charset=utf-8", "hello")
    );
    assert_eq!(fixture.ask("POST", "/call/run/", ANY, "").await.body, "hello");
    let as_json = fixture.ask("POST", "/call/run", "application/json", "{}").await;
    assert_eq!((as_json.kind.as_str(), as_json.body.as_str()), ("application/json", "\"hello\""));
    let several = fixture.ask("POST", "/call/desk.ask", ANY, "{}").await;
    assert_eq!(several.body, r#"[{"text":"one"},{"data":{"n":1}}]"#);
}

#[tokio::test]
async fn trouble_is_a_problem_with_our_code_and_class() {
    let fixture = fixture("1", Vec::new()).await;
    let mut told = Vec::new();
    for (path, body) in [
        ("/call/nothing", "{}"),
        ("/call/run", "{"),
        ("/call/run", r#"{"n":"one"}"#),
        ("/call/run", &format!("{{\"n\":\"{}\"}}", "x".repeat(2_000))),
    ] {
        let answer = fixture.ask("POST", path, ANY, body).await;
        assert_eq!(answer.kind, "application/problem+json");
        told.push((answer.status, serde_json::from_str::<Value>(&answer.body).unwrap()));
    }
    insta::assert_json_snapshot!(told);
}

#[tokio::test]
async fn what_can_be_called_is_described() {
    let fixture = fixture("1", Vec::new()).await;
    let answer = fixture.ask("GET", "/call/openapi.json", ANY, "").await;
    assert_eq!((answer.status, answer.kind.as_str()), (200, "application/json"));
    let mut document: Value = serde_json::from_str(&answer.body).unwrap();
    document["info"]["version"] = json!("0");
    insta::assert_json_snapshot!(document);
    fixture.deploy(Vec::new(), false).await;
    let later = fixture.ask("GET", "/call/openapi.json", ANY, "").await;
    let later: Value = serde_json::from_str(&later.body).unwrap();
    assert_eq!(later["paths"].as_object().unwrap().keys().collect::<Vec<_>>(), ["/desk.ask"]);
    let open = fixture.open().ask("GET", "/call/openapi.json", ANY, "").await;
    let open: Value = serde_json::from_str(&open.body).unwrap();
    assert_eq!((open.get("security"), open["components"].get("securitySchemes")), (None, None));
}
