//! The thread that has the write buffer flushed.

use std::{
    ops::Deref,
    sync::Arc,
    thread::{self, JoinHandle},
    time::Duration,
};

use rialto_model::store::StoreError;
use tokio::sync::{mpsc, oneshot};

use super::{
    write_buffer::{FlushScope, WriteBuffer},
    writer::Job,
};
use crate::error::DatabaseError;

/// Delay before a failed flush is retried.
const RETRY_DELAY: Duration = Duration::from_millis(250);

/// The write buffer and its thread. Dropping it waits until what was buffered is in the database.
pub(super) struct FlushThread {
    buffer: Arc<WriteBuffer>,
    thread: Option<JoinHandle<()>>,
}

// === impl FlushThread ===

impl FlushThread {
    pub(super) fn start(buffer: Arc<WriteBuffer>, jobs: mpsc::Sender<Job>) -> Result<Self, StoreError> {
        let shared = Arc::clone(&buffer);
        let thread = thread::Builder::new()
            .name("rialto-flush".to_owned())
            .spawn(move || run(&shared, &jobs))
            .map_err(|error| DatabaseError::new("the flush thread could not be started", error))?;
        Ok(Self { buffer, thread: Some(thread) })
    }
}

impl Deref for FlushThread {
    type Target = WriteBuffer;

    fn deref(&self) -> &WriteBuffer {
        &self.buffer
    }
}

impl Drop for FlushThread {
    fn drop(&mut self) {
        self.buffer.close();
        if let Some(thread) = self.thread.take() {
            // A thread that broke has said so; the next process flushes what it has left.
            let _ = thread.join();
        }
    }
}

fn run(buffer: &WriteBuffer, jobs: &mpsc::Sender<Job>) {
    let mut is_running = true;
    while is_running {
        is_running = buffer.wait_for_flush();
        let (reply, done) = oneshot::channel();
        let scope = if is_running { FlushScope::Finished } else { FlushScope::Everything };
        if jobs.blocking_send(Job::Flush(scope, reply)).is_err() {
            return;
        }
        // The writer has logged the error.
        if !matches!(done.blocking_recv(), Ok(Ok(_))) && is_running {
            thread::sleep(RETRY_DELAY);
        }
    }
}
