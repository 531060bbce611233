//! Which server is meant, as `--help` shows it.

use std::path::PathBuf;

use clap::{ArgMatches, Args, parser::ValueSource};
use rialto_model::ids::{OrgId, ProjectId, Scope};

/// A server on another machine, in place of the data folder on this one. The options have ids of their own, because commands
/// have arguments of these names too.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Another machine")]
pub(crate) struct Remote {
    /// Do it on this server, in place of here: https://host, or https://host/ORG/PROJECT for another project
    #[arg(id = "server_url", long = "server", global = true, value_name = "URL", env = "RIALTO_SERVER")]
    pub(crate) server: Option<String>,
    /// The token to go there with. Others on this machine can see what stands on a command line: better set RIALTO_TOKEN, or
    /// use --token-from
    #[arg(
        id = "server_token",
        long = "token",
        global = true,
        value_name = "TOKEN",
        env = "RIALTO_TOKEN",
        hide_env_values = true
    )]
    pub(crate) token: Option<Typed>,
    /// The file that the token is in; `-` reads stdin. It counts for more than the others
    #[arg(id = "server_token_from", long = "token-from", global = true, value_name = "FILE")]
    pub(crate) token_from: Option<PathBuf>,
    /// Send the token over a connection that is not encrypted, where others can read it
    #[arg(long, global = true)]
    pub(crate) allow_plain_http: bool,
    /// What of this stands on the command line, and not in the environment.
    #[arg(skip)]
    pub(crate) typed: TypedOptions,
}

/// The org and project that a command works in.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Org and project")]
pub(crate) struct Tenant {
    /// Work in this org (default: `default`; on a server that of the token)
    #[arg(long, global = true, value_name = "ORG", value_parser = super::tokens::slug)]
    pub(crate) org: Option<String>,
    /// Work in this project of the org (default: `main`; on a server that of the token)
    #[arg(long, global = true, value_name = "PROJECT", value_parser = super::tokens::slug)]
    pub(crate) project: Option<String>,
}

// === impl Tenant ===

impl Tenant {
    /// The org and project, those of a fresh install where none is named.
    pub(crate) fn scope(&self) -> Scope {
        let usual = Scope::default();
        Scope {
            org: self.org.as_deref().map_or(usual.org, OrgId::from),
            project: self.project.as_deref().map_or(usual.project, ProjectId::from),
        }
    }

    /// Whether one of them is named.
    pub(crate) const fn is_named(&self) -> bool {
        self.org.is_some() || self.project.is_some()
    }
}

/// A secret that was typed. It is never shown again.
#[derive(Clone)]
pub(crate) struct Typed(String);

/// Which options were named on the command line itself.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TypedOptions {
    pub(crate) server: bool,
    pub(crate) token: bool,
    pub(crate) data: bool,
}

// === impl Typed ===

impl Typed {
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl From<String> for Typed {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl std::fmt::Debug for Typed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("…")
    }
}

// === impl TypedOptions ===

impl TypedOptions {
    /// Those among all that was given.
    pub(crate) fn among(matches: &ArgMatches) -> Self {
        Self {
            server: is_typed(matches, "server_url"),
            token: is_typed(matches, "server_token") || is_typed(matches, "server_token_from"),
            data: is_typed(matches, "data"),
        }
    }
}

/// An option for every command may stand before or behind the command's name.
fn is_typed(matches: &ArgMatches, option: &str) -> bool {
    matches.value_source(option) == Some(ValueSource::CommandLine)
        || matches.subcommand().is_some_and(|(_, below)| is_typed(below, option))
}
