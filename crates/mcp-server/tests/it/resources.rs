//! What is too large for a result is linked there, and read in pieces by whoever the task belongs to.

use futures::{StreamExt, stream};
use insta::assert_json_snapshot;
use rialto_model::{
    call::Caller,
    json::Json,
    message::{Content, Part},
    token_scopes::{TokenScope, TokenScopes},
};
use rialto_testkit::peer::{ScriptedPeer, finished_with};
use serde_json::{Value, json};

use crate::{
    house::{House, Plan, ann, steady},
    lines::Client,
    web::Web,
};

/// A text of 3000 bytes whose characters have two each.
fn long() -> String {
    "ä".repeat(1_500)
}

fn plan(parts: Vec<Part>) -> Plan {
    let script = move |_: &_| stream::iter(finished_with(parts.clone())).boxed();
    let mut plan = Plan::with(ScriptedPeer::with(script));
    (plan.config.inline_limit_kb, plan.config.piece_kb) = (2, 1);
    plan
}

async fn called(house: &House) -> (Web, Value) {
    let web = Web::new(house);
    let answer = web.call("weather.forecast", json!({})).await;
    (web, answer["result"].clone())
}

fn link(result: &Value) -> String {
    let content = result["content"].as_array().unwrap();
    let link = content.iter().find(|block| block["type"] == "resource_link").expect("a link");
    link["uri"].as_str().unwrap().to_owned()
}

async fn read(web: &Web, uri: &str) -> Value {
    web.ask("resources/read", json!({ "uri": uri })).await.only()
}

#[tokio::test]
async fn a_large_result_is_linked_and_read_in_pieces() {
    let house = plan(vec![Part::text(long())]).build().await;
    let (web, result) = called(&house).await;
    assert_json_snapshot!("linked", steady(&result));
    let first = read(&web, &link(&result)).await;
    let (mut text, mut next) = (String::new(), Some(link(&result)));
    while let Some(uri) = next {
        let piece = read(&web, &uri).await["result"].take();
        let words = piece["contents"][0]["text"].as_str().unwrap();
        assert!(words.len() <= 1_024);
        text.push_str(words);
        next = piece["_meta"]["rialto/next"].as_str().map(str::to_owned);
    }
    assert_eq!(text, long());
    let mut first = steady(&first["result"]);
    first["contents"][0]["text"] = json!("[1024 bytes]");
    assert_json_snapshot!("first_piece", first);
}

#[tokio::test]
async fn a_file_is_read_in_pieces_of_its_bytes() {
    // 3000 bytes of zeros.
    let file =
        Part { media_type: Some("application/pdf".into()), ..Part::new(Content::Raw("AAAA".repeat(1_000))) };
    let house = plan(vec![Part::text("here"), file]).build().await;
    let (web, result) = called(&house).await;
    assert_eq!(result["content"][0]["text"], "here");
    let last = read(&web, &format!("{}?offset=2048", link(&result))).await;
    let contents = &last["result"]["contents"][0];
    assert_eq!(
        (&contents["mimeType"], contents["blob"].as_str().unwrap().len()),
        (&json!("application/pdf"), 1_272)
    );
    assert_eq!(last["result"]["_meta"]["rialto/size"], 3_000);
    assert_eq!(last["result"]["_meta"].get("rialto/next"), None);
}

#[tokio::test]
async fn models_read_on_with_get_task() {
    let house = plan(vec![Part::text(long())]).build().await;
    let (web, result) = called(&house).await;
    let id = result["_meta"]["rialto/taskId"].clone();
    let mut text = String::new();
    for offset in [0, 1_024, 2_048] {
        let args = json!({ "task_id": id, "part": "artifacts/0/parts/0", "offset": offset });
        let piece = web.call("get_task", args).await["result"].take();
        text.push_str(piece["content"][0]["text"].as_str().unwrap());
        let words = piece["content"][1]["text"].as_str().unwrap();
        assert_eq!(words.contains(&format!("offset {} reads on", offset + 1_024)), offset < 2_048, "{words}");
        assert_eq!(piece.get("structuredContent"), None);
    }
    assert_eq!(text, long());
    // The whole address does as well.
    let args = json!({ "task_id": id, "part": format!("{}?offset=2048", link(&result)) });
    assert_eq!(web.call("get_task", args).await["result"]["content"][0]["text"].as_str().unwrap().len(), 952);
    let standing = web.call("get_task", json!({ "task_id": id })).await["result"].take();
    assert_eq!(link(&standing), link(&result));
}

#[tokio::test]
async fn what_get_task_cannot_find_it_says() {
    let house = plan(vec![Part::text(long())]).build().await;
    let (web, result) = called(&house).await;
    let id = &result["_meta"]["rialto/taskId"];
    for (args, word) in [
        (json!({ "task_id": id, "part": "artifacts/0/parts/1" }), "has no part"),
        (json!({ "task_id": id, "part": "nonsense" }), "has no part"),
        (json!({ "task_id": id, "part": "rialto://tasks/task_2/artifacts/0/parts/0" }), "has no part"),
        (json!({ "task_id": id, "part": "artifacts/0", "offset": 3_000 }), "it has 3000 bytes"),
        (json!({ "task_id": id, "offset": 3 }), "name the part"),
        (json!({ "task_id": "task_2", "part": "artifacts/0" }), "there is no task"),
    ] {
        let reply = web.ask("tools/call", json!({ "name": "get_task", "arguments": args })).await.only();
        assert_eq!(reply["error"]["code"], -32602, "{reply}");
        assert!(reply["error"]["message"].as_str().unwrap().contains(word), "{reply}");
    }
}

