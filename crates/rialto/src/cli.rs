//! Options and help of the command line.

mod approvals;
mod audit;
mod costs;
mod credential;
mod global;
mod guard;
mod install;
mod maintenance;
mod nodes;
mod orgs;
mod policy;
mod routing;
mod secrets;
mod sessions;
mod stored_workflows;
mod tokens;
mod tools;
mod webhooks;
mod workflow;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use rialto_model::call::CallerKind;
use rialto_telemetry::LogFormat;

pub(crate) use self::{
    approvals::{ApprovalsCommand, DecideOptions},
    audit::{AuditCommand, AuditOptions, AuditSearchOptions, CallOutcomeName},
    costs::{CostGrouping, CostsOptions},
    credential::{AgentCredentialOptions, AuthSchemeName, ClientAuthName, CredentialFlags, KeyPlaceName},
    global::{ExplicitOptions, RemoteServerOptions, TenantOptions},
    guard::{GuardActionName, GuardCommand, GuardTestOptions},
    install::{ClientApp, ClientCommand, InstallOptions, UninstallOptions},
    maintenance::{BackupOptions, MaintenanceCommand, RestoreOptions},
    nodes::NodesCommand,
    orgs::{CreateOrgOptions, OrgsCommand, ProjectsCommand, TenantsCommand},
    policy::{AddPolicyOptions, AllowCallsOptions, PolicyCommand, PolicyLocationOptions, PolicyTestOptions},
    routing::{DispatchOptions, DispatchesOptions, RouteCommand, RoutingCommand, WorkOptions},
    secrets::SecretsCommand,
    sessions::SessionsCommand,
    stored_workflows::{
        AddWorkflowOptions, ListRunsOptions, PipelineCommand, ResumeRunOptions, RunWorkflowOptions,
        StoredWorkflowCommand,
    },
    tokens::{CreateTokenOptions, RoleName, TokenLifetime, TokenScopeName, TokensCommand},
    tools::{AddToolOptions, ToolsCommand},
    webhooks::{AddWebhookOptions, WebhooksCommand},
    workflow::{GraphWorkflowOptions, ValidateWorkflowOptions, WorkflowCommand, WorkflowFileCommand},
};

/// Bridge between MCP and A2A: every A2A agent becomes a set of MCP tools
#[derive(Debug, Parser)]
#[command(name = "rialto", version, about, max_term_width = 100)]
pub(crate) struct RialtoCli {
    #[command(flatten)]
    pub(crate) common: GlobalOptions,
    #[command(subcommand)]
    pub(crate) command: RialtoCommand,
}

/// Options that every command accepts.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = GLOBAL_HEADING)]
pub(crate) struct GlobalOptions {
    /// Data folder: database, policies and keys (default: the user's data folder of this system)
    #[arg(long, global = true, value_name = "DIR", env = "RIALTO_DATA")]
    pub(crate) data: Option<PathBuf>,
    /// Configuration file (default: rialto.toml in the current folder, if it exists)
    #[arg(long, global = true, value_name = "FILE", env = "RIALTO_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// Log filter for stderr: error, warn, info, debug, or one such as rialto_a2a_client=debug
    #[arg(long, global = true, value_name = "FILTER", env = "RIALTO_LOG")]
    pub(crate) log: Option<String>,
    /// Log format: text (default) or json
    #[arg(
        long,
        global = true,
        value_name = "FORMAT",
        env = "RIALTO_LOG_FORMAT",
        value_parser = global::log_format_parser()
    )]
    pub(crate) log_format: Option<LogFormat>,
    #[command(flatten)]
    pub(crate) tenant: TenantOptions,
    #[command(flatten)]
    pub(crate) remote: RemoteServerOptions,
}

/// Heading of the options that every command accepts, the last in `--help`.
pub(crate) const GLOBAL_HEADING: &str = "Global options";

