//! The store in one SQLite file.
//!
//! One thread writes and commits in groups ([`writer`]); a few connections read beside it ([`readers`]). What happens
//! on the road of a call is noted in a file first and posted a moment later ([`daybook`]). Other processes may use the
//! same database at the same time: a server, several stdio servers, the command line.

mod agents;
mod approvals;
mod audit;
mod backup;
mod check;
mod checksum;
mod column;
mod connect;
mod conversations;
mod costs;
mod daybook;
mod elided_args;
mod flows;
mod health;
mod leases;
mod leftovers;
mod messages;
mod meta;
mod nodes;
mod note;
mod policies;
mod poster;
mod posting;
mod presence;
mod pushes;
mod readers;
mod relay;
mod retention;
mod routing;
mod secrets;
mod session_messages;
mod shared_usage;
mod tasks;
mod tenants;
mod tidier;
mod tokens;
mod use_lock;
mod wal;
mod webhooks;
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
    daybook::{
        Daybook, Noted, Turn,
        neighbours::{self, Found},
    },
    health::{HealthWatch, StoreHealth},
    note::Note,
    poster::Poster,
    presence::Presence,
    readers::Readers,
    tidier::Tidier,
    use_lock::UseLock,
    writer::{Job, Reply, Write, Writer},
};
use crate::{
    config::{Config, Durability},
    fault::{Fault, Place, Snag},
    generation::Generation,
    open::CardParser,
};

pub use self::{backup::CopyProgress, check::check_folder};

