//! Rendering of tasks as tool results: pure functions.
//!
//! The rule is R2.6's: one data part is its data, one text part is its text, and everything else is preserved in full. Content that a
//! client's protocol version does not support is rendered with older types. Content that is too large becomes a link ([`large`]).

mod files;
mod large;
mod part_metadata;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use rialto_model::{
    a2a_json::{ArtifactJson, MessageJson, PartJson},
    ids::DispatchId,
    json::Json,
    message::{Content, Message, Part, text_of},
    name,
    task::{Task, TaskState},
};
use rmcp::model::{ContentBlock, Resource, ResourceContents};
use serde::Serialize;

use crate::{
    client_profile::{ProtocolFeatures, ResultOptions},
    errors,
    result_uri::ResultPath,
    tool_result::{ResultMeta, ToolResult, is_file},
};

/// Result of a skill's tool when its task completed or waits for input. `agent` is the name by which clients address the agent.
pub(crate) fn result(task: &Task, agent: &str, reader: ResultOptions) -> ToolResult {
    // A closing message beside artifacts is not shown.
    let with_message = task.artifacts.is_empty();
    if reader.inline > 0 && large::weight(task, with_message) > reader.inline {
        return large::answer(task, reader.inline, with_message, |light| {
            result(light, agent, reader.unbounded())
        });
    }
    let answer = if task.head.state.is_waiting() {
        ToolResult { is_error: reader.is_promised, ..question(task, agent) }
    } else {
        outcome(task, reader)
    };
    ToolResult { marks: ResultMeta { beside: part_metadata::beside(task), ..ResultMeta::of(task) }, ..answer }
}

/// Result of `send_message`, `get_task` and `cancel_task`: the output if there is any, and always the state.
pub(crate) fn status(task: &Task, agent: &str, reader: ResultOptions) -> ToolResult {
    if reader.inline > 0 && large::weight(task, true) > reader.inline {
        return large::answer(task, reader.inline, true, |light| status(light, agent, reader.unbounded()));
    }
    let state = task.head.state;
    let mut answer = match state {
        TaskState::InputRequired | TaskState::AuthRequired => question(task, agent),
        TaskState::Completed => outcome(task, reader),
        TaskState::Submitted | TaskState::Working => ToolResult::text(under_way(task)),
        TaskState::Failed | TaskState::Canceled | TaskState::Rejected => ToolResult::text(ended_badly(task)),
    };
    let has_blocks = state == TaskState::Completed;
    answer.structured = Some(Json::encode(&TaskStatusView::of(&files::referred(task, has_blocks), agent)));
    answer.marks = ResultMeta::of(task);
    answer
}

/// Result of `dispatch` and `invoke_a2a`: the complete text for the model, and all data for programs.
pub(crate) fn invoked(
    task: &Task,
    agent: &str,
    dispatch: Option<&DispatchId>,
    reader: ResultOptions,
) -> ToolResult {
    if reader.inline > 0 && large::weight(task, true) > reader.inline {
        return large::answer(task, reader.inline, true, |light| {
            invoked(light, agent, dispatch, reader.unbounded())
        });
    }
    let mut answer = status(task, agent, reader);
    if task.head.state == TaskState::Completed {
        let made =
            task.artifacts.iter().map(|artifact| text_of(&artifact.parts)).filter(|text| !text.is_empty());
        let said = || task.message.as_ref().map(|message| text_of(&message.parts)).unwrap_or_default();
        let made: Vec<String> = made.collect();
        let text = if made.is_empty() { said() } else { made.join("\n\n") };
        if !text.is_empty() {
            answer.content.retain(is_file);
            answer.content.insert(0, ContentBlock::text(text));
        }
    }
    answer.structured =
        Some(Json::encode(&DispatchedTaskView::of(&files::referred(task, false), agent, dispatch)));
    answer
}

/// Task in the structured content of `dispatch` and `invoke_a2a`.
#[derive(Serialize)]
struct DispatchedTaskView<'a> {
    task_id: &'a str,
    context_id: Option<&'a str>,
    state: &'static str,
    status_message: Option<String>,
    parts: Vec<PartJson<'a>>,
    artifacts: Vec<ArtifactJson<'a>>,
    agent: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    remote_task_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dispatch_id: Option<&'a DispatchId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<serde_json::Value>,
}

// === impl DispatchedTaskView ===

