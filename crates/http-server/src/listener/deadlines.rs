//! Deadlines of a connection: it is closed when its client keeps it open and neither sends nor reads.
//!
//! A request pays only for a few relaxed counters of its own connection. A timer of the connection polls them ([`DeadlineWatch`]) and
//! measures how long they have been the same; it is armed once for each poll, not for each request. So a deadline may fire a quarter of its
//! length late.

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

/// Times that a client may take for each part of an exchange.
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

/// Activity of a connection, recorded by the parts that see it.
#[derive(Debug, Default)]
pub(super) struct ConnectionActivity {
    in_flight: AtomicU32,
    requests: AtomicU32,
    /// True if bytes have arrived since the last request, and none is in flight.
    is_reading: AtomicBool,
    is_http2: AtomicBool,
    is_write_blocked: AtomicBool,
    /// Number of times that a blocked write continued.
    unblocked: AtomicU32,
    /// True if a body was late; HTTP/1 only, which has one at a time.
    pub(super) is_body_late: AtomicBool,
}

/// A request in flight, until its response is written.
#[derive(Debug)]
pub(super) struct InFlightRequest(pub(super) Arc<ConnectionActivity>);

/// Stream that records its [`ConnectionActivity`].
pub(super) struct ObservedStream<T> {
    stream: T,
    activity: Arc<ConnectionActivity>,
}

/// Polls a connection's [`ConnectionActivity`].
pub(super) struct DeadlineWatch {
    activity: Arc<ConnectionActivity>,
    deadlines: Deadlines,
    interval: Duration,
    timer: Pin<Box<Sleep>>,
    seen: ActivitySnapshot,
    since: Instant,
    is_closing: bool,
}

/// Action on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DeadlineAction {
    /// It stays open.
    Keep,
    /// Idle for too long: it takes no more requests.
    Close,
    /// Its client is too slow: it ends now.
    Abort,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ActivitySnapshot {
    phase: ConnectionPhase,
    requests: u32,
    unblocked: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConnectionPhase {
    /// No request has arrived yet.
    New,
    /// A request's head is arriving.
    Head,
    /// Requests are in progress.
    Busy,
    /// A response is not being read.
    WriteBlocked,
    /// Between two requests.
    Idle,
}

// === impl Deadlines ===

impl Deadlines {
    /// Interval at which a connection is polled.
    fn check_interval(&self) -> Duration {
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

// === impl ConnectionActivity ===

impl ConnectionActivity {
    /// Records the start of a request.
    pub(super) fn begin(self: &Arc<Self>, version: Version) -> InFlightRequest {
        if version == Version::HTTP_2 {
            self.is_http2.store(true, Relaxed);
        }
        self.is_reading.store(false, Relaxed);
        self.requests.fetch_add(1, Relaxed);
        self.in_flight.fetch_add(1, Relaxed);
        InFlightRequest(Arc::clone(self))
    }

    pub(super) fn is_http2(&self) -> bool {
        self.is_http2.load(Relaxed)
    }

    fn snapshot(&self) -> ActivitySnapshot {
        let requests = self.requests.load(Relaxed);
        let phase = if self.is_write_blocked.load(Relaxed) {
            ConnectionPhase::WriteBlocked
        } else if self.in_flight.load(Relaxed) > 0 {
            ConnectionPhase::Busy
        } else if requests == 0 {
            ConnectionPhase::New
        } else if self.is_reading.load(Relaxed) {
            ConnectionPhase::Head
        } else {
            ConnectionPhase::Idle
        };
        ActivitySnapshot { phase, requests, unblocked: self.unblocked.load(Relaxed) }
    }

    fn record_read(&self) {
        // Over HTTP/2 bytes also come between requests: answers to pings.
        if self.in_flight.load(Relaxed) == 0 && !self.is_http2() {
            self.is_reading.store(true, Relaxed);
        }
    }

    fn record_write<T>(&self, written: &Poll<T>) {
        if written.is_pending() {
            self.is_write_blocked.store(true, Relaxed);
        } else if self.is_write_blocked.load(Relaxed) {
            self.is_write_blocked.store(false, Relaxed);
            self.unblocked.fetch_add(1, Relaxed);
        }
    }
}

// === impl InFlightRequest ===

impl Drop for InFlightRequest {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Relaxed);
    }
}

// === impl DeadlineWatch ===

impl DeadlineWatch {
    pub(super) fn new(activity: Arc<ConnectionActivity>, deadlines: Deadlines) -> Self {
        let interval = deadlines.check_interval();
        let timer = Box::pin(tokio::time::sleep(interval));
        let (seen, since) = (activity.snapshot(), Instant::now());
        Self { activity, deadlines, interval, timer, seen, since, is_closing: false }
    }

    /// Action on the connection. The task is woken for the next poll.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> DeadlineAction {
        while self.timer.as_mut().poll(cx).is_ready() {
            let now = Instant::now();
            let action = self.check(now);
            if action != DeadlineAction::Keep {
                self.timer.as_mut().reset(now + self.interval);
                let _ = self.timer.as_mut().poll(cx);
                return action;
            }
            self.timer.as_mut().reset(now + self.interval);
        }
        DeadlineAction::Keep
    }

    fn check(&mut self, now: Instant) -> DeadlineAction {
        let snapshot = self.activity.snapshot();
        if snapshot != self.seen {
            (self.seen, self.since) = (snapshot, now);
        }
        let lasts = now.saturating_duration_since(self.since);
        let (limit, action) = match snapshot.phase {
            ConnectionPhase::Busy => return DeadlineAction::Keep,
            ConnectionPhase::New | ConnectionPhase::Head => (self.deadlines.head, DeadlineAction::Abort),
            ConnectionPhase::WriteBlocked => (self.deadlines.write, DeadlineAction::Abort),
            // It is closing already, and its client keeps it open.
            ConnectionPhase::Idle if self.is_closing => (self.deadlines.head, DeadlineAction::Abort),
            ConnectionPhase::Idle => (self.deadlines.idle, DeadlineAction::Close),
        };
        if lasts < limit {
            return DeadlineAction::Keep;
        }
        if action == DeadlineAction::Close {
            (self.is_closing, self.since) = (true, now);
        }
        action
    }
}

