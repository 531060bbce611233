//! How a failure is told in MCP: R2.8's codes, with `data.class` and all facts beside it.

use rialto_model::{
    failure::{Failure, Kind},
    json::Json,
};
use rmcp::{
    ErrorData,
    model::{ContentBlock, ErrorCode},
};
use serde_json::{Map, Value, json};

use crate::{
    answer::{Answer, Marks},
    config::ToolErrors,
};

/// Tells a failure the way that was configured.
pub(crate) fn told(failure: &Failure, tool_errors: ToolErrors) -> Result<Answer, ErrorData> {
    match (tool_errors, manner(failure.kind)) {
        (ToolErrors::Result, Manner::Either) => Ok(answer(failure)),
        (ToolErrors::Error, _) | (ToolErrors::Result, Manner::ErrorOnly) => Err(error(failure)),
    }
}

/// A failure as a JSON-RPC error.
pub(crate) fn error(failure: &Failure) -> ErrorData {
    // Every code of ours fits: they are all above -33000.
    let code = i32::try_from(failure.kind.rpc_code()).map_or(ErrorCode::INTERNAL_ERROR, ErrorCode);
    ErrorData::new(code, failure.message.clone(), Some(Value::Object(data(failure))))
}

/// A failure as a member of structured content.
pub(crate) fn described(failure: &Failure) -> Value {
    json!({ "code": failure.kind.rpc_code(), "message": failure.message, "data": data(failure) })
}

/// Whether a kind of failure may be told as a result that the model reads.
enum Manner {
    Either,
    ErrorOnly,
}

const fn manner(kind: Kind) -> Manner {
    match kind {
        // A model that reads what was wrong with its call can make a better one.
        Kind::Invalid
        | Kind::Denied
        | Kind::NotFound
        | Kind::Conflict
        | Kind::Busy
        | Kind::PeerTimeout
        | Kind::PeerUnreachable
        | Kind::PeerGarbled
        | Kind::PeerFailed
        | Kind::Unsupported => Manner::Either,
        // These are not about the tool at all.
        Kind::Unauthenticated | Kind::Internal => Manner::ErrorOnly,
    }
}

fn answer(failure: &Failure) -> Answer {
    Answer {
        content: vec![ContentBlock::text(&failure.message)],
        structured: Some(Json::of(&json!({ "error": described(failure) }))),
        is_error: true,
        marks: Marks::default(),
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
