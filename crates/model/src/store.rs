//! The port to whatever keeps things: one suite of promises, every backend keeps them.
//!
//! Verbs are atomic: no transaction crosses this port, and where two writers could meet, the expected version is an
//! argument.

mod kept;
mod layer;
mod nowhere;
mod problem;
mod shared_usage;

use std::{
    collections::BTreeMap,
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};

use crate::{
    agent::{Agent, OldCard, Probe},
    approval::{Approval, ApprovalFilter, Decided},
    call::CallerId,
    cost::{CostQuery, CostSum},
    credential::Secret,
    event::{Event, Recorded},
    flow::FlowStore,
    ids::{AgentId, ApprovalId, OrgId, Runner, Scope, TaskId, TokenId},
    node::NodeStore,
    policy::{PolicyChange, PolicySet, PolicyVersion},
    push::Push,
    relay::RelayStore,
    routing::{
        Dispatch, DispatchFilter, PlayEnd, Posterior, Reservation, Standing as AgentStanding, StandingQuery,
        Unsettled,
    },
    task::TaskHead,
    verb::VerbEvent,
    webhook::{Lease, Leased, Standing, Webhook},
};

pub use self::{
    kept::{
        AuditFilter, AuditOutcome, Audited, CreatedTenant, Entry, MAX_COUNTED_TASKS, Sealed, Sweep, Swept,
        TalkFilter, Talks, TaskFilter, Token, Verdict,
    },
    layer::{Layered, StoreLayer},
    nowhere::Nowhere,
    problem::StoreProblem,
    shared_usage::{BreakerOpening, CallCount, OPENING_SHARED_FOR, SharedUsage, UsageReport},
};

/// Claim of one process that a message is the one that begins or continues a task.
///
/// It makes the same message one task also when it reaches two processes at once. It is needed only while several processes
/// share a store, and lives as long as its task can be found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageClaim {
    /// Key of the message: caller, target, message id and content hash.
    pub key: String,
    /// The task.
    pub task: TaskId,
    /// The process that has the claim.
    pub runner: Runner,
    /// When it was made.
    pub at: Timestamp,
}

/// Message of a client in an MCP session that another process may wait for, or the end of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionMessage {
    /// Random part of the session's id.
    pub session: String,
    /// The message as JSON; none where the session has ended.
    pub body: Option<String>,
    /// When it was received.
    pub at: Timestamp,
}

/// A session message and its place among all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NumberedSessionMessage {
    /// Its place.
    pub number: u64,
    /// The message.
    pub message: SessionMessage,
}

/// Time after which a message in an MCP session is of no use to anyone.
pub const MAX_SESSION_MESSAGE_AGE: SignedDuration = SignedDuration::from_hours(1);

/// Time after which an MCP session that no process holds any more cannot be rebuilt from its id. Ends of sessions are kept as long.
pub const MAX_SESSION_AGE: SignedDuration = SignedDuration::from_hours(30 * 24);

/// Why the store did not do as it was told.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Somebody else changed the row first; read it again.
    #[error("the row was changed by somebody else")]
    Conflict,
    /// Another row already has that name or address.
    #[error("{0} is already taken")]
    Taken(String),
    /// What is stored cannot be read back.
    #[error("the store holds something that cannot be read: {0}")]
    Corrupt(String),
    /// The store does not take this value, now or later.
    #[error("the store cannot keep this: {0}")]
    Unwritable(String),
    /// The database did not do its work. Whether what was to be written is there is not known.
    #[error("the store is not available")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// So many tasks are told of one name for a message. Clients that name all of theirs alike get no more of them.
pub const MOST_NAMESAKES: usize = 16;

