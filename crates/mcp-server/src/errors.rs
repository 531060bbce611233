//! Encoding of failures in MCP: R2.8's codes, with `data.class` and all data.

use rialto_model::{
    failure::{Failure, FailureKind},
    json::Json,
    task::TaskState,
};
use rmcp::{
    ErrorData,
    model::{ContentBlock, ErrorCode},
};
use serde_json::{Map, Value, json};

use crate::{
    config::ToolErrors,
    tool_result::{ResultMeta, ToolResult},
};

/// Encodes a failure in the configured form.
pub(crate) fn told(failure: &Failure, tool_errors: ToolErrors) -> Result<ToolResult, ErrorData> {
    match (tool_errors, manner(failure.kind)) {
        (ToolErrors::Result, ErrorForm::Either) => Ok(answer(failure)),
        (ToolErrors::Protocol, _) | (ToolErrors::Result, ErrorForm::ErrorOnly) => Err(error(failure)),
    }
}

/// Failure as a JSON-RPC error.
pub(crate) fn error(failure: &Failure) -> ErrorData {
    // All codes fit: they are above -33000.
    let code = i32::try_from(failure.kind.rpc_code()).map_or(ErrorCode::INTERNAL_ERROR, ErrorCode);
    ErrorData::new(code, failure.message.clone(), Some(Value::Object(data(failure))))
}

/// Failure as a member of structured content.
pub(crate) fn described(failure: &Failure) -> Value {
    json!({ "code": failure.kind.rpc_code(), "message": failure.message, "data": data(failure) })
}

/// Form of a failure: a result that the model reads, or always a protocol error.
enum ErrorForm {
    Either,
    ErrorOnly,
}

const fn manner(kind: FailureKind) -> ErrorForm {
    match kind {
        // The error helps a model to make a better call.
        FailureKind::Invalid
        | FailureKind::Denied
        | FailureKind::Blocked
        | FailureKind::NotFound
        | FailureKind::Conflict
        | FailureKind::Busy
        | FailureKind::PeerTimeout
        | FailureKind::PeerUnreachable
        | FailureKind::PeerGarbled
        | FailureKind::PeerFailed
        | FailureKind::Unsupported
        | FailureKind::StoreUnavailable
        | FailureKind::Internal => ErrorForm::Either,
        // A request without a caller never reached a tool.
        FailureKind::Unauthenticated => ErrorForm::ErrorOnly,
    }
}

/// Failure as a result that the model reads.
pub(crate) fn answer(failure: &Failure) -> ToolResult {
    ToolResult {
        content: vec![ContentBlock::text(&failure.message)],
        structured: Some(Json::encode(&json!({ "error": described(failure) }))),
        is_error: true,
        marks: marks(failure),
    }
}

/// Metadata with the task id, when the failure names a task in its data.
fn marks(failure: &Failure) -> ResultMeta {
    let data = failure.data.as_ref().map_or(Value::Null, Json::value);
    let text = |name: &str| data.get(name).and_then(Value::as_str).map(str::to_owned);
    ResultMeta {
        task: text("taskId"),
        context: text("contextId"),
        state: text("state").and_then(|state| TaskState::parse(&state)).map(TaskState::as_str),
        remote_task: text("remoteTaskId"),
        guardrail: None,
        beside: None,
        server: None,
    }
}

fn data(failure: &Failure) -> Map<String, Value> {
    let mut data = match failure.data.as_ref().map(Json::value) {
        Some(Value::Object(members)) => members,
        Some(other) => Map::from_iter([("detail".to_owned(), other)]),
        None => Map::new(),
    };
    data.shift_insert(0, "class".to_owned(), json!(failure.kind.class()));
    data
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [FailureKind; 13] = [
        FailureKind::Invalid,
        FailureKind::Unauthenticated,
        FailureKind::Denied,
        FailureKind::Blocked,
        FailureKind::NotFound,
        FailureKind::Conflict,
        FailureKind::Busy,
        FailureKind::PeerTimeout,
        FailureKind::PeerUnreachable,
        FailureKind::PeerGarbled,
        FailureKind::PeerFailed,
        FailureKind::Unsupported,
        FailureKind::Internal,
    ];

    #[test]
    fn every_kind_has_a_code_and_a_class() {
        let told: Vec<_> = ALL
            .iter()
            .map(|kind| {
                let error = error(&Failure::new(*kind, "what happened"));
                let class = error.data.unwrap()["class"].as_str().unwrap().to_owned();
                format!("{} {class}", error.code.0)
            })
            .collect();
        insta::assert_snapshot!(told.join("\n"));
    }

    #[test]
    fn a_failure_brings_its_facts_along_and_keeps_its_class() {
        let data = Json::from(json!({ "taskId": "task_1", "class": "other" }));
        let error = error(&Failure::new(FailureKind::PeerTimeout, "too slow").with_data(data));
        assert_eq!(error.data, Some(json!({ "class": "RemoteA2ATimeoutError", "taskId": "task_1" })));
    }

    #[test]
    fn as_a_result_a_failure_says_the_same() {
        let failure = Failure::new(FailureKind::PeerFailed, "no such city");
        let answer = told(&failure, ToolErrors::Result).unwrap();
        assert!(answer.is_error);
        let structured = answer.structured.unwrap().value();
        assert_eq!(structured["error"]["code"], -32204);
        assert_eq!(structured["error"]["data"]["class"], "RemoteA2ATaskFailedError");
    }

    #[test]
    fn a_request_without_a_caller_is_never_a_result() {
        assert!(told(&Failure::new(FailureKind::Unauthenticated, "no caller"), ToolErrors::Result).is_err());
    }

    #[test]
    fn both_forms_carry_the_same_code_class_and_data() {
        for kind in ALL.into_iter().filter(|kind| *kind != FailureKind::Unauthenticated) {
            let failure = Failure::new(kind, "reason").with_data(Json::from(json!({ "taskId": "task_1" })));
            let error = told(&failure, ToolErrors::Protocol).unwrap_err();
            let answer = told(&failure, ToolErrors::Result).unwrap();
            let inside = answer.structured.unwrap().value()["error"].clone();
            assert_eq!(inside, json!({ "code": error.code.0, "message": error.message, "data": error.data }));
            assert_eq!(answer.content[0].as_text().unwrap().text, "reason");
        }
    }
}
