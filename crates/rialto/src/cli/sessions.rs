//! Options of `rialto sessions`.

use clap::Subcommand;

use super::OutputOptions;

#[derive(Debug, Subcommand)]
pub(crate) enum SessionsCommand {
    /// List console sessions
    List(OutputOptions),
    /// End a session: its cookie is rejected from the next request on
    End {
        /// Session id
        session: String,
    },
}
