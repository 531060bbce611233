//! Threads that serve connections, each for itself.
//!
//! A runtime of many threads lets any of them go on with any task. That evens out work that is long and uneven; what a call does is
//! short, and waking another thread to share it costs more than it saves. So a connection stays with one
//! thread, its lane, and so does everything that is done for it: what its requests wait for, and the connections that are opened to
//! agents for them (`pool` keeps these by lane). Nothing has to be handed from thread to thread on the road of a call.
//!
//! An HTTP/2 connection carries the requests of many, so these are shared out over all lanes.

use std::{
    future::Future,
    io,
    num::NonZero,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
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

#[cfg(test)]
mod tests {
    use super::*;

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
