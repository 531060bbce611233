//! Every protocol version is served, and each gets the shapes it knows.

use axum::body::Body;
use http::{Request, StatusCode};
use insta::assert_json_snapshot;
use rialto_testkit::agents::{card, skill};
use serde_json::json;

use crate::{
    house::{Plan, ann, steady},
    lines::{Client, modern},
    web::{Web, read},
};

const LEGACY: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

#[tokio::test]
async fn a_client_of_any_older_version_shakes_hands_in_its_own_words() {
    let house = Plan::default().build().await;
    for version in LEGACY {
        let mut client = Client::connect(&house);
        let hello = client.initialize(version, "test").await;
        assert_eq!(hello["result"]["protocolVersion"], version);
        let call =
            client.ask("tools/call", json!({ "name": "weather.forecast", "arguments": { "a": 1 } })).await;
        assert_eq!(call["result"]["structuredContent"], json!({ "a": 1 }), "{version}");
        assert_eq!(call["result"].get("resultType"), None, "{version}");
        client.hang_up().await.unwrap();
    }
}

#[tokio::test]
async fn the_handshake_says_who_we_are_and_how_to_use_us() {
    let house = Plan::default().build().await;
    let hello = Client::connect(&house).initialize("2025-06-18", "test").await;
    assert_json_snapshot!(steady(&hello));
}

#[tokio::test]
async fn discovery_says_who_we_are_and_how_long_that_holds() {
    let house = Plan::default().build().await;
    let mut client = Client::connect(&house);
    let found = client.ask("server/discover", json!({ "_meta": modern("test", json!({})) })).await;
    assert_json_snapshot!(steady(&found));
    let over_http = Web::new(&house).ask("server/discover", json!({})).await;
    assert_eq!(over_http.status, StatusCode::OK);
    assert_eq!(over_http.only()["result"], found["result"]);
}

#[tokio::test]
async fn a_client_without_a_handshake_is_served_on_stdio_and_over_http_alike() {
    let house = Plan::default().build().await;
    let params = json!({ "name": "weather.forecast", "arguments": { "city": "Venice" } });
    let mut with_meta = params.clone();
    with_meta["_meta"] = modern("test", json!({}));
    let mut client = Client::connect(&house);
    let on_stdio = client.ask("tools/call", with_meta).await;
    let over_http = Web::new(&house).ask("tools/call", params).await;
    assert_eq!(over_http.kind, "application/json");
    assert_json_snapshot!(steady(&on_stdio));
    assert_eq!(steady(&over_http.only()), steady(&on_stdio));
}

#[tokio::test]
async fn an_older_client_over_http_gets_a_session_and_no_empty_events() {
    let house = Plan::default().build().await;
    for version in LEGACY {
        let mut web = Web::new(&house);
        let hello = web.initialize(version).await;
        assert_eq!(hello["result"]["protocolVersion"], version);
        assert!(web.session.is_some());
        let reply =
            web.ask_legacy("tools/call", json!({ "name": "weather.forecast", "arguments": {} })).await;
        assert_eq!(reply.only()["result"]["structuredContent"], json!({}), "{version}");
        assert!(!reply.text.contains("retry:"), "{}", reply.text);
    }
}

#[tokio::test]
async fn without_sessions_an_older_client_is_served_request_by_request() {
    let mut plan = Plan::default();
    plan.config.legacy_sessions = false;
    let house = plan.build().await;
    let mut web = Web::new(&house);
    web.initialize("2025-06-18").await;
    assert_eq!(web.session, None);
    let reply = web.ask_legacy("tools/call", json!({ "name": "weather.forecast", "arguments": {} })).await;
    assert_eq!(reply.only()["result"]["structuredContent"], json!({}));
}

#[tokio::test]
async fn what_we_do_not_offer_does_not_exist() {
    let house = Plan::default().build().await;
    let mut client = Client::initialized(&house, "2025-11-25", "test").await;
    let complete =
        json!({ "ref": { "type": "ref/prompt", "name": "x" }, "argument": { "name": "a", "value": "b" } });
    for (method, params) in [
        ("prompts/list", json!({})),
        ("prompts/get", json!({ "name": "x" })),
        ("completion/complete", complete),
        ("nonsense", json!({})),
    ] {
        let answer = client.ask(method, params.clone()).await;
        assert_eq!(answer["error"]["code"], -32601, "{method}: {answer}");
        let reply = Web::new(&house).ask(method, params).await;
        assert_eq!(
            (reply.status, &reply.only()["error"]["code"]),
            (StatusCode::NOT_FOUND, &json!(-32601)),
            "{method}"
        );
    }
}

#[tokio::test]
async fn a_version_that_nobody_knows_is_answered_with_those_we_know() {
    let house = Plan::default().build().await;
    let web = Web::new(&house);
    let mut meta = modern("test", json!({}));
    meta["io.modelcontextprotocol/protocolVersion"] = json!("2031-01-01");
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": { "_meta": meta } });
    let request = web.post().header("mcp-protocol-version", "2031-01-01").header("mcp-method", "tools/list");
    let reply = read(web.send(request.body(body.to_string().into()).unwrap()).await).await;
    assert_eq!(reply.status, StatusCode::BAD_REQUEST);
    assert_eq!(reply.only()["error"]["code"], -32022);
    assert_eq!(reply.only()["error"]["data"]["requested"], "2031-01-01");
}

