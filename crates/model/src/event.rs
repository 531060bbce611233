//! One line of a task's life.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    failure::Failure,
    json::{Extra, Json},
    message::{Artifact, ContentHash, Message},
};

/// What the far side calls the task and its conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "RemoteIds")]
pub struct RemoteIds {
    /// Its id for the task; none when it answered with a message, or has not answered yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    /// Its id for the conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_id: Option<String>,
}

/// What a waiting task waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "QuestionKind")]
pub enum QuestionKind {
    /// An answer.
    Input,
    /// A login, done elsewhere.
    Auth,
}

/// Facts that may stand beside any event on the wire.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "EventAside")]
pub struct EventAside {
    /// When the far side says it happened, as it wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<String>,
    /// Free-form facts; always an object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("type" = "object"))]
    pub metadata: Option<Json>,
    /// Members we do not know.
    #[serde(default, skip_serializing_if = "Extra::is_empty")]
    pub extra: Extra,
}

/// Under this name stand, beside [`Event::Accepted`], the URIs of the protocol extensions that the far side says are in use.
pub const ACTIVATED: &str = "activatedExtensions";

/// What happened to a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "EventContent")]
pub enum Event {
    /// The far side took it, under a name of its own.
    Accepted {
        /// That name.
        remote: RemoteIds,
        /// The remote task's own metadata and unknown members.
        #[serde(default)]
        aside: EventAside,
    },
    /// It is queued (`working` false) or being worked on.
    Progress {
        /// Whether work has begun.
        working: bool,
        /// What the agent says about it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<Message>,
        /// What else stood there.
        #[serde(default)]
        aside: EventAside,
    },
    /// A piece of the result.
    Artifact {
        /// The piece.
        artifact: Artifact,
        /// Whether its parts go behind those of the artifact with the same id, or replace it.
        append: bool,
        /// Whether this is the artifact's last piece.
        last: bool,
        /// What else stood there.
        #[serde(default)]
        aside: EventAside,
    },
    /// It waits for the caller.
    Asked {
        /// For what.
        ask: QuestionKind,
        /// The question.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<Message>,
        /// What else stood there.
        #[serde(default)]
        aside: EventAside,
    },
    /// The caller answered, or said something more.
    Answered {
        /// What it said, redacted.
        message: Message,
        /// Hash of the message as it was sent, before redaction; none of messages without an id.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        content_hash: Option<ContentHash>,
    },
    /// Done. What was made stands in the artifacts.
    Finished {
        /// The agent's closing words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<Message>,
        /// What else stood there.
        #[serde(default)]
        aside: EventAside,
    },
    /// Done, without a task on the far side: the message is the whole answer.
    Replied {
        /// The answer.
        message: Message,
    },
    /// It failed, here or there.
    Failed {
        /// Why, for the caller.
        failure: Failure,
        /// The agent's own words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<Message>,
        /// What else stood there.
        #[serde(default)]
        aside: EventAside,
    },
    /// The agent will not do it.
    Rejected {
        /// The agent's own words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<Message>,
        /// What else stood there.
        #[serde(default)]
        aside: EventAside,
    },
    /// It was called off.
    Canceled {
        /// The agent's own words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<Message>,
        /// What else stood there.
        #[serde(default)]
        aside: EventAside,
    },
}

/// An event that is in the store, and so did happen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "TaskEvent")]
pub struct RecordedEvent {
    /// Its place in the task's life, from 1.
    pub seq: u64,
    /// When it was written down.
    pub at: Timestamp,
    /// What happened.
    pub event: Event,
}

// === impl Event ===

impl Event {
    /// A failure that has no words of the agent beside it.
    pub fn failed(failure: Failure) -> Self {
        Self::Failed { failure, message: None, aside: EventAside::default() }
    }

    /// The kind of event, as it is called in listings.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Accepted { .. } => "accepted",
            Self::Progress { .. } => "progress",
            Self::Artifact { .. } => "artifact",
            Self::Asked { .. } => "asked",
            Self::Answered { .. } => "answered",
            Self::Finished { .. } => "finished",
            Self::Replied { .. } => "replied",
            Self::Failed { .. } => "failed",
            Self::Rejected { .. } => "rejected",
            Self::Canceled { .. } => "canceled",
        }
    }
}
