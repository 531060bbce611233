//! `rialto call`, its exit codes, and what is left of a call afterwards.

use serde_json::json;

use crate::harness::{agent::SampleAgent, rialto::Rialto};

#[test]
fn a_call_prints_the_result_and_exits_with_0() {
    let (rialto, agent) = (Rialto::fresh(), SampleAgent::named("Desk"));
    rialto.trust(&agent.url);
    let said = rialto.cli(&["call", "desk.greet", r#"{"name":"Ann"}"#]).ok();
    assert_eq!(said.out, "hello Ann\n");
    let data = rialto.json(&["call", "desk.echo", r#"{"a":[1,{"b":null}]}"#]);
    assert_eq!(data, json!({ "a": [1, { "b": null }] }));
    let task = rialto.json(&["call", "desk.greet", r#"{"name":"Ann"}"#, "--json"]);
    assert_eq!((&task["state"], &task["remoteTaskId"]), (&json!("completed"), &json!("task-1")));
    assert_eq!(rialto.cli_fed(&["call", "desk.greet", "-"], r#"{"name":"stdin"}"#).ok().out, "hello stdin\n");
}

#[test]
fn an_agent_can_be_named_for_one_call_only() {
    let (rialto, agent) = (Rialto::fresh(), SampleAgent::named("Desk"));
    let said = rialto.cli(&["call", "desk.greet", r#"{"name":"Ann"}"#, "--agent", &agent.url]).ok();
    assert_eq!(said.out, "hello Ann\n");
    assert_eq!(rialto.json(&["agents", "list", "--json"]), json!([]));
    rialto.cli(&["call", "desk.greet", r#"{"name":"Ann"}"#]).exit(4);
}

#[test]
fn a_failed_task_exits_with_1_and_says_what_the_agent_said() {
    let (rialto, agent) = (Rialto::fresh(), SampleAgent::named("Desk"));
    rialto.trust(&agent.url);
    let said = rialto.cli(&["call", "desk.fail"]).exit(1);
    assert!(said.err.contains("it broke on purpose"), "{}", said.err);
    assert_eq!(said.out, "");
    let error = rialto.cli(&["call", "desk.fail", "--json"]).exit(1).json()["error"].clone();
    assert_eq!((&error["code"], &error["class"]), (&json!(-32204), &json!("RemoteA2ATaskFailedError")));
}

#[test]
fn wrong_arguments_exit_with_2_and_nothing_leaves() {
    let (rialto, agent) = (Rialto::fresh(), SampleAgent::named("Desk"));
    rialto.trust(&agent.url);
    let said = rialto.cli(&["call", "desk.greet", "{}"]).exit(2);
    assert!(said.err.contains("name"), "{}", said.err);
    let error =
        rialto.cli(&["call", "desk.greet", r#"{"name":7}"#, "--json"]).exit(2).json()["error"].clone();
    assert_eq!((&error["code"], &error["data"]["path"]), (&json!(-32602), &json!("/name")), "{error}");
    rialto.cli(&["call", "desk.greet", "{name"]).exit(2);
    rialto.cli(&["call"]).exit(2);
    assert_eq!(agent.heard(), Vec::<String>::new());
}

#[test]
fn a_denied_call_exits_with_3_and_nothing_leaves() {
    let (rialto, agent) = (Rialto::fresh(), SampleAgent::named("Desk"));
    rialto.cli(&["agents", "add", &agent.url]).ok();
    let said = rialto.cli(&["call", "desk.echo"]).exit(3);
    assert!(said.err.contains("rialto agents trust desk trusted"), "{}", said.err);
    assert_eq!(agent.heard(), Vec::<String>::new());
    assert_eq!(rialto.json(&["tasks", "list", "--json"]), json!([]));
}

#[test]
fn an_unknown_skill_exits_with_4_and_the_near_ones_are_named() {
    let (rialto, agent) = (Rialto::fresh(), SampleAgent::named("Desk"));
    rialto.trust(&agent.url);
    let said = rialto.cli(&["call", "desk.ech"]).exit(4);
    assert!(said.err.contains("desk.echo"), "{}", said.err);
    rialto.cli(&["call", "nobody"]).exit(4);
    rialto.cli(&["tasks", "show", "nothing"]).exit(4);
}

#[test]
fn an_agent_that_is_gone_or_talks_nonsense_exits_with_5() {
    let (rialto, agent) = (Rialto::fresh(), SampleAgent::named("Desk"));
    rialto.trust(&agent.url);
    let error = rialto.cli(&["call", "desk.nonsense", "--json"]).exit(5).json()["error"].clone();
    assert_eq!((&error["code"], &error["class"]), (&json!(-32203), &json!("RemoteA2AInvalidResponseError")));
    drop(agent);
    let error = rialto.cli(&["call", "desk.echo", "--json"]).exit(5).json()["error"].clone();
    assert_eq!((&error["code"], &error["class"]), (&json!(-32202), &json!("RemoteA2ATransportError")));
}

#[test]
fn a_call_that_takes_too_long_exits_with_6_and_names_its_task() {
    let (rialto, agent) = (Rialto::fresh(), SampleAgent::named("Desk"));
    rialto.trust(&agent.url);
    let said = rialto.cli(&["call", "desk.slow", "--timeout-ms", "200", "--json"]).exit(6);
    let error = said.json()["error"].clone();
    assert_eq!((&error["code"], &error["class"]), (&json!(-32201), &json!("RemoteA2ATimeoutError")));
    let task = error["data"]["taskId"].as_str().unwrap();
    let tasks = rialto.json(&["tasks", "list", "--json"]);
    assert_eq!((&tasks[0]["id"], tasks.as_array().unwrap().len()), (&json!(task), 1));
}

#[test]
fn an_agents_own_wall_clock_wins_over_everybodys() {
    let (rialto, agent) = (Rialto::fresh(), SampleAgent::named("Desk"));
    let add = ["agents", "add", &agent.url, "--trust", "trusted", "--timeout-ms", "200"];
    rialto.cli(&add).ok();
    rialto.cli(&["call", "desk.slow"]).exit(6);
}

#[test]
fn what_was_called_is_listed_newest_first_and_can_be_shown() {
    let (rialto, agent) = (Rialto::fresh(), SampleAgent::named("Desk"));
    rialto.trust(&agent.url);
    rialto.cli(&["call", "desk.greet", r#"{"name":"Ann"}"#]).ok();
    rialto.cli(&["call", "desk.fail"]).exit(1);
    let tasks = rialto.json(&["tasks", "list", "--json"]);
    let states: Vec<_> =
        tasks.as_array().unwrap().iter().map(|task| (&task["skill"], &task["state"])).collect();
    assert_eq!(states, [(&json!("fail"), &json!("failed")), (&json!("greet"), &json!("completed"))]);
    assert_eq!(rialto.json(&["tasks", "list", "--open", "--json"]), json!([]));
    let shown = rialto.json(&["tasks", "show", tasks[1]["id"].as_str().unwrap(), "--json"]);
    assert_eq!(shown["args"], json!({ "name": "Ann" }));
    assert!(shown["artifacts"].to_string().contains("hello Ann"), "{shown}");
    rialto.cli(&["tasks", "cancel", tasks[1]["id"].as_str().unwrap()]).exit(1);
}

#[test]
fn a_secret_in_the_arguments_reaches_the_agent_and_is_not_kept() {
    let (rialto, agent) = (Rialto::fresh(), SampleAgent::named("Desk"));
    rialto.trust(&agent.url);
    rialto.cli(&["call", "desk.echo", r#"{"password":"hunter2","city":"Venice"}"#]).ok();
    assert!(agent.heard()[0].contains("hunter2"));
    let kept = rialto.json(&["tasks", "list", "--json"])[0]["args"].clone();
    assert_eq!(kept["city"], "Venice");
    assert!(!kept.to_string().contains("hunter2"), "{kept}");
}

#[test]
fn the_token_of_an_agent_is_shown_to_it_and_to_nobody_else() {
    let rialto = Rialto::fresh().with("DESK_TOKEN", "s3cret");
    let agent = SampleAgent::named("Desk");
    rialto.cli(&["agents", "add", &agent.url, "--trust", "trusted", "--token-env", "DESK_TOKEN"]).ok();
    rialto.cli(&["call", "desk.echo"]).ok();
    assert_eq!(agent.tokens(), ["Bearer s3cret"]);
    let shown = rialto.cli(&["agents", "show", "desk", "--json"]).ok();
    assert_eq!(shown.json()["credential"], json!({ "env": "DESK_TOKEN" }));
    assert!(!shown.out.contains("s3cret"));
}

#[test]
fn a_question_is_answered_with_the_command_that_is_printed() {
    let (rialto, agent) = (Rialto::fresh(), SampleAgent::named("Desk"));
    rialto.trust(&agent.url);
    let said = rialto.cli(&["call", "desk.ask"]).ok();
    assert_eq!(said.out, "which colour?\n");
    let task = said.err.split("--task ").nth(1).expect("the command is printed").trim();
    assert_eq!(rialto.json(&["tasks", "show", task, "--json"])["state"], "input-required");
    assert_eq!(rialto.cli(&["call", "desk", "blue", "--task", task]).ok().out, "you chose blue\n");
    assert_eq!(rialto.json(&["tasks", "show", task, "--json"])["state"], "completed");
    rialto.cli(&["call", "desk", "red", "--task", task]).exit(1);
}
