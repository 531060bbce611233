//! Tasks afterwards: looked at, listed, gone on with, called off, and whose they are.

use std::time::Duration;

use http::Request;
use rialto_a2a_server::Config;
use serde_json::{Value, json};

use crate::house::{House, asked, post, said, said_0_3, steady};

fn code(answer: &Value) -> &Value {
    &answer["error"]["code"]
}

#[tokio::test]
async fn the_same_message_again_is_the_same_task() {
    let house = House::new().await;
    let ann = house.ann();
    let params = said("hello");
    let first = ann.rpc("SendMessage", params.clone()).await;
    let again = ann.rpc("SendMessage", params.clone()).await;
    assert_eq!(first, again);
    assert_eq!(house.peer.calls.lock().len(), 1);
    let streamed = ann.events("SendStreamingMessage", params).await;
    assert_eq!(streamed[0]["result"]["task"]["id"], first["result"]["task"]["id"]);
    assert_eq!(house.peer.calls.lock().len(), 1);
}

#[tokio::test]
async fn an_id_that_is_used_more_than_once_can_mean_a_task_each_time() {
    let config = Config { once_per_message: false, needs_token: false, ..Config::default() };
    let house = House::with(config).await;
    let params = said("hello");
    let first = house.ann().rpc("SendMessage", params.clone()).await;
    let again = house.ann().rpc("SendMessage", params).await;
    assert_ne!(first["result"]["task"]["id"], again["result"]["task"]["id"]);
    assert_eq!(house.peer.calls.lock().len(), 2);
}

#[tokio::test]
async fn a_task_is_looked_at_in_every_dialect() {
    let house = House::new().await;
    let ann = house.ann();
    let params =
        json!({ "message": { "messageId": "m-1", "role": "ROLE_USER", "parts": [{ "text": "hello" }] } });
    let id = ann.rpc("SendMessage", params).await["result"]["task"]["id"].take();
    let v10 = ann.rpc("GetTask", json!({ "id": id })).await;
    let v03 = ann.rpc("tasks/get", json!({ "id": id })).await;
    let path = |version: &str| format!("/a2a{version}/tasks/{}", id.as_str().unwrap());
    let rest = ann.send(Request::get(path("")), "").await.json();
    let rest_0_3 = ann.send(Request::get(path("/v1")), "").await.json();
    assert_eq!(v10["result"], rest);
    insta::assert_json_snapshot!(steady(&json!({ "1.0": v10, "0.3": v03, "0.3 rest": rest_0_3 })));
}

#[tokio::test]
async fn as_much_history_is_told_as_is_asked_for() {
    let house = House::new().await;
    let ann = house.ann();
    let id = ann.tell("ask").await["id"].take();
    let mut answer = said("red");
    answer["message"]["taskId"] = id.clone();
    answer["configuration"] = json!({ "historyLength": 0 });
    let sent = ann.rpc("SendMessage", answer).await;
    assert_eq!(sent["result"]["task"].get("history"), None, "{sent}");
    let length = async |params: Value| {
        let got = ann.rpc("GetTask", params).await;
        got["result"]["history"].as_array().map_or(0, Vec::len)
    };
    let all = length(json!({ "id": id })).await;
    assert!(all >= 2, "{all}");
    assert_eq!(length(json!({ "id": id, "historyLength": 0 })).await, 0);
    assert_eq!(length(json!({ "id": id, "historyLength": 1 })).await, 1);
    // In 0.3 zero is no limit.
    let old = ann.rpc("tasks/get", json!({ "id": id, "historyLength": 0 })).await;
    assert_eq!(old["result"]["history"].as_array().unwrap().len(), all);
}

