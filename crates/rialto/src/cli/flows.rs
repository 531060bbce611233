//! `rialto workflow` and `rialto pipeline`: what is kept and what is run.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use rialto_model::flow::{FlowStatus, RunState};

use super::Listing;

/// Workflows.
#[derive(Debug, Subcommand)]
pub(crate) enum Flows {
    /// Keep a definition, in place of the one that has its name
    Add(AddFlow),
    /// List all definitions, workflows and pipelines
    List(Listing),
    /// Show one definition
    Show {
        /// Its name
        name: String,
        #[command(flatten)]
        listing: Listing,
    },
    /// Say whether a definition may be run
    Status {
        /// Its name
        name: String,
        /// draft, active or archived
        status: StatusName,
        #[command(flatten)]
        listing: Listing,
    },
    /// Forget a definition; runs of it go on
    Remove {
        /// Its name
        name: String,
    },
    /// Run a definition and print its result
    Run(RunFlow),
    /// List runs, newest first, or show one with its steps
    Runs(ListRuns),
    /// Go on with a run: answer what it asks, or take it up again after its process has ended
    Resume(ResumeRun),
    /// Call a run off, with all of its steps
    Cancel {
        /// The run
        run: String,
        #[command(flatten)]
        listing: Listing,
    },
}

/// Pipelines.
#[derive(Debug, Subcommand)]
pub(crate) enum Pipeline {
    /// Keep a pipeline, in place of the one that has its name
    Add(AddFlow),
    /// List all pipelines
    List(Listing),
    /// Show one pipeline
    Show {
        /// Its name
        name: String,
        #[command(flatten)]
        listing: Listing,
    },
    /// Say whether a pipeline may be run: an active one is a skill
    Status {
        /// Its name
        name: String,
        /// draft, active or archived
        status: StatusName,
        #[command(flatten)]
        listing: Listing,
    },
    /// Forget a pipeline; runs of it go on
    Remove {
        /// Its name
        name: String,
    },
    /// Try a pipeline out, also a draft
    Test(RunFlow),
    /// Run a pipeline and print its result
    Run(RunFlow),
}

#[derive(Debug, Args)]
pub(crate) struct AddFlow {
    /// The file, YAML or JSON; `-` reads stdin
    pub(crate) file: PathBuf,
    /// What it is called if the file does not say so (default: the file's name)
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Whether it may be run, in place of what the file says
    #[arg(long)]
    pub(crate) status: Option<StatusName>,
    #[command(flatten)]
    pub(crate) listing: Listing,
}

#[derive(Debug, Args)]
pub(crate) struct RunFlow {
    /// Its name, or a file with a definition that is run without being kept
    pub(crate) name: String,
    /// What the run is given, as JSON; `-` reads stdin
    pub(crate) input: Option<String>,
    /// Run it though it is a draft
    #[arg(long)]
    pub(crate) draft: bool,
    /// How long to wait, in milliseconds; the run goes on
    #[arg(long, value_name = "MS")]
    pub(crate) timeout_ms: Option<u64>,
    #[command(flatten)]
    pub(crate) listing: Listing,
}

#[derive(Debug, Args)]
pub(crate) struct ListRuns {
    /// One run, to be shown with its steps
    pub(crate) run: Option<String>,
    /// Only runs of this definition
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Only runs that stand like this
    #[arg(long)]
    pub(crate) state: Option<RunStateName>,
    /// At most so many
    #[arg(long, default_value_t = 50)]
    pub(crate) limit: usize,
    /// Only older ones than this run
    #[arg(long, value_name = "RUN")]
    pub(crate) before: Option<String>,
    #[command(flatten)]
    pub(crate) listing: Listing,
}

#[derive(Debug, Args)]
pub(crate) struct ResumeRun {
    /// The run
    pub(crate) run: String,
    /// The answer: a text, or JSON
    pub(crate) answer: Option<String>,
    /// The step that is answered, when several ask
    #[arg(long, value_name = "NODE")]
    pub(crate) step: Option<String>,
    #[command(flatten)]
    pub(crate) listing: Listing,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum StatusName {
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

// === impl Pipeline ===

impl Pipeline {
    /// The same for workflows and pipelines alike.
    pub(crate) fn into_flows(self) -> Flows {
        match self {
            Self::Add(options) => Flows::Add(options),
            Self::List(listing) => Flows::List(listing),
            Self::Show { name, listing } => Flows::Show { name, listing },
            Self::Status { name, status, listing } => Flows::Status { name, status, listing },
            Self::Remove { name } => Flows::Remove { name },
            Self::Test(options) => Flows::Run(RunFlow { draft: true, ..options }),
            Self::Run(options) => Flows::Run(options),
        }
    }
}

// === impl StatusName ===

impl From<StatusName> for FlowStatus {
    fn from(name: StatusName) -> Self {
        match name {
            StatusName::Draft => Self::Draft,
            StatusName::Active => Self::Active,
            StatusName::Archived => Self::Archived,
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
