//! Requests of clients, one type per operation.

use rialto_model::{
    json::{Extra, Json},
    message::{Content, Message, Part},
};

use crate::{members::ObjectMembers, members::text, task::A2aState};

/// Operations of A2A.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum A2aOperation {
    /// Send a message and wait for the response.
    Send,
    /// Send a message and stream the events.
    Stream,
    /// Get a task.
    Get,
    /// List tasks.
    List,
    /// Cancel a task.
    Cancel,
    /// Subscribe to a running task.
    Subscribe,
    /// Create a webhook for a task.
    PushCreate,
    /// Get one webhook.
    PushGet,
    /// List all webhooks of a task.
    PushList,
    /// Delete a webhook.
    PushDelete,
    /// Get the authenticated extended card.
    ExtendedCard,
}

/// Request of any operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum A2aRequest {
    /// Send a message and wait for the response.
    Send(SendRequest),
    /// Send a message and stream the events.
    Stream(SendRequest),
    /// Get a task.
    Get(GetTask),
    /// List tasks.
    List(ListTasks),
    /// Cancel a task.
    Cancel(TaskRef),
    /// Subscribe to a running task.
    Subscribe(TaskRef),
    /// Create a webhook for a task.
    PushCreate(PushConfig),
    /// Get one webhook.
    PushGet(PushRef),
    /// List all webhooks of a task.
    PushList(PushListing),
    /// Delete a webhook.
    PushDelete(PushRef),
    /// Get the authenticated extended card.
    ExtendedCard(ExtendedCard),
}

/// Sends a message to an agent.
///
/// `skill`, `correlation_id` and `task_id` are not part of A2A: they name the skill that the bridge calls and its own session. Where
/// unknown members are harmless (0.2, 0.3) they are at the places of S0: `message.skill.skillId`, `params.correlationId`,
/// `params.taskId`. Everywhere the skill is also in `skillId` of the metadata of request and message, and the correlation id in the
/// request's, because SDK servers expose nothing else to their agents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SendRequest {
    /// Message.
    pub message: Message,
    /// Options of the response.
    pub configuration: Configuration,
    /// Metadata; always an object.
    pub metadata: Option<Json>,
    /// Tenant of the chosen interface (1.0).
    pub tenant: Option<String>,
    /// Requested skill.
    pub skill: Option<String>,
    /// Correlation id of this call in the logs of both sides.
    pub correlation_id: Option<String>,
    /// The client's own task id: `id` in 0.1, where it becomes the task's id.
    pub task_id: Option<String>,
    /// Members we do not know.
    pub extra: Extra,
}

/// Options of a response. The default waits until the task has ended or waits for input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Configuration {
    /// Media types that the client accepts; empty for any.
    pub accepted_output_modes: Vec<String>,
    /// Webhook for the task.
    pub push: Option<PushConfig>,
    /// Maximum number of history messages: none is unspecified, zero is no history.
    pub history_length: Option<u32>,
    /// Respond as soon as there is a task.
    pub return_immediately: bool,
    /// Members we do not know.
    pub extra: Extra,
}

/// Gets a task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GetTask {
    /// Task id.
    pub id: String,
    /// Maximum number of history messages: none is unspecified, zero is no history.
    pub history_length: Option<u32>,
    /// Tenant of the chosen interface (1.0).
    pub tenant: Option<String>,
    /// Metadata (0.x); always an object.
    pub metadata: Option<Json>,
    /// Members we do not know.
    pub extra: Extra,
}

/// Refers to the task to cancel or subscribe to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskRef {
    /// Task id.
    pub id: String,
    /// Tenant of the chosen interface (1.0).
    pub tenant: Option<String>,
    /// Metadata; always an object. Subscribing in 1.0 has none.
    pub metadata: Option<Json>,
    /// Members we do not know.
    pub extra: Extra,
}

/// Lists tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListTasks {
    /// Tenant of the chosen interface.
    pub tenant: Option<String>,
    /// Filter by conversation.
    pub context_id: Option<String>,
    /// Filter by state.
    pub status: Option<A2aState>,
    /// Maximum number of tasks per page.
    pub page_size: Option<u32>,
    /// Token of the page.
    pub page_token: Option<String>,
    /// Maximum number of history messages.
    pub history_length: Option<u32>,
    /// Filter by the time of the last change, as the client wrote it.
    pub status_timestamp_after: Option<String>,
    /// Include artifacts.
    pub include_artifacts: Option<bool>,
    /// Members we do not know.
    pub extra: Extra,
}

/// Webhook for the events of a task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PushConfig {
    /// Tenant of the chosen interface (1.0).
    pub tenant: Option<String>,
    /// Task id; none while the task does not exist yet.
    pub task_id: Option<String>,
    /// Id of the webhook within the task.
    pub id: Option<String>,
    /// URL that receives the events.
    pub url: String,
    /// Token that proves to the webhook that the call is for it.
    pub token: Option<String>,
    /// Authentication at the webhook.
    pub authentication: Option<PushAuthentication>,
    /// Members we do not know.
    pub extra: Extra,
}

/// Authentication at a webhook.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PushAuthentication {
    /// Supported schemes; 1.0 can name only the first.
    pub schemes: Vec<String>,
    /// Secret.
    pub credentials: Option<String>,
    /// Members we do not know.
    pub extra: Extra,
}

