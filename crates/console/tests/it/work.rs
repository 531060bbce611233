//! `/api/v1` for work that names nobody, workflows, tools and guardrails: what goes over the wire.

use rialto_model::{agent::AgentTrust, message::Part};
use rialto_testkit::{
    agents,
    peer::{ScriptedPeer, finished_with},
};
use serde_json::{Value, json};

use crate::house::{ANN, BOB, House};

const FLOW: &str = "name: two\nstatus: active\nnodes: { one: { type: tool, tool: desk.ask } }\n";

async fn house() -> House {
    let house = House::new(ScriptedPeer::telling(finished_with(vec![Part::text("well done")]))).await;
    let card = agents::card("Desk", vec![agents::skill("ask")]);
    house.register("https://desk.example.com", card, AgentTrust::Trusted).await;
    house
}

async fn get(house: &House, token: &str, path: &str) -> Value {
    let answer = house.ask(token, "GET", path, "").await;
    assert_eq!(answer.status, 200, "{path} {answer:?}");
    answer.json()
}

/// All that a list has, read page by page, and how many pages that took.
async fn pages(house: &House, token: &str, path: &str, rows: &str, cursor: &str) -> (Vec<Value>, usize) {
    let (mut all, mut at, mut count) = (Vec::new(), String::new(), 0);
    loop {
        let page = get(house, token, &format!("{path}?limit=2{at}")).await;
        all.extend(page[rows].as_array().unwrap().iter().map(|row| row["id"].clone()));
        count += 1;
        match page["next"].as_str() {
            Some(next) => at = format!("&{cursor}={next}"),
            None => return (all, count),
        }
    }
}

