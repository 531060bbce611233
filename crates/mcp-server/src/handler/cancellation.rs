//! Cancellation by clients, and its effect on the task.
//!
//! A client that cancels a call does not want the result: the task is cancelled at its agent. After a client-side timeout or a lost
//! connection the task is detached instead: the agent continues, and `get_task` returns the result later.

use std::{collections::VecDeque, time::Duration};

use parking_lot::Mutex;
use rmcp::model::{CancelledNotificationParam, RequestId};
use tokio::{sync::Notify, time::timeout};
use tokio_util::sync::CancellationToken;

use crate::call_stream::ToolCallStream;

/// rmcp drops a call just before it delivers the reason; maximum wait for the reason.
const REASON_TIMEOUT: Duration = Duration::from_millis(100);

/// Maximum number of uncollected reasons: those of requests that had already finished.
const MAX_KEPT_REASONS: usize = 64;

/// Call that is detached when the whole connection closes.
pub(super) struct DetachOnClose<'a> {
    pub(super) call: Box<ToolCallStream>,
    closing: &'a CancellationToken,
}

/// Cancellation reasons of this connection's requests.
#[derive(Default)]
pub(crate) struct CancelReasons {
    said: Mutex<VecDeque<(RequestId, CancelReason)>>,
    more: Notify,
}

/// Reason why a client cancelled a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CancelReason {
    /// The result is not wanted.
    Unwanted,
    /// The client's timeout passed.
    TooLong,
}

// === impl DetachOnClose ===

impl<'a> DetachOnClose<'a> {
    pub(super) const fn new(call: Box<ToolCallStream>, closing: &'a CancellationToken) -> Self {
        Self { call, closing }
    }

    /// Detaches the call from its client.
    pub(super) fn go_on(&mut self) {
        let task = self.call.hand_over();
        tracing::info!(task.id = %task, "task {task} is detached from its client");
    }
}

impl Drop for DetachOnClose<'_> {
    fn drop(&mut self) {
        if self.closing.is_cancelled() && !self.call.is_over() {
            self.go_on();
        }
    }
}

// === impl CancelReasons ===

impl CancelReasons {
    /// Records the reason of a cancellation.
    pub(super) fn add(&self, told: CancelledNotificationParam) {
        let Some(id) = told.request_id else { return };
        let why = told.reason.as_deref().map_or(CancelReason::Unwanted, CancelReason::of);
        let mut said = self.said.lock();
        if said.len() == MAX_KEPT_REASONS {
            said.pop_front();
        }
        said.push_back((id, why));
        drop(said);
        self.more.notify_waiters();
    }

    /// Reason of the cancellation of this request, which has just happened.
    pub(super) async fn of(&self, id: &RequestId) -> CancelReason {
        let saying = async {
            loop {
                let more = self.more.notified();
                if let Some(why) = self.take(id) {
                    return why;
                }
                more.await;
            }
        };
        timeout(REASON_TIMEOUT, saying).await.unwrap_or(CancelReason::Unwanted)
    }

    fn take(&self, id: &RequestId) -> Option<CancelReason> {
        let mut said = self.said.lock();
        let at = said.iter().position(|(of, _)| of == id)?;
        said.remove(at).map(|(_, why)| why)
    }
}

// === impl CancelReason ===

impl CancelReason {
    /// Clients phrase it differently: `Request timed out`, `request timeout`.
    fn of(reason: &str) -> Self {
        let reason = reason.to_ascii_lowercase();
        let is_late = ["timed out", "timeout", "time out"].iter().any(|words| reason.contains(words));
        if is_late { Self::TooLong } else { Self::Unwanted }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn let_go(id: i64, reason: Option<&str>) -> CancelledNotificationParam {
        CancelledNotificationParam::new(Some(RequestId::Number(id)), reason.map(str::to_owned))
    }

    #[tokio::test]
    async fn a_client_that_waited_long_enough_does_not_call_off() {
        let reasons = CancelReasons::default();
        for (id, reason, why) in [
            (1, Some("SdkError: Request timed out"), CancelReason::TooLong),
            (2, Some("McpError: MCP error -32001: Request timed out"), CancelReason::TooLong),
            (3, Some("request timeout"), CancelReason::TooLong),
            (4, Some("the user pressed Escape"), CancelReason::Unwanted),
            (5, None, CancelReason::Unwanted),
        ] {
            reasons.add(let_go(id, reason));
            assert_eq!(reasons.of(&RequestId::Number(id)).await, why, "{reason:?}");
        }
    }

    #[tokio::test]
    async fn a_reason_may_come_a_little_later() {
        let reasons = CancelReasons::default();
        let (why, ()) = tokio::join!(biased; reasons.of(&RequestId::Number(7)), async {
            reasons.add(let_go(8, None));
            reasons.add(let_go(7, Some("Request timed out")));
        });
        assert_eq!(why, CancelReason::TooLong);
    }

    #[tokio::test]
    async fn who_says_nothing_does_not_want_it() {
        assert_eq!(CancelReasons::default().of(&RequestId::Number(7)).await, CancelReason::Unwanted);
    }

    #[test]
    fn reasons_that_nobody_fetches_are_forgotten() {
        let reasons = CancelReasons::default();
        for id in 0..1_000 {
            reasons.add(let_go(id, None));
        }
        assert_eq!(reasons.said.lock().len(), MAX_KEPT_REASONS);
    }
}
