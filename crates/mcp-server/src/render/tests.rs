use insta::assert_json_snapshot;
use rialto_model::{
    call::{CallerId, EntryProtocol},
    clock::Timestamp,
    event::RemoteIds,
    failure::{Failure, FailureKind},
    ids::{ProcessId, Scope},
    json::Extra,
    message::{Artifact, Role},
    task::TaskHead,
};
use rmcp::model::CallToolResult;
use serde_json::{Value, json};

use super::*;
use crate::config::ToolErrors;

const OLDEST: ProtocolFeatures =
    ProtocolFeatures { modern: false, choices: false, links: false, audio: false };
const LEGACY: ProtocolFeatures = ProtocolFeatures { modern: false, choices: false, links: true, audio: true };

pub(super) fn task(state: TaskState) -> Task {
    Task::new(TaskHead {
        id: "task_1".into(),
        scope: Scope::default(),
        caller: CallerId::from("ann"),
        door: EntryProtocol::McpHttp,
        agent: "agt_1".into(),
        agent_url: "https://weather.example.com".into(),
        skill: None,
        session: "a2a-agt_1-x-1".into(),
        args: Json::empty_object(),
        context: None,
        message: None,
        runner: ProcessId::NOBODY,
        state,
        version: 3,
        remote: RemoteIds { task_id: Some("remote-1".into()), context_id: Some("context-1".into()) },
        created_at: Timestamp::UNIX_EPOCH,
        updated_at: Timestamp::UNIX_EPOCH,
    })
}

fn made(artifacts: Vec<Artifact>) -> Task {
    Task { artifacts, ..task(TaskState::Completed) }
}

fn said(state: TaskState, parts: Vec<Part>) -> Task {
    Task { message: Some(Message::new("m-1", Role::Agent, parts)), ..task(state) }
}

fn data(value: Value) -> Part {
    Part::data(Json::from(value))
}

fn file(kind: &str, name: Option<&str>, base64: &str) -> Part {
    let part = Part::new(Content::Raw(base64.into()));
    Part { media_type: Some(kind.into()), filename: name.map(str::to_owned), ..part }
}

fn shown(task: &Task, fluency: ProtocolFeatures) -> Value {
    serde_json::to_value(CallToolResult::from(result(
        task,
        "weather",
        ResultOptions {
            fluency,
            inline: 0,
            errors: ToolErrors::Result,
            is_upstream: false,
            is_promised: false,
            structured_first: false,
        },
    )))
    .unwrap()
}

/// The one block that an artifact of one part becomes.
fn one_block(part: Part, fluency: ProtocolFeatures) -> Value {
    shown(&made(vec![Artifact::new("a b", vec![part])]), fluency)["content"][0].take()
}

#[test]
fn one_data_part_is_its_data() {
    assert_json_snapshot!(shown(
        &made(vec![Artifact::new("out", vec![data(json!({ "n": 1 }))])]),
        ProtocolFeatures::NEWEST
    ));
}