#[tokio::test]
async fn a_task_that_waits_goes_on_with_the_next_message() {
    let house = House::new().await;
    let ann = house.ann();
    let waiting = ann.tell("ask").await;
    assert_eq!(waiting["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
    assert_eq!(waiting["status"]["message"]["parts"], json!([{ "text": "which colour?" }]));
    let mut answer = said("red");
    answer["message"]["taskId"] = waiting["id"].clone();
    let task = ann.rpc("SendMessage", answer.clone()).await["result"]["task"].take();
    assert_eq!((&task["id"], &task["contextId"]), (&waiting["id"], &waiting["contextId"]));
    assert_eq!(task["artifacts"][0]["parts"], json!([{ "text": "you said red" }]));
    answer["message"]["messageId"] = json!("another");
    assert_eq!(code(&ann.rpc("SendMessage", answer.clone()).await), -32004);
    answer["message"]["taskId"] = json!("task_unknown");
    assert_eq!(code(&ann.rpc("SendMessage", answer).await), -32001);
}

#[tokio::test]
async fn a_message_that_names_another_context_than_its_task_is_refused() {
    let house = House::new().await;
    let ann = house.ann();
    let mut answer = said("red");
    answer["message"]["taskId"] = ann.tell("ask").await["id"].take();
    answer["message"]["contextId"] = json!("ctx_other");
    assert_eq!(code(&ann.rpc("SendMessage", answer).await), -32602);
}

#[tokio::test]
async fn who_does_not_wait_is_told_the_task_as_it_begins() {
    let house = House::new().await;
    let mut params = said("hang");
    params["configuration"] = json!({ "returnImmediately": true });
    let task = house.ann().rpc("SendMessage", params).await["result"]["task"].take();
    assert_eq!(task["status"]["state"], "TASK_STATE_SUBMITTED");
    let mut params = said_0_3("hang");
    params["configuration"] = json!({ "blocking": false });
    let task = house.ann().rpc("message/send", params).await["result"].take();
    assert_eq!(task["status"]["state"], "submitted");
}

#[tokio::test]
async fn a_task_can_be_called_off_once_and_only_while_it_goes_on() {
    let house = House::new().await;
    let ann = house.ann();
    let waiting = ann.tell("ask").await["id"].take();
    let canceled = ann.rpc("CancelTask", json!({ "id": waiting })).await;
    assert_eq!(canceled["result"]["status"]["state"], "TASK_STATE_CANCELED");
    assert_eq!(house.peer.cancels.lock().len(), 1);
    assert_eq!(code(&ann.rpc("CancelTask", json!({ "id": waiting })).await), -32002);
    let done = ann.tell("hello").await["id"].take();
    for method in ["CancelTask", "tasks/cancel"] {
        assert_eq!(code(&ann.rpc(method, json!({ "id": done })).await), -32002, "{method}");
    }
    assert_eq!(code(&ann.rpc("tasks/cancel", json!({ "id": "nowhere" })).await), -32001);
    let again = ann.tell("ask").await["id"].take();
    let path = format!("/a2a/tasks/{}:cancel", again.as_str().unwrap());
    let reply = ann.send(post(&path), "{}").await;
    assert_eq!(reply.json()["status"]["state"], "TASK_STATE_CANCELED");
}

#[tokio::test]
async fn another_callers_task_is_not_there() {
    let house = House::new().await;
    let task = house.ann().tell("ask").await["id"].take();
    let (bob, id) = (house.client("bob"), json!({ "id": task }));
    for method in ["GetTask", "CancelTask", "SubscribeToTask", "tasks/get", "tasks/cancel"] {
        assert_eq!(code(&bob.rpc(method, id.clone()).await), -32001, "{method}");
    }
    let mut answer = said("red");
    answer["message"]["taskId"] = task.clone();
    assert_eq!(code(&bob.rpc("SendMessage", answer).await), -32001);
    let hook = json!({ "taskId": task, "url": "https://bob.example.com" });
    assert_eq!(code(&bob.rpc("CreateTaskPushNotificationConfig", hook).await), -32001);
    let list = bob.rpc("ListTasks", json!({})).await;
    assert_eq!((&list["result"]["tasks"], &list["result"]["totalSize"]), (&json!([]), &json!(0)));
    assert_eq!(house.ann().rpc("GetTask", id).await["result"]["id"], task);
}

#[tokio::test]
async fn where_one_agent_is_asked_the_tasks_of_others_are_not_there() {
    let house = House::new().await;
    house.meet(rialto_testkit::agents::card("Other", vec![rialto_testkit::agents::skill("work")])).await;
    let ann = house.ann();
    let at = async |slug: &str, method: &str, params: Value| {
        let path = format!("/a2a/agents/{slug}");
        ann.send(post(&path), asked(method, &params).to_string()).await.json()
    };
    let task = at("desk", "SendMessage", said("ask")).await["result"]["task"]["id"].take();
    at("other", "SendMessage", said("hello")).await;
    let id = json!({ "id": task });
    for method in ["GetTask", "CancelTask", "SubscribeToTask"] {
        assert_eq!(code(&at("other", method, id.clone()).await), -32001, "{method}");
    }
    let mut answer = said("red");
    answer["message"]["taskId"] = task.clone();
    assert_eq!(code(&at("other", "SendMessage", answer).await), -32001);
    let listed = at("desk", "ListTasks", json!({})).await["result"].take();
    assert_eq!((&listed["tasks"][0]["id"], &listed["totalSize"]), (&task, &json!(1)));
    assert_eq!(at("desk", "GetTask", id).await["result"]["id"], task);
    assert_eq!(ann.rpc("ListTasks", json!({})).await["result"]["totalSize"], 2);
}

#[tokio::test]
async fn tasks_are_listed_in_pages_and_by_what_they_are() {
    let house = House::new().await;
    let ann = house.ann();
    let context = ann.tell("ask").await["contextId"].take();
    for text in ["one", "two"] {
        ann.tell(text).await;
    }
    let first = ann.rpc("ListTasks", json!({ "pageSize": 2 })).await["result"].take();
    assert_eq!((first["tasks"].as_array().unwrap().len(), &first["totalSize"]), (2, &json!(3)));
    assert_eq!(first["tasks"][0].get("artifacts"), None, "{first}");
    let token = &first["nextPageToken"];
    let last = ann.rpc("ListTasks", json!({ "pageSize": 2, "pageToken": token })).await["result"].take();
    assert_eq!((last["tasks"].as_array().unwrap().len(), &last["nextPageToken"]), (1, &json!("")));
    let waiting = ann.rpc("ListTasks", json!({ "status": "TASK_STATE_INPUT_REQUIRED" })).await;
    assert_eq!(waiting["result"]["totalSize"], 1);
    let path = format!("/a2a/tasks?contextId={}&includeArtifacts=true", context.as_str().unwrap());
    let listed = ann.send(Request::get(path), "").await.json();
    assert_eq!(listed["tasks"][0]["contextId"], context, "{listed}");
    insta::assert_json_snapshot!(steady(&listed));
}

#[tokio::test]
async fn a_page_that_makes_no_sense_is_refused() {
    let house = House::new().await;
    let wrong = [
        json!({ "pageSize": 0 }),
        json!({ "pageSize": 101 }),
        json!({ "pageToken": "made up" }),
        json!({ "statusTimestampAfter": "yesterday" }),
    ];
    for params in wrong {
        assert_eq!(code(&house.ann().rpc("ListTasks", params.clone()).await), -32602, "{params}");
    }
}

#[tokio::test]
async fn a_message_finds_its_skill_or_is_told_which_there_are() {
    let house = House::new().await;
    let ann = house.ann();
    // The only one there is.
    assert_eq!(ann.tell("hello").await["status"]["state"], "TASK_STATE_COMPLETED");
    let mut params = said("hello");
    params["metadata"] = json!({ "skillId": "nothing" });
    insta::assert_json_snapshot!(steady(&ann.rpc("SendMessage", params).await));
    house.meet(rialto_testkit::agents::card("Other", vec![rialto_testkit::agents::skill("work")])).await;
    insta::assert_json_snapshot!(steady(&ann.say(&asked("message/send", &said_0_3("hello"))).await));
}

#[tokio::test]
async fn a_message_to_a_task_that_was_just_begun_waits_for_the_agent_to_take_it() {
    let house = House::new().await;
    let ann = house.ann();
    let mut params = said("later");
    params["configuration"] = json!({ "returnImmediately": true });
    let id = ann.rpc("SendMessage", params).await["result"]["task"]["id"].take();
    let mut answer = said("red");
    answer["message"]["taskId"] = id.clone();
    let mut answered = std::pin::pin!(ann.rpc("SendMessage", answer));
    let too_soon = tokio::time::timeout(Duration::from_millis(50), &mut answered).await;
    assert!(too_soon.is_err(), "{too_soon:?}");
    house.gate.notify_one();
    let task = answered.await["result"]["task"].take();
    assert_eq!((&task["id"], &task["status"]["state"]), (&id, &json!("TASK_STATE_COMPLETED")), "{task}");
}

#[tokio::test]
async fn a_task_that_was_just_begun_can_be_called_off_whether_or_not_its_agent_has_taken_it() {
    let house = House::new().await;
    let ann = house.ann();
    let begun = async |text: &str| {
        let mut params = said(text);
        params["configuration"] = json!({ "returnImmediately": true });
        ann.rpc("SendMessage", params).await["result"]["task"]["id"].take()
    };
    for text in std::iter::repeat_n("ask", 50).chain(["later"]) {
        let id = begun(text).await;
        let canceled = ann.rpc("CancelTask", json!({ "id": id })).await;
        assert_eq!(canceled["result"]["status"]["state"], "TASK_STATE_CANCELED", "{text}: {canceled}");
    }
}
