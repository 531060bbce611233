//! How clients let go of calls, and what that means for the task.
//!
//! A client that cancels a call does not want it done: it is called off at its agent. A client that only waited long enough, or that is
//! gone, has said nothing of the kind. What the agent does then goes on, and `get_task` has it later.

use std::{collections::VecDeque, time::Duration};

use parking_lot::Mutex;
use rmcp::model::{CancelledNotificationParam, RequestId};
use tokio::{sync::Notify, time::timeout};
use tokio_util::sync::CancellationToken;

use crate::underway::Underway;

/// rmcp lets go of a call just before it hands on why; so long that may take.
const SAYING: Duration = Duration::from_millis(100);

/// Reasons that nobody fetched are forgotten: those of requests that were over already.
const KEPT: usize = 64;

/// A call that goes on by itself when the whole connection ends.
pub(super) struct Kept<'a> {
    pub(super) call: Box<Underway>,
    closing: &'a CancellationToken,
}

/// Why the client of this connection let go of requests.
#[derive(Default)]
pub(crate) struct Reasons {
    said: Mutex<VecDeque<(RequestId, Why)>>,
    more: Notify,
}

/// Why a client lets go of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// It is not wanted any more.
    Unwanted,
    /// It took too long.
    TooLong,
}

// === impl Kept ===

impl<'a> Kept<'a> {
    pub(super) const fn new(call: Box<Underway>, closing: &'a CancellationToken) -> Self {
        Self { call, closing }
    }

    /// Lets the call go on although its client has let go of it.
    pub(super) fn go_on(&mut self) {
        let task = self.call.hand_over();
        tracing::info!(task.id = %task, "task {task} goes on without its client");
    }
}

impl Drop for Kept<'_> {
    fn drop(&mut self) {
        if self.closing.is_cancelled() && !self.call.is_over() {
            self.go_on();
        }
    }
}

// === impl Reasons ===

impl Reasons {
    /// The client lets go of a request, and says why.
    pub(super) fn add(&self, told: CancelledNotificationParam) {
        let Some(id) = told.request_id else { return };
        let why = told.reason.as_deref().map_or(Why::Unwanted, Why::of);
        let mut said = self.said.lock();
        if said.len() == KEPT {
            said.pop_front();
        }
        said.push_back((id, why));
        drop(said);
        self.more.notify_waiters();
    }

    /// Why the client let go of this request, which it just has.
    pub(super) async fn of(&self, id: &RequestId) -> Why {
        let saying = async {
            loop {
                let more = self.more.notified();
                if let Some(why) = self.take(id) {
                    return why;
                }
                more.await;
            }
        };
        timeout(SAYING, saying).await.unwrap_or(Why::Unwanted)
    }

    fn take(&self, id: &RequestId) -> Option<Why> {
        let mut said = self.said.lock();
        let at = said.iter().position(|(of, _)| of == id)?;
        said.remove(at).map(|(_, why)| why)
    }
}

// === impl Why ===

impl Why {
    /// Clients say it in words of their own: `Request timed out`, `request timeout`.
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
        let reasons = Reasons::default();
        for (id, reason, why) in [
            (1, Some("SdkError: Request timed out"), Why::TooLong),
            (2, Some("McpError: MCP error -32001: Request timed out"), Why::TooLong),
            (3, Some("request timeout"), Why::TooLong),
            (4, Some("the user pressed Escape"), Why::Unwanted),
            (5, None, Why::Unwanted),
        ] {
            reasons.add(let_go(id, reason));
            assert_eq!(reasons.of(&RequestId::Number(id)).await, why, "{reason:?}");
        }
    }

    #[tokio::test]
    async fn a_reason_may_come_a_little_later() {
        let reasons = Reasons::default();
        let (why, ()) = tokio::join!(biased; reasons.of(&RequestId::Number(7)), async {
            reasons.add(let_go(8, None));
            reasons.add(let_go(7, Some("Request timed out")));
        });
        assert_eq!(why, Why::TooLong);
    }

    #[tokio::test]
    async fn who_says_nothing_does_not_want_it() {
        assert_eq!(Reasons::default().of(&RequestId::Number(7)).await, Why::Unwanted);
    }

    #[test]
    fn reasons_that_nobody_fetches_are_forgotten() {
        let reasons = Reasons::default();
        for id in 0..1_000 {
            reasons.add(let_go(id, None));
        }
        assert_eq!(reasons.said.lock().len(), KEPT);
    }
}
