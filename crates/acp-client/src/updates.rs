//! Updates of an agent as events.
//!
//! Its answer is one artifact that grows, and is sent whole at the end. Thoughts, tools and plans are progress, with details under
//! `rialto/acp`; arguments of tools are left out, because they may be secret.

use agent_client_protocol::v1::schema::{
    ContentBlock, EmbeddedResourceResource, Plan, SessionUpdate, StopReason, ToolCall, ToolCallUpdate,
};
use rialto_model::{
    event::{Event, EventAside},
    failure::{Failure, FailureKind},
    ids::fresh,
    json::Json,
    message::{Artifact, Content, Message, Part, Role},
};
use serde_json::{Value, json};

/// Maximum bytes of a buffered thought; it is sent when it is longer, or when something else happens.
const MAX_THOUGHT_BYTES: usize = 500;

/// Maximum bytes of an answer.
const MAX_ANSWER_BYTES: usize = 16 * 1024 * 1024;

/// Output of a turn so far.
#[derive(Default)]
pub(crate) struct TurnOutput {
    /// Parts of the answer; consecutive text is joined.
    parts: Vec<Part>,
    bytes: usize,
    thought: String,
}

// === impl TurnOutput ===

impl TurnOutput {
    /// Events of an update.
    pub(crate) fn apply(&mut self, update: SessionUpdate) -> Vec<Event> {
        match update {
            SessionUpdate::AgentMessageChunk(chunk) => {
                let mut events = self.flush_thought();
                events.extend(self.append_part(part_from_block(chunk.content)));
                events
            }
            SessionUpdate::AgentThoughtChunk(chunk) => {
                if let ContentBlock::Text(text) = chunk.content {
                    self.thought.push_str(&text.text);
                }
                if self.thought.len() > MAX_THOUGHT_BYTES { self.flush_thought() } else { Vec::new() }
            }
            SessionUpdate::ToolCall(call) => self.with_thought(tool_event(&call)),
            SessionUpdate::ToolCallUpdate(update) => {
                let event = tool_update_event(&update);
                event.map_or_else(Vec::new, |event| self.with_thought(event))
            }
            SessionUpdate::Plan(plan) => self.with_thought(plan_event(&plan)),
            // Other updates are for people at an editor.
            _ => Vec::new(),
        }
    }

    /// Events at the end of a turn.
    pub(crate) fn end(mut self, ended: Result<StopReason, Failure>) -> Vec<Event> {
        let mut events = self.flush_thought();
        let is_long = self.bytes > MAX_ANSWER_BYTES;
        if !self.parts.is_empty() {
            let artifact = artifact(std::mem::take(&mut self.parts));
            events.push(Event::Artifact {
                artifact,
                append: false,
                last: true,
                aside: EventAside::default(),
            });
        }
        let failed = |message: &str| Event::failed(Failure::new(FailureKind::PeerFailed, message));
        events.push(match ended {
            _ if is_long => failed("the agent said more than 16 MiB; what came after that is lost"),
            Ok(StopReason::EndTurn) => Event::Finished { message: None, aside: EventAside::default() },
            Ok(StopReason::Cancelled) => Event::Canceled { message: None, aside: EventAside::default() },
            Ok(StopReason::Refusal) => failed("the agent refused to continue"),
            Ok(StopReason::MaxTokens) => failed("the agent stopped: it has used all tokens that it may"),
            Ok(StopReason::MaxTurnRequests) => {
                failed("the agent stopped: it has asked its model as often as it may in one turn")
            }
            Ok(other) => failed(&format!("the agent stopped for an unknown reason: {other:?}")),
            Err(failure) => Event::failed(failure),
        });
        events
    }

