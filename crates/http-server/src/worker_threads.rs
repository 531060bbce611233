//! Worker threads that serve connections, each with a runtime of its own.
//!
//! A multi-threaded runtime lets any thread continue any task. That evens out long and uneven work; what a call does is short, and waking
//! another thread to share it costs more than it saves. So a connection stays with one worker, and so does everything done for its
//! requests: what they wait for, and the connections to agents that they use (`client::runtime_pools`).
//!
//! It saves: 104 and 92 µs of CPU a call without and with it (docs/BENCHMARKS.md). `[server] worker_threads = false` serves all connections
//! on one multi-threaded runtime ([`WorkerThreads::shared`]). [`WorkerThreads::connections`] counts the connections of each worker, so that
//! a test can tell that they were pinned.
//!
//! An HTTP/2 connection carries requests of many clients, so these are distributed over all workers.

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

/// Worker threads. They end, with everything that runs there, when the last clone is dropped.
#[derive(Clone)]
pub struct WorkerThreads {
    workers: Arc<[WorkerThread]>,
    next: Arc<AtomicUsize>,
    _open: Arc<DropGuard>,
}

/// Connection of a worker, counted until it is dropped.
pub(crate) struct ConnectionSlot(Arc<AtomicUsize>);

struct WorkerThread {
    runtime: Handle,
    /// Number of its connections.
    connections: Arc<AtomicUsize>,
}

// === impl WorkerThreads ===

impl WorkerThreads {
    /// Starts this number of workers; one for each processor is right where nothing else runs.
    pub fn start(count: NonZero<usize>) -> io::Result<Self> {
        let stop = CancellationToken::new();
        let workers: io::Result<_> =
            (0..count.get()).map(|number| WorkerThread::start(number, stop.clone())).collect();
        Ok(Self { workers: workers?, next: Arc::default(), _open: Arc::new(stop.drop_guard()) })
    }

    /// Serves all connections on one multi-threaded runtime.
    pub fn shared(runtime: Handle) -> Self {
        let worker = WorkerThread { runtime, connections: Arc::default() };
        Self {
            workers: Arc::new([worker]),
            next: Arc::default(),
            _open: Arc::new(CancellationToken::new().drop_guard()),
        }
    }

    /// Number of connections of each thread.
    pub fn connections(&self) -> Vec<usize> {
        self.workers.iter().map(|worker| worker.connections.load(Ordering::Relaxed)).collect()
    }

    /// Worker with the fewest connections, and a slot there.
    pub(crate) fn least_loaded(&self) -> Option<(&Handle, ConnectionSlot)> {
        let worker = self.workers.iter().min_by_key(|worker| worker.connections.load(Ordering::Relaxed))?;
        worker.connections.fetch_add(1, Ordering::Relaxed);
        Some((&worker.runtime, ConnectionSlot(Arc::clone(&worker.connections))))
    }
}

impl<F> Executor<F> for WorkerThreads
where
    F: Future<Output = ()> + Send + 'static,
{
    /// Runs work on the next worker, round robin.
    fn execute(&self, work: F) {
        let next = self.next.fetch_add(1, Ordering::Relaxed) % self.workers.len().max(1);
        if let Some(worker) = self.workers.get(next) {
            worker.runtime.spawn(work);
        }
    }
}

// === impl WorkerThread ===

impl WorkerThread {
    fn start(number: usize, stop: CancellationToken) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        thread::Builder::new().name(format!("rialto-worker-{number}")).spawn(move || {
            runtime.block_on(stop.cancelled());
            // Blocking tasks are not waited for.
            runtime.shutdown_background();
        })?;
        Ok(Self { runtime: handle, connections: Arc::default() })
    }
}

// === impl ConnectionSlot ===

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lane_that_was_left_is_taken_next() {
        let workers = WorkerThreads::start(NonZero::new(2).unwrap()).unwrap();
        let connections = || {
            workers
                .workers
                .iter()
                .map(|worker| worker.connections.load(Ordering::Relaxed))
                .collect::<Vec<_>>()
        };
        let sit = || workers.least_loaded().map(|(_, slot)| slot);
        let (first, _second, third) = (sit(), sit(), sit());
        assert_eq!(connections(), [2, 1]);
        drop((first, third));
        assert_eq!(connections(), [0, 1]);
        let _back = sit();
        assert_eq!(connections(), [1, 1]);
    }
}
