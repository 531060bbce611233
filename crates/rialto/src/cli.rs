//! The command line, as `--help` shows it.

use std::{path::PathBuf, str::FromStr, time::Duration};

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use rialto_model::call::CallerKind;

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
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve MCP over HTTP at /mcp
    Serve(Serve),
    /// Be an MCP server on stdin and stdout
    Mcp(Mcp),
    /// Show the bridge at work with built-in sample agents
    Demo(Demo),
    /// Register, look at and remove agents
    #[command(subcommand)]
    Agents(Agents),
    /// Call a skill and print its result
    Call(Call),
    /// Look at tasks and call them off
    #[command(subcommand)]
    Tasks(Tasks),
    /// Search the audit trail, newest first, and verify it
    Audit(Audit),
    /// Say who may do what: write, check, test and list policies
    #[command(subcommand)]
    Policy(Policy),
    /// Make and revoke tokens for callers of the server
    #[command(subcommand)]
    Tokens(Tokens),
    /// Look at the configuration
    #[command(subcommand)]
    Config(Config),
    /// Write the entry for Rialto into an MCP client's own configuration
    Install(Install),
    /// Find out what would fail, and how to fix it
    Doctor(Listing),
    /// Print a completion script for a shell
    Completions {
        /// Which shell
        shell: Shell,
    },
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
    Add(AddAgent),
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
    /// The environment variable its bearer token is in
    #[arg(long, value_name = "VARIABLE", conflicts_with = "token_file")]
    pub(crate) token_env: Option<String>,
    /// The file its bearer token is in
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<String>,
    /// Where below the base URL its card is, when not at a well-known place
    #[arg(long, value_name = "PATH")]
    pub(crate) card_path: Option<String>,
    /// Its own wall clock, in milliseconds
    #[arg(long, value_name = "MS")]
    pub(crate) timeout_ms: Option<u64>,
    #[command(flatten)]
    pub(crate) listing: Listing,
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
    /// A skill (vercel_ops.deploy or a2a_vercel_ops_deploy), or an agent to send a message to
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

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Audit {
    #[command(subcommand)]
    pub(crate) command: Option<AuditCommand>,
    #[command(flatten)]
    pub(crate) search: AuditSearch,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    /// Check that no record was changed, removed or put in
    Verify(Listing),
}

