//! Messages and ends of MCP sessions, passed between the processes that share the store.
//!
//! A client behind a load balancer sends each request to another process. What it sends to one of them may be meant for another: the
//! answer to a question, the cancellation of a call, the end of its session.

use std::sync::Arc;

use rialto_model::{
    clock::Clock,
    failure::Failure,
    store::{NumberedSessionMessage, SessionMessage, Store},
};

use crate::store_failure::store_failure;

/// Relay of messages of MCP sessions between the processes that share the store.
pub struct SessionRelay {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
}

// === impl SessionRelay ===

impl SessionRelay {
    pub(crate) fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Self {
        Self { store, clock }
    }

    /// Sends a client's message in a session to the process that waits for it, whichever that is.
    pub async fn send(&self, session: &str, body: String) -> Result<(), Failure> {
        self.put(session, Some(body)).await
    }

    /// Ends a session in every process.
    pub async fn end(&self, session: &str) -> Result<(), Failure> {
        self.put(session, None).await
    }

    /// Messages after this number, in order, at most `limit`.
    pub async fn messages_after(
        &self,
        number: u64,
        limit: usize,
    ) -> Result<Vec<NumberedSessionMessage>, Failure> {
        self.store.session_messages(number, limit).await.map_err(store_failure)
    }

    /// Number of the last message.
    pub async fn last_number(&self) -> Result<u64, Failure> {
        self.store.last_session_message().await.map_err(store_failure)
    }

    /// Removes a message that was delivered in this process.
    pub async fn remove(&self, number: u64) -> Result<(), Failure> {
        self.store.remove_session_message(number).await.map_err(store_failure)
    }

    /// True if a client has ended the session.
    pub async fn is_ended(&self, session: &str) -> Result<bool, Failure> {
        self.store.is_session_ended(session).await.map_err(store_failure)
    }

    async fn put(&self, session: &str, body: Option<String>) -> Result<(), Failure> {
        let message = SessionMessage { session: session.to_owned(), body, at: self.clock.now() };
        self.store.put_session_message(&message).await.map_err(store_failure)
    }
}
