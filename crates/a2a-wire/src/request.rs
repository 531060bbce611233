//! What clients ask for, one type per operation.

use rialto_model::{
    json::{Extra, Json},
    message::{Content, Message, Part},
};

use crate::{members::Members, members::text, task::State};

/// The operations of A2A.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Say something and wait for the answer.
    Send,
    /// Say something and hear what happens.
    Stream,
    /// Look at a task.
    Get,
    /// Look at many tasks.
    List,
    /// Call a task off.
    Cancel,
    /// Hear of a running task again.
    Subscribe,
    /// Ask to be told of a task by webhook.
    PushCreate,
    /// Look at one webhook.
    PushGet,
    /// Look at all webhooks of a task.
    PushList,
    /// Remove a webhook.
    PushDelete,
    /// Read the card that is for those who log in.
    ExtendedCard,
}

/// One request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Say something and wait for the answer.
    Send(SendRequest),
    /// Say something and hear what happens.
    Stream(SendRequest),
    /// Look at a task.
    Get(GetTask),
    /// Look at many tasks.
    List(ListTasks),
    /// Call a task off.
    Cancel(TaskRef),
    /// Hear of a running task again.
    Subscribe(TaskRef),
    /// Ask to be told of a task by webhook.
    PushCreate(PushConfig),
    /// Look at one webhook.
    PushGet(PushRef),
    /// Look at all webhooks of a task.
    PushList(PushListing),
    /// Remove a webhook.
    PushDelete(PushRef),
    /// Read the card that is for those who log in.
    ExtendedCard(ExtendedCard),
}

/// Something said to an agent.
///
/// `skill`, `correlation_id` and `task_id` are not A2A: they are how the bridge names the skill it wants and its own
/// session. Where unknown members do no harm (0.2, 0.3) they stand where S0 puts them: `message.skill.skillId`,
/// `params.correlationId`, `params.taskId`. Everywhere the skill also stands as `skillId` in the metadata of request and
/// message, and the correlation id in the request's, because SDK servers show their agents nothing else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SendRequest {
    /// What is said.
    pub message: Message,
    /// How the answer should be given.
    pub configuration: Configuration,
    /// Free-form facts; always an object.
    pub metadata: Option<Json>,
    /// The tenant named by the chosen interface (1.0).
    pub tenant: Option<String>,
    /// The skill that is wanted.
    pub skill: Option<String>,
    /// The name both sides can find this call under in their logs.
    pub correlation_id: Option<String>,
    /// The client's own name for the task: `id` in 0.1, where it becomes the task's name.
    pub task_id: Option<String>,
    /// Members we do not know.
    pub extra: Extra,
}

/// How an answer should be given. The default waits until the task is done or asks for something.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Configuration {
    /// Media types the client can take; empty when it does not care.
    pub accepted_output_modes: Vec<String>,
    /// Where to tell of the task.
    pub push: Option<PushConfig>,
    /// How much history to give back: none says nothing, zero wants none.
    pub history_length: Option<u32>,
    /// Whether to answer as soon as there is a task.
    pub return_immediately: bool,
    /// Members we do not know.
    pub extra: Extra,
}

/// Which task to look at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GetTask {
    /// The task.
    pub id: String,
    /// How much history to give back: none says nothing, zero wants none.
    pub history_length: Option<u32>,
    /// The tenant named by the chosen interface (1.0).
    pub tenant: Option<String>,
    /// Free-form facts (0.x); always an object.
    pub metadata: Option<Json>,
    /// Members we do not know.
    pub extra: Extra,
}

/// Which task to cancel or subscribe to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskRef {
    /// The task.
    pub id: String,
    /// The tenant named by the chosen interface (1.0).
    pub tenant: Option<String>,
    /// Free-form facts; always an object. Subscribing in 1.0 has none.
    pub metadata: Option<Json>,
    /// Members we do not know.
    pub extra: Extra,
}

/// Which tasks to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListTasks {
    /// The tenant named by the chosen interface.
    pub tenant: Option<String>,
    /// Only tasks of this conversation.
    pub context_id: Option<String>,
    /// Only tasks in this state.
    pub status: Option<State>,
    /// The most tasks to give at once.
    pub page_size: Option<u32>,
    /// Where to go on.
    pub page_token: Option<String>,
    /// How much history to give back.
    pub history_length: Option<u32>,
    /// Only tasks that changed at or after this time, as the client wrote it.
    pub status_timestamp_after: Option<String>,
    /// Whether to give artifacts.
    pub include_artifacts: Option<bool>,
    /// Members we do not know.
    pub extra: Extra,
}