#[tokio::test]
async fn a_header_that_contradicts_the_body_is_refused() {
    let house = Plan::default().build().await;
    let web = Web::new(&house);
    let mut request =
        web.modern("tools/call", json!({ "name": "weather.forecast", "arguments": {} }), json!({}));
    request.headers_mut().insert("mcp-name", "weather.other".parse().unwrap());
    let reply = read(web.send(request).await).await;
    assert_eq!(reply.status, StatusCode::BAD_REQUEST);
    assert_eq!(reply.only()["error"]["code"], -32020);

    let mut request =
        web.modern("tools/call", json!({ "name": "weather.forecast", "arguments": {} }), json!({}));
    request.headers_mut().remove("mcp-method");
    let reply = read(web.send(request).await).await;
    assert_eq!((reply.status, &reply.only()["error"]["code"]), (StatusCode::BAD_REQUEST, &json!(-32020)));
}

#[tokio::test]
async fn a_request_of_another_site_is_refused() {
    let house = Plan::default().build().await;
    let web = Web::new(&house);
    for (header, value) in [("origin", "https://evil.example.com"), ("host", "evil.example.com")] {
        let mut request = web.modern("tools/list", json!({}), json!({}));
        request.headers_mut().insert(header, value.parse().unwrap());
        assert_eq!(web.send(request).await.status(), StatusCode::FORBIDDEN, "{header}");
    }
}

#[tokio::test]
async fn an_origin_that_was_allowed_may_call() {
    let mut plan = Plan::default();
    plan.config.allowed_origins = vec!["https://app.example.com:443".into()];
    plan.config.allowed_hosts = vec!["*".into()];
    let house = plan.build().await;
    let web = Web::new(&house);
    let mut request = web.modern("tools/list", json!({}), json!({}));
    request.headers_mut().insert("origin", "https://app.example.com".parse().unwrap());
    request.headers_mut().insert("host", "rialto.example.com".parse().unwrap());
    assert_eq!(web.send(request).await.status(), StatusCode::OK);
}

#[tokio::test]
async fn nobody_is_served_who_is_not_somebody() {
    let house = Plan::default().build().await;
    let reply = Web::stranger(&house).ask("tools/list", json!({})).await;
    assert_eq!(reply.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_session_is_its_openers_alone() {
    let house = Plan::default().build().await;
    let router = house.door.router(house.stop.clone());
    let mut mine = Web::on(router.clone(), ann());
    mine.initialize("2025-06-18").await;
    let mut theirs = Web::on(router, rialto_model::call::Caller::user("bob"));
    theirs.session.clone_from(&mine.session);
    assert_eq!(theirs.ask_legacy("tools/list", json!({})).await.status, StatusCode::NOT_FOUND);
    assert_eq!(mine.ask_legacy("tools/list", json!({})).await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_session_can_be_ended() {
    let house = Plan::default().build().await;
    let mut web = Web::new(&house);
    web.initialize("2025-06-18").await;
    let session = web.session.clone().unwrap();
    let end = Request::delete("/mcp").header("host", "localhost").header("mcp-session-id", session);
    assert_eq!(web.send(end.body(Body::empty()).unwrap()).await.status(), StatusCode::NO_CONTENT);
    assert_eq!(web.ask_legacy("tools/list", json!({})).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn one_session_too_many_drops_the_one_that_was_quiet_the_longest_until_it_is_used() {
    let mut plan = Plan::default();
    plan.config.max_sessions = 2;
    let house = plan.build().await;
    let router = house.door.router(house.stop.clone());
    let mut clients = Vec::new();
    for _ in 0..2 {
        let mut web = Web::on(router.clone(), ann());
        web.initialize("2025-06-18").await;
        clients.push(web);
    }
    // The first has a stream open, so it is the second that makes room.
    let mut stream = clients[0].listen().await;
    let mut third = Web::on(router, ann());
    third.initialize("2025-06-18").await;
    assert_eq!(clients[1].ask_legacy("tools/list", json!({})).await.status, StatusCode::OK, "it is rebuilt");
    let second = clients[1].listen().await;
    // Both that may be held are in use now.
    assert_eq!(third.ask_legacy("tools/list", json!({})).await.status, StatusCode::SERVICE_UNAVAILABLE);
    drop(second);
    assert_eq!(third.ask_legacy("tools/list", json!({})).await.status, StatusCode::OK);
    house.meet(card("Maps", vec![skill("route")])).await;
    assert_eq!(
        stream.hear().await["method"],
        "notifications/tools/list_changed",
        "the first was never dropped"
    );
}

#[tokio::test]
async fn a_body_that_is_too_large_is_refused() {
    let mut plan = Plan::default();
    plan.config.max_body_bytes = 1_000;
    let house = plan.build().await;
    let args = json!({ "name": "weather.forecast", "arguments": { "text": "x".repeat(1_000) } });
    assert_eq!(Web::new(&house).ask("tools/call", args).await.status, StatusCode::PAYLOAD_TOO_LARGE);
}
