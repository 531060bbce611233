//! Validity of the access token that a task, a schedule or a session was started with.
//!
//! A request is authenticated where it comes in. Work that continues without a request (a call that waits for approval, a schedule, a session)
//! asks here before it does anything in its caller's name.

use std::sync::Arc;

use rialto_model::{
    clock::{Clock, Timestamp},
    failure::Failure,
    ids::TokenId,
    store::{Store, Token},
};

use crate::store_failure::store_failure;

/// Prefix of the ids of tokens in the store. Other tokens are given to a process when it starts, and end with it.
const STORED_TOKEN_PREFIX: &str = "tok_";

/// Time until which a token is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenValidity {
    /// It was revoked or removed, or has expired.
    Ended,
    /// Until this moment, unless it is revoked before.
    Until(Timestamp),
    /// Until it is revoked.
    Unlimited,
}

/// Access tokens as the store has them now.
pub struct TokenChecker {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
}

// === impl TokenChecker ===

impl TokenChecker {
    pub(crate) fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Self {
        Self { store, clock }
    }

    /// Returns the time until which a token is valid.
    pub async fn validity(&self, id: &TokenId) -> Result<TokenValidity, Failure> {
        let tokens = self.store.tokens().await.map_err(store_failure)?;
        Ok(validity_in(&tokens, id, self.clock.now()))
    }

    /// Returns those of `ids` that were revoked or removed, or have expired.
    pub(crate) async fn find_ended(&self, ids: Vec<TokenId>) -> Result<Vec<TokenId>, Failure> {
        if ids.is_empty() {
            return Ok(ids);
        }
        let (tokens, now) = (self.store.tokens().await.map_err(store_failure)?, self.clock.now());
        let has_ended = |id: &TokenId| validity_in(&tokens, id, now) == TokenValidity::Ended;
        Ok(ids.into_iter().filter(has_ended).collect())
    }

    /// True if work that was started with this token may continue; work without a token may.
    pub async fn is_valid(&self, token: Option<&TokenId>) -> Result<bool, Failure> {
        match token {
            Some(token) => Ok(self.validity(token).await? != TokenValidity::Ended),
            None => Ok(true),
        }
    }

    /// Number that increases with every change of tokens, in any process.
    pub fn generation(&self) -> u64 {
        self.store.generation()
    }
}

/// Validity of a token among those in the store.
fn validity_in(stored: &[Token], id: &TokenId, now: Timestamp) -> TokenValidity {
    let Some(token) = stored.iter().find(|token| token.id == id.as_str()) else {
        let is_stored = id.as_str().starts_with(STORED_TOKEN_PREFIX);
        return if is_stored { TokenValidity::Ended } else { TokenValidity::Unlimited };
    };
    match token.expires_at {
        _ if token.revoked_at.is_some() => TokenValidity::Ended,
        Some(end) if end <= now => TokenValidity::Ended,
        Some(end) => TokenValidity::Until(end),
        None => TokenValidity::Unlimited,
    }
}
