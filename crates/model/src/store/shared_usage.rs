//! Usage that the processes on one store share, so that limits and circuit breakers hold for all of them together.

use jiff::{SignedDuration, Timestamp};

use super::{StoreError, layer::store_trait};
use crate::ids::AgentId;

/// Time for which the opening of a circuit breaker is passed on.
pub const OPENING_SHARED_FOR: SignedDuration = SignedDuration::from_secs(10);

/// Calls counted under a key in one time window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallCount {
    /// Counter: the calls of an org, or of a tool by a caller.
    pub key: String,
    /// Start of the window, in seconds since 1970.
    pub began_at: i64,
    /// End of the window: after that, the count is of no use.
    pub ends_at: i64,
    /// Number of calls.
    pub calls: u64,
}

/// Circuit breaker of an agent that a process has opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BreakerOpening {
    /// The agent.
    pub agent: AgentId,
    /// When it was opened.
    pub at: Timestamp,
    /// Time until which the agent gets no calls there.
    pub until: Timestamp,
    /// Message of the last failure.
    pub reason: String,
}

/// News of one process for the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageReport {
    /// Calls made since the last report. One with zero calls only asks for the total.
    pub counts: Vec<CallCount>,
    /// Breakers opened since the last report.
    pub openings: Vec<BreakerOpening>,
    /// The present time.
    pub at: Timestamp,
}

/// News of all processes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SharedUsage {
    /// Total of each count in the report, in its order.
    pub totals: Vec<u64>,
    /// Breakers opened in the last [`OPENING_SHARED_FOR`], the last opening of each agent.
    pub openings: Vec<BreakerOpening>,
}

store_trait! {
    /// Call counts and circuit breaker openings of all processes. Part of every [`Store`](super::Store).
    pub trait UsageStore {
        /// Adds the calls that a process has counted, and the circuit breakers that it has opened, to those of the others; and answers with the
        /// totals of all. Counts of windows that are over are removed.
        async fn share_usage(&self, report: &UsageReport) -> Result<SharedUsage, StoreError>;
    }
}

// === impl UsageReport ===

impl UsageReport {
    /// Returns whether there is anything to write.
    pub fn has_news(&self) -> bool {
        !self.openings.is_empty() || self.counts.iter().any(|count| count.calls > 0)
    }
}
