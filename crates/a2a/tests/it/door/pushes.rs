//! Who wants to be told of a task elsewhere, and how it is.

use std::sync::Arc;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use futures::{FutureExt, future::BoxFuture};
use http::{HeaderMap, Request, StatusCode};
use parking_lot::Mutex;
use rialto_a2a::server::Config;
use rialto_a2a_codec::card::signature::Signer;
use rialto_http_client::fetch::{Fetch, FetchError, FetchRequest as Fetched, FetchResponse};
use rialto_model::{
    call::{Caller, CallerKind},
    clock::{Clock, Timestamp},
    ids::{Scope, TaskId},
    store::{PushConfigStore, Token, TokenStore},
    token_scopes::TokenScopes,
};
use rialto_store::SqliteStore;
use serde_json::{Value, json};

use super::house::{Client, House, post, said, said_0_3, steady};

/// A receiver that takes what it is brought, but for the first so many.
#[derive(Default)]
struct Receiver {
    refusals: Mutex<usize>,
    got: Mutex<Vec<(HeaderMap, Value)>>,
}

impl Fetch for Receiver {
    fn fetch(&self, request: Fetched) -> BoxFuture<'static, Result<FetchResponse, FetchError>> {
        let mut refusals = self.refusals.lock();
        let status = if *refusals > 0 {
            *refusals -= 1;
            StatusCode::SERVICE_UNAVAILABLE
        } else {
            let body = serde_json::from_slice(&request.body).unwrap();
            self.got.lock().push((request.headers, body));
            StatusCode::OK
        };
        async move { Ok(FetchResponse::fixed(status, "")) }.boxed()
    }
}

impl Receiver {
    /// Brings what there is until so many have come.
    async fn hears(self: &Arc<Self>, house: &House, count: usize) -> Vec<(HeaderMap, Value)> {
        let fetch: Arc<dyn Fetch> = self.clone();
        let pusher = house.door.pusher(house.store.clone(), fetch, house.clock.clone());
        let running = tokio::spawn(pusher.run(house.stop.clone()));
        super::house::within(async {
            while self.got.lock().len() < count {
                tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            }
        })
        .await;
        house.stop.cancel();
        super::house::within(running).await.unwrap();
        self.got.lock().clone()
    }
}

async fn ask(ann: &Client) -> Value {
    ann.tell("ask").await["id"].take()
}

/// Completes a task that waits.
async fn answer(ann: &Client, task: &Value) {
    let mut answer = said("red");
    answer["message"]["taskId"] = task.clone();
    let done = ann.rpc("SendMessage", answer).await;
    assert_eq!(done["result"]["task"]["status"]["state"], "TASK_STATE_COMPLETED", "{done}");
}

#[tokio::test]
async fn configs_are_kept_in_1_0() {
    let house = House::new().await;
    let ann = house.ann();
    let task = ask(&ann).await;
    let config = json!({
        "taskId": task, "id": "c-1", "url": "https://hook.example.com/", "token": "t",
        "authentication": { "scheme": "Bearer", "credentials": "secret" },
    });
    let created = ann.rpc("CreateTaskPushNotificationConfig", config).await;
    let one = json!({ "taskId": task, "id": "c-1" });
    let got = ann.rpc("GetTaskPushNotificationConfig", one.clone()).await;
    assert_eq!(created, got);
    let listed = ann.rpc("ListTaskPushNotificationConfigs", json!({ "taskId": task })).await;
    let deleted = ann.rpc("DeleteTaskPushNotificationConfig", one.clone()).await;
    assert_eq!(deleted, ann.rpc("DeleteTaskPushNotificationConfig", one.clone()).await);
    let gone = ann.rpc("GetTaskPushNotificationConfig", one).await;
    insta::assert_json_snapshot!(steady(&json!([created, listed, deleted, gone])));
}

#[tokio::test]
async fn configs_are_kept_in_0_3_where_one_may_have_no_name() {
    let house = House::new().await;
    let ann = house.ann();
    let task = ask(&ann).await;
    let config = json!({ "taskId": task, "pushNotificationConfig": { "url": "https://hook.example.com/", "token": "t" } });
    let created = ann.rpc("tasks/pushNotificationConfig/set", config.clone()).await;
    // Set again, it is still one.
    assert_eq!(created, ann.rpc("tasks/pushNotificationConfig/set", config).await);
    let got = ann.rpc("tasks/pushNotificationConfig/get", json!({ "id": task })).await;
    assert_eq!(created, got);
    let listed = ann.rpc("tasks/pushNotificationConfig/list", json!({ "id": task })).await;
    let one = json!({ "id": task, "pushNotificationConfigId": "default" });
    let deleted = ann.rpc("tasks/pushNotificationConfig/delete", one).await;
    insta::assert_json_snapshot!(steady(&json!([created, listed, deleted])));
}

