//! The one task of this process that writes to the journal.
//!
//! The audit trail is one chain, so of all transactions that add to it, in whichever process, one goes at a time, and each
//! waits for the server's disk. What is waiting here meanwhile goes together into the next one. Nobody is answered before the commit,
//! and nothing spoils its neighbours: what is refused has written nothing, and when something breaks, the transaction
//! is rolled back and each is tried alone.

use std::{
    collections::{HashSet, VecDeque},
    time::Duration,
};

use deadpool_postgres::{GenericClient, Pool};
use rialto_model::{
    ids::{ContextId, SkillId},
    store::{Entry, StoreError},
    task::TaskHead,
    verb::VerbEvent,
};
use tokio::{
    sync::{mpsc, oneshot},
    time,
};

use super::{
    audit,
    column::{Cells, json, nanoseconds, signed},
    generation::Generation,
    snag::Snag,
    sql::{self, Value},
};
use crate::fault::Fault;

/// At most so many lines go into one transaction.
const BATCH: usize = 256;

/// So many may wait; then their askers wait.
const QUEUE: usize = 1024;

/// How long a transaction may take before it counts as lost.
const PATIENCE: Duration = Duration::from_secs(30);

/// Something to be written to the journal.
pub(super) enum Line {
    /// A new task, and what it begins with.
    Open(Box<Entry>),
    /// Something that has happened to a task.
    Append(Box<Entry>),
    /// What was announced and belongs to no task.
    Audit(Vec<VerbEvent>),
}

type Outcome = Result<(), StoreError>;
type Job = (Line, oneshot::Sender<Outcome>);

/// Where lines are handed over.
#[derive(Clone)]
pub(super) struct Journal(mpsc::Sender<Job>);

/// Who writes them.
struct Scribe {
    pool: Pool,
    generation: Generation,
}

// === impl Journal ===

impl Journal {
    /// Starts the task. It ends when the last of these is gone, after what was handed over is written.
    pub(super) fn start(pool: Pool, generation: Generation) -> Self {
        let (sender, jobs) = mpsc::channel(QUEUE);
        tokio::spawn(Scribe { pool, generation }.run(jobs));
        Self(sender)
    }

    /// Writes a line, also when its asker stops waiting.
    pub(super) async fn write(&self, line: Line) -> Outcome {
        let (reply, answer) = oneshot::channel();
        self.0.send((line, reply)).await.map_err(|_| Fault::closed())?;
        answer.await.map_err(|_| Fault::closed())?
    }
}

// === impl Line ===

impl Line {
    fn task(&self) -> Option<&str> {
        match self {
            Self::Open(entry) | Self::Append(entry) => Some(entry.head.id.as_str()),
            Self::Audit(_) => None,
        }
    }

    fn head(&self) -> Option<&TaskHead> {
        if let Self::Open(entry) = self { Some(&entry.head) } else { None }
    }

    fn entry(&self) -> Option<&Entry> {
        if let Self::Append(entry) = self { Some(entry) } else { None }
    }

    /// What has happened, to a new task or to one that was there.
    fn told(&self) -> Option<&Entry> {
        if let Self::Open(entry) | Self::Append(entry) = self { Some(entry) } else { None }
    }

    fn announced(&self) -> &[VerbEvent] {
        match self {
            Self::Audit(audit) => audit,
            Self::Open(entry) | Self::Append(entry) => &entry.audit,
        }
    }
}

// === impl Scribe ===

impl Scribe {
    async fn run(self, mut jobs: mpsc::Receiver<Job>) {
        let (mut waiting, mut fresh) = (VecDeque::new(), Vec::new());
        loop {
            if waiting.is_empty() && jobs.recv_many(&mut fresh, BATCH).await == 0 {
                return;
            }
            waiting.extend(fresh.drain(..));
            while waiting.len() < BATCH
                && let Ok(job) = jobs.try_recv()
            {
                waiting.push_back(job);
            }
            let together = apart(&waiting);
            let (lines, replies): (Vec<_>, Vec<_>) = waiting.drain(..together).unzip();
            for (reply, outcome) in replies.into_iter().zip(self.commit(&lines).await) {
                // Whoever asked may have gone away; what was written stays written.
                let _ = reply.send(outcome);
            }
        }
    }

