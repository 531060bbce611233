//! Result of a call, as protocol version 2026-07-28 writes it.

use rialto_model::json::Json;
use rmcp::model::ContentBlock;
use serde::{Serialize, Serializer, ser::SerializeMap};

use crate::tool_result::{ResultMeta, SERVER_IDENTITY, ServerIdentity, ToolResult};

/// Result of a finished call.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CallResult<'a> {
    result_type: &'static str,
    content: &'a [ContentBlock],
    #[serde(skip_serializing_if = "Option::is_none")]
    structured_content: Option<&'a Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    is_error: Option<bool>,
    #[serde(rename = "_meta")]
    meta: ResultMetaWriter<'a>,
}

/// `_meta` of a result: Rialto's members, then those of the upstream server.
struct ResultMetaWriter<'a>(&'a ResultMeta);

// === impl CallResult ===

impl<'a> From<&'a ToolResult> for CallResult<'a> {
    fn from(answer: &'a ToolResult) -> Self {
        Self {
            result_type: "complete",
            content: &answer.content,
            structured_content: answer.structured.as_ref(),
            is_error: answer.is_error.then_some(true),
            meta: ResultMetaWriter(&answer.marks),
        }
    }
}

// === impl ResultMetaWriter ===

impl Serialize for ResultMetaWriter<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let marks = self.0;
        let mut map = serializer.serialize_map(None)?;
        for (name, text) in [
            ("rialto/taskId", marks.task.as_deref()),
            ("rialto/contextId", marks.context.as_deref()),
            ("rialto/state", marks.state),
            ("rialto/remoteTaskId", marks.remote_task.as_deref()),
        ] {
            if let Some(text) = text {
                map.serialize_entry(name, text)?;
            }
        }
        if let Some(notice) = &marks.guardrail {
            map.serialize_entry("rialto/guardrail", notice)?;
        }
        for (name, value) in marks.beside.iter().filter_map(|beside| beside.raw().members()).flatten() {
            map.serialize_entry(&name, &value)?;
        }
        map.serialize_entry("io.modelcontextprotocol/serverInfo", &SERVER_IDENTITY as &ServerIdentity)?;
        map.end()
    }
}
