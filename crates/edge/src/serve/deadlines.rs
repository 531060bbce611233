//! Deadlines of a connection: it is closed when its client keeps it open and sends, or reads, nothing.
//!
//! Nothing here is paid for by a request but a few relaxed counters of its own connection. A timer of the connection looks at them now
//! and then ([`Watch`]) and measures how long they have shown the same; it is armed once for each look, not for each request. So a
//! deadline may be noticed a quarter of its length late.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering::Relaxed},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use http::Version;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Instant, Sleep},
};

/// How long a client may take for each part of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadlines {
    /// From the first byte of a request's head to its last, from the start of a connection to the end of its first request's head, and
    /// for the handshake of TLS.
    pub head: Duration,
    /// From the end of a request's head to the end of its body.
    pub body: Duration,
    /// Between two requests on a connection.
    pub idle: Duration,
    /// While not one byte of a response is taken.
    pub write: Duration,
}

/// What happens on a connection, noted by those who see it.
#[derive(Debug, Default)]
pub(super) struct Activity {
    in_flight: AtomicU32,
    requests: AtomicU32,
    /// Whether bytes have come since the last request, and none is in flight.
    is_reading: AtomicBool,
    is_http2: AtomicBool,
    is_write_blocked: AtomicBool,
    /// How often a blocked write could go on.
    unblocked: AtomicU32,
    /// Whether a body was not there in time; HTTP/1 only, which has one at a time.
    pub(super) is_body_late: AtomicBool,
}

/// A request in flight, until its response is written.
#[derive(Debug)]
pub(super) struct InFlight(pub(super) Arc<Activity>);

/// A connection's bytes, noted in its [`Activity`].
pub(super) struct Observed<T> {
    stream: T,
    activity: Arc<Activity>,
}

/// Looks at a connection's [`Activity`] now and then.
pub(super) struct Watch {
    activity: Arc<Activity>,
    deadlines: Deadlines,
    tick: Duration,
    timer: Pin<Box<Sleep>>,
    seen: Standing,
    since: Instant,
    is_closing: bool,
}

/// What to do with a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It stays.
    Stays,
    /// No request has come for long: it takes no more.
    Closes,
    /// Its client is too slow: it ends now.
    Ends,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Standing {
    phase: Phase,
    requests: u32,
    unblocked: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// No request has come yet.
    Fresh,
    /// A request's head comes in.
    Head,
    /// Requests are worked on.
    Busy,
    /// A response is not taken.
    WriteBlocked,
    /// Nothing happens.
    Idle,
}

// === impl Deadlines ===

impl Deadlines {
    /// How often a connection is looked at.
    fn tick(&self) -> Duration {
        let shortest = self.head.min(self.idle).min(self.write);
        (shortest / 4).clamp(Duration::from_millis(10), Duration::from_secs(5))
    }
}

impl Default for Deadlines {
    fn default() -> Self {
        Self {
            head: Duration::from_secs(10),
            body: Duration::from_secs(60),
            idle: Duration::from_secs(120),
            write: Duration::from_secs(60),
        }
    }
}

// === impl Activity ===

impl Activity {
    /// Notes that a request has come.
    pub(super) fn begin(self: &Arc<Self>, version: Version) -> InFlight {
        if version == Version::HTTP_2 {
            self.is_http2.store(true, Relaxed);
        }
        self.is_reading.store(false, Relaxed);
        self.requests.fetch_add(1, Relaxed);
        self.in_flight.fetch_add(1, Relaxed);
        InFlight(Arc::clone(self))
    }

    pub(super) fn is_http2(&self) -> bool {
        self.is_http2.load(Relaxed)
    }

    fn standing(&self) -> Standing {
        let requests = self.requests.load(Relaxed);
        let phase = if self.is_write_blocked.load(Relaxed) {
            Phase::WriteBlocked
        } else if self.in_flight.load(Relaxed) > 0 {
            Phase::Busy
        } else if requests == 0 {
            Phase::Fresh
        } else if self.is_reading.load(Relaxed) {
            Phase::Head
        } else {
            Phase::Idle
        };
        Standing { phase, requests, unblocked: self.unblocked.load(Relaxed) }
    }

    fn note_read(&self) {
        // Over HTTP/2 bytes also come between requests: answers to pings.
        if self.in_flight.load(Relaxed) == 0 && !self.is_http2() {
            self.is_reading.store(true, Relaxed);
        }
    }

    fn note_write<T>(&self, written: &Poll<T>) {
        if written.is_pending() {
            self.is_write_blocked.store(true, Relaxed);
        } else if self.is_write_blocked.load(Relaxed) {
            self.is_write_blocked.store(false, Relaxed);
            self.unblocked.fetch_add(1, Relaxed);
        }
    }
}

// === impl InFlight ===

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Relaxed);
    }
}

// === impl Watch ===

