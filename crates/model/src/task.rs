//! A task: the fold of its events.

use std::sync::Arc;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    call::{CallerId, EntryProtocol},
    event::{ACTIVATED, Event, QuestionKind, RemoteIds},
    failure::{Failure, FailureKind},
    ids::{AgentId, ContextId, ProcessId, Scope, SkillId, TaskId},
    json::Json,
    message::{Artifact, ContentHash, Message},
};

/// Where a task stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TaskState {
    /// Written down, not begun.
    Submitted,
    /// Being worked on.
    Working,
    /// Waits for an answer.
    InputRequired,
    /// Waits for a login.
    AuthRequired,
    /// Done.
    Completed,
    /// Went wrong.
    Failed,
    /// Called off.
    Canceled,
    /// Refused by the agent.
    Rejected,
}

/// What is known of a task without reading its events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskHead {
    /// Our name for it.
    pub id: TaskId,
    /// Where it belongs.
    pub scope: Scope,
    /// Whose it is; nobody else may see it.
    pub caller: CallerId,
    /// The door it came in by.
    pub door: EntryProtocol,
    /// Who does the work.
    pub agent: AgentId,
    /// Where that agent lives, so that the task can be found again when the row is gone.
    pub agent_url: String,
    /// Which skill; none for a plain message to the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skill: Option<SkillId>,
    /// The id under which both sides can find this call in their logs.
    pub session: Arc<str>,
    /// What was asked, secrets redacted.
    pub args: Json,
    /// The conversation it belongs to, as we call it; none where the caller keeps no conversation with us.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<ContextId>,
    /// What its caller called the message that began it: the same message again is the same task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Arc<str>>,
    /// The process that works on it, by the number it made for itself. When that one is gone, somebody takes over.
    #[serde(default, skip_serializing)]
    pub runner: ProcessId,
    /// Where it stands.
    pub state: TaskState,
    /// How many events it has.
    pub version: u64,
    /// What the far side calls it.
    #[serde(default)]
    pub remote: RemoteIds,
    /// When it was written down.
    pub created_at: Timestamp,
    /// When its last event was.
    pub updated_at: Timestamp,
}

/// A whole task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// Facts that need no events.
    pub head: TaskHead,
    /// The agent's latest words: a question, a progress note, a closing remark, or the whole answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Message>,
    /// Earlier messages of both sides, in order. Kept only where the caller keeps a conversation with Rialto.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<Message>,
    /// Ids of the caller's messages, each with the hash of the message as it was sent.
    pub received: Vec<(String, ContentHash)>,
    /// Output.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<Artifact>,
    /// The remote task's own metadata.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Json>,
    /// URIs of the protocol extensions that its agent says are in use.
    #[serde(default, skip_serializing)]
    pub activated: Vec<String>,
    /// Why it ended badly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// True if the agent made no task of it: then its message is the whole answer.
    #[serde(default, skip_serializing)]
    pub is_reply: bool,
}

// === impl TaskState ===

impl TaskState {
    /// Every state, for tests and listings.
    pub const ALL: [Self; 8] = [
        Self::Submitted,
        Self::Working,
        Self::InputRequired,
        Self::AuthRequired,
        Self::Completed,
        Self::Failed,
        Self::Canceled,
        Self::Rejected,
    ];

    /// The state after `event`, or none when the event cannot happen in this state.
    pub const fn after(self, event: &Event) -> Option<Self> {
        match (self, event) {
            (Self::Completed | Self::Failed | Self::Canceled | Self::Rejected, _) => None,
            (_, Event::Accepted { .. }) => Some(self),
            // A late "queued" does not send a task back to the queue.
            (Self::Submitted, Event::Progress { working: false, .. }) => Some(Self::Submitted),
            // What it begins with is no answer yet.
            (Self::Submitted, Event::Answered { .. }) => Some(Self::Submitted),
            (_, Event::Progress { .. } | Event::Artifact { .. } | Event::Answered { .. }) => {
                Some(Self::Working)
            }
            (_, Event::Asked { ask: QuestionKind::Input, .. }) => Some(Self::InputRequired),
            (_, Event::Asked { ask: QuestionKind::Auth, .. }) => Some(Self::AuthRequired),
            (_, Event::Finished { .. } | Event::Replied { .. }) => Some(Self::Completed),
            (_, Event::Failed { .. }) => Some(Self::Failed),
            (_, Event::Rejected { .. }) => Some(Self::Rejected),
            (_, Event::Canceled { .. }) => Some(Self::Canceled),
        }
    }

