//! The thread that has the daybook posted.

use std::{
    ops::Deref,
    sync::Arc,
    thread::{self, JoinHandle},
    time::Duration,
};

use rialto_model::store::StoreError;
use tokio::sync::{mpsc, oneshot};

use super::{
    daybook::{Daybook, Turn},
    writer::Job,
};
use crate::fault::Fault;

/// How long to wait before something that could not be posted is tried again.
const PAUSE: Duration = Duration::from_millis(250);

/// The daybook and its thread. Dropping it waits until what was noted is in the database.
pub(super) struct Poster {
    daybook: Arc<Daybook>,
    thread: Option<JoinHandle<()>>,
}

// === impl Poster ===

impl Poster {
    pub(super) fn start(daybook: Arc<Daybook>, jobs: mpsc::Sender<Job>) -> Result<Self, StoreError> {
        let shared = Arc::clone(&daybook);
        let thread = thread::Builder::new()
            .name("rialto-poster".to_owned())
            .spawn(move || run(&shared, &jobs))
            .map_err(|error| Fault::new("the thread that posts could not be started", error))?;
        Ok(Self { daybook, thread: Some(thread) })
    }
}

impl Deref for Poster {
    type Target = Daybook;

    fn deref(&self) -> &Daybook {
        &self.daybook
    }
}

impl Drop for Poster {
    fn drop(&mut self) {
        self.daybook.close();
        if let Some(thread) = self.thread.take() {
            // A thread that broke has said so; the next process posts what it has left.
            let _ = thread.join();
        }
    }
}

fn run(daybook: &Daybook, jobs: &mpsc::Sender<Job>) {
    let mut goes_on = true;
    while goes_on {
        goes_on = daybook.wait();
        let (reply, done) = oneshot::channel();
        let what = if goes_on { Turn::Finished } else { Turn::Everything };
        if jobs.blocking_send(Job::Post(what, reply)).is_err() {
            return;
        }
        // The writer has told the log what is wrong.
        if !matches!(done.blocking_recv(), Ok(Ok(_))) && goes_on {
            thread::sleep(PAUSE);
        }
    }
}