/// A webhook that wants to hear of a task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PushConfig {
    /// The tenant named by the chosen interface (1.0).
    pub tenant: Option<String>,
    /// The task; none while it does not exist yet.
    pub task_id: Option<String>,
    /// The webhook's name within the task.
    pub id: Option<String>,
    /// Where to post.
    pub url: String,
    /// What to show the webhook, so that it knows the call is meant for it.
    pub token: Option<String>,
    /// How to log in there.
    pub authentication: Option<PushAuthentication>,
    /// Members we do not know.
    pub extra: Extra,
}

/// How to log in at a webhook.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PushAuthentication {
    /// The schemes it takes; 1.0 can name only the first.
    pub schemes: Vec<String>,
    /// The secret.
    pub credentials: Option<String>,
    /// Members we do not know.
    pub extra: Extra,
}

/// One webhook of a task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PushRef {
    /// The tenant named by the chosen interface (1.0).
    pub tenant: Option<String>,
    /// The task.
    pub task_id: String,
    /// The webhook's name; 0.1 has none, 0.2 may leave it out.
    pub id: Option<String>,
    /// Members we do not know.
    pub extra: Extra,
}

/// Which webhooks to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PushListing {
    /// The tenant named by the chosen interface (1.0).
    pub tenant: Option<String>,
    /// The task.
    pub task_id: String,
    /// The most webhooks to give at once (1.0).
    pub page_size: Option<u32>,
    /// Where to go on (1.0).
    pub page_token: Option<String>,
    /// Members we do not know.
    pub extra: Extra,
}

/// One page of webhooks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PushList {
    /// The webhooks.
    pub configs: Vec<PushConfig>,
    /// What to ask for the next page with; empty on the last one.
    pub next_page_token: String,
    /// Members we do not know.
    pub extra: Extra,
}

/// Asks for the card that is for those who log in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExtendedCard {
    /// The tenant named by the chosen interface (1.0).
    pub tenant: Option<String>,
    /// Members we do not know.
    pub extra: Extra,
}

// === impl Operation ===

impl Operation {
    /// Every operation, for tests and tables.
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

    /// Whether the answer is a stream.
    pub const fn streams(self) -> bool {
        matches!(self, Self::Stream | Self::Subscribe)
    }
}

impl std::fmt::Display for Operation {
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

// === impl Request ===

impl Request {
    /// Which operation this is.
    pub const fn operation(&self) -> Operation {
        match self {
            Self::Send(_) => Operation::Send,
            Self::Stream(_) => Operation::Stream,
            Self::Get(_) => Operation::Get,
            Self::List(_) => Operation::List,
            Self::Cancel(_) => Operation::Cancel,
            Self::Subscribe(_) => Operation::Subscribe,
            Self::PushCreate(_) => Operation::PushCreate,
            Self::PushGet(_) => Operation::PushGet,
            Self::PushList(_) => Operation::PushList,
            Self::PushDelete(_) => Operation::PushDelete,
            Self::ExtendedCard(_) => Operation::ExtendedCard,
        }
    }

    /// How many bytes it carries for others, about.
    pub(crate) fn payload(&self) -> usize {
        let (Self::Send(request) | Self::Stream(request)) = self else { return 0 };
        let length = |part: &Part| match &part.content {
            Content::Data(json) | Content::Unknown(json) => json.get().len(),
            Content::Text(text) | Content::Raw(text) | Content::Url(text) => text.len(),
        };
        request.message.parts.iter().map(length).sum()
    }

    /// The tenant the request names.
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
    /// A message and nothing else.
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

    /// The same without members we do not know, for servers that refuse what they do not know (0.3.26's REST does).
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

    /// The skill that is wanted, wherever the client wrote it: as `skill`, in the message's `skill`, in the request's
    /// metadata or in the message's.
    pub fn skill_id(&self) -> Option<String> {
        self.skill
            .clone()
            .or_else(|| skill_in(self.metadata.as_ref()))
            .or_else(|| skill_in(self.message.metadata.as_ref()))
    }
}

fn skill_in(metadata: Option<&Json>) -> Option<String> {
    let skill = Members::read(metadata?.raw()).ok()?.take("skillId")?;
    text(skill).ok().filter(|skill| !skill.is_empty())
}
