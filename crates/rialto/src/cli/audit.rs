//! `rialto audit …`, as `--help` shows it.

use clap::{Args, Subcommand, ValueEnum};

use super::Listing;

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Audit {
    #[command(subcommand)]
    pub(crate) command: Option<AuditCommand>,
    #[command(flatten)]
    pub(crate) search: AuditSearch,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    /// Check that no record was changed, removed or put in
    Verify(Listing),
}

#[derive(Debug, Args)]
pub(crate) struct AuditSearch {
    /// Only from this moment on: a time (2026-11-15T08:00Z), or how long ago (90m, 2h, 7d)
    #[arg(long, value_name = "WHEN")]
    pub(crate) since: Option<String>,
    /// Only before this moment
    #[arg(long, value_name = "WHEN")]
    pub(crate) until: Option<String>,
    /// Only about this agent: slug, name, id or URL
    #[arg(long)]
    pub(crate) agent: Option<String>,
    /// Only this caller's
    #[arg(long)]
    pub(crate) caller: Option<String>,
    /// Only about this task
    #[arg(long, value_name = "ID")]
    pub(crate) task: Option<String>,
    /// Only what came out like this
    #[arg(long, value_enum)]
    pub(crate) outcome: Option<OutcomeName>,
    /// Only administrative operations: tokens, policies, agents, tools, workflows, secrets, webhooks, sign-ins, approvals
    #[arg(long)]
    pub(crate) admin: bool,
    /// Only older records than this one
    #[arg(long, value_name = "RECORD")]
    pub(crate) before: Option<u64>,
    /// At most so many
    #[arg(long, default_value_t = 50)]
    pub(crate) limit: usize,
    /// Show what comes on record from now on, as it comes, one line each
    #[arg(long, short, conflicts_with_all = ["since", "until", "before", "limit"])]
    pub(crate) follow: bool,
    #[command(flatten)]
    pub(crate) listing: Listing,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum OutcomeName {
    Completed,
    Failed,
    Denied,
}
