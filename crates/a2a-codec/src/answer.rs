//! Codec of payloads: a JSON-RPC result, a REST body, the data of a stream event or of a webhook call.
//!
//! Each `encode_…` returns a serializable value, so that it is written directly into its envelope; `.text()` returns the JSON.

use rialto_model::{json::RawJson, message::Message};

pub use crate::object::OnWire;
use crate::{
    codec::{event, message, push, task},
    invalid::InvalidDocument,
    members,
    request::{PushConfig, PushList},
    task::{A2aTask, SendAnswer, StreamEvent, TaskList},
    wire::Wire,
};

/// Parses a body as one JSON value.
pub fn parse(body: &[u8]) -> Result<RawJson<'_>, InvalidDocument> {
    members::parse(body)
}

/// Decodes the response to a message.
pub fn decode_send(wire: Wire, raw: RawJson<'_>) -> Result<SendAnswer, InvalidDocument> {
    event::send_answer(wire, raw)
}

/// Decodes a task.
pub fn decode_task(wire: Wire, raw: RawJson<'_>) -> Result<A2aTask, InvalidDocument> {
    match event::send_answer(wire, raw)? {
        SendAnswer::Task(task) => Ok(task),
        SendAnswer::Message(_) => Err(InvalidDocument::new("a task", "a message")),
    }
}

/// Decodes a message.
pub fn decode_message(wire: Wire, raw: RawJson<'_>) -> Result<Message, InvalidDocument> {
    message::decode(wire, raw)
}

/// Decodes one event of a stream, or the body of a webhook call.
pub fn decode_stream_event(wire: Wire, raw: RawJson<'_>) -> Result<StreamEvent, InvalidDocument> {
    event::decode(wire, raw)
}

/// Decodes a page of tasks.
pub fn decode_task_list(wire: Wire, raw: RawJson<'_>) -> Result<TaskList, InvalidDocument> {
    task::list(wire, raw)
}

/// Decodes a webhook.
pub fn decode_push(wire: Wire, raw: RawJson<'_>) -> Result<PushConfig, InvalidDocument> {
    push::decode(wire, raw)
}

/// Decodes a page of webhooks.
pub fn decode_push_list(wire: Wire, raw: RawJson<'_>) -> Result<PushList, InvalidDocument> {
    push::listed(wire, raw)
}

/// Encodes the response to a message.
pub const fn encode_send(wire: Wire, answer: &SendAnswer) -> OnWire<'_, SendAnswer> {
    OnWire(wire, answer)
}

/// Encodes a task.
pub const fn encode_task(wire: Wire, task: &A2aTask) -> OnWire<'_, A2aTask> {
    OnWire(wire, task)
}

/// Encodes a message.
pub const fn encode_message(wire: Wire, message: &Message) -> OnWire<'_, Message> {
    OnWire(wire, message)
}

/// Encodes one event of a stream.
pub const fn encode_stream_event(wire: Wire, event: &StreamEvent) -> OnWire<'_, StreamEvent> {
    OnWire(wire, event)
}

/// Encodes a page of tasks.
pub const fn encode_task_list(wire: Wire, list: &TaskList) -> OnWire<'_, TaskList> {
    OnWire(wire, list)
}

/// Encodes a webhook.
pub const fn encode_push(wire: Wire, push: &PushConfig) -> OnWire<'_, PushConfig> {
    OnWire(wire, push)
}

/// Encodes a page of webhooks.
pub const fn encode_push_list(wire: Wire, list: &PushList) -> OnWire<'_, PushList> {
    OnWire(wire, list)
}

#[cfg(test)]
mod tests {
    use rialto_model::{json::MAX_DEPTH, message::MAX_PARTS};

    use super::*;

    #[test]
    fn an_answer_that_is_too_deep_is_refused_before_it_is_looked_into() {
        let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert!(parse(nested(MAX_DEPTH).as_bytes()).is_ok());
        let garbled = parse(nested(MAX_DEPTH + 1).as_bytes()).unwrap_err().to_string();
        assert!(garbled.contains("100 levels"), "{garbled}");
    }

    #[test]
    fn an_answer_has_only_so_many_parts() {
        let message = |parts: usize| {
            let parts = vec![r#"{"kind":"text","text":"x"}"#; parts].join(",");
            format!(r#"{{"kind":"message","messageId":"m","role":"agent","parts":[{parts}]}}"#)
        };
        let read = |text: &str| decode_message(Wire::V03, parse(text.as_bytes()).unwrap());
        assert_eq!(read(&message(MAX_PARTS)).unwrap().parts.len(), MAX_PARTS);
        let garbled = read(&message(MAX_PARTS + 1)).unwrap_err().to_string();
        assert!(garbled.contains("parts") && garbled.contains("1001"), "{garbled}");
    }
}
