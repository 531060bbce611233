//! Result of a tool call, before it is encoded for a transport.

use rialto_model::{guardrail::GuardrailNotice, json::Json, task::Task};
use rmcp::model::{CallToolResult, ContentBlock, MetaObject};
use serde::Serialize;
use serde_json::Value;

use crate::client_profile::ResultOptions;

/// Result of a tool call. Structured content stays the JSON text it was received as.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ToolResult {
    /// Content blocks, read by the model.
    pub(crate) content: Vec<ContentBlock>,
    /// Structured content, read by programs.
    pub(crate) structured: Option<Json>,
    /// True when the call failed.
    pub(crate) is_error: bool,
    /// Metadata that identifies the task and the server.
    pub(crate) marks: ResultMeta,
}

/// `_meta` of a result: enough to find the task again, here and at the agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct ResultMeta {
    /// Rialto's id of the task.
    #[serde(rename = "rialto/taskId", skip_serializing_if = "Option::is_none")]
    pub(crate) task: Option<String>,
    /// The agent's id of the conversation.
    #[serde(rename = "rialto/contextId", skip_serializing_if = "Option::is_none")]
    pub(crate) context: Option<String>,
    /// State of the task.
    #[serde(rename = "rialto/state", skip_serializing_if = "Option::is_none")]
    pub(crate) state: Option<&'static str>,
    /// The agent's id of the task.
    #[serde(rename = "rialto/remoteTaskId", skip_serializing_if = "Option::is_none")]
    pub(crate) remote_task: Option<String>,
    /// Guardrail findings that only warn.
    #[serde(rename = "rialto/guardrail", skip_serializing_if = "Option::is_none")]
    pub(crate) guardrail: Option<Box<GuardrailNotice>>,
    /// `_meta` that an upstream MCP server sent with its result; always an object.
    #[serde(skip)]
    pub(crate) beside: Option<Json>,
    /// Identity of this server; required on every result since 2026-07-28.
    #[serde(rename = "io.modelcontextprotocol/serverInfo", skip_serializing_if = "Option::is_none")]
    pub(crate) server: Option<&'static ServerIdentity>,
}

/// Name, title and version of this server, as clients see it.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct ServerIdentity {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) version: &'static str,
}

/// Identity of Rialto.
pub(crate) static SERVER_IDENTITY: ServerIdentity =
    ServerIdentity { name: "rialto", title: "Rialto", version: env!("CARGO_PKG_VERSION") };

// === impl ToolResult ===

impl ToolResult {
    /// Result that is only text.
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self {
            content: vec![ContentBlock::text(text)],
            structured: None,
            is_error: false,
            marks: ResultMeta::default(),
        }
    }

    /// Adds structured content for programs.
    #[must_use]
    pub(crate) fn with_structured(mut self, structured: Json) -> Self {
        self.structured = Some(structured);
        self
    }

    /// Adapts the result to one client's options.
    ///
    /// Structured content repeats the files of a result as base64 text. A client that shows its model structured content in place of the
    /// content blocks would show that text instead of the picture.
    #[must_use]
    pub(crate) fn read_by(mut self, reader: ResultOptions) -> Self {
        let is_unseen = reader.structured_first && !reader.is_promised;
        if is_unseen && self.structured.is_some() && self.content.iter().any(is_file) {
            self.structured = None;
        }
        self
    }

    /// Adapts a result that reports the state of a task; the state is then in the text too.
    #[must_use]
    pub(crate) fn standing_read_by(self, reader: ResultOptions) -> Self {
        let had_structured = self.structured.is_some();
        let mut answer = self.read_by(reader);
        if had_structured && answer.structured.is_none() {
            let ResultMeta { task, context, state, .. } = &answer.marks;
            let (task, state) = (task.as_deref().unwrap_or_default(), state.unwrap_or_default());
            let context = context.as_ref().map(|id| format!(", context_id {id}")).unwrap_or_default();
            answer.content.push(ContentBlock::text(format!("task_id {task}{context}, state {state}")));
        }
        answer
    }
}

/// True for a block that holds the bytes of a file.
pub(crate) const fn is_file(block: &ContentBlock) -> bool {
    matches!(block, ContentBlock::Image(_) | ContentBlock::Audio(_) | ContentBlock::Resource(_))
}

impl From<ToolResult> for CallToolResult {
    fn from(answer: ToolResult) -> Self {
        let mut result = Self::success(answer.content);
        result.is_error = answer.is_error.then_some(true);
        result.structured_content = answer.structured.map(|json| json.value());
        result.meta = as_meta(&answer.marks);
        result
    }
}

/// Encodes the metadata as MCP's `_meta`.
pub(crate) fn as_meta(marks: &ResultMeta) -> Option<MetaObject> {
    match serde_json::to_value(marks) {
        Ok(Value::Object(mut all)) => {
            let beside = marks.beside.as_ref().map(Json::value);
            all.extend(beside.and_then(|beside| beside.as_object().cloned()).unwrap_or_default());
            (!all.is_empty()).then_some(MetaObject(all))
        }
        _ => None,
    }
}

// === impl ResultMeta ===

impl ResultMeta {
    /// Metadata of a task's result.
    pub(crate) fn of(task: &Task) -> Self {
        Self {
            task: Some(task.head.id.to_string()),
            context: task.head.remote.context_id.clone(),
            state: Some(task.head.state.as_str()),
            remote_task: task.head.remote.task_id.clone(),
            guardrail: task.guardrail().map(Box::new),
            beside: None,
            server: None,
        }
    }
}
