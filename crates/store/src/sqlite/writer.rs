//! Writer thread of SQLite: commits all waiting jobs in one transaction.
//!
//! A commit costs the same for one job as for two hundred. No job is acknowledged before the commit, and none affects another: a
//! rejected job has written nothing, and after a database error the batch is rolled back and each job is tried alone.

use std::{
    sync::Arc,
    thread::{self, JoinHandle},
    time::Duration,
};

use rialto_model::store::StoreError;
use rusqlite::{Connection, Transaction, TransactionBehavior};
use tokio::sync::{mpsc, oneshot};

use super::{
    agents::{self, AgentWrite},
    checkpointer::Checkpointer,
    flush,
    health::StoreHealth,
    journal_record::JournalRecord,
    meta,
    secrets::{self, SecretWrite},
    tasks,
    tokens::{self, TokenWrite},
    write_buffer::{FlushBatch, FlushScope, WriteBuffer, recovery},
};
use crate::{
    error::{DatabaseError, DatabaseLocation, SqliteError},
    generation::GenerationCounter,
};

/// Maximum number of jobs of one commit.
const MAX_BATCH_JOBS: usize = 256;

/// Length of the queue; callers wait when it is full.
const QUEUE_JOBS: usize = 1024;

/// Batch size from which the next commit waits a moment for more jobs, because a commit for each
/// few of them would cost all of them more. Fewer are not made to wait.
const MIN_BATCH_TO_WAIT: usize = 4;

/// Time that a commit waits for more jobs. Each commit writes the last page of every table and index anew, and jobs in one commit share that cost.
const BATCH_DELAY: Duration = Duration::from_micros(500);

/// Something to be written. Its answer is the generation it made, if it made one.
pub(super) enum Write {
    /// To the journal or the audit log.
    Journal(JournalRecord),
    /// To the registry.
    Agent(AgentWrite),
    /// To the tokens.
    Token(TokenWrite),
    /// To the secrets.
    Secret(SecretWrite),
    /// Nothing but a new generation.
    Touch,
}

/// Request to the writer thread.
pub(super) enum Job {
    /// Write, and answer after the commit.
    Write(Write, Reply),
    /// Flush what the write buffer holds, and say when it is done.
    Flush(FlushScope, Reply),
    /// Flush what dead processes have buffered.
    RecoverBuffers(Reply),
    /// Read with everything in sight that was buffered, though it cannot be flushed now.
    ReadUnflushed(Box<dyn FnOnce(&Connection) + Send>),
    /// Something else that wants this connection to itself.
    Run(Box<dyn FnOnce(&Connection) + Send>),
    /// Finish what is waiting, close the file, and say so.
    Close(oneshot::Sender<()>),
}

type Outcome = Result<Option<u64>, StoreError>;

/// Channel that receives the outcome.
pub(super) type Reply = oneshot::Sender<Outcome>;

/// State of the writer thread.
pub(super) struct Writer {
    pub(super) connection: Connection,
    pub(super) checkpointer: Checkpointer,
    pub(super) place: DatabaseLocation,
    pub(super) generation: Arc<GenerationCounter>,
    /// None where everything is written to the database at once.
    pub(super) write_buffer: Option<Arc<WriteBuffer>>,
    /// A batch that could not be flushed. Nothing else is written before it.
    pub(super) unflushed: Option<FlushBatch>,
    pub(super) health: Arc<StoreHealth>,
}

/// Error of a whole batch.
enum BatchError {
    /// One of the jobs broke.
    Job(rusqlite::Error),
    /// The transaction could not begin or end.
    Commit(rusqlite::Error),
    /// The batch of the write buffer that goes first could not be flushed.
    Flush(DatabaseError),
}

// === impl Writer ===

impl Writer {
    /// Starts the thread. It ends on [`Job::Close`], or when the last sender is gone.
    pub(super) fn start(self) -> Result<(mpsc::Sender<Job>, JoinHandle<()>), StoreError> {
        let (sender, jobs) = mpsc::channel(QUEUE_JOBS);
        let thread = thread::Builder::new()
            .name("rialto-store".to_owned())
            .spawn(move || self.run(jobs))
            .map_err(|error| DatabaseError::new("the thread that writes could not be started", error))?;
        Ok((sender, thread))
    }

