//! `rialto nodes …`, as `--help` shows it.

use clap::Subcommand;

use super::Listing;

#[derive(Debug, Subcommand)]
pub(crate) enum Nodes {
    /// List the servers that share the store: name, state, process, address, version, open tasks
    List(Listing),
    /// Drain a node: it still answers requests, but is not ready for load balancers and starts no work in the background
    Drain {
        /// Its name
        name: String,
        /// Undo it: the node is ready again
        #[arg(long)]
        undo: bool,
        #[command(flatten)]
        listing: Listing,
    },
}
