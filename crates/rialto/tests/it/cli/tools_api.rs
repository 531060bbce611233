//! `/api/v1/tools`: deploying from another machine, for those who may, and less than at this one.

use serde_json::{Value, json};

use crate::harness::{
    http::{self, HttpAnswer},
    rialto::Rialto,
    server::ServerProcess,
};

fn add(server: &ServerProcess, body: &Value) -> HttpAnswer {
    let bearer =
        format!("Bearer {}", server.token.as_deref().unwrap_or("owners-token-of-at-least-32-characters"));
    http::post(&format!("{}/api/v1/tools", server.url), &[("Authorization", &bearer)], &body.to_string())
}

fn admin() -> Rialto {
    let rialto = Rialto::fresh()
        .with("PATH", "/usr/bin:/bin")
        .with("RIALTO_TOKEN", "owners-token-of-at-least-32-characters");
    rialto.cli(&["policy", "add", "allow-admin", "admin_agents", "--caller", "owner"]).ok();
    rialto
}

#[test]
fn only_those_who_may_administer_deploy_and_look() {
    let rialto = Rialto::fresh().with("RIALTO_TOKEN", "owners-token-of-at-least-32-characters");
    rialto.cli(&["policy", "remove", "allow-admin-all"]).ok();
    let caller = rialto.json(&["tokens", "create", "ann", "--json"])["token"].as_str().unwrap().to_owned();
    let server = rialto.serve(&[]);
    let url = format!("{}/api/v1/tools", server.url);
    let ask = |token: &str| http::get_with(&url, None, &[("Authorization", &format!("Bearer {token}"))]);
    assert_eq!(http::get(&url).unwrap().status, 401);
    assert_eq!(ask(&caller).status, 403, "it lacks the scope");
    let refused = ask("owners-token-of-at-least-32-characters");
    assert!(
        refused.status == 403 && refused.body.contains("admin_agents"),
        "no policy permits it: {refused:?}"
    );
}

#[test]
fn a_function_at_an_address_is_deployed_and_taken_back() {
    let rialto = admin();
    let server = rialto.serve(&[]);
    let body =
        json!({ "kind": "function", "name": "up", "url": "https://up.example.com/f", "description": "Ups" });
    let added = add(&server, &body);
    assert_eq!(added.status, 201, "{added:?}");
    let shown: Value = serde_json::from_str(&added.body).unwrap();
    assert_eq!((&shown["kind"], &shown["url"]), (&json!("function"), &json!("https://up.example.com/f")));
    assert_eq!(add(&server, &body).status, 200, "the same again is the same");
    let bearer = [("Authorization", "Bearer owners-token-of-at-least-32-characters")];
    let listed = http::get_with(&format!("{}/api/v1/tools", server.url), None, &bearer);
    assert_eq!(serde_json::from_str::<Value>(&listed.body).unwrap()[0]["tools"][0]["name"], "up");
    let removed = http::delete(&format!("{}/api/v1/tools/up", server.url), &bearer);
    assert_eq!(removed.status, 204, "{removed:?}");
    assert_eq!(http::delete(&format!("{}/api/v1/tools/up", server.url), &bearer).status, 404);
}

#[test]
fn neither_commands_nor_secrets_of_this_machine_are_used_unless_it_is_allowed() {
    let rialto = admin();
    let command = json!({ "kind": "function", "name": "up", "command": ["tr", "a-z", "A-Z"] });
    let secret = json!({ "kind": "mcp", "name": "spy", "url": "https://spy.example.com", "headers": { "X-It": "${HOME}" } });
    let file = json!({ "kind": "function", "name": "f", "url": "https://f.example.com", "input_schema": "/etc/passwd" });
    let server = rialto.serve(&[]);
    for (body, status) in [(&command, 403), (&secret, 403), (&file, 400)] {
        let refused = add(&server, body);
        assert_eq!(refused.status, status, "{body} {refused:?}");
    }
    let private =
        add(&server, &json!({ "kind": "mcp", "name": "near", "url": "http://127.0.0.1:18999/mcp" }));
    assert!(private.status >= 400 && private.body.contains("127.0.0.1"), "{private:?}");
    let elsewhere =
        json!({ "kind": "function", "name": "up", "url": "https://a.example.com", "org": "other" });
    assert_eq!(add(&server, &elsewhere).status, 400);
    drop(server);
    let rialto = admin().with("RIALTO_SERVER__ALLOW_COMMANDS_OVER_API", "true");
    let server = rialto.serve(&[]);
    assert_eq!(add(&server, &command).status, 201);
    let bearer = [("Authorization", "Bearer owners-token-of-at-least-32-characters")];
    let called = http::post(&format!("{}/call/up", server.url), &bearer, r#"{"a":"b"}"#);
    assert_eq!(called.body, r#"{"A":"B"}"#);
}
