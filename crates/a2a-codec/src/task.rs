//! Responses of agents: tasks, and the events of their streams.

use rialto_model::{
    json::{Extra, Json},
    message::{Artifact, Message},
    task::TaskState,
};

/// State of a task, as its agent reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum A2aState {
    /// Unspecified, or unknown to every version of the protocol.
    Unspecified,
    /// Accepted, not started.
    Submitted,
    /// Running.
    Working,
    /// Succeeded.
    Completed,
    /// Failed.
    Failed,
    /// Cancelled.
    Canceled,
    /// Waits for input.
    InputRequired,
    /// Rejected by the agent.
    Rejected,
    /// Waits for a login.
    AuthRequired,
}

/// State of a task, with the agent's message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct A2aStatus {
    /// State.
    pub state: A2aState,
    /// Message of the agent.
    pub message: Option<Message>,
    /// Time of the state, as the agent wrote it.
    pub timestamp: Option<String>,
    /// Members we do not know.
    pub extra: Extra,
}

/// Complete task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct A2aTask {
    /// The agent's task id.
    pub id: String,
    /// The agent's conversation id; 0.1's `sessionId`.
    pub context_id: Option<String>,
    /// Status.
    pub status: A2aStatus,
    /// Artifacts.
    pub artifacts: Vec<Artifact>,
    /// Messages.
    pub history: Vec<Message>,
    /// Metadata; always an object.
    pub metadata: Option<Json>,
    /// Members we do not know.
    pub extra: Extra,
}

/// New status of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusUpdate {
    /// Task id.
    pub task_id: String,
    /// Conversation id.
    pub context_id: Option<String>,
    /// Status.
    pub status: A2aStatus,
    /// True at the end of the stream. Absent in 1.0: there it follows from the state.
    pub is_final: bool,
    /// Metadata; always an object.
    pub metadata: Option<Json>,
    /// Members we do not know.
    pub extra: Extra,
}

/// Chunk of an artifact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArtifactUpdate {
    /// Task id.
    pub task_id: String,
    /// Conversation id.
    pub context_id: Option<String>,
    /// Chunk.
    pub artifact: Artifact,
    /// Append to the chunks with the same id.
    pub append: bool,
    /// Last chunk with this id.
    pub last_chunk: bool,
    /// Metadata; always an object.
    pub metadata: Option<Json>,
    /// Members we do not know.
    pub extra: Extra,
}

/// Event of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamEvent {
    /// Task in its current state.
    Task(A2aTask),
    /// Complete response, without a task.
    Message(Message),
    /// New status.
    Status(StatusUpdate),
    /// Chunk of an artifact.
    Artifact(ArtifactUpdate),
}

/// Response to a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SendAnswer {
    /// Task to follow.
    Task(A2aTask),
    /// Complete response, without a task.
    Message(Message),
}

/// Page of tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskList {
    /// Tasks, the most recently changed first.
    pub tasks: Vec<A2aTask>,
    /// Token of the next page; empty on the last one.
    pub next_page_token: String,
    /// Maximum number of tasks per page.
    pub page_size: u32,
    /// Number of tasks on all pages.
    pub total_size: u32,
    /// Members we do not know.
    pub extra: Extra,
}

// === impl A2aState ===

impl A2aState {
    /// All states, for tests and tables.
    pub const ALL: [Self; 9] = [
        Self::Unspecified,
        Self::Submitted,
        Self::Working,
        Self::Completed,
        Self::Failed,
        Self::Canceled,
        Self::InputRequired,
        Self::Rejected,
        Self::AuthRequired,
    ];

    /// State in the model, or none when unspecified.
    pub const fn known(self) -> Option<TaskState> {
        match self {
            Self::Unspecified => None,
            Self::Submitted => Some(TaskState::Submitted),
            Self::Working => Some(TaskState::Working),
            Self::Completed => Some(TaskState::Completed),
            Self::Failed => Some(TaskState::Failed),
            Self::Canceled => Some(TaskState::Canceled),
            Self::InputRequired => Some(TaskState::InputRequired),
            Self::Rejected => Some(TaskState::Rejected),
            Self::AuthRequired => Some(TaskState::AuthRequired),
        }
    }

    /// True for a final state.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Canceled | Self::Rejected)
    }

    /// True for a state that ends a stream: final, or waiting for the caller.
    pub const fn ends_stream(self) -> bool {
        self.is_terminal() || matches!(self, Self::InputRequired | Self::AuthRequired)
    }
}

impl From<TaskState> for A2aState {
    fn from(state: TaskState) -> Self {
        match state {
            TaskState::Submitted => Self::Submitted,
            TaskState::Working => Self::Working,
            TaskState::InputRequired => Self::InputRequired,
            TaskState::AuthRequired => Self::AuthRequired,
            TaskState::Completed => Self::Completed,
            TaskState::Failed => Self::Failed,
            TaskState::Canceled => Self::Canceled,
            TaskState::Rejected => Self::Rejected,
        }
    }
}

// === impl A2aStatus ===

impl A2aStatus {
    /// Status with only a state.
    pub const fn new(state: A2aState) -> Self {
        Self { state, message: None, timestamp: None, extra: Extra::new() }
    }
}

// === impl A2aTask ===

impl A2aTask {
    /// Task without artifacts.
    pub fn new(id: impl Into<String>, status: A2aStatus) -> Self {
        Self {
            id: id.into(),
            context_id: None,
            status,
            artifacts: Vec::new(),
            history: Vec::new(),
            metadata: None,
            extra: Extra::new(),
        }
    }
}

// === impl StreamEvent ===

impl StreamEvent {
    /// Task id of the event, if it has one.
    pub fn task_id(&self) -> Option<&str> {
        let id = match self {
            Self::Task(task) => task.id.as_str(),
            Self::Status(update) => update.task_id.as_str(),
            Self::Artifact(update) => update.task_id.as_str(),
            Self::Message(_) => return None,
        };
        Some(id).filter(|id| !id.is_empty())
    }
}
