//! Time, asked for rather than taken, so that a test can say what time it is.

pub use jiff::Timestamp;

/// Tells the time of day.
pub trait Clock: Send + Sync {
    /// Now.
    fn now(&self) -> Timestamp;
}

/// The machine's own clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

/// A clock that stands still.
#[derive(Clone, Copy, Debug)]
pub struct FixedClock(pub Timestamp);

// === impl SystemClock ===

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        #[expect(clippy::disallowed_methods, reason = "this is the one place the time is read")]
        Timestamp::now()
    }
}

// === impl FixedClock ===

impl Clock for FixedClock {
    fn now(&self) -> Timestamp {
        self.0
    }
}