/// A number that is most likely another one for another message. Stores keep it, so it is the same for ever: FNV-1a over all
/// four and a byte that no text holds behind each, stirred at the end so that every bit counts.
pub fn number_of_message(org: &[u8], project: &[u8], caller: &[u8], message: &[u8]) -> u64 {
    let mut number = 0xcbf2_9ce4_8422_2325_u64;
    for text in [org, project, caller, message] {
        for byte in text.iter().chain(&[0xff]) {
            number = (number ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    number ^= number >> 33;
    number = number.wrapping_mul(0xff51_afd7_ed55_8ccd);
    number ^ (number >> 33)
}

/// Keeps the registry, the journal, the audit trail, workflows with their runs ([`FlowStore`]), the nodes ([`NodeStore`]),
/// and the calls that they pass on to each other ([`RelayStore`]).
#[async_trait]
pub trait Store: FlowStore + NodeStore + RelayStore {
    /// A number that is another one after any process has changed the registry, the tokens, the policies, the
    /// webhooks or called [`Store::touch`]. Cheap enough to ask on every call.
    ///
    /// It counts the changes, inside the same transaction that makes each: a writer that gets back exactly one more
    /// than it knew has missed nothing and need not read everything again.
    fn generation(&self) -> u64;

    /// Condition that keeps this store from taking writes, as far as it is known without asking the database.
    async fn problem(&self) -> Option<StoreProblem> {
        None
    }

    /// Moves the generation, for changes that are kept outside the store (policy files).
    async fn touch(&self) -> Result<u64, StoreError>;

    /// All agents of all orgs.
    async fn agents(&self) -> Result<Vec<Agent>, StoreError>;

    /// Adds an agent (`expected` none) or replaces its row if it still has the `expected` version. The row's own
    /// `version` is what it has afterwards. When the card differs from the stored one, the old one goes to history.
    /// Answers the generation that this change made.
    async fn put_agent(&self, agent: &Agent, expected: Option<u64>) -> Result<u64, StoreError>;

    /// Removes an agent and what belongs to it (history, probes). Answers the generation that this made, or none
    /// when it was not there.
    async fn remove_agent(&self, id: &AgentId) -> Result<Option<u64>, StoreError>;

    /// The cards that were replaced, newest first.
    async fn card_history(&self, id: &AgentId) -> Result<Vec<OldCard>, StoreError>;

    /// Appends one probe; old ones are dropped once an agent has many. A probe that was answered moves the row's
    /// `last_seen_at`, but neither its version nor the generation: nobody has to read the registry again for that.
    async fn record_probe(&self, probe: &Probe) -> Result<(), StoreError>;

    /// An agent's probes, newest first.
    async fn probes(&self, id: &AgentId, limit: usize) -> Result<Vec<Probe>, StoreError>;

    /// Writes a new task down, with what the bus announces. It is durable when this returns.
    async fn open_task(&self, head: &TaskHead, audit: Vec<VerbEvent>) -> Result<(), StoreError>;

    /// The same for a task that begins with something: these events, which `head` has taken in already and which happened when
    /// it was last changed.
    async fn begin_task(
        &self,
        head: &TaskHead,
        first: &[Event],
        audit: Vec<VerbEvent>,
    ) -> Result<(), StoreError>;

    /// Adds events to a task; refused when it does not have exactly the expected number of events.
    async fn append(&self, entry: Entry) -> Result<(), StoreError>;

    /// The task with that id: ours, or else the newest with that remote id.
    async fn task(&self, scope: &Scope, id: &str) -> Result<Option<TaskHead>, StoreError>;

    /// A task's events, from the one after `after`.
    async fn events(&self, task: &TaskId, after: u64) -> Result<Vec<Recorded>, StoreError>;

    /// Tasks of a scope, newest first.
    async fn tasks(&self, scope: &Scope, filter: &TaskFilter) -> Result<Vec<TaskHead>, StoreError>;

    /// A caller's tasks that belong to conversations, the last changed first.
    async fn talks(&self, scope: &Scope, filter: &TalkFilter) -> Result<Talks, StoreError>;

    /// The tasks that began with messages of that name of a caller's, the newest first and no more than [`MOST_NAMESAKES`].
    /// It makes nobody wait, so what this process acknowledged a moment ago may be missing: whoever asks remembers that much
    /// itself.
    async fn tasks_of_message(
        &self,
        scope: &Scope,
        caller: &CallerId,
        message: &str,
    ) -> Result<Vec<TaskHead>, StoreError>;

    /// A number for each message that began a task ([`number_of_message`]), for a process that is the only one at work and has
    /// all of them at most `limit`; none where that is not so, or cannot be told. Whoever has them need not ask
    /// [`Store::tasks_of_message`] about messages whose number is not among them.
    async fn messages(&self, _runner: Runner, _limit: usize) -> Result<Option<Vec<u64>>, StoreError> {
        Ok(None)
    }

    /// Claims a message for the task that it is to begin or continue, atomically among all processes that share the store.
    /// Where another task has the claim, it stays, and is returned.
    async fn claim_message(&self, claim: &MessageClaim) -> Result<Option<MessageClaim>, StoreError>;

    /// Gives up a claim whose task was never begun. A claim of another task stays.
    async fn release_message(&self, claim: &MessageClaim) -> Result<(), StoreError>;

    /// How long a process that is at work may be silent before its tasks are taken over.
    fn lease(&self) -> Duration {
        Duration::from_secs(10)
    }

    /// Whether the death of a process is seen at once, so that nobody has to wait until its lease is over.
    fn sees_deaths(&self) -> bool {
        true
    }

    /// Adds a message of a client in an MCP session, or the end of one, for the processes that share the store. Messages older than
    /// [`MAX_SESSION_MESSAGE_AGE`], and ends older than [`MAX_SESSION_AGE`], are removed.
    async fn put_session_message(&self, message: &SessionMessage) -> Result<(), StoreError>;

    /// Messages behind this number, in the order they were committed, at most `limit`.
    async fn session_messages(
        &self,
        after: u64,
        limit: usize,
    ) -> Result<Vec<NumberedSessionMessage>, StoreError>;

    /// Number of the last message; zero when there is none.
    async fn last_session_message(&self) -> Result<u64, StoreError>;

    /// Removes a message that was delivered.
    async fn remove_session_message(&self, number: u64) -> Result<(), StoreError>;

    /// Whether the end of a session was written.
    async fn is_session_ended(&self, session: &str) -> Result<bool, StoreError>;

    /// Adds the calls that a process has counted, and the circuit breakers that it has opened, to those of the others; and answers with the
    /// totals of all. Counts of windows that are over are removed.
    async fn share_usage(&self, report: &UsageReport) -> Result<SharedUsage, StoreError>;

    /// Says that a process is at work and will have said so again by `until`.
    async fn beat(&self, runner: Runner, until: Timestamp) -> Result<(), StoreError>;

    /// Says it again. The answer is no when the process was taken for gone meanwhile: its tasks are others' now. To be called by one thread at a
    /// time, whose runtime keeps whatever connection this needs.
    async fn renew(&self, runner: Runner, until: Timestamp) -> Result<bool, StoreError>;

    /// Shows that a process is at work for as long as it lives, where its death is seen without any beats. Where it is not,
    /// the answer is no, and it is to say so with [`Store::beat`].
    async fn attend(&self, _runner: Runner) -> Result<bool, StoreError> {
        Ok(false)
    }

    /// Whether a process is at work, as far as can be told.
    async fn is_at_work(&self, runner: Runner, now: Timestamp) -> Result<bool, StoreError>;

    /// Says that a task is this process's from now on, whoever worked on it before.
    async fn claim(&self, task: &TaskId, runner: Runner) -> Result<(), StoreError>;

    /// Says that a process works no more: what it left can be taken over at once.
    async fn retire(&self, runner: Runner) -> Result<(), StoreError>;

    /// Takes over tasks that are not over and whose process is gone: it retired, or has not been heard of by `now`. The
    /// oldest first, at most so many; they have their new runner.
    async fn take_over(
        &self,
        runner: Runner,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<TaskHead>, StoreError>;

    /// How many tasks each agent of an org has that are not over. Agents without any are left out. A call that was
    /// refused is no task.
    async fn load(&self, org: &OrgId) -> Result<BTreeMap<AgentId, u64>, StoreError>;

    /// What a decision needs to know of these agents. Those nobody knows anything about are left out.
    async fn standings(&self, query: &StandingQuery) -> Result<BTreeMap<AgentId, AgentStanding>, StoreError>;

    /// How well an agent does each type of work that it was observed at, what it was observed at last first.
    async fn works(
        &self,
        org: &OrgId,
        agent: &AgentId,
        limit: usize,
    ) -> Result<Vec<(String, Posterior)>, StoreError>;

    /// Takes a slot of an agent and writes down the decision that wants it; both, or nothing and `false` when the agent has
    /// no slot left. However many ask at once, in however many processes, no more slots are given out than there are.
    async fn reserve(&self, reservation: &Reservation) -> Result<bool, StoreError>;

    /// Says how a play ended and, if that says something about the agent, lets its posterior learn from it. The answer says
    /// whether it is news: each play ends once.
    async fn end_play(&self, task: &TaskId, end: &PlayEnd) -> Result<bool, StoreError>;

    /// Plays whose tasks are over though nobody has said so, the oldest first, at most so many.
    async fn unsettled_plays(&self, limit: usize) -> Result<Vec<Unsettled>, StoreError>;

    /// Decisions of a scope, newest first, with what became of them.
    async fn dispatches(&self, scope: &Scope, filter: &DispatchFilter) -> Result<Vec<Dispatch>, StoreError>;

    /// Appends to the audit trail what belongs to no task. Arguments are kept with the first announcement of an invocation
    /// only ([`VerbEvent::record`]).
    async fn audit(&self, events: Vec<VerbEvent>) -> Result<(), StoreError>;

    /// Audit records of a scope's org, newest first.
    async fn audit_trail(&self, scope: &Scope, filter: &AuditFilter) -> Result<Vec<Audited>, StoreError>;

    /// At most so many records behind this one, of all orgs, in order; fewer when they are large, but at least one if there
    /// is any. Records that were swept are not among them: then the first follows a higher number than this one.
    ///
    /// It makes nobody wait and writes nothing, so what was acknowledged a moment ago may come with the next look; no
    /// record ever appears before one that was already seen.
    async fn audit_after(&self, record: u64, limit: usize) -> Result<Vec<Audited>, StoreError>;

    /// The number of the last audit record; zero when there never was one. Like [`Store::audit_after`], it makes nobody
    /// wait.
    async fn audit_end(&self) -> Result<u64, StoreError>;

    /// Reads the whole audit trail and compares it with its seals.
    async fn verify_audit(&self) -> Result<Verdict, StoreError> {
        self.verify_audit_in_sight(Arc::default()).await
    }

    /// The same for somebody who wants to know how far it is: `reached` is the number of the last record that was compared.
    async fn verify_audit_in_sight(&self, reached: Arc<AtomicU64>) -> Result<Verdict, StoreError>;

    /// What the completed calls of a scope's org are said to have cost, in the order of the keys.
    async fn costs(&self, scope: &Scope, query: &CostQuery) -> Result<Vec<CostSum>, StoreError>;

    /// Bytes that the tasks and audit records of each org take. It reads everything there is: not for every call.
    async fn org_bytes(&self) -> Result<BTreeMap<OrgId, u64>, StoreError>;

    /// Forgets what is old, a bounded number of rows at a time: call it again while it finds something. Of the audit
    /// trail only the beginning goes, and the rest can still be verified. What processes that died have left to be
    /// written is written before.
    async fn sweep(&self, sweep: Sweep) -> Result<Swept, StoreError>;

    /// Orgs and projects that were created by name, in their order.
    async fn tenants(&self) -> Result<Vec<CreatedTenant>, StoreError>;

    /// Adds an org or project. Answers whether it is new.
    async fn create_tenant(&self, tenant: &CreatedTenant) -> Result<bool, StoreError>;

    /// Removes an org or project. Answers whether it was there.
    async fn remove_tenant(&self, scope: &Scope) -> Result<bool, StoreError>;

    /// All tokens, those that expired or were revoked included.
    async fn tokens(&self) -> Result<Vec<Token>, StoreError>;

    /// Adds a token. With a console session, those are forgotten whose time was over when it was made.
    async fn put_token(&self, token: &Token) -> Result<(), StoreError>;

    /// Marks a token as revoked at this moment. Answers the generation that this made, or none when there is no such
    /// token or it was revoked before.
    async fn revoke_token(&self, id: &str, at: Timestamp) -> Result<Option<u64>, StoreError>;

    /// All secrets, sealed, by name.
    async fn secrets(&self) -> Result<Vec<Sealed>, StoreError>;

    /// Keeps these secrets, all of them or none, in place of those with the same names.
    async fn put_secrets(&self, secrets: Vec<Sealed>) -> Result<u64, StoreError>;

    /// Forgets a secret. Answers the generation that this made, or none when it was not there.
    async fn remove_secret(&self, name: &str) -> Result<Option<u64>, StoreError>;

    /// The random text that is kept under a name: `fresh`, if there is none yet. Everybody is answered the same for ever, and
    /// it moves no generation.
    async fn seed(&self, name: &str, fresh: &Secret) -> Result<Secret, StoreError>;

    /// The policies that are kept here.
    async fn policies(&self) -> Result<PolicySet, StoreError>;

    /// Makes a change of the policies; refused when `expected` is not the number of the last one. Answers the generation
    /// that this made.
    async fn change_policy(&self, change: &PolicyChange, expected: u64) -> Result<u64, StoreError>;

    /// The changes of one policy, newest first: at least so many as [`crate::policy::KEPT`].
    async fn policy_history(&self, name: &str) -> Result<Vec<PolicyVersion>, StoreError>;

    /// All webhooks, in the order they were added.
    async fn webhooks(&self) -> Result<Vec<Webhook>, StoreError>;

    /// Adds a webhook. It hears of what happens from now on, whatever its standing says. Answers the generation that
    /// this made.
    async fn put_webhook(&self, webhook: &Webhook) -> Result<u64, StoreError>;

    /// Removes a webhook. Answers the generation that this made, or none when it was not there.
    async fn remove_webhook(&self, id: &str) -> Result<Option<u64>, StoreError>;

    /// Has a webhook that failed or was disabled tried again at once. Answers the generation that this made, or none when
    /// it is not there.
    async fn retry_webhook(&self, id: &str) -> Result<Option<u64>, StoreError>;

    /// Takes or prolongs the right to deliver to a webhook, unless somebody else has it.
    async fn lease_webhook(&self, id: &str, lease: &Lease) -> Result<Leased, StoreError>;

    /// Writes down how far a webhook was told; refused when `holder` does not have the right to deliver any more. The
    /// answer says whether it was taken.
    async fn note_webhook(&self, id: &str, holder: &str, standing: &Standing) -> Result<bool, StoreError>;

    /// Has somebody told of a task, or tells it differently: names are taken once per task.
    async fn put_push(&self, push: &Push) -> Result<(), StoreError>;

    /// Who is told of a task, in the order they asked.
    async fn pushes(&self, task: &TaskId) -> Result<Vec<Push>, StoreError>;

    /// Tells somebody no more. Answers whether it was told before.
    async fn remove_push(&self, task: &TaskId, id: &str) -> Result<bool, StoreError>;

    /// Those who have not heard everything that happened to their tasks and may be told now, at most so many. Until the lease
    /// is over, or [`Store::note_push`] ends it, nobody else gets them.
    async fn due_pushes(&self, lease: &Lease, limit: usize) -> Result<Vec<Push>, StoreError>;

    /// Writes down how far somebody was told, and lets go of it; refused when `holder` does not have it any more. The answer
    /// says whether it was taken.
    async fn note_push(&self, push: &Push, holder: &str) -> Result<bool, StoreError>;

    /// The access tokens that push notification configs were set with, each once.
    async fn push_tokens(&self) -> Result<Vec<TokenId>, StoreError>;

    /// Removes the push notification configs that were set with an access token. Answers how many there were.
    async fn remove_pushes_of(&self, token: &TokenId) -> Result<u64, StoreError>;

    /// Those that were given up, the newest first.
    async fn dead_pushes(&self, scope: &Scope, limit: usize) -> Result<Vec<Push>, StoreError>;

    /// Writes down that something waits for approval. Answers the generation that this made.
    async fn put_approval(&self, approval: &Approval) -> Result<u64, StoreError>;

    /// What waits for approval or waited for it, newest first.
    async fn approvals(&self, filter: &ApprovalFilter) -> Result<Vec<Approval>, StoreError>;

    /// Decides about something that waits. The answer says whether this decision counts: of several, in however many
    /// processes, the first does. It moves the generation.
    async fn decide_approval(&self, id: &ApprovalId, decided: &Decided) -> Result<bool, StoreError>;

    /// Says that what waited has gone on or has ended, so that nobody need look at it again. The answer says whether that is
    /// news.
    async fn settle_approval(&self, id: &ApprovalId) -> Result<bool, StoreError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_a_message_never_changes_and_tells_where_each_text_ends() {
        assert_eq!(number_of_message(b"default", b"main", b"ann", b"m-1"), 4_195_711_437_444_453_245);
        assert_ne!(number_of_message(b"a", b"b", b"c", b"de"), number_of_message(b"a", b"b", b"cd", b"e"));
    }
}
