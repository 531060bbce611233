//! A store that keeps nothing, for calls that nobody will ask about later.

mod flows;
mod nodes;
mod relay;

use std::{
    collections::BTreeMap,
    sync::{Arc, atomic::AtomicU64},
};

use async_trait::async_trait;

use super::{
    AuditFilter, Audited, CreatedTenant, Entry, MessageClaim, NumberedSessionMessage, Sealed, SessionMessage,
    SharedUsage, Store, StoreError, Sweep, Swept, TalkFilter, Talks, TaskFilter, Token, UsageReport, Verdict,
};
use crate::{
    agent::{Agent, OldCard, Probe},
    approval::{Approval, ApprovalFilter, Decided},
    call::CallerId,
    clock::Timestamp,
    cost::{CostQuery, CostSum},
    credential::Secret,
    event::{Event, Recorded},
    ids::{AgentId, ApprovalId, OrgId, Runner, Scope, TaskId, TokenId},
    policy::{PolicyChange, PolicySet, PolicyVersion},
    push::Push,
    routing::{
        Dispatch, DispatchFilter, PlayEnd, Posterior, Reservation, Standing as AgentStanding, StandingQuery,
        Unsettled,
    },
    task::TaskHead,
    verb::VerbEvent,
    webhook::{Lease, Leased, Standing, Webhook},
};

/// Keeps nothing but the agents it was made with.
#[derive(Clone, Debug, Default)]
pub struct Nowhere(pub Vec<Agent>);

// === impl Nowhere ===

#[async_trait]
impl Store for Nowhere {
    fn generation(&self) -> u64 {
        // One change, if there is something to be read.
        u64::from(!self.0.is_empty())
    }

    async fn touch(&self) -> Result<u64, StoreError> {
        Ok(self.generation())
    }

    async fn agents(&self) -> Result<Vec<Agent>, StoreError> {
        Ok(self.0.clone())
    }

    async fn put_agent(&self, _: &Agent, _: Option<u64>) -> Result<u64, StoreError> {
        Ok(self.generation())
    }

    async fn remove_agent(&self, _: &AgentId) -> Result<Option<u64>, StoreError> {
        Ok(None)
    }

    async fn card_history(&self, _: &AgentId) -> Result<Vec<OldCard>, StoreError> {
        Ok(Vec::new())
    }

    async fn record_probe(&self, _: &Probe) -> Result<(), StoreError> {
        Ok(())
    }

    async fn probes(&self, _: &AgentId, _: usize) -> Result<Vec<Probe>, StoreError> {
        Ok(Vec::new())
    }

    async fn open_task(&self, _: &TaskHead, _: Vec<VerbEvent>) -> Result<(), StoreError> {
        Ok(())
    }

    async fn begin_task(&self, _: &TaskHead, _: &[Event], _: Vec<VerbEvent>) -> Result<(), StoreError> {
        Ok(())
    }

    async fn append(&self, _: Entry) -> Result<(), StoreError> {
        Ok(())
    }

    async fn task(&self, _: &Scope, _: &str) -> Result<Option<TaskHead>, StoreError> {
        Ok(None)
    }

    async fn events(&self, _: &TaskId, _: u64) -> Result<Vec<Recorded>, StoreError> {
        Ok(Vec::new())
    }

    async fn tasks(&self, _: &Scope, _: &TaskFilter) -> Result<Vec<TaskHead>, StoreError> {
        Ok(Vec::new())
    }

    async fn talks(&self, _: &Scope, _: &TalkFilter) -> Result<Talks, StoreError> {
        Ok(Talks::default())
    }

    async fn claim_message(&self, _: &MessageClaim) -> Result<Option<MessageClaim>, StoreError> {
        Ok(None)
    }

    async fn release_message(&self, _: &MessageClaim) -> Result<(), StoreError> {
        Ok(())
    }

    async fn tasks_of_message(&self, _: &Scope, _: &CallerId, _: &str) -> Result<Vec<TaskHead>, StoreError> {
        Ok(Vec::new())
    }