#[test]
fn data_keeps_every_digit() {
    let part = Part::data(Json::parse(r#"{"n": 12345678901234567890.10}"#).unwrap());
    let answer = result(
        &made(vec![Artifact::new("out", vec![part])]),
        "weather",
        ResultOptions {
            fluency: ProtocolFeatures::NEWEST,
            inline: 0,
            errors: ToolErrors::Result,
            is_upstream: false,
            is_promised: false,
            structured_first: false,
        },
    );
    assert_eq!(answer.structured.unwrap().get(), r#"{"n": 12345678901234567890.10}"#);
    assert_eq!(answer.content, [ContentBlock::text(r#"{"n": 12345678901234567890.10}"#)]);
}

#[test]
fn data_that_is_no_object_is_structured_only_for_those_who_know_that() {
    let task = made(vec![Artifact::new("out", vec![data(json!([1, 2]))])]);
    assert_eq!(shown(&task, ProtocolFeatures::NEWEST)["structuredContent"], json!([1, 2]));
    assert_eq!(shown(&task, LEGACY).get("structuredContent"), None);
    assert_eq!(shown(&task, LEGACY)["content"][0]["text"], "[1,2]");
}

#[test]
fn one_text_part_is_its_text() {
    let shown = shown(&made(vec![Artifact::new("out", vec![Part::text("sunny")])]), ProtocolFeatures::NEWEST);
    assert_eq!(shown["content"], json!([{ "type": "text", "text": "sunny" }]));
    assert_eq!(shown.get("structuredContent"), None);
}

#[test]
fn several_parts_are_preserved_in_full() {
    let mut part = file("application/pdf", Some("a.pdf"), "AAAA");
    part.extra = Extra::from_iter([("future".to_owned(), Json::from(json!(true)))]);
    let mut artifact = Artifact::new("out", vec![Part::text("see"), data(json!({ "n": 1 })), part]);
    (artifact.name, artifact.description) = (Some("Report".into()), Some("All of it".into()));
    artifact.metadata = Some(Json::from(json!({ "k": "v" })));
    assert_json_snapshot!(shown(&made(vec![artifact]), ProtocolFeatures::NEWEST));
}

#[test]
fn several_artifacts_are_preserved_in_full() {
    let artifacts =
        vec![Artifact::new("one", vec![Part::text("1")]), Artifact::new("two", vec![data(json!(2))])];
    assert_json_snapshot!(shown(&made(artifacts), LEGACY));
}

#[test]
fn a_message_is_shown_by_its_parts() {
    let one = shown(&said(TaskState::Completed, vec![data(json!({ "n": 1 }))]), LEGACY);
    assert_eq!(one["structuredContent"], json!({ "n": 1 }));
    assert_json_snapshot!(shown(&said(TaskState::Completed, vec![Part::text("a"), Part::text("b")]), LEGACY));
}

#[test]
fn a_task_that_made_nothing_shows_its_closing_words() {
    assert_eq!(
        shown(&said(TaskState::Completed, vec![Part::text("done")]), LEGACY)["content"][0]["text"],
        "done"
    );
    let silent = shown(&task(TaskState::Completed), LEGACY);
    assert_eq!(silent["content"][0]["text"], "the agent finished without a result");
}

#[test]
fn files_are_shown_by_their_kind() {
    assert_eq!(
        one_block(file("image/png", None, "AAAA"), LEGACY),
        json!({ "type": "image", "data": "AAAA", "mimeType": "image/png" })
    );
    assert_eq!(
        one_block(file("audio/wav", None, "AAAA"), LEGACY),
        json!({ "type": "audio", "data": "AAAA", "mimeType": "audio/wav" })
    );
    assert_eq!(
        one_block(file("text/csv", Some("täble.csv"), "YSxi"), LEGACY)["resource"],
        json!({ "uri": "rialto://tasks/task_1/artifacts/0/parts/0/t%C3%A4ble.csv", "mimeType": "text/csv", "text": "a,b" })
    );
    assert_eq!(
        one_block(file("application/pdf", None, "AAAA"), LEGACY)["resource"],
        json!({ "uri": "rialto://tasks/task_1/artifacts/0/parts/0", "mimeType": "application/pdf", "blob": "AAAA" })
    );
    assert_eq!(one_block(file("text/plain", None, "not base64!"), LEGACY)["resource"]["blob"], "not base64!");
}

#[test]
fn a_file_elsewhere_is_a_link() {
    let part = Part::new(Content::Url("https://files.example.com/report.pdf?x=1".into()));
    let part = Part { media_type: Some("application/pdf".into()), ..part };
    let link = json!({
        "type": "resource_link", "uri": "https://files.example.com/report.pdf?x=1",
        "name": "report.pdf", "mimeType": "application/pdf",
    });
    assert_eq!(one_block(part, LEGACY), link);
}

#[test]
fn what_a_version_has_no_words_for_is_said_in_older_words() {
    let audio = one_block(file("audio/wav", None, "AAAA"), OLDEST);
    assert_eq!((&audio["type"], &audio["resource"]["blob"]), (&json!("resource"), &json!("AAAA")));
    let link = one_block(Part::new(Content::Url("https://f.example.com/a.pdf".into())), OLDEST);
    assert_eq!(link, json!({ "type": "text", "text": "a.pdf: https://f.example.com/a.pdf" }));
}

#[test]
fn a_part_of_an_unknown_kind_is_its_json() {
    let part = Part::new(Content::Unknown(Json::from(json!({ "kind": "hologram", "x": 1 }))));
    assert_eq!(one_block(part, LEGACY)["text"], r#"{"kind":"hologram","x":1}"#);
}

#[test]
fn a_question_says_how_to_answer_it() {
    assert_json_snapshot!(shown(&said(TaskState::InputRequired, vec![Part::text("Which city?")]), LEGACY));
}

#[test]
fn a_login_says_where_and_how_to_go_on() {
    let task = said(TaskState::AuthRequired, vec![Part::text("Log in at https://login.example.com")]);
    assert_json_snapshot!(shown(&task, LEGACY));
}

#[test]
fn a_question_without_words_is_its_data() {
    let shown = shown(&said(TaskState::InputRequired, vec![data(json!({ "form": "city" }))]), LEGACY);
    assert_eq!(shown["structuredContent"]["question"], r#"{"form":"city"}"#);
}

#[test]
fn a_task_is_shown_with_where_it_stands() {
    let looked_at = |task: &Task| {
        serde_json::to_value(CallToolResult::from(status(
            task,
            "weather",
            ResultOptions {
                fluency: ProtocolFeatures::NEWEST,
                inline: 0,
                errors: ToolErrors::Result,
                is_upstream: false,
                is_promised: false,
                structured_first: false,
            },
        )))
        .unwrap()
    };
    let failed = Task {
        failure: Some(Failure::new(FailureKind::PeerFailed, "no such city")),
        ..said(TaskState::Failed, vec![Part::text("no such city")])
    };
    assert_json_snapshot!([
        looked_at(&said(TaskState::Working, vec![Part::text("halfway")])),
        looked_at(&made(vec![Artifact::new("out", vec![Part::text("sunny")])])),
        looked_at(&failed),
    ]);
}

#[test]
fn a_question_of_a_tool_that_promised_something_else_is_told_as_an_error() {
    let reader = ResultOptions {
        fluency: LEGACY,
        inline: 0,
        errors: ToolErrors::Result,
        is_upstream: false,
        is_promised: false,
        structured_first: false,
    }
    .promised();
    let asking = said(TaskState::InputRequired, vec![Part::text("Which city?")]);
    assert!(result(&asking, "weather", reader).is_error);
    assert!(!result(&made(vec![Artifact::new("out", vec![data(json!({}))])]), "weather", reader).is_error);
}

/// Results of text and a picture of 80 kB, as skill tools, `get_task` and `invoke_a2a` show them.
fn picture_results(is_upstream: bool) -> [(ToolResult, String); 3] {
    let picture = file("image/png", Some("plot.png"), &"iVBORw0KGgo=".repeat(9_000));
    let task = made(vec![Artifact::new("out", vec![Part::text("a plot"), picture])]);
    let reader = ResultOptions {
        fluency: LEGACY,
        inline: 0,
        errors: ToolErrors::Result,
        is_upstream,
        is_promised: false,
        structured_first: false,
    };
    let answers = [
        result(&task, "weather", reader),
        status(&task, "weather", reader),
        invoked(&task, "weather", None, reader),
    ];
    answers.map(|answer| {
        let text = serde_json::to_string(&CallToolResult::from(answer.clone())).unwrap();
        (answer, text)
    })
}

#[test]
fn the_bytes_of_a_file_are_in_a_result_once() {
    for is_upstream in [false, true] {
        for (answer, text) in picture_results(is_upstream) {
            assert!(text.len() < 112_000, "{} bytes", text.len());
            assert_eq!(answer.content.iter().filter(|block| is_file(block)).count(), 1);
        }
    }
    let (answer, _) = &picture_results(false)[0];
    let structured = answer.structured.as_ref().unwrap().value();
    let part = &structured["artifacts"][0]["parts"][1];
    assert_eq!(part["metadata"]["rialto/contentBlock"], 1);
    assert!(is_file(&answer.content[1]), "the part refers to its block");
}

#[test]
fn an_upstream_result_gets_no_structured_content_of_ours() {
    let (answer, _) = &picture_results(true)[0];
    assert_eq!(answer.structured, None);
    assert_eq!(answer.content.len(), 2);
}