#[tokio::test]
async fn configs_are_kept_over_rest() {
    let house = House::new().await;
    let ann = house.ann();
    let task = ask(&ann).await;
    let path = format!("/a2a/tasks/{}/pushNotificationConfigs", task.as_str().unwrap());
    let config = json!({ "id": "c-1", "url": "https://hook.example.com/" }).to_string();
    let created = ann.send(post(&path), config).await;
    assert_eq!(created.status, 200);
    let one = format!("{path}/c-1");
    assert_eq!(ann.send(Request::get(&one), "").await.json(), created.json());
    let listed = ann.send(Request::get(&path), "").await.json();
    assert_eq!(listed["configs"], json!([created.json()]));
    assert!(ann.send(Request::delete(&one), "").await.status.is_success());
    assert_eq!(ann.send(Request::get(&one), "").await.status, 404);
    // 0.3, in the words of its proto file.
    let old = format!("/a2a/v1/tasks/{}/pushNotificationConfigs", task.as_str().unwrap());
    let inner = json!({ "id": "c-2", "url": "https://hook.example.com/" });
    let body = json!({ "config_id": "c-2", "config": { "push_notification_config": inner } });
    let created = ann.send(post(&old), body.to_string()).await;
    assert_eq!(created.status, 200, "{}", created.text);
    insta::assert_json_snapshot!(steady(&created.json()));
}

#[tokio::test]
async fn whoever_asked_with_the_message_is_told_of_each_step() {
    let house = House::new().await;
    let ann = house.ann();
    let mut params = said("ask");
    params["configuration"] = json!({ "taskPushNotificationConfig": {
        "url": "http://127.0.0.1:9/hook", "token": "t-1",
        "authentication": { "scheme": "Bearer", "credentials": "secret" },
    } });
    let task = ann.rpc("SendMessage", params).await["result"]["task"]["id"].take();
    answer(&ann, &task).await;
    let got = Arc::new(Receiver::default()).hears(&house, 3).await;
    let (headers, _) = &got[0];
    assert_eq!(headers["authorization"], "Bearer secret");
    assert_eq!(headers["x-a2a-notification-token"], "t-1");
    assert_eq!(headers["content-type"], "application/a2a+json");
    let bodies: Vec<Value> = got.into_iter().map(|(_, body)| body).collect();
    insta::assert_json_snapshot!(steady(&Value::from(bodies)));
}

#[tokio::test]
async fn a_0_3_client_is_told_whole_tasks() {
    let house = House::new().await;
    let ann = house.ann();
    let mut params = said_0_3("ask");
    params["configuration"] = json!({ "pushNotificationConfig": { "url": "http://127.0.0.1:9/hook" } });
    ann.rpc("message/send", params).await;
    let got = Arc::new(Receiver::default()).hears(&house, 1).await;
    assert_eq!(got[0].0["content-type"], "application/json");
    assert_eq!((&got[0].1["kind"], &got[0].1["status"]["state"]), (&json!("task"), &json!("input-required")));
}

#[tokio::test]
async fn an_address_that_may_not_be_called_is_refused_before_anything_begins() {
    let house = House::with(Config { needs_token: false, ..Config::default() }).await;
    for url in ["http://127.0.0.1/hook", "http://169.254.169.254/", "ftp://example.com", "nowhere", ""] {
        let mut params = said("hello");
        params["configuration"] = json!({ "taskPushNotificationConfig": { "url": url } });
        let refused = house.ann().rpc("SendMessage", params).await;
        assert_eq!(refused["error"]["code"], -32602, "{url}: {refused}");
    }
    assert!(house.peer.calls.lock().is_empty());
    let mut why = Vec::new();
    for url in ["http://127.0.0.1/hook", "http://169.254.169.254/"] {
        let mut params = said("hello");
        params["configuration"] = json!({ "taskPushNotificationConfig": { "url": url } });
        why.push(house.ann().rpc("SendMessage", params).await["error"]["message"].take());
    }
    insta::assert_json_snapshot!(why);
}

/// Our key for cards, which signs what is brought too.
fn signing() -> Config {
    let signer = Signer::from_pem("ours", include_bytes!("../keys/ours.pem")).unwrap();
    Config { needs_token: false, push_private: true, signer: Some(signer), ..Config::default() }
}

/// What a token says.
fn claims(token: &str) -> Value {
    let part = token.split('.').nth(1).unwrap();
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
}

#[tokio::test]
async fn what_is_brought_is_signed_where_there_is_a_key() {
    let house = House::with(signing()).await;
    let receiver = Arc::new(Receiver::default());
    let mut params = said("hello");
    params["configuration"] = json!({ "taskPushNotificationConfig": {
        "url": "http://127.0.0.1:9/hook", "authentication": { "scheme": "Bearer", "credentials": "secret" },
    } });
    house.ann().rpc("SendMessage", params).await;
    let got = receiver.hears(&house, 2).await;
    let tokens: Vec<&str> =
        got.iter().map(|(headers, _)| headers["x-a2a-signature"].to_str().unwrap()).collect();
    assert!(got.iter().all(|(headers, _)| headers["authorization"] == "Bearer secret"));
    let said: Vec<Value> = tokens.iter().map(|token| claims(token)).collect();
    assert_ne!(said[0]["jti"], said[1]["jti"]);
    assert_ne!(said[0]["request_body_sha256"], said[1]["request_body_sha256"]);
    assert_eq!(said[0]["request_body_sha256"].as_str().unwrap().len(), 64);
}