#[tokio::test]
async fn work_is_given_away_and_read_back_page_by_page() {
    let house = house().await;
    let work = r#"{"requiredSkills":["ask"],"workType":"qa","description":"test it"}"#;
    for token in [ANN, BOB, BOB, BOB, BOB, BOB] {
        let done = house.ask(token, "POST", "/api/v1/dispatch", work).await;
        assert_eq!((done.status, &done.json()["agent"]), (200, &json!("desk")), "{done:?}");
    }
    for cursor in ["cursor", "before"] {
        let (all, count) = pages(&house, BOB, "/api/v1/dispatches", "dispatches", cursor).await;
        assert_eq!((all.len(), count), (5, 3), "his own");
    }
    assert_eq!(
        get(&house, ANN, "/api/v1/dispatches?workType=qa").await["dispatches"].as_array().unwrap().len(),
        6
    );
    let refused =
        house.ask(BOB, "POST", "/api/v1/dispatch", r#"{"workType":"gardening","description":"roses"}"#).await;
    assert_eq!((refused.status, refused.header("content-type")), (404, "application/problem+json"));
    let wrong = house.ask(BOB, "GET", "/api/v1/dispatches?befor=x", "").await;
    assert_eq!(wrong.status, 400);
    assert!(wrong.json()["detail"].as_str().unwrap().contains("workType, limit, cursor"), "{wrong:?}");
}

#[tokio::test]
async fn workflows_are_kept_run_and_read_back() {
    let house = house().await;
    assert_eq!(house.ask(BOB, "POST", "/api/v1/workflows", FLOW).await.status, 403);
    let kept = house.ask(ANN, "POST", "/api/v1/workflows", FLOW).await.json();
    assert_eq!((&kept["name"], &kept["version"], &kept["by"]), (&json!("two"), &json!(1), &json!("ann")));
    let changed = format!("# again\n{FLOW}");
    house.ask(ANN, "POST", "/api/v1/workflows", &changed).await;
    let shown = get(&house, BOB, "/api/v1/workflows/two").await;
    assert_eq!((&shown["text"], &shown["version"]), (&json!(changed), &json!(2)));
    assert_eq!(get(&house, BOB, "/api/v1/workflows/two?version=1").await["text"], FLOW);
    let first = get(&house, BOB, "/api/v1/workflows/two/versions?limit=1").await;
    assert_eq!((&first["versions"][0]["version"], &first["next"]), (&json!(2), &json!(2)));
    let last = get(&house, BOB, "/api/v1/workflows/two/versions?cursor=2").await;
    assert_eq!((&last["versions"][0]["version"], &last["next"]), (&json!(1), &Value::Null));
    for _ in 0..3 {
        let ran = house.ask(BOB, "POST", "/api/v1/workflows/two/runs", "").await;
        assert_eq!((ran.status, &ran.json()["state"]), (200, &json!("completed")), "{ran:?}");
    }
    let inline =
        json!({ "workflow": "name: once\nnodes: { a: { type: tool, tool: desk.ask } }\n" }).to_string();
    let ran = house.ask(ANN, "POST", "/api/v1/runs?timeoutMs=60000", &inline).await;
    assert_eq!(ran.json()["state"], "completed", "{ran:?}");
    let (all, count) = pages(&house, BOB, "/api/v1/runs", "runs", "cursor").await;
    assert_eq!((all.len(), count), (3, 2), "his own");
    assert_eq!(pages(&house, ANN, "/api/v1/runs", "runs", "before").await.0.len(), 4, "everybody's");
    assert_eq!(get(&house, ANN, "/api/v1/runs?own=true").await["runs"].as_array().unwrap().len(), 1);
    assert_eq!(
        get(&house, ANN, "/api/v1/workflows/two/runs?state=completed").await["runs"]
            .as_array()
            .unwrap()
            .len(),
        3
    );
    let record = get(&house, BOB, &format!("/api/v1/runs/{}", all[0].as_str().unwrap())).await;
    assert_eq!(record["run"]["state"], "completed");
    let over = house.ask(BOB, "POST", &format!("/api/v1/runs/{}/resume", all[0].as_str().unwrap()), "").await;
    assert_eq!((over.status, over.header("content-type")), (409, "application/problem+json"), "{over:?}");
    let set = house.ask(ANN, "POST", "/api/v1/workflows/two/status", r#"{"status":"archived"}"#).await;
    assert_eq!(set.json()["status"], "archived");
    assert_eq!(
        house.ask(ANN, "DELETE", "/api/v1/workflows/two", "").await.json(),
        json!({ "removed": "two" })
    );
    assert_eq!(get(&house, ANN, "/api/v1/workflows?kind=workflow").await, json!([]));
}

#[tokio::test]
async fn a_server_is_deployed_shown_by_its_tools_and_taken_back() {
    let house = house().await;
    let url = "https://tools.example.com/mcp";
    house.discovery.serve("mcp:near", agents::card("near", vec![agents::skill("look")]));
    let refused = house.ask(ANN, "POST", "/api/v1/tools", r#"{"name": "near", "url": "run:true"}"#).await;
    assert_eq!(refused.status, 403, "{refused:?}");
    assert!(refused.json()["detail"].as_str().unwrap().contains("allow_commands_over_api"), "{refused:?}");
    let made =
        house.ask(ANN, "POST", "/api/v1/tools", &format!(r#"{{"name": "near", "url": "{url}"}}"#)).await;
    assert_eq!(made.status, 201, "{made:?}");
    let mut listed = get(&house, ANN, "/api/v1/tools").await;
    listed[0]["id"].take();
    insta::assert_json_snapshot!(listed);
    let name = made.json()["tools"][0]["name"].as_str().unwrap().to_owned();
    for key in ["near", &name] {
        assert_eq!(get(&house, ANN, &format!("/api/v1/tools/{key}")).await["name"], "near");
    }
    assert_eq!(house.ask(BOB, "GET", "/api/v1/tools/near", "").await.status, 403);
    assert_eq!(house.ask(ANN, "DELETE", "/api/v1/tools/near", "").await.status, 204);
    let gone = house.ask(ANN, "DELETE", "/api/v1/tools/near", "").await;
    assert_eq!((gone.status, gone.header("content-type")), (404, "application/problem+json"));
}

#[tokio::test]
async fn guardrails_are_tried_out_by_name_or_as_they_are_given() {
    let house = house().await;
    let test = async |body: Value| {
        let answer = house.ask(ANN, "POST", "/api/v1/guardrails/test", &body.to_string()).await;
        assert_eq!(answer.status, 200, "{body} {answer:?}");
        answer.json()
    };
    let text = "mail ann@example.com";
    let in_force = test(json!({ "text": text })).await;
    assert_eq!((&in_force["verdict"], &in_force["guardrails"]), (&json!("pass"), &json!([])));
    let usual = test(json!({ "text": text, "orUsual": true })).await;
    assert_eq!((&usual["verdict"], &usual["guardrails"]), (&json!("block"), &Value::Null));
    insta::assert_json_snapshot!(test(json!({ "text": text, "checks": ["pii"], "action": "redact" })).await);
    let own = json!({ "action": "warn", "checks": [{ "type": "pii" }] });
    assert_eq!(test(json!({ "data": { "to": text }, "guardrail": own })).await["verdict"], "warn");
    for wrong in [json!({}), json!({ "text": "a", "data": {} }), json!({ "text": "a", "checks": ["all"] })] {
        let refused = house.ask(ANN, "POST", "/api/v1/guardrails/test", &wrong.to_string()).await;
        assert_eq!(
            (refused.status, refused.header("content-type")),
            (400, "application/problem+json"),
            "{wrong}"
        );
    }
}

#[tokio::test]
async fn webhooks_are_added_tested_and_removed_by_whoever_may_read_the_trail() {
    let house = house().await;
    let add = async |body: Value| house.ask(ANN, "POST", "/api/v1/webhooks", &body.to_string()).await;
    let made =
        add(json!({ "url": "https://good.example.com/hook?key=hunter2", "events": ["post-verb"] })).await;
    assert_eq!(made.status, 201, "{made:?}");
    let id = made.json()["id"].as_str().unwrap().to_owned();
    assert_eq!(made.json()["secret"], "whsec_made");
    let listed = house.ask(ANN, "GET", "/api/v1/webhooks", "").await;
    let row = &listed.json()["webhooks"][0];
    assert_eq!(
        (&row["url"], &row["events"]),
        (&json!("https://good.example.com/hook?…"), &json!(["post-verb"]))
    );
    assert!(!listed.body.contains("hunter2") && !listed.body.contains("whsec"), "{listed:?}");
    for (what, status) in [("test", 200), ("retry", 200)] {
        let done = house.ask(ANN, "POST", &format!("/api/v1/webhooks/{id}/{what}"), "").await;
        assert_eq!(done.status, status, "{done:?}");
    }
    let bad =
        add(json!({ "url": "https://bad.example.com" })).await.json()["id"].as_str().unwrap().to_owned();
    assert_eq!(house.ask(ANN, "POST", &format!("/api/v1/webhooks/{bad}/test"), "").await.status, 502);
    for (body, status) in [
        (json!({ "url": "ftp://a.example.com" }), 400),
        (json!({ "url": "https://ann:pw@a.example.com" }), 400),
        (json!({ "url": "https://a.example.com", "events": ["all"] }), 400),
        (json!({ "url": "https://a.example.com", "org": "acme" }), 403),
        (json!({ "url": "https://a.example.com", "secretEnv": "KEY" }), 403),
    ] {
        assert_eq!(add(body.clone()).await.status, status, "{body}");
    }
    assert_eq!(house.ask(ANN, "DELETE", &format!("/api/v1/webhooks/{id}"), "").await.status, 200);
    assert_eq!(house.ask(ANN, "DELETE", &format!("/api/v1/webhooks/{id}"), "").await.status, 404);
}

#[tokio::test]
async fn secrets_are_set_and_never_read_back_and_only_where_the_server_lets_them() {
    let closed = house().await;
    for (method, path) in [("GET", ""), ("PUT", "/desk"), ("DELETE", "/desk")] {
        let refused =
            closed.ask(ANN, method, &format!("/api/v1/secrets{path}"), r#"{"value":"hunter2"}"#).await;
        assert_eq!(refused.status, 403, "{refused:?}");
        assert!(
            refused.json()["detail"].as_str().unwrap().contains("allow_commands_over_api"),
            "{refused:?}"
        );
    }
    let house = House::with_policies(ScriptedPeer::echo(), "// machine-secrets").await;
    let put =
        async |name: &str, body: &str| house.ask(ANN, "PUT", &format!("/api/v1/secrets/{name}"), body).await;
    let kept = put("desk", r#"{"value":"hunter2"}"#).await;
    assert_eq!((kept.status, kept.json()), (200, json!({ "name": "desk" })));
    let listed = house.ask(ANN, "GET", "/api/v1/secrets", "").await;
    assert_eq!(listed.json()["secrets"][0]["name"], "desk");
    assert!(!listed.body.contains("hunter2"));
    assert_eq!(
        put("held:1", r#"{"value":"x"}"#).await.status,
        400,
        "what waits for approval lies beside them"
    );
    assert_eq!(put("desk", r#"{"value":""}"#).await.status, 400);
    assert_eq!(house.ask(BOB, "GET", "/api/v1/secrets", "").await.status, 403);
    let gone = house.ask(ANN, "DELETE", "/api/v1/secrets/desk", "").await;
    assert_eq!(gone.json(), json!({ "name": "desk", "usedBy": [] }));
    assert_eq!(house.ask(ANN, "DELETE", "/api/v1/secrets/held:1", "").await.status, 404);
}