    fn append_part(&mut self, part: Part) -> Option<Event> {
        self.bytes += size(&part);
        if self.bytes > MAX_ANSWER_BYTES {
            return None;
        }
        let is_first = self.parts.is_empty();
        match (self.parts.last_mut().map(|last| &mut last.content), &part.content) {
            (Some(Content::Text(text)), Content::Text(more)) => text.push_str(more),
            _ => self.parts.push(part.clone()),
        }
        let artifact = artifact(vec![part]);
        Some(Event::Artifact { artifact, append: !is_first, last: false, aside: EventAside::default() })
    }

    fn with_thought(&mut self, event: Event) -> Vec<Event> {
        let mut events = self.flush_thought();
        events.push(event);
        events
    }

    fn flush_thought(&mut self) -> Vec<Event> {
        let thought = std::mem::take(&mut self.thought);
        if thought.trim().is_empty() {
            return Vec::new();
        }
        vec![progress(thought, &json!({ "kind": "thought" }))]
    }
}

fn artifact(parts: Vec<Part>) -> Artifact {
    Artifact { name: Some("response".to_owned()), ..Artifact::new("response", parts) }
}

fn tool_event(call: &ToolCall) -> Event {
    let facts = json!({
        "kind": "toolCall",
        "id": call.tool_call_id,
        "title": call.title,
        "tool": call.kind,
        "status": call.status,
    });
    progress(format!("{} ({})", call.title, status_text(&json!(call.status))), &facts)
}

fn tool_update_event(update: &ToolCallUpdate) -> Option<Event> {
    let fields = &update.fields;
    let status = fields.status?;
    let title = fields.title.clone().unwrap_or_else(|| update.tool_call_id.to_string());
    let facts = json!({
        "kind": "toolCall",
        "id": update.tool_call_id,
        "title": fields.title,
        "tool": fields.kind,
        "status": status,
    });
    Some(progress(format!("{title} ({})", status_text(&json!(status))), &facts))
}

fn plan_event(plan: &Plan) -> Event {
    let lines: Vec<String> = plan
        .entries
        .iter()
        .map(|entry| format!("- {} ({})", entry.content, status_text(&json!(entry.status))))
        .collect();
    progress(lines.join("\n"), &json!({ "kind": "plan", "entries": plan.entries }))
}

fn status_text(value: &Value) -> String {
    value.as_str().unwrap_or_default().replace('_', " ")
}

fn progress(words: String, facts: &Value) -> Event {
    let message = Message::new(fresh(), Role::Agent, vec![Part::text(words)]);
    let metadata = Some(Json::encode(&json!({ "rialto/acp": facts })));
    Event::Progress {
        working: true,
        message: Some(message),
        aside: EventAside { metadata, ..EventAside::default() },
    }
}

fn part_from_block(block: ContentBlock) -> Part {
    let file = |data: String, kind: String| Part { media_type: Some(kind), ..Part::new(Content::Raw(data)) };
    match block {
        ContentBlock::Text(text) => Part::text(text.text),
        ContentBlock::Image(image) => file(image.data, image.mime_type),
        ContentBlock::Audio(audio) => file(audio.data, audio.mime_type),
        ContentBlock::ResourceLink(link) => Part {
            filename: Some(link.name),
            media_type: link.mime_type,
            ..Part::new(Content::Url(link.uri))
        },
        ContentBlock::Resource(resource) => match resource.resource {
            EmbeddedResourceResource::TextResourceContents(text) => {
                Part { filename: Some(text.uri), media_type: text.mime_type, ..Part::text(text.text) }
            }
            EmbeddedResourceResource::BlobResourceContents(blob) => Part {
                filename: Some(blob.uri),
                media_type: blob.mime_type,
                ..Part::new(Content::Raw(blob.blob))
            },
            other => Part::data(Json::encode(&json!(other))),
        },
        other => Part::data(Json::encode(&json!(other))),
    }
}

const fn size(part: &Part) -> usize {
    match &part.content {
        Content::Text(text) | Content::Raw(text) | Content::Url(text) => text.len(),
        Content::Data(_) | Content::Unknown(_) => 0,
    }
}
