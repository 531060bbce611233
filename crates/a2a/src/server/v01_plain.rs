//! Tasks for 0.1 clients that send bare arguments: `{"skill": …, "message": {…}}`.
//!
//! They get a minimal response: the task's id, its state, and each result as text (JSON where the result is).

use rialto_a2a_codec::task::{A2aState, A2aTask, StreamEvent};
use rialto_model::{
    json::Json,
    message::{Artifact, Content, Part},
};
use serde_json::{Value, json};

/// Complete task.
pub(crate) fn task(task: &A2aTask) -> Json {
    let mut told = json!({ "id": task.id, "status": { "state": state(task.status.state) } });
    if !task.artifacts.is_empty() {
        told["artifacts"] = task.artifacts.iter().map(artifact).collect();
    }
    if let Some(message) = task.status.message.as_ref().filter(|_| task.status.state != A2aState::Completed) {
        told["status"]["message"] = json!({ "role": "agent", "parts": parts(&message.parts) });
    }
    Json::from(told)
}

/// Event of a stream.
pub(crate) fn event(event: &StreamEvent) -> Json {
    match event {
        StreamEvent::Task(it) => task(it),
        StreamEvent::Message(message) => Json::from(json!({ "parts": parts(&message.parts) })),
        StreamEvent::Status(update) => {
            let mut status = json!({ "state": state(update.status.state) });
            if let Some(message) = &update.status.message {
                status["message"] = json!({ "role": "agent", "parts": parts(&message.parts) });
            }
            Json::from(json!({ "id": update.task_id, "status": status, "final": update.is_final }))
        }
        StreamEvent::Artifact(update) => {
            Json::from(json!({ "id": update.task_id, "artifact": artifact(&update.artifact) }))
        }
    }
}

fn artifact(artifact: &Artifact) -> Value {
    json!({ "name": artifact.name.as_ref().unwrap_or(&artifact.id), "parts": parts(&artifact.parts) })
}

fn parts(parts: &[Part]) -> Value {
    parts.iter().map(part).collect()
}

fn part(part: &Part) -> Value {
    let text = |text: &str| json!({ "type": "text", "text": text });
    let file = |name: &str, content: &str| {
        let mut file = json!({ name: content });
        if let Some(filename) = &part.filename {
            file["name"] = json!(filename);
        }
        if let Some(kind) = &part.media_type {
            file["mimeType"] = json!(kind);
        }
        json!({ "type": "file", "file": file })
    };
    match &part.content {
        Content::Text(said) => text(said),
        Content::Data(data) | Content::Unknown(data) => text(data.get()),
        Content::Raw(bytes) => file("bytes", bytes),
        Content::Url(url) => file("uri", url),
    }
}

/// States that such clients know.
const fn state(state: A2aState) -> &'static str {
    match state {
        A2aState::Unspecified | A2aState::Submitted => "submitted",
        A2aState::Working => "working",
        A2aState::Completed => "completed",
        A2aState::Failed | A2aState::Rejected => "failed",
        A2aState::Canceled => "canceled",
        A2aState::InputRequired | A2aState::AuthRequired => "input-required",
    }
}
