//! Messages in MCP sessions, for processes that share the store.

use jiff::{SignedDuration, Timestamp};

use super::layer::store_trait;
use crate::store::StoreError;

/// Message of a client in an MCP session that another process may wait for, or the end of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionMessage {
    /// Random part of the session's id.
    pub session: String,
    /// The message as JSON; none where the session has ended.
    pub body: Option<String>,
    /// When it was received.
    pub at: Timestamp,
}

/// A session message and its place among all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NumberedSessionMessage {
    /// Its place.
    pub number: u64,
    /// The message.
    pub message: SessionMessage,
}

/// Time after which a message in an MCP session is of no use to anyone.
pub const MAX_SESSION_MESSAGE_AGE: SignedDuration = SignedDuration::from_hours(1);

/// Time after which an MCP session that no process holds any more cannot be rebuilt from its id. Ends of sessions are kept as long.
pub const MAX_SESSION_AGE: SignedDuration = SignedDuration::from_hours(30 * 24);

store_trait! {
    /// Messages in MCP sessions, for processes that share the store. Part of every [`Store`](super::Store).
    pub trait SessionStore {
        /// Adds a message of a client in an MCP session, or the end of one, for the processes that share the store. Messages older than
        /// [`MAX_SESSION_MESSAGE_AGE`], and ends older than [`MAX_SESSION_AGE`], are removed.
        async fn put_session_message(&self, message: &SessionMessage) -> Result<(), StoreError>;

        /// Messages behind this number, in the order they were committed, at most `limit`.
        async fn session_messages(
            &self,
            after: u64,
            limit: usize,
        ) -> Result<Vec<NumberedSessionMessage>, StoreError>;

        /// Number of the last message; zero when there is none.
        async fn last_session_message(&self) -> Result<u64, StoreError>;

        /// Removes a message that was delivered.
        async fn remove_session_message(&self, number: u64) -> Result<(), StoreError>;

        /// Returns whether the end of a session was written.
        async fn is_session_ended(&self, session: &str) -> Result<bool, StoreError>;
    }
}
