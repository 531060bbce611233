//! Options of `rialto costs`.

use clap::{Args, ValueEnum};

use super::OutputOptions;

#[derive(Debug, Args)]
pub(crate) struct CostsOptions {
    /// Only calls that ended from this time on: a time (2026-11-15T08:00Z) or an age (90m, 2h, 7d)
    #[arg(long, value_name = "WHEN")]
    pub(crate) since: Option<String>,
    /// Only calls that ended before this time
    #[arg(long, value_name = "WHEN")]
    pub(crate) until: Option<String>,
    /// Only calls of this agent: slug, name, id or URL
    #[arg(long)]
    pub(crate) agent: Option<String>,
    /// Only calls of this caller
    #[arg(long)]
    pub(crate) caller: Option<String>,
    /// Key to group by, one line each
    #[arg(long, value_enum, default_value_t = CostGrouping::Agent)]
    pub(crate) by: CostGrouping,
    #[command(flatten)]
    pub(crate) listing: OutputOptions,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum CostGrouping {
    Agent,
    Skill,
    Caller,
    Day,
}
