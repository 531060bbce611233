//! Options of `rialto nodes`.

use clap::Subcommand;

use super::OutputOptions;

#[derive(Debug, Subcommand)]
pub(crate) enum NodesCommand {
    /// List the servers that share the store: name, state, process, address, version, open tasks
    List(OutputOptions),
    /// Drain a node: it answers requests, but reports not ready and starts no background work
    Drain {
        /// Node name
        name: String,
        /// Undo the drain: the node is ready again
        #[arg(long)]
        undo: bool,
        #[command(flatten)]
        listing: OutputOptions,
    },
}
