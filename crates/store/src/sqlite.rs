//! Store in one SQLite file.
//!
//! One thread writes and commits in groups ([`writer`]); a few connections read beside it ([`readers`]). Journal writes of calls
//! are appended to a file first and flushed a moment later ([`write_buffer`]). Other processes may use the
//! same database at the same time: a server, several stdio servers, the command line.

mod agents;
mod approvals;
mod audit;
mod backup;
mod check;
mod checkpointer;
mod checksum;
mod column;
mod connect;
mod conversations;
mod costs;
mod elided_args;
mod flows;
mod flush;
mod flush_thread;
mod health;
mod journal_record;
mod leases;
mod messages;
mod meta;
mod nodes;
mod policies;
mod process_locks;
mod pushes;
mod readers;
mod relay;
mod retention;
mod routing;
mod secrets;
mod session_messages;
mod shared_usage;
mod startup_check;
mod tasks;
mod tenants;
mod tokens;
mod use_lock;
mod wal;
mod webhooks;
mod write_buffer;
mod writer;

use std::{
    path::Path,
    sync::{Arc, atomic::AtomicU64},
    thread::JoinHandle,
};

use async_trait::async_trait;
use rialto_model::store::{Store, StoreError, StoreProblem};
use rusqlite::{Connection, Transaction, TransactionBehavior};
use tokio::sync::{mpsc, oneshot};

use self::{
    checkpointer::Checkpointer,
    flush_thread::FlushThread,
    health::{HealthWatch, StoreHealth},
    journal_record::JournalRecord,
    process_locks::ProcessLocks,
    readers::Readers,
    use_lock::UseLock,
    write_buffer::{
        BufferOutcome, FlushScope, WriteBuffer,
        other_writers::{self, FlushState},
    },
    writer::{Job, Reply, Write, Writer},
};
use crate::{
    config::{Config, Durability},
    error::{DatabaseError, DatabaseLocation, SqliteError},
    generation::GenerationCounter,
    open::CardParser,
};

pub use self::{backup::CopyProgress, check::check_folder};

/// A store in one SQLite file, or in memory.
///
/// A submitted write is carried out even when its caller stops waiting. Dropping the store finishes what is
/// waiting and closes the file; it blocks for that moment. [`SqliteStore::close`] does the same without blocking.
pub struct SqliteStore {
    place: DatabaseLocation,
    parse: CardParser,
    generation: Arc<GenerationCounter>,
    jobs: mpsc::Sender<Job>,
    /// None in memory: there the writer's connection is the only one.
    readers: Option<Readers>,
    /// None where everything is written to the database at once.
    write_buffer: Option<FlushThread>,
    process_locks: ProcessLocks,
    writer: Option<JoinHandle<()>>,
    health: Arc<StoreHealth>,
    _watch: Option<HealthWatch>,
    /// Held as long as the database is open.
    _in_use: UseLock,
}

// === impl SqliteStore ===

impl SqliteStore {
    /// Opens `rialto.db` in `folder`; makes what is not there yet.
    pub fn open(folder: &Path, config: &Config, parse: CardParser) -> Result<Self, StoreError> {
        connect::make_folder(folder)?;
        let place = DatabaseLocation::file(&folder.join(connect::FILE));
        let slot = connect::slot(folder)?;
        let mut in_use = UseLock::default();
        let connection = connect::writer(folder, &slot, &mut in_use, config, &place)?;
        let readers = Readers::new(folder.to_owned());
        let generation = Arc::new(GenerationCounter::Shared(slot));
        let write_buffer = match config.durability {
            Durability::Normal if config.write_buffer => {
                let newest = tasks::newest(&connection).map_err(|error| place.fault(error))?;
                Some(Arc::new(WriteBuffer::new(folder, Arc::clone(&generation), newest)))
            }
            Durability::Normal | Durability::Full => None,
        };
        let checkpointer = Checkpointer::new(Some(folder.to_owned()));
        let health = Arc::new(StoreHealth::new(Some(folder), place.clone()));
        let writer =
            Writer { connection, checkpointer, place, generation, write_buffer, unflushed: None, health };
        Self::start(writer, parse, Some(readers), in_use)
    }

