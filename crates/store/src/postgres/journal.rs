//! The one task of this process that has the journal written.
//!
//! What comes in a moment, or while transactions are committed, goes together into the next one: with many calls under way, one commit serves
//! many of them.
//! All statements of a transaction leave at once, and then its commit, so it costs two round trips. Nobody is answered before the
//! commit, and nothing spoils its neighbours: when something is refused, nothing is written and the others go again without
//! it; when something breaks, each is tried alone.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    time::Duration,
};

use deadpool_postgres::{Client, GenericClient, Pool};
use jiff::Timestamp;
use rialto_model::{
    clock::{Clock, SystemClock},
    ids::{ContextId, SkillId},
    store::{Entry, MessageClaim, StoreError},
    task::TaskHead,
    verb::VerbEvent,
};
use tokio::{
    sync::{mpsc, oneshot},
    time,
};

use super::{
    audit,
    chains::{self, Chain, SealedRecords},
    column::{Cells, json, nanoseconds, signed},
    generation::Generation,
    leases::Own,
    message_claims,
    snag::Snag,
    sql::{self, Value},
};
use crate::fault::Fault;

/// So many transactions are under way at a time: while one waits for the disk, the other is made.
pub(super) const WRITERS: usize = 2;

/// At most so many lines go into one transaction.
const BATCH: usize = 256;

/// So many may wait; then their askers wait.
const QUEUE: usize = 1024;

/// When so many went together, the next ones are waited for.
const CROWD: usize = 8;

/// So long.
const MOMENT: Duration = Duration::from_millis(2);

/// How long a transaction may take before it counts as lost.
const PATIENCE: Duration = Duration::from_secs(30);

/// So many chains of audit records are tried when others use them.
const CHAINS_TRIED: usize = 8;

/// Writes new tasks, and answers which were new.
const OPEN: &str = "
    INSERT INTO tasks (id, org, project, caller, door, agent, agent_url, skill, session, args, state, open,
        version, remote_task_id, remote_context_id, created_at, updated_at, context, message, runner)
    SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
        $9::text[], $10::text[], $11::text[], $12::boolean[], $13::bigint[], $14::text[], $15::text[], $16::bigint[],
        $17::bigint[], $18::text[], $19::text[], $20::bigint[])
    ON CONFLICT (id) DO NOTHING RETURNING id";

/// Moves tasks on that have as many events as expected, and answers which. One that we work on must still be ours.
const ADVANCE: &str = "
    UPDATE tasks SET state = new.state, open = new.open, version = new.version,
        remote_task_id = new.remote_task_id, remote_context_id = new.remote_context_id, updated_at = new.updated_at
    FROM unnest($1::text[], $2::bigint[], $3::text[], $4::boolean[], $5::bigint[], $6::text[], $7::text[], $8::bigint[],
        $9::bigint[]) AS new (id, expected, state, open, version, remote_task_id, remote_context_id, updated_at, runner)
    WHERE tasks.id = new.id AND tasks.version = new.expected AND new.runner IN (0, tasks.runner) RETURNING tasks.id";

/// Writes events. One that is there already belongs to a task that does not move on, so nothing of this will stay.
const ADD_EVENTS: &str = "
    INSERT INTO task_events (task, last, at, events)
    SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::text[])
    ON CONFLICT (task, last) DO NOTHING";

/// Something to be written to the journal.
pub(super) enum Line {
    /// A new task, and what it begins with.
    Open(Box<Entry>),
    /// Something that has happened to a task.
    Append(Box<Entry>),
    /// What was announced and belongs to no task.
    Audit(Vec<VerbEvent>),
    /// A claim of a message.
    Claim(MessageClaim),
}

/// A claim that somebody else has made before is told to whoever wanted to make one.
type Outcome = Result<Option<MessageClaim>, StoreError>;
type Job = (Line, oneshot::Sender<Outcome>);

/// Where lines are handed over.
#[derive(Clone)]
pub(super) struct Journal(mpsc::Sender<Job>);

/// Gathers lines and hands them to whoever is free to write them.
struct Desk {
    jobs: mpsc::Receiver<Job>,
    waiting: VecDeque<Job>,
    /// Who is free; the one that wrote last is at the end.
    free: Vec<Scribe>,
    /// Where those come back who have written.
    back: (mpsc::Sender<Scribe>, mpsc::Receiver<Scribe>),
    /// How many went together last.
    crowd: usize,
}

/// Writes lines, on a connection and in a chain of its own.
struct Scribe {
    pool: Pool,
    generation: Generation,
    own: Own,
    /// Whether the connection may be left in the middle of a transaction.
    is_dirty: bool,
    /// Its chain of audit records; none while it must be read again.
    chain: Option<Chain>,
    /// The chain that it had last.
    preferred: Option<i64>,
}

