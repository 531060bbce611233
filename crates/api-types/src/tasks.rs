//! Tasks: calls, their state, their events and their inspection.

use rialto_model::{
    call::EntryProtocol,
    clock::Timestamp,
    event::RecordedEvent,
    failure::Failure,
    ids::{AgentId, SkillId, TaskId},
    json::Json,
    message::{Artifact, Message},
    task::{Task, TaskHead, TaskState},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Page of tasks, newest first.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TaskPage {
    /// Tasks of this page.
    pub tasks: Vec<TaskHead>,
    /// Cursor of the next page; null on the last one.
    pub next: Option<TaskId>,
}

/// Task with its result.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskDetail {
    /// Id of the task.
    pub task_id: TaskId,
    /// State.
    pub state: TaskState,
    /// Id of the agent that executes it.
    pub agent_id: AgentId,
    /// URL of that agent.
    pub agent_url: String,
    /// Skill that was called; null for a message to the agent.
    pub skill_id: Option<SkillId>,
    /// Id that the agent gave the task.
    pub remote_task_id: Option<String>,
    /// Id that the agent gave the conversation.
    pub context_id: Option<String>,
    /// Last message of the agent: a question, a progress note or the whole response.
    pub message: Option<Message>,
    /// Artifacts that the agent has produced.
    pub artifacts: Vec<Artifact>,
    /// Error, if it failed.
    pub failure: Option<Failure>,
    /// Arguments, with secrets redacted.
    pub args: Json,
    /// Time of its creation.
    pub created_at: Timestamp,
    /// Time of its last event.
    pub updated_at: Timestamp,
}

/// Events of a task.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TaskEvents {
    /// The events, in order.
    pub events: Vec<RecordedEvent>,
}

/// Call to make.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(extend("required" = ["name"]))]
pub struct NewCall {
    /// Skill or tool to call, or agent to send a message to.
    pub name: String,
    /// Arguments of a skill, or data for an agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Json>,
    /// Text for an agent; for a skill, its arguments as JSON in a text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Task to continue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// Conversation to continue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// Timeout of the call, in milliseconds.
    #[serde(alias = "timeout_ms", skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

/// Call that was started. It continues in the background.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StartedCall {
    /// Id of its task.
    pub task_id: TaskId,
    /// Canonical name of the skill or agent.
    pub called: String,
    /// Number of the event after which those of this call begin.
    pub after: u64,
    /// Timeout that callers usually set, in milliseconds.
    pub timeout_ms: u64,
}

/// Message for a task: text or data.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskReply {
    /// Text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Data in place of a text.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("type" = ["object", "null"]))]
    pub data: Option<Json>,
}

/// Message that was accepted for a task.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AcceptedReply {
    /// Id of the task that continues.
    pub task_id: TaskId,
}

/// Push notifications that were given up, newest first.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "UndeliveredPushes")]
pub struct UndeliveredPushes<Row = UndeliveredPush> {
    /// The notifications.
    pub undelivered: Vec<Row>,
}

/// Push notification that was given up.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UndeliveredPush {
    /// Id of the task.
    pub task: TaskId,
    /// Id of the push notification config.
    pub id: String,
    /// Address that it was sent to.
    pub url: String,
    /// Caller who requested it.
    pub caller: String,
    /// Number of the last event that was delivered.
    pub told_up_to: u64,
    /// Number of failed attempts since then.
    pub failures: u32,
    /// Error of the last attempt.
    pub last_error: String,
    /// Time it was requested.
    pub created_at: Timestamp,
}

/// One call from both sides, after the fact.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CallInspection {
    /// Id of the task.
    pub task_id: TaskId,
    /// State of the task; null if the call was denied before there was one.
    pub state: Option<TaskState>,
    /// Request of the caller.
    pub came_in: CallerRequest,
    /// Decision of the policies, if it is on record.
    pub decision: Option<RecordedDecision>,
    /// Request to the agent.
    pub went_out: UpstreamRequest,
    /// Events, in order.
    pub timeline: Vec<TimelineEntry>,
}

/// Request of a caller.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CallerRequest {
    /// Caller.
    pub caller: Option<String>,
    /// Org of the caller.
    pub org: Option<String>,
    /// Project of the caller.
    pub project: Option<String>,
    /// Protocol that the request came in by.
    pub door: Option<EntryProtocol>,
    /// Canonical name of the skill or agent.
    pub called: Option<String>,
    /// Arguments, with secrets redacted.
    pub arguments: Option<Json>,
    /// Conversation of the caller.
    pub context_id: Option<String>,
    /// Id that the caller gave its message.
    pub message_id: Option<String>,
}

/// Decision of the policies about a call.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RecordedDecision {
    /// Whether the call was allowed.
    pub allowed: bool,
    /// Names of the policies that decided.
    pub policies: Vec<String>,
    /// Reason of a denial.
    pub reason: Option<String>,
}

/// Request to an agent.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpstreamRequest {
    /// Slug of the agent, while it is registered.
    pub agent: Option<String>,
    /// URL of the agent.
    pub url: Option<String>,
    /// Protocol that the agent speaks now.
    pub protocol: Option<String>,
    /// Skill that was called.
    pub skill_id: Option<SkillId>,
    /// Correlation ID in the logs of both sides.
    pub session_id: Option<String>,
    /// Id that the agent gave the task.
    pub remote_task_id: Option<String>,
    /// Id that the agent gave the conversation.
    pub remote_context_id: Option<String>,
    /// Messages that were sent, in order, with secrets redacted.
    #[serde(default)]
    pub sent: Vec<UpstreamMessage>,
}

/// Message that was sent to an agent.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct UpstreamMessage {
    /// Time it was recorded.
    pub at: Timestamp,
    /// Content: a single data part as it is, a text as `{"text": …}`, anything else as `{"parts": […]}`.
    pub content: Json,
}

/// Event in the timeline of a call.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TimelineEntry {
    /// Time of the event.
    pub at: Timestamp,
    /// Milliseconds since the first event.
    #[schemars(extend("minimum" = 0))]
    pub after_ms: i64,
    /// Side that caused it.
    pub who: TimelineActor,
    /// Event in a few words.
    pub what: String,
    /// Event as it is on record.
    #[schemars(extend("type" = "object"))]
    pub record: Json,
}

/// Side that caused an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TimelineActor {
    /// The caller.
    Caller,
    /// This bridge.
    Rialto,
    /// The agent.
    Agent,
}

// === impl TaskDetail ===

impl From<Task> for TaskDetail {
    fn from(task: Task) -> Self {
        let head = task.head;
        Self {
            task_id: head.id,
            state: head.state,
            agent_id: head.agent,
            agent_url: head.agent_url,
            skill_id: head.skill,
            remote_task_id: head.remote.task_id,
            context_id: head.remote.context_id,
            message: task.message,
            artifacts: task.artifacts,
            failure: task.failure,
            args: head.args,
            created_at: head.created_at,
            updated_at: head.updated_at,
        }
    }
}

// === impl TimelineActor ===

impl TimelineActor {
    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Caller => "caller",
            Self::Rialto => "rialto",
            Self::Agent => "agent",
        }
    }
}
