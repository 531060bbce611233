//! Audit log, and the costs in it.

use std::sync::{Arc, atomic::AtomicU64};

use jiff::Timestamp;

use super::layer::store_trait;
use crate::{
    audit_event::{AuditEvent, AuditPhase, InvocationOutcome},
    call::CallerId,
    cost::{CostQuery, CostSum},
    ids::{AgentId, Scope, TaskId},
    store::StoreError,
};

/// Filter for audit records, newest first.
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
    /// Maximum number of rows.
    pub limit: usize,
}

/// Outcome of a recorded invocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditOutcome {
    /// It ended well.
    Completed,
    /// It failed, or was refused.
    Failed,
    /// It was refused by policy or a subscriber.
    Denied,
}

/// A record of the audit log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredAuditEvent {
    /// Its place in the trail. Numbers grow; some are never given.
    pub record: u64,
    /// The number that was given before it. A reader that has seen less has missed swept records.
    pub follows: u64,
    /// Seals this record and all before it, in hex.
    pub seal: String,
    /// The event.
    pub event: AuditEvent,
}

/// True if the audit log is as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChainVerification {
    /// It is.
    Sound {
        /// Number of records.
        records: u64,
        /// The last record's number; zero when nothing was ever written.
        last: u64,
        /// The last record's seal. A copy kept elsewhere shows later whether the log was made anew.
        seal: String,
    },
    /// It is not.
    Broken {
        /// The first record that does not fit.
        record: u64,
        /// Description of the damage.
        why: String,
    },
}

store_trait! {
    /// Audit log, and the costs in it. Part of every [`Store`](super::Store).
    pub trait AuditStore {
        /// Appends to the audit log what belongs to no task. Arguments are kept with the first announcement of an invocation
        /// only ([`AuditEvent::record`]).
        async fn audit(&self, events: Vec<AuditEvent>) -> Result<(), StoreError>;

        /// Audit records of a scope's org, newest first.
        async fn audit_records(&self, scope: &Scope, filter: &AuditFilter) -> Result<Vec<StoredAuditEvent>, StoreError>;

        /// At most `limit` records behind this one, of all orgs, in order; fewer when they are large, but at least one if there
        /// is any. Records that were swept are not among them: then the first follows a higher number than this one.
        ///
        /// It makes nobody wait and writes nothing, so what was acknowledged a moment ago may come with the next look; no
        /// record ever appears before one that was already seen.
        async fn audit_after(&self, record: u64, limit: usize) -> Result<Vec<StoredAuditEvent>, StoreError>;

        /// The number of the last audit record; zero when there never was one. Like [`Self::audit_after`], it makes nobody
        /// wait.
        async fn last_audit_number(&self) -> Result<u64, StoreError>;

        /// Reads the whole audit log and compares it with its seals.
        async fn verify_audit(&self) -> Result<ChainVerification, StoreError> {
            self.verify_audit_with_progress(Arc::default()).await
        }

        /// Verifies the audit log and reports progress: `reached` is the number of the last record that was compared.
        async fn verify_audit_with_progress(&self, reached: Arc<AtomicU64>) -> Result<ChainVerification, StoreError>;

        /// Stated costs of the completed calls of a scope's org, in the order of the keys.
        async fn costs(&self, scope: &Scope, query: &CostQuery) -> Result<Vec<CostSum>, StoreError>;
    }
}

// === impl AuditFilter ===

impl AuditFilter {
    /// Filter of the newest `limit` records.
    pub fn newest(limit: usize) -> Self {
        Self { limit, ..Self::default() }
    }

    /// Returns whether a record of this event is asked for, wherever in the trail it stands.
    pub fn fits(&self, event: &AuditEvent) -> bool {
        let verb = &event.verb;
        let outcome = |outcome| match outcome {
            AuditOutcome::Completed => event.outcome == Some(InvocationOutcome::Completed),
            AuditOutcome::Failed => event.outcome == Some(InvocationOutcome::Failed),
            AuditOutcome::Denied => event.context.denied,
        };
        self.since.is_none_or(|since| event.emitted_at >= since)
            && self.until.is_none_or(|until| event.emitted_at < until)
            && self.agent.as_ref().is_none_or(|agent| agent.as_str() == &*verb.agent_card_id)
            && self.caller.as_ref().is_none_or(|caller| caller.as_str() == &*verb.caller)
            && self.task.as_ref().is_none_or(|task| task.as_str() == &*verb.task_id)
            && self.outcome.is_none_or(outcome)
            && (!self.admin || event.phase == AuditPhase::Admin)
    }
}
