//! The store in one SQLite file.
//!
//! One thread writes and commits in groups ([`writer`]); a few connections read beside it ([`readers`]). What happens
//! on the road of a call is noted in a file first and posted a moment later ([`daybook`]). Other processes may use the
//! same database at the same time: a server, several stdio servers, the command line.

mod agents;
mod approvals;
mod audit;
mod column;
mod connect;
mod costs;
mod daybook;
mod flows;
mod meta;
mod note;
mod policies;
mod poster;
mod posting;
mod presence;
mod pushes;
mod readers;
mod routing;
mod secrets;
mod talks;
mod tasks;
mod tidier;
mod tokens;
mod webhooks;
mod writer;

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{Arc, atomic::AtomicU64},
    thread::JoinHandle,
};

use async_trait::async_trait;
use jiff::Timestamp;
use rialto_model::{
    agent::{Agent, Keep, OldCard, Probe},
    approval::{Approval, ApprovalFilter, Decided},
    call::CallerId,
    cost::{CostQuery, CostSum},
    credential::Secret,
    event::{Event, Recorded},
    ids::{AgentId, ApprovalId, OrgId, Runner, Scope, TaskId},
    policy::{PolicyChange, PolicySet, PolicyVersion},
    push::Push,
    routing::{
        Dispatch, DispatchFilter, PlayEnd, Reservation, Standing as AgentStanding, StandingQuery, Unsettled,
    },
    store::{
        AuditFilter, Audited, Entry, Sealed, Store, StoreError, Sweep, Swept, TalkFilter, Talks, TaskFilter,
        Token, Verdict,
    },
    task::TaskHead,
    verb::VerbEvent,
    webhook::{Lease, Leased, Standing, Webhook},
};
use rusqlite::{Connection, Transaction, TransactionBehavior};
use tokio::sync::{mpsc, oneshot};

use self::{
    agents::AgentWrite,
    daybook::{
        Daybook, Noted, Turn,
        neighbours::{self, Found},
    },
    note::Note,
    poster::Poster,
    presence::Presence,
    readers::Readers,
    secrets::SecretWrite,
    tidier::Tidier,
    tokens::TokenWrite,
    writer::{Job, Reply, Write, Writer},
};
use crate::{
    config::{Config, Durability},
    fault::{Fault, Place, Snag},
    generation::Generation,
    open::CardParser,
};

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
}

// === impl SqliteStore ===

impl SqliteStore {
    /// Opens `rialto.db` in `folder`; makes what is not there yet.
    pub fn open(folder: &Path, config: &Config, parse: CardParser) -> Result<Self, StoreError> {
        connect::make_folder(folder)?;
        let place = Place::file(&folder.join(connect::FILE));
        let slot = connect::slot(folder)?;
        let connection = connect::writer(folder, &slot, config, &place)?;
        let readers = Readers::new(folder.to_owned());
        let generation = Arc::new(Generation::Shared(slot));
        let daybook = match config.durability {
            Durability::Normal => {
                let newest = tasks::newest(&connection).map_err(|error| place.fault(error))?;
                Some(Arc::new(Daybook::new(folder, Arc::clone(&generation), newest)))
            }
            Durability::Full => None,
        };
        let tidier = Tidier::new(Some(folder.to_owned()));
        let writer = Writer { connection, tidier, place, generation, daybook, stuck: None };
        Self::start(writer, parse, Some(readers))
    }