/// Refers to one webhook of a task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PushRef {
    /// Tenant of the chosen interface (1.0).
    pub tenant: Option<String>,
    /// Task id.
    pub task_id: String,
    /// Id of the webhook; 0.1 has none, 0.2 may omit it.
    pub id: Option<String>,
    /// Members we do not know.
    pub extra: Extra,
}

/// Lists webhooks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PushListing {
    /// Tenant of the chosen interface (1.0).
    pub tenant: Option<String>,
    /// Task id.
    pub task_id: String,
    /// Maximum number of webhooks per page (1.0).
    pub page_size: Option<u32>,
    /// Token of the page (1.0).
    pub page_token: Option<String>,
    /// Members we do not know.
    pub extra: Extra,
}

/// Page of webhooks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PushList {
    /// Webhooks.
    pub configs: Vec<PushConfig>,
    /// Token of the next page; empty on the last one.
    pub next_page_token: String,
    /// Members we do not know.
    pub extra: Extra,
}

/// Requests the authenticated extended card.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExtendedCard {
    /// Tenant of the chosen interface (1.0).
    pub tenant: Option<String>,
    /// Members we do not know.
    pub extra: Extra,
}

// === impl A2aOperation ===

impl A2aOperation {
    /// All operations, for tests and tables.
    pub const ALL: [Self; 11] = [
        Self::Send,
        Self::Stream,
        Self::Get,
        Self::List,
        Self::Cancel,
        Self::Subscribe,
        Self::PushCreate,
        Self::PushGet,
        Self::PushList,
        Self::PushDelete,
        Self::ExtendedCard,
    ];

    /// True when the response is a stream.
    pub const fn streams(self) -> bool {
        matches!(self, Self::Stream | Self::Subscribe)
    }
}

impl std::fmt::Display for A2aOperation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Send => "sending a message",
            Self::Stream => "streaming",
            Self::Get => "reading a task",
            Self::List => "listing tasks",
            Self::Cancel => "canceling a task",
            Self::Subscribe => "subscribing to a task",
            Self::PushCreate => "creating a push notification config",
            Self::PushGet => "reading a push notification config",
            Self::PushList => "listing push notification configs",
            Self::PushDelete => "deleting a push notification config",
            Self::ExtendedCard => "reading the extended card",
        })
    }
}

// === impl A2aRequest ===

impl A2aRequest {
    /// Operation of this request.
    pub const fn operation(&self) -> A2aOperation {
        match self {
            Self::Send(_) => A2aOperation::Send,
            Self::Stream(_) => A2aOperation::Stream,
            Self::Get(_) => A2aOperation::Get,
            Self::List(_) => A2aOperation::List,
            Self::Cancel(_) => A2aOperation::Cancel,
            Self::Subscribe(_) => A2aOperation::Subscribe,
            Self::PushCreate(_) => A2aOperation::PushCreate,
            Self::PushGet(_) => A2aOperation::PushGet,
            Self::PushList(_) => A2aOperation::PushList,
            Self::PushDelete(_) => A2aOperation::PushDelete,
            Self::ExtendedCard(_) => A2aOperation::ExtendedCard,
        }
    }

    /// Approximate size of its payload, in bytes.
    pub(crate) fn payload(&self) -> usize {
        let (Self::Send(request) | Self::Stream(request)) = self else { return 0 };
        let length = |part: &Part| match &part.content {
            Content::Data(json) | Content::Unknown(json) => json.get().len(),
            Content::Text(text) | Content::Raw(text) | Content::Url(text) => text.len(),
        };
        request.message.parts.iter().map(length).sum()
    }

    /// Tenant of the request.
    pub fn tenant(&self) -> Option<&str> {
        match self {
            Self::Send(request) | Self::Stream(request) => request.tenant.as_deref(),
            Self::Get(request) => request.tenant.as_deref(),
            Self::List(request) => request.tenant.as_deref(),
            Self::Cancel(request) | Self::Subscribe(request) => request.tenant.as_deref(),
            Self::PushCreate(request) => request.tenant.as_deref(),
            Self::PushGet(request) | Self::PushDelete(request) => request.tenant.as_deref(),
            Self::PushList(request) => request.tenant.as_deref(),
            Self::ExtendedCard(request) => request.tenant.as_deref(),
        }
    }
}

// === impl SendRequest ===

impl SendRequest {
    /// Request with only a message.
    pub fn new(message: Message) -> Self {
        Self {
            message,
            configuration: Configuration::default(),
            metadata: None,
            tenant: None,
            skill: None,
            correlation_id: None,
            task_id: None,
            extra: Extra::new(),
        }
    }

    /// Removes unknown members, for servers that reject them (0.3.26's REST does).
    #[must_use]
    pub fn without_unknown(mut self) -> Self {
        self.extra = Extra::new();
        self.configuration.extra = Extra::new();
        self.message.extra = Extra::new();
        for part in &mut self.message.parts {
            part.extra = Extra::new();
        }
        self
    }

    /// Requested skill, wherever the client wrote it: as `skill`, in the message's `skill`, in the request's metadata or in the
    /// message's.
    pub fn skill_id(&self) -> Option<String> {
        self.skill
            .clone()
            .or_else(|| skill_in(self.metadata.as_ref()))
            .or_else(|| skill_in(self.message.metadata.as_ref()))
    }
}

fn skill_in(metadata: Option<&Json>) -> Option<String> {
    let skill = ObjectMembers::read(metadata?.raw()).ok()?.take("skillId")?;
    text(skill).ok().filter(|skill| !skill.is_empty())
}
