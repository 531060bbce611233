//! `rialto approvals …`, as `--help` shows it.

use clap::{Args, Subcommand};

use super::Listing;

#[derive(Debug, Subcommand)]
pub(crate) enum Approvals {
    /// List what waits for approval, newest first
    List {
        /// Also what was decided before
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        listing: Listing,
    },
    /// Show one with its arguments, secrets masked
    Show {
        /// Its id
        approval: String,
        #[command(flatten)]
        listing: Listing,
    },
    /// Let it be done
    Approve(Decision),
    /// Refuse it
    Deny(Decision),
}

/// A decision.
#[derive(Debug, Args)]
pub(crate) struct Decision {
    /// Its id
    pub(crate) approval: String,
    /// Why, for the record and for whoever called
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    #[command(flatten)]
    pub(crate) listing: Listing,
}