/// A store in one SQLite file, or in memory.
///
/// A write that was handed over is carried out even when its asker stops waiting. Dropping the store finishes what is
/// waiting and closes the file; it blocks for that moment. [`SqliteStore::close`] does the same without blocking.
pub struct SqliteStore {
    place: Place,
    parse: CardParser,
    generation: Arc<Generation>,
    jobs: mpsc::Sender<Job>,
    /// None in memory: there the writer's connection is the only one.
    readers: Option<Readers>,
    /// None where everything is written to the database at once.
    daybook: Option<Poster>,
    presence: Presence,
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
        let place = Place::file(&folder.join(connect::FILE));
        let slot = connect::slot(folder)?;
        let mut in_use = UseLock::default();
        let connection = connect::writer(folder, &slot, &mut in_use, config, &place)?;
        let readers = Readers::new(folder.to_owned());
        let generation = Arc::new(Generation::Shared(slot));
        let daybook = match config.durability {
            Durability::Normal if config.write_buffer => {
                let newest = tasks::newest(&connection).map_err(|error| place.fault(error))?;
                Some(Arc::new(Daybook::new(folder, Arc::clone(&generation), newest)))
            }
            Durability::Normal | Durability::Full => None,
        };
        let tidier = Tidier::new(Some(folder.to_owned()));
        let health = Arc::new(StoreHealth::new(Some(folder), place.clone()));
        let writer = Writer { connection, tidier, place, generation, daybook, stuck: None, health };
        Self::start(writer, parse, Some(readers), in_use)
    }

    /// Opens a store that is gone with its process.
    pub fn in_memory(parse: CardParser) -> Result<Self, StoreError> {
        let place = Place::memory();
        let connection = connect::in_memory(&place)?;
        let number = meta::generation(&connection).map_err(|error| place.fault(error))?;
        let generation = Arc::new(Generation::Own(AtomicU64::new(number)));
        let tidier = Tidier::new(None);
        let health = Arc::new(StoreHealth::new(None, place.clone()));
        let writer = Writer { connection, tidier, place, generation, daybook: None, stuck: None, health };
        Self::start(writer, parse, None, UseLock::default())
    }

    /// Finishes what is waiting and closes the file. What comes later is refused.
    pub async fn close(&self) {
        if let Some(readers) = &self.readers {
            readers.close();
        }
        if let Some(daybook) = &self.daybook {
            daybook.close();
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
        let (daybook, health) = (writer.daybook.clone(), Arc::clone(&writer.health));
        let (jobs, writer) = writer.start()?;
        let daybook = daybook.map(|daybook| Poster::start(daybook, jobs.clone())).transpose()?;
        let presence = Presence::default();
        let watch = readers.as_ref().and_then(|_| HealthWatch::start(Arc::clone(&health), jobs.downgrade()));
        Ok(Self {
            place,
            parse,
            generation,
            jobs,
            readers,
            daybook,
            presence,
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
        self.jobs.send(job(reply)).await.map_err(|_| Fault::closed())?;
        answer.await.map_err(|_| Fault::closed())?
    }

    /// Writes to the journal: a note, if that will do.
    async fn write_journal(&self, note: Note) -> Result<(), StoreError> {
        self.health.refuse_deleted()?;
        let note = match &self.daybook {
            None => note,
            Some(daybook) => match daybook.note(note) {
                Noted::Done(outcome) => return outcome,
                Noted::NotHere(note) => {
                    if note.is_new() {
                        // The page is full. It goes first, or what was acknowledged before would stand behind this.
                        self.ask(|reply| Job::Post(Turn::Finished, reply)).await?;
                    }
                    note
                }
            },
        };
        self.write(Write::Journal(note)).await.map(drop)
    }

    /// Has posted what was noted here.
    async fn settle(&self) -> Result<(), StoreError> {
        if self.daybook.as_ref().is_some_and(|daybook| daybook.is_ahead()) {
            self.ask(|reply| Job::Post(Turn::Everything, reply)).await?;
        }
        Ok(())
    }

    /// Reads from the journal everything that was acknowledged before, here or by another process.
    async fn read_journal<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Snag> + Send + 'static,
    {
        if self.settle().await.is_err() {
            // The disk is full, or worse. What is there can be read all the same, and what was noted with it.
            return self.peek(work).await;
        }
        if let Some(readers) = &self.readers {
            let folder = readers.folder().to_owned();
            let own = self.daybook.as_ref().map_or_else(String::new, |daybook| daybook.name().to_owned());
            let look_and_work = move |connection: &Connection| match neighbours::wait(
                connection,
                &folder,
                &own,
                neighbours::PATIENCE,
            )? {
                Found::Posted | Found::Late => work(connection).map(Ok),
                Found::Orphan => Ok(Err(work)),
            };
            return match self.read(look_and_work).await? {
                Ok(done) => Ok(done),
                Err(work) => {
                    self.ask(Job::Adopt).await?;
                    self.read(work).await
                }
            };
        }
        self.read(work).await
    }

    /// Reads by the connection that writes, with everything in sight that was noted and cannot be written to the database.
    async fn peek<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Snag> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let job = Job::Peek(Box::new(move |connection| {
            // Whoever asked may have gone away.
            let _ = reply.send(work(connection));
        }));
        self.jobs.send(job).await.map_err(|_| Fault::closed())?;
        let read = answer.await.map_err(|_| Fault::closed())?;
        read.map_err(|snag| self.place.explain(snag))
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
        F: FnOnce(&Connection) -> Result<T, Snag> + Send + 'static,
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
        done.await?.map_err(|snag| self.place.explain(snag))
    }

    /// The same for a change that others must see, if anything has changed.
    async fn transact_change<F>(&self, work: F) -> Result<Option<u64>, StoreError>
    where
        F: FnOnce(&Connection) -> Result<Option<u64>, Snag> + Send + 'static,
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
        F: FnOnce(&Connection) -> Result<T, Snag> + Send + 'static,
    {
        let outcome = match &self.readers {
            Some(readers) => readers.run(work).await,
            None => self.run_on_writer(work).await?,
        };
        outcome.map_err(|snag| self.place.explain(snag))
    }

    async fn run_on_writer<T, F>(&self, work: F) -> Result<Result<T, Snag>, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Snag> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let job = Job::Run(Box::new(move |connection| {
            // Whoever asked may have gone away.
            let _ = reply.send(work(connection));
        }));
        self.jobs.send(job).await.map_err(|_| Fault::closed())?;
        Ok(answer.await.map_err(|_| Fault::closed())?)
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
        // It has its notes posted first.
        drop(self.daybook.take());
        let (done, _) = oneshot::channel();
        let is_told = self.jobs.try_send(Job::Close(done)).is_ok() || self.jobs.is_closed();
        if let Some(writer) = self.writer.take().filter(|_| is_told) {
            // A thread that broke has said so.
            let _ = writer.join();
        }
    }
}
