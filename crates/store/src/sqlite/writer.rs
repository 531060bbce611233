//! The one thread that writes.
//!
//! Whatever is waiting is committed together: a commit costs the same for one job as for two hundred. Nobody is
//! answered before the commit, and no job spoils another: a job that is refused has written nothing, and when one
//! breaks, the batch is rolled back and each job is tried alone.

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
    daybook::{Daybook, Posting, Turn, orphans},
    health::StoreHealth,
    meta,
    note::Note,
    posting,
    secrets::{self, SecretWrite},
    tasks,
    tidier::Tidier,
    tokens::{self, TokenWrite},
};
use crate::{
    fault::{Fault, Place, Snag},
    generation::Generation,
};

/// At most so many jobs go into one commit.
const BATCH: usize = 256;

/// So many jobs may wait; then their askers wait.
const QUEUE: usize = 1024;

/// So many jobs in one commit are a crowd: the next commit waits a moment for the others, because a commit for each
/// few of them would cost all of them more. Fewer are not made to wait.
const CROWD: usize = 4;

/// That moment. Each commit writes the last page of every table and index anew, whoever shares it shares that cost.
const MOMENT: Duration = Duration::from_micros(500);

/// Something to be written. Its answer is the generation it made, if it made one.
pub(super) enum Write {
    /// To the journal or the audit trail.
    Journal(Note),
    /// To the registry.
    Agent(AgentWrite),
    /// To the tokens.
    Token(TokenWrite),
    /// To the secrets.
    Secret(SecretWrite),
    /// Nothing but a new generation.
    Touch,
}

/// What the thread can be asked to do.
pub(super) enum Job {
    /// Write, and answer after the commit.
    Write(Write, Reply),
    /// Post what the daybook holds, and say when it is done.
    Post(Turn, Reply),
    /// Post what dead processes have noted.
    Adopt(Reply),
    /// Read with everything in sight that was noted, though it cannot be posted now.
    Peek(Box<dyn FnOnce(&Connection) + Send>),
    /// Something else that wants this connection to itself.
    Run(Box<dyn FnOnce(&Connection) + Send>),
    /// Finish what is waiting, close the file, and say so.
    Close(oneshot::Sender<()>),
}

type Outcome = Result<Option<u64>, StoreError>;

/// Where the outcome is wanted.
pub(super) type Reply = oneshot::Sender<Outcome>;

/// What the thread works with.
pub(super) struct Writer {
    pub(super) connection: Connection,
    pub(super) tidier: Tidier,
    pub(super) place: Place,
    pub(super) generation: Arc<Generation>,
    /// None where everything is written to the database at once.
    pub(super) daybook: Option<Arc<Daybook>>,
    /// A page that could not be posted. Nothing else is written before it.
    pub(super) stuck: Option<Posting>,
    pub(super) health: Arc<StoreHealth>,
}

/// What spoiled a whole batch.
enum Spoiled {
    /// One of the jobs broke.
    Job(rusqlite::Error),
    /// The transaction could not begin or end.
    Commit(rusqlite::Error),
    /// A page of the daybook that goes first could not be posted.
    Page(Fault),
}

// === impl Writer ===

impl Writer {
    /// Starts the thread. It ends when it is told to close, or when the last sender is gone.
    pub(super) fn start(self) -> Result<(mpsc::Sender<Job>, JoinHandle<()>), StoreError> {
        let (sender, jobs) = mpsc::channel(QUEUE);
        let thread = thread::Builder::new()
            .name("rialto-store".to_owned())
            .spawn(move || self.run(jobs))
            .map_err(|error| Fault::new("the thread that writes could not be started", error))?;
        Ok((sender, thread))
    }