    async fn commit(&self, lines: &[Line]) -> Vec<Outcome> {
        match self.together(lines).await {
            Ok(outcomes) => outcomes,
            Err(snag) if lines.len() > 1 && snag.may_be_one_lines() => {
                let mut outcomes = Vec::with_capacity(lines.len());
                for line in lines {
                    outcomes.push(self.alone(line).await);
                }
                outcomes
            }
            Err(snag) => {
                let fault = snag.fault();
                lines.iter().map(|_| Err(fault.clone().into())).collect()
            }
        }
    }

    async fn alone(&self, line: &Line) -> Outcome {
        let mut outcomes = self.together(std::slice::from_ref(line)).await?;
        outcomes.pop().unwrap_or(Ok(()))
    }

    async fn together(&self, lines: &[Line]) -> Result<Vec<Outcome>, Snag> {
        let late =
            || Snag::Unreached(Fault::plain("PostgreSQL took too long to commit; see what holds it up"));
        time::timeout(PATIENCE, Box::pin(self.transact(lines))).await.map_err(|_| late())?
    }

    async fn transact(&self, lines: &[Line]) -> Result<Vec<Outcome>, Snag> {
        let mut client = self.pool.get().await?;
        let transaction = client.transaction().await?;
        let (opened, advanced) = futures::try_join!(open(&transaction, lines), advance(&transaction, lines))?;
        let outcomes: Vec<Outcome> = lines.iter().map(|line| outcome(line, &opened, &advanced)).collect();
        let accepted =
            || lines.iter().zip(&outcomes).filter(|(_, outcome)| outcome.is_ok()).map(|(line, _)| line);
        let announced: Vec<&VerbEvent> = accepted().flat_map(Line::announced).collect();
        add_events(&transaction, accepted()).await?;
        let mut seen = None;
        if !announced.is_empty() {
            let (link, generation) = audit::hold(&transaction).await?;
            audit::append(&transaction, link, &announced).await?;
            seen = Some(generation);
        }
        transaction.commit().await?;
        // A change whose message has not come yet is noticed with the next line at the latest.
        if let Some(generation) = seen {
            self.generation.advance(generation);
        }
        Ok(outcomes)
    }
}

/// How many of those who wait may go together: none that is about the same task as one before it.
fn apart(waiting: &VecDeque<Job>) -> usize {
    let mut tasks = HashSet::new();
    waiting
        .iter()
        .take(BATCH)
        .take_while(|(line, _)| line.task().is_none_or(|task| tasks.insert(task)))
        .count()
}

fn outcome(line: &Line, opened: &HashSet<String>, advanced: &HashSet<String>) -> Outcome {
    match line {
        Line::Open(entry) if !opened.contains(entry.head.id.as_str()) => {
            Err(StoreError::Taken(format!("the task id {}", entry.head.id)))
        }
        Line::Append(entry) if !advanced.contains(entry.head.id.as_str()) => Err(StoreError::Conflict),
        _ => Ok(()),
    }
}

/// Writes new tasks. Answers which were new.
async fn open(client: &impl GenericClient, lines: &[Line]) -> Result<HashSet<String>, Snag> {
    let heads: Vec<&TaskHead> = lines.iter().filter_map(Line::head).collect();
    if heads.is_empty() {
        return Ok(HashSet::new());
    }
    let insert = "
        INSERT INTO tasks (id, org, project, caller, door, agent, agent_url, skill, session, args, state, open,
            version, remote_task_id, remote_context_id, created_at, updated_at, context, message, runner)
        SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
            $9::text[], $10::text[], $11::text[], $12::boolean[], $13::bigint[], $14::text[], $15::text[], $16::bigint[],
            $17::bigint[], $18::text[], $19::text[], $20::bigint[])
        ON CONFLICT (id) DO NOTHING RETURNING id";
    let values: [Value<'_>; 20] = [
        &each(&heads, |head| head.id.as_str()),
        &each(&heads, |head| head.scope.org.as_str()),
        &each(&heads, |head| head.scope.project.as_str()),
        &each(&heads, |head| head.caller.as_str()),
        &each(&heads, |head| head.door.as_str()),
        &each(&heads, |head| head.agent.as_str()),
        &each(&heads, |head| head.agent_url.as_str()),
        &each(&heads, |head| head.skill.as_ref().map(SkillId::as_str)),
        &each(&heads, |head| &*head.session),
        &each(&heads, |head| head.args.get()),
        &each(&heads, |head| head.state.as_str()),
        &each(&heads, |head| !head.state.is_terminal()),
        &each(&heads, |head| signed(head.version)),
        &each(&heads, |head| head.remote.task_id.as_deref()),
        &each(&heads, |head| head.remote.context_id.as_deref()),
        &moments(&heads, |head| head.created_at)?,
        &moments(&heads, |head| head.updated_at)?,
        &each(&heads, |head| head.context.as_ref().map(ContextId::as_str)),
        &each(&heads, |head| head.message.as_deref()),
        &each(&heads, |head| head.runner.get().cast_signed()),
    ];
    ids(client, insert, &values).await
}

