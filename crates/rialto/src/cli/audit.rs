//! Options of `rialto audit`.

use clap::{Args, Subcommand, ValueEnum};

use super::OutputOptions;

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct AuditOptions {
    #[command(subcommand)]
    pub(crate) command: Option<AuditCommand>,
    #[command(flatten)]
    pub(crate) search: AuditSearchOptions,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    /// Verify that no record was changed, removed or inserted
    Verify(OutputOptions),
}

#[derive(Debug, Args)]
pub(crate) struct AuditSearchOptions {
    /// Only records from this time on: a time (2026-11-15T08:00Z) or an age (90m, 2h, 7d)
    #[arg(long, value_name = "WHEN")]
    pub(crate) since: Option<String>,
    /// Only records before this time
    #[arg(long, value_name = "WHEN")]
    pub(crate) until: Option<String>,
    /// Only records about this agent: slug, name, id or URL
    #[arg(long)]
    pub(crate) agent: Option<String>,
    /// Only calls of this caller
    #[arg(long)]
    pub(crate) caller: Option<String>,
    /// Only records about this task
    #[arg(long, value_name = "ID")]
    pub(crate) task: Option<String>,
    /// Only calls with this outcome
    #[arg(long, value_enum)]
    pub(crate) outcome: Option<CallOutcomeName>,
    /// Only administrative operations: tokens, policies, agents, tools, workflows, secrets, webhooks, sign-ins, approvals
    #[arg(long)]
    pub(crate) admin: bool,
    /// Only records older than this one
    #[arg(long, value_name = "RECORD")]
    pub(crate) before: Option<u64>,
    /// Maximum number of rows
    #[arg(long, default_value_t = 50)]
    pub(crate) limit: usize,
    /// Print new records as they are written, one line each
    #[arg(long, short, conflicts_with_all = ["since", "until", "before", "limit"])]
    pub(crate) follow: bool,
    #[command(flatten)]
    pub(crate) listing: OutputOptions,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum CallOutcomeName {
    Completed,
    Failed,
    Denied,
}
