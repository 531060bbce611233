//! Options of `rialto policy`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::{CallerKindName, OutputOptions, tokens::RoleName};
use crate::policies::PolicyLocation;

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// Check policy files (default: the active policies)
    Check {
        /// Cedar files
        files: Vec<PathBuf>,
    },
    /// Test whether a call is allowed, and by which policies
    Test(PolicyTestOptions),
    /// Test a call, and show for each policy whether it matches and why
    Explain(PolicyTestOptions),
    /// List the active policies
    List {
        #[command(flatten)]
        shelf: PolicyLocationOptions,
        #[command(flatten)]
        listing: OutputOptions,
    },
    /// Allow calls of an agent or of one skill, for all callers or for one
    Allow(AllowCallsOptions),
    /// Add a policy from a template or from a file
    Add(AddPolicyOptions),
    /// Remove a policy; it can be restored
    Remove {
        /// Policy id or file name
        name: String,
        #[command(flatten)]
        shelf: PolicyLocationOptions,
    },
    /// List previous versions of a policy
    History {
        /// Policy id or file name
        name: String,
        #[command(flatten)]
        shelf: PolicyLocationOptions,
        #[command(flatten)]
        listing: OutputOptions,
    },
    /// Restore a previous version of a policy
    Restore {
        /// Policy id or file name
        name: String,
        /// Version number, as listed by `history`
        version: i64,
        #[command(flatten)]
        shelf: PolicyLocationOptions,
    },
    /// Format policy files (default: the active policies)
    Fmt {
        /// Cedar files
        files: Vec<PathBuf>,
        /// Fail if formatting would change a file; write nothing
        #[arg(long)]
        check: bool,
    },
    /// Print the schema that policies are checked against
    Schema,
}

#[derive(Debug, Args)]
pub(crate) struct AllowCallsOptions {
    /// Agent (slug, name, id or URL) or skill (vercel_ops.deploy)
    pub(crate) target: String,
    /// Only for this caller (default: all callers); an agent by slug, name, id or URL
    #[arg(long)]
    pub(crate) caller: Option<String>,
    /// Kind of the caller: user, session or agent
    #[arg(long, default_value = "user", requires = "caller")]
    pub(crate) caller_kind: CallerKindName,
}

#[derive(Debug, Args)]
pub(crate) struct AddPolicyOptions {
    /// Policy template
    #[arg(required_unless_present = "file", conflicts_with = "file", requires = "target")]
    pub(crate) kind: Option<PolicyTemplateName>,
    /// Resource: an agent, a skill (vercel_ops.deploy), a trust level, a tag, an admin action, or all
    #[arg(conflicts_with = "file")]
    pub(crate) target: Option<String>,
    /// File with Cedar policies
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Name of the policy, replacing any with the same name (default: derived from the template or file)
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Only for this caller (default: all callers); an agent by slug, name, id or URL
    #[arg(long, conflicts_with = "file")]
    pub(crate) caller: Option<String>,
    /// Kind of the caller: user, session or agent
    #[arg(long, default_value = "user", requires = "caller")]
    pub(crate) caller_kind: CallerKindName,
    /// Only for callers with this role
    #[arg(long, conflicts_with_all = ["file", "caller"])]
    pub(crate) role: Option<RoleName>,
    /// Approver named in the question, with require-approval
    #[arg(long, value_name = "APPROVER", default_value = "an administrator", conflicts_with = "file")]
    pub(crate) by: String,
    #[command(flatten)]
    pub(crate) shelf: PolicyLocationOptions,
    #[command(flatten)]
    pub(crate) listing: OutputOptions,
}

/// Location of a policy.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct PolicyLocationOptions {
    /// Policies in the store, shared by all its servers (default for new ones with PostgreSQL)
    #[arg(long, conflicts_with = "as_file")]
    pub(crate) store: bool,
    /// Policies in files on this machine (default for new ones with SQLite)
    #[arg(long)]
    pub(crate) as_file: bool,
    /// Policies for all orgs; requires the server's owner
    #[arg(long, conflicts_with = "org")]
    pub(crate) all_orgs: bool,
}

impl PolicyLocationOptions {
    /// The location selected by the options, if any.
    pub(crate) fn shelf(self) -> Option<PolicyLocation> {
        match self {
            Self { store: true, .. } => Some(PolicyLocation::Store),
            Self { as_file: true, .. } => Some(PolicyLocation::Files),
            Self { .. } => None,
        }
    }
}

/// Templates of policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PolicyTemplateName {
    /// Permit calls of an agent
    AllowAgent,
    /// Permit calls of one skill
    AllowSkill,
    /// Permit calls of all agents with a trust level: external, trusted or system
    AllowTrust,
    /// Permit calls of all skills with a tag
    AllowTag,
    /// Permit administration over the network to a --caller or --role
    AllowAdmin,
    /// Forbid calls of an agent, overriding all permits
    DenyAgent,
    /// Forbid calls of one skill, overriding all permits
    DenySkill,
    /// Require approval for calls of an agent or a skill; `rialto approvals` lists pending ones
    RequireApproval,
}

// === impl PolicyTemplateName ===

impl PolicyTemplateName {
    /// Name of the template on the command line and in the API.
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
pub(crate) struct PolicyTestOptions {
    /// Skill (vercel_ops.deploy) or agent; omit for an admin action, which applies to the caller's org
    pub(crate) target: Option<String>,
    /// Caller; an agent by slug, name, id or URL
    #[arg(long, default_value = "local")]
    pub(crate) caller: String,
    /// Kind of the caller: user, session or agent
    #[arg(long, default_value = "user")]
    pub(crate) caller_kind: CallerKindName,
    /// Action: a2a_invoke, a2a_discover, a2a_cancel, admin_agents, admin_policies, admin_tokens or admin_audit
    #[arg(long, default_value = "a2a_invoke")]
    pub(crate) action: String,
    #[command(flatten)]
    pub(crate) listing: OutputOptions,
}
