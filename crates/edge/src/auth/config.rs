//! Whose tokens are taken besides our own.

use rialto_model::call::CallerKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Who may come in besides those with a token of `rialto tokens create`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Servers whose signed tokens (JWT, OpenID Connect) are taken.
    pub issuers: Vec<IssuerConfig>,
    /// Whether the tokens of these servers may be exchanged for tokens of agents (RFC 8693). A caller's token is then held in
    /// memory while its call lasts. Agents that want that are given `--auth exchange`.
    pub exchange_tokens: bool,
}

/// A server whose signed tokens are taken, and how they are read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IssuerConfig {
    /// Its address, exactly as its tokens spell it in `iss`.
    pub issuer: String,
    /// What its tokens must name in `aud`: this server, and no other. There is no default.
    #[serde(default)]
    pub audience: String,
    /// Where its keys are. Default: where `<issuer>/.well-known/openid-configuration` says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jwks_url: Option<String>,
    /// The claim with the caller's name.
    #[serde(default = "sub")]
    pub caller_claim: String,
    /// Stands before each caller's name, so that nobody of this issuer is taken for somebody else.
    #[serde(default)]
    pub caller_prefix: String,
    /// The claim with the caller's org. Without it, all callers of this issuer are in the org `default`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub org_claim: Option<String>,
    /// The claim with the caller's project. Without it, that is `main`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_claim: Option<String>,
    /// The claim that says what may be done: call, discover, admin. A text with spaces, or a list.
    #[serde(default = "scope")]
    pub scope_claim: String,
    /// What may be done with a token that does not have that claim at all.
    #[serde(default)]
    pub default_scope: String,
    /// What its callers are.
    #[serde(default)]
    pub kind: Kind,
    /// Whether a token may be shown more than once. Clients do that with each request.
    #[serde(default)]
    pub replay: Replay,
    /// Whether it may be at a private address, and reached without encryption.
    #[serde(default)]
    pub allow_private: bool,
}

/// What kind of caller comes with a token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A person, or a program on their behalf.
    #[default]
    User,
    /// One client's session.
    Session,
    /// An agent that calls in.
    Agent,
}

/// What happens to a token that was shown before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Replay {
    /// It is taken again.
    #[default]
    Allow,
    /// It is refused; each needs a `jti` of its own.
    Refuse,
}

// === impl Kind ===

impl From<Kind> for CallerKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::User => Self::User,
            Kind::Session => Self::Session,
            Kind::Agent => Self::Agent,
        }
    }
}

fn sub() -> String {
    "sub".to_owned()
}

fn scope() -> String {
    "scope".to_owned()
}
