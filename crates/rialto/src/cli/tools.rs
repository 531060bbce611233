//! Options of `rialto tools`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{CallOptions, OutputOptions};

/// Commands for MCP servers and functions.
#[derive(Debug, Subcommand)]
pub(crate) enum ToolsCommand {
    /// Add an MCP server or a function: a URL, or a command after `--`
    Add(Box<AddToolOptions>),
    /// List MCP servers and functions with their tools
    List(OutputOptions),
    /// Show one MCP server or function with its tools
    Show {
        /// Name of the server or function, or of one of its tools
        name: String,
        #[command(flatten)]
        listing: OutputOptions,
    },
    /// Remove an MCP server or a function
    Remove {
        /// Name of the server or function
        name: String,
    },
    /// Call a tool and print its result
    Call(CallOptions),
}

#[derive(Debug, Args)]
pub(crate) struct AddToolOptions {
    /// Name: letters, digits, `-` and `_`
    pub(crate) name: String,
    /// URL of the server or function
    #[arg(long, conflicts_with = "command", required_unless_present = "command")]
    pub(crate) url: Option<String>,
    /// Add a function (arguments in, result out) in place of an MCP server
    #[arg(long)]
    pub(crate) function: bool,
    /// Request header as `NAME: VALUE` (repeatable); ${VARIABLE} and ${store:NAME} insert secrets
    #[arg(long = "header", value_name = "NAME: VALUE", requires = "url")]
    pub(crate) headers: Vec<String>,
    /// Environment variable of the command as `NAME=VALUE` (repeatable); ${VARIABLE} and ${store:NAME} insert secrets
    #[arg(long = "env", value_name = "NAME=VALUE", requires = "command")]
    pub(crate) env: Vec<String>,
    /// Working directory of the command
    #[arg(long, value_name = "DIR", requires = "command")]
    pub(crate) cwd: Option<PathBuf>,
    /// Agent or skill that answers sampling requests of the MCP server (default: they are declined)
    #[arg(long, value_name = "NAME", conflicts_with = "function")]
    pub(crate) sampling: Option<String>,
    /// Trust level of the MCP server: external or trusted. Changes of an external one's tools need approval
    #[arg(long, value_name = "LEVEL", conflicts_with = "function")]
    pub(crate) trust: Option<String>,
    /// Description of the function
    #[arg(long, value_name = "TEXT", requires = "function")]
    pub(crate) description: Option<String>,
    /// File with the JSON Schema of the function's arguments
    #[arg(long, value_name = "FILE", requires = "function")]
    pub(crate) schema: Option<PathBuf>,
    /// File with the JSON Schema of the function's result
    #[arg(long, value_name = "FILE", requires = "function")]
    pub(crate) output_schema: Option<PathBuf>,
    /// Declare the function idempotent: it may be called again after a failure
    #[arg(long, requires = "function")]
    pub(crate) idempotent: bool,
    /// Call timeout, in seconds
    #[arg(long, value_name = "SECONDS")]
    pub(crate) timeout: Option<f64>,
    #[command(flatten)]
    pub(crate) listing: OutputOptions,
    /// Command and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}
