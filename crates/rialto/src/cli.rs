//! The command line, as `--help` shows it.

mod approvals;
mod audit;
mod backup;
mod costs;
mod credential;
mod flows;
mod guard;
mod install;
mod nodes;
mod orgs;
mod policy;
mod remote;
mod routing;
mod secrets;
mod sessions;
mod tokens;
mod tools;
mod webhooks;
mod workflow;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use rialto_model::call::CallerKind;

pub(crate) use self::{
    approvals::{Approvals, Decision},
    audit::{Audit, AuditCommand, AuditSearch, OutcomeName},
    backup::{BackupOptions, Maintenance, RestoreOptions},
    costs::{CostKey, Costs},
    credential::{AgentCredential, AuthKind, ClientAuthName, CredentialFlags, KeyPlaceName},
    flows::{AddFlow, Flows, ListRuns, Pipeline, ResumeRun, RunFlow},
    guard::{ActionName, Guard, GuardTest},
    install::{Client, ClientCommand, Install, Uninstall},
    nodes::Nodes,
    orgs::{CreateOrg, Orgs, Projects, Tenants},
    policy::{AddPolicy, AllowCalls, OnShelf, Policy, PolicyTest},
    remote::{Remote, Tenant, TypedOptions},
    routing::{Dispatch, Dispatches, RouteCommand, Routing, WorkFlags},
    secrets::Secrets,
    sessions::Sessions,
    tokens::{CreateToken, Lifetime, RightName, RoleName, Tokens},
    tools::{AddTool, Tools},
    webhooks::{AddWebhook, Webhooks},
    workflow::{GraphWorkflow, ValidateWorkflow, Workflow, WorkflowFile},
};
use crate::telemetry::LogFormat;

/// The bridge between MCP and A2A: every A2A agent becomes a set of MCP tools.
#[derive(Debug, Parser)]
#[command(name = "rialto", version, about, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What every command takes.
#[derive(Clone, Debug, Args)]
pub(crate) struct Common {
    /// The folder everything is kept in
    #[arg(long, global = true, value_name = "DIR", env = "RIALTO_DATA")]
    pub(crate) data: Option<PathBuf>,
    /// The configuration file (default: rialto.toml in this folder, if it is there)
    #[arg(long, global = true, value_name = "FILE", env = "RIALTO_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// What to log on stderr: error, warn, info, debug, or a filter like rialto_a2a=debug
    #[arg(long, global = true, value_name = "FILTER", env = "RIALTO_LOG")]
    pub(crate) log: Option<String>,
    /// How the log looks: text for people, json for programs
    #[arg(long, global = true, value_name = "FORMAT", env = "RIALTO_LOG_FORMAT")]
    pub(crate) log_format: Option<LogFormat>,
    #[command(flatten)]
    pub(crate) tenant: Tenant,
    #[command(flatten)]
    pub(crate) remote: Remote,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve everything that can be called: MCP at /mcp, A2A at /a2a, plain HTTP at /call
    Serve(Serve),
    /// Be an MCP server on stdin and stdout
    Mcp(Mcp),
    /// Show the bridge at work with built-in sample agents
    Demo(Demo),
    /// Register, look at and remove agents
    #[command(subcommand)]
    Agents(Agents),
    /// Deploy MCP servers and functions, look at them, and take them back
    #[command(subcommand)]
    Tools(Tools),
    /// Call a skill and print its result
    Call(Call),
    #[command(flatten)]
    Routing(Routing),
    /// Check workflows and draw them; keep them, run them, and look after their runs
    #[command(subcommand)]
    Workflow(Workflow),
    /// Keep pipelines: tools one after the other, published as skills
    #[command(subcommand)]
    Pipeline(Pipeline),
    /// Look at tasks and call them off
    #[command(subcommand)]
    Tasks(Tasks),
    #[command(flatten)]
    Record(Record),
    #[command(flatten)]
    Tenants(Tenants),
    /// Say who may do what: write, check, test and list policies
    #[command(subcommand)]
    Policy(Policy),
    /// Try guardrails out: what may be said, and what may not
    #[command(subcommand)]
    Guard(Guard),
    /// Make and revoke tokens for callers of the server
    #[command(subcommand)]
    Tokens(Tokens),
    /// Keep agents' secrets, encrypted
    #[command(subcommand)]
    Secrets(Secrets),
    /// Make and show the key that our own agent cards are signed with
    #[command(subcommand)]
    Keys(Keys),
    /// Look at the configuration
    #[command(subcommand)]
    Config(Config),
    #[command(flatten)]
    Client(ClientCommand),
    #[command(flatten)]
    Maintenance(Maintenance),
    /// Print a completion script for a shell
    Completions {
        /// Which shell
        shell: Shell,
    },
}

