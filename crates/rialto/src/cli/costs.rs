//! `rialto costs`, as `--help` shows it.

use clap::{Args, ValueEnum};

use super::Listing;

#[derive(Debug, Args)]
pub(crate) struct Costs {
    /// Only calls that ended from this moment on: a time (2026-11-15T08:00Z), or how long ago (90m, 2h, 7d)
    #[arg(long, value_name = "WHEN")]
    pub(crate) since: Option<String>,
    /// Only calls that ended before this moment
    #[arg(long, value_name = "WHEN")]
    pub(crate) until: Option<String>,
    /// Only this agent's: slug, name, id or URL
    #[arg(long)]
    pub(crate) agent: Option<String>,
    /// Only this caller's
    #[arg(long)]
    pub(crate) caller: Option<String>,
    /// One line for each of these
    #[arg(long, value_enum, default_value_t = CostKey::Agent)]
    pub(crate) by: CostKey,
    #[command(flatten)]
    pub(crate) listing: Listing,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum CostKey {
    Agent,
    Skill,
    Caller,
    Day,
}