impl<'a> DispatchedTaskView<'a> {
    fn of(task: &'a Task, agent: &'a str, dispatch_id: Option<&'a DispatchId>) -> Self {
        let said = task.message.as_ref();
        let parts = said.into_iter().flat_map(|message| &message.parts);
        Self {
            task_id: task.head.id.as_str(),
            context_id: task.head.remote.context_id.as_deref(),
            state: task.head.state.as_str(),
            status_message: said.map(|message| text_of(&message.parts)).filter(|text| !text.is_empty()),
            parts: parts.map(PartJson).collect(),
            artifacts: task.artifacts.iter().map(ArtifactJson).collect(),
            agent,
            remote_task_id: task.head.remote.task_id.as_deref(),
            dispatch_id,
            error: task.failure.as_ref().map(errors::described),
        }
    }
}

/// Task in `structuredContent`.
#[derive(Serialize)]
struct TaskStatusView<'a> {
    task_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    context_id: Option<&'a str>,
    state: &'static str,
    agent: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    question: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<MessageJson<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    artifacts: Vec<ArtifactJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<serde_json::Value>,
}

// === impl TaskStatusView ===

impl<'a> TaskStatusView<'a> {
    fn of(task: &'a Task, agent: &'a str) -> Self {
        let is_waiting = task.head.state.is_waiting();
        Self {
            task_id: task.head.id.as_str(),
            context_id: task.head.remote.context_id.as_deref(),
            state: task.head.state.as_str(),
            agent,
            question: is_waiting.then(|| words(task)),
            message: task.message.as_ref().map(MessageJson),
            artifacts: task.artifacts.iter().map(ArtifactJson).collect(),
            error: task.failure.as_ref().map(errors::described),
        }
    }
}

/// Question of a waiting task, with instructions for answering it.
///
/// The fallback that every client supports. Clients with elicitation get a question instead (`asking`).
fn question(task: &Task, agent: &str) -> ToolResult {
    let id = &task.head.id;
    let how = if task.head.state == TaskState::AuthRequired {
        format!(
            "The agent waits for a login. Do what it says, then call send_message with agent \"{agent}\", \
             task_id \"{id}\" and a message that says so."
        )
    } else {
        format!(
            "The agent waits for an answer. To go on, call send_message with agent \"{agent}\", task_id \"{id}\" \
             and the answer as message."
        )
    };
    let standing = Json::encode(&TaskStatusView::of(&files::referred(task, false), agent));
    ToolResult::text(format!("{}\n\n{how}", words(task))).with_structured(standing)
}

/// Output of a finished task.
fn outcome(task: &Task, reader: ResultOptions) -> ToolResult {
    let fluency = reader.fluency;
    // Only a part without a name needs a path.
    let id = task.head.id.as_str();
    match (task.artifacts.as_slice(), &task.message) {
        ([artifact], _) if let [part] = artifact.parts.as_slice() => {
            single(part, || ResultPath::Part(0, 0).in_task(id), fluency)
        }
        // A tool of an MCP server returned this result.
        ([artifact], _)
            if let [first, rest @ ..] = artifact.parts.as_slice()
                && let Some(data) = part_metadata::structured(first, fluency) =>
        {
            let content = blocks(rest, id, |part| ResultPath::Part(0, part + 1), fluency).collect();
            ToolResult {
                content,
                structured: Some(data.clone()),
                is_error: false,
                marks: ResultMeta::default(),
            }
        }
        ([], None) => ToolResult::text("the agent finished without a result"),
        ([], Some(message)) => spoken(task, message, fluency),
        (artifacts, _) => {
            let content = artifacts.iter().enumerate().flat_map(|(at, artifact)| {
                blocks(&artifact.parts, id, move |part| ResultPath::Part(at, part), fluency)
            });
            let content = content.collect();
            if reader.is_upstream {
                // The server sent no structured content, so there is none.
                return ToolResult {
                    content,
                    structured: None,
                    is_error: false,
                    marks: ResultMeta::default(),
                };
            }
            let light = files::referred(task, true);
            several(content, &ArtifactsView { artifacts: light.artifacts.iter().map(ArtifactJson).collect() })
        }
    }
}

fn spoken(task: &Task, message: &Message, fluency: ProtocolFeatures) -> ToolResult {
    let id = task.head.id.as_str();
    match message.parts.as_slice() {
        [] => ToolResult::text("the agent answered with an empty message"),
        [part] => single(part, || ResultPath::Said(0).in_task(id), fluency),
        parts => {
            let light = files::referred(task, true);
            let message = MessageJson(light.message.as_ref().unwrap_or(message));
            several(blocks(parts, id, ResultPath::Said, fluency).collect(), &MessagePartsView { message })
        }
    }
}