    async fn put_session_message(&self, _: &SessionMessage) -> Result<(), StoreError> {
        Ok(())
    }

    async fn session_messages(&self, _: u64, _: usize) -> Result<Vec<NumberedSessionMessage>, StoreError> {
        Ok(Vec::new())
    }

    async fn last_session_message(&self) -> Result<u64, StoreError> {
        Ok(0)
    }

    async fn remove_session_message(&self, _: u64) -> Result<(), StoreError> {
        Ok(())
    }

    async fn share_usage(&self, report: &UsageReport) -> Result<SharedUsage, StoreError> {
        let totals = report.counts.iter().map(|count| count.calls).collect();
        Ok(SharedUsage { totals, openings: Vec::new() })
    }

    async fn is_session_ended(&self, _: &str) -> Result<bool, StoreError> {
        Ok(false)
    }

    async fn beat(&self, _: Runner, _: Timestamp) -> Result<(), StoreError> {
        Ok(())
    }

    async fn renew(&self, _: Runner, _: Timestamp) -> Result<bool, StoreError> {
        Ok(true)
    }

    async fn is_at_work(&self, _: Runner, _: Timestamp) -> Result<bool, StoreError> {
        Ok(false)
    }

    async fn claim(&self, _: &TaskId, _: Runner) -> Result<(), StoreError> {
        Ok(())
    }

    async fn retire(&self, _: Runner) -> Result<(), StoreError> {
        Ok(())
    }

    async fn take_over(&self, _: Runner, _: Timestamp, _: usize) -> Result<Vec<TaskHead>, StoreError> {
        Ok(Vec::new())
    }

    async fn load(&self, _: &OrgId) -> Result<BTreeMap<AgentId, u64>, StoreError> {
        Ok(BTreeMap::new())
    }

    async fn standings(&self, _: &StandingQuery) -> Result<BTreeMap<AgentId, AgentStanding>, StoreError> {
        Ok(BTreeMap::new())
    }

    async fn works(&self, _: &OrgId, _: &AgentId, _: usize) -> Result<Vec<(String, Posterior)>, StoreError> {
        Ok(Vec::new())
    }

    async fn reserve(&self, _: &Reservation) -> Result<bool, StoreError> {
        Ok(true)
    }

    async fn end_play(&self, _: &TaskId, _: &PlayEnd) -> Result<bool, StoreError> {
        Ok(false)
    }

    async fn unsettled_plays(&self, _: usize) -> Result<Vec<Unsettled>, StoreError> {
        Ok(Vec::new())
    }

    async fn dispatches(&self, _: &Scope, _: &DispatchFilter) -> Result<Vec<Dispatch>, StoreError> {
        Ok(Vec::new())
    }

    async fn audit(&self, _: Vec<VerbEvent>) -> Result<(), StoreError> {
        Ok(())
    }

    async fn audit_trail(&self, _: &Scope, _: &AuditFilter) -> Result<Vec<Audited>, StoreError> {
        Ok(Vec::new())
    }

    async fn audit_after(&self, _: u64, _: usize) -> Result<Vec<Audited>, StoreError> {
        Ok(Vec::new())
    }

    async fn audit_end(&self) -> Result<u64, StoreError> {
        Ok(0)
    }

    async fn verify_audit_in_sight(&self, _: Arc<AtomicU64>) -> Result<Verdict, StoreError> {
        Ok(Verdict::Sound { records: 0, last: 0, seal: String::new() })
    }

    async fn org_bytes(&self) -> Result<BTreeMap<OrgId, u64>, StoreError> {
        Ok(BTreeMap::new())
    }

    async fn costs(&self, _: &Scope, _: &CostQuery) -> Result<Vec<CostSum>, StoreError> {
        Ok(Vec::new())
    }

    async fn sweep(&self, _: Sweep) -> Result<Swept, StoreError> {
        Ok(Swept::default())
    }