/// How a transaction ended.
enum Flight {
    /// All of it is written, but for claims that others have made before.
    Committed(HashMap<String, MessageClaim>),
    /// Nothing is written, because of these.
    Refused(Vec<(usize, StoreError)>),
    /// Nothing is written, because somebody else has added to our chain.
    Overtaken,
}

// === impl Journal ===

impl Journal {
    /// Starts the task, with pools of one connection each that nobody else uses. It ends when the last of these is gone, after what was
    /// handed over is written.
    pub(super) fn start(pools: [Pool; WRITERS], generation: &Generation, own: &Own) -> Self {
        let (sender, jobs) = mpsc::channel(QUEUE);
        let scribe = |pool| Scribe {
            pool,
            generation: generation.clone(),
            own: own.clone(),
            is_dirty: false,
            chain: None,
            preferred: None,
        };
        let free = pools.into_iter().rev().map(scribe).collect();
        let desk = Desk { jobs, waiting: VecDeque::new(), free, back: mpsc::channel(WRITERS), crowd: 0 };
        tokio::spawn(desk.run());
        Self(sender)
    }

    /// Writes a line, also when its asker stops waiting.
    pub(super) async fn write(&self, line: Line) -> Result<(), StoreError> {
        self.hand_over(line).await.map(drop)
    }

    /// Makes a claim of a message, or answers the one that another task has.
    pub(super) async fn claim(&self, claim: MessageClaim) -> Outcome {
        self.hand_over(Line::Claim(claim)).await
    }

    async fn hand_over(&self, line: Line) -> Outcome {
        let (reply, answer) = oneshot::channel();
        self.0.send((line, reply)).await.map_err(|_| Fault::closed())?;
        answer.await.map_err(|_| Fault::closed())?
    }
}

// === impl Line ===

impl Line {
    /// What it is about: of two lines that are about the same, one goes after the other.
    fn subject(&self) -> Option<&str> {
        match self {
            Self::Open(entry) | Self::Append(entry) => Some(entry.head.id.as_str()),
            Self::Claim(claim) => Some(&claim.key),
            Self::Audit(_) => None,
        }
    }

    fn claim(&self) -> Option<&MessageClaim> {
        if let Self::Claim(claim) = self { Some(claim) } else { None }
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
            Self::Claim(_) => &[],
        }
    }
}

// === impl Desk ===

impl Desk {
    async fn run(mut self) {
        let mut fresh = Vec::new();
        loop {
            if self.waiting.is_empty() && self.jobs.recv_many(&mut fresh, BATCH).await == 0 {
                break;
            }
            if self.crowd >= CROWD && self.jobs.len() < self.crowd {
                // The others of a crowd come in a moment: one commit for all of them is cheaper for everybody.
                time::sleep(MOMENT).await;
            }
            let Some(mut scribe) = self.free().await else { break };
            self.waiting.extend(fresh.drain(..));
            while self.waiting.len() < BATCH
                && let Ok(job) = self.jobs.try_recv()
            {
                self.waiting.push_back(job);
            }
            self.crowd = apart(&self.waiting);
            let (lines, replies): (Vec<_>, Vec<_>) = self.waiting.drain(..self.crowd).unzip();
            let back = self.back.0.clone();
            tokio::spawn(async move {
                for (reply, outcome) in replies.into_iter().zip(scribe.commit(&lines).await) {
                    // Whoever asked may have gone away; what was written stays written.
                    let _ = reply.send(outcome);
                }
                // It is not waited for when all is over.
                let _ = back.send(scribe).await;
            });
        }
    }

    /// Somebody who is free. With little to do it is always the same one.
    async fn free(&mut self) -> Option<Scribe> {
        while let Ok(scribe) = self.back.1.try_recv() {
            self.free.push(scribe);
        }
        match self.free.pop() {
            Some(scribe) => Some(scribe),
            None => self.back.1.recv().await,
        }
    }
}

// === impl Scribe ===

impl Scribe {
    async fn commit(&mut self, lines: &[Line]) -> Vec<Outcome> {
        let mut outcomes: Vec<Option<Outcome>> = lines.iter().map(|_| None).collect();
        loop {
            let left: Vec<usize> = (0..lines.len()).filter(|&index| outcomes[index].is_none()).collect();
            if left.is_empty() {
                break;
            }
            let together: Vec<&Line> = left.iter().map(|&index| &lines[index]).collect();
            match self.together(&together).await {
                Ok((refused, mut claimed)) if refused.is_empty() => {
                    for &index in &left {
                        let others = lines[index].claim().and_then(|claim| claimed.remove(&claim.key));
                        outcomes[index] = Some(Ok(others));
                    }
                }
                Ok((refused, _)) => {
                    refused.into_iter().for_each(|(at, error)| outcomes[left[at]] = Some(Err(error)));
                }
                Err(snag) if left.len() > 1 && snag.may_be_one_lines() => {
                    for &index in &left {
                        outcomes[index] = Some(self.alone(&lines[index]).await);
                    }
                }
                Err(snag) => {
                    let fault = snag.fault();
                    left.iter().for_each(|&index| outcomes[index] = Some(Err(fault.clone().into())));
                }
            }
        }
        outcomes.into_iter().map(|outcome| outcome.unwrap_or(Ok(None))).collect()
    }

