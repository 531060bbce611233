//! The store in one SQLite file.
//!
//! One thread writes and commits in groups ([`writer`]); a few connections read beside it ([`readers`]). Other
//! processes may use the same file at the same time: a server, several stdio servers, the command line.

mod agents;
mod audit;
mod column;
mod connect;
mod meta;
mod readers;
mod tasks;
mod tidier;
mod tokens;
mod writer;

use std::{
    path::Path,
    sync::{Arc, atomic::AtomicU64},
};

use async_trait::async_trait;
use rialto_model::{
    agent::{Agent, Keep, OldCard, Probe},
    card::Card,
    event::Recorded,
    ids::{AgentId, Scope, TaskId},
    store::{Entry, Store, StoreError, TaskFilter, Token},
    task::TaskHead,
    verb::VerbEvent,
};
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use self::{
    agents::AgentWrite,
    audit::AuditRow,
    readers::Readers,
    tasks::TaskWrite,
    tidier::Tidier,
    writer::{Job, Write},
};
use crate::{
    config::Config,
    fault::{Fault, Place, Snag},
    generation::Generation,
};

/// Reads a card's text. The error says what is wrong with it.
pub type CardParser = fn(&str) -> Result<Card, String>;

/// A store in one SQLite file, or in memory.
///
/// A write that was handed over is carried out even when its asker stops waiting. Dropping the store lets the writer
/// finish in its own time; [`SqliteStore::close`] waits for it.
pub struct SqliteStore {
    place: Place,
    parse: CardParser,
    generation: Arc<Generation>,
    jobs: mpsc::Sender<Job>,
    /// None in memory: there the writer's connection is the only one.
    readers: Option<Readers>,
}

// === impl SqliteStore ===

impl SqliteStore {
    /// Opens `rialto.db` in `folder`; makes what is not there yet.
    pub fn open(folder: &Path, config: Config, parse: CardParser) -> Result<Self, StoreError> {
        connect::make_folder(folder)?;
        let place = Place::file(&folder.join(connect::FILE));
        let slot = connect::slot(folder)?;
        let connection = connect::writer(folder, &slot, config, &place)?;
        let readers = Readers::new(folder.to_owned());
        Self::start(connection, place, Generation::Shared(slot), parse, Some(readers))
    }

    /// Opens a store that is gone with its process.
    pub fn in_memory(parse: CardParser) -> Result<Self, StoreError> {
        let place = Place::memory();
        let connection = connect::in_memory(&place)?;
        let number = meta::generation(&connection).map_err(|error| place.fault(error))?;
        Self::start(connection, place, Generation::Own(AtomicU64::new(number)), parse, None)
    }

    /// Finishes what is waiting and closes the file. What comes later is refused.
    pub async fn close(&self) {
        if let Some(readers) = &self.readers {
            readers.close();
        }
        let (done, closed) = oneshot::channel();
        if self.jobs.send(Job::Close(done)).await.is_ok() {
            // An error says that it is closed already.
            let _ = closed.await;
        }
    }

    fn start(
        connection: Connection,
        place: Place,
        generation: Generation,
        parse: CardParser,
        readers: Option<Readers>,
    ) -> Result<Self, StoreError> {
        let generation = Arc::new(generation);
        let tidier = Tidier::new(readers.as_ref().map(|readers| readers.folder().to_owned()));
        let jobs = writer::start(connection, place.clone(), Arc::clone(&generation), tidier)?;
        Ok(Self { place, parse, generation, jobs, readers })
    }

    async fn write(&self, write: Write) -> Result<Option<u64>, StoreError> {
        let (reply, answer) = oneshot::channel();
        self.jobs.send(Job::Write(write, reply)).await.map_err(|_| Fault::closed())?;
        answer.await.map_err(|_| Fault::closed())?
    }

    /// Writes what surely moves the generation.
    async fn change(&self, write: Write) -> Result<u64, StoreError> {
        let made = self.write(write).await?;
        Ok(made.unwrap_or_else(|| self.generation.get()))
    }