#[tokio::test]
async fn nobody_reads_anothers_and_nobody_learns_that_it_is_there() {
    let house = plan(vec![Part::text(long())]).build().await;
    let (web, result) = called(&house).await;
    let theirs = Web::of(&house, Caller::user("bob"));
    let (uri, none) =
        (link(&result), "rialto://tasks/task_00000000000000000000000000000000/artifacts/0/parts/0");
    let (real, unreal) = (read(&theirs, &uri).await, read(&theirs, none).await);
    assert_eq!(real["error"]["code"], -32602);
    assert_eq!(real["error"]["data"], json!({ "uri": uri }));
    assert_eq!(real.to_string().replace(&uri, "it"), unreal.to_string().replace(none, "it"));
    assert_eq!(theirs.ask("resources/list", json!({})).await.only()["result"]["resources"], json!([]));
    assert_eq!(read(&web, "test://static-text").await["error"]["code"], -32602);
    assert_eq!(read(&web, &uri.replace("parts/0", "parts/1")).await["error"]["code"], -32602);
    assert_eq!(read(&web, &format!("{uri}?offset=3000")).await["error"]["code"], -32602);
}

#[tokio::test]
async fn a_caller_without_the_right_to_call_reads_nothing() {
    let house = plan(vec![Part::text(long())]).build().await;
    let (_, result) = called(&house).await;
    let web = Web::of(&house, Caller { rights: TokenScopes::from_scopes([TokenScope::Discover]), ..ann() });
    for (method, params) in
        [("resources/read", json!({ "uri": link(&result) })), ("resources/list", json!({}))]
    {
        assert_eq!(web.ask(method, params).await.status, 403, "{method}");
    }
}

#[tokio::test]
async fn older_clients_read_on_stdin_and_in_sessions() {
    let house = plan(vec![Part::text(long())]).build().await;
    for version in ["2025-06-18", "2025-11-25"] {
        let mut client = Client::connect(&house);
        let hello = client.initialize(version, "test").await;
        assert_eq!(hello["result"]["capabilities"]["resources"], json!({}));
        let answer = client.ask("tools/call", json!({ "name": "weather.forecast", "arguments": {} })).await;
        let uri = link(&answer["result"]);
        let piece = client.ask("resources/read", json!({ "uri": uri })).await;
        assert_eq!(piece["result"]["contents"][0]["text"], long()[..1_024]);
        assert_eq!(piece["result"]["_meta"]["rialto/next"], format!("{uri}?offset=1024"));
        let missing =
            client.ask("resources/read", json!({ "uri": "rialto://tasks/task_1/artifacts/0" })).await;
        assert_eq!(missing["error"]["code"], -32002);
        let mut web = Web::new(&house);
        web.initialize(version).await;
        let piece = web.ask_legacy("resources/read", json!({ "uri": uri })).await.only();
        assert_eq!(piece["result"]["contents"][0]["text"], long()[..1_024]);
    }
}

#[tokio::test]
async fn what_tasks_made_is_listed_latest_first_and_page_by_page() {
    let data = Part::data(Json::parse(r#"{"n": 1}"#).unwrap());
    let elsewhere = Part::new(Content::Url("https://files.example.com/a".into()));
    let house = plan(vec![data, elsewhere]).build().await;
    let web = Web::new(&house);
    let mut tasks = Vec::new();
    for _ in 0..30 {
        let answer = web.call("weather.forecast", json!({})).await;
        tasks.push(answer["result"]["_meta"]["rialto/taskId"].as_str().unwrap().to_owned());
    }
    let first = web.ask("resources/list", json!({})).await.only()["result"].take();
    assert_json_snapshot!("listed", steady(&first)["resources"][0]);
    let cursor = first["nextCursor"].clone();
    let second = web.ask("resources/list", json!({ "cursor": cursor })).await.only()["result"].take();
    assert_eq!((second.get("nextCursor"), &second["ttlMs"]), (None, &json!(0)));
    let uris = |page: &Value| -> Vec<String> {
        let resources = page["resources"].as_array().unwrap();
        resources.iter().map(|resource| resource["uri"].as_str().unwrap().to_owned()).collect()
    };
    let all: Vec<_> = [uris(&first), uris(&second)].concat();
    tasks.reverse();
    assert_eq!(
        all,
        tasks.iter().map(|id| format!("rialto://tasks/{id}/artifacts/0/parts/0")).collect::<Vec<_>>()
    );
    assert_eq!(read(&web, &all[0]).await["result"]["contents"][0]["text"], r#"{"n": 1}"#);
    let wrong = web.ask("resources/list", json!({ "cursor": "?" })).await.only();
    assert_eq!(wrong["error"]["code"], -32602);
}

#[tokio::test]
async fn addresses_have_templates() {
    let house = Plan::default().build().await;
    let reply = Web::new(&house).ask("resources/templates/list", json!({})).await.only();
    assert_json_snapshot!("templates", steady(&reply["result"]));
}

#[tokio::test]
async fn a_limit_of_zero_puts_everything_in() {
    let mut plan = plan(vec![Part::text(long())]);
    plan.config.inline_limit_kb = 0;
    let (_, result) = called(&plan.build().await).await;
    assert_eq!(result["content"], json!([{ "type": "text", "text": long() }]));
}
