//! `rialto policy …`, as `--help` shows it.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::{CallerKindName, Listing, tokens::RoleName};
use crate::policies::Shelf;

#[derive(Debug, Subcommand)]
pub(crate) enum Policy {
    /// Check policy files; without a file, those in force
    Check {
        /// Cedar files
        files: Vec<PathBuf>,
    },
    /// Ask whether a call would be allowed, and which policies decide
    Test(PolicyTest),
    /// Ask the same, and hear from every policy why it decides or why not
    Explain(PolicyTest),
    /// List the policies in force
    List {
        #[command(flatten)]
        shelf: OnShelf,
        #[command(flatten)]
        listing: Listing,
    },
    /// Allow calls of an agent or of one skill, for everybody or for one caller
    Allow(AllowCalls),
    /// Write a policy: one of the usual ones, or a file of your own
    Add(AddPolicy),
    /// Take a policy away; it can be restored
    Remove {
        /// The policy, or its file
        name: String,
        #[command(flatten)]
        shelf: OnShelf,
    },
    /// List the texts that a policy had before
    History {
        /// The policy, or its file
        name: String,
        #[command(flatten)]
        shelf: OnShelf,
        #[command(flatten)]
        listing: Listing,
    },
    /// Make an older text of a policy the one in force
    Restore {
        /// The policy, or its file
        name: String,
        /// The version, as `history` shows it
        version: i64,
        #[command(flatten)]
        shelf: OnShelf,
    },
    /// Lay policy files out alike; without a file, those in force
    Fmt {
        /// Cedar files
        files: Vec<PathBuf>,
        /// Change nothing, and fail if something would change
        #[arg(long)]
        check: bool,
    },
    /// Print the schema that policies are checked against
    Schema,
}

#[derive(Debug, Args)]
pub(crate) struct AllowCalls {
    /// An agent (slug, name, id or URL), or one skill: vercel_ops.deploy
    pub(crate) target: String,
    /// For this caller only; an agent by slug, name, id or URL
    #[arg(long)]
    pub(crate) caller: Option<String>,
    /// user, session or agent
    #[arg(long, default_value = "user", requires = "caller")]
    pub(crate) caller_kind: CallerKindName,
}

#[derive(Debug, Args)]
pub(crate) struct AddPolicy {
    /// Which of the usual policies
    #[arg(required_unless_present = "file", conflicts_with = "file", requires = "target")]
    pub(crate) kind: Option<PolicyKind>,
    /// What it is about: an agent, a skill (vercel_ops.deploy), a level of trust, a tag, an admin action, or all of these
    #[arg(conflicts_with = "file")]
    pub(crate) target: Option<String>,
    /// A file with Cedar policies of your own
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// What to call it; what has that name is replaced
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// For this caller only; an agent by slug, name, id or URL
    #[arg(long, conflicts_with = "file")]
    pub(crate) caller: Option<String>,
    /// user, session or agent
    #[arg(long, default_value = "user", requires = "caller")]
    pub(crate) caller_kind: CallerKindName,
    /// For callers with this role only
    #[arg(long, conflicts_with_all = ["file", "caller"])]
    pub(crate) role: Option<RoleName>,
    /// Who must approve, with require-approval
    #[arg(long, value_name = "WHO", default_value = "an administrator", conflicts_with = "file")]
    pub(crate) by: String,
    #[command(flatten)]
    pub(crate) shelf: OnShelf,
    #[command(flatten)]
    pub(crate) listing: Listing,
}

/// Where a policy is kept.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct OnShelf {
    /// Kept in the store, for everybody who uses it; new ones are by default when that is PostgreSQL
    #[arg(long, conflicts_with = "as_file")]
    pub(crate) store: bool,
    /// Kept as a file on this machine; new ones are by default otherwise
    #[arg(long)]
    pub(crate) as_file: bool,
    /// A policy that applies to all orgs; for the server's owner
    #[arg(long, conflicts_with = "org")]
    pub(crate) all_orgs: bool,
}

impl OnShelf {
    /// The one that was named, if one was.
    pub(crate) fn shelf(self) -> Option<Shelf> {
        match self {
            Self { store: true, .. } => Some(Shelf::Store),
            Self { as_file: true, .. } => Some(Shelf::Files),
            Self { .. } => None,
        }
    }
}

/// The usual policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PolicyKind {
    /// Let an agent's skills be called
    AllowAgent,
    /// Let one skill be called
    AllowSkill,
    /// Let all agents of a level of trust be called: external, trusted or system
    AllowTrust,
    /// Let all skills with a tag be called
    AllowTag,
    /// Let a caller administer over the network; name it with --caller or --role
    AllowAdmin,
    /// Forbid an agent to be called, whatever permits it
    DenyAgent,
    /// Forbid one skill to be called, whatever permits it
    DenySkill,
    /// Forbid an agent or a skill to be called without approval; `rialto approvals` shows what waits
    RequireApproval,
}

// === impl PolicyKind ===

impl PolicyKind {
    /// What it is called over the API, as on the command line.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::AllowAgent => "allow-agent",
            Self::AllowSkill => "allow-skill",
            Self::AllowTrust => "allow-trust",
            Self::AllowTag => "allow-tag",
            Self::AllowAdmin => "allow-admin",
            Self::DenyAgent => "deny-agent",
            Self::DenySkill => "deny-skill",
            Self::RequireApproval => "require-approval",
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct PolicyTest {
    /// A skill (vercel_ops.deploy) or an agent; none for an admin action, which is about the caller's org
    pub(crate) target: Option<String>,
    /// Who calls; an agent by slug, name, id or URL
    #[arg(long, default_value = "local")]
    pub(crate) caller: String,
    /// user, session or agent
    #[arg(long, default_value = "user")]
    pub(crate) caller_kind: CallerKindName,
    /// a2a_invoke, a2a_discover, a2a_cancel, admin_agents, admin_policies, admin_tokens or admin_audit
    #[arg(long, default_value = "a2a_invoke")]
    pub(crate) action: String,
    #[command(flatten)]
    pub(crate) listing: Listing,
}
