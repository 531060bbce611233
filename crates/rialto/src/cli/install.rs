//! Options of `rialto install` and `rialto uninstall`.

use clap::{Args, Subcommand, ValueEnum};

/// Commands about the configuration of MCP clients.
#[derive(Debug, Subcommand)]
pub(crate) enum ClientCommand {
    /// Add Rialto to the configuration of an MCP client
    Install(InstallOptions),
    /// Remove Rialto from the configuration of an MCP client
    Uninstall(UninstallOptions),
}

#[derive(Debug, Args)]
pub(crate) struct InstallOptions {
    /// MCP client
    pub(crate) client: ClientApp,
    /// Base URL of an agent to load at the start (repeatable; agents of an existing entry are kept)
    #[arg(long = "agent", value_name = "URL", conflicts_with = "http")]
    pub(crate) agents: Vec<String>,
    /// URL of a running server to connect to, in place of starting a program: https://host/mcp
    #[arg(long, value_name = "URL")]
    pub(crate) http: Option<String>,
    /// Environment variable of the client with the token for --http
    #[arg(long, value_name = "NAME", requires = "http")]
    pub(crate) token_env: Option<String>,
    /// Check that the client can connect with its current entry; write nothing
    #[arg(long, conflicts_with_all = ["agents", "http", "yes", "dry_run"])]
    pub(crate) check: bool,
    /// Write without confirmation
    #[arg(long)]
    pub(crate) yes: bool,
    /// Show the change without writing it
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Args)]
pub(crate) struct UninstallOptions {
    /// MCP client
    pub(crate) client: ClientApp,
    /// Write without confirmation
    #[arg(long)]
    pub(crate) yes: bool,
    /// Show the change without writing it
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// MCP clients with known configuration files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ClientApp {
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

// === impl ClientApp ===

impl ClientApp {
    /// Name on the command line.
    pub(crate) fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }
}
