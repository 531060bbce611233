//! What stands inside an answer: a JSON-RPC result, a REST body, the data of a stream's event or of a webhook's call.
//!
//! Each `encode_…` gives something serde can write, so that it goes straight into its envelope; `.text()` gives the JSON.

use rialto_model::json::RawJson;
use rialto_model::message::Message;

pub use crate::object::On;
use crate::{
    codec::{event, message, push, task},
    garbled::Garbled,
    members,
    request::{PushConfig, PushList},
    task::{SendAnswer, StreamEvent, Task, TaskList},
    wire::Wire,
};

/// The one JSON value that a body is.
pub fn parse(body: &[u8]) -> Result<RawJson<'_>, Garbled> {
    members::parse(body)
}

/// Reads the answer to a message.
pub fn decode_send(wire: Wire, raw: RawJson<'_>) -> Result<SendAnswer, Garbled> {
    event::send_answer(wire, raw)
}

/// Reads a task.
pub fn decode_task(wire: Wire, raw: RawJson<'_>) -> Result<Task, Garbled> {
    match event::send_answer(wire, raw)? {
        SendAnswer::Task(task) => Ok(task),
        SendAnswer::Message(_) => Err(Garbled::new("a task", "a message")),
    }
}

/// Reads a message.
pub fn decode_message(wire: Wire, raw: RawJson<'_>) -> Result<Message, Garbled> {
    message::decode(wire, raw)
}

/// Reads one event of a stream, or the body of a webhook's call.
pub fn decode_stream_event(wire: Wire, raw: RawJson<'_>) -> Result<StreamEvent, Garbled> {
    event::decode(wire, raw)
}

/// Reads a page of tasks.
pub fn decode_task_list(wire: Wire, raw: RawJson<'_>) -> Result<TaskList, Garbled> {
    task::list(wire, raw)
}

/// Reads a webhook.
pub fn decode_push(wire: Wire, raw: RawJson<'_>) -> Result<PushConfig, Garbled> {
    push::decode(wire, raw)
}

/// Reads a page of webhooks.
pub fn decode_push_list(wire: Wire, raw: RawJson<'_>) -> Result<PushList, Garbled> {
    push::listed(wire, raw)
}

/// The answer to a message.
pub const fn encode_send(wire: Wire, answer: &SendAnswer) -> On<'_, SendAnswer> {
    On(wire, answer)
}

/// A task.
pub const fn encode_task(wire: Wire, task: &Task) -> On<'_, Task> {
    On(wire, task)
}

/// A message.
pub const fn encode_message(wire: Wire, message: &Message) -> On<'_, Message> {
    On(wire, message)
}

/// One event of a stream.
pub const fn encode_stream_event(wire: Wire, event: &StreamEvent) -> On<'_, StreamEvent> {
    On(wire, event)
}

/// A page of tasks.
pub const fn encode_task_list(wire: Wire, list: &TaskList) -> On<'_, TaskList> {
    On(wire, list)
}

/// A webhook.
pub const fn encode_push(wire: Wire, push: &PushConfig) -> On<'_, PushConfig> {
    On(wire, push)
}

/// A page of webhooks.
pub const fn encode_push_list(wire: Wire, list: &PushList) -> On<'_, PushList> {
    On(wire, list)
}

#[cfg(test)]
mod tests {
    use rialto_model::{json::MAX_DEPTH, message::MOST_PARTS};

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
        assert_eq!(read(&message(MOST_PARTS)).unwrap().parts.len(), MOST_PARTS);
        let garbled = read(&message(MOST_PARTS + 1)).unwrap_err().to_string();
        assert!(garbled.contains("parts") && garbled.contains("1001"), "{garbled}");
    }
}