    async fn alone(&mut self, line: &Line) -> Outcome {
        let (mut refused, claimed) = self.together(&[line]).await?;
        match refused.pop() {
            Some((_, refusal)) => Err(refusal),
            None => Ok(claimed.into_values().next()),
        }
    }

    /// Writes these lines. Answers which were refused: then nothing is written. Besides the claims that others have made before, by their
    /// keys.
    async fn together(
        &mut self,
        lines: &[&Line],
    ) -> Result<(Vec<(usize, StoreError)>, HashMap<String, MessageClaim>), Snag> {
        let late =
            || Snag::Unreached(Fault::plain("PostgreSQL took too long to commit; see what holds it up"));
        for _ in 0..CHAINS_TRIED {
            let flight = time::timeout(PATIENCE, Box::pin(self.fly(lines))).await.map_err(|_| late())??;
            match flight {
                Flight::Committed(claimed) => return Ok((Vec::new(), claimed)),
                Flight::Refused(refused) => return Ok((refused, HashMap::new())),
                // The next one is another chain.
                Flight::Overtaken => self.preferred = None,
            }
        }
        Err(Snag::Unreached(Fault::plain("other processes use every chain of audit records; try again")))
    }

    async fn fly(&mut self, lines: &[&Line]) -> Result<Flight, Snag> {
        let now = SystemClock.now();
        let client = self.client().await?;
        let events: Vec<&VerbEvent> = lines.iter().flat_map(|line| line.announced()).collect();
        // Until the commit is known to have worked, it is not known where our chain ends.
        let mut chain = match self.chain.take() {
            Some(chain) => chain,
            None => Chain::take(&client, self.preferred, now).await?,
        };
        self.preferred = Some(chain.id());
        let crossing = if events.is_empty() { Vec::new() } else { chain.crossing(&client).await? };
        let sealed = chain.seal(&crossing, &events, now)?;
        prepare(&client).await?;
        self.is_dirty = true;
        let written = write(&client, lines, &chain, &sealed, (&self.own, now)).await;
        let is_committed =
            written.as_ref().is_ok_and(|written| written.is_ours && written.refused.is_empty());
        let mut others = HashMap::new();
        if let Some(written) = written.as_ref().ok().filter(|_| is_committed) {
            let wanted = lines.iter().filter_map(|line| line.claim());
            let lost: Vec<_> = wanted.filter(|claim| !written.claimed.contains(&claim.key)).collect();
            others = message_claims::of_others(&client, &lost).await?;
        }
        client.batch_execute(if is_committed { "COMMIT" } else { "ROLLBACK" }).await?;
        self.is_dirty = false;
        let Written { refused, is_ours, generation, .. } = written?;
        if !is_ours {
            return Ok(Flight::Overtaken);
        }
        if is_committed {
            chain.committed(&sealed);
            // A change whose message has not come yet is noticed with the next line at the latest.
            self.generation.advance(generation);
        }
        self.chain = Some(chain);
        Ok(if is_committed { Flight::Committed(others) } else { Flight::Refused(refused) })
    }

    /// The connection. One that a transaction was given up on is closed, which rolls it back.
    async fn client(&mut self) -> Result<Client, Snag> {
        let client = self.pool.get().await?;
        if !self.is_dirty {
            return Ok(client);
        }
        drop(Client::take(client));
        let client = self.pool.get().await?;
        self.is_dirty = false;
        Ok(client)
    }
}

/// What a transaction has found, before it is committed.
struct Written {
    refused: Vec<(usize, StoreError)>,
    /// Whether our chain ended where we thought.
    is_ours: bool,
    generation: u64,
    /// The keys of claims that were made.
    claimed: HashSet<String>,
}

/// Prepares what this connection has not prepared before, so that the statements of a transaction can leave together.
async fn prepare(client: &Client) -> Result<(), Snag> {
    for statement in
        [OPEN, ADVANCE, ADD_EVENTS, message_claims::CLAIM, audit::HOLD, chains::ADVANCE, chains::INSERT]
    {
        client.prepare_cached(statement).await?;
    }
    Ok(())
}

