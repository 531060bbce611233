//! Options of `rialto doctor`, `rialto backup`, `rialto restore`, `rialto check` and `rialto nodes`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{NodesCommand, OutputOptions};

#[derive(Debug, Subcommand)]
pub(crate) enum MaintenanceCommand {
    /// Diagnose problems of this installation and print how to fix them
    Doctor(OutputOptions),
    /// Back up the data folder to one file, also while a server uses it
    Backup(BackupOptions),
    /// Restore a backup into an empty data folder (--data)
    Restore(RestoreOptions),
    /// Check the store: pages, references, rows and audit seals
    Check(OutputOptions),
    /// List and drain the servers that share the store
    #[command(subcommand)]
    Nodes(NodesCommand),
}

#[derive(Debug, Args)]
pub(crate) struct BackupOptions {
    /// File to write: a tar archive with checksums
    pub(crate) file: PathBuf,
    /// Replace the file if it exists
    #[arg(long)]
    pub(crate) force: bool,
    /// Include the key of stored secrets: anyone with the file can then read them
    #[arg(long)]
    pub(crate) with_secret_key: bool,
    /// Back up policies and keys only (with PostgreSQL, pg_dump backs up the database)
    #[arg(long)]
    pub(crate) files_only: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RestoreOptions {
    /// File written by `rialto backup`
    pub(crate) file: PathBuf,
}
