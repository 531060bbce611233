//! Group commit: batches the journal writes of many calls into few transactions.
//!
//! Writes that arrive within two milliseconds, or while all writers are busy, form the next batch. The statements of a batch are pipelined
//! ([`batch`]), so a transaction costs two round trips. A write is acknowledged after its commit. One that is refused does not fail its
//! neighbours: the transaction is rolled back and repeated without it; after a database error each write is tried alone.

mod batch;

use std::{
    collections::{HashMap, HashSet, VecDeque},
    time::Duration,
};

use rialto_model::{
    audit_event::AuditEvent,
    clock::{Clock, SystemClock},
    store::{MessageClaim, StoreError, TaskAppend},
    task::TaskHead,
};
use tokio::{
    sync::{mpsc, oneshot},
    time::{self, Instant},
};

use self::batch::PendingBatch;
use super::{
    audit_chains::Chain,
    connection::{PgClient, Pool},
    error::PostgresError,
    generation::GenerationCopy,
    leases::OwnRunners,
    messages,
};
use crate::error::DatabaseError;

/// Number of concurrent transactions: while one waits for the disk, the other is prepared.
pub(super) const WRITERS: usize = 2;

/// Maximum lines of one transaction.
///
/// Callers whose lines are committed together come back together. Without a small maximum all of them end up in one batch, and
/// PostgreSQL and this process wait for each other in turn; with it, one batch is written while the next one is made.
const MAX_BATCH_LINES: usize = 32;

/// Length of the queue; callers wait when it is full.
const QUEUE_WRITES: usize = 1024;

/// Batch size from which the next batch waits for more writes.
const MIN_BATCH_TO_WAIT: usize = 8;

/// So long.
const BATCH_DELAY: Duration = Duration::from_millis(2);

/// Timeout of a transaction.
const COMMIT_TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum number of audit chains tried when others use them.
const MAX_CHAINS_TRIED: usize = 8;

/// Something to be written to the journal.
pub(super) enum JournalWrite {
    /// A new task, and what it begins with.
    Open(Box<TaskAppend>),
    /// Something that has happened to a task.
    Append(Box<TaskAppend>),
    /// Audit events that belong to no task.
    Audit(Vec<AuditEvent>),
    /// A claim of a message.
    Claim(MessageClaim),
}

/// The claim of another task, if there is one.
type Outcome = Result<Option<MessageClaim>, StoreError>;
type Job = (JournalWrite, oneshot::Sender<Outcome>);

/// Handle that submits writes to the batcher.
#[derive(Clone)]
pub(super) struct Journal(mpsc::Sender<Job>);

/// Collects lines into batches and hands each batch to a free writer.
struct Batcher {
    jobs: mpsc::Receiver<Job>,
    waiting: VecDeque<Job>,
    /// Writers without a batch; the one that wrote last is at the end.
    free: Vec<BatchWriter>,
    /// Returns writers that have committed their batch.
    back: (mpsc::Sender<BatchWriter>, mpsc::Receiver<BatchWriter>),
    /// Size of the last batch.
    crowd: usize,
}

/// Writes batches on a connection and in an audit chain of its own.
struct BatchWriter {
    pool: Pool,
    generation: GenerationCopy,
    own: OwnRunners,
    /// True if the connection may be left in the middle of a transaction.
    is_dirty: bool,
    /// Its chain of audit records; none while it must be read again.
    chain: Option<Chain>,
    /// The chain that it had last.
    preferred: Option<i64>,
}

/// Outcome of one transaction.
enum BatchOutcome {
    /// All of it is written, but for claims that others have made before.
    Committed(HashMap<String, MessageClaim>),
    /// Nothing is written, because of these.
    Refused(Vec<(usize, StoreError)>),
    /// Nothing is written, because another process has added to our chain.
    ChainTaken,
}

// === impl Journal ===

impl Journal {
    /// Starts the batcher, with one pool of one connection per writer. It ends when the last of these is gone, after what was
    /// handed over is written.
    pub(super) fn start(pools: [Pool; WRITERS], generation: &GenerationCopy, own: &OwnRunners) -> Self {
        let (sender, jobs) = mpsc::channel(QUEUE_WRITES);
        let writer = |pool| BatchWriter {
            pool,
            generation: generation.clone(),
            own: own.clone(),
            is_dirty: false,
            chain: None,
            preferred: None,
        };
        let free = pools.into_iter().rev().map(writer).collect();
        let batcher =
            Batcher { jobs, waiting: VecDeque::new(), free, back: mpsc::channel(WRITERS), crowd: 0 };
        tokio::spawn(batcher.run());
        Self(sender)
    }

