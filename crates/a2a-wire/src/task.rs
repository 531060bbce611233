//! What agents answer with: tasks, and the events of their streams.

use rialto_model::{
    json::{Extra, Json},
    message::{Artifact, Message},
    task::TaskState,
};

/// Where a task stands, as its agent says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// The agent did not say, or said something no version of the protocol knows.
    Unspecified,
    /// Written down, not begun.
    Submitted,
    /// Being worked on.
    Working,
    /// Done.
    Completed,
    /// Went wrong.
    Failed,
    /// Called off.
    Canceled,
    /// Waits for an answer.
    InputRequired,
    /// Refused by the agent.
    Rejected,
    /// Waits for a login.
    AuthRequired,
}

/// Where a task stands, and what the agent says about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// Where it stands.
    pub state: State,
    /// The agent's words.
    pub message: Option<Message>,
    /// When, as the agent wrote it.
    pub timestamp: Option<String>,
    /// Members we do not know.
    pub extra: Extra,
}

/// A whole task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// The agent's name for it.
    pub id: String,
    /// The agent's name for the conversation; 0.1's `sessionId`.
    pub context_id: Option<String>,
    /// Where it stands.
    pub status: Status,
    /// What it has made.
    pub artifacts: Vec<Artifact>,
    /// What was said.
    pub history: Vec<Message>,
    /// Free-form facts; always an object.
    pub metadata: Option<Json>,
    /// Members we do not know.
    pub extra: Extra,
}

/// A task's new status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusUpdate {
    /// The task.
    pub task_id: String,
    /// The conversation.
    pub context_id: Option<String>,
    /// Where the task stands now.
    pub status: Status,
    /// Whether the stream ends here. 1.0 does not say so: there it follows from the state.
    pub is_final: bool,
    /// Free-form facts; always an object.
    pub metadata: Option<Json>,
    /// Members we do not know.
    pub extra: Extra,
}

/// A piece of what a task makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArtifactUpdate {
    /// The task.
    pub task_id: String,
    /// The conversation.
    pub context_id: Option<String>,
    /// The piece.
    pub artifact: Artifact,
    /// Whether it goes behind the pieces of the same id.
    pub append: bool,
    /// Whether no more pieces of the same id follow.
    pub last_chunk: bool,
    /// Free-form facts; always an object.
    pub metadata: Option<Json>,
    /// Members we do not know.
    pub extra: Extra,
}

/// One event of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamEvent {
    /// The task as it stands.
    Task(Task),
    /// The whole answer, without a task.
    Message(Message),
    /// A new status.
    Status(StatusUpdate),
    /// A piece of an artifact.
    Artifact(ArtifactUpdate),
}

/// The answer to a message that was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SendAnswer {
    /// There is a task to follow.
    Task(Task),
    /// The whole answer, without a task.
    Message(Message),
}

/// One page of tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskList {
    /// The tasks, the latest change first.
    pub tasks: Vec<Task>,
    /// What to ask for the next page with; empty on the last one.
    pub next_page_token: String,
    /// The most tasks a page may hold.
    pub page_size: u32,
    /// How many tasks there are on all pages.
    pub total_size: u32,
    /// Members we do not know.
    pub extra: Extra,
}

// === impl State ===

impl State {
    /// Every state, for tests and tables.
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

    /// The state in the model's words, or none when the agent did not say.
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

    /// Whether nothing can happen any more.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Canceled | Self::Rejected)
    }

    /// Whether a stream has nothing more to tell after this: the task is over, or waits for its caller.
    pub const fn ends_stream(self) -> bool {
        self.is_terminal() || matches!(self, Self::InputRequired | Self::AuthRequired)
    }
}

impl From<TaskState> for State {
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

// === impl Status ===

impl Status {
    /// A status of which only the state is known.
    pub const fn new(state: State) -> Self {
        Self { state, message: None, timestamp: None, extra: Extra::new() }
    }
}

// === impl Task ===

impl Task {
    /// A task that has made nothing yet.
    pub fn new(id: impl Into<String>, status: Status) -> Self {
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
    /// The task that the event is about, if it names one.
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
