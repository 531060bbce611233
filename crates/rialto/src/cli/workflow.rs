//! Options of `rialto workflow`, for files and for stored workflows.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use rialto_workflow::graph::DrawingFormat;

use super::{OutputOptions, StoredWorkflowCommand};

/// Commands of `rialto workflow`.
#[derive(Debug, Subcommand)]
pub(crate) enum WorkflowCommand {
    #[command(flatten)]
    File(WorkflowFileCommand),
    #[command(flatten)]
    Kept(StoredWorkflowCommand),
}

/// Commands for workflow files.
#[derive(Debug, Subcommand)]
pub(crate) enum WorkflowFileCommand {
    /// Print the JSON Schema of workflows and pipelines, for editors
    Schema,
    /// Validate workflow and pipeline files; print all problems by line and column
    ///
    /// The exit status is 1 if a file has problems.
    Validate(ValidateWorkflowOptions),
    /// Draw a workflow or pipeline as a graph
    Graph(GraphWorkflowOptions),
}

#[derive(Debug, Args)]
pub(crate) struct ValidateWorkflowOptions {
    /// YAML or JSON file; `-` reads stdin
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) listing: OutputOptions,
}

#[derive(Debug, Args)]
pub(crate) struct GraphWorkflowOptions {
    /// YAML or JSON file; `-` reads stdin
    pub(crate) file: PathBuf,
    /// Format of the drawing
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: DrawingFormatName,
}

/// Format of a drawing.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum DrawingFormatName {
    Text,
    Mermaid,
    Svg,
}

// === impl DrawingFormatName ===

impl DrawingFormatName {
    pub(crate) const fn format(self) -> DrawingFormat {
        match self {
            Self::Text => DrawingFormat::Text,
            Self::Mermaid => DrawingFormat::Mermaid,
            Self::Svg => DrawingFormat::Svg,
        }
    }
}
