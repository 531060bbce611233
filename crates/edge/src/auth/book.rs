//! Follows the tokens of the store.
//!
//! The store has a number that any process moves with any change of tokens. It is asked at each request, so a token
//! that was revoked lets nobody in from the very next one on, and nothing is read again while nothing has changed.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use rialto_model::store::{Store, StoreError, Token};
use tokio::sync::Mutex;

use super::{Denial, tokens::TokenTable};

/// So many console sessions of one caller count at once.
const MAX_SESSIONS: usize = 50;

/// The tokens of a store, as they are now.
pub struct TokenBook {
    store: Arc<dyn Store>,
    /// Tokens that are not in the store.
    given: Vec<Token>,
    table: TokenTable,
    /// What the store's number was before the table was read.
    generation: AtomicU64,
    /// One reads, the others wait for it.
    turn: Mutex<()>,
}

// === impl TokenBook ===

impl TokenBook {
    /// Reads the tokens of `store`. The `given` ones are known beside them.
    pub async fn open(store: Arc<dyn Store>, given: Vec<Token>) -> Result<Self, StoreError> {
        let (table, generation) = (TokenTable::default(), AtomicU64::new(0));
        let book = Self { store, given, table, generation, turn: Mutex::default() };
        book.read().await?;
        Ok(book)
    }

    /// Whether something has changed since the table was read.
    pub(crate) fn is_behind(&self) -> bool {
        self.store.generation() != self.generation.load(Ordering::Acquire)
    }

    /// Reads what has changed. A token that may have been revoked lets nobody in, so without the store nobody comes in.
    pub(crate) async fn catch_up(&self) -> Result<(), Denial> {
        let _turn = self.turn.lock().await;
        if self.is_behind() {
            self.read().await.map_err(|error| {
                tracing::error!("the tokens could not be read: {error}");
                Denial::NoStore
            })?;
        }
        Ok(())
    }

    pub(crate) const fn table(&self) -> &TokenTable {
        &self.table
    }

    /// The generation that the table was read at.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Adds a console session. Where a caller has too many that count, the oldest ends.
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
        let excess = (live.len() + 1).saturating_sub(MAX_SESSIONS);
        for oldest in live.iter().take(excess) {
            self.store.revoke_token(&oldest.id, now).await?;
        }
        self.store.put_token(session).await
    }

    async fn read(&self) -> Result<(), StoreError> {
        // Asked before, not after: a change in between is then read once more, not missed.
        let generation = self.store.generation();
        let tokens = self.store.tokens().await?;
        self.table.replace(tokens.iter().chain(&self.given));
        self.generation.store(generation, Ordering::Release);
        Ok(())
    }
}
