//! Routed work, from the command line and over plain HTTP.

use serde_json::{Value, json};

use crate::harness::{
    agent::SampleAgent,
    http::{self, HttpAnswer},
    rialto::Rialto,
    server::ServerProcess,
};

/// An agent whose skill `echo` is tagged with these.
fn tagged(name: &str, tags: &[&str]) -> SampleAgent {
    let agent = SampleAgent::named(name);
    agent.change_card(|card| card["skills"][0]["tags"] = json!(tags));
    agent
}

fn post(server: &ServerProcess, path: &str, body: &Value) -> HttpAnswer {
    let bearer =
        format!("Bearer {}", server.token.as_deref().unwrap_or("owners-token-of-at-least-32-characters"));
    http::post(&format!("{}{path}", server.url), &[("Authorization", &bearer)], &body.to_string())
}

fn get(server: &ServerProcess, path: &str) -> Value {
    let bearer =
        format!("Bearer {}", server.token.as_deref().unwrap_or("owners-token-of-at-least-32-characters"));
    let answer = http::get_with(&format!("{}{path}", server.url), None, &[("Authorization", &bearer)]);
    assert_eq!(answer.status, 200, "{answer:?}");
    serde_json::from_str(&answer.body).unwrap()
}

#[test]
fn work_is_dispatched_explained_and_read_back() {
    let rialto = Rialto::fresh();
    let (anna, berta) = (tagged("Anna", &["qa"]), tagged("Berta", &["qa", "typescript"]));
    rialto.trust(&anna.url);
    rialto.trust(&berta.url);

    let said = rialto.cli(&["dispatch", "--work-type", "qa", "--input", r#"{"a":1}"#, "test it"]).ok();
    assert_eq!(serde_json::from_str::<Value>(&said.out).unwrap(), json!({ "a": 1 }));
    assert!(said.err.contains("Done by") && said.err.contains("rialto dispatches dsp_"), "{}", said.err);
    let done =
        rialto.json(&["dispatch", "--skills", "typescript,echo", "--work-type", "qa", "test it", "--json"]);
    assert_eq!(done["task"]["state"], "completed");
    assert!(berta.heard().last().unwrap().contains("test it"), "only she knows it");

    let all = rialto.json(&["dispatches", "--json"]);
    assert_eq!((all.as_array().unwrap().len(), &all[0]["id"]), (2, &done["dispatchId"]), "newest first");
    let task = done["task"]["taskId"].as_str().unwrap();
    let one = rialto.json(&["dispatches", task, "--json"]);
    assert_eq!(one, all[0]);
    assert_eq!(
        (&one["candidates"][0]["agent"], &one["candidates"][0]["verdict"]),
        (&json!("berta"), &json!("chosen"))
    );
    assert_eq!(one["attempts"][0]["outcome"], "completed");
    let shown = rialto.cli(&["dispatches", task]).ok().out;
    assert!(shown.contains("berta") && shown.contains("Beta(") && shown.contains("completed"), "{shown}");
    let listed = rialto.cli(&["dispatches", "--limit", "1"]).ok().out;
    assert_eq!(listed.lines().count(), 2, "{listed}");
    rialto.cli(&["dispatches", "dsp_none"]).exit(4);

    let explained = rialto.json(&["route", "explain", "--work-type", "qa", "test it", "--json"]);
    assert_eq!(explained["candidates"].as_array().unwrap().len(), 2);
    let berta =
        explained["candidates"].as_array().unwrap().iter().find(|one| one["agent"] == "berta").unwrap();
    assert!(berta["posterior"]["observed"].as_u64().unwrap() >= 1, "{explained}");
    let table =
        rialto.cli(&["route", "explain", "--work-type", "qa", "--skills", "typescript", "test it"]).ok().out;
    assert!(table.contains("VERDICT") && table.contains("chosen") && !table.contains("anna"), "{table}");
    assert_eq!(rialto.json(&["dispatches", "--json"]).as_array().unwrap().len(), 2, "an explanation is none");
}

#[test]
fn nobody_left_exits_with_the_reason() {
    let rialto = Rialto::fresh();
    let anna = tagged("Anna", &["qa"]);
    rialto.cli(&["dispatch", "--work-type", "qa", "x"]).exit(4);
    rialto.cli(&["agents", "add", &anna.url]).ok();
    let said = rialto.cli(&["dispatch", "--work-type", "qa", "x"]).exit(3);
    assert!(said.err.contains("anna: policy does not let local call it"), "{}", said.err);
    rialto.cli(&["dispatch"]).exit(2);
    assert_eq!(anna.heard(), Vec::<String>::new());
    assert_eq!(rialto.cli(&["dispatches"]).ok().out, "No routing decisions.\n");
}

#[test]
fn work_is_dispatched_over_http_and_everybody_reads_back_its_own() {
    let rialto = Rialto::fresh().with("RIALTO_TOKEN", "owners-token-of-at-least-32-characters");
    let anna = tagged("Anna", &["qa"]);
    rialto.trust(&anna.url);
    let other = rialto.json(&["tokens", "create", "bob", "--json"])["token"].as_str().unwrap().to_owned();
    let server = rialto.serve(&[]);
    let work = json!({ "workType": "qa", "description": "test it", "message": { "n": 1 } });
    let answer = post(&server, "/api/v1/dispatch", &work);
    assert_eq!(answer.status, 200, "{answer:?}");
    let done: Value = serde_json::from_str(&answer.body).unwrap();
    assert_eq!((&done["agent"], &done["task"]["state"]), (&json!("anna"), &json!("completed")));

    let page = get(&server, "/api/v1/dispatches?limit=5&workType=qa");
    assert_eq!(page["dispatches"][0]["id"], done["dispatchId"]);
    assert_eq!(page["dispatches"][0]["attempts"][0]["outcome"], "completed");
    let id = done["dispatchId"].as_str().unwrap();
    assert_eq!(get(&server, &format!("/api/v1/dispatches/{id}"))["candidates"][0]["agent"], "anna");
    let older = get(&server, &format!("/api/v1/dispatches?before={id}"));
    assert_eq!(older["dispatches"], json!([]));
    let resolved = post(&server, "/api/v1/resolve", &json!({ "requiredSkills": ["echo"] }));
    assert!(resolved.status == 200 && resolved.body.contains("capabilityScore"), "{resolved:?}");

    let bob = format!("Bearer {other}");
    let url = format!("{}/api/v1/dispatches", server.url);
    let his = http::get_with(&url, None, &[("Authorization", &bob)]);
    assert_eq!(serde_json::from_str::<Value>(&his.body).unwrap()["dispatches"], json!([]), "only his own");
    assert_eq!(http::get(&url).unwrap().status, 401);
    for (path, body, status) in [
        ("/api/v1/dispatch", json!({ "workType": "gardening", "description": "roses" }), 404),
        ("/api/v1/dispatch", json!({ "worktype": "qa" }), 400),
        ("/api/v1/dispatch", json!({ "workType": "qa" }), 400),
        ("/api/v1/resolve", json!({}), 400),
    ] {
        let refused = post(&server, path, &body);
        assert_eq!(refused.status, status, "{body} {refused:?}");
    }
}

#[test]
fn messages_without_a_skill_are_routed_where_the_org_says_so() {
    let message = |id: &str| {
        let message = json!({ "messageId": id, "role": "user", "kind": "message", "parts": [{ "kind": "text", "text": "can you echo?" }] });
        json!({ "jsonrpc": "2.0", "id": 1, "method": "message/send", "params": { "message": message } })
    };
    for (routed, expected) in [("[]", "error"), (r#"["default"]"#, "result")] {
        let rialto = Rialto::fresh()
            .with("RIALTO_TOKEN", "owners-token-of-at-least-32-characters")
            .with("RIALTO_ROUTING__MESSAGES", routed);
        let (anna, berta) = (tagged("Anna", &["qa"]), tagged("Berta", &["qa"]));
        rialto.trust(&anna.url);
        rialto.trust(&berta.url);
        let server = rialto.serve(&[]);
        let answer = post(&server, "/a2a", &message("m-1"));
        let told: Value = serde_json::from_str(&answer.body).unwrap();
        assert!(told[expected].is_object(), "{routed}: {answer:?}");
        let heard = anna.heard().len() + berta.heard().len();
        assert_eq!(heard, usize::from(expected == "result"));
        if expected == "result" {
            assert_eq!(told["result"]["status"]["state"], "completed", "{told}");
            let records = rialto.json(&["dispatches", "--json"]);
            assert_eq!(records[0]["work"]["description"], "can you echo?", "{records}");
            assert_eq!(records[0]["attempts"][0]["taskId"], told["result"]["id"], "{records}");
        }
    }
}

#[test]
fn another_registry_proposes_agents_and_local_policy_accepts_them() {
    let anna = tagged("Anna", &["qa"]);
    let there = Rialto::fresh();
    there.trust(&anna.url);
    let token = there.json(&["tokens", "create", "bridge", "--json"])["token"].as_str().unwrap().to_owned();
    let server = there.serve(&[]);
    let here = Rialto::fresh()
        .with("RIALTO_MESH__REGISTRY_URL", &server.url)
        .with("RIALTO_MESH__TOKEN", "env:MESH_TOKEN")
        .with("RIALTO_MESH__ALLOW_PRIVATE", "true")
        .with("MESH_TOKEN", &token);
    let dispatch = ["dispatch", "--skills", "echo", "--input", r#"{"a":1}"#, "keep this to yourself"];

    let refused = here.cli(&dispatch).exit(3);
    assert!(
        refused.err.contains("proposed by the mesh") && refused.err.contains("/a2a/agents/anna"),
        "{}",
        refused.err
    );
    assert!(!refused.err.contains(&token));
    assert_eq!(anna.heard(), Vec::<String>::new());
    here.cli(&["policy", "add", "allow-trust", "external"]).ok();
    let done = here.cli(&dispatch).ok();
    assert_eq!(serde_json::from_str::<Value>(&done.out).unwrap(), json!({ "a": 1 }));
    assert_eq!(anna.heard().len(), 1);
    assert_eq!(here.json(&["agents", "list", "--json"]), json!([]), "a proposal is no row of ours");
    let nobody = here.cli(&["dispatch", "--skills", "gardening", "roses"]).exit(4);
    assert!(nobody.err.contains("no agent that you may see fits"), "{}", nobody.err);
    let wrong = here.with("MESH_TOKEN", "wrong");
    let refused = wrong.cli(&dispatch).exit(4);
    assert!(refused.err.contains("could not be asked") && refused.err.contains("401"), "{}", refused.err);
}
