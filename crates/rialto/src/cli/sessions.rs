//! `rialto sessions …`, as `--help` shows it.

use clap::Subcommand;

use super::Listing;

#[derive(Debug, Subcommand)]
pub(crate) enum Sessions {
    /// List who is signed in to the console
    List(Listing),
    /// End a session: its cookie is refused from the next request on
    End {
        /// Its id
        session: String,
    },
}