    fn run(mut self, mut jobs: mpsc::Receiver<Job>) {
        let mut waiting = Vec::with_capacity(BATCH);
        let mut closers = Vec::new();
        let mut last = 0;
        while jobs.blocking_recv_many(&mut waiting, BATCH) > 0 {
            if last >= CROWD {
                gather(&mut jobs, &mut waiting);
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
                    Job::Peek(work) => {
                        self.commit(std::mem::take(&mut batch));
                        self.peek(work);
                    }
                    Job::Post(what, reply) => {
                        self.commit(std::mem::take(&mut batch));
                        // Whoever asked may have gone away.
                        let _ = reply.send(self.post(what).map(|()| None).map_err(Into::into));
                    }
                    Job::Adopt(reply) => {
                        self.commit(std::mem::take(&mut batch));
                        let _ = reply.send(self.adopt().map(|()| None));
                    }
                    Job::Close(done) => {
                        jobs.close();
                        closers.push(done);
                    }
                }
            }
            self.commit(batch);
            // Now that everybody has their answers.
            self.tidier.finish(&self.connection);
        }
        // What is left on the page, if anything, is posted by whoever opens the store next.
        if self.post(Turn::Everything).is_ok()
            && let Some(daybook) = &self.daybook
        {
            daybook.remove(&self.connection);
        }
        drop(self.connection);
        for done in closers {
            // Whoever asked may have gone away.
            let _ = done.send(());
        }
    }

    fn commit(&mut self, batch: Vec<(Write, Reply)>) {
        if batch.is_empty() {
            return;
        }
        self.tidier.committed(batch.len());
        let (writes, replies): (Vec<_>, Vec<_>) = batch.into_iter().unzip();
        let outcomes = match self.unstick().map_err(Spoiled::Page).and_then(|()| self.together(&writes)) {
            Ok(outcomes) => outcomes,
            Err(Spoiled::Job(_)) if writes.len() > 1 => {
                writes.iter().map(|write| self.alone(write)).collect()
            }
            Err(Spoiled::Job(error)) => {
                self.health.failed(&error);
                vec![Err(self.place.explain(Snag::Broken(error)))]
            }
            Err(Spoiled::Commit(error)) => all_failed(&writes, &self.place.fault(error)),
            Err(Spoiled::Page(fault)) => all_failed(&writes, &fault),
        };
        for (reply, outcome) in replies.into_iter().zip(outcomes) {
            // Whoever asked may have gone away; what was written stays written.
            let _ = reply.send(outcome);
        }
    }

    fn alone(&mut self, write: &Write) -> Outcome {
        match self.together(std::slice::from_ref(write)) {
            Ok(mut outcomes) => outcomes.pop().unwrap_or(Ok(None)),
            Err(Spoiled::Job(error) | Spoiled::Commit(error)) => {
                self.health.failed(&error);
                Err(self.place.explain(Snag::Broken(error)))
            }
            Err(Spoiled::Page(fault)) => Err(fault.into()),
        }
    }

    /// Posts what the daybook holds.
    fn post(&mut self, what: Turn) -> Result<(), Fault> {
        self.unstick()?;
        let Some(daybook) = &self.daybook else { return Ok(()) };
        self.stuck = daybook.turn(what);
        self.unstick()
    }

    /// Posts the page that was handed over, if there is one.
    fn unstick(&mut self) -> Result<(), Fault> {
        let Some(daybook) = &self.daybook else { return Ok(()) };
        let Some(page) = self.stuck.take() else { return Ok(()) };
        if let Err(snag) = posting::post(&mut self.connection, daybook.name(), &page) {
            if let Snag::Broken(error) = &snag {
                self.health.failed(error);
            }
            let fault = self.place.unwritten(snag);
            tracing::debug!("notes wait to be posted: {fault}");
            self.stuck = Some(page);
            return Err(fault);
        }
        self.health.written();
        self.tidier.committed(page.drafts().len());
        daybook.posted(page);
        Ok(())
    }

    /// Runs `work` in a transaction that has everything noted so far in it, and takes it back: pages that are not committed stay in memory, so
    /// this needs no room on the disk.
    fn peek(&mut self, work: Box<dyn FnOnce(&Connection) + Send>) {
        let page = self.daybook.as_ref().map(|daybook| (daybook, daybook.copy_page()));
        let staged = Transaction::new_unchecked(&self.connection, TransactionBehavior::Immediate).ok();
        let staged = staged.and_then(|transaction| {
            let (daybook, page) = page?;
            let mut pages = self.stuck.iter().chain([&page]);
            pages.try_for_each(|page| posting::stage(&transaction, daybook.name(), page)).ok()?;
            Some(transaction)
        });
        match staged {
            // Dropped, it is rolled back.
            Some(transaction) => work(&transaction),
            None => work(&self.connection),
        }
    }

    fn adopt(&mut self) -> Result<(), StoreError> {
        let Some(daybook) = &self.daybook else { return Ok(()) };
        let adopted = self.generation.locked(|| orphans::adopt(&mut self.connection, daybook.folder()));
        let outcome = adopted.unwrap_or_else(|error| Err(error.into()));
        outcome.map_err(|trouble| trouble.explain(&self.place))
    }

    fn together(&mut self, writes: &[Write]) -> Result<Vec<Outcome>, Spoiled> {
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(|error| {
                self.health.failed(&error);
                Spoiled::Commit(error)
            })?;
        let mut outcomes = Vec::with_capacity(writes.len());
        let mut newest = None;
        for write in writes {
            match write.apply(&transaction) {
                Ok(made) => {
                    newest = newest.max(made);
                    outcomes.push(Ok(made));
                }
                Err(Snag::Refused(error)) => outcomes.push(Err(error)),
                Err(Snag::Broken(error)) => return Err(Spoiled::Job(error)),
            }
        }
        transaction.commit().map_err(|error| {
            self.health.failed(&error);
            Spoiled::Commit(error)
        })?;
        self.health.written();
        if let Some(number) = newest {
            self.generation.advance(number);
        }
        Ok(outcomes)
    }
}

fn all_failed(writes: &[Write], fault: &Fault) -> Vec<Outcome> {
    writes.iter().map(|_| Err(fault.clone().into())).collect()
}

/// Gives the others of a crowd a moment to say what they want too.
fn gather(jobs: &mut mpsc::Receiver<Job>, waiting: &mut Vec<Job>) {
    thread::sleep(MOMENT);
    while waiting.len() < BATCH {
        match jobs.try_recv() {
            Ok(job) => waiting.push(job),
            Err(_) => break,
        }
    }
}

// === impl Write ===

impl Write {
    fn apply(&self, connection: &Connection) -> Result<Option<u64>, Snag> {
        let registry_changed = match self {
            Self::Journal(note) => tasks::write(connection, note).map(|()| false)?,
            Self::Agent(write) => agents::write(connection, write)?,
            Self::Token(write) => tokens::write(connection, write)?,
            Self::Secret(write) => secrets::write(connection, write)?,
            Self::Touch => true,
        };
        Ok(if registry_changed { Some(meta::next_generation(connection)?) } else { None })
    }
}