#[derive(Debug, Args)]
pub(crate) struct AuditSearch {
    /// Only from this moment on: a time (2026-11-15T08:00Z), or how long ago (90m, 2h, 7d)
    #[arg(long, value_name = "WHEN")]
    pub(crate) since: Option<String>,
    /// Only before this moment
    #[arg(long, value_name = "WHEN")]
    pub(crate) until: Option<String>,
    /// Only about this agent: slug, name, id or URL
    #[arg(long)]
    pub(crate) agent: Option<String>,
    /// Only this caller's
    #[arg(long)]
    pub(crate) caller: Option<String>,
    /// Only about this task
    #[arg(long, value_name = "ID")]
    pub(crate) task: Option<String>,
    /// Only what came out like this
    #[arg(long, value_enum)]
    pub(crate) outcome: Option<OutcomeName>,
    /// Only older records than this one
    #[arg(long, value_name = "RECORD")]
    pub(crate) before: Option<u64>,
    /// At most so many
    #[arg(long, default_value_t = 50)]
    pub(crate) limit: usize,
    #[command(flatten)]
    pub(crate) listing: Listing,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum OutcomeName {
    Completed,
    Failed,
    Denied,
}

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
    List(Listing),
    /// Write a policy that lets everybody call an agent's skills
    Allow {
        /// Slug, name, id or URL
        agent: String,
    },
    /// Write a policy: one of the usual ones, or a file of your own
    Add(AddPolicy),
    /// Take a policy away; it can be restored
    Remove {
        /// The policy, or its file
        name: String,
    },
    /// List the texts that a policy had before
    History {
        /// The policy, or its file
        name: String,
        #[command(flatten)]
        listing: Listing,
    },
    /// Make an older text of a policy the one in force
    Restore {
        /// The policy, or its file
        name: String,
        /// The version, as `history` shows it
        version: i64,
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
pub(crate) struct AddPolicy {
    /// Which of the usual policies
    #[arg(required_unless_present = "file", conflicts_with = "file", requires = "target")]
    pub(crate) kind: Option<PolicyKind>,
    /// What it is about: an agent, a skill (vercel_ops.deploy), a level of trust, a tag, or an admin action
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
    /// Who must approve, with require-approval
    #[arg(long, value_name = "WHO", default_value = "an administrator", conflicts_with = "file")]
    pub(crate) by: String,
    #[command(flatten)]
    pub(crate) listing: Listing,
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
    /// Let somebody administer over the network; name them with --caller
    AllowAdmin,
    /// Forbid an agent to be called, whatever permits it
    DenyAgent,
    /// Forbid one skill to be called, whatever permits it
    DenySkill,
    /// Forbid an agent or a skill to be called without approval; approving is not possible yet
    RequireApproval,
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

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum CallerKindName {
    User,
    Session,
    Agent,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Tokens {
    /// Make a token; it is shown this once
    Create(CreateToken),
    /// List tokens, without the tokens themselves
    List(Listing),
    /// Let nobody in with a token any more, from the next request on
    Revoke {
        /// Its id, or its caller's name if that has only one
        token: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct CreateToken {
    /// Who comes with it
    #[arg(value_name = "NAME")]
    pub(crate) caller: String,
    /// What that caller is
    #[arg(long, default_value = "user")]
    pub(crate) kind: CallerKindName,
    /// What may be done with it (repeatable); call and discover if none is named
    #[arg(long = "scope", value_name = "SCOPE")]
    pub(crate) scopes: Vec<RightName>,
    /// How long it is good: 30d, 12h, 15m, 2w or never
    #[arg(long, value_name = "SPAN", default_value = "never")]
    pub(crate) expires: Lifetime,
    /// The org it belongs to
    #[arg(long, value_name = "ORG", default_value = "default", value_parser = slug)]
    pub(crate) org: String,
    /// The project inside the org
    #[arg(long, value_name = "PROJECT", default_value = "main", value_parser = slug)]
    pub(crate) project: String,
    #[command(flatten)]
    pub(crate) listing: Listing,
}

/// What may be done with a token.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum RightName {
    /// Call skills
    Call,
    /// See which skills there are
    Discover,
    /// Change what is registered, and who may come in
    Admin,
}

/// How long something lasts; none is for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lifetime(pub(crate) Option<Duration>);

#[derive(Debug, Subcommand)]
pub(crate) enum Config {
    /// Print every option with its meaning and default, as JSON Schema
    Schema,
    /// Print the configuration in force, as TOML
    Show,
}

#[derive(Debug, Args)]
pub(crate) struct Install {
    /// The client
    pub(crate) client: Client,
    /// An agent to load at the start (repeatable)
    #[arg(long = "agent", value_name = "URL")]
    pub(crate) agents: Vec<String>,
    /// Write without asking
    #[arg(long)]
    pub(crate) yes: bool,
    /// Only show the change
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// The clients whose configuration we know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Client {
    ClaudeCode,
    ClaudeDesktop,
    Gemini,
    Codex,
    Cursor,
    Vscode,
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

// === impl Lifetime ===

impl FromStr for Lifetime {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "never" {
            return Ok(Self(None));
        }
        let (digits, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
        let seconds = match unit {
            "m" => 60,
            "h" => 60 * 60,
            "d" => 24 * 60 * 60,
            "w" => 7 * 24 * 60 * 60,
            _ => 0,
        };
        match digits.parse::<u64>().ok().and_then(|count| count.checked_mul(seconds)) {
            Some(seconds) if seconds > 0 => Ok(Self(Some(Duration::from_secs(seconds)))),
            _ => Err("say a number and m, h, d or w (30d, 12h), or never".to_owned()),
        }
    }
}

/// The name of an org or project. It must be possible to write it in an address.
fn slug(name: &str) -> Result<String, String> {
    if rialto_model::ids::is_slug(name) {
        Ok(name.to_owned())
    } else {
        Err("use letters, digits, `-` and `_`, at most 64 of them, a letter or digit first".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lifetime_is_a_number_and_a_unit() {
        let seconds = |text: &str| text.parse().map(|Lifetime(life)| life.map(|life| life.as_secs()));
        assert_eq!(seconds("never"), Ok(None));
        assert_eq!(seconds("30d"), Ok(Some(30 * 86_400)));
        assert_eq!(seconds("12h"), Ok(Some(12 * 3_600)));
        for wrong in ["", "d", "30", "0d", "-1d", "1y", "99999999999999999999d", "1 d"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }
}