/// Moves tasks on that have as many events as expected. Answers which.
async fn advance(client: &impl GenericClient, lines: &[Line]) -> Result<HashSet<String>, Snag> {
    let entries: Vec<&Entry> = lines.iter().filter_map(Line::entry).collect();
    if entries.is_empty() {
        return Ok(HashSet::new());
    }
    let update = "
        UPDATE tasks SET state = new.state, open = new.open, version = new.version,
            remote_task_id = new.remote_task_id, remote_context_id = new.remote_context_id, updated_at = new.updated_at
        FROM unnest($1::text[], $2::bigint[], $3::text[], $4::boolean[], $5::bigint[], $6::text[], $7::text[], $8::bigint[])
            AS new (id, expected, state, open, version, remote_task_id, remote_context_id, updated_at)
        WHERE tasks.id = new.id AND tasks.version = new.expected RETURNING tasks.id";
    let values: [Value<'_>; 8] = [
        &each(&entries, |entry| entry.head.id.as_str()),
        &each(&entries, |entry| signed(entry.expected)),
        &each(&entries, |entry| entry.head.state.as_str()),
        &each(&entries, |entry| !entry.head.state.is_terminal()),
        &each(&entries, last),
        &each(&entries, |entry| entry.head.remote.task_id.as_deref()),
        &each(&entries, |entry| entry.head.remote.context_id.as_deref()),
        &moments(&entries, |entry| entry.head.updated_at)?,
    ];
    ids(client, update, &values).await
}

/// Writes the events of what was accepted.
async fn add_events<'a>(
    client: &impl GenericClient,
    accepted: impl Iterator<Item = &'a Line>,
) -> Result<(), Snag> {
    let entries: Vec<&Entry> =
        accepted.filter_map(Line::told).filter(|entry| !entry.events.is_empty()).collect();
    if entries.is_empty() {
        return Ok(());
    }
    let insert = "
        INSERT INTO task_events (task, last, at, events)
        SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::text[])";
    let texts = entries.iter().map(|entry| json(&entry.events)).collect::<Result<Vec<_>, _>>()?;
    let values: [Value<'_>; 4] = [
        &each(&entries, |entry| entry.head.id.as_str()),
        &each(&entries, last),
        &moments(&entries, |entry| entry.at)?,
        &texts,
    ];
    sql::execute(client, insert, &values).await.map(drop)
}

/// The number of the last of the events.
fn last(entry: &Entry) -> i64 {
    signed(entry.expected + entry.events.len() as u64)
}

async fn ids(
    client: &impl GenericClient,
    statement: &str,
    values: &[Value<'_>],
) -> Result<HashSet<String>, Snag> {
    let rows = sql::rows(client, statement, values).await?;
    rows.iter().map(|row| Cells(row).text("id")).collect()
}

fn each<'a, S, T>(all: &[&'a S], of: impl Fn(&'a S) -> T) -> Vec<T> {
    all.iter().map(|one| of(one)).collect()
}

fn moments<S>(all: &[&S], of: impl Fn(&S) -> jiff::Timestamp) -> Result<Vec<i64>, Snag> {
    all.iter().map(|one| nanoseconds(of(one))).collect()
}
