//! What can be said about webhooks in the configuration.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How much longer the right to deliver lasts than one delivery may take.
const SPARE: Duration = Duration::from_secs(5);

/// How webhooks are delivered to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// How long a receiver may take for one event, in milliseconds.
    pub timeout_ms: u64,
    /// The pause after a first failure, in milliseconds. It doubles with each further one.
    pub retry_ms: u64,
    /// The longest pause, in milliseconds.
    pub max_retry_ms: u64,
    /// An event that is older than so many hours is given up when its receiver fails.
    pub give_up_hours: u32,
}

// === impl Config ===

impl Config {
    pub(crate) const fn timeout(&self) -> Duration {
        Duration::from_millis(self.timeout_ms)
    }

    /// How long the right to deliver is taken for.
    pub(crate) const fn lease(&self) -> Duration {
        self.timeout().saturating_add(SPARE)
    }

    /// How long to wait after so many failures in a row, without chance.
    pub(crate) fn pause(&self, failures: u32) -> Duration {
        let doubled = 1_u64.checked_shl(failures.saturating_sub(1)).unwrap_or(u64::MAX);
        Duration::from_millis(self.retry_ms.saturating_mul(doubled).min(self.max_retry_ms))
    }

    pub(crate) const fn give_up(&self) -> Duration {
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
        let seconds = |failures| Config::default().pause(failures).as_secs();
        assert_eq!([1, 2, 3, 10, 11, 64, u32::MAX].map(seconds), [1, 2, 4, 512, 600, 600, 600]);
    }
}