    fn run(mut self, mut jobs: mpsc::Receiver<Job>) {
        let mut waiting = Vec::with_capacity(MAX_BATCH_JOBS);
        let mut closers = Vec::new();
        let mut last = 0;
        while jobs.blocking_recv_many(&mut waiting, MAX_BATCH_JOBS) > 0 {
            if last >= MIN_BATCH_TO_WAIT {
                collect_more(&mut jobs, &mut waiting);
            }
            last = waiting.len();
            let mut batch = Vec::with_capacity(waiting.len());
            for job in waiting.drain(..) {
                match job {
                    Job::Write(write, reply) => batch.push((write, reply)),
                    Job::Run(work) => {
                        self.commit(std::mem::take(&mut batch));
                        work(&self.connection);
                    }
                    Job::ReadUnflushed(work) => {
                        self.commit(std::mem::take(&mut batch));
                        self.read_unflushed(work);
                    }
                    Job::Flush(scope, reply) => {
                        self.commit(std::mem::take(&mut batch));
                        // The caller may have gone away.
                        let _ = reply.send(self.flush(scope).map(|()| None).map_err(Into::into));
                    }
                    Job::RecoverBuffers(reply) => {
                        self.commit(std::mem::take(&mut batch));
                        let _ = reply.send(self.recover_buffers().map(|()| None));
                    }
                    Job::Close(done) => {
                        jobs.close();
                        closers.push(done);
                    }
                }
            }
            self.commit(batch);
            // Now that everybody has their answers.
            self.checkpointer.finish_checkpoint(&self.connection);
        }
        // What is left on the page, if anything, is flushed by the component that opens the store next.
        if self.flush(FlushScope::Everything).is_ok()
            && let Some(write_buffer) = &self.write_buffer
        {
            write_buffer.remove(&self.connection);
        }
        drop(self.connection);
        for done in closers {
            // The caller may have gone away.
            let _ = done.send(());
        }
    }

    fn commit(&mut self, batch: Vec<(Write, Reply)>) {
        if batch.is_empty() {
            return;
        }
        self.checkpointer.count_commit(batch.len());
        let (writes, replies): (Vec<_>, Vec<_>) = batch.into_iter().unzip();
        let outcomes =
            match self.retry_flush().map_err(BatchError::Flush).and_then(|()| self.commit_batch(&writes)) {
                Ok(outcomes) => outcomes,
                Err(BatchError::Job(_)) if writes.len() > 1 => {
                    writes.iter().map(|write| self.commit_one(write)).collect()
                }
                Err(BatchError::Job(error)) => {
                    self.health.failed(&error);
                    vec![Err(self.place.explain(SqliteError::Broken(error)))]
                }
                Err(BatchError::Commit(error)) => fail_all(&writes, &self.place.fault(error)),
                Err(BatchError::Flush(fault)) => fail_all(&writes, &fault),
            };
        for (reply, outcome) in replies.into_iter().zip(outcomes) {
            // The caller may have gone away; what was written stays written.
            let _ = reply.send(outcome);
        }
    }

    fn commit_one(&mut self, write: &Write) -> Outcome {
        match self.commit_batch(std::slice::from_ref(write)) {
            Ok(mut outcomes) => outcomes.pop().unwrap_or(Ok(None)),
            Err(BatchError::Job(error) | BatchError::Commit(error)) => {
                self.health.failed(&error);
                Err(self.place.explain(SqliteError::Broken(error)))
            }
            Err(BatchError::Flush(fault)) => Err(fault.into()),
        }
    }

    /// Flushes what the write buffer holds.
    fn flush(&mut self, scope: FlushScope) -> Result<(), DatabaseError> {
        self.retry_flush()?;
        let Some(write_buffer) = &self.write_buffer else { return Ok(()) };
        self.unflushed = write_buffer.start_flush(scope);
        self.retry_flush()
    }

