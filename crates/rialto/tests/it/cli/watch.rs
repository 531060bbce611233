//! Monitoring of a server: metrics and readiness.

use serde_json::{Value, json};

use crate::harness::{agent::SampleAgent, http, rialto::Rialto, server::ServerProcess, until};

fn page(server: &ServerProcess, path: &str, token: Option<&str>) -> http::HttpAnswer {
    let bearer = token.map(|token| format!("Bearer {token}"));
    let headers: Vec<_> = bearer.as_deref().map(|bearer| ("Authorization", bearer)).into_iter().collect();
    http::get_with(&format!("{}{path}", server.url), None, &headers)
}

fn metrics(server: &ServerProcess) -> String {
    let answer = page(server, "/metrics", None);
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(answer.head.contains("application/openmetrics-text"), "{}", answer.head);
    assert!(answer.body.ends_with("# EOF\n"), "{}", answer.body);
    answer.body
}

#[test]
fn calls_are_counted_by_agent_skill_and_outcome_and_go_with_the_agent() {
    let (rialto, agent, stranger) =
        (Rialto::fresh(), SampleAgent::named("Desk"), SampleAgent::named("Stranger"));
    rialto.trust(&agent.url);
    rialto.cli(&["agents", "add", &stranger.url]).ok();
    let server = rialto.serve(&["--allow-no-auth"]);
    server.call("desk.echo", &json!({}));
    server.call("desk.echo", &json!({}));
    server.call("desk.fail", &json!({}));
    server.call("desk.greet", &json!({ "name": 7 }));
    server.call("stranger.echo", &json!({})).error(-32003, "AuthorizationError");
    let told = metrics(&server);
    let counts = |told: &str, agent: &str, skill: &str, outcome: &str, count: u32| {
        let labels = format!(
            "org=\"default\",project=\"main\",agent=\"{agent}\",skill=\"{skill}\",outcome=\"{outcome}\""
        );
        told.contains(&format!("rialto_calls_total{{{labels}}} {count}\n"))
    };
    assert!(counts(&told, "desk", "echo", "completed", 2), "{told}");
    assert!(counts(&told, "desk", "fail", "failed", 1), "{told}");
    assert!(counts(&told, "desk", "greet", "invalid", 1), "{told}");
    assert!(counts(&told, "stranger", "echo", "denied", 1), "{told}");
    let of_desk = "{le=\"+Inf\",org=\"default\",project=\"main\",agent=\"desk\"} 4";
    assert!(told.contains(&format!("rialto_call_duration_seconds_bucket{of_desk}")), "{told}");
    assert!(told.contains("rialto_calls_in_flight 0\n"), "{told}");
    assert!(told.contains("rialto_http_requests_total{door=\"mcp\",status=\"2xx\"} 5\n"), "{told}");
    assert!(told.contains("rialto_agents{health="), "{told}");
    for name in ["process_cpu_seconds_total ", "process_resident_memory_bytes ", "rialto_build_info{version="]
    {
        assert!(told.contains(name), "{name} is not in {told}");
    }

    rialto.cli(&["agents", "remove", "desk"]).ok();
    let gone = until("the removed agent's numbers are gone", || {
        let told = metrics(&server);
        (!told.contains("agent=\"desk\"")).then_some(told)
    });
    assert!(counts(&gone, "stranger", "echo", "denied", 1), "{gone}");
}

#[test]
fn refusals_are_counted_by_reason() {
    let server = Rialto::fresh().with("RIALTO_TOKEN", "owners-token-of-at-least-32-characters").serve(&[]);
    server.request("/mcp", "tools/list", json!({}), None);
    server.request("/mcp", "tools/list", json!({}), Some("yours"));
    server.request("/mcp", "tools/list", json!({}), Some("yours"));
    http::post_to(&server.mcp(), "evil.example.com", &[], "{}");
    let told = metrics(&server);
    for (reason, count) in [("no-token", 1), ("bad-token", 2), ("host-not-allowed", 1), ("too-large", 0)] {
        assert!(told.contains(&format!("rialto_refused_total{{reason=\"{reason}\"}} {count}\n")), "{told}");
    }
    assert!(told.contains("rialto_http_requests_total{door=\"mcp\",status=\"4xx\"} 4\n"), "{told}");
}

#[test]
fn a_page_in_a_browser_does_not_get_at_the_numbers() {
    let server = Rialto::fresh().serve(&["--allow-no-auth"]);
    let url = format!("{}/metrics", server.url);
    assert_eq!(http::get_with(&url, Some("evil.example.com"), &[]).status, 421);
    assert_eq!(http::get_with(&url, None, &[("Origin", "https://evil.example.com")]).status, 403);
    assert_eq!(http::get_with(&url, None, &[]).status, 200);
}

#[test]
fn where_others_can_come_the_numbers_need_an_admin_of_the_default_org() {
    let rialto = Rialto::fresh().with("RIALTO_SERVER__PUBLIC_URL", "https://bridge.example.com");
    let token = |args: &[&str]| {
        let args = [&["tokens", "create"], args, &["--json"]].concat();
        rialto.json(&args)["token"].as_str().unwrap().to_owned()
    };
    let (admin, caller) = (token(&["ops", "--scope", "admin"]), token(&["ann"]));
    let tenant = token(&["eve", "--scope", "admin", "--org", "acme"]);
    let server = rialto.serve(&[]);
    assert_eq!(page(&server, "/metrics", None).status, 401);
    assert_eq!(page(&server, "/metrics", Some(&caller)).status, 403);
    assert_eq!(page(&server, "/metrics", Some(&tenant)).status, 403);
    assert_eq!(page(&server, "/metrics", Some(&admin)).status, 200);
    drop(server);
    let open = rialto.with("RIALTO_SERVER__PUBLIC_METRICS", "true").serve(&[]);
    assert_eq!(page(&open, "/metrics", None).status, 200);
}

#[test]
fn a_server_is_ready_until_its_policies_do_not_hold_up() {
    let rialto = Rialto::fresh();
    let server = rialto.serve(&[]);
    let ready = || {
        let answer = page(&server, "/readyz", None);
        (answer.status, serde_json::from_str::<Value>(&answer.body).unwrap())
    };
    assert_eq!(ready(), (200, json!({ "ready": true, "reasons": [] })));
    let file = rialto.data().join("policies/mine.cedar");
    std::fs::write(&file, "permit (principal, action").unwrap();
    let told =
        until("the policies are found wanting", || Some(ready()).filter(|(status, _)| *status == 503)).1;
    assert_eq!((&told["ready"], &told["reasons"][0]["check"]), (&json!(false), &json!("policies")));
    std::fs::remove_file(&file).unwrap();
    until("it is ready again", || Some(ready()).filter(|(status, _)| *status == 200));
}
