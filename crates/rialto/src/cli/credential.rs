//! Options for the credentials sent to agents.

use clap::{Args, ValueEnum};
use rialto_model::credential::SecretSource;

use super::OutputOptions;

/// Source of a credential and its authentication scheme. Without a scheme option, the agent's card decides.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Credential")]
pub(crate) struct CredentialFlags {
    /// Environment variable with the secret; short for --secret env:VARIABLE
    #[arg(long, value_name = "VARIABLE", conflicts_with_all = ["token_file", "secret"])]
    pub(crate) token_env: Option<String>,
    /// File with the secret; short for --secret file:FILE
    #[arg(long, value_name = "FILE", conflicts_with = "secret")]
    pub(crate) token_file: Option<String>,
    /// Source of the secret: env:NAME, file:PATH or store:NAME (see `rialto secrets`)
    #[arg(long, value_name = "SOURCE", value_parser = source)]
    pub(crate) secret: Option<SecretSource>,
    /// Authentication scheme (default: as declared by the agent's card)
    #[arg(long, value_name = "KIND")]
    pub(crate) auth: Option<AuthSchemeName>,
    /// Location of an API key (default: header)
    #[arg(long, value_name = "PLACE")]
    pub(crate) key_in: Option<KeyPlaceName>,
    /// Name of the header, parameter or cookie for an API key
    #[arg(long, value_name = "NAME")]
    pub(crate) key_name: Option<String>,
    /// User of basic authentication (default: the secret is user:password)
    #[arg(long, value_name = "NAME")]
    pub(crate) user: Option<String>,
    /// OAuth 2 client id; the secret is the client secret
    #[arg(long, value_name = "ID")]
    pub(crate) client_id: Option<String>,
    /// OAuth 2 token endpoint (default: the card's, if it is on the agent's host)
    #[arg(long, value_name = "URL")]
    pub(crate) token_url: Option<String>,
    /// OAuth 2 scope to request (repeatable; default: the scopes that the card requires)
    #[arg(long = "token-scope", value_name = "SCOPE")]
    pub(crate) token_scopes: Vec<String>,
    /// Audience of the OAuth 2 token
    #[arg(long, value_name = "AUDIENCE")]
    pub(crate) audience: Option<String>,
    /// OAuth 2 client authentication: basic (default) or post
    #[arg(long, value_name = "METHOD")]
    pub(crate) client_auth: Option<ClientAuthName>,
    /// Additional host of the agent's card that receives the credential (repeatable; default: the agent's own host only)
    #[arg(long = "for-host", visible_alias = "credential-for", value_name = "HOST[:PORT]")]
    pub(crate) hosts: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct AgentCredentialOptions {
    /// Agent by slug, name, id or URL
    pub(crate) agent: String,
    #[command(flatten)]
    pub(crate) credential: CredentialFlags,
    /// Set a separate secret for calls of this caller
    #[arg(long, value_name = "NAME")]
    pub(crate) for_caller: Option<String>,
    /// Reject callers without a separate secret, in place of using the agent's (default: false)
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    pub(crate) named_callers_only: Option<bool>,
    /// Remove the credential; with --for-caller, that caller's
    #[arg(long)]
    pub(crate) remove: bool,
    #[command(flatten)]
    pub(crate) listing: OutputOptions,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AuthSchemeName {
    Bearer,
    ApiKey,
    Basic,
    #[value(name = "oauth2")]
    OAuth2,
    /// A token exchanged for the caller's own (RFC 8693)
    Exchange,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum KeyPlaceName {
    Header,
    Query,
    Cookie,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ClientAuthName {
    Basic,
    Post,
}

fn source(text: &str) -> Result<SecretSource, String> {
    SecretSource::parse(text).ok_or_else(|| {
        "use env:NAME, file:PATH or store:NAME; the secret itself must not be on the command line".to_owned()
    })
}
