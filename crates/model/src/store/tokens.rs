//! Bearer tokens.

use jiff::Timestamp;

use super::layer::store_trait;
use crate::{
    call::{CallerId, CallerKind},
    ids::Scope,
    store::StoreError,
    token_scopes::TokenScopes,
};

/// A bearer token. The token itself is nowhere: only its hash is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// Its own name: a caller may have several.
    pub id: String,
    /// SHA-256 of the token, in hex.
    pub hash: String,
    /// Org and project that it can see.
    pub scope: Scope,
    /// Caller that the token identifies.
    pub caller: CallerId,
    /// Kind of the caller.
    pub kind: CallerKind,
    /// Scopes of the token.
    pub rights: TokenScopes,
    /// When it was made.
    pub created_at: Timestamp,
    /// From when on it lets nobody in; never, if there is no such moment.
    pub expires_at: Option<Timestamp>,
    /// When it was revoked, if it was.
    pub revoked_at: Option<Timestamp>,
    /// The caller that made it, or the operator at the machine; nothing where that was before it was noted.
    pub created_by: Option<String>,
    /// The token that a console session was begun with, where this row is one; empty for one of an external issuer. No bearer token
    /// leads to such a row.
    pub session_of: Option<String>,
}

store_trait! {
    /// Bearer tokens. Part of every [`Store`](super::Store).
    pub trait TokenStore {
        /// All tokens, those that expired or were revoked included.
        async fn tokens(&self) -> Result<Vec<Token>, StoreError>;

        /// Adds a token. With a console session, those are forgotten whose time was over when it was made.
        async fn put_token(&self, token: &Token) -> Result<(), StoreError>;

        /// Marks a token as revoked at this moment. Returns the new generation, or none when there is no such
        /// token or it was revoked before.
        async fn revoke_token(&self, id: &str, at: Timestamp) -> Result<Option<u64>, StoreError>;
    }
}
