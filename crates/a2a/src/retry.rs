//! Retries of requests that an agent has not accepted.
//!
//! A request is sent again when it surely was not accepted: there was no connection, or the agent answered 429, or 503 with
//! `Retry-After`. When the skill is idempotent, it is also sent again after a broken connection and after 502, 503 and 504. The number
//! of attempts is bounded, pauses grow with jitter, and none exceeds the time that the caller waits.

use std::time::{Duration, Instant};

use http::StatusCode;
use jiff::Timestamp;
use rialto_http_client::fetch::FetchResponse;
use rialto_model::failure::FailureKind;

use crate::{backend::Config, client::ExchangeContext, error::AgentError, retry_after};

/// Attempts after the first.
const MAX_RETRIES: u32 = 4;

/// First pause, unless the agent asks for one; doubled with each attempt.
const FIRST_PAUSE: Duration = Duration::from_millis(50);

/// Retries of one request.
pub(crate) struct RequestRetry<'a> {
    pair: &'a ExchangeContext,
    longest_pause: Duration,
    retries: u32,
}

// === impl RequestRetry ===

impl<'a> RequestRetry<'a> {
    pub(crate) fn new(pair: &'a ExchangeContext, config: &Config) -> Self {
        let limit = pair.agent.timeout_ms.unwrap_or(u64::MAX).min(config.retry_after_max_ms);
        Self { pair, longest_pause: Duration::from_millis(limit), retries: 0 }
    }

    /// Pause before the request is sent again after this answer, if it is.
    pub(crate) fn next_after_answer(&mut self, answer: &FetchResponse, now: Timestamp) -> Option<Duration> {
        if let Some(wait) = retry_after::read(answer, now) {
            // Many calls may have received the same pause.
            let spread = Duration::from_millis(rand::random_range(0..100));
            return (wait <= self.longest_pause).then(|| self.take(wait + spread))?;
        }
        let is_refused = answer.status == StatusCode::TOO_MANY_REQUESTS;
        let is_unavailable = matches!(
            answer.status,
            StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT
        );
        (is_refused || is_unavailable && self.pair.is_repeatable()).then(|| self.take(self.backoff()))?
    }

    /// Pause before the request is sent again after this error, if it is.
    pub(crate) fn next_after_error(&mut self, trouble: &AgentError) -> Option<Duration> {
        let failure = &trouble.failure;
        let is_not_sent = trouble.is_passing
            && matches!(failure.kind, FailureKind::PeerUnreachable | FailureKind::Internal)
            && failure.is_not_sent();
        let is_repeatable = trouble.is_broken && self.pair.is_repeatable();
        (is_not_sent || is_repeatable).then(|| self.take(self.backoff()))?
    }

    fn backoff(&self) -> Duration {
        FIRST_PAUSE.saturating_mul(1 << self.retries.min(8)).mul_f64(rand::random_range(0.5..1.5))
    }

    /// Takes one retry, if any is left and the caller still waits after the pause.
    fn take(&mut self, pause: Duration) -> Option<Duration> {
        let is_in_time =
            self.pair.presence().deadline().is_none_or(|deadline| Instant::now() + pause < deadline);
        if self.retries >= MAX_RETRIES || !is_in_time {
            return None;
        }
        self.retries += 1;
        Some(pause)
    }
}
