//! Permissions of callers at a running server.

use serde_json::{Value, json};

use crate::harness::{
    agent::SampleAgent,
    http,
    rialto::Rialto,
    server::{ServerProcess, message},
};

fn token(rialto: &Rialto, args: &[&str]) -> String {
    let made = rialto.json(&[&["tokens", "create"], args, &["--json"]].concat());
    made["token"].as_str().unwrap().to_owned()
}

/// One request as clients before 2026-07-28 send it, without a session.
fn old_request(server: &ServerProcess, token: &str, method: &str, params: &Value) -> http::HttpAnswer {
    let bearer = format!("Bearer {token}");
    let headers = [("Authorization", bearer.as_str()), ("MCP-Protocol-Version", "2025-06-18")];
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    http::post(&server.mcp(), &headers, &body.to_string())
}

#[test]
fn a_token_that_may_only_look_around_cannot_call() {
    let (rialto, agent) = (Rialto::fresh(), SampleAgent::named("Desk"));
    rialto.trust(&agent.url);
    let server = rialto.serve(&[]);
    let call = json!({ "name": "desk.echo", "arguments": {} });
    for (scope, method, refused, params) in
        [("discover", "tools/list", "tools/call", &call), ("call", "tools/call", "tools/list", &json!({}))]
    {
        let token = token(&rialto, &[scope, "--scope", scope]);
        let allowed = if method == "tools/call" { call.clone() } else { json!({}) };
        assert_eq!(server.request("/mcp", method, allowed, Some(&token)).status, 200, "{scope}");
        let lacking = if scope == "call" { "discover" } else { "call" };
        for answer in [
            server.request("/mcp", refused, params.clone(), Some(&token)),
            old_request(&server, &token, refused, params),
        ] {
            assert_eq!(answer.status, 403, "{scope}: {answer:?}");
            let challenge = format!("error=\"insufficient_scope\", scope=\"{lacking}\"");
            assert!(answer.head.contains(&challenge), "{}", answer.head);
        }
    }
    assert_eq!(agent.heard().len(), 1, "{:?}", agent.heard());
    let ruler = token(&rialto, &["ruler", "--scope", "admin"]);
    assert_eq!(server.request("/mcp", "tools/list", json!({}), Some(&ruler)).status, 403);
}

#[test]
fn a_client_that_looks_for_the_way_in_finds_it() {
    let server = Rialto::fresh().serve(&[]);
    let refused = server.request("/mcp", "tools/list", json!({}), None);
    let (_, rest) = refused.head.split_once("resource_metadata=\"").expect("it says where to read on");
    let (url, _) = rest.split_once('"').unwrap();
    let told = http::get(url).unwrap();
    assert_eq!(told.status, 200);
    let told: Value = serde_json::from_str(&told.body).unwrap();
    assert_eq!(told["resource"], server.mcp());
    assert_eq!(told["bearer_methods_supported"], json!(["header"]));
}

#[test]
fn an_org_sees_its_own_agents_and_no_other_org() {
    let (rialto, agent) = (Rialto::fresh(), SampleAgent::named("Desk"));
    rialto.trust(&agent.url);
    let server = rialto.serve(&[]);
    let (own, other) = (token(&rialto, &["ann"]), token(&rialto, &["bob", "--org", "acme"]));
    let list = |path: &str, token: &str| server.request(path, "tools/list", json!({}), Some(token));
    let sees = |path: &str, token: &str| message(&list(path, token)).to_string().contains("desk.echo");
    assert!(sees("/mcp", &own) && sees("/orgs/default/mcp", &own) && sees("/default/main/mcp", &own));
    assert!(!sees("/default/shop/mcp", &own));
    assert!(!sees("/mcp", &other) && !sees("/orgs/acme/mcp", &other));
    for (path, token) in [("/orgs/acme/mcp", &own), ("/acme/main/mcp", &own), ("/orgs/default/mcp", &other)] {
        assert_eq!(list(path, token).status, 404, "{path}");
    }
}

#[test]
fn orgs_have_names_of_their_own_below_a_domain() {
    let rialto = Rialto::fresh().with("RIALTO_SERVER__DOMAIN", "bridge.example");
    let server = rialto.serve(&[]);
    let bearer = format!("Bearer {}", token(&rialto, &["bob", "--org", "acme"]));
    let port = server.url.rsplit_once(':').unwrap().1;
    let params = json!({
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": { "name": "rialto-tests", "version": "1" },
    });
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params }).to_string();
    for (name, status) in [("acme", 200), ("default", 404)] {
        let host = format!("{name}.bridge.example:{port}");
        let answer = http::post_to(&server.mcp(), &host, &[("Authorization", bearer.as_str())], &hello);
        assert_eq!(answer.status, status, "{name}: {answer:?}");
    }
}

#[test]
fn settings_that_would_let_in_the_wrong_people_are_refused_at_the_start() {
    for (text, word) in [
        ("[auth]\nissuers = [{ issuer = \"https://id.example.com\" }]", "audience"),
        ("[auth]\nissuers = [{ issuer = \"http://id.example.com\", audience = \"a\" }]", "https"),
        ("[auth]\nissuers = [{ issuer = \"https://id.example.com\", audiense = \"a\" }]", "audiense"),
        ("[server]\npublic_url = \"bridge.example.com\"", "public_url"),
        ("[server]\ndomain = \"*.example.com\"", "domain"),
    ] {
        let rialto = Rialto::fresh();
        std::fs::write(rialto.folder().join("rialto.toml"), text).unwrap();
        let said = rialto.cli(&["serve", "--addr", "127.0.0.1:0"]).exit(2);
        assert!(said.err.contains(word), "{word}: {}", said.err);
    }
}

#[test]
fn who_trusts_an_issuer_is_shown_no_token() {
    let rialto = Rialto::fresh();
    let text = "[auth]\nissuers = [{ issuer = \"https://id.example.com\", audience = \"rialto\" }]";
    std::fs::write(rialto.folder().join("rialto.toml"), text).unwrap();
    let server = rialto.serve(&[]);
    assert_eq!(server.token, None);
    let told = http::get(&format!("{}/.well-known/oauth-protected-resource/mcp", server.url)).unwrap();
    assert!(told.body.contains("https://id.example.com"), "{}", told.body);
}
