//! Cache of the store's tokens.
//!
//! The store has a generation that any process moves with any change of tokens. It is read at each request, so a revoked token is refused
//! by the very next one, and nothing is reloaded while nothing has changed.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use rialto_model::store::{Store, StoreError, Token};
use tokio::sync::Mutex;

use super::{AuthError, token_table::TokenTable};

/// Maximum number of console sessions of one caller.
const MAX_SESSIONS_PER_CALLER: usize = 50;

/// Tokens of a store.
pub struct TokenCache {
    store: Arc<dyn Store>,
    /// Tokens of the environment, which are not in the store.
    configured: Vec<Token>,
    table: TokenTable,
    /// Generation of the store before the table was read.
    generation: AtomicU64,
    /// Single-flight lock: one request reloads, others wait for it.
    refresh_lock: Mutex<()>,
}

// === impl TokenCache ===

impl TokenCache {
    /// Reads the tokens of `store`. The `configured` ones are accepted beside them.
    pub async fn open(store: Arc<dyn Store>, configured: Vec<Token>) -> Result<Self, StoreError> {
        let (table, generation) = (TokenTable::default(), AtomicU64::new(0));
        let cache = Self { store, configured, table, generation, refresh_lock: Mutex::default() };
        cache.reload().await?;
        Ok(cache)
    }

    /// True if tokens have changed since the table was read.
    pub(crate) fn is_outdated(&self) -> bool {
        self.store.generation() != self.generation.load(Ordering::Acquire)
    }

    /// Reloads if something has changed. Without the store no token is accepted, because it may have been revoked.
    pub(crate) async fn refresh(&self) -> Result<(), AuthError> {
        let _lock = self.refresh_lock.lock().await;
        if self.is_outdated() {
            self.reload().await.map_err(|error| {
                tracing::error!("the tokens could not be read: {error}");
                AuthError::StoreUnavailable
            })?;
        }
        Ok(())
    }

    pub(crate) const fn table(&self) -> &TokenTable {
        &self.table
    }

    /// Generation at which the table was read.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Adds a console session. If the caller has too many, the oldest ends.
    pub(crate) async fn add_session(&self, session: &Token) -> Result<(), StoreError> {
        let now = session.created_at;
        let mut live = self.store.tokens().await?;
        live.retain(|token| {
            token.session_of.is_some()
                && token.caller == session.caller
                && token.scope.org == session.scope.org
                && token.revoked_at.is_none()
                && token.expires_at.is_none_or(|end| now < end)
        });
        live.sort_by_key(|token| token.created_at);
        let excess = (live.len() + 1).saturating_sub(MAX_SESSIONS_PER_CALLER);
        for oldest in live.iter().take(excess) {
            self.store.revoke_token(&oldest.id, now).await?;
        }
        self.store.put_token(session).await
    }

    async fn reload(&self) -> Result<(), StoreError> {
        // Asked before, not after: a change in between is then read once more, not missed.
        let generation = self.store.generation();
        let tokens = self.store.tokens().await?;
        self.table.replace(tokens.iter().chain(&self.configured));
        self.generation.store(generation, Ordering::Release);
        Ok(())
    }
}
