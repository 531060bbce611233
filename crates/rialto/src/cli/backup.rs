//! `rialto doctor`, `rialto backup`, `rialto restore`, `rialto check` and `rialto nodes`, as `--help` shows them.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{Listing, Nodes};

#[derive(Debug, Subcommand)]
pub(crate) enum Maintenance {
    /// Find out what would fail, and how to fix it
    Doctor(Listing),
    /// Write a backup of the data folder to one file, while a server may be using it
    Backup(BackupOptions),
    /// Restore a backup into an empty data folder (--data)
    Restore(RestoreOptions),
    /// Check the store: pages, references, rows and audit seals
    Check(Listing),
    /// List the servers that share the store, and drain one of them
    #[command(subcommand)]
    Nodes(Nodes),
}

#[derive(Debug, Args)]
pub(crate) struct BackupOptions {
    /// The file to write, a tar archive with checksums
    pub(crate) file: PathBuf,
    /// Replace the file if it exists
    #[arg(long)]
    pub(crate) force: bool,
    /// Include the key that opens stored secrets; whoever has the file can then read them
    #[arg(long)]
    pub(crate) with_secret_key: bool,
    /// Leave the database out: only policies and keys (with PostgreSQL, pg_dump backs up the rest)
    #[arg(long)]
    pub(crate) files_only: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RestoreOptions {
    /// A file that `rialto backup` wrote
    pub(crate) file: PathBuf,
}
