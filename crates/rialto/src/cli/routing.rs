//! `rialto dispatch`, `rialto route` and `rialto dispatches`, as `--help` shows them.

use clap::{Args, Subcommand};

use super::Listing;

/// What is done with work that names nobody.
#[derive(Debug, Subcommand)]
pub(crate) enum Routing {
    /// Give work to the agent that does it best, and print its result
    Dispatch(Dispatch),
    /// Say who would be asked to do some work, and why
    #[command(subcommand)]
    Route(RouteCommand),
    /// List who was chosen for which work, newest first; or show one choice
    Dispatches(Dispatches),
}

#[derive(Debug, Subcommand)]
pub(crate) enum RouteCommand {
    /// Weigh everybody who fits, and call nobody
    Explain {
        #[command(flatten)]
        work: WorkFlags,
        #[command(flatten)]
        listing: Listing,
    },
}

/// What is to be done.
#[derive(Clone, Debug, Args)]
pub(crate) struct WorkFlags {
    /// What is to be done
    pub(crate) description: Option<String>,
    /// The type of work: agents are remembered by how well they do it
    #[arg(long, value_name = "TYPE")]
    pub(crate) work_type: Option<String>,
    /// What the agent must have: ids, names or tags of skills (repeatable, or with commas)
    #[arg(long, value_name = "SKILL", value_delimiter = ',')]
    pub(crate) skills: Vec<String>,
    /// Media types that the agent must take, like image/png (repeatable, or with commas)
    #[arg(long, value_name = "TYPE", value_delimiter = ',')]
    pub(crate) input_modes: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Dispatch {
    #[command(flatten)]
    pub(crate) work: WorkFlags,
    /// What to send in place of the description: JSON arguments or a text; `-` reads stdin
    #[arg(long, value_name = "JSON|TEXT")]
    pub(crate) input: Option<String>,
    /// The conversation to go on with
    #[arg(long, value_name = "ID")]
    pub(crate) context: Option<String>,
    /// How long to wait, in milliseconds
    #[arg(long, value_name = "MS")]
    pub(crate) timeout_ms: Option<u64>,
    #[command(flatten)]
    pub(crate) listing: Listing,
}

#[derive(Debug, Args)]
pub(crate) struct Dispatches {
    /// One choice, by its id or the id of its task
    pub(crate) id: Option<String>,
    /// Only of this type of work
    #[arg(long, value_name = "TYPE")]
    pub(crate) work_type: Option<String>,
    /// At most so many, up to 200
    #[arg(long, default_value_t = 50)]
    pub(crate) limit: usize,
    /// Only older ones than this choice
    #[arg(long, value_name = "ID")]
    pub(crate) before: Option<String>,
    #[command(flatten)]
    pub(crate) listing: Listing,
}