impl Watch {
    pub(super) fn new(activity: Arc<Activity>, deadlines: Deadlines) -> Self {
        let tick = deadlines.tick();
        let timer = Box::pin(tokio::time::sleep(tick));
        let (seen, since) = (activity.standing(), Instant::now());
        Self { activity, deadlines, tick, timer, seen, since, is_closing: false }
    }

    /// What to do with the connection. The task is woken for the next look.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Verdict {
        while self.timer.as_mut().poll(cx).is_ready() {
            let now = Instant::now();
            let verdict = self.judge(now);
            if verdict != Verdict::Stays {
                self.timer.as_mut().reset(now + self.tick);
                let _ = self.timer.as_mut().poll(cx);
                return verdict;
            }
            self.timer.as_mut().reset(now + self.tick);
        }
        Verdict::Stays
    }

    fn judge(&mut self, now: Instant) -> Verdict {
        let standing = self.activity.standing();
        if standing != self.seen {
            (self.seen, self.since) = (standing, now);
        }
        let lasts = now.saturating_duration_since(self.since);
        let (limit, verdict) = match standing.phase {
            Phase::Busy => return Verdict::Stays,
            Phase::Fresh | Phase::Head => (self.deadlines.head, Verdict::Ends),
            Phase::WriteBlocked => (self.deadlines.write, Verdict::Ends),
            // It was told so already, and its client does not hang up.
            Phase::Idle if self.is_closing => (self.deadlines.head, Verdict::Ends),
            Phase::Idle => (self.deadlines.idle, Verdict::Closes),
        };
        if lasts < limit {
            return Verdict::Stays;
        }
        if verdict == Verdict::Closes {
            (self.is_closing, self.since) = (true, now);
        }
        verdict
    }
}

// === impl Observed ===

impl<T> Observed<T> {
    pub(super) const fn new(stream: T, activity: Arc<Activity>) -> Self {
        Self { stream, activity }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Observed<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        if buffer.filled().len() > before {
            self.activity.note_read();
        }
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Observed<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.activity.note_write(&written);
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.activity.note_write(&written);
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        // One that has nothing to write says nothing about a write that is blocked.
        if flushed.is_pending() {
            self.activity.note_write(&flushed);
        }
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.activity.note_write(&shut);
        shut
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEADLINES: Deadlines = Deadlines {
        head: Duration::from_secs(1),
        body: Duration::from_secs(1),
        idle: Duration::from_secs(10),
        write: Duration::from_secs(5),
    };

    /// A connection, and how it is judged at each of these seconds.
    fn judged(watch: &mut Watch, start: Instant, seconds: &[u64]) -> Vec<Verdict> {
        seconds.iter().map(|second| watch.judge(start + Duration::from_secs(*second))).collect()
    }

    #[tokio::test]
    async fn a_connection_without_a_request_ends_after_the_time_for_a_head() {
        let mut watch = Watch::new(Arc::default(), DEADLINES);
        watch.activity.note_read();
        let start = watch.since;
        assert_eq!(judged(&mut watch, start, &[0, 1]), [Verdict::Stays, Verdict::Ends]);
    }

    #[tokio::test]
    async fn a_request_that_is_worked_on_has_all_the_time() {
        let mut watch = Watch::new(Arc::default(), DEADLINES);
        let start = watch.since;
        let request = watch.activity.begin(Version::HTTP_11);
        assert_eq!(judged(&mut watch, start, &[1, 1_000]), [Verdict::Stays; 2]);
        drop(request);
        assert_eq!(
            judged(&mut watch, start, &[1_001, 1_010, 1_011, 1_011, 1_012]),
            [Verdict::Stays, Verdict::Stays, Verdict::Closes, Verdict::Stays, Verdict::Ends]
        );
    }

    #[tokio::test]
    async fn the_next_head_has_its_own_time_and_http2_has_none_between_requests() {
        for (version, expected) in [(Version::HTTP_11, Verdict::Ends), (Version::HTTP_2, Verdict::Stays)] {
            let mut watch = Watch::new(Arc::default(), DEADLINES);
            let start = watch.since;
            drop(watch.activity.begin(version));
            watch.activity.note_read();
            assert_eq!(judged(&mut watch, start, &[1, 2]), [Verdict::Stays, expected], "{version:?}");
        }
    }

    #[tokio::test]
    async fn a_response_that_is_not_taken_ends_the_connection_and_one_that_moves_does_not() {
        let mut watch = Watch::new(Arc::default(), DEADLINES);
        let start = watch.since;
        let _request = watch.activity.begin(Version::HTTP_11);
        watch.activity.note_write(&Poll::<()>::Pending);
        assert_eq!(judged(&mut watch, start, &[1, 4]), [Verdict::Stays; 2]);
        watch.activity.note_write(&Poll::Ready(()));
        watch.activity.note_write(&Poll::<()>::Pending);
        assert_eq!(judged(&mut watch, start, &[7, 11, 12]), [Verdict::Stays, Verdict::Stays, Verdict::Ends]);
    }
}
