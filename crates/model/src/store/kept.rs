//! What is kept and asked for that has no page of its own: entries of the journal, records of the trail, tokens, secrets.

use jiff::Timestamp;

use crate::{
    call::{CallerId, CallerKind},
    event::Event,
    ids::{AgentId, ContextId, Scope, TaskId},
    rights::Rights,
    task::{TaskHead, TaskState},
    verb::{Outcome, Phase, VerbEvent},
};

/// What is added to a task in one go.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The head as it is after the events.
    pub head: TaskHead,
    /// How many events the task had before.
    pub expected: u64,
    /// The events, in order.
    pub events: Vec<Event>,
    /// When they happened.
    pub at: Timestamp,
    /// What the bus announces with them.
    pub audit: Vec<VerbEvent>,
}

/// Which tasks to list, newest first.
#[derive(Clone, Debug, Default)]
pub struct TaskFilter {
    /// Only this caller's.
    pub caller: Option<CallerId>,
    /// Only this agent's.
    pub agent: Option<AgentId>,
    /// Only in this state.
    pub state: Option<TaskState>,
    /// Only those of this conversation.
    pub context: Option<ContextId>,
    /// Only those not in a terminal state.
    pub open: bool,
    /// Only those older than this one: the last id of the page before.
    pub before: Option<TaskId>,
    /// At most so many.
    pub limit: usize,
}

/// Which of a caller's tasks to list that belong to conversations, the last changed first.
#[derive(Clone, Debug)]
pub struct TalkFilter {
    /// Only this caller's.
    pub caller: CallerId,
    /// Only those of this conversation.
    pub context: Option<ContextId>,
    /// Only those of this agent.
    pub agent: Option<AgentId>,
    /// Only in this state.
    pub state: Option<TaskState>,
    /// Only those that changed at or after this moment.
    pub since: Option<Timestamp>,
    /// Only those behind this one: when the last of the page before had changed, and its id.
    pub behind: Option<(Timestamp, TaskId)>,
    /// At most so many.
    pub limit: usize,
}

/// A list counts its tasks up to this many; of a longer one, this is the total.
pub const MAX_COUNTED_TASKS: u64 = 10_000;

/// One page of them.
#[derive(Clone, Debug, Default)]
pub struct Talks {
    /// The tasks of this page.
    pub heads: Vec<TaskHead>,
    /// How many there are on all pages, counted up to [`MAX_COUNTED_TASKS`]: more are not counted for every page.
    pub total: u64,
}

/// Which audit records to read, newest first.
#[derive(Clone, Debug, Default)]
pub struct AuditFilter {
    /// Only those at or after this moment.
    pub since: Option<Timestamp>,
    /// Only those before this moment.
    pub until: Option<Timestamp>,
    /// Only about this agent.
    pub agent: Option<AgentId>,
    /// Only this caller's.
    pub caller: Option<CallerId>,
    /// Only about this task.
    pub task: Option<TaskId>,
    /// Only with this outcome.
    pub outcome: Option<AuditOutcome>,
    /// Only administrative operations.
    pub admin: bool,
    /// Only those older than this record.
    pub before: Option<u64>,
    /// At most so many.
    pub limit: usize,
}

/// How an invocation that is on record came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditOutcome {
    /// It ended well.
    Completed,
    /// It failed, or was refused.
    Failed,
    /// It was refused by policy or a subscriber.
    Denied,
}

/// A record of the audit trail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Audited {
    /// Its place in the trail. Numbers grow; some are never given.
    pub record: u64,
    /// The number that was given before it. Whoever has seen less than that has missed what was forgotten since.
    pub follows: u64,
    /// Seals this record and all before it, in hex.
    pub seal: String,
    /// What was announced.
    pub event: VerbEvent,
}

/// Whether the audit trail is as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is.
    Sound {
        /// How many records there are.
        records: u64,
        /// The last record's number; zero when nothing was ever written.
        last: u64,
        /// The last record's seal. Whoever keeps a copy elsewhere can tell later whether the trail was made anew.
        seal: String,
    },
    /// It is not.
    Broken {
        /// The first record that does not fit.
        record: u64,
        /// What is wrong with it.
        why: String,
    },
}

/// What to forget.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sweep {
    /// Tasks that ended before this moment.
    pub tasks_before: Option<Timestamp>,
    /// Audit records from before this moment.
    pub audit_before: Option<Timestamp>,
    /// Tasks that ended first, while the store holds more bytes than this.
    pub max_bytes: Option<u64>,
}

/// What was forgotten.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// How many tasks.
    pub tasks: u64,
    /// How many audit records.
    pub audit: u64,
}

/// An org or project that was created by name. Others exist as well: those of tokens, agents and policies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreatedTenant {
    /// The org and project.
    pub scope: Scope,
    /// When it was created.
    pub created_at: Timestamp,
    /// Who created it.
    pub created_by: String,
}

/// A bearer token. The token itself is nowhere: only its hash is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// Its own name: a caller may have several.
    pub id: String,
    /// SHA-256 of the token, in hex.
    pub hash: String,
    /// Where it may look.
    pub scope: Scope,
    /// Who comes with it.
    pub caller: CallerId,
    /// What that caller is.
    pub kind: CallerKind,
    /// What may be done with it.
    pub rights: Rights,
    /// When it was made.
    pub created_at: Timestamp,
    /// From when on it lets nobody in; never, if there is no such moment.
    pub expires_at: Option<Timestamp>,
    /// When it was revoked, if it was.
    pub revoked_at: Option<Timestamp>,
    /// The caller that made it, or the operator at the machine; nothing where that was before it was noted.
    pub created_by: Option<String>,
    /// The token that a console session was begun with, where this row is one; empty for one that somebody else has signed. No bearer token
    /// leads to such a row.
    pub session_of: Option<String>,
}

/// A secret that was encrypted. What opens it is kept elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sealed {
    /// Its name; part of what is sealed, so no secret can be passed off as another.
    pub name: String,
    /// Which key opens it.
    pub key: String,
    /// What was encrypted, and whatever the cipher needs to open it.
    pub text: Vec<u8>,
    /// When it was set.
    pub set_at: Timestamp,
}

// === impl AuditFilter ===

impl AuditFilter {
    /// The newest so many.
    pub fn newest(limit: usize) -> Self {
        Self { limit, ..Self::default() }
    }

    /// Whether a record of this event is asked for, wherever in the trail it stands.
    pub fn fits(&self, event: &VerbEvent) -> bool {
        let verb = &event.verb;
        let outcome = |outcome| match outcome {
            AuditOutcome::Completed => event.outcome == Some(Outcome::Completed),
            AuditOutcome::Failed => event.outcome == Some(Outcome::Failed),
            AuditOutcome::Denied => event.context.denied,
        };
        self.since.is_none_or(|since| event.emitted_at >= since)
            && self.until.is_none_or(|until| event.emitted_at < until)
            && self.agent.as_ref().is_none_or(|agent| agent.as_str() == &*verb.agent_card_id)
            && self.caller.as_ref().is_none_or(|caller| caller.as_str() == &*verb.caller)
            && self.task.as_ref().is_none_or(|task| task.as_str() == &*verb.task_id)
            && self.outcome.is_none_or(outcome)
            && (!self.admin || event.phase == Phase::Admin)
    }
}