    /// Opens a store that is gone with its process.
    pub fn in_memory(parse: CardParser) -> Result<Self, StoreError> {
        let place = Place::memory();
        let connection = connect::in_memory(&place)?;
        let number = meta::generation(&connection).map_err(|error| place.fault(error))?;
        let generation = Arc::new(Generation::Own(AtomicU64::new(number)));
        let tidier = Tidier::new(None);
        Self::start(Writer { connection, tidier, place, generation, daybook: None, stuck: None }, parse, None)
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

    fn start(writer: Writer, parse: CardParser, readers: Option<Readers>) -> Result<Self, StoreError> {
        let (place, generation) = (writer.place.clone(), Arc::clone(&writer.generation));
        let daybook = writer.daybook.clone();
        let (jobs, writer) = writer.start()?;
        let daybook = daybook.map(|daybook| Poster::start(daybook, jobs.clone())).transpose()?;
        let presence = Presence::default();
        Ok(Self { place, parse, generation, jobs, readers, daybook, presence, writer: Some(writer) })
    }

    async fn write(&self, write: Write) -> Result<Option<u64>, StoreError> {
        self.ask(|reply| Job::Write(write, reply)).await
    }

    async fn ask(&self, job: impl FnOnce(Reply) -> Job) -> Result<Option<u64>, StoreError> {
        let (reply, answer) = oneshot::channel();
        self.jobs.send(job(reply)).await.map_err(|_| Fault::closed())?;
        answer.await.map_err(|_| Fault::closed())?
    }

    /// Writes to the journal: a note, if that will do.
    async fn write_journal(&self, note: Note) -> Result<(), StoreError> {
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
        self.settle().await?;
        if let Some(readers) = &self.readers {
            let folder = readers.folder().to_owned();
            let own = self.daybook.as_ref().map_or_else(String::new, |daybook| daybook.name().to_owned());
            let look_and_work =
                move |connection: &Connection| match neighbours::wait(connection, &folder, &own)? {
                    Found::Posted => work(connection).map(Ok),
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
        let done = self.run_on_writer(move |connection| {
            // Begun as a writer: other processes write too, and a reader cannot become one behind their backs.
            let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
            let done = work(&transaction)?;
            transaction.commit()?;
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
        self.write_journal(Note::open(head, &audit)?).await
    }

    async fn begin_task(
        &self,
        head: &TaskHead,
        first: &[Event],
        audit: Vec<VerbEvent>,
    ) -> Result<(), StoreError> {
        self.write_journal(Note::begin(head, first, &audit)?).await
    }

    async fn append(&self, entry: Entry) -> Result<(), StoreError> {
        self.write_journal(Note::append(&entry)?).await
    }

    async fn task(&self, scope: &Scope, id: &str) -> Result<Option<TaskHead>, StoreError> {
        let (scope, id) = (scope.clone(), id.to_owned());
        self.read_journal(move |connection| tasks::find(connection, &scope, &id)).await
    }

    async fn events(&self, task: &TaskId, after: u64) -> Result<Vec<Recorded>, StoreError> {
        let task = task.clone();
        self.read_journal(move |connection| tasks::events(connection, &task, after)).await
    }

    async fn tasks(&self, scope: &Scope, filter: &TaskFilter) -> Result<Vec<TaskHead>, StoreError> {
        let (scope, filter) = (scope.clone(), filter.clone());
        self.read_journal(move |connection| tasks::list(connection, &scope, &filter)).await
    }

    async fn talks(&self, scope: &Scope, filter: &TalkFilter) -> Result<Talks, StoreError> {
        let (scope, filter) = (scope.clone(), filter.clone());
        self.read_journal(move |connection| talks::list(connection, &scope, &filter)).await
    }

    async fn task_of_message(
        &self,
        scope: &Scope,
        caller: &CallerId,
        message: &str,
    ) -> Result<Option<TaskHead>, StoreError> {
        let (scope, caller, message) = (scope.clone(), caller.clone(), message.to_owned());
        self.read(move |connection| talks::of_message(connection, &scope, &caller, &message)).await
    }

    async fn messages(&self, runner: Runner, limit: usize) -> Result<Option<Vec<u64>>, StoreError> {
        self.read_journal(move |connection| talks::messages(connection, runner, limit)).await
    }

    async fn beat(&self, runner: Runner, until: Timestamp) -> Result<(), StoreError> {
        if let Some(readers) = &self.readers {
            self.presence.show(readers.folder(), runner);
        }
        self.transact(move |transaction| talks::beat(transaction, runner, until)).await
    }

    async fn retire(&self, runner: Runner) -> Result<(), StoreError> {
        self.settle().await?;
        self.transact(move |transaction| talks::retire(transaction, runner)).await?;
        if let Some(readers) = &self.readers {
            self.presence.hide(readers.folder(), runner);
        }
        Ok(())
    }

    async fn take_over(
        &self,
        runner: Runner,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<TaskHead>, StoreError> {
        // Those that died are found before their last notes are: whoever is found has none to make any more.
        let folder = self.readers.as_ref().map(|readers| readers.folder().to_owned());
        let gone = folder.as_deref().map(presence::gone).unwrap_or_default();
        self.ask(Job::Adopt).await?;
        let dead = gone.clone();
        let taken = self.transact(move |transaction| {
            dead.iter().try_for_each(|dead| talks::retire(transaction, *dead))?;
            talks::take_over(transaction, runner, now, limit)
        });
        let taken = taken.await?;
        for runner in gone {
            folder.iter().for_each(|folder| presence::forget(folder, runner));
        }
        Ok(taken)
    }

    async fn load(&self, org: &OrgId) -> Result<BTreeMap<AgentId, u64>, StoreError> {
        let org = org.clone();
        self.read_journal(move |connection| tasks::load(connection, &org)).await
    }

    async fn standings(&self, query: &StandingQuery) -> Result<BTreeMap<AgentId, AgentStanding>, StoreError> {
        let query = query.clone();
        self.read(move |connection| routing::standings(connection, &query)).await
    }

    async fn reserve(&self, reservation: &Reservation) -> Result<bool, StoreError> {
        let reservation = reservation.clone();
        self.transact(move |transaction| routing::reserve(transaction, &reservation)).await
    }

    async fn end_play(&self, task: &TaskId, end: &PlayEnd) -> Result<bool, StoreError> {
        let (task, end) = (task.clone(), *end);
        self.transact(move |transaction| routing::end(transaction, &task, &end)).await
    }

    async fn unsettled_plays(&self, limit: usize) -> Result<Vec<Unsettled>, StoreError> {
        self.read(move |connection| routing::unsettled(connection, limit)).await
    }

    async fn dispatches(&self, scope: &Scope, filter: &DispatchFilter) -> Result<Vec<Dispatch>, StoreError> {
        let (scope, filter) = (scope.clone(), filter.clone());
        self.read(move |connection| routing::list(connection, &scope, &filter)).await
    }

    async fn audit(&self, events: Vec<VerbEvent>) -> Result<(), StoreError> {
        self.write_journal(Note::audit(&events)?).await
    }

    async fn audit_trail(&self, scope: &Scope, filter: &AuditFilter) -> Result<Vec<Audited>, StoreError> {
        let (org, filter) = (scope.org.clone(), filter.clone());
        self.read_journal(move |connection| audit::trail(connection, &org, &filter)).await
    }

    async fn audit_after(&self, record: u64, limit: usize) -> Result<Vec<Audited>, StoreError> {
        self.read(move |connection| audit::after(connection, record, limit)).await
    }

    async fn audit_end(&self) -> Result<u64, StoreError> {
        self.read(|connection| Ok(audit::end(connection)?)).await
    }

    async fn verify_audit(&self) -> Result<Verdict, StoreError> {
        self.read_journal(audit::verify).await
    }

    async fn costs(&self, scope: &Scope, query: &CostQuery) -> Result<Vec<CostSum>, StoreError> {
        let (org, query) = (scope.org.clone(), query.clone());
        self.read_journal(move |connection| costs::sums(connection, &org, &query)).await
    }

    async fn sweep(&self, sweep: Sweep) -> Result<Swept, StoreError> {
        self.settle().await?;
        // A process that died left its last notes behind; whoever only reads along would never have them posted.
        self.ask(Job::Adopt).await?;
        self.transact(move |transaction| {
            let tasks = sweep.tasks_before.map_or(Ok(0), |moment| tasks::sweep(transaction, moment))?;
            if tasks > 0 {
                pushes::sweep(transaction)?;
            }
            sweep.tasks_before.map_or(Ok(()), |moment| routing::sweep(transaction, moment))?;
            sweep.tasks_before.map_or(Ok(()), |moment| approvals::sweep(transaction, moment))?;
            sweep.tasks_before.map_or(Ok(()), |moment| flows::sweep(transaction, moment))?;
            let audit = sweep.audit_before.map_or(Ok(0), |moment| audit::sweep(transaction, moment))?;
            Ok(Swept { tasks, audit })
        })
        .await
    }

    async fn tokens(&self) -> Result<Vec<Token>, StoreError> {
        self.read(tokens::all).await
    }

    async fn put_token(&self, token: &Token) -> Result<(), StoreError> {
        self.write(Write::Token(TokenWrite::Add(Box::new(token.clone())))).await.map(drop)
    }

    async fn revoke_token(&self, id: &str, at: Timestamp) -> Result<Option<u64>, StoreError> {
        self.write(Write::Token(TokenWrite::Revoke { id: id.to_owned(), at })).await
    }

    async fn secrets(&self) -> Result<Vec<Sealed>, StoreError> {
        self.read(secrets::all).await
    }

    async fn put_secrets(&self, secrets: Vec<Sealed>) -> Result<u64, StoreError> {
        self.change(Write::Secret(SecretWrite::Put(secrets))).await
    }

    async fn remove_secret(&self, name: &str) -> Result<Option<u64>, StoreError> {
        self.write(Write::Secret(SecretWrite::Remove(name.to_owned()))).await
    }

    async fn seed(&self, name: &str, fresh: &Secret) -> Result<Secret, StoreError> {
        let (name, fresh) = (format!("seed {name}"), fresh.clone());
        self.transact(move |connection| Ok(Secret::from(meta::text_or(connection, &name, fresh.expose())?)))
            .await
    }

    async fn policies(&self) -> Result<PolicySet, StoreError> {
        self.read(policies::all).await
    }

    async fn change_policy(&self, change: &PolicyChange, expected: u64) -> Result<u64, StoreError> {
        let change = change.clone();
        let made = self
            .transact_change(move |transaction| policies::change(transaction, &change, expected).map(Some));
        Ok(made.await?.unwrap_or_else(|| self.generation.get()))
    }

    async fn policy_history(&self, name: &str) -> Result<Vec<PolicyVersion>, StoreError> {
        let name = name.to_owned();
        self.read(move |connection| policies::history(connection, &name)).await
    }

    async fn webhooks(&self) -> Result<Vec<Webhook>, StoreError> {
        self.read(webhooks::all).await
    }

    async fn put_webhook(&self, webhook: &Webhook) -> Result<u64, StoreError> {
        // What was acknowledged before is not news to it.
        self.settle().await?;
        let webhook = webhook.clone();
        let made = self.transact_change(move |transaction| webhooks::add(transaction, &webhook).map(Some));
        Ok(made.await?.unwrap_or_else(|| self.generation.get()))
    }

    async fn remove_webhook(&self, id: &str) -> Result<Option<u64>, StoreError> {
        let id = id.to_owned();
        self.transact_change(move |transaction| webhooks::remove(transaction, &id)).await
    }

    async fn retry_webhook(&self, id: &str) -> Result<Option<u64>, StoreError> {
        let id = id.to_owned();
        self.transact_change(move |transaction| webhooks::retry(transaction, &id)).await
    }

    async fn lease_webhook(&self, id: &str, lease: &Lease) -> Result<Leased, StoreError> {
        let (id, lease) = (id.to_owned(), lease.clone());
        self.transact(move |transaction| webhooks::lease(transaction, &id, &lease)).await
    }

    async fn note_webhook(&self, id: &str, holder: &str, standing: &Standing) -> Result<bool, StoreError> {
        let (id, holder, standing) = (id.to_owned(), holder.to_owned(), standing.clone());
        self.transact(move |transaction| webhooks::note(transaction, &id, &holder, &standing)).await
    }

    async fn put_push(&self, push: &Push) -> Result<(), StoreError> {
        // The task must be there before somebody is to be told of it.
        self.settle().await?;
        let push = push.clone();
        self.transact(move |transaction| pushes::put(transaction, &push)).await
    }

    async fn pushes(&self, task: &TaskId) -> Result<Vec<Push>, StoreError> {
        let task = task.clone();
        self.read(move |connection| pushes::of_task(connection, &task)).await
    }

    async fn remove_push(&self, task: &TaskId, id: &str) -> Result<bool, StoreError> {
        let (task, id) = (task.clone(), id.to_owned());
        self.transact(move |transaction| pushes::remove(transaction, &task, &id)).await
    }

    async fn due_pushes(&self, lease: &Lease, limit: usize) -> Result<Vec<Push>, StoreError> {
        self.settle().await?;
        let lease = lease.clone();
        self.transact(move |transaction| pushes::due(transaction, &lease, limit)).await
    }

    async fn note_push(&self, push: &Push, holder: &str) -> Result<bool, StoreError> {
        let (push, holder) = (push.clone(), holder.to_owned());
        self.transact(move |transaction| pushes::note(transaction, &push, &holder)).await
    }

    async fn dead_pushes(&self, scope: &Scope, limit: usize) -> Result<Vec<Push>, StoreError> {
        let scope = scope.clone();
        self.read(move |connection| pushes::dead(connection, &scope, limit)).await
    }

    async fn put_approval(&self, approval: &Approval) -> Result<u64, StoreError> {
        let approval = approval.clone();
        let made = self.transact_change(move |transaction| approvals::add(transaction, &approval).map(Some));
        Ok(made.await?.unwrap_or_else(|| self.generation.get()))
    }

    async fn approvals(&self, filter: &ApprovalFilter) -> Result<Vec<Approval>, StoreError> {
        let filter = filter.clone();
        self.read(move |connection| approvals::list(connection, &filter)).await
    }

    async fn decide_approval(&self, id: &ApprovalId, decided: &Decided) -> Result<bool, StoreError> {
        let (id, decided) = (id.clone(), decided.clone());
        let made = self.transact_change(move |transaction| approvals::decide(transaction, &id, &decided));
        Ok(made.await?.is_some())
    }

    async fn settle_approval(&self, id: &ApprovalId) -> Result<bool, StoreError> {
        let id = id.clone();
        self.transact(move |transaction| approvals::settle(transaction, &id)).await
    }
}