    async fn read<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Snag> + Send + 'static,
    {
        let outcome = match &self.readers {
            Some(readers) => readers.run(work).await,
            None => self.read_on_writer(work).await?,
        };
        outcome.map_err(|snag| self.place.explain(snag))
    }

    async fn read_on_writer<T, F>(&self, work: F) -> Result<Result<T, Snag>, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Snag> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let job = Job::Read(Box::new(move |connection| {
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

    async fn touch(&self) -> Result<u64, StoreError> {
        self.change(Write::Touch).await
    }

    async fn agents(&self) -> Result<Vec<Agent>, StoreError> {
        let parse = self.parse;
        self.read(move |connection| agents::all(connection, parse)).await
    }

    async fn put_agent(&self, agent: &Agent, expected: Option<u64>) -> Result<u64, StoreError> {
        if agent.keep == Keep::Session {
            tracing::debug!(agent.id = %agent.id, "agent {} belongs to this process and is not stored", agent.id);
            return Ok(self.generation());
        }
        let put = AgentWrite::Put { agent: Box::new(agent.clone()), expected };
        self.change(Write::Agent(put)).await
    }

    async fn remove_agent(&self, id: &AgentId) -> Result<Option<u64>, StoreError> {
        self.write(Write::Agent(AgentWrite::Remove(id.clone()))).await
    }

    async fn card_history(&self, id: &AgentId) -> Result<Vec<OldCard>, StoreError> {
        let id = id.clone();
        self.read(move |connection| agents::history(connection, &id)).await
    }

    async fn record_probe(&self, probe: &Probe) -> Result<(), StoreError> {
        self.write(Write::Agent(AgentWrite::Probe(probe.clone()))).await.map(drop)
    }

    async fn probes(&self, id: &AgentId, limit: usize) -> Result<Vec<Probe>, StoreError> {
        let id = id.clone();
        self.read(move |connection| agents::probes(connection, &id, limit)).await
    }

    async fn open_task(&self, head: &TaskHead, audit: Vec<VerbEvent>) -> Result<(), StoreError> {
        let open = TaskWrite::open(head.clone(), &audit)?;
        self.write(Write::Task(Box::new(open))).await.map(drop)
    }

    async fn append(&self, entry: Entry) -> Result<(), StoreError> {
        let append = TaskWrite::append(entry)?;
        self.write(Write::Task(Box::new(append))).await.map(drop)
    }

    async fn task(&self, scope: &Scope, id: &str) -> Result<Option<TaskHead>, StoreError> {
        let (scope, id) = (scope.clone(), id.to_owned());
        self.read(move |connection| tasks::find(connection, &scope, &id)).await
    }

    async fn events(&self, task: &TaskId, after: u64) -> Result<Vec<Recorded>, StoreError> {
        let task = task.clone();
        self.read(move |connection| tasks::events(connection, &task, after)).await
    }

    async fn tasks(&self, scope: &Scope, filter: &TaskFilter) -> Result<Vec<TaskHead>, StoreError> {
        let (scope, filter) = (scope.clone(), filter.clone());
        self.read(move |connection| tasks::list(connection, &scope, &filter)).await
    }

    async fn audit(&self, events: Vec<VerbEvent>) -> Result<(), StoreError> {
        let rows = AuditRow::all(&events)?;
        self.write(Write::Audit(rows)).await.map(drop)
    }

    async fn audit_trail(&self, scope: &Scope, limit: usize) -> Result<Vec<VerbEvent>, StoreError> {
        let org = scope.org.clone();
        self.read(move |connection| audit::trail(connection, &org, limit)).await
    }

    async fn tokens(&self) -> Result<Vec<Token>, StoreError> {
        self.read(tokens::all).await
    }

    async fn put_token(&self, token: &Token) -> Result<(), StoreError> {
        self.write(Write::Token(Box::new(token.clone()))).await.map(drop)
    }
}