#[derive(Debug, Subcommand)]
pub(crate) enum RialtoCommand {
    /// Run the HTTP server: MCP at /mcp, A2A at /a2a, plain HTTP at /call, console at /factory
    Serve(ServeOptions),
    /// Run an MCP server over stdio
    Mcp(McpStdioOptions),
    /// Run a demonstration with built-in sample agents
    Demo(DemoOptions),
    /// Register, list, show and remove agents
    #[command(subcommand)]
    Agents(AgentsCommand),
    /// Add, list and remove tools: MCP servers and functions
    #[command(subcommand)]
    Tools(ToolsCommand),
    /// Call a skill and print its result
    Call(CallOptions),
    #[command(flatten)]
    Routing(RoutingCommand),
    /// Validate, draw, save and run workflows
    #[command(subcommand)]
    Workflow(WorkflowCommand),
    /// Save and run pipelines: tools in sequence, published as skills
    #[command(subcommand)]
    Pipeline(PipelineCommand),
    /// List, show and cancel tasks
    #[command(subcommand)]
    Tasks(TasksCommand),
    #[command(flatten)]
    Record(RecordsCommand),
    #[command(flatten)]
    Tenants(TenantsCommand),
    /// Add, check, test and list policies
    #[command(subcommand)]
    Policy(PolicyCommand),
    /// Test guardrails on a text
    #[command(subcommand)]
    Guard(GuardCommand),
    /// Create, list and revoke tokens for callers of the server
    #[command(subcommand)]
    Tokens(TokensCommand),
    /// Store agents' secrets, encrypted
    #[command(subcommand)]
    Secrets(SecretsCommand),
    /// Create and show the signing key of Rialto's agent cards
    #[command(subcommand)]
    Keys(KeysCommand),
    /// Print the configuration or its JSON Schema
    #[command(subcommand)]
    Config(ConfigCommand),
    #[command(flatten)]
    Client(ClientCommand),
    #[command(flatten)]
    Maintenance(MaintenanceCommand),
    /// Print a completion script for a shell
    Completions {
        /// Shell to complete for
        shell: Shell,
    },
}

/// Commands about approvals and the records of calls.
#[derive(Debug, Subcommand)]
pub(crate) enum RecordsCommand {
    /// List calls that wait for approval, approve or deny them
    #[command(subcommand)]
    Approvals(ApprovalsCommand),
    /// Search the audit log, newest first, and verify it
    Audit(AuditOptions),
    /// Show one call: request, policy decision, upstream call and events
    Inspect {
        /// Task id, Rialto's or the agent's
        task: String,
        #[command(flatten)]
        listing: OutputOptions,
    },
    /// Sum the costs of completed calls, where agents' cards declare them
    Costs(CostsOptions),
    /// Manage webhooks for call events
    #[command(subcommand)]
    Webhooks(WebhooksCommand),
    /// List and end console sessions
    #[command(subcommand)]
    Sessions(SessionsCommand),
}

/// Output format of a command.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct OutputOptions {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ServeOptions {
    /// Address to listen on (default: 127.0.0.1:8420)
    #[arg(long, value_name = "HOST:PORT", env = "RIALTO_ADDR")]
    pub(crate) addr: Option<String>,
    /// Accept requests without a token; only on loopback addresses
    #[arg(long)]
    pub(crate) allow_no_auth: bool,
    /// Start on a damaged database with the rows that can still be read
    #[arg(long)]
    pub(crate) accept_damage: bool,
}

