//! Bearer tokens and console sessions.

use rialto_model::{
    call::{CallerId, CallerKind},
    clock::Timestamp,
    ids::{OrgId, ProjectId},
    token_scopes::TokenScope,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Tokens of the caller's org, newest first.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "TokenList")]
pub struct TokenList<Row = TokenRow> {
    /// The tokens.
    pub tokens: Vec<Row>,
}

/// Token without its secret.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TokenRow {
    /// Id of the token.
    pub id: String,
    /// Name of the caller the token identifies.
    pub caller: CallerId,
    /// Kind of the caller.
    pub kind: CallerKind,
    /// Scopes it grants.
    pub scopes: Vec<TokenScope>,
    /// Role it gives in its org, if it gives one.
    #[serde(default)]
    pub role: Option<TokenRole>,
    /// Org it belongs to.
    pub org: OrgId,
    /// Project it belongs to.
    pub project: ProjectId,
    /// Time of its creation.
    pub created_at: Timestamp,
    /// Name of its creator, if known.
    pub created_by: Option<String>,
    /// Time it expires; null if it never does.
    pub expires_at: Option<Timestamp>,
    /// Time it was revoked.
    pub revoked_at: Option<Timestamp>,
    /// Whether it is accepted.
    pub state: TokenState,
}

/// Token that was just created.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CreatedToken {
    /// Its row.
    #[serde(flatten)]
    pub row: TokenRow,
    /// The token itself, which is shown this once.
    pub token: String,
}

/// Token to create.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(extend("required" = ["caller"]))]
pub struct NewToken {
    /// Name of the caller the token identifies.
    pub caller: String,
    /// Kind of the caller; `user` by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<CallerKind>,
    /// Scopes it grants; `call` and `discover` by default.
    pub scopes: Vec<TokenScope>,
    /// Role it gives; an owner has all scopes unless some are named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<TokenRole>,
    /// Org it belongs to, by default that of the request. Another one only at the server's machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub org: Option<String>,
    /// Project it belongs to, by default that of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Days until it expires; by default it never does.
    #[serde(alias = "expires_days", skip_serializing_if = "Option::is_none")]
    pub expires_days: Option<u32>,
    /// Time it expires, in place of days.
    #[serde(alias = "expires_at", skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
}

/// Role of a token's caller in its org.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TokenRole {
    /// Administers everything in the org.
    Owner,
}

/// Whether a token is accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TokenState {
    /// It is accepted.
    #[serde(rename = "good")]
    Active,
    /// It has expired.
    Expired,
    /// It was revoked.
    Revoked,
}

/// Console sessions that the caller may see.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "SessionList")]
pub struct SessionList<Row = SessionRow> {
    /// The sessions.
    pub sessions: Vec<Row>,
}

/// Console session.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionRow {
    /// Id of the session.
    pub id: String,
    /// Caller who signed in.
    pub caller: CallerId,
    /// Kind of the caller.
    pub kind: CallerKind,
    /// Org of the caller.
    pub org: OrgId,
    /// Id of the token that was used; null for a signed token.
    pub token_id: Option<String>,
    /// Time of the sign-in.
    pub created_at: Timestamp,
    /// Time it expires.
    pub expires_at: Option<Timestamp>,
}

// === impl TokenRole ===

impl TokenRole {
    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Owner => "owner",
        }
    }
}

// === impl TokenState ===

impl TokenState {
    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "good",
            Self::Expired => "expired",
            Self::Revoked => "revoked",
        }
    }
}