    /// Opens a store that is gone with its process.
    pub fn in_memory(parse: CardParser) -> Result<Self, StoreError> {
        let place = DatabaseLocation::memory();
        let connection = connect::in_memory(&place)?;
        let number = meta::generation(&connection).map_err(|error| place.fault(error))?;
        let generation = Arc::new(GenerationCounter::Own(AtomicU64::new(number)));
        let checkpointer = Checkpointer::new(None);
        let health = Arc::new(StoreHealth::new(None, place.clone()));
        let writer = Writer {
            connection,
            checkpointer,
            place,
            generation,
            write_buffer: None,
            unflushed: None,
            health,
        };
        Self::start(writer, parse, None, UseLock::default())
    }

    /// Finishes what is waiting and closes the file. What comes later is refused.
    pub async fn close(&self) {
        if let Some(readers) = &self.readers {
            readers.close();
        }
        if let Some(write_buffer) = &self.write_buffer {
            write_buffer.close();
        }
        let (done, closed) = oneshot::channel();
        if self.jobs.send(Job::Close(done)).await.is_ok() {
            // An error says that it is closed already.
            let _ = closed.await;
        }
    }

    fn start(
        writer: Writer,
        parse: CardParser,
        readers: Option<Readers>,
        in_use: UseLock,
    ) -> Result<Self, StoreError> {
        let (place, generation) = (writer.place.clone(), Arc::clone(&writer.generation));
        let (write_buffer, health) = (writer.write_buffer.clone(), Arc::clone(&writer.health));
        let (jobs, writer) = writer.start()?;
        let write_buffer =
            write_buffer.map(|write_buffer| FlushThread::start(write_buffer, jobs.clone())).transpose()?;
        let process_locks = ProcessLocks::default();
        let watch = readers.as_ref().and_then(|_| HealthWatch::start(Arc::clone(&health), jobs.downgrade()));
        Ok(Self {
            place,
            parse,
            generation,
            jobs,
            readers,
            write_buffer,
            process_locks,
            writer: Some(writer),
            health,
            _watch: watch,
            _in_use: in_use,
        })
    }

    async fn write(&self, write: Write) -> Result<Option<u64>, StoreError> {
        self.ask(|reply| Job::Write(write, reply)).await
    }

    async fn ask(&self, job: impl FnOnce(Reply) -> Job) -> Result<Option<u64>, StoreError> {
        self.health.refuse_deleted()?;
        let (reply, answer) = oneshot::channel();
        self.jobs.send(job(reply)).await.map_err(|_| DatabaseError::closed())?;
        answer.await.map_err(|_| DatabaseError::closed())?
    }

    /// Writes to the journal: a record, if that will do.
    async fn write_journal(&self, record: JournalRecord) -> Result<(), StoreError> {
        self.health.refuse_deleted()?;
        let record = match &self.write_buffer {
            None => record,
            Some(write_buffer) => match write_buffer.record(record) {
                BufferOutcome::Done(outcome) => return outcome,
                BufferOutcome::NeedsDatabase(record) => {
                    if record.is_new() {
                        // The page is full. It goes first, or what was acknowledged before would stand behind this.
                        self.ask(|reply| Job::Flush(FlushScope::Finished, reply)).await?;
                    }
                    record
                }
            },
        };
        self.write(Write::Journal(record)).await.map(drop)
    }

    /// Has flushed what was buffered here.
    async fn flush_buffer(&self) -> Result<(), StoreError> {
        if self.write_buffer.as_ref().is_some_and(|write_buffer| write_buffer.has_unflushed()) {
            self.ask(|reply| Job::Flush(FlushScope::Everything, reply)).await?;
        }
        Ok(())
    }