/// Begins a transaction and writes these lines. All statements leave before the first is answered, and are carried out in their order.
async fn write(
    client: &Client,
    lines: &[&Line],
    chain: &Chain,
    sealed: &SealedRecords<'_>,
    (own, now): (&Own, Timestamp),
) -> Result<Written, Snag> {
    let begin = async { Ok(client.batch_execute("BEGIN").await?) };
    let ((), opened, advanced, (), claimed, generation, is_ours, ()) = futures::try_join!(
        begin,
        open(client, lines),
        advance(client, lines, own),
        add_events(client, lines),
        claim(client, lines),
        audit::hold(client, sealed),
        chain.advance(client, sealed, now),
        sealed.insert(client, chain.id()),
    )?;
    let refused = lines
        .iter()
        .enumerate()
        .filter_map(|(index, line)| refusal(line, &opened, &advanced).map(|refusal| (index, refusal)));
    Ok(Written { refused: refused.collect(), is_ours, generation, claimed })
}

/// How many of those who wait may go together: none that is about the same as one before it.
fn apart(waiting: &VecDeque<Job>) -> usize {
    let mut subjects = HashSet::new();
    waiting
        .iter()
        .take(BATCH)
        .take_while(|(line, _)| line.subject().is_none_or(|subject| subjects.insert(subject)))
        .count()
}

/// Why a line cannot be written, if it cannot.
fn refusal(line: &Line, opened: &HashSet<String>, advanced: &HashSet<String>) -> Option<StoreError> {
    match line {
        Line::Open(entry) if !opened.contains(entry.head.id.as_str()) => {
            Some(StoreError::Taken(format!("the task id {}", entry.head.id)))
        }
        Line::Append(entry) if !advanced.contains(entry.head.id.as_str()) => Some(StoreError::Conflict),
        _ => None,
    }
}

/// Writes new tasks. Answers which were new.
async fn open(client: &impl GenericClient, lines: &[&Line]) -> Result<HashSet<String>, Snag> {
    let heads: Vec<&TaskHead> = lines.iter().filter_map(|line| line.head()).collect();
    if heads.is_empty() {
        return Ok(HashSet::new());
    }
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
    ids(client, OPEN, &values).await
}

/// Moves tasks on that have as many events as expected. Answers which.
async fn advance(client: &impl GenericClient, lines: &[&Line], own: &Own) -> Result<HashSet<String>, Snag> {
    let entries: Vec<&Entry> = lines.iter().filter_map(|line| line.entry()).collect();
    if entries.is_empty() {
        return Ok(HashSet::new());
    }
    let values: [Value<'_>; 9] = [
        &each(&entries, |entry| entry.head.id.as_str()),
        &each(&entries, |entry| signed(entry.expected)),
        &each(&entries, |entry| entry.head.state.as_str()),
        &each(&entries, |entry| !entry.head.state.is_terminal()),
        &each(&entries, last),
        &each(&entries, |entry| entry.head.remote.task_id.as_deref()),
        &each(&entries, |entry| entry.head.remote.context_id.as_deref()),
        &moments(&entries, |entry| entry.head.updated_at)?,
        &each(&entries, |entry| own.or_nobody(entry.head.runner)),
    ];
    ids(client, ADVANCE, &values).await
}

/// Writes the events of new tasks and of those that were there.
async fn add_events(client: &impl GenericClient, lines: &[&Line]) -> Result<(), Snag> {
    let entries: Vec<&Entry> =
        lines.iter().filter_map(|line| line.told()).filter(|entry| !entry.events.is_empty()).collect();
    if entries.is_empty() {
        return Ok(());
    }
    let texts = entries.iter().map(|entry| json(&entry.events)).collect::<Result<Vec<_>, _>>()?;
    let values: [Value<'_>; 4] = [
        &each(&entries, |entry| entry.head.id.as_str()),
        &each(&entries, last),
        &moments(&entries, |entry| entry.at)?,
        &texts,
    ];
    sql::execute(client, ADD_EVENTS, &values).await.map(drop)
}

/// Makes claims of messages. Answers the keys of those that nobody has made before.
async fn claim(client: &impl GenericClient, lines: &[&Line]) -> Result<HashSet<String>, Snag> {
    let claims: Vec<&MessageClaim> = lines.iter().filter_map(|line| line.claim()).collect();
    if claims.is_empty() {
        return Ok(HashSet::new());
    }
    let values: [Value<'_>; 4] = [
        &each(&claims, |claim| claim.key.as_str()),
        &each(&claims, |claim| claim.task.as_str()),
        &each(&claims, |claim| claim.runner.get().cast_signed()),
        &moments(&claims, |claim| claim.at)?,
    ];
    ids(client, message_claims::CLAIM, &values).await
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
