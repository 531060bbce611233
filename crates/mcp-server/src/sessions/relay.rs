//! Relay of client messages that reached another process than the one they are meant for.
//!
//! An answer to a question, or the cancellation of a call, may reach any process of the store. That process writes it to the store; the
//! one that waits polls for it, fast while it waits for an answer, otherwise once a second. Ends of sessions are relayed in this way
//! too.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use rialto_model::{
    failure::{Failure, FailureKind},
    store::{NumberedSessionMessage, SessionMessage},
};
use rmcp::{model::ClientJsonRpcMessage, transport::streamable_http_server::SessionManager};
use tokio::sync::Notify;

use super::{McpSessions, node_tag::Addressee};

/// Interval of reading while this process waits for an answer.
const ANSWER_POLL: Duration = Duration::from_millis(100);

/// Interval of reading otherwise.
const IDLE_POLL: Duration = Duration::from_secs(1);

/// Rounds without any session after which the place of reading is moved to the end.
const IDLE_ROUNDS: u32 = 30;

/// Maximum number of messages in one read.
const BATCH: usize = 256;

/// Largest message that is passed on. Answers are forms that a person filled in.
const MAX_RELAYED_BYTES: usize = 256 * 1024;

/// Number of questions whose answers this process waits for.
#[derive(Clone, Default)]
pub(crate) struct AnswerWaits(Arc<AnswerWaitCount>);

#[derive(Default)]
struct AnswerWaitCount {
    count: AtomicUsize,
    begun: Notify,
}

/// Guard of a question that waits for its answer.
pub(crate) struct AnswerWait(AnswerWaits);

// === impl AnswerWaits ===

impl AnswerWaits {
    /// Polls fast until the result is dropped.
    pub(crate) fn begin(&self) -> AnswerWait {
        self.0.count.fetch_add(1, Ordering::Relaxed);
        self.0.begun.notify_one();
        AnswerWait(self.clone())
    }

    fn is_empty(&self) -> bool {
        self.0.count.load(Ordering::Relaxed) == 0
    }

    /// Waits until the next poll.
    async fn pause(&self) {
        if !self.is_empty() {
            return tokio::time::sleep(ANSWER_POLL).await;
        }
        tokio::select! {
            () = tokio::time::sleep(IDLE_POLL) => {}
            () = self.0.begun.notified() => {}
        }
    }
}

impl Drop for AnswerWait {
    fn drop(&mut self) {
        self.0.0.count.fetch_sub(1, Ordering::Relaxed);
    }
}

// === impl McpSessions ===

impl McpSessions {
    /// Relays a message to the process that it is meant for.
    pub(super) async fn relay(&self, session: &str, message: &ClientJsonRpcMessage) -> Result<(), Failure> {
        let unreadable = |_| Failure::new(FailureKind::Internal, "the message could not be written");
        let body = serde_json::to_string(message).map_err(unreadable)?;
        if body.len() > MAX_RELAYED_BYTES {
            let size = body.len();
            let message = format!(
                "the message has {size} bytes, and a message for another process may have {MAX_RELAYED_BYTES}; send a smaller one"
            );
            return Err(Failure::new(FailureKind::Invalid, message));
        }
        self.engine().sessions().send(session, body).await
    }

    /// Delivers relayed messages, until the server stops.
    pub(crate) async fn receive_relayed(self: Arc<Self>) {
        let (mut place, mut idle_rounds) = (None, 0);
        loop {
            let read = match place {
                None => self.engine().sessions().last_number().await,
                // A rebuild checks afterwards whether the session has ended, so nothing is missed while this does not poll.
                Some(_) if self.is_empty() && idle_rounds >= IDLE_ROUNDS => {
                    self.engine().sessions().last_number().await
                }
                Some(place) if self.is_empty() => Ok(place),
                Some(place) => self.receive_after(place).await,
            };
            idle_rounds = if self.is_empty() && idle_rounds < IDLE_ROUNDS { idle_rounds + 1 } else { 0 };
            // The store is away; the next round tries again.
            if let Ok(read) = read {
                place = Some(read);
            }
            tokio::select! {
                () = self.stop.cancelled() => return,
                () = self.desk.answer_waits.pause() => {}
            }
        }
    }

    /// Delivers the messages behind this position. Returns the position of the last one.
    async fn receive_after(&self, mut place: u64) -> Result<u64, Failure> {
        loop {
            let messages = self.engine().sessions().messages_after(place, BATCH).await?;
            let is_last = messages.len() < BATCH;
            for message in messages {
                place = message.number;
                self.receive(message).await;
            }
            if is_last {
                return Ok(place);
            }
        }
    }

    async fn receive(&self, message: NumberedSessionMessage) {
        let NumberedSessionMessage { number, message: SessionMessage { session, body, .. } } = message;
        let held = {
            let mut table = self.table.lock();
            if body.is_none() {
                table.rebuilding.remove(&session);
            }
            table.find(&session)
        };
        let Some(id) = held else { return };
        let Some(body) = body else {
            tracing::debug!("session {session} was ended at another process");
            if let Err(error) = self.close_session(&id).await {
                tracing::debug!("session {session} could not be closed: {error}");
            }
            return;
        };
        let Ok(mut message) = serde_json::from_str::<ClientJsonRpcMessage>(&body) else { return };
        let is_answer = matches!(message, ClientJsonRpcMessage::Response(_) | ClientJsonRpcMessage::Error(_));
        if self.node.untag(&mut message) == Addressee::Elsewhere {
            return;
        }
        if let Err(error) = self.inner.accept_message(&id, message).await {
            tracing::debug!("a message of session {session} could not be delivered: {error}");
        }
        // An answer is meant for one process; a cancellation for the process that runs the call.
        if is_answer && let Err(error) = self.engine().sessions().remove(number).await {
            tracing::debug!("a message of session {session} could not be removed: {}", error.message);
        }
    }
}
