//! `rialto tools …`, as `--help` shows it.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{Call, Listing};

/// What can be done with MCP servers and functions.
#[derive(Debug, Subcommand)]
pub(crate) enum Tools {
    /// Deploy an MCP server or a function: at an address, or as a command behind `--`
    Add(Box<AddTool>),
    /// List what is deployed, and its tools
    List(Listing),
    /// Show one server or function with all its tools
    Show {
        /// Its name, or the name of one of its tools
        name: String,
        #[command(flatten)]
        listing: Listing,
    },
    /// Take something back that was deployed
    Remove {
        /// Its name
        name: String,
    },
    /// Call a tool and print its result
    Call(Call),
}

#[derive(Debug, Args)]
pub(crate) struct AddTool {
    /// Its name: letters, digits, `-` and `_`
    pub(crate) name: String,
    /// Its address
    #[arg(long, conflicts_with = "command", required_unless_present = "command")]
    pub(crate) url: Option<String>,
    /// It is a function (arguments in, result out), not an MCP server
    #[arg(long)]
    pub(crate) function: bool,
    /// A header that is sent there, as `NAME: VALUE` (repeatable); ${VARIABLE} and ${store:NAME} stand for secrets
    #[arg(long = "header", value_name = "NAME: VALUE", requires = "url")]
    pub(crate) headers: Vec<String>,
    /// A variable of the command, as `NAME=VALUE` (repeatable); ${VARIABLE} and ${store:NAME} stand for secrets
    #[arg(long = "env", value_name = "NAME=VALUE", requires = "command")]
    pub(crate) env: Vec<String>,
    /// The folder the command is started in
    #[arg(long, value_name = "DIR", requires = "command")]
    pub(crate) cwd: Option<PathBuf>,
    /// The agent or skill that says what an MCP server would have a model say; without it that is declined
    #[arg(long, value_name = "NAME", conflicts_with = "function")]
    pub(crate) sampling: Option<String>,
    /// How far an MCP server is trusted: external or trusted. What an external one changes in its tools is held until it is approved
    #[arg(long, value_name = "LEVEL", conflicts_with = "function")]
    pub(crate) trust: Option<String>,
    /// What a function does
    #[arg(long, value_name = "TEXT", requires = "function")]
    pub(crate) description: Option<String>,
    /// A file with the JSON Schema of a function's arguments
    #[arg(long, value_name = "FILE", requires = "function")]
    pub(crate) schema: Option<PathBuf>,
    /// A file with the JSON Schema of a function's result
    #[arg(long, value_name = "FILE", requires = "function")]
    pub(crate) output_schema: Option<PathBuf>,
    /// Calling the function twice does no more than calling it once
    #[arg(long, requires = "function")]
    pub(crate) idempotent: bool,
    /// How long a call may take, in seconds
    #[arg(long, value_name = "SECONDS")]
    pub(crate) timeout: Option<f64>,
    #[command(flatten)]
    pub(crate) listing: Listing,
    /// The command and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}