#[tokio::test]
async fn a_0_1_receiver_that_wants_to_see_nothing_else_is_shown_the_signature() {
    let house = House::with(signing()).await;
    let receiver = Arc::new(Receiver::default());
    let params = json!({
        "id": "mine", "message": { "role": "user", "parts": [{ "type": "text", "text": "hello" }] },
        "pushNotification": { "url": "http://127.0.0.1:9/hook" },
    });
    house.ann().rpc("tasks/send", params).await;
    let (headers, _) = receiver.hears(&house, 1).await.remove(0);
    let shown = headers["authorization"].to_str().unwrap();
    assert!(claims(shown.strip_prefix("Bearer ").unwrap())["iat"].is_number(), "{shown}");
    assert!(!headers.contains_key("x-a2a-signature"));
}

/// A token of ann's in the store.
fn token(id: &str) -> Token {
    Token {
        id: id.to_owned(),
        hash: id.repeat(13),
        scope: Scope::default(),
        caller: "ann".into(),
        kind: CallerKind::User,
        rights: TokenScopes::ALL,
        created_at: Timestamp::UNIX_EPOCH,
        expires_at: None,
        revoked_at: None,
        created_by: None,
        session_of: None,
    }
}

/// The names of the configs that ann is shown.
async fn listed(ann: &Client, task: &Value) -> Vec<String> {
    let listed = ann.rpc("ListTaskPushNotificationConfigs", json!({ "taskId": task })).await;
    let configs = listed["result"]["configs"].as_array().cloned().unwrap_or_default();
    configs.iter().map(|config| config["id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn nothing_is_brought_for_a_token_that_was_revoked() {
    let house = House::new().await;
    let ann = |id: &str| house.caller(Caller { token: Some(id.into()), ..Caller::user("ann") });
    let task = ask(&ann("tok_a")).await;
    for id in ["tok_a", "tok_b"] {
        house.store.put_token(&token(id)).await.unwrap();
        let config = json!({ "taskId": task, "id": id, "url": "http://127.0.0.1:9/hook", "token": id });
        let created = ann(id).rpc("CreateTaskPushNotificationConfig", config).await;
        assert_eq!(created["result"]["id"], id, "{created}");
    }
    assert_eq!(listed(&ann("tok_b"), &task).await, ["tok_a", "tok_b"]);
    house.store.revoke_token("tok_a", house.clock.now()).await.unwrap();
    assert_eq!(listed(&ann("tok_b"), &task).await, ["tok_b"]);
    answer(&ann("tok_b"), &task).await;
    let got = Arc::new(Receiver::default()).hears(&house, 2).await;
    let receivers: Vec<&str> =
        got.iter().map(|(headers, _)| headers["x-a2a-notification-token"].to_str().unwrap()).collect();
    assert_eq!(receivers, ["tok_b", "tok_b"]);
    let task = TaskId::from(task.as_str().unwrap());
    assert_eq!(house.store.pushes(&task).await.unwrap().len(), 1, "it is removed, not only left out");
}

/// Revokes a token while the first of several deliveries is under way.
struct Revoking {
    store: Arc<SqliteStore>,
    count: Mutex<usize>,
}

impl Fetch for Revoking {
    fn fetch(&self, _: Fetched) -> BoxFuture<'static, Result<FetchResponse, FetchError>> {
        *self.count.lock() += 1;
        let store = Arc::clone(&self.store);
        async move {
            store.revoke_token("tok_a", Timestamp::UNIX_EPOCH).await.unwrap();
            Ok(FetchResponse::fixed(StatusCode::OK, ""))
        }
        .boxed()
    }
}

#[tokio::test]
async fn deliveries_that_are_due_stop_when_their_token_is_revoked_in_between() {
    let house = House::new().await;
    house.store.put_token(&token("tok_a")).await.unwrap();
    let ann = house.caller(Caller { token: Some("tok_a".into()), ..Caller::user("ann") });
    let mut params = said("ask");
    params["configuration"] = json!({ "taskPushNotificationConfig": { "url": "http://127.0.0.1:9/hook" } });
    let task = ann.rpc("SendMessage", params).await["result"]["task"]["id"].take();
    answer(&ann, &task).await;
    let receiver = Arc::new(Revoking { store: house.store.clone(), count: Mutex::new(0) });
    let pusher = house.door.pusher(house.store.clone(), receiver.clone(), house.clock.clone());
    let running = tokio::spawn(pusher.run(house.stop.clone()));
    let task = TaskId::from(task.as_str().unwrap());
    super::house::within(async {
        while !house.store.pushes(&task).await.unwrap().is_empty() {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    })
    .await;
    house.stop.cancel();
    super::house::within(running).await.unwrap();
    assert_eq!(*receiver.count.lock(), 1, "three were due");
}
