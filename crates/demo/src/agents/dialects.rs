//! Dialects of the A2A versions that the sample agents speak.

use serde_json::{Map, Value, json};

use super::tasks::{SampleTask, SampleTaskState, SkillOutput};

/// A way to spell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SampleDialect {
    /// 1.0: capitals, and choices wrapped in their names.
    V10,
    /// 0.3 and 0.2: objects have a `kind`.
    V03,
    /// 0.1: parts have a `type`, the client chooses the task id.
    V01,
}

/// Operations of an agent.
#[derive(Clone, Copy, Debug)]
pub(super) enum AgentOperation {
    Send,
    Stream,
    Get,
    Cancel,
    Subscribe,
}

/// A JSON-RPC error.
#[derive(Debug)]
pub(super) struct SampleRpcError {
    pub(super) code: i32,
    pub(super) message: String,
}

// === impl SampleRpcError ===

impl SampleRpcError {
    pub(super) fn new(code: i32, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

// === impl Spelling: what comes in ===

impl SampleDialect {
    pub(super) fn operation(self, method: &str) -> Option<AgentOperation> {
        match (self, method) {
            (Self::V10, "SendMessage") | (Self::V03, "message/send") | (Self::V01, "tasks/send") => {
                Some(AgentOperation::Send)
            }
            (Self::V10, "SendStreamingMessage") | (Self::V03, "message/stream") => {
                Some(AgentOperation::Stream)
            }
            (Self::V10, "GetTask") | (Self::V03 | Self::V01, "tasks/get") => Some(AgentOperation::Get),
            (Self::V10, "CancelTask") | (Self::V03 | Self::V01, "tasks/cancel") => {
                Some(AgentOperation::Cancel)
            }
            (Self::V10, "SubscribeToTask") | (Self::V03, "tasks/resubscribe") => {
                Some(AgentOperation::Subscribe)
            }
            _ => None,
        }
    }

    /// 1.0 wants its version named; to the others the header means nothing.
    pub(super) fn check_version(self, header: Option<&str>) -> Result<(), SampleRpcError> {
        match (self, header) {
            (Self::V03 | Self::V01, _) => Ok(()),
            (Self::V10, Some(version)) if version.starts_with("1.") => Ok(()),
            (Self::V10, version) => Err(SampleRpcError::new(
                -32009,
                format!("A2A version {} is not supported", version.unwrap_or("0.3")),
            )),
        }
    }

    /// The skill the message names.
    pub(super) fn skill(self, params: &Value) -> Option<&str> {
        let inside = (self != Self::V10).then(|| params.pointer("/message/skill/skillId")).flatten();
        let skill = inside.or_else(|| params.pointer("/metadata/skillId"));
        skill.or_else(|| params.pointer("/message/metadata/skillId"))?.as_str()
    }

    /// Arguments in the message: the members of its data, and its text as `text`.
    pub(super) fn arguments(self, params: &Value) -> Map<String, Value> {
        let mut arguments = Map::new();
        for part in params.pointer("/message/parts").and_then(Value::as_array).into_iter().flatten() {
            arguments.extend(part.get("data").and_then(Value::as_object).cloned().unwrap_or_default());
            arguments.extend(part.get("text").map(|text| ("text".to_owned(), text.clone())));
        }
        arguments
    }

    /// The name the client gave the task: only 0.1's may.
    pub(super) fn task_id(self, params: &Value) -> Option<String> {
        let id = (self == Self::V01).then(|| params.get("id")).flatten()?;
        id.as_str().map(str::to_owned)
    }

    pub(super) fn context_id(self, params: &Value) -> Option<String> {
        let context = match self {
            Self::V10 | Self::V03 => params.pointer("/message/contextId"),
            Self::V01 => params.get("sessionId"),
        };
        context?.as_str().map(str::to_owned)
    }

    pub(super) fn wants_to_wait(self, params: &Value) -> bool {
        let flag = |path| params.pointer(path).and_then(Value::as_bool);
        match self {
            Self::V10 => flag("/configuration/returnImmediately") != Some(true),
            Self::V03 => flag("/configuration/blocking") != Some(false),
            Self::V01 => true,
        }
    }

    /// 0.1 servers answer what they do not understand with HTTP 400; later ones with 200.
    pub(super) const fn refuses_with_400(self, fault: &SampleRpcError) -> bool {
        matches!(self, Self::V01) && matches!(fault.code, -32700 | -32600 | -32601)
    }
}

// === impl Spelling: what goes out ===

impl SampleDialect {
    /// The answer to a message.
    pub(super) fn message_result(self, work: &SampleTask) -> Value {
        match self {
            Self::V10 => json!({"task": self.task(work)}),
            Self::V03 | Self::V01 => self.task(work),
        }
    }

    pub(super) fn task(self, work: &SampleTask) -> Value {
        self.snapshot(work, work.state(), work.pieces_done())
    }

    /// First event of a stream: the task with the pieces already sent. Its end is always in the last event.
    pub(super) fn first_event(self, work: &SampleTask, told: usize) -> Option<Value> {
        let task = self.snapshot(work, SampleTaskState::Working, told);
        match self {
            Self::V10 => Some(json!({"task": task})),
            Self::V03 => Some(task),
            Self::V01 => None,
        }
    }

    /// Events for one piece.
    pub(super) fn piece_events(self, work: &SampleTask, piece: usize) -> Vec<Value> {
        let (number, all) = (piece + 1, work.pieces());
        let words = (all > 1).then(|| format!("part {number} of {all}"));
        let progress = words.map(|words| self.status_update(work, SampleTaskState::Working, Some(&words)));
        let part = part_of(&work.outcome, piece).map(|content| self.artifact(work, &[self.part(&content)]));
        let update = part.map(|artifact| {
            self.event(
                "artifactUpdate",
                "artifact-update",
                json!({
                    "taskId": work.id,
                    "contextId": work.context,
                    "artifact": artifact,
                    "append": piece > 0,
                    "lastChunk": number == all,
                }),
            )
        });
        progress.into_iter().chain(update).collect()
    }

    /// The last event of a stream.
    pub(super) fn last_event(self, work: &SampleTask) -> Value {
        self.status_update(work, work.state(), last_words(work))
    }

    fn snapshot(self, work: &SampleTask, stand: SampleTaskState, pieces: usize) -> Value {
        let words = if stand == SampleTaskState::Working { None } else { last_words(work) };
        let parts = (0..pieces).filter_map(|piece| part_of(&work.outcome, piece));
        let parts: Vec<_> = parts.map(|content| self.part(&content)).collect();
        let mut task = json!({"id": work.id, "status": self.status(work, stand, words)});
        set(&mut task, if self == Self::V01 { "sessionId" } else { "contextId" }, json!(work.context));
        if self == Self::V03 {
            set(&mut task, "kind", json!("task"));
        }
        if !parts.is_empty() {
            set(&mut task, "artifacts", json!([self.artifact(work, &parts)]));
        }
        task
    }

    fn artifact(self, work: &SampleTask, parts: &[Value]) -> Value {
        match self {
            Self::V10 | Self::V03 => {
                json!({"artifactId": format!("{}-result", work.id), "name": "result", "parts": parts})
            }
            Self::V01 => json!({"name": "result", "index": 0, "parts": parts}),
        }
    }

    fn status_update(self, work: &SampleTask, stand: SampleTaskState, words: Option<&str>) -> Value {
        let mut update = json!({
            "taskId": work.id,
            "contextId": work.context,
            "status": self.status(work, stand, words),
        });
        if self == Self::V03 {
            set(&mut update, "final", json!(stand != SampleTaskState::Working));
        }
        self.event("statusUpdate", "status-update", update)
    }

    fn status(self, work: &SampleTask, stand: SampleTaskState, words: Option<&str>) -> Value {
        let state = match (self, stand) {
            (Self::V10, SampleTaskState::Working) => "TASK_STATE_WORKING",
            (Self::V10, SampleTaskState::Completed) => "TASK_STATE_COMPLETED",
            (Self::V10, SampleTaskState::Failed) => "TASK_STATE_FAILED",
            (Self::V10, SampleTaskState::Canceled) => "TASK_STATE_CANCELED",
            (_, SampleTaskState::Working) => "working",
            (_, SampleTaskState::Completed) => "completed",
            (_, SampleTaskState::Failed) => "failed",
            (_, SampleTaskState::Canceled) => "canceled",
        };
        let mut status = json!({"state": state});
        if let Some(words) = words {
            set(&mut status, "message", self.message(work, words));
        }
        status
    }

    fn message(self, work: &SampleTask, words: &str) -> Value {
        let parts = json!([self.part(&SkillOutput::Text(words.to_owned()))]);
        let id = format!("{}-message", work.id);
        match self {
            Self::V10 => json!({"messageId": id, "role": "ROLE_AGENT", "parts": parts}),
            Self::V03 => json!({"kind": "message", "messageId": id, "role": "agent", "parts": parts}),
            Self::V01 => json!({"role": "agent", "parts": parts}),
        }
    }

    fn part(self, content: &SkillOutput) -> Value {
        let (kind, value) = match content {
            SkillOutput::Data(data) => ("data", data.clone()),
            SkillOutput::Text(text) => ("text", json!(text)),
            SkillOutput::Story(pieces) => ("text", json!(pieces.concat())),
            SkillOutput::Failure(why) => ("text", json!(why)),
        };
        match self {
            Self::V10 => json!({kind: value}),
            Self::V03 => json!({"kind": kind, kind: value}),
            Self::V01 => json!({"type": kind, kind: value}),
        }
    }

    /// Event of a stream, with its name or its kind.
    fn event(self, name: &str, kind: &str, mut body: Value) -> Value {
        if self == Self::V10 {
            return json!({name: body});
        }
        set(&mut body, "kind", json!(kind));
        body
    }
}

fn part_of(outcome: &SkillOutput, piece: usize) -> Option<SkillOutput> {
    match outcome {
        SkillOutput::Data(_) | SkillOutput::Text(_) => (piece == 0).then(|| outcome.clone()),
        SkillOutput::Story(pieces) => pieces.get(piece).cloned().map(SkillOutput::Text),
        SkillOutput::Failure(_) => None,
    }
}

fn last_words(work: &SampleTask) -> Option<&str> {
    match work.outcome {
        SkillOutput::Failure(why) => Some(why),
        _ => None,
    }
}

fn set(object: &mut Value, name: &str, value: Value) {
    if let Some(members) = object.as_object_mut() {
        members.insert(name.to_owned(), value);
    }
}
