//! Global options that select a server, an org and a project.

use std::path::PathBuf;

use clap::{
    ArgMatches, Args,
    builder::{PossibleValue, PossibleValuesParser, TypedValueParser},
    parser::ValueSource,
};
use rialto_model::ids::{OrgId, ProjectId, Scope};
use rialto_telemetry::LogFormat;

use super::GLOBAL_HEADING;

/// Server to send a command to, in place of the local data folder. The options have ids of their own, because commands
/// have arguments with these names too.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = GLOBAL_HEADING)]
pub(crate) struct RemoteServerOptions {
    /// Server to run the command on, in place of this machine: https://host, or https://host/ORG/PROJECT
    #[arg(id = "server_url", long = "server", global = true, value_name = "URL", env = "RIALTO_SERVER")]
    pub(crate) server: Option<String>,
    /// Token for --server. Other users of this machine can see command lines: prefer RIALTO_TOKEN or
    /// --token-from
    #[arg(
        id = "server_token",
        long = "token",
        global = true,
        value_name = "TOKEN",
        env = "RIALTO_TOKEN",
        hide_env_values = true
    )]
    pub(crate) token: Option<TypedSecret>,
    /// File with the token; `-` reads stdin. Takes precedence over --token and RIALTO_TOKEN
    #[arg(id = "server_token_from", long = "token-from", global = true, value_name = "FILE")]
    pub(crate) token_from: Option<PathBuf>,
    /// Allow sending the token over unencrypted HTTP
    #[arg(long, global = true)]
    pub(crate) allow_plain_http: bool,
    /// Options given on the command line, not in the environment.
    #[arg(skip)]
    pub(crate) typed: ExplicitOptions,
}

/// Org and project of a command.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = GLOBAL_HEADING)]
pub(crate) struct TenantOptions {
    /// Org to work in (default: `default`; with --server the token's)
    #[arg(long, global = true, value_name = "ORG", value_parser = super::tokens::slug)]
    pub(crate) org: Option<String>,
    /// Project to work in (default: `main`; with --server the token's)
    #[arg(long, global = true, value_name = "PROJECT", value_parser = super::tokens::slug)]
    pub(crate) project: Option<String>,
}

// === impl TenantOptions ===

impl TenantOptions {
    /// The selected org and project, or the defaults.
    pub(crate) fn scope(&self) -> Scope {
        let usual = Scope::default();
        Scope {
            org: self.org.as_deref().map_or(usual.org, OrgId::from),
            project: self.project.as_deref().map_or(usual.project, ProjectId::from),
        }
    }

    /// True if an org or a project is selected.
    pub(crate) const fn is_named(&self) -> bool {
        self.org.is_some() || self.project.is_some()
    }
}

/// Secret from the command line, redacted in `Debug`.
#[derive(Clone)]
pub(crate) struct TypedSecret(String);

/// Options given on the command line itself, not in the environment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ExplicitOptions {
    pub(crate) server: bool,
    pub(crate) token: bool,
    pub(crate) data: bool,
}

/// Parser of log formats by their names.
pub(super) fn log_format_parser() -> impl TypedValueParser<Value = LogFormat> {
    let names = [
        PossibleValue::new("text").help("For people"),
        PossibleValue::new("json").help("One JSON object per line"),
    ];
    PossibleValuesParser::new(names).map(|name| match name.as_str() {
        "json" => LogFormat::Json,
        _ => LogFormat::Text,
    })
}

// === impl TypedSecret ===

impl TypedSecret {
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl From<String> for TypedSecret {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl std::fmt::Debug for TypedSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("…")
    }
}

// === impl ExplicitOptions ===

impl ExplicitOptions {
    /// Finds them among all arguments.
    pub(crate) fn among(matches: &ArgMatches) -> Self {
        Self {
            server: is_typed(matches, "server_url"),
            token: is_typed(matches, "server_token") || is_typed(matches, "server_token_from"),
            data: is_typed(matches, "data"),
        }
    }
}

/// A global option may be before or after the command's name.
fn is_typed(matches: &ArgMatches, option: &str) -> bool {
    matches.value_source(option) == Some(ValueSource::CommandLine)
        || matches.subcommand().is_some_and(|(_, below)| is_typed(below, option))
}
