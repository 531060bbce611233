//! The server's clock, by which leases end: the clocks of several machines differ.

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use jiff::{SignedDuration, Timestamp};

/// A smaller difference counts as none: it may be the way to_server_time.
const TOLERANCE: i64 = 250_000_000;

/// Offset of the server's clock to ours, in nanoseconds.
#[derive(Clone, Debug, Default)]
pub(super) struct ServerClock(Arc<AtomicI64>);

// === impl ServerClock ===

impl ServerClock {
    /// Takes down what the server's clock has shown between two moments of ours.
    pub(super) fn update(&self, before: Timestamp, server: i64, after: Timestamp) {
        let middle = (before.as_nanosecond() + after.as_nanosecond()) / 2;
        let ahead = i64::try_from(i128::from(server) - middle).unwrap_or_default();
        self.0.store(if ahead.abs() < TOLERANCE { 0 } else { ahead }, Ordering::Relaxed);
    }

    /// A moment of ours by the server's clock.
    pub(super) fn to_server_time(&self, here: Timestamp) -> Timestamp {
        let ahead = SignedDuration::from_nanos(self.0.load(Ordering::Relaxed));
        here.checked_add(ahead).unwrap_or(here)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_told_by_the_clock_of_the_server() {
        let clock = ServerClock::default();
        let at = |seconds| Timestamp::from_second(seconds).unwrap();
        let nanoseconds = |moment: Timestamp| i64::try_from(moment.as_nanosecond()).unwrap();
        clock.update(at(10), nanoseconds(at(71)), at(12));
        assert_eq!(clock.to_server_time(at(100)), at(160));
        clock.update(at(10), nanoseconds(at(11)) + 1_000_000, at(12));
        assert_eq!(clock.to_server_time(at(100)), at(100), "a moment on the way is no difference");
    }
}
