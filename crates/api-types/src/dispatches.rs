//! Dispatches: work that names no agent, and the choice of one.

use rialto_model::{ids::DispatchId, json::Json, routing::Dispatch};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tasks::TaskDetail;

/// Page of dispatches, newest first.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DispatchPage {
    /// Dispatches of this page.
    pub dispatches: Vec<Dispatch>,
    /// Cursor of the next page; null on the last one.
    pub next: Option<DispatchId>,
}

/// Work for the best agent.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NewDispatch {
    /// Type of work (`qa`); success rates are learned for each.
    #[serde(default, alias = "work_type")]
    pub work_type: String,
    /// Description of the work.
    #[serde(default)]
    pub description: String,
    /// Skills the agent must have, each by the id, the name or a tag.
    #[serde(default, alias = "required_skills")]
    pub required_skills: Vec<String>,
    /// Media types the agent must accept.
    #[serde(default, alias = "input_modes")]
    pub input_modes: Vec<String>,
    /// Message for the agent: a text or an object; by default the description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<Json>,
    /// Conversation to continue.
    #[serde(alias = "context_id", skip_serializing_if = "Option::is_none")]
    pub context_id: Option<String>,
    /// Timeout of the call, in milliseconds.
    #[serde(alias = "timeout_ms", skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

/// Result of a dispatch.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "DispatchResult")]
#[serde(rename_all = "camelCase")]
pub struct DispatchResult<Task = TaskDetail> {
    /// Id of the dispatch.
    pub dispatch_id: Option<DispatchId>,
    /// Slug of the agent that was chosen, while it is registered.
    pub agent: Option<String>,
    /// The task.
    pub task: Task,
}
