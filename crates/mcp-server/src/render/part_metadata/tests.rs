use rialto_mcp_client::tool_result_events;
use rialto_model::{
    event::Event,
    task::{Task, TaskState},
};
use rmcp::model::CallToolResult;
use serde_json::json;

use super::*;
use crate::config::ToolErrors;
use crate::{
    client_profile::ResultOptions,
    render::{self, tests::task},
};

/// Result of an MCP server as an MCP client gets it, through both conversions.
fn crossed(result: &Value, version: &str) -> Value {
    let mut task = Task { ..task(TaskState::Working) };
    task.head.agent_url = "mcp:files".into();
    for event in tool_result_events(result, "files", "read") {
        // What is written down and read again is the same.
        let event: Event = serde_json::from_value(serde_json::to_value(event).unwrap()).unwrap();
        assert!(task.apply(&event, task.head.updated_at));
    }
    shown(&task, version)
}

fn shown(task: &Task, version: &str) -> Value {
    let reader = ResultOptions {
        fluency: ProtocolFeatures::of(Some(version)),
        inline: 0,
        errors: ToolErrors::Result,
        is_upstream: false,
        is_promised: false,
        structured_first: false,
    };
    serde_json::to_value(CallToolResult::from(render::result(task, "files", reader))).unwrap()
}

#[test]
fn what_a_server_says_crosses_as_it_is() {
    let annotations =
        json!({ "audience": ["user"], "priority": 0.5, "lastModified": "2026-01-01T00:00:00Z" });
    let meta = json!({ "example.com/x": [1, null] });
    for block in [
        json!({ "type": "text", "text": "plain" }),
        json!({ "type": "text", "text": "noted", "_meta": meta, "annotations": annotations }),
        json!({ "type": "image", "data": "AAAA", "mimeType": "image/png", "annotations": annotations }),
        json!({ "type": "audio", "data": "AAAA", "mimeType": "audio/wav", "_meta": meta }),
        json!({ "type": "resource", "resource": { "uri": "file:///a/b.txt", "mimeType": "text/markdown", "text": "# hi" } }),
        json!({ "type": "resource", "annotations": annotations,
            "resource": { "uri": "file:///a/b.bin", "mimeType": "application/pdf", "blob": "AAAA", "_meta": meta } }),
        json!({ "type": "resource_link", "uri": "https://a.example/c?d=e", "name": "c", "title": "C", "description": "A file",
            "mimeType": "text/html", "size": 12, "_meta": meta, "annotations": annotations }),
        json!({ "type": "resource_link", "uri": "file:///no/kind", "name": "kind" }),
    ] {
        for content in [json!([block]), json!([block, { "type": "text", "text": "more" }])] {
            let shown = crossed(&json!({ "content": content }), "2026-07-28");
            assert_eq!(shown["content"], content);
        }
    }
}

#[test]
fn structured_content_crosses_beside_its_content() {
    for (structured, version, is_kept) in [
        (json!({ "n": 1 }), "2025-06-18", true),
        (json!({ "n": 1 }), "2026-07-28", true),
        (json!([1, "two", null]), "2026-07-28", true),
        (json!("text"), "2026-07-28", true),
        (json!([1]), "2025-06-18", false),
    ] {
        let content = json!([{ "type": "text", "text": "one" }, { "type": "image", "data": "AAAA", "mimeType": "image/png" }]);
        let shown = crossed(&json!({ "content": content, "structuredContent": structured }), version);
        let kept = (shown["structuredContent"] == structured) && shown["content"] == content;
        assert_eq!(kept, is_kept, "{version} {structured}: {shown}");
        // Where it cannot be said as it is, it is there all the same.
        assert!(is_kept || shown["structuredContent"]["artifacts"][0]["parts"][0]["data"] == structured);
        let alone = crossed(
            &json!({ "content": [{ "type": "text", "text": structured.to_string() }], "structuredContent": structured }),
            version,
        );
        assert_eq!(alone["content"], json!([{ "type": "text", "text": structured.to_string() }]));
    }
}

#[test]
fn what_a_server_says_beside_its_result_crosses_but_for_what_is_ours() {
    let meta = json!({
        "example.com/cost": 3, "rialto/taskId": "forged",
        "io.modelcontextprotocol/serverInfo": { "name": "x", "version": "1" },
    });
    let shown =
        crossed(&json!({ "content": [{ "type": "text", "text": "a" }], "_meta": meta }), "2026-07-28");
    assert_eq!(shown["_meta"]["example.com/cost"], 3);
    assert_eq!(shown["_meta"]["rialto/taskId"], "task_1");
    assert_eq!(shown["_meta"].get("io.modelcontextprotocol/serverInfo"), None);
}

#[test]
fn what_an_agent_says_beside_its_only_part_is_kept() {
    let of = |part: Part, name: Option<&str>| {
        let mut artifact = Artifact::new("out", vec![part]);
        artifact.name = name.map(str::to_owned);
        let mut task = Task { artifacts: vec![artifact], ..task(TaskState::Completed) };
        task.head.agent_url = "https://weather.example.com".into();
        let mut shown = shown(&task, "2026-07-28");
        (shown["content"][0]["_meta"]["rialto/part"].take(), shown["_meta"]["rialto/artifact"].take())
    };
    let metadata = Some(Json::from(json!({ "k": "v" })));
    let text = Part { media_type: Some("text/markdown".into()), metadata, ..Part::text("# hi") };
    let facts = json!({ "mediaType": "text/markdown", "metadata": { "k": "v" } });
    assert_eq!(of(text, Some("Report")), (facts, json!({ "artifactId": "out", "name": "Report" })));
    let image = Part {
        media_type: Some("image/png".into()),
        filename: Some("a.png".into()),
        ..Part::new(Content::Raw("AAAA".into()))
    };
    assert_eq!(of(image, None), (json!({ "filename": "a.png" }), Value::Null));
    let plain = Part { media_type: Some("application/json".into()), ..Part::data(Json::from(json!(1))) };
    assert_eq!(of(plain, None), (Value::Null, Value::Null));
}

#[test]
fn a_part_that_only_claims_to_be_a_block_is_shown_as_what_it_is() {
    for metadata in [
        json!({ "mcp": 5 }),
        json!({ "mcp": { "type": "resource" } }),
        json!({ "mcp": { "annotations": 5 } }),
    ] {
        let part = Part { metadata: Some(Json::from(metadata)), ..Part::text("words") };
        let task = Task { artifacts: vec![Artifact::new("out", vec![part])], ..task(TaskState::Completed) };
        let shown = shown(&task, "2026-07-28");
        assert_eq!(
            (&shown["content"][0]["type"], &shown["content"][0]["text"]),
            (&json!("text"), &json!("words"))
        );
    }
}