#[derive(Debug, Args)]
pub(crate) struct McpStdioOptions {
    /// Base URL of an agent to load at the start (repeatable)
    #[arg(long = "agent", value_name = "URL")]
    pub(crate) agents: Vec<String>,
    /// Cedar policy file that replaces the starter policy
    #[arg(long, value_name = "FILE")]
    pub(crate) policy: Option<PathBuf>,
    /// Tool names to list: auto (default), canonical, legacy or both
    #[arg(long, value_name = "MODE")]
    pub(crate) names: Option<String>,
    /// Tools to list: all (default), or search (three tools that find, describe and call the others)
    #[arg(long, value_name = "LIST")]
    pub(crate) tools: Option<String>,
    /// Form of argument schemas: auto (default), portable (no references, a plain object at the root) or original
    #[arg(long, value_name = "KIND")]
    pub(crate) schemas: Option<String>,
    /// Form of failed calls: result (default; the model reads the reason) or protocol (JSON-RPC errors)
    #[arg(long, value_name = "FORM")]
    pub(crate) errors: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct DemoOptions {
    /// Exit after the last step; the status is 1 if a step failed
    #[arg(long)]
    pub(crate) once: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AgentsCommand {
    /// Register an agent by its base URL
    Add(Box<AddAgentOptions>),
    /// Register agents from a file, one base URL per line
    Import(ImportAgentsOptions),
    /// List all agents
    List(OutputOptions),
    /// Show one agent: skills, card, health and history
    Show {
        /// Agent by slug, name, id or URL
        agent: String,
        #[command(flatten)]
        listing: OutputOptions,
    },
    /// Fetch the card of an agent again
    Refresh {
        /// Agent by slug, name, id or URL; omit with --all
        #[arg(required_unless_present = "all")]
        agent: Option<String>,
        /// Refresh every agent
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        listing: OutputOptions,
    },
    /// Remove an agent
    Remove {
        /// Agent by slug, name, id or URL
        agent: String,
    },
    /// Set the trust level of an agent
    Trust {
        /// Agent by slug, name, id or URL
        agent: String,
        /// Trust level: external or trusted
        level: String,
    },
    /// Set the credential sent to an agent, globally or per caller
    Credential(Box<AgentCredentialOptions>),
    /// Approve a changed card that waits for approval
    Approve {
        /// Agent by slug, name, id or URL
        agent: String,
    },
}

#[derive(Clone, Debug, Args)]
pub(crate) struct AddAgentOptions {
    /// Base URL of the agent
    pub(crate) url: String,
    /// Trust level: external (default) or trusted
    #[arg(long, value_name = "LEVEL")]
    pub(crate) trust: Option<String>,
    /// Add a policy that permits all callers to call its skills
    #[arg(long)]
    pub(crate) allow: bool,
    /// Path of the card below the base URL (default: the well-known paths)
    #[arg(long, value_name = "PATH")]
    pub(crate) card_path: Option<String>,
    /// Call timeout for this agent, in milliseconds (default: calls.timeout_ms)
    #[arg(long, value_name = "MS")]
    pub(crate) timeout_ms: Option<u64>,
    #[command(flatten)]
    pub(crate) listing: OutputOptions,
    #[command(flatten)]
    pub(crate) credential: CredentialFlags,
}

#[derive(Debug, Args)]
pub(crate) struct ImportAgentsOptions {
    /// File with one URL per line; `-` reads stdin
    pub(crate) file: PathBuf,
    /// Trust level: external (default) or trusted
    #[arg(long, value_name = "LEVEL")]
    pub(crate) trust: Option<String>,
    #[command(flatten)]
    pub(crate) listing: OutputOptions,
}

#[derive(Debug, Args)]
pub(crate) struct CallOptions {
    /// Skill (vercel_ops.deploy or a2a_vercel_ops_deploy), tool, or agent that receives a message
    pub(crate) name: String,
    /// Arguments as JSON, or the message; `-` reads stdin
    pub(crate) input: Option<String>,
    /// Base URL of an agent to load for this call only (repeatable)
    #[arg(long = "agent", value_name = "URL")]
    pub(crate) agents: Vec<String>,
    /// Task to continue
    #[arg(long, value_name = "ID")]
    pub(crate) task: Option<String>,
    /// Conversation to continue
    #[arg(long, value_name = "ID")]
    pub(crate) context: Option<String>,
    /// Time to wait for the result, in milliseconds (default: calls.timeout_ms)
    #[arg(long, value_name = "MS")]
    pub(crate) timeout_ms: Option<u64>,
    #[command(flatten)]
    pub(crate) listing: OutputOptions,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KeysCommand {
    /// Create a key (ES256) in a file that only its owner can read
    Create {
        /// File to write (default: card-key.pem in the data folder)
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Show the public key that verifies Rialto's card signatures
    Show {
        /// Key file (default: the one in the configuration)
        file: Option<PathBuf>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum TasksCommand {
    /// List tasks, newest first
    List {
        /// Only active tasks
        #[arg(long)]
        open: bool,
        /// Only tasks of this agent: slug, name, id or URL
        #[arg(long)]
        agent: Option<String>,
        /// Maximum number of rows
        #[arg(long, default_value_t = 50)]
        limit: usize,
        /// Only tasks older than this one
        #[arg(long, value_name = "ID")]
        before: Option<String>,
        #[command(flatten)]
        listing: OutputOptions,
    },
    /// List push notifications that could not be delivered, newest first
    Undelivered {
        /// Maximum number of rows
        #[arg(long, default_value_t = 50)]
        limit: usize,
        #[command(flatten)]
        listing: OutputOptions,
    },
    /// Show one task; the state of an active one is requested from its agent
    Show {
        /// Task id, Rialto's or the agent's
        task: String,
        #[command(flatten)]
        listing: OutputOptions,
    },
    /// Cancel a task
    Cancel {
        /// Task id, Rialto's or the agent's
        task: String,
        #[command(flatten)]
        listing: OutputOptions,
    },
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum CallerKindName {
    User,
    Session,
    Agent,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print all options with meaning and default, as JSON Schema
    Schema,
    /// Print the active configuration, as TOML
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