    /// Returns whether nothing can happen any more.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Canceled | Self::Rejected)
    }

    /// Returns whether the task waits for its caller.
    pub const fn is_waiting(self) -> bool {
        matches!(self, Self::InputRequired | Self::AuthRequired)
    }

    /// The state's name, as A2A 0.3 spells it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Submitted => "submitted",
            Self::Working => "working",
            Self::InputRequired => "input-required",
            Self::AuthRequired => "auth-required",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Canceled => "canceled",
            Self::Rejected => "rejected",
        }
    }

    /// The state with that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == name)
    }
}

impl std::fmt::Display for TaskState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

// === impl TaskHead ===

impl TaskHead {
    /// The head as it was before anything happened. What the events say, [`Task::apply`] tells again.
    #[must_use]
    pub fn as_opened(mut self) -> Self {
        (self.state, self.version, self.updated_at) = (TaskState::Submitted, 0, self.created_at);
        self
    }
}

// === impl Task ===

impl Task {
    /// A task of which only the head is known yet.
    pub const fn new(head: TaskHead) -> Self {
        Self {
            head,
            message: None,
            history: Vec::new(),
            received: Vec::new(),
            artifacts: Vec::new(),
            metadata: None,
            activated: Vec::new(),
            failure: None,
            is_reply: false,
        }
    }

    /// The task after `event`. Returns whether the event could happen; when it could not, nothing changed.
    pub fn apply(&mut self, event: &Event, at: Timestamp) -> bool {
        let Some(state) = self.head.state.after(event) else { return false };
        self.head.state = state;
        self.head.version += 1;
        self.head.updated_at = at;
        self.take_in(event);
        true
    }

    /// Returns whether `event` would tell anything new. A poll repeats what is known; the journal need not.
    pub fn learns_from(&self, event: &Event) -> bool {
        let mut after = self.clone();
        let at = self.head.updated_at;
        after.apply(event, at) && {
            after.head.version = self.head.version;
            after != *self
        }
    }

    fn take_in(&mut self, event: &Event) {
        match event {
            Event::Accepted { remote, aside } => {
                // The far side may name the context before the task, or only one of them.
                let known = &mut self.head.remote;
                known.task_id = remote.task_id.clone().or_else(|| known.task_id.take());
                known.context_id = remote.context_id.clone().or_else(|| known.context_id.take());
                if aside.metadata.is_some() {
                    self.metadata.clone_from(&aside.metadata);
                }
                if let Some(activated) = aside.extra.get(ACTIVATED).and_then(|list| list.read().ok()) {
                    self.activated = activated;
                }
            }
            Event::Artifact { artifact, append, .. } => self.take_artifact(artifact, *append),
            Event::Progress { message, .. } => {
                if message.is_some() {
                    self.say(message.as_ref());
                }
            }
            Event::Asked { message, .. } | Event::Finished { message, .. } => self.say(message.as_ref()),
            Event::Answered { message, content_hash } => {
                self.say(None);
                if let Some(hash) = content_hash {
                    self.received.push((message.id.clone(), hash.clone()));
                }
                if self.keeps_history() {
                    self.history.push(message.clone());
                }
            }
            Event::Replied { message } => {
                self.say(Some(message));
                self.is_reply = true;
            }
            Event::Failed { failure, message, .. } => {
                self.say(message.as_ref());
                self.failure = Some(failure.clone());
            }
            Event::Rejected { message, .. } => {
                self.end_badly("the agent rejected the task", message.as_ref());
            }
            Event::Canceled { message, .. } => self.end_badly("the task was canceled", message.as_ref()),
        }
    }

    fn take_artifact(&mut self, piece: &Artifact, append: bool) {
        match self.artifacts.iter_mut().find(|known| known.id == piece.id) {
            Some(known) if append => known.parts.extend(piece.parts.iter().cloned()),
            Some(known) => known.clone_from(piece),
            None => self.artifacts.push(piece.clone()),
        }
    }

    fn end_badly(&mut self, what: &str, words: Option<&Message>) {
        let text = words.map(Message::text).filter(|text| !text.is_empty());
        let message = text.map_or_else(|| what.to_owned(), |text| format!("{what}: {text}"));
        self.say(words);
        self.failure = Some(Failure::new(FailureKind::PeerFailed, message));
    }

    /// The agent's latest words are these; what it said before is history.
    fn say(&mut self, words: Option<&Message>) {
        if self.keeps_history() {
            self.history.extend(self.message.take());
        }
        self.message = words.cloned();
    }

    const fn keeps_history(&self) -> bool {
        self.head.context.is_some()
    }
}

#[cfg(test)]
mod tests;
