//! Configuration of trusted token issuers (`[auth]`).

use rialto_model::call::CallerKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Authentication besides the tokens of `rialto tokens create`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Servers whose signed tokens (JWT, OpenID Connect) are accepted.
    pub issuers: Vec<IssuerConfig>,
    /// Allow the exchange of these tokens for tokens of agents (RFC 8693). A caller's token is then held in memory for the length of its
    /// call. Agents that need it are given `--auth exchange`.
    pub exchange_tokens: bool,
}

/// Trusted issuer of signed tokens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IssuerConfig {
    /// Its address, exactly as its tokens spell it in `iss`.
    pub issuer: String,
    /// Required `aud` of its tokens: this server, and no other. There is no default.
    #[serde(default)]
    pub audience: String,
    /// Address of its keys. Default: the one in `<issuer>/.well-known/openid-configuration`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jwks_url: Option<String>,
    /// The claim with the caller's name.
    #[serde(default = "sub")]
    pub caller_claim: String,
    /// Prefix of each caller's name, so that no caller of this issuer is confused with another caller.
    #[serde(default)]
    pub caller_prefix: String,
    /// The claim with the caller's org. Without it, all callers of this issuer are in the org `default`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub org_claim: Option<String>,
    /// The claim with the caller's project. Without it, that is `main`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_claim: Option<String>,
    /// Claim with the granted scopes: call, discover, admin. A text with spaces, or a list.
    #[serde(default = "scope")]
    pub scope_claim: String,
    /// Scopes of a token that does not have that claim at all.
    #[serde(default)]
    pub default_scope: String,
    /// Kind of its callers.
    #[serde(default)]
    pub kind: TokenCallerKind,
    /// Reuse of a token. Clients send it with each request.
    #[serde(default)]
    pub replay: ReplayPolicy,
    /// Allow a private address, and plain http.
    #[serde(default)]
    pub allow_private: bool,
}

/// Kind of caller that a token identifies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TokenCallerKind {
    /// A person, or a program on their behalf.
    #[default]
    User,
    /// One client's session.
    Session,
    /// An agent that calls in.
    Agent,
}

/// Policy for a token that was used before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ReplayPolicy {
    /// It is accepted again.
    #[default]
    Allow,
    /// It is refused; each needs a `jti` of its own.
    Refuse,
}

// === impl CallerKind ===

impl From<TokenCallerKind> for CallerKind {
    fn from(kind: TokenCallerKind) -> Self {
        match kind {
            TokenCallerKind::User => Self::User,
            TokenCallerKind::Session => Self::Session,
            TokenCallerKind::Agent => Self::Agent,
        }
    }
}

fn sub() -> String {
    "sub".to_owned()
}

fn scope() -> String {
    "scope".to_owned()
}
