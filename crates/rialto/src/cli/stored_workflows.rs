//! Options of `rialto workflow` and `rialto pipeline` for stored definitions and runs.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use rialto_model::flow::{FlowStatus, RunState};

use super::OutputOptions;

/// Commands of `rialto workflow`.
#[derive(Debug, Subcommand)]
pub(crate) enum StoredWorkflowCommand {
    /// Save a workflow, replacing any with the same name
    Add(AddWorkflowOptions),
    /// List all workflows and pipelines
    List(OutputOptions),
    /// Show one workflow
    Show {
        /// Workflow name
        name: String,
        #[command(flatten)]
        listing: OutputOptions,
    },
    /// Set the status of a workflow; only an active one runs
    Status {
        /// Workflow name
        name: String,
        /// Status: draft, active or archived
        status: WorkflowStatusName,
        #[command(flatten)]
        listing: OutputOptions,
    },
    /// Remove a workflow; its runs continue
    Remove {
        /// Workflow name
        name: String,
    },
    /// Run a workflow and print its result
    Run(RunWorkflowOptions),
    /// List runs, newest first, or show one with its steps
    Runs(ListRunsOptions),
    /// Resume a run: answer its question, or continue it after its process ended
    Resume(ResumeRunOptions),
    /// Cancel a run with all of its steps
    Cancel {
        /// Run id
        run: String,
        #[command(flatten)]
        listing: OutputOptions,
    },
}

/// Commands of `rialto pipeline`.
#[derive(Debug, Subcommand)]
pub(crate) enum PipelineCommand {
    /// Save a pipeline, replacing any with the same name
    Add(AddWorkflowOptions),
    /// List all pipelines
    List(OutputOptions),
    /// Show one pipeline
    Show {
        /// Workflow name
        name: String,
        #[command(flatten)]
        listing: OutputOptions,
    },
    /// Set the status of a pipeline; an active one is a skill
    Status {
        /// Workflow name
        name: String,
        /// Status: draft, active or archived
        status: WorkflowStatusName,
        #[command(flatten)]
        listing: OutputOptions,
    },
    /// Remove a pipeline; its runs continue
    Remove {
        /// Workflow name
        name: String,
    },
    /// Run a pipeline, also a draft, and print its result
    Test(RunWorkflowOptions),
    /// Run a pipeline and print its result
    Run(RunWorkflowOptions),
}

#[derive(Debug, Args)]
pub(crate) struct AddWorkflowOptions {
    /// YAML or JSON file; `-` reads stdin
    pub(crate) file: PathBuf,
    /// Name if the file has none (default: the file's name)
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Status, overriding the file's (default: active)
    #[arg(long)]
    pub(crate) status: Option<WorkflowStatusName>,
    #[command(flatten)]
    pub(crate) listing: OutputOptions,
}

#[derive(Debug, Args)]
pub(crate) struct RunWorkflowOptions {
    /// Name of a workflow or pipeline, or a file to run without saving it
    pub(crate) name: String,
    /// Input of the run, as JSON (default: {}); `-` reads stdin
    pub(crate) input: Option<String>,
    /// Run it even if it is a draft
    #[arg(long)]
    pub(crate) draft: bool,
    /// Time to wait for the result, in milliseconds (default: one day, or 590 s on a server); the run continues
    #[arg(long, value_name = "MS")]
    pub(crate) timeout_ms: Option<u64>,
    #[command(flatten)]
    pub(crate) listing: OutputOptions,
}

#[derive(Debug, Args)]
pub(crate) struct ListRunsOptions {
    /// Run id, to show it with its steps
    pub(crate) run: Option<String>,
    /// Only runs of this workflow
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Only runs in this state
    #[arg(long)]
    pub(crate) state: Option<RunStateName>,
    /// Maximum number of rows
    #[arg(long, default_value_t = 50)]
    pub(crate) limit: usize,
    /// Only runs older than this one
    #[arg(long, value_name = "RUN")]
    pub(crate) before: Option<String>,
    #[command(flatten)]
    pub(crate) listing: OutputOptions,
}

#[derive(Debug, Args)]
pub(crate) struct ResumeRunOptions {
    /// Run id
    pub(crate) run: String,
    /// Answer: a text, or JSON
    pub(crate) answer: Option<String>,
    /// Step to answer, if several wait
    #[arg(long, value_name = "NODE")]
    pub(crate) step: Option<String>,
    #[command(flatten)]
    pub(crate) listing: OutputOptions,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum WorkflowStatusName {
    Draft,
    Active,
    Archived,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum RunStateName {
    Running,
    Waiting,
    Completed,
    Failed,
    Canceled,
}

// === impl PipelineCommand ===

impl PipelineCommand {
    /// The equivalent command for stored workflows.
    pub(crate) fn into_flows(self) -> StoredWorkflowCommand {
        match self {
            Self::Add(options) => StoredWorkflowCommand::Add(options),
            Self::List(listing) => StoredWorkflowCommand::List(listing),
            Self::Show { name, listing } => StoredWorkflowCommand::Show { name, listing },
            Self::Status { name, status, listing } => StoredWorkflowCommand::Status { name, status, listing },
            Self::Remove { name } => StoredWorkflowCommand::Remove { name },
            Self::Test(options) => StoredWorkflowCommand::Run(RunWorkflowOptions { draft: true, ..options }),
            Self::Run(options) => StoredWorkflowCommand::Run(options),
        }
    }
}

// === impl WorkflowStatusName ===

impl From<WorkflowStatusName> for FlowStatus {
    fn from(name: WorkflowStatusName) -> Self {
        match name {
            WorkflowStatusName::Draft => Self::Draft,
            WorkflowStatusName::Active => Self::Active,
            WorkflowStatusName::Archived => Self::Archived,
        }
    }
}

// === impl RunStateName ===

impl From<RunStateName> for RunState {
    fn from(name: RunStateName) -> Self {
        match name {
            RunStateName::Running => Self::Running,
            RunStateName::Waiting => Self::Waiting,
            RunStateName::Completed => Self::Completed,
            RunStateName::Failed => Self::Failed,
            RunStateName::Canceled => Self::Canceled,
        }
    }
}
