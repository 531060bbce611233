//! Clients hear that the list of tools has changed, however they are connected, and nobody is kept who is gone.

use std::time::{Duration, Instant};

use rialto_testkit::agents::{card, skill};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::{
    house::{House, Plan, within},
    lines::{Client, modern},
    web::Web,
};

const CHANGED: &str = "notifications/tools/list_changed";

async fn change(house: &House) {
    house.meet(card("News", vec![skill("headlines")])).await;
}

#[tokio::test]
async fn an_older_client_on_stdio_hears_of_it() {
    let house = Plan::default().build().await;
    let mut client = Client::initialized(&house, "2025-06-18", "test").await;
    client.ask("ping", json!({})).await;
    change(&house).await;
    assert_eq!(client.hear().await["method"], CHANGED);
    house.part_from("News").await;
    assert_eq!(client.hear().await["method"], CHANGED);
}

#[tokio::test]
async fn whoever_may_see_something_else_by_other_policies_hears_of_it() {
    let house = Plan::default().build().await;
    let mut old = Client::initialized(&house, "2025-06-18", "test").await;
    old.ask("tools/list", json!({})).await;
    let web = Web::new(&house);
    let wanted = json!({ "notifications": { "toolsListChanged": true } });
    let mut open = web.open("subscriptions/listen", wanted, json!({})).await;
    open.hear().await;
    house.rule(r#"forbid (principal, action == Action::"a2a_discover", resource);"#).await;
    assert_eq!(old.hear().await["method"], CHANGED);
    assert_eq!(open.hear().await["method"], CHANGED);
}

#[tokio::test]
async fn nobody_hears_of_another_project_or_of_policies_that_are_read_again_as_they_were() {
    let house = Plan::default().build().await;
    let mut old = Client::initialized(&house, "2025-06-18", "test").await;
    old.ask("tools/list", json!({})).await;
    house.meet_elsewhere(card("Theirs", vec![skill("secret")])).await;
    house.rule("").await;
    // The answer comes first: there was nothing to hear before it.
    let id = old.begin("ping", json!({})).await;
    assert_eq!(old.hear().await["id"], id);
    change(&house).await;
    assert_eq!(old.hear().await["method"], CHANGED);
}

#[tokio::test]
async fn a_newer_client_on_stdio_hears_of_it_when_it_listens() {
    let house = Plan::default().build().await;
    let mut client = Client::connect(&house);
    let wanted = json!({ "toolsListChanged": true, "promptsListChanged": true });
    let id = client
        .begin("subscriptions/listen", json!({ "notifications": wanted, "_meta": modern("test", json!({})) }))
        .await;
    let heard = client.hear().await;
    assert_eq!(heard["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(heard["params"]["notifications"], json!({ "toolsListChanged": true }));
    change(&house).await;
    let heard = client.hear().await;
    assert_eq!(heard["method"], CHANGED);
    assert_eq!(heard["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], id);
}

#[tokio::test]
async fn a_listening_client_that_hangs_up_is_let_go_at_once() {
    let house = Plan::default().build().await;
    let mut client = Client::connect(&house);
    let wanted = json!({ "notifications": { "toolsListChanged": true }, "_meta": modern("test", json!({})) });
    client.begin("subscriptions/listen", wanted).await;
    client.hear().await;
    let begun = Instant::now();
    client.hang_up().await.unwrap();
    assert!(begun.elapsed() < Duration::from_secs(2));
}

#[tokio::test]
async fn an_older_client_over_http_hears_of_it_on_its_stream() {
    let house = Plan::default().build().await;
    let mut web = Web::new(&house);
    web.initialize("2025-06-18").await;
    web.ask_legacy("tools/list", json!({})).await;
    let mut open = web.listen().await;
    change(&house).await;
    assert_eq!(open.hear().await["method"], CHANGED);
}

#[tokio::test]
async fn a_newer_client_over_http_hears_of_it_on_its_request() {
    let house = Plan::default().build().await;
    let web = Web::new(&house);
    let wanted = json!({ "notifications": { "toolsListChanged": true } });
    let mut open = web.open("subscriptions/listen", wanted, json!({})).await;
    assert_eq!(open.hear().await["method"], "notifications/subscriptions/acknowledged");
    change(&house).await;
    assert_eq!(open.hear().await["method"], CHANGED);
}

#[tokio::test]
async fn streams_end_when_the_server_stops() {
    let house = Plan::default().build().await;
    let mut web = Web::new(&house);
    web.initialize("2025-06-18").await;
    let open = web.listen().await;
    let wanted = json!({ "notifications": { "toolsListChanged": true } });
    let mut listening = web.open("subscriptions/listen", wanted, json!({})).await;
    listening.hear().await;
    house.stop.cancel();
    assert!(open.ends().await);
    assert_eq!(listening.hear().await["result"]["resultType"], "complete");
}

#[tokio::test]
async fn nothing_is_left_of_clients_that_are_gone() {
    let house = Plan::default().build().await;
    let metrics = tokio::runtime::Handle::current().metrics();
    let before = metrics.num_alive_tasks();
    let web = Web::new(&house);
    for _ in 0..10 {
        let wanted = json!({ "notifications": { "toolsListChanged": true } });
        let mut open = web.open("subscriptions/listen", wanted, json!({})).await;
        open.hear().await;
        drop(open);
        Client::initialized(&house, "2025-06-18", "test").await.hang_up().await.unwrap();
    }
    within(async {
        // The HTTP server has three tasks of its own, for changes of lists, tokens that end and messages from other nodes.
        while metrics.num_alive_tasks() > before + 3 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_client_is_not_told_of_changes_that_its_first_list_has_already() {
    let mut house = Plan::default().build().await;
    let complete = CancellationToken::new();
    house.door = house.door.clone().complete_after(complete.clone());
    let mut client = Client::initialized(&house, "2025-06-18", "test").await;
    client.ask("ping", json!({})).await;
    change(&house).await;
    complete.cancel();
    let listed = client.ask("tools/list", json!({})).await;
    assert!(listed["result"]["tools"].to_string().contains("news.headlines"));
    // The answer comes first: there was nothing to hear before it.
    let id = client.begin("ping", json!({})).await;
    assert_eq!(client.hear().await["id"], id);
    house.part_from("News").await;
    assert_eq!(client.hear().await["method"], CHANGED);
}
