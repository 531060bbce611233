//! Polling of files that other programs edit.

use std::time::Duration;

use tokio::{
    sync::watch,
    time::{Interval, MissedTickBehavior},
};
use tokio_util::sync::CancellationToken;

/// Interval between polls.
pub(crate) const FILE_POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Time for which a file must be unchanged before it is read.
const SETTLE_TIME: Duration = Duration::from_millis(50);

/// Sequence of polls, until cancelled.
pub(crate) struct FilePoll {
    tick: Interval,
    stop: CancellationToken,
    demand: watch::Receiver<u64>,
}

/// Reason for a poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PollReason {
    /// Interval.
    Tick,
    /// Signal: everything is read again, changed or not.
    Demand,
}

/// Signal that reloads all polled files at once, as SIGHUP does. Cloning shares it.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReloadSignal(watch::Sender<u64>);

// === impl FilePoll ===

impl FilePoll {
    pub(crate) fn new(stop: CancellationToken, signal: &ReloadSignal) -> Self {
        let mut tick = tokio::time::interval(FILE_POLL_INTERVAL);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { tick, stop, demand: signal.0.subscribe() }
    }

    /// Waits for the next poll. None at the end.
    pub(crate) async fn next(&mut self) -> Option<PollReason> {
        tokio::select! {
            () = self.stop.cancelled() => None,
            Ok(()) = self.demand.changed() => Some(PollReason::Demand),
            _ = self.tick.tick() => Some(PollReason::Tick),
        }
    }
}

// === impl ReloadSignal ===

impl ReloadSignal {
    pub(crate) fn send(&self) {
        self.0.send_modify(|count| *count += 1);
    }
}

/// True if a value is unchanged after a short wait: a file that is being written may be empty for a moment.
pub(crate) async fn is_stable<T: PartialEq>(seen: &T, look: impl FnOnce() -> T) -> bool {
    tokio::time::sleep(SETTLE_TIME).await;
    look() == *seen
}