    /// Flushes the batch that was handed over, if there is one.
    fn retry_flush(&mut self) -> Result<(), DatabaseError> {
        let Some(write_buffer) = &self.write_buffer else { return Ok(()) };
        let Some(batch) = self.unflushed.take() else { return Ok(()) };
        if let Err(failure) = flush::flush_batch(&mut self.connection, write_buffer.name(), &batch) {
            if let SqliteError::Broken(error) = &failure {
                self.health.failed(error);
            }
            let fault = self.place.unwritten(failure);
            tracing::debug!("the write buffer could not be flushed; retrying: {fault}");
            self.unflushed = Some(batch);
            return Err(fault);
        }
        self.health.written();
        self.checkpointer.count_commit(batch.tasks().len());
        write_buffer.finish_flush(batch);
        Ok(())
    }

    /// Runs `work` in a transaction that has everything buffered so far in it, and takes it back: pages that are not committed stay in memory, so
    /// this needs no room on the disk.
    fn read_unflushed(&mut self, work: Box<dyn FnOnce(&Connection) + Send>) {
        let batch = self.write_buffer.as_ref().map(|write_buffer| (write_buffer, write_buffer.copy_batch()));
        let staged = Transaction::new_unchecked(&self.connection, TransactionBehavior::Immediate).ok();
        let staged = staged.and_then(|transaction| {
            let (write_buffer, batch) = batch?;
            let mut batches = self.unflushed.iter().chain([&batch]);
            batches
                .try_for_each(|batch| flush::write_uncommitted(&transaction, write_buffer.name(), batch))
                .ok()?;
            Some(transaction)
        });
        match staged {
            // Dropped, it is rolled back.
            Some(transaction) => work(&transaction),
            None => work(&self.connection),
        }
    }

    fn recover_buffers(&mut self) -> Result<(), StoreError> {
        let Some(write_buffer) = &self.write_buffer else { return Ok(()) };
        let adopted = self
            .generation
            .with_lock(|| recovery::recover_buffers(&mut self.connection, write_buffer.folder()));
        let outcome = adopted.unwrap_or_else(|error| Err(error.into()));
        outcome.map_err(|error| error.explain(&self.place))
    }

    fn commit_batch(&mut self, writes: &[Write]) -> Result<Vec<Outcome>, BatchError> {
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(|error| {
                self.health.failed(&error);
                BatchError::Commit(error)
            })?;
        let mut outcomes = Vec::with_capacity(writes.len());
        let mut newest = None;
        for write in writes {
            match write.apply(&transaction) {
                Ok(made) => {
                    newest = newest.max(made);
                    outcomes.push(Ok(made));
                }
                Err(SqliteError::Refused(error)) => outcomes.push(Err(error)),
                Err(SqliteError::Broken(error)) => return Err(BatchError::Job(error)),
            }
        }
        transaction.commit().map_err(|error| {
            self.health.failed(&error);
            BatchError::Commit(error)
        })?;
        self.health.written();
        if let Some(number) = newest {
            self.generation.advance(number);
        }
        Ok(outcomes)
    }
}

fn fail_all(writes: &[Write], fault: &DatabaseError) -> Vec<Outcome> {
    writes.iter().map(|_| Err(fault.clone().into())).collect()
}

/// Gives the others of a crowd a moment to say what they want too.
fn collect_more(jobs: &mut mpsc::Receiver<Job>, waiting: &mut Vec<Job>) {
    thread::sleep(BATCH_DELAY);
    while waiting.len() < MAX_BATCH_JOBS {
        match jobs.try_recv() {
            Ok(job) => waiting.push(job),
            Err(_) => break,
        }
    }
}

// === impl Write ===

impl Write {
    fn apply(&self, connection: &Connection) -> Result<Option<u64>, SqliteError> {
        let registry_changed = match self {
            Self::Journal(record) => tasks::write(connection, record).map(|()| false)?,
            Self::Agent(write) => agents::write(connection, write)?,
            Self::Token(write) => tokens::write(connection, write)?,
            Self::Secret(write) => secrets::write(connection, write)?,
            Self::Touch => true,
        };
        Ok(if registry_changed { Some(meta::next_generation(connection)?) } else { None })
    }
}
