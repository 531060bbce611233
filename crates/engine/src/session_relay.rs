//! Messages and ends of MCP sessions, passed between the processes that share the store.
//!
//! A client behind a load balancer sends each request to another process. What it says to one of them may be meant for another: the
//! answer to a question, the cancellation of a call, the end of its session.

use rialto_model::{
    failure::Failure,
    store::{NumberedSessionMessage, SessionMessage},
};

use crate::engine::{Engine, store_failure};

// === impl Engine ===

impl Engine {
    /// Passes a client's message in a session on to the process that waits for it, whichever that is.
    pub async fn relay_session_message(&self, session: &str, body: String) -> Result<(), Failure> {
        self.put_session_message(session, Some(body)).await
    }

    /// Ends a session in every process.
    pub async fn end_session(&self, session: &str) -> Result<(), Failure> {
        self.put_session_message(session, None).await
    }

    /// Messages behind this number, in order, at most `limit`.
    pub async fn session_messages(
        &self,
        after: u64,
        limit: usize,
    ) -> Result<Vec<NumberedSessionMessage>, Failure> {
        self.inner().store.session_messages(after, limit).await.map_err(store_failure)
    }

    /// Number of the last message.
    pub async fn last_session_message(&self) -> Result<u64, Failure> {
        self.inner().store.last_session_message().await.map_err(store_failure)
    }

    /// Removes a message that was delivered here.
    pub async fn remove_session_message(&self, number: u64) -> Result<(), Failure> {
        self.inner().store.remove_session_message(number).await.map_err(store_failure)
    }

    /// Whether a client has ended a session.
    pub async fn is_session_ended(&self, session: &str) -> Result<bool, Failure> {
        self.inner().store.is_session_ended(session).await.map_err(store_failure)
    }

    async fn put_session_message(&self, session: &str, body: Option<String>) -> Result<(), Failure> {
        let message = SessionMessage { session: session.to_owned(), body, at: self.now() };
        self.inner().store.put_session_message(&message).await.map_err(store_failure)
    }
}
