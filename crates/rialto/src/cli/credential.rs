//! What agents are shown at their doors, as `--help` shows it.

use clap::{Args, ValueEnum};
use rialto_model::credential::SecretSource;

use super::Listing;

/// Where a secret is and how it is shown. Without any flag about the how, the agent's card decides.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Credential")]
pub(crate) struct CredentialFlags {
    /// The environment variable its secret is in; short for --secret env:VARIABLE
    #[arg(long, value_name = "VARIABLE", conflicts_with_all = ["token_file", "secret"])]
    pub(crate) token_env: Option<String>,
    /// The file its secret is in; short for --secret file:FILE
    #[arg(long, value_name = "FILE", conflicts_with = "secret")]
    pub(crate) token_file: Option<String>,
    /// Where its secret is: env:NAME, file:PATH or store:NAME (see `rialto secrets`)
    #[arg(long, value_name = "SOURCE", value_parser = source)]
    pub(crate) secret: Option<SecretSource>,
    /// How the secret is shown, when not as the agent's card says
    #[arg(long, value_name = "KIND")]
    pub(crate) auth: Option<AuthKind>,
    /// Where an API key is put (default: header)
    #[arg(long, value_name = "PLACE")]
    pub(crate) key_in: Option<KeyPlaceName>,
    /// The header, parameter or cookie an API key is put into
    #[arg(long, value_name = "NAME")]
    pub(crate) key_name: Option<String>,
    /// The user of basic authentication; without it the secret is user:password
    #[arg(long, value_name = "NAME")]
    pub(crate) user: Option<String>,
    /// Our name for OAuth 2; the secret is the client's
    #[arg(long, value_name = "ID")]
    pub(crate) client_id: Option<String>,
    /// Where OAuth 2 tokens are handed out (default: where the card says, if that is on the agent's host)
    #[arg(long, value_name = "URL")]
    pub(crate) token_url: Option<String>,
    /// A scope to ask for (repeatable; default: those that the card requires)
    #[arg(long = "token-scope", value_name = "SCOPE")]
    pub(crate) token_scopes: Vec<String>,
    /// Whom the OAuth 2 token shall be for
    #[arg(long, value_name = "AUDIENCE")]
    pub(crate) audience: Option<String>,
    /// How the client says who it is: basic (default) or post
    #[arg(long, value_name = "WAY")]
    pub(crate) client_auth: Option<ClientAuthName>,
    /// A host besides the agent's own that may see the credential too, when its card names one (repeatable)
    #[arg(long = "for-host", visible_alias = "credential-for", value_name = "HOST[:PORT]")]
    pub(crate) hosts: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct AgentCredential {
    /// Slug, name, id or URL
    pub(crate) agent: String,
    #[command(flatten)]
    pub(crate) credential: CredentialFlags,
    /// Give this caller a secret of its own, for its own calls only
    #[arg(long, value_name = "NAME")]
    pub(crate) for_caller: Option<String>,
    /// Whether callers without a secret of their own are refused, in place of going with the agent's
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    pub(crate) named_callers_only: Option<bool>,
    /// Show nothing any more; with --for-caller, nothing of that caller's own
    #[arg(long)]
    pub(crate) remove: bool,
    #[command(flatten)]
    pub(crate) listing: Listing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AuthKind {
    Bearer,
    ApiKey,
    Basic,
    #[value(name = "oauth2")]
    OAuth2,
    /// A token in exchange for the caller's own (RFC 8693)
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
        "say env:NAME, file:PATH or store:NAME; a secret itself has no place on a command line".to_owned()
    })
}
