//! `rialto workflow`, as `--help` shows it: what can be done with a file alone, and what with those that are kept.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use rialto_flow::graph::Format;

use super::{Flows, Listing};

/// Workflows.
#[derive(Debug, Subcommand)]
pub(crate) enum Workflow {
    #[command(flatten)]
    File(WorkflowFile),
    #[command(flatten)]
    Kept(Flows),
}

/// What can be done with a workflow that is a file.
#[derive(Debug, Subcommand)]
pub(crate) enum WorkflowFile {
    /// Print the JSON Schema of workflows and pipelines, for editors
    Schema,
    /// Say all that is wrong with workflows and pipelines, by line and column
    ///
    /// The exit status is 1 when something is wrong.
    Validate(ValidateWorkflow),
    /// Draw a workflow or pipeline: what is done, and what comes before what
    Graph(GraphWorkflow),
}

#[derive(Debug, Args)]
pub(crate) struct ValidateWorkflow {
    /// YAML or JSON; `-` reads stdin
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) listing: Listing,
}

#[derive(Debug, Args)]
pub(crate) struct GraphWorkflow {
    /// YAML or JSON; `-` reads stdin
    pub(crate) file: PathBuf,
    /// What is drawn
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: FormatName,
}

/// What a picture is made of.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum FormatName {
    Text,
    Mermaid,
    Svg,
}

// === impl FormatName ===

impl FormatName {
    pub(crate) const fn format(self) -> Format {
        match self {
            Self::Text => Format::Text,
            Self::Mermaid => Format::Mermaid,
            Self::Svg => Format::Svg,
        }
    }
}
