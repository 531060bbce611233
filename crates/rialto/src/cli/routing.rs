//! Options of `rialto dispatch`, `rialto route` and `rialto dispatches`.

use clap::{Args, Subcommand};

use super::OutputOptions;

/// Commands for work without a named agent.
#[derive(Debug, Subcommand)]
pub(crate) enum RoutingCommand {
    /// Route work to the best agent and print its result
    Dispatch(DispatchOptions),
    /// Explain routing decisions
    #[command(subcommand)]
    Route(RouteCommand),
    /// List routing decisions, newest first, or show one
    Dispatches(DispatchesOptions),
}

#[derive(Debug, Subcommand)]
pub(crate) enum RouteCommand {
    /// Rank all matching agents without calling one
    Explain {
        #[command(flatten)]
        work: WorkOptions,
        #[command(flatten)]
        listing: OutputOptions,
    },
}

/// Description and requirements of work to route.
#[derive(Clone, Debug, Args)]
pub(crate) struct WorkOptions {
    /// Description of the work
    pub(crate) description: Option<String>,
    /// Type of work; agents' success rates are learned per type
    #[arg(long, value_name = "TYPE")]
    pub(crate) work_type: Option<String>,
    /// Required skills: ids, names or tags (repeatable, or separated by commas)
    #[arg(long, value_name = "SKILL", value_delimiter = ',')]
    pub(crate) skills: Vec<String>,
    /// Media types that the agent must accept, such as image/png (repeatable, or separated by commas)
    #[arg(long, value_name = "TYPE", value_delimiter = ',')]
    pub(crate) input_modes: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct DispatchOptions {
    #[command(flatten)]
    pub(crate) work: WorkOptions,
    /// Message: JSON arguments or a text (default: the description); `-` reads stdin
    #[arg(long, value_name = "JSON|TEXT")]
    pub(crate) input: Option<String>,
    /// Conversation to continue
    #[arg(long, value_name = "ID")]
    pub(crate) context: Option<String>,
    /// Time to wait for the result, in milliseconds (default: calls.timeout_ms)
    #[arg(long, value_name = "MS")]
    pub(crate) timeout_ms: Option<u64>,
    #[command(flatten)]
    pub(crate) listing: OutputOptions,
}

#[derive(Debug, Args)]
pub(crate) struct DispatchesOptions {
    /// Routing decision, by its id or its task's id
    pub(crate) id: Option<String>,
    /// Only decisions for this type of work
    #[arg(long, value_name = "TYPE")]
    pub(crate) work_type: Option<String>,
    /// Maximum number of rows, up to 200
    #[arg(long, default_value_t = 50)]
    pub(crate) limit: usize,
    /// Only decisions older than this one
    #[arg(long, value_name = "ID")]
    pub(crate) before: Option<String>,
    #[command(flatten)]
    pub(crate) listing: OutputOptions,
}
