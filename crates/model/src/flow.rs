//! Workflows and pipelines, and their runs, as they are kept.
//!
//! A definition is a text with a number: a changed one is a new text, and a run keeps the one it began with. A run is a task
//! like any other; what stands here is what the task does not say: which step stands where, and under which task it does its
//! work. That is written before anything leaves and before anything that follows begins, so a driver that takes a run over continues
//! where it stopped.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    call::CallerId,
    event::QuestionKind,
    failure::Failure,
    ids::{Scope, TaskId, TokenId},
    json::Json,
    message::Message,
};

/// The name of the row that stands for all workflows of a project.
pub const FLOWS: &str = "flows";

/// Which way a definition is written, and what its skill is called by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FlowKind {
    /// Nodes or steps: `orchestration:<name>`.
    #[default]
    Workflow,
    /// Tools one after the other: `pipeline:<name>`.
    Pipeline,
}

/// Whether a definition may be run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FlowStatus {
    /// Being written: runs only to be tried out.
    #[default]
    Draft,
    /// In use.
    Active,
    /// Kept for the record: refuses to run.
    Archived,
}

/// A definition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Flow {
    /// Org and project.
    pub scope: Scope,
    /// Name, unique in its project.
    pub name: String,
    /// Kind of definition.
    pub kind: FlowKind,
    /// True if it may be run.
    pub status: FlowStatus,
    /// Version: the first is 1, each change adds one.
    pub version: u64,
    /// The text, as it was given.
    pub text: String,
    /// True if the configuration owns it.
    pub configured: bool,
    /// Caller that stored it; scheduled runs have this caller.
    pub by: CallerId,
    /// When it was given.
    pub at: Timestamp,
    /// The token it was given with: what begins by itself stops when that is revoked.
    pub token: Option<TokenId>,
}

/// Where a run stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RunState {
    /// It goes on.
    #[default]
    Running,
    /// Nothing can go on before its caller says something.
    Waiting,
    /// It is done.
    Completed,
    /// It has failed.
    Failed,
    /// It was called off.
    Canceled,
}

/// One run of a definition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FlowRun {
    /// The task that it is.
    pub id: TaskId,
    /// Where it belongs.
    pub scope: Scope,
    /// Whose it is.
    pub caller: CallerId,
    /// The access token it runs with: no step is called once that was revoked or has expired.
    #[serde(skip)]
    pub token: Option<TokenId>,
    /// How many calls through this installation led to it.
    #[serde(skip)]
    pub hops: u8,
    /// What is run.
    pub name: String,
    /// Which text of it; none for one that was given with the call.
    pub version: Option<u64>,
    /// The text that was given with the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<String>,
    /// What it was given, secrets redacted.
    pub input: Json,
    /// How many runs it is inside of.
    pub depth: u32,
    /// Where it stands.
    pub state: RunState,
    /// What it has made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Json>,
    /// Why it has failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// When it goes on by itself though it waits: something that it waits for ends then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wakes_at: Option<Timestamp>,
    /// When it began.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// Where a step stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StepState {
    /// It is at work.
    Running,
    /// It waits for an answer.
    Waiting,
    /// It is done.
    Completed,
    /// It has failed, for good.
    Failed,
    /// An attempt has failed, and there will be another.
    Retrying,
    /// It was not to be done.
    Skipped,
    /// It was called off.
    Canceled,
}

/// What a step that waits is asking.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "StepQuestion")]
pub struct StepQuestion {
    /// For what it waits.
    pub ask: QuestionKind,
    /// What it says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Message>,
    /// When it is too late for an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Timestamp>,
}

/// One step of a run: a node, or one item of a node that does the same for many.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FlowStep {
    /// The node.
    pub node: String,
    /// Which item of it; none is the node itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<u32>,
    /// Which attempt this is, from 1.
    pub attempt: u32,
    /// The task that does its work; none where nobody is called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// Where it stands.
    pub state: StepState,
    /// What it was given, secrets redacted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Json>,
    /// What it has made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Json>,
    /// Why it has failed, or why it was skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// What it asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<StepQuestion>,
    /// When it began.
    pub begun_at: Timestamp,
    /// When it was over, for now or for good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
}

/// A run with all of its steps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunRecord {
    /// The run.
    pub run: FlowRun,
    /// Its steps, in the order they began.
    pub steps: Vec<FlowStep>,
}

/// Changes of a run, written together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunChange {
    /// The run.
    pub run: TaskId,
    /// Driver that makes the change: only the last one that took the run may.
    pub driver: String,
    /// The access token it runs with: that of the caller who answered it last.
    pub token: Option<TokenId>,
    /// New state.
    pub state: RunState,
    /// Output.
    pub output: Option<Json>,
    /// Why it has failed.
    pub failure: Option<Failure>,
    /// When it goes on by itself though it waits.
    pub wakes_at: Option<Timestamp>,
    /// When this happened.
    pub at: Timestamp,
    /// Steps that are new, or stand elsewhere now.
    pub steps: Vec<FlowStep>,
}

/// Filter for a list of runs, newest first.
#[derive(Clone, Debug, Default)]
pub struct RunFilter {
    /// Only this caller's.
    pub caller: Option<CallerId>,
    /// Only runs of this definition.
    pub name: Option<String>,
    /// Only in this state.
    pub state: Option<RunState>,
    /// Only those older than this one: the last id of the page before.
    pub before: Option<TaskId>,
    /// Maximum number of rows.
    pub limit: usize,
}

/// A moment at which a definition is run by itself, and the next one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowSchedule {
    /// Org and project of the definition.
    pub scope: Scope,
    /// The definition.
    pub name: String,
    /// Index among its schedules, from 0.
    pub number: u32,
    /// When it is next run.
    pub next_at: Timestamp,
    /// The task that it is run as then.
    pub task: TaskId,
}

// === impl FlowKind ===

impl FlowKind {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Workflow => "workflow",
            Self::Pipeline => "pipeline",
        }
    }

    /// Id of its skill.
    pub fn skill_id(self, name: &str) -> String {
        match self {
            Self::Workflow => format!("orchestration:{name}"),
            Self::Pipeline => format!("pipeline:{name}"),
        }
    }
}

// === impl FlowStatus ===

impl FlowStatus {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Draft => "draft",
            Self::Active => "active",
            Self::Archived => "archived",
        }
    }
}

// === impl RunState ===

impl RunState {
    /// Returns whether nothing can happen any more.
    pub const fn is_over(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Canceled)
    }

    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Canceled => "canceled",
        }
    }
}

// === impl StepState ===

impl StepState {
    /// Returns whether nothing more will come of it.
    pub const fn is_over(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Skipped | Self::Canceled)
    }

    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Retrying => "retrying",
            Self::Skipped => "skipped",
            Self::Canceled => "canceled",
        }
    }
}

// === impl FlowStep ===

impl FlowStep {
    /// A step that begins now.
    pub fn begun(node: impl Into<String>, item: Option<u32>, attempt: u32, at: Timestamp) -> Self {
        Self {
            node: node.into(),
            item,
            attempt,
            task: None,
            state: StepState::Running,
            input: None,
            output: None,
            failure: None,
            question: None,
            begun_at: at,
            ended_at: None,
        }
    }
}
