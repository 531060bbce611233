//! Configuration of webhooks (`[webhooks]`).

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Time that a lease lasts beyond the timeout of one delivery.
const LEASE_MARGIN: Duration = Duration::from_secs(5);

/// Settings of webhook delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Timeout of one delivery, in milliseconds.
    pub timeout_ms: u64,
    /// Retry pause after the first failure, in milliseconds. It doubles with each further failure.
    pub retry_ms: u64,
    /// Longest retry pause, in milliseconds.
    pub max_retry_ms: u64,
    /// Age in hours from which an event is dropped when its receiver fails.
    pub give_up_hours: u32,
}

// === impl Config ===

impl Config {
    pub(crate) const fn timeout(&self) -> Duration {
        Duration::from_millis(self.timeout_ms)
    }

    /// Length of a delivery lease.
    pub(crate) const fn lease(&self) -> Duration {
        self.timeout().saturating_add(LEASE_MARGIN)
    }

    /// Retry pause after this number of consecutive failures, without jitter.
    pub(crate) fn retry_pause(&self, failures: u32) -> Duration {
        let doubled = 1_u64.checked_shl(failures.saturating_sub(1)).unwrap_or(u64::MAX);
        Duration::from_millis(self.retry_ms.saturating_mul(doubled).min(self.max_retry_ms))
    }

    pub(crate) const fn max_event_age(&self) -> Duration {
        Duration::from_secs(self.give_up_hours as u64 * 3600)
    }
}

impl Default for Config {
    fn default() -> Self {
        Self { timeout_ms: 10_000, retry_ms: 1_000, max_retry_ms: 600_000, give_up_hours: 24 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let seconds = |failures| Config::default().retry_pause(failures).as_secs();
        assert_eq!([1, 2, 3, 10, 11, 64, u32::MAX].map(seconds), [1, 2, 4, 512, 600, 600, 600]);
    }
}
