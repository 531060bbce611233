//! `rialto orgs …` and `rialto projects …`, as `--help` shows them.

use clap::{Args, Subcommand};

use super::{Listing, tokens::slug};

#[derive(Debug, Subcommand)]
pub(crate) enum Tenants {
    /// List, create and remove orgs
    #[command(subcommand)]
    Orgs(Orgs),
    /// List, create and remove the projects of an org
    #[command(subcommand)]
    Projects(Projects),
}

#[derive(Debug, Subcommand)]
pub(crate) enum Orgs {
    /// List orgs with their projects
    List(Listing),
    /// Create an org
    Create(CreateOrg),
    /// Remove an org
    Remove {
        /// Its name
        org: String,
        /// Remove its agents, tools, workflows, webhooks and policies, and revoke its tokens
        #[arg(long)]
        force: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct CreateOrg {
    /// Its name
    #[arg(value_name = "NAME", value_parser = slug)]
    pub(crate) name: String,
    /// Make a token for its first owner, who has this name; it is shown this once
    #[arg(long, value_name = "CALLER")]
    pub(crate) owner: Option<String>,
    #[command(flatten)]
    pub(crate) listing: Listing,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Projects {
    /// List the projects of an org
    List(Listing),
    /// Create a project in an org
    Create {
        /// Its name
        #[arg(value_name = "NAME", value_parser = slug)]
        name: String,
    },
    /// Remove a project of an org
    Remove {
        /// Its name
        name: String,
        /// Remove its agents, tools and workflows, and revoke its tokens
        #[arg(long)]
        force: bool,
    },
}