/// What is done with calls that wait, and with the record of those that were made.
#[derive(Debug, Subcommand)]
pub(crate) enum Record {
    /// Look at calls that wait for approval, and decide about them
    #[command(subcommand)]
    Approvals(Approvals),
    /// Search the audit trail, newest first, and verify it
    Audit(Audit),
    /// Show one call from both sides: what came in, what went out, and what happened when
    Inspect {
        /// The task, by our id or the agent's
        task: String,
        #[command(flatten)]
        listing: Listing,
    },
    /// Sum up what completed calls cost, as far as agents' cards say it
    Costs(Costs),
    /// Have other programs told of calls, as signed events
    #[command(subcommand)]
    Webhooks(Webhooks),
    /// List and end console sessions
    #[command(subcommand)]
    Sessions(Sessions),
}

/// How a listing is printed.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Listing {
    /// Print JSON for programs
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Where to listen
    #[arg(long, value_name = "HOST:PORT", env = "RIALTO_ADDR")]
    pub(crate) addr: Option<String>,
    /// Let everybody in who can reach the address; only on loopback
    #[arg(long)]
    pub(crate) allow_no_auth: bool,
    /// Start on a damaged database with what can still be read
    #[arg(long)]
    pub(crate) accept_damage: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Mcp {
    /// An agent to load at the start (repeatable)
    #[arg(long = "agent", value_name = "URL")]
    pub(crate) agents: Vec<String>,
    /// A Cedar policy file in place of the starter policy
    #[arg(long, value_name = "FILE")]
    pub(crate) policy: Option<PathBuf>,
    /// Names to list: auto, canonical, legacy or both
    #[arg(long, value_name = "MODE")]
    pub(crate) names: Option<String>,
    /// Tools to list: all, or search (three tools that find, describe and call the others)
    #[arg(long, value_name = "LIST")]
    pub(crate) tools: Option<String>,
    /// Schemas of arguments to list: auto, portable (no references, a plain object at the root) or original
    #[arg(long, value_name = "KIND")]
    pub(crate) schemas: Option<String>,
    /// Form of failed calls: result (the model reads the reason) or protocol (JSON-RPC errors)
    #[arg(long, value_name = "FORM")]
    pub(crate) errors: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// Exit when everything was shown, with a status that says whether it worked
    #[arg(long)]
    pub(crate) once: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Agents {
    /// Register an agent by its base URL
    Add(Box<AddAgent>),
    /// Register many agents, one URL a line
    Import(ImportAgents),
    /// List all agents
    List(Listing),
    /// Show one agent: skills, card, health, history
    Show {
        /// Slug, name, id or URL
        agent: String,
        #[command(flatten)]
        listing: Listing,
    },
    /// Fetch the card again
    Refresh {
        /// Slug, name, id or URL; none with --all
        #[arg(required_unless_present = "all")]
        agent: Option<String>,
        /// Refresh every agent
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        listing: Listing,
    },
    /// Forget an agent
    Remove {
        /// Slug, name, id or URL
        agent: String,
    },
    /// Say how far an agent is trusted
    Trust {
        /// Slug, name, id or URL
        agent: String,
        /// external or trusted
        level: String,
    },
    /// Say what an agent is shown at its door, and for whom
    Credential(Box<AgentCredential>),
    /// Take a changed card into use that was held back
    Approve {
        /// Slug, name, id or URL
        agent: String,
    },
}

#[derive(Clone, Debug, Args)]
pub(crate) struct AddAgent {
    /// The agent's base URL
    pub(crate) url: String,
    /// external (default) or trusted
    #[arg(long, value_name = "LEVEL")]
    pub(crate) trust: Option<String>,
    /// Write a policy that lets everybody call its skills
    #[arg(long)]
    pub(crate) allow: bool,
    /// Where below the base URL its card is, when not at a well-known place
    #[arg(long, value_name = "PATH")]
    pub(crate) card_path: Option<String>,
    /// Its own wall clock, in milliseconds
    #[arg(long, value_name = "MS")]
    pub(crate) timeout_ms: Option<u64>,
    #[command(flatten)]
    pub(crate) listing: Listing,
    #[command(flatten)]
    pub(crate) credential: CredentialFlags,
}

#[derive(Debug, Args)]
pub(crate) struct ImportAgents {
    /// The file; `-` reads stdin
    pub(crate) file: PathBuf,
    /// external (default) or trusted
    #[arg(long, value_name = "LEVEL")]
    pub(crate) trust: Option<String>,
    #[command(flatten)]
    pub(crate) listing: Listing,
}

#[derive(Debug, Args)]
pub(crate) struct Call {
    /// A skill (vercel_ops.deploy or a2a_vercel_ops_deploy), a tool, or an agent to send a message to
    pub(crate) name: String,
    /// The arguments as JSON, or the message; `-` reads stdin
    pub(crate) input: Option<String>,
    /// An agent to load for this call only (repeatable)
    #[arg(long = "agent", value_name = "URL")]
    pub(crate) agents: Vec<String>,
    /// The task to go on with
    #[arg(long, value_name = "ID")]
    pub(crate) task: Option<String>,
    /// The conversation to go on with
    #[arg(long, value_name = "ID")]
    pub(crate) context: Option<String>,
    /// How long to wait, in milliseconds
    #[arg(long, value_name = "MS")]
    pub(crate) timeout_ms: Option<u64>,
    #[command(flatten)]
    pub(crate) listing: Listing,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Keys {
    /// Make a key (ES256) and write it to a file that only you can read
    Create {
        /// Where to; `card-key.pem` in the data folder unless said otherwise
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Show the public half of a key, as others need it to check our signatures
    Show {
        /// The key; the one in the configuration unless said otherwise
        file: Option<PathBuf>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Tasks {
    /// List your tasks, newest first
    List {
        /// Only those that are not over
        #[arg(long)]
        open: bool,
        /// Only this agent's
        #[arg(long)]
        agent: Option<String>,
        /// At most so many
        #[arg(long, default_value_t = 50)]
        limit: usize,
        /// Only older ones than this task
        #[arg(long, value_name = "ID")]
        before: Option<String>,
        #[command(flatten)]
        listing: Listing,
    },
    /// List push notifications that were given up, newest first
    Undelivered {
        /// At most so many
        #[arg(long, default_value_t = 50)]
        limit: usize,
        #[command(flatten)]
        listing: Listing,
    },
    /// Show one task; an open one is asked about at its agent
    Show {
        /// Its id, ours or the agent's
        task: String,
        #[command(flatten)]
        listing: Listing,
    },
    /// Call a task off
    Cancel {
        /// Its id, ours or the agent's
        task: String,
        #[command(flatten)]
        listing: Listing,
    },
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum CallerKindName {
    User,
    Session,
    Agent,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Config {
    /// Print every option with its meaning and default, as JSON Schema
    Schema,
    /// Print the configuration in force, as TOML
    Show,
}

// === impl CallerKindName ===

impl CallerKindName {
    pub(crate) const fn kind(self) -> CallerKind {
        match self {
            Self::User => CallerKind::User,
            Self::Session => CallerKind::Session,
            Self::Agent => CallerKind::Agent,
        }
    }
}
