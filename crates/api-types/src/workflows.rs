//! Workflows, pipelines and their runs.

use rialto_model::{
    call::CallerId,
    clock::Timestamp,
    flow::{Flow, FlowKind, FlowRun, FlowStatus},
    ids::TaskId,
    json::Json,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Version of a workflow or pipeline.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkflowRow {
    /// Name of the workflow.
    pub name: String,
    /// Workflow or pipeline.
    pub kind: FlowKind,
    /// Whether it may be run.
    pub status: FlowStatus,
    /// Number of the version.
    pub version: u64,
    /// Name that it is called by.
    pub skill: String,
    /// Whether it is managed by the configuration file.
    pub configured: bool,
    /// Caller who saved it.
    pub by: CallerId,
    /// Time it was saved.
    pub at: Timestamp,
    /// Definition in YAML or JSON; lists leave it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// Versions of a workflow, newest first.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct WorkflowVersions {
    /// The versions.
    pub versions: Vec<WorkflowRow>,
    /// Cursor of the next page; null on the last one.
    pub next: Option<u64>,
}

/// Workflow that was removed.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RemovedWorkflow {
    /// Name of the workflow.
    pub removed: String,
}

/// Status of a workflow to set.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StatusChange {
    /// Whether it may be run.
    pub status: FlowStatus,
}

/// Result of a check of a definition.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct WorkflowCheck {
    /// Name of the workflow; null if the definition is invalid.
    pub name: Option<String>,
    /// Errors, in the order of the text; none if the definition is valid.
    pub problems: Vec<WorkflowProblem>,
    /// Number of errors that are left out.
    pub more: usize,
}

/// Error in a definition.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct WorkflowProblem {
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1.
    pub column: u32,
    /// Kind of error.
    pub code: String,
    /// Description of the error and advice.
    pub message: String,
}

/// Definition of a workflow or pipeline, in YAML or JSON.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct WorkflowDefinition(pub Json);

/// Input of a run.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(extend("type" = "object"))]
pub struct RunInput(pub Json);

/// Page of runs, newest first.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RunPage {
    /// Runs of this page.
    pub runs: Vec<FlowRun>,
    /// Cursor of the next page; null on the last one.
    pub next: Option<TaskId>,
}

/// Run that was started. It continues in the background.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StartedRun {
    /// Id of the run.
    pub run_id: TaskId,
    /// State, which is `running`.
    pub state: StartedRunState,
}

/// State of a run that was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum StartedRunState {
    /// It is running.
    Running,
}

/// Workflow to run without saving it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InlineRun {
    /// Definition in YAML or JSON.
    pub workflow: String,
    /// Input of the run; an empty object by default.
    #[serde(default = "Json::empty_object")]
    pub input: Json,
}

/// Message for a run that waits.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunReply {
    /// Text or data.
    pub message: Json,
    /// Step that is answered; by default the first that waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
}

// === impl WorkflowRow ===

impl WorkflowRow {
    /// Row of a definition, without its text.
    pub fn from_flow(flow: &Flow) -> Self {
        Self {
            name: flow.name.clone(),
            kind: flow.kind,
            status: flow.status,
            version: flow.version,
            skill: flow.kind.skill_id(&flow.name),
            configured: flow.configured,
            by: flow.by.clone(),
            at: flow.at,
            text: None,
        }
    }

    /// Row of a definition, with its text.
    pub fn with_text(flow: &Flow) -> Self {
        Self { text: Some(flow.text.clone()), ..Self::from_flow(flow) }
    }
}
