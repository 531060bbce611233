//! Threads that serve connections, each for itself.
//!
//! A runtime of many threads lets any of them go on with any task. That evens out work that is long and uneven; what a call does is
//! short, and waking another thread to share it costs more than it saves. So a connection stays with one
//! thread, its lane, and so does everything that is done for its requests: what they wait for, and the connections to agents that they use
//! (`client::runtime_pools`).
//!
//! What it saves: 104 and 92 µs of CPU a call without and with it (docs/BENCHMARKS.md). `[server] worker_threads = false` serves all
//! connections on one runtime of many threads ([`Lanes::shared`]). [`Lanes::connections`] tells how many connections each thread has, so a
//! test can tell that they were pinned.
//!
//! An HTTP/2 connection carries the requests of many, so these are shared out over all lanes.

use std::{
    future::{Future, poll_fn},
    io,
    num::NonZero,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::Poll,
    thread,
};

use hyper::rt::Executor;
use tokio::runtime::{Builder, Handle};
use tokio_util::sync::{CancellationToken, DropGuard};

/// The threads. They end, with all that runs there, when the last copy of this is dropped.
#[derive(Clone)]
pub struct Lanes {
    lanes: Arc<[Lane]>,
    turn: Arc<AtomicUsize>,
    _open: Arc<DropGuard>,
}

/// A place on a lane, for as long as it lives.
pub(crate) struct Seat(Arc<AtomicUsize>);

struct Lane {
    runtime: Handle,
    /// How many connections it has.
    taken: Arc<AtomicUsize>,
}

// === impl Lanes ===

impl Lanes {
    /// So many lanes; one for each processor is right where nothing else runs.
    pub fn open(lanes: NonZero<usize>) -> io::Result<Self> {
        let stop = CancellationToken::new();
        let lanes: io::Result<_> = (0..lanes.get()).map(|number| Lane::open(number, stop.clone())).collect();
        Ok(Self { lanes: lanes?, turn: Arc::default(), _open: Arc::new(stop.drop_guard()) })
    }

    /// One runtime of many threads for all connections, in place of a thread for each.
    pub fn shared(runtime: Handle) -> Self {
        let lane = Lane { runtime, taken: Arc::default() };
        Self {
            lanes: Arc::new([lane]),
            turn: Arc::default(),
            _open: Arc::new(CancellationToken::new().drop_guard()),
        }
    }

    /// Number of connections of each thread.
    pub fn connections(&self) -> Vec<usize> {
        self.lanes.iter().map(|lane| lane.taken.load(Ordering::Relaxed)).collect()
    }

    /// The lane with the fewest connections, and a place there.
    pub(crate) fn emptiest(&self) -> Option<(&Handle, Seat)> {
        let lane = self.lanes.iter().min_by_key(|lane| lane.taken.load(Ordering::Relaxed))?;
        lane.taken.fetch_add(1, Ordering::Relaxed);
        Some((&lane.runtime, Seat(Arc::clone(&lane.taken))))
    }
}

impl<F> Executor<F> for Lanes
where
    F: Future<Output = ()> + Send + 'static,
{
    /// Has each lane do something in turn.
    fn execute(&self, work: F) {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed) % self.lanes.len().max(1);
        if let Some(lane) = self.lanes.get(turn) {
            lane.runtime.spawn(work);
        }
    }
}

// === impl Lane ===

impl Lane {
    fn open(number: usize, stop: CancellationToken) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        thread::Builder::new().name(format!("rialto-lane-{number}")).spawn(move || {
            runtime.block_on(stop.cancelled());
            // Whatever blocks there is not waited for.
            runtime.shutdown_background();
        })?;
        Ok(Self { runtime: handle, taken: Arc::default() })
    }
}

// === impl Seat ===

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Lets everything go first that this lane could do now; what comes later waits its turn.
///
/// Whoever is about to write to a connection does so after this. The reader at its other end is woken by what is written, and has long
/// fallen asleep again when the next one of the lane writes, if that one had to compute something first. Those who write right after
/// one another wake it once.
pub(crate) async fn after_the_others() {
    let mut have_gone = false;
    poll_fn(|cx| {
        if have_gone {
            return Poll::Ready(());
        }
        have_gone = true;
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_others_can_do_now_is_done_before_and_what_comes_later_after() {
        let (said, heard) = std::sync::mpsc::channel();
        let speak = |name: &'static str| {
            let said = said.clone();
            async move {
                said.send(("computes", name)).unwrap();
                after_the_others().await;
                said.send(("writes", name)).unwrap();
            }
        };
        let (first, second) = (tokio::spawn(speak("first")), tokio::spawn(speak("second")));
        let late = speak("late");
        first.await.unwrap();
        tokio::spawn(late).await.unwrap();
        second.await.unwrap();
        let order =
            [("computes", "first"), ("computes", "second"), ("writes", "first"), ("writes", "second")];
        assert_eq!(heard.try_iter().take(4).collect::<Vec<_>>(), order);
        assert_eq!(heard.try_iter().collect::<Vec<_>>(), [("computes", "late"), ("writes", "late")]);
    }

    #[test]
    fn a_lane_that_was_left_is_taken_next() {
        let lanes = Lanes::open(NonZero::new(2).unwrap()).unwrap();
        let taken = || lanes.lanes.iter().map(|lane| lane.taken.load(Ordering::Relaxed)).collect::<Vec<_>>();
        let sit = || lanes.emptiest().map(|(_, seat)| seat);
        let (first, _second, third) = (sit(), sit(), sit());
        assert_eq!(taken(), [2, 1]);
        drop((first, third));
        assert_eq!(taken(), [0, 1]);
        let _back = sit();
        assert_eq!(taken(), [1, 1]);
    }
}
