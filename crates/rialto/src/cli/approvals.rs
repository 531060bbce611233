//! Options of `rialto approvals`.

use clap::{Args, Subcommand};

use super::OutputOptions;

#[derive(Debug, Subcommand)]
pub(crate) enum ApprovalsCommand {
    /// List pending approvals, newest first
    List {
        /// Include decided approvals
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        listing: OutputOptions,
    },
    /// Show one approval with its arguments, secrets masked
    Show {
        /// Approval id
        approval: String,
        #[command(flatten)]
        listing: OutputOptions,
    },
    /// Approve a call, which then continues
    Approve(DecideOptions),
    /// Deny a call
    Deny(DecideOptions),
}

/// Options of `rialto approvals approve` and `deny`.
#[derive(Debug, Args)]
pub(crate) struct DecideOptions {
    /// Approval id
    pub(crate) approval: String,
    /// Reason, for the audit log and the caller
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    #[command(flatten)]
    pub(crate) listing: OutputOptions,
}
