use proptest::prelude::*;
use rialto_model::{guardrail::GuardrailNotice, json::Json};
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::{Value, json};

use super::*;

use crate::tool_result::ResultMeta;

fn any_block() -> impl Strategy<Value = ContentBlock> {
    prop_oneof![
        ".{0,40}".prop_map(ContentBlock::text),
        ".{0,40}".prop_map(|text| ContentBlock::text(json!({ "said": text, "n": [1.0, null] }).to_string())),
        (".{0,10}", ".{0,10}").prop_map(|(data, kind)| ContentBlock::image(data, kind)),
    ]
}

fn any_answer() -> impl Strategy<Value = ToolResult> {
    let maybe = || prop::option::of(".{0,20}");
    let marks =
        (maybe(), maybe(), any::<bool>(), maybe()).prop_map(|(task, context, is_said, remote_task)| {
            ResultMeta {
                task,
                context,
                state: is_said.then_some("completed"),
                remote_task,
                guardrail: is_said.then(|| {
                    Box::new(GuardrailNotice { checks: vec!["pii".into()], kinds: vec!["a\"b".into()] })
                }),
                beside: None,
                server: None,
            }
        });
    let content = prop::collection::vec(any_block(), 0..3);
    (content, maybe(), any::<bool>(), marks).prop_map(|(content, structured, is_error, marks)| {
        let structured = structured.map(|text| Json::encode(&json!({ "text": text })));
        ToolResult { content, structured, is_error, marks }
    })
}

proptest! {
    #[test]
    fn an_answer_is_written_as_rmcp_would_write_it(answer in any_answer(), id in any::<i64>()) {
        let id = Json::encode(&id);
        let written: Value = serde_json::from_slice(&called(id.raw(), &Ok(answer.clone()))).unwrap();
        let marks = ResultMeta { server: Some(&SERVER_IDENTITY), ..answer.marks.clone() };
        let expected = CallToolResult::from(ToolResult { marks, ..answer });
        prop_assert_eq!(&written["id"], &id.value());
        prop_assert_eq!(serde_json::from_value::<CallToolResult>(written["result"].clone()).unwrap(), expected);
        prop_assert_eq!(&written["result"]["resultType"], "complete");
    }
}

#[test]
fn what_a_server_said_beside_its_result_stands_among_our_marks() {
    let beside = Some(Json::parse(r#"{"example.com/\"x\"": [1.0], "y": null}"#).unwrap());
    let marks = ResultMeta { task: Some("task_1".into()), beside, ..ResultMeta::default() };
    let answer = ToolResult { marks, ..ToolResult::text("a") };
    let written: Value =
        serde_json::from_slice(&called(Json::encode(&1).raw(), &Ok(answer.clone()))).unwrap();
    let expected =
        crate::tool_result::as_meta(&ResultMeta { server: Some(&SERVER_IDENTITY), ..answer.marks });
    assert_eq!(written["result"]["_meta"], json!(expected));
    assert_eq!(written["result"]["_meta"]["example.com/\"x\""], json!([1.0]));
}

/// A good request, changed.
fn request(change: impl FnOnce(&mut Value)) -> String {
    let mut request = json!({
        "jsonrpc": "2.0",
        "id": 7,
        "method": "tools/call",
        "params": {
            "name": "a.b",
            "arguments": { "n": 1 },
            "cursor": null,
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
                "io.modelcontextprotocol/clientInfo": { "name": "tester", "version": "1" },
                "progressToken": "p",
            },
        },
    });
    change(&mut request);
    request.to_string()
}

fn is_taken(text: &str) -> bool {
    FastRequest::read(RawJson::parse(text).unwrap()).is_some()
}

#[test]
fn a_request_is_read_with_all_that_matters() {
    let text = request(|request| request["params"]["name"] = json!("a.\"b"));
    let asked = FastRequest::read(RawJson::parse(&text).unwrap()).unwrap();
    assert_eq!((asked.id().get(), &*asked.method, asked.client()), ("7", "tools/call", "tester"));
    assert_eq!(asked.params.name.as_deref(), Some("a.\"b"));
    assert_eq!(asked.params.arguments.map(RawJson::get), Some(r#"{"n":1}"#));
    assert_eq!(asked.params.cursor, None);
    assert_eq!(asked.params.meta.version, "2026-07-28");
    assert_eq!(asked.progress_token().map(RawJson::get), Some(r#""p""#));
}

#[test]
fn what_may_be_missing_may_be_null_and_what_nobody_knows_may_be_there() {
    assert!(is_taken(&request(|request| {
        request["more"] = json!([1]);
        let params = &mut request["params"];
        (params["name"], params["arguments"], params["cursor"]) = (Value::Null, Value::Null, Value::Null);
        params["_meta"]["progressToken"] = Value::Null;
        params["_meta"]["io.modelcontextprotocol/clientInfo"] = Value::Null;
        params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({ "elicitation": {} });
    })));
}

#[test]
fn whatever_is_wrong_with_a_request_it_is_left_to_others() {
    let wrong: [(&str, Value); 14] = [
        ("/jsonrpc", json!("1.0")),
        ("/jsonrpc", json!(2)),
        ("/id", Value::Null),
        ("/id", json!(1.5)),
        ("/method", json!(["tools/call"])),
        ("/params", json!([])),
        ("/params/name", json!(1)),
        ("/params/arguments", json!([1])),
        ("/params/cursor", json!({})),
        ("/params/_meta", Value::Null),
        ("/params/_meta/io.modelcontextprotocol~1protocolVersion", json!(1)),
        ("/params/_meta/io.modelcontextprotocol~1clientCapabilities", json!(1)),
        ("/params/_meta/io.modelcontextprotocol~1clientInfo", json!({ "name": "tester" })),
        ("/params/_meta/progressToken", json!({})),
    ];
    for (place, value) in wrong {
        let text = request(|request| *request.pointer_mut(place).unwrap() = value);
        assert!(!is_taken(&text), "{text}");
    }
    for missing in ["jsonrpc", "id", "method", "params"] {
        let text = request(|request| drop(request.as_object_mut().unwrap().shift_remove(missing)));
        assert!(!is_taken(&text), "{text}");
    }
    let twice = request(|_| {}).replacen("\"id\":7", "\"id\":7,\"id\":8", 1);
    assert!(!is_taken(&twice), "{twice}");
    assert!(!is_taken("[]") && !is_taken("1"));
}
