//! What can be said about the store in the configuration.

use std::time::Duration;

use jiff::Timestamp;
use rialto_model::store::Sweep;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What an acknowledged write survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Durability {
    /// The death of this process at any moment. After a power cut the last moments may be missing; nothing is torn.
    #[default]
    Normal,
    /// A power cut too, at the price of a disk flush per commit.
    Full,
}

/// How the store works.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// What an acknowledged write survives.
    pub durability: Durability,
    /// How long tasks are kept after their end, in hours; 0 keeps them for ever.
    pub keep_tasks_hours: u32,
    /// How long audit records are kept, in days; 0 keeps them for ever.
    pub keep_audit_days: u32,
}

// === impl Config ===

impl Config {
    /// What is old by now.
    pub fn old(&self, now: Timestamp) -> Sweep {
        let before = |hours: u64| {
            (hours > 0).then(|| now.checked_sub(Duration::from_secs(hours * 3600)).unwrap_or(Timestamp::MIN))
        };
        Sweep {
            tasks_before: before(self.keep_tasks_hours.into()),
            audit_before: before(u64::from(self.keep_audit_days) * 24),
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self { durability: Durability::default(), keep_tasks_hours: 24, keep_audit_days: 365 }
    }
}
