//! The console's API and pages of the whole program.

use serde_json::{Value, json};

use crate::harness::{
    agent::SampleAgent,
    http::{self, HttpAnswer},
    rialto::Rialto,
    server::ServerProcess,
};

const HTML: (&str, &str) = ("Accept", "text/html");

fn owner() -> Rialto {
    Rialto::fresh().with("RIALTO_TOKEN", "owners-token-of-at-least-32-characters")
}

fn ask(server: &ServerProcess, method: &str, path: &str, body: &str) -> HttpAnswer {
    let (url, bearer) = (
        format!("{}{path}", server.url),
        [("Authorization", "Bearer owners-token-of-at-least-32-characters")],
    );
    match method {
        "GET" => http::get_with(&url, None, &bearer),
        "DELETE" => http::delete(&url, &bearer),
        "PUT" => http::put(&url, &bearer, body),
        _ => http::post(&url, &bearer, body),
    }
}

#[test]
fn every_route_of_the_document_answers() {
    let rialto = owner();
    let server = rialto.serve(&[]);
    let document: Value =
        serde_json::from_str(&ask(&server, "GET", "/api/v1/openapi.json", "").body).unwrap();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for method in methods.as_object().unwrap().keys().filter(|method| *method != "parameters") {
            let path = format!(
                "/api/v1{}",
                path.replace("{key}", "x")
                    .replace("{id}", "x")
                    .replace("{name}", "x")
                    .replace("{org}", "x")
                    .replace("{project}", "x")
            );
            if path == "/api/v1/events" {
                continue;
            }
            let answer = ask(&server, &method.to_uppercase(), &path, "{}");
            assert_ne!(answer.status, 405, "{method} {path} {answer:?}");
            let is_told = answer.status != 404
                || answer.body.contains("there is no")
                || answer.body.contains("no agent")
                || answer.body.contains("no project")
                || answer.body.contains("nothing is deployed");
            assert!(is_told && answer.status < 500, "{method} {path} {answer:?}");
        }
    }
}

#[test]
fn an_agent_of_this_machine_is_registered_over_the_network_only_where_that_is_allowed() {
    let desk = SampleAgent::named("Desk");
    let body = json!({ "url": desk.url, "trust": "trusted" }).to_string();
    let rialto = owner();
    let ann = rialto.json(&["tokens", "create", "ann", "--scope", "admin", "--json"]);
    let ann = format!("Bearer {}", ann["token"].as_str().unwrap());
    rialto.cli(&["policy", "add", "allow-admin", "all", "--caller", "ann"]).ok();
    let by_ann = |server: &ServerProcess| {
        http::post(&format!("{}/api/v1/agents", server.url), &[("Authorization", ann.as_str())], &body)
    };
    let server = rialto.serve(&[]);
    let refused = by_ann(&server);
    assert!(refused.status == 403 && refused.body.contains("allow_private_over_api"), "{refused:?}");
    assert_eq!(desk.connections(), 0, "nobody was called");
    // It is the owner's own machine.
    assert_eq!(ask(&server, "POST", "/api/v1/agents", &body).status, 201);
    assert_eq!(ask(&server, "DELETE", "/api/v1/agents/desk", "").status, 204);
    drop(server);
    let rialto = rialto.with("RIALTO_SERVER__ALLOW_PRIVATE_OVER_API", "true");
    let server = rialto.serve(&[]);
    let made = by_ann(&server);
    assert_eq!(made.status, 201, "{made:?}");
    let listed = || ask(&server, "GET", "/call/openapi.json", "").body.contains("desk.echo");
    assert!(listed());
    assert_eq!(ask(&server, "DELETE", "/api/v1/agents/desk", "").status, 204);
    assert!(!listed(), "it is gone from the very next list");
}

#[test]
fn a_policy_saved_over_the_network_is_a_file_that_others_read() {
    let rialto = owner();
    let server = rialto.serve(&[]);
    let text = r#"@id("mine") permit (principal, action == Action::"a2a_invoke", resource is Skill);"#;
    let kept = ask(&server, "PUT", "/api/v1/policies/mine", &json!({ "text": text }).to_string());
    assert_eq!(kept.status, 200, "{kept:?}");
    assert_eq!(std::fs::read_to_string(rialto.data().join("policies/default/mine.cedar")).unwrap(), text);
    let shown: Value =
        serde_json::from_str(&ask(&server, "GET", "/api/v1/policies/mine.cedar", "").body).unwrap();
    assert_eq!(shown["rules"][0]["name"], "mine");
    let gone = ask(&server, "DELETE", "/api/v1/policies/mine.cedar", "");
    assert!(gone.status == 200 && gone.body.contains("mine.cedar"), "{gone:?}");
    let listed = rialto.cli(&["policy", "list", "--json"]).ok();
    assert!(!listed.out.contains("\"mine\""), "{listed:?}");
}

#[test]
fn a_browser_signs_in_once_and_another_process_knows_it() {
    let rialto = owner();
    let server = rialto.serve(&[]);
    let origin = server.url.clone();
    let form = [("Origin", origin.as_str()), ("Content-Type", "application/x-www-form-urlencoded"), HTML];
    let signed = http::post(
        &format!("{}/factory/sign-in", server.url),
        &form,
        "token=owners-token-of-at-least-32-characters&next=/factory/agents",
    );
    assert_eq!(signed.status, 303, "{signed:?}");
    let cookie = signed.cookie.unwrap();
    let cookie = cookie.as_str();
    assert!(!cookie.contains("owners-token-of-at-least-32-characters"), "the token is sealed: {cookie}");
    let look = |server: &ServerProcess| {
        let seen = http::get_with(&format!("{}/factory", server.url), None, &[HTML, ("Cookie", cookie)]);
        seen.status
    };
    assert_eq!(look(&server), 200);
    let other = rialto.serve(&[]);
    assert_eq!(look(&other), 200, "the key is the store's");
    let middle = cookie.len() / 2;
    let other_letter = if &cookie[middle..=middle] == "A" { "B" } else { "A" };
    let bent = format!("{}{other_letter}{}", &cookie[..middle], &cookie[middle + 1..]);
    let refused = http::get_with(&format!("{}/factory", server.url), None, &[HTML, ("Cookie", &bent)]);
    assert_eq!(refused.status, 303);
    assert_eq!(
        http::post(&format!("{}/mcp", server.url), &[("Cookie", cookie)], "{}").status,
        401,
        "no door of programs takes it"
    );
}

#[test]
fn pages_of_another_project_are_below_its_path() {
    let rialto = owner();
    let server = rialto.serve(&["--allow-no-auth"]);
    let page = http::get_with(&format!("{}/acme/web/factory/agents", server.url), None, &[HTML]);
    assert_eq!(page.status, 200, "{page:?}");
    assert!(page.body.contains("href=\"/acme/web/factory/tasks\""), "{}", page.body);
    let root = http::get_with(&format!("{}/", server.url), None, &[HTML]);
    assert!(root.status == 303 && root.head.contains("/factory"), "{root:?}");
    let a2a = http::post(&format!("{}/", server.url), &[], r#"{"jsonrpc":"2.0","id":1,"method":"x"}"#);
    assert!(a2a.body.contains("jsonrpc"), "the root is A2A's for those who post: {a2a:?}");
}
