//! How files that others may edit are looked at.

use std::time::Duration;

use tokio::time::{Interval, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

/// How often.
pub(crate) const LOOK: Duration = Duration::from_secs(1);

/// How long such a file must stay as it is before it counts.
const SETTLED: Duration = Duration::from_millis(50);

/// One look after the other, until it is to end.
pub(crate) struct Looks {
    tick: Interval,
    stop: CancellationToken,
}

// === impl Looks ===

impl Looks {
    pub(crate) fn until(stop: CancellationToken) -> Self {
        let mut tick = tokio::time::interval(LOOK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { tick, stop }
    }

    /// Waits for the next look. False when there is none.
    pub(crate) async fn next(&mut self) -> bool {
        tokio::select! {
            () = self.stop.cancelled() => false,
            _ = self.tick.tick() => true,
        }
    }
}

/// Whether what was seen is still there a moment later: a file that is just being written may look whole and be empty.
pub(crate) async fn lasts<T: PartialEq>(seen: &T, look: impl FnOnce() -> T) -> bool {
    tokio::time::sleep(SETTLED).await;
    look() == *seen
}