    /// Writes, also when its caller stops waiting.
    pub(super) async fn write(&self, line: JournalWrite) -> Result<(), StoreError> {
        self.submit(line).await.map(drop)
    }

    /// Makes a claim of a message, or answers the one that another task has.
    pub(super) async fn claim(&self, claim: MessageClaim) -> Outcome {
        self.submit(JournalWrite::Claim(claim)).await
    }

    async fn submit(&self, line: JournalWrite) -> Outcome {
        let (reply, answer) = oneshot::channel();
        self.0.send((line, reply)).await.map_err(|_| DatabaseError::closed())?;
        answer.await.map_err(|_| DatabaseError::closed())?
    }
}

// === impl JournalWrite ===

impl JournalWrite {
    /// Subject of a write: two writes with one subject are never in one batch.
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

    fn entry(&self) -> Option<&TaskAppend> {
        if let Self::Append(entry) = self { Some(entry) } else { None }
    }

    /// Events of a new or an existing task.
    fn appended(&self) -> Option<&TaskAppend> {
        if let Self::Open(entry) | Self::Append(entry) = self { Some(entry) } else { None }
    }

    fn audit_events(&self) -> &[AuditEvent] {
        match self {
            Self::Audit(audit) => audit,
            Self::Open(entry) | Self::Append(entry) => &entry.audit,
            Self::Claim(_) => &[],
        }
    }
}

// === impl Batcher ===

impl Batcher {
    async fn run(mut self) {
        let mut fresh = Vec::new();
        loop {
            if self.waiting.is_empty() && self.jobs.recv_many(&mut fresh, MAX_BATCH_LINES).await == 0 {
                break;
            }
            self.waiting.extend(fresh.drain(..));
            self.collect_batch().await;
            let Some(mut writer) = self.free_writer().await else { break };
            while self.waiting.len() < MAX_BATCH_LINES
                && let Ok(job) = self.jobs.try_recv()
            {
                self.waiting.push_back(job);
            }
            self.crowd = count_distinct(&self.waiting);
            let (lines, replies): (Vec<_>, Vec<_>) = self.waiting.drain(..self.crowd).unzip();
            let back = self.back.0.clone();
            tokio::spawn(async move {
                for (reply, outcome) in replies.into_iter().zip(writer.commit(&lines).await) {
                    // The caller may have gone away; what was written stays written.
                    let _ = reply.send(outcome);
                }
                // It is not waited for when all is over.
                let _ = back.send(writer).await;
            });
        }
    }

    /// Waits for as many lines as the last batch had: one commit for all of them is cheaper for every caller.
    async fn collect_batch(&mut self) {
        if self.crowd < MIN_BATCH_TO_WAIT {
            return;
        }
        let deadline = Instant::now() + BATCH_DELAY;
        while self.waiting.len() < self.crowd
            && let Ok(Some(job)) = time::timeout_at(deadline, self.jobs.recv()).await
        {
            self.waiting.push_back(job);
        }
    }

    /// A free writer. Under light load it is always the same one.
    async fn free_writer(&mut self) -> Option<BatchWriter> {
        while let Ok(writer) = self.back.1.try_recv() {
            self.free.push(writer);
        }
        match self.free.pop() {
            Some(writer) => Some(writer),
            None => self.back.1.recv().await,
        }
    }
}

// === impl BatchWriter ===

impl BatchWriter {
    async fn commit(&mut self, lines: &[JournalWrite]) -> Vec<Outcome> {
        let mut outcomes: Vec<Option<Outcome>> = lines.iter().map(|_| None).collect();
        loop {
            let left: Vec<usize> = (0..lines.len()).filter(|&index| outcomes[index].is_none()).collect();
            if left.is_empty() {
                break;
            }
            let left_lines: Vec<&JournalWrite> = left.iter().map(|&index| &lines[index]).collect();
            match self.write_lines(&left_lines).await {
                Ok((refused, mut claimed)) if refused.is_empty() => {
                    for &index in &left {
                        let others = lines[index].claim().and_then(|claim| claimed.remove(&claim.key));
                        outcomes[index] = Some(Ok(others));
                    }
                }
                Ok((refused, _)) => {
                    refused.into_iter().for_each(|(at, error)| outcomes[left[at]] = Some(Err(error)));
                }
                Err(failure) if left.len() > 1 && failure.may_be_one_lines() => {
                    for &index in &left {
                        outcomes[index] = Some(self.write_line(&lines[index]).await);
                    }
                }
                Err(failure) => {
                    let fault = failure.fault();
                    left.iter().for_each(|&index| outcomes[index] = Some(Err(fault.clone().into())));
                }
            }
        }
        outcomes.into_iter().map(|outcome| outcome.unwrap_or(Ok(None))).collect()
    }