// === impl ObservedStream ===

impl<T> ObservedStream<T> {
    pub(super) const fn new(stream: T, activity: Arc<ConnectionActivity>) -> Self {
        Self { stream, activity }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for ObservedStream<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        if buffer.filled().len() > before {
            self.activity.record_read();
        }
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for ObservedStream<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.activity.record_write(&written);
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.activity.record_write(&written);
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        // One that has nothing to write says nothing about a write that is blocked.
        if flushed.is_pending() {
            self.activity.record_write(&flushed);
        }
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.activity.record_write(&shut);
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

    /// Actions at each of these seconds.
    fn actions(watch: &mut DeadlineWatch, start: Instant, seconds: &[u64]) -> Vec<DeadlineAction> {
        seconds.iter().map(|second| watch.check(start + Duration::from_secs(*second))).collect()
    }

    #[tokio::test]
    async fn a_connection_without_a_request_ends_after_the_time_for_a_head() {
        let mut watch = DeadlineWatch::new(Arc::default(), DEADLINES);
        watch.activity.record_read();
        let start = watch.since;
        assert_eq!(actions(&mut watch, start, &[0, 1]), [DeadlineAction::Keep, DeadlineAction::Abort]);
    }

    #[tokio::test]
    async fn a_request_that_is_worked_on_has_all_the_time() {
        let mut watch = DeadlineWatch::new(Arc::default(), DEADLINES);
        let start = watch.since;
        let request = watch.activity.begin(Version::HTTP_11);
        assert_eq!(actions(&mut watch, start, &[1, 1_000]), [DeadlineAction::Keep; 2]);
        drop(request);
        assert_eq!(
            actions(&mut watch, start, &[1_001, 1_010, 1_011, 1_011, 1_012]),
            [
                DeadlineAction::Keep,
                DeadlineAction::Keep,
                DeadlineAction::Close,
                DeadlineAction::Keep,
                DeadlineAction::Abort
            ]
        );
    }

    #[tokio::test]
    async fn the_next_head_has_its_own_time_and_http2_has_none_between_requests() {
        for (version, expected) in
            [(Version::HTTP_11, DeadlineAction::Abort), (Version::HTTP_2, DeadlineAction::Keep)]
        {
            let mut watch = DeadlineWatch::new(Arc::default(), DEADLINES);
            let start = watch.since;
            drop(watch.activity.begin(version));
            watch.activity.record_read();
            assert_eq!(actions(&mut watch, start, &[1, 2]), [DeadlineAction::Keep, expected], "{version:?}");
        }
    }

    #[tokio::test]
    async fn a_response_that_is_not_taken_ends_the_connection_and_one_that_moves_does_not() {
        let mut watch = DeadlineWatch::new(Arc::default(), DEADLINES);
        let start = watch.since;
        let _request = watch.activity.begin(Version::HTTP_11);
        watch.activity.record_write(&Poll::<()>::Pending);
        assert_eq!(actions(&mut watch, start, &[1, 4]), [DeadlineAction::Keep; 2]);
        watch.activity.record_write(&Poll::Ready(()));
        watch.activity.record_write(&Poll::<()>::Pending);
        assert_eq!(
            actions(&mut watch, start, &[7, 11, 12]),
            [DeadlineAction::Keep, DeadlineAction::Keep, DeadlineAction::Abort]
        );
    }
}
