//! Options of `rialto orgs` and `rialto projects`.

use clap::{Args, Subcommand};

use super::{OutputOptions, tokens::slug};

#[derive(Debug, Subcommand)]
pub(crate) enum TenantsCommand {
    /// List, create and remove orgs
    #[command(subcommand)]
    Orgs(OrgsCommand),
    /// List, create and remove the projects of an org
    #[command(subcommand)]
    Projects(ProjectsCommand),
}

#[derive(Debug, Subcommand)]
pub(crate) enum OrgsCommand {
    /// List orgs with their projects
    List(OutputOptions),
    /// Create an org
    Create(CreateOrgOptions),
    /// Remove an org
    Remove {
        /// Name of the org or project
        org: String,
        /// Remove its agents, tools, workflows, webhooks and policies, and revoke its tokens
        #[arg(long)]
        force: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct CreateOrgOptions {
    /// Name of the org or project
    #[arg(value_name = "NAME", value_parser = slug)]
    pub(crate) name: String,
    /// Create a token for an owner with this name; it is shown only once
    #[arg(long, value_name = "CALLER")]
    pub(crate) owner: Option<String>,
    #[command(flatten)]
    pub(crate) listing: OutputOptions,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ProjectsCommand {
    /// List the projects of an org
    List(OutputOptions),
    /// Create a project in an org
    Create {
        /// Name of the org or project
        #[arg(value_name = "NAME", value_parser = slug)]
        name: String,
    },
    /// Remove a project of an org
    Remove {
        /// Name of the org or project
        name: String,
        /// Remove its agents, tools and workflows, and revoke its tokens
        #[arg(long)]
        force: bool,
    },
}
