//! Streams that an agent closes before their task has ended, and the backoff of the polls that follow.
//!
//! A crashed executor of a2a-sdk 0.2 or 0.3 closes its stream silently, and its task stays `submitted` or `working` for ever. A
//! connection that an intermediary closes looks alike, but then the task changes sooner or later. So the task is polled, and
//! the call fails when nothing has changed for as long again as the call has taken, and at least
//! [`Config::stream_end_wait_ms`]. Intermediaries close connections that are old or idle, so a call that has taken long
//! already gets all of [`Config::patience_ms`].

use std::time::Duration;

use rialto_model::{
    failure::{Failure, FailureKind},
    json::Json,
};
use serde_json::json;
use tokio::time::Instant;

use crate::{backend::Config, error::AgentError};

/// Duration after which an intermediary may have closed the connection.
const LONG_CALL_DURATION: Duration = Duration::from_secs(30);

/// A stream that ended before its task did.
pub(crate) struct EarlyEnd {
    /// Backoff before the next poll beside a resumed stream.
    pub(crate) backoff: PollBackoff,
    /// Time of the last change.
    since: Instant,
    until: Instant,
    /// Number of events at that time.
    count: u64,
}

/// Backoff between polls.
#[derive(Clone, Copy)]
pub(crate) struct PollBackoff {
    wait: Duration,
    pub(crate) failures: u32,
}

// === impl EarlyEnd ===

impl EarlyEnd {
    /// Records the end of a stream, in a call that began at `begun` and has produced `count` events.
    pub(crate) fn new(config: &Config, begun: Instant, count: u64) -> Self {
        let now = Instant::now();
        let backoff = PollBackoff::first(config.poll_first_ms);
        Self { backoff, since: now, until: now + allowance(config, now - begun), count }
    }

    /// Records a poll. Fails with the time waited when nothing has changed for too long.
    pub(crate) fn check(&mut self, config: &Config, begun: Instant, count: u64) -> Result<(), Duration> {
        if count != self.count {
            *self = Self::new(config, begun, count);
            return Ok(());
        }
        let now = Instant::now();
        if now >= self.until {
            return Err(now - self.since);
        }
        let longest = Duration::from_millis(config.poll_longest_ms);
        self.backoff = self.backoff.after_success(config.poll_first_ms, longest);
        Ok(())
    }

    /// Failure of a call whose stream ended before it named a task; `broken` is the connection error, if there was one.
    pub(crate) fn without_task(broken: Option<AgentError>) -> AgentError {
        let message = "the agent closed its stream without a result and without naming a task to ask for";
        match broken {
            Some(mut trouble) => {
                trouble.failure.message = format!("{message}: {}", trouble.failure.message);
                trouble
            }
            None => Failure::new(FailureKind::PeerGarbled, message).into(),
        }
    }

    /// Failure of a call whose task is unknown to the agent now.
    pub(crate) fn unknown_task(mut answer: AgentError) -> AgentError {
        let why = "the agent closed its stream without a result and does not know the task any more";
        answer.failure.kind = FailureKind::PeerGarbled;
        answer.failure.message = format!("{why}: {}", answer.failure.message);
        answer
    }

    /// Failure of a call whose task has stopped changing.
    pub(crate) fn without_progress(id: &str, state: &str, waited: Duration) -> AgentError {
        let message = format!(
            "the agent closed its stream without a result, and its task {id} has been {state} for {} ms since; the agent has \
             probably crashed",
            waited.as_millis()
        );
        let data = json!({ "remoteState": state });
        Failure::new(FailureKind::PeerGarbled, message).with_data(Json::encode(&data)).into()
    }
}

/// Maximum time without a change after a stream has ended early.
fn allowance(config: &Config, taken: Duration) -> Duration {
    let patience = Duration::from_millis(config.patience_ms);
    if taken >= LONG_CALL_DURATION {
        return patience;
    }
    taken.max(Duration::from_millis(config.stream_end_wait_ms)).min(patience)
}

// === impl PollBackoff ===

impl PollBackoff {
    /// No wait.
    pub(crate) const NONE: Self = Self { wait: Duration::ZERO, failures: 0 };

    /// First wait.
    pub(crate) const fn first(wait_ms: u64) -> Self {
        Self { wait: Duration::from_millis(wait_ms), failures: 0 }
    }

    /// Wait after a successful poll.
    pub(crate) fn after_success(self, first_ms: u64, longest: Duration) -> Self {
        Self { wait: self.longer(first_ms, longest), failures: 0 }
    }

    /// Wait after a failed poll.
    pub(crate) fn after_failure(self, first_ms: u64, longest: Duration) -> Self {
        Self { wait: self.longer(first_ms, longest), failures: self.failures + 1 }
    }

    fn longer(self, first_ms: u64, longest: Duration) -> Duration {
        self.wait.mul_f64(1.6).clamp(Duration::from_millis(first_ms).min(longest), longest)
    }

    /// Wait with 20 % jitter, so that many calls do not poll in step.
    pub(crate) fn jittered(self) -> Duration {
        self.wait.mul_f64(rand::random_range(0.8..1.2))
    }
}
