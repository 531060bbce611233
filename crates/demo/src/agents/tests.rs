//! Asks the sample agents the way strangers would: by HTTP bodies.

use axum::body::to_bytes;

use super::*;

/// Response of an agent to one request.
async fn ask(name: &str, method: &str, params: Value) -> String {
    let api = desk(name);
    ask_again(&api, method, params).await
}

async fn ask_again(api: &Arc<AgentState>, method: &str, params: Value) -> String {
    let mut headers = HeaderMap::new();
    headers.insert("a2a-version", "1.0".parse().unwrap());
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
    let response = handle_request(State(Arc::clone(api)), headers, body.into()).await;
    let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    String::from_utf8(body.to_vec()).unwrap()
}

fn desk(name: &str) -> Arc<AgentState> {
    let persona = SAMPLE_PROFILES.iter().find(|persona| persona.name == name).unwrap();
    Arc::new(AgentState { persona, shelf: RecentTasks::default() })
}

fn result(answer: &str) -> Value {
    serde_json::from_str::<Value>(answer).unwrap()["result"].take()
}

fn events(answer: &str) -> Vec<Value> {
    answer.lines().filter_map(|line| line.strip_prefix("data: ")).map(result).collect()
}

#[tokio::test]
async fn a_forecast_is_data_in_the_spelling_of_1_0() {
    let params = json!({
        "message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"data": {"city": "Venice"}}]},
        "metadata": {"skillId": "forecast"},
    });
    let answer = result(&ask("Weather Desk", "SendMessage", params).await);
    assert_eq!(answer["task"]["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!(answer["task"]["artifacts"][0]["parts"][0]["data"]["city"], "Venice");
}

#[tokio::test]
async fn a_story_is_streamed_piece_by_piece() {
    let params = json!({"message": {
        "kind": "message", "messageId": "m", "role": "user",
        "skill": {"skillId": "story"},
        "parts": [{"kind": "data", "data": {"about": "Ada"}}],
    }});
    let events = events(&ask("Night Porter", "message/stream", params).await);
    let kinds: Vec<_> = events.iter().filter_map(|event| event["kind"].as_str()).collect();
    assert_eq!(kinds.iter().filter(|kind| **kind == "status-update").count(), 5);
    assert_eq!(kinds.iter().filter(|kind| **kind == "artifact-update").count(), 4);
    let [first, .., last] = events.as_slice() else { panic!("too short") };
    assert_eq!((&first["kind"], &last["final"]), (&json!("task"), &json!(true)));
    assert_eq!(last["status"]["state"], "completed");
}

#[tokio::test]
async fn a_task_that_nobody_waits_for_is_found_later() {
    let api = desk("Night Porter");
    let params = json!({
        "message": {"parts": [], "metadata": {"skillId": "story"}},
        "configuration": {"blocking": false},
    });
    let begun = result(&ask_again(&api, "message/send", params).await);
    assert_eq!(begun["status"]["state"], "working");
    let mut now = begun.clone();
    while now["status"]["state"] == "working" {
        sleep(Duration::from_millis(50)).await;
        now = result(&ask_again(&api, "tasks/get", json!({"id": begun["id"]})).await);
    }
    assert_eq!(now["status"]["state"], "completed");
    assert_eq!(now["artifacts"][0]["parts"].as_array().map(Vec::len), Some(4));
}

#[tokio::test]
async fn a_canceled_story_ends_its_stream() {
    let api = desk("Night Porter");
    let params = json!({"message": {"parts": [], "metadata": {"skillId": "story"}}});
    let heard = ask_again(&api, "message/stream", params);
    let canceled = ask_again(&api, "tasks/cancel", json!({"id": "night-porter-1"}));
    let (heard, canceled) = tokio::join!(biased; heard, canceled);
    assert_eq!(result(&canceled)["status"]["state"], "canceled");
    assert_eq!(events(&heard).last().unwrap()["status"]["state"], "canceled");
}

#[tokio::test]
async fn the_scribe_of_0_1_lets_its_client_name_the_task() {
    let params =
        json!({"id": "mine", "message": {"role": "user", "parts": [{"type": "text", "text": "ave"}]}});
    let answer = result(&ask("Old Scribe", "tasks/send", params).await);
    assert_eq!(answer["id"], "mine");
    assert_eq!(answer["artifacts"][0]["parts"][0], json!({"type": "text", "text": "ave"}));
}

#[tokio::test]
async fn the_clock_always_fails() {
    let answer = result(&ask("Broken Clock", "message/send", json!({"message": {"parts": []}})).await);
    assert_eq!(answer["status"]["state"], "failed");
    assert_eq!(answer["status"]["message"]["parts"][0]["text"], "the clock has stopped");
}

#[tokio::test]
async fn a_skill_that_does_not_exist_is_refused_by_naming_those_that_do() {
    let answer = ask("Night Porter", "message/send", json!({"message": {"parts": []}})).await;
    assert!(answer.contains("-32602") && answer.contains("story, greet"), "{answer}");
}

#[tokio::test]
async fn all_of_them_start_on_ports_of_their_own() {
    let agents = start_all().await.unwrap();
    let names: Vec<_> = agents.iter().map(|agent| agent.name).collect();
    assert_eq!(names, ["Weather Desk", "Night Porter", "Old Scribe", "Broken Clock", "Stranger"]);
}
