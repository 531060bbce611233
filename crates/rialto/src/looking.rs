//! How files that others may edit are looked at.

use std::time::Duration;

use tokio::{
    sync::watch,
    time::{Interval, MissedTickBehavior},
};
use tokio_util::sync::CancellationToken;

/// How often.
pub(crate) const LOOK: Duration = Duration::from_secs(1);

/// How long such a file must stay as it is before it counts.
const SETTLED: Duration = Duration::from_millis(50);

/// One look after the other, until it is to end.
pub(crate) struct Looks {
    tick: Interval,
    stop: CancellationToken,
    demand: watch::Receiver<u64>,
}

/// Why a look is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// It is time.
    Tick,
    /// It was asked for: everything is read again, changed or not.
    Demand,
}

/// Has everything read again at once that is looked at: SIGHUP does. Cloning shares it.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReloadSignal(watch::Sender<u64>);

// === impl Looks ===

impl Looks {
    pub(crate) fn until(stop: CancellationToken, signal: &ReloadSignal) -> Self {
        let mut tick = tokio::time::interval(LOOK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { tick, stop, demand: signal.0.subscribe() }
    }

    /// Waits for the next look. None when there is none.
    pub(crate) async fn next(&mut self) -> Option<Reason> {
        tokio::select! {
            () = self.stop.cancelled() => None,
            Ok(()) = self.demand.changed() => Some(Reason::Demand),
            _ = self.tick.tick() => Some(Reason::Tick),
        }
    }
}

// === impl ReloadSignal ===

impl ReloadSignal {
    pub(crate) fn send(&self) {
        self.0.send_modify(|count| *count += 1);
    }
}

/// Whether what was seen is still there a moment later: a file that is just being written may look whole and be empty.
pub(crate) async fn lasts<T: PartialEq>(seen: &T, look: impl FnOnce() -> T) -> bool {
    tokio::time::sleep(SETTLED).await;
    look() == *seen
}