    /// Reads from the journal everything that was acknowledged before, here or by another process.
    async fn read_journal<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, SqliteError> + Send + 'static,
    {
        if self.flush_buffer().await.is_err() {
            // The disk is full, or worse. What is there can be read all the same, and what was buffered with it.
            return self.read_unflushed(work).await;
        }
        if let Some(readers) = &self.readers {
            let folder = readers.folder().to_owned();
            let own = self
                .write_buffer
                .as_ref()
                .map_or_else(String::new, |write_buffer| write_buffer.name().to_owned());
            let look_and_work = move |connection: &Connection| match other_writers::wait_for_flush(
                connection,
                &folder,
                &own,
                other_writers::WAIT_TIMEOUT,
            )? {
                FlushState::Flushed | FlushState::Late => work(connection).map(Ok),
                FlushState::Orphan => Ok(Err(work)),
            };
            return match self.read(look_and_work).await? {
                Ok(done) => Ok(done),
                Err(work) => {
                    self.ask(Job::RecoverBuffers).await?;
                    self.read(work).await
                }
            };
        }
        self.read(work).await
    }

    /// Reads by the connection that writes, with everything in sight that was buffered and cannot be written to the database.
    async fn read_unflushed<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, SqliteError> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let job = Job::ReadUnflushed(Box::new(move |connection| {
            // The caller may have gone away.
            let _ = reply.send(work(connection));
        }));
        self.jobs.send(job).await.map_err(|_| DatabaseError::closed())?;
        let read = answer.await.map_err(|_| DatabaseError::closed())?;
        read.map_err(|failure| self.place.explain(failure))
    }

    /// Writes what surely moves the generation.
    async fn change(&self, write: Write) -> Result<u64, StoreError> {
        let made = self.write(write).await?;
        Ok(made.unwrap_or_else(|| self.generation.get()))
    }

    /// Does on the writer's connection what is more than one write, all of it or nothing.
    async fn transact<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, SqliteError> + Send + 'static,
    {
        self.health.refuse_deleted()?;
        let health = Arc::clone(&self.health);
        let done = self.run_on_writer(move |connection| {
            // Begun as a writer: other processes write too, and a reader cannot become one behind their backs.
            let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
            let done = work(&transaction)?;
            transaction.commit().inspect_err(|error| health.failed(error))?;
            Ok(done)
        });
        done.await?.map_err(|failure| self.place.explain(failure))
    }

    /// Runs a transaction and advances the generation if anything has changed.
    async fn transact_change<F>(&self, work: F) -> Result<Option<u64>, StoreError>
    where
        F: FnOnce(&Connection) -> Result<Option<u64>, SqliteError> + Send + 'static,
    {
        let made = self.transact(work).await?;
        if let Some(number) = made {
            self.generation.advance(number);
        }
        Ok(made)
    }

    async fn read<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, SqliteError> + Send + 'static,
    {
        let outcome = match &self.readers {
            Some(readers) => readers.run(work).await,
            None => self.run_on_writer(work).await?,
        };
        outcome.map_err(|failure| self.place.explain(failure))
    }

    async fn run_on_writer<T, F>(&self, work: F) -> Result<Result<T, SqliteError>, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, SqliteError> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let job = Job::Run(Box::new(move |connection| {
            // The caller may have gone away.
            let _ = reply.send(work(connection));
        }));
        self.jobs.send(job).await.map_err(|_| DatabaseError::closed())?;
        Ok(answer.await.map_err(|_| DatabaseError::closed())?)
    }
}

#[async_trait]
impl Store for SqliteStore {
    fn generation(&self) -> u64 {
        self.generation.get()
    }

    async fn problem(&self) -> Option<StoreProblem> {
        self.health.look();
        self.health.problem()
    }

    async fn touch(&self) -> Result<u64, StoreError> {
        self.change(Write::Touch).await
    }
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        if let Some(readers) = &self.readers {
            readers.close();
        }
        // It has its records flushed first.
        drop(self.write_buffer.take());
        let (done, _) = oneshot::channel();
        let is_told = self.jobs.try_send(Job::Close(done)).is_ok() || self.jobs.is_closed();
        if let Some(writer) = self.writer.take().filter(|_| is_told) {
            // A thread that broke has said so.
            let _ = writer.join();
        }
    }
}
