//! Approximate sizes of what agents and callers send, in bytes.
//!
//! Budgets are counted for every event of every task, so nothing is serialized to count it: texts and payloads are added up, with a
//! fixed amount for what stands around them.

use crate::{
    event::{Event, EventAside},
    json::{Extra, Json},
    message::{Artifact, Content, Message, Part, Role},
    task::Task,
};

/// Names and punctuation around one event, message, part or artifact.
const ENVELOPE_BYTES: usize = 64;

// === impl Event ===

impl Event {
    /// Approximate size when written as JSON.
    pub fn size(&self) -> usize {
        let (message, aside) = match self {
            Self::Accepted { aside, .. } => (None, Some(aside)),
            Self::Artifact { artifact, aside, .. } => return artifact.size() + aside_size(aside),
            Self::Answered { message, .. } | Self::Replied { message } => (Some(message), None),
            Self::Failed { failure, message, aside } => {
                let said = failure.message.len() + json_size(failure.data.as_ref());
                return ENVELOPE_BYTES + said + message.as_ref().map_or(0, Message::size) + aside_size(aside);
            }
            Self::Progress { message, aside, .. }
            | Self::Asked { message, aside, .. }
            | Self::Finished { message, aside }
            | Self::Rejected { message, aside }
            | Self::Canceled { message, aside } => (message.as_ref(), Some(aside)),
        };
        ENVELOPE_BYTES + message.map_or(0, Message::size) + aside.map_or(0, aside_size)
    }
}

// === impl Message ===

impl Message {
    /// Approximate size when written as JSON.
    pub fn size(&self) -> usize {
        let lists = self.extensions.iter().chain(&self.reference_task_ids).map(String::len).sum::<usize>();
        ENVELOPE_BYTES
            + self.id.len()
            + parts_size(&self.parts)
            + json_size(self.metadata.as_ref())
            + lists
            + extra_size(&self.extra)
    }
}

// === impl Artifact ===

impl Artifact {
    /// Approximate size when written as JSON.
    pub fn size(&self) -> usize {
        let words = [&self.name, &self.description].into_iter().flatten().map(String::len).sum::<usize>();
        ENVELOPE_BYTES
            + self.id.len()
            + words
            + parts_size(&self.parts)
            + json_size(self.metadata.as_ref())
            + self.extensions.iter().map(String::len).sum::<usize>()
            + extra_size(&self.extra)
    }
}

// === impl Task ===

impl Task {
    /// Approximate size of what its agent has sent so far.
    pub fn agent_bytes(&self) -> usize {
        let messages = self.history.iter().filter(|message| message.role != Role::User).chain(&self.message);
        messages.map(Message::size).sum::<usize>()
            + self.artifacts.iter().map(Artifact::size).sum::<usize>()
            + json_size(self.metadata.as_ref())
    }
}

/// Approximate size of parts when written as JSON.
pub fn parts_size(parts: &[Part]) -> usize {
    parts.iter().map(part_size).sum()
}

fn part_size(part: &Part) -> usize {
    let content = match &part.content {
        Content::Text(text) | Content::Raw(text) | Content::Url(text) => text.len(),
        Content::Data(json) | Content::Unknown(json) => json.get().len(),
    };
    let names = [&part.filename, &part.media_type].into_iter().flatten().map(String::len).sum::<usize>();
    ENVELOPE_BYTES + content + names + json_size(part.metadata.as_ref()) + extra_size(&part.extra)
}

fn aside_size(aside: &EventAside) -> usize {
    aside.timestamp.as_ref().map_or(0, String::len)
        + json_size(aside.metadata.as_ref())
        + extra_size(&aside.extra)
}

fn json_size(json: Option<&Json>) -> usize {
    json.map_or(0, |json| json.get().len())
}

fn extra_size(extra: &Extra) -> usize {
    extra.iter().map(|(name, value)| name.len() + value.get().len()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_of_an_event_is_near_that_of_its_json_wherever_the_bytes_are() {
        let long = "x".repeat(50_000);
        let json = Json::encode(&serde_json::json!({ "k": long }));
        let mut message = Message::new("m", Role::Agent, vec![Part::text(&long), Part::data(json.clone())]);
        message.metadata = Some(json.clone());
        message.extra.push("more", json.clone());
        let mut artifact = Artifact::new("a", vec![Part::new(Content::Raw(long.clone()))]);
        artifact.description = Some(long.clone());
        let aside = EventAside { metadata: Some(json), ..EventAside::default() };
        let events = [
            Event::Artifact { artifact, append: false, last: true, aside: aside.clone() },
            Event::Progress { working: true, message: Some(message.clone()), aside: aside.clone() },
            Event::Replied { message: message.clone() },
            Event::Failed {
                failure: crate::failure::Failure::new(crate::failure::FailureKind::PeerFailed, long),
                message: Some(message),
                aside,
            },
        ];
        for event in events {
            let written = serde_json::to_string(&event).unwrap().len();
            let size = event.size();
            assert!(size.abs_diff(written) < 2_000, "{}: {size} and {written}", event.name());
        }
    }
}
