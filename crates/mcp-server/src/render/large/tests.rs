use insta::assert_json_snapshot;
use rialto_model::{json::Json, message::Role};
use rmcp::model::CallToolResult;
use serde_json::{Value, json};

use super::*;
use crate::{
    client_profile::{ProtocolFeatures, ResultOptions},
    config::ToolErrors,
    render::{self, tests::task},
};

const LIMIT: usize = 10_000;

fn made(artifacts: Vec<Artifact>) -> Task {
    Task { artifacts, ..task(TaskState::Completed) }
}

fn shown(task: &Task, version: &str) -> Value {
    let reader = ResultOptions {
        fluency: ProtocolFeatures::of(Some(version)),
        inline: LIMIT,
        errors: ToolErrors::Result,
        is_upstream: false,
        is_promised: false,
        structured_first: false,
    };
    serde_json::to_value(CallToolResult::from(render::result(task, "weather", reader))).unwrap()
}

/// The addresses that a result links to.
fn links(shown: &Value) -> Vec<&str> {
    let content = shown["content"].as_array().unwrap();
    content
        .iter()
        .filter(|block| block["type"] == "resource_link")
        .map(|block| block["uri"].as_str().unwrap())
        .collect()
}

fn text(length: usize) -> Part {
    Part::text("sun and rain. ".repeat(length / 14 + 1)[..length].to_owned())
}

#[test]
fn a_result_as_large_as_it_may_be_is_told_in_full() {
    let task = made(vec![Artifact::new("out", vec![text(LIMIT)])]);
    let shown = shown(&task, "2026-07-28");
    assert_eq!(shown["content"].as_array().unwrap().len(), 1);
    assert_eq!(shown["content"][0]["text"].as_str().unwrap().len(), LIMIT);
}

#[test]
fn a_large_text_is_a_link_and_how_to_read_it() {
    let mut artifact = Artifact::new("out", vec![text(LIMIT + 1)]);
    artifact.name = Some("Report".into());
    assert_json_snapshot!(shown(&made(vec![artifact]), "2025-06-18"));
}

#[test]
fn large_data_is_not_repeated_as_structured_content() {
    let data = Part::data(Json::encode(&json!({ "rows": vec!["x"; LIMIT] })));
    let shown = shown(&made(vec![Artifact::new("out", vec![data])]), "2026-07-28");
    assert_eq!(shown.get("structuredContent"), None);
    assert_eq!(links(&shown), ["rialto://tasks/task_1/artifacts/0/parts/0"]);
    assert_eq!(shown["content"][0]["mimeType"], "application/json");
    assert!(shown.to_string().len() < 2_000, "{shown}");
}

#[test]
fn what_is_small_stays_and_what_is_large_is_linked_everywhere() {
    let file = Part {
        media_type: Some("application/pdf".into()),
        filename: Some("a.pdf".into()),
        metadata: Some(Json::from(json!({ "k": "v" }))),
        ..Part::new(Content::Raw("AAAA".repeat(LIMIT / 4) + "AA=="))
    };
    let artifact = Artifact::new("out", vec![Part::text("see the file"), file]);
    assert_json_snapshot!(shown(&made(vec![artifact]), "2026-07-28"));
}

#[test]
fn the_largest_go_first_until_the_rest_fits() {
    let parts = vec![text(6_000), text(3_000), text(5_000), text(2_000)];
    let shown = shown(&made(vec![Artifact::new("out", parts)]), "2026-07-28");
    assert_eq!(links(&shown), ["rialto://tasks/task_1/artifacts/0/parts/0"]);
    assert_eq!(shown["structuredContent"]["artifacts"][0]["parts"][0]["size"], 6_000);
}

#[test]
fn many_small_pieces_are_one_artifact() {
    let parts = vec![text(100); 400];
    let artifacts = vec![Artifact::new("short", vec![text(500)]), Artifact::new("long", parts)];
    let shown = shown(&made(artifacts), "2025-11-25");
    assert_eq!(links(&shown), ["rialto://tasks/task_1/artifacts/1"]);
    assert_eq!(shown["content"][0]["text"].as_str().unwrap().len(), 500);
    assert!(shown.to_string().len() < 5_000, "{shown}");
}

#[test]
fn versions_without_links_are_told_the_address() {
    let shown = shown(&made(vec![Artifact::new("out", vec![text(LIMIT + 1)])]), "2025-03-26");
    assert_eq!(shown["content"][0]["text"], "out: rialto://tasks/task_1/artifacts/0/parts/0");
}

#[test]
fn a_large_message_is_a_link_too_unless_it_is_not_shown_or_asks() {
    let said = |state, artifacts| Task {
        message: Some(Message::new("m", Role::Agent, vec![text(LIMIT + 1)])),
        artifacts,
        ..task(state)
    };
    let alone = shown(&said(TaskState::Completed, vec![]), "2026-07-28");
    assert_eq!(links(&alone), ["rialto://tasks/task_1/message/parts/0"]);
    let beside = shown(&said(TaskState::Completed, vec![Artifact::new("out", vec![text(5)])]), "2026-07-28");
    assert_eq!(beside["content"], json!([{ "type": "text", "text": "sun a" }]));
    let asking = shown(&said(TaskState::InputRequired, vec![]), "2026-07-28");
    assert_eq!(links(&asking), [""; 0]);
}

#[test]
fn a_look_at_a_task_leaves_out_the_same() {
    let task = made(vec![Artifact::new("out", vec![text(LIMIT + 1)])]);
    let reader = ResultOptions {
        fluency: ProtocolFeatures::NEWEST,
        inline: LIMIT,
        errors: ToolErrors::Result,
        is_upstream: false,
        is_promised: false,
        structured_first: false,
    };
    let shown = serde_json::to_value(CallToolResult::from(render::status(&task, "weather", reader))).unwrap();
    assert_eq!(links(&shown), ["rialto://tasks/task_1/artifacts/0/parts/0"]);
    let part = &shown["structuredContent"]["artifacts"][0]["parts"][0];
    assert_eq!(
        (&part["url"], &part["size"]),
        (&json!("rialto://tasks/task_1/artifacts/0/parts/0"), &json!(LIMIT + 1))
    );
}

#[test]
fn many_artifacts_are_linked_and_only_some_told_of_in_words() {
    let artifacts = (0..60).map(|at| Artifact::new(format!("a{at}"), vec![text(2_000)])).collect();
    let shown = shown(&made(artifacts), "2026-07-28");
    assert!(links(&shown).len() > 50, "{}", links(&shown).len());
    let words = shown["content"].as_array().unwrap().last().unwrap()["text"].as_str().unwrap();
    assert_eq!(words.matches("It begins").count(), MAX_LINKED_PARTS);
    assert!(words.contains("more that are linked"), "{words}");
}
