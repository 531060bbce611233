//! Options of `rialto install` and `rialto uninstall`, as `--help` shows them.

use clap::{Args, Subcommand, ValueEnum};

/// Commands about the configuration of MCP clients.
#[derive(Debug, Subcommand)]
pub(crate) enum ClientCommand {
    /// Write the entry for Rialto into an MCP client's own configuration
    Install(Install),
    /// Remove the entry for Rialto from an MCP client's own configuration
    Uninstall(Uninstall),
}

#[derive(Debug, Args)]
pub(crate) struct Install {
    /// The client
    pub(crate) client: Client,
    /// Load this agent at the start (repeatable; agents that the entry names already stay)
    #[arg(long = "agent", value_name = "URL", conflicts_with = "http")]
    pub(crate) agents: Vec<String>,
    /// Connect to a running server in place of starting a program: https://host/mcp
    #[arg(long, value_name = "URL")]
    pub(crate) http: Option<String>,
    /// The environment variable in which the client finds its token for --http
    #[arg(long, value_name = "NAME", requires = "http")]
    pub(crate) token_env: Option<String>,
    /// Check that the client would connect with the entry that it has; write nothing
    #[arg(long, conflicts_with_all = ["agents", "http", "yes", "dry_run"])]
    pub(crate) check: bool,
    /// Write without asking
    #[arg(long)]
    pub(crate) yes: bool,
    /// Only show the change
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Uninstall {
    /// The client
    pub(crate) client: Client,
    /// Write without asking
    #[arg(long)]
    pub(crate) yes: bool,
    /// Only show the change
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// Clients whose configuration files are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Client {
    ClaudeCode,
    ClaudeDesktop,
    Gemini,
    Codex,
    Cursor,
    Vscode,
    #[value(name = "opencode")]
    OpenCode,
    QwenCode,
    Cline,
    CopilotCli,
    Zed,
    Windsurf,
    Goose,
    Continue,
}

// === impl Client ===

impl Client {
    /// Name on the command line.
    pub(crate) fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }
}