    async fn write_line(&mut self, line: &JournalWrite) -> Outcome {
        let (mut refused, claimed) = self.write_lines(&[line]).await?;
        match refused.pop() {
            Some((_, refusal)) => Err(refusal),
            None => Ok(claimed.into_values().next()),
        }
    }

    /// Writes these lines. Answers which were refused: then nothing is written. Besides the claims that others have made before, by their
    /// keys.
    async fn write_lines(
        &mut self,
        lines: &[&JournalWrite],
    ) -> Result<(Vec<(usize, StoreError)>, HashMap<String, MessageClaim>), PostgresError> {
        let late = || {
            PostgresError::Unreached(DatabaseError::plain(
                "PostgreSQL took too long to commit; see what holds it up",
            ))
        };
        for _ in 0..MAX_CHAINS_TRIED {
            let outcome = time::timeout(COMMIT_TIMEOUT, Box::pin(self.write_batch(lines)))
                .await
                .map_err(|_| late())??;
            match outcome {
                BatchOutcome::Committed(claimed) => return Ok((Vec::new(), claimed)),
                BatchOutcome::Refused(refused) => return Ok((refused, HashMap::new())),
                // The next one is another chain.
                BatchOutcome::ChainTaken => self.preferred = None,
            }
        }
        Err(PostgresError::Unreached(DatabaseError::plain(
            "other processes use every chain of audit records; try again",
        )))
    }

    async fn write_batch(&mut self, lines: &[&JournalWrite]) -> Result<BatchOutcome, PostgresError> {
        let now = SystemClock.now();
        let client = self.client().await?;
        let events: Vec<&AuditEvent> = lines.iter().flat_map(|line| line.audit_events()).collect();
        // Until the commit is known to have worked, it is not known where our chain ends.
        let mut chain = match self.chain.take() {
            Some(chain) => chain,
            None => Chain::acquire(&client, self.preferred, now).await?,
        };
        self.preferred = Some(chain.id());
        let cross_links =
            if events.is_empty() { Vec::new() } else { chain.read_cross_links(&client).await? };
        let sealed = chain.seal(&cross_links, &events, now)?;
        batch::prepare(&client).await?;
        self.is_dirty = true;
        let written = batch::write(&client, lines, &chain, &sealed, (&self.own, now)).await;
        let is_committed =
            written.as_ref().is_ok_and(|written| written.is_ours && written.refused.is_empty());
        let mut others = HashMap::new();
        if let Some(written) = written.as_ref().ok().filter(|_| is_committed) {
            let wanted = lines.iter().filter_map(|line| line.claim());
            let lost: Vec<_> = wanted.filter(|claim| !written.claimed.contains(&claim.key)).collect();
            others = messages::find_others(&client, &lost).await?;
        }
        client.batch_execute(if is_committed { "COMMIT" } else { "ROLLBACK" }).await?;
        self.is_dirty = false;
        let PendingBatch { refused, is_ours, generation, .. } = written?;
        if !is_ours {
            return Ok(BatchOutcome::ChainTaken);
        }
        if is_committed {
            chain.on_committed(&sealed);
            // A change whose message has not come yet is noticed with the next line at the latest.
            self.generation.advance(generation);
        }
        self.chain = Some(chain);
        Ok(if is_committed { BatchOutcome::Committed(others) } else { BatchOutcome::Refused(refused) })
    }

    /// The connection. One that a transaction was given up on is closed, which rolls it back.
    async fn client(&mut self) -> Result<PgClient, PostgresError> {
        let client = self.pool.get().await?;
        if !self.is_dirty {
            return Ok(client);
        }
        client.close();
        let client = self.pool.get().await?;
        self.is_dirty = false;
        Ok(client)
    }
}

/// Number of waiting writes that may be one batch: none has the subject of one before it.
fn count_distinct(waiting: &VecDeque<Job>) -> usize {
    let mut subjects = HashSet::new();
    waiting
        .iter()
        .take(MAX_BATCH_LINES)
        .take_while(|(line, _)| line.subject().is_none_or(|subject| subjects.insert(subject)))
        .count()
}
