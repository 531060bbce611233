//! The result of a tool, before any wire has seen it.

use rialto_model::{guardrail::Notice, json::Json, task::Task};
use rmcp::model::{CallToolResult, ContentBlock, MetaObject};
use serde::Serialize;
use serde_json::Value;

use crate::client::Reader;

/// What a tool answers. Structured content stays the text it came in.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Answer {
    /// What the model reads.
    pub(crate) content: Vec<ContentBlock>,
    /// What a program reads.
    pub(crate) structured: Option<Json>,
    /// Whether this tells of a failure.
    pub(crate) is_error: bool,
    /// Where the result comes from.
    pub(crate) marks: Marks,
}

/// What every result says in its `_meta`: enough to find the task again, here and at the agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Marks {
    /// Our id of the task.
    #[serde(rename = "rialto/taskId", skip_serializing_if = "Option::is_none")]
    pub(crate) task: Option<String>,
    /// The conversation, as the agent calls it.
    #[serde(rename = "rialto/contextId", skip_serializing_if = "Option::is_none")]
    pub(crate) context: Option<String>,
    /// Where the task stands.
    #[serde(rename = "rialto/state", skip_serializing_if = "Option::is_none")]
    pub(crate) state: Option<&'static str>,
    /// The agent's id of the task.
    #[serde(rename = "rialto/remoteTaskId", skip_serializing_if = "Option::is_none")]
    pub(crate) remote_task: Option<String>,
    /// What guardrails warn of.
    #[serde(rename = "rialto/guardrail", skip_serializing_if = "Option::is_none")]
    pub(crate) guardrail: Option<Box<Notice>>,
    /// What an MCP server said beside its result; always an object.
    #[serde(skip)]
    pub(crate) beside: Option<Json>,
    /// Who answers; from 2026-07-28 on every result says so.
    #[serde(rename = "io.modelcontextprotocol/serverInfo", skip_serializing_if = "Option::is_none")]
    pub(crate) server: Option<&'static Server>,
}

/// Who we are.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Server {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) version: &'static str,
}

/// Us.
pub(crate) static SERVER: Server =
    Server { name: "rialto", title: "Rialto", version: env!("CARGO_PKG_VERSION") };

// === impl Answer ===

impl Answer {
    /// An answer in words.
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self {
            content: vec![ContentBlock::text(text)],
            structured: None,
            is_error: false,
            marks: Marks::default(),
        }
    }

    /// The same answer, for programs too.
    #[must_use]
    pub(crate) fn with_structured(mut self, structured: Json) -> Self {
        self.structured = Some(structured);
        self
    }

    /// The same answer as a certain client should have it.
    ///
    /// Structured content repeats the files of a result as text. A client that shows it to its model in place of the rest would show
    /// these letters, and no picture.
    #[must_use]
    pub(crate) fn read_by(mut self, reader: Reader) -> Self {
        let is_unseen = reader.structured_first && !reader.is_promised;
        if is_unseen && self.structured.is_some() && self.content.iter().any(is_file) {
            self.structured = None;
        }
        self
    }

    /// The same for one that tells where its task stands, which is then said in words.
    #[must_use]
    pub(crate) fn standing_read_by(self, reader: Reader) -> Self {
        let had_structured = self.structured.is_some();
        let mut answer = self.read_by(reader);
        if had_structured && answer.structured.is_none() {
            let Marks { task, context, state, .. } = &answer.marks;
            let (task, state) = (task.as_deref().unwrap_or_default(), state.unwrap_or_default());
            let context = context.as_ref().map(|id| format!(", context_id {id}")).unwrap_or_default();
            answer.content.push(ContentBlock::text(format!("task_id {task}{context}, state {state}")));
        }
        answer
    }
}

/// Whether a block holds the bytes of a file.
pub(crate) const fn is_file(block: &ContentBlock) -> bool {
    matches!(block, ContentBlock::Image(_) | ContentBlock::Audio(_) | ContentBlock::Resource(_))
}

impl From<Answer> for CallToolResult {
    fn from(answer: Answer) -> Self {
        let mut result = Self::success(answer.content);
        result.is_error = answer.is_error.then_some(true);
        result.structured_content = answer.structured.map(|json| json.value());
        result.meta = as_meta(&answer.marks);
        result
    }
}

/// Marks as a result has them.
pub(crate) fn as_meta(marks: &Marks) -> Option<MetaObject> {
    match serde_json::to_value(marks) {
        Ok(Value::Object(mut all)) => {
            let beside = marks.beside.as_ref().map(Json::value);
            all.extend(beside.and_then(|beside| beside.as_object().cloned()).unwrap_or_default());
            (!all.is_empty()).then_some(MetaObject(all))
        }
        _ => None,
    }
}

// === impl Marks ===

impl Marks {
    /// The marks of a task.
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