    async fn tenants(&self) -> Result<Vec<CreatedTenant>, StoreError> {
        Ok(Vec::new())
    }

    async fn create_tenant(&self, _: &CreatedTenant) -> Result<bool, StoreError> {
        Ok(true)
    }

    async fn remove_tenant(&self, _: &Scope) -> Result<bool, StoreError> {
        Ok(false)
    }

    async fn tokens(&self) -> Result<Vec<Token>, StoreError> {
        Ok(Vec::new())
    }

    async fn put_token(&self, _: &Token) -> Result<(), StoreError> {
        Ok(())
    }

    async fn revoke_token(&self, _: &str, _: Timestamp) -> Result<Option<u64>, StoreError> {
        Ok(None)
    }

    async fn secrets(&self) -> Result<Vec<Sealed>, StoreError> {
        Ok(Vec::new())
    }

    async fn put_secrets(&self, _: Vec<Sealed>) -> Result<u64, StoreError> {
        Ok(self.generation())
    }

    async fn remove_secret(&self, _: &str) -> Result<Option<u64>, StoreError> {
        Ok(None)
    }

    async fn seed(&self, _: &str, fresh: &Secret) -> Result<Secret, StoreError> {
        Ok(fresh.clone())
    }

    async fn policies(&self) -> Result<PolicySet, StoreError> {
        Ok(PolicySet::default())
    }

    async fn change_policy(&self, _: &PolicyChange, _: u64) -> Result<u64, StoreError> {
        Ok(self.generation())
    }

    async fn policy_history(&self, _: &str) -> Result<Vec<PolicyVersion>, StoreError> {
        Ok(Vec::new())
    }

    async fn webhooks(&self) -> Result<Vec<Webhook>, StoreError> {
        Ok(Vec::new())
    }

    async fn put_webhook(&self, _: &Webhook) -> Result<u64, StoreError> {
        Ok(self.generation())
    }

    async fn remove_webhook(&self, _: &str) -> Result<Option<u64>, StoreError> {
        Ok(None)
    }

    async fn retry_webhook(&self, _: &str) -> Result<Option<u64>, StoreError> {
        Ok(None)
    }

    async fn lease_webhook(&self, _: &str, _: &Lease) -> Result<Leased, StoreError> {
        Ok(Leased::Gone)
    }

    async fn note_webhook(&self, _: &str, _: &str, _: &Standing) -> Result<bool, StoreError> {
        Ok(false)
    }

    async fn put_push(&self, _: &Push) -> Result<(), StoreError> {
        Ok(())
    }

    async fn pushes(&self, _: &TaskId) -> Result<Vec<Push>, StoreError> {
        Ok(Vec::new())
    }

    async fn remove_push(&self, _: &TaskId, _: &str) -> Result<bool, StoreError> {
        Ok(false)
    }

    async fn due_pushes(&self, _: &Lease, _: usize) -> Result<Vec<Push>, StoreError> {
        Ok(Vec::new())
    }

    async fn note_push(&self, _: &Push, _: &str) -> Result<bool, StoreError> {
        Ok(false)
    }

    async fn push_tokens(&self) -> Result<Vec<TokenId>, StoreError> {
        Ok(Vec::new())
    }

    async fn remove_pushes_of(&self, _: &TokenId) -> Result<u64, StoreError> {
        Ok(0)
    }

    async fn dead_pushes(&self, _: &Scope, _: usize) -> Result<Vec<Push>, StoreError> {
        Ok(Vec::new())
    }

    async fn put_approval(&self, _: &Approval) -> Result<u64, StoreError> {
        Ok(self.generation())
    }

    async fn approvals(&self, _: &ApprovalFilter) -> Result<Vec<Approval>, StoreError> {
        Ok(Vec::new())
    }

    async fn decide_approval(&self, _: &ApprovalId, _: &Decided) -> Result<bool, StoreError> {
        Ok(false)
    }

    async fn settle_approval(&self, _: &ApprovalId) -> Result<bool, StoreError> {
        Ok(false)
    }
}
