//! Whether the token that something was begun with still counts.
//!
//! A request is checked where it comes in. What goes on by itself after that (a call that waits for approval, a schedule, a session) asks
//! here before it does anything in its caller's name.

use rialto_model::{clock::Timestamp, failure::Failure, ids::TokenId, store::Token};

use crate::engine::{Engine, store_failure};

/// How the names of tokens begin that are kept in the store. Others are given to a process when it starts, and end with it.
const STORED: &str = "tok_";

/// Until when a token counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenValidity {
    /// It was revoked or removed, or has expired.
    Ended,
    /// Until this moment, unless it is revoked before.
    Until(Timestamp),
    /// Until it is revoked.
    Unlimited,
}

// === impl Engine ===

impl Engine {
    /// Until when a token counts, as the store has it now.
    pub async fn token_validity(&self, id: &TokenId) -> Result<TokenValidity, Failure> {
        let tokens = self.inner().store.tokens().await.map_err(store_failure)?;
        Ok(validity(&tokens, id, self.now()))
    }

    /// Those among `ids` that were revoked or removed, or have expired.
    pub(crate) async fn ended_tokens(&self, ids: Vec<TokenId>) -> Result<Vec<TokenId>, Failure> {
        if ids.is_empty() {
            return Ok(ids);
        }
        let (tokens, now) = (self.inner().store.tokens().await.map_err(store_failure)?, self.now());
        let has_ended = |id: &TokenId| validity(&tokens, id, now) == TokenValidity::Ended;
        Ok(ids.into_iter().filter(has_ended).collect())
    }

    /// Whether what was begun with this token may go on; what was begun without one may.
    pub async fn may_go_on(&self, token: Option<&TokenId>) -> Result<bool, Failure> {
        match token {
            Some(token) => Ok(self.token_validity(token).await? != TokenValidity::Ended),
            None => Ok(true),
        }
    }

    /// The number that moves with every change of tokens, in any process.
    pub fn generation(&self) -> u64 {
        self.inner().store.generation()
    }
}

/// Until when a token counts, among those that the store has.
fn validity(stored: &[Token], id: &TokenId, now: Timestamp) -> TokenValidity {
    let Some(token) = stored.iter().find(|token| token.id == id.as_str()) else {
        let is_stored = id.as_str().starts_with(STORED);
        return if is_stored { TokenValidity::Ended } else { TokenValidity::Unlimited };
    };
    match token.expires_at {
        _ if token.revoked_at.is_some() => TokenValidity::Ended,
        Some(end) if end <= now => TokenValidity::Ended,
        Some(end) => TokenValidity::Until(end),
        None => TokenValidity::Unlimited,
    }
}