fn single(part: &Part, place: impl FnOnce() -> String, fluency: ProtocolFeatures) -> ToolResult {
    let content = vec![part_metadata::with_rest(block(part, place, fluency), part)];
    let structured = match &part.content {
        // Before 2026-07-28 structured content had to be an object.
        Content::Data(data) if fluency.modern || data.is_object() => Some(data.clone()),
        _ => None,
    };
    ToolResult { content, structured, is_error: false, marks: ResultMeta::default() }
}

/// Several artifacts, or one with several parts, as structured content.
#[derive(Serialize)]
struct ArtifactsView<'a> {
    artifacts: Vec<ArtifactJson<'a>>,
}

/// Message with several parts as structured content.
#[derive(Serialize)]
struct MessagePartsView<'a> {
    message: MessageJson<'a>,
}

fn several(content: Vec<ContentBlock>, whole: &impl Serialize) -> ToolResult {
    ToolResult {
        content,
        structured: Some(Json::encode(whole)),
        is_error: false,
        marks: ResultMeta::default(),
    }
}

fn blocks(
    parts: &[Part],
    task: &str,
    place: impl Fn(usize) -> ResultPath,
    fluency: ProtocolFeatures,
) -> impl Iterator<Item = ContentBlock> {
    parts.iter().enumerate().map(move |(at, part)| block(part, || place(at).in_task(task), fluency))
}

/// One part as a content block. `place` is used as its name if one is required and it has none.
fn block(part: &Part, place: impl FnOnce() -> String, fluency: ProtocolFeatures) -> ContentBlock {
    if let Some(block) =
        part.metadata.as_ref().and_then(|metadata| part_metadata::as_it_was(part, metadata, fluency))
    {
        return block;
    }
    match &part.content {
        Content::Text(text) => ContentBlock::text(text),
        Content::Data(json) | Content::Unknown(json) => ContentBlock::text(json.get()),
        Content::Raw(base64) => file(part, base64, &place(), fluency),
        Content::Url(url) => link(part, url, fluency),
    }
}

fn file(part: &Part, base64: &str, place: &str, fluency: ProtocolFeatures) -> ContentBlock {
    let kind = part.media_type.as_deref().unwrap_or("application/octet-stream");
    if kind.starts_with("image/") {
        return ContentBlock::image(base64, kind);
    }
    if kind.starts_with("audio/") && fluency.audio {
        return ContentBlock::audio(base64, kind);
    }
    let uri = part
        .filename
        .as_ref()
        .map_or_else(|| place.to_owned(), |name| format!("{place}/{}", name::in_path(name)));
    let contents = match plain_text(kind, base64) {
        Some(text) => ResourceContents::text(text, uri),
        None => ResourceContents::blob(base64, uri),
    };
    ContentBlock::resource(contents.with_mime_type(kind))
}

fn plain_text(kind: &str, base64: &str) -> Option<String> {
    if !kind.starts_with("text/") {
        return None;
    }
    String::from_utf8(BASE64_STANDARD.decode(base64).ok()?).ok()
}

fn link(part: &Part, url: &str, fluency: ProtocolFeatures) -> ContentBlock {
    let last = url.split(['?', '#']).next().and_then(|path| path.rsplit('/').find(|piece| !piece.is_empty()));
    let name = part.filename.as_deref().or(last).unwrap_or(url);
    if !fluency.links {
        return ContentBlock::text(format!("{name}: {url}"));
    }
    let resource = Resource::new(url, name);
    ContentBlock::ResourceLink(match &part.media_type {
        Some(kind) => resource.with_mime_type(kind),
        None => resource,
    })
}

/// Text of the agent's message; its data as JSON when it has no text.
pub(crate) fn words(task: &Task) -> String {
    let Some(message) = &task.message else { return "The agent did not say what it needs.".to_owned() };
    let text = message.text();
    if !text.is_empty() {
        return text;
    }
    let data = message.parts.iter().filter_map(|part| match &part.content {
        Content::Data(json) | Content::Unknown(json) => Some(json.get()),
        Content::Url(url) => Some(url.as_str()),
        Content::Text(_) | Content::Raw(_) => None,
    });
    data.collect::<Vec<_>>().join("\n")
}

fn under_way(task: &Task) -> String {
    let so_far = task.message.as_ref().map(|message| text_of(&message.parts)).filter(|text| !text.is_empty());
    let so_far = so_far.map(|text| format!(": {text}")).unwrap_or_default();
    let (id, state) = (&task.head.id, task.head.state);
    format!("task {id} is {state}{so_far}\n\nCall get_task with task_id \"{id}\" to fetch its result later.")
}

fn ended_badly(task: &Task) -> String {
    let why = task.failure.as_ref().map(|failure| format!(": {}", failure.message)).unwrap_or_default();
    format!("task {} is {}{why}", task.head.id, task.head.state)
}

#[cfg(test)]
mod tests;
