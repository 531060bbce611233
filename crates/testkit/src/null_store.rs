//! Store that keeps nothing, for tests and measurements of everything but the store.

use std::{
    collections::BTreeMap,
    sync::{Arc, atomic::AtomicU64},
};

use async_trait::async_trait;
use jiff::Timestamp;
use rialto_model::{
    agent::{Agent, OldCard, Probe},
    approval::{Approval, ApprovalFilter, Decided},
    call::CallerId,
    cost::{CostQuery, CostSum},
    credential::Secret,
    event::{Event, Recorded},
    flow::{Flow, FlowRun, FlowStep, RunChange, RunFilter, RunRecord, Schedule},
    ids::{AgentId, ApprovalId, OrgId, Runner, Scope, TaskId, TokenId},
    node::{Node, NodeBeat, NodeDrain, NodeStatus},
    policy::{PolicyChange, PolicySet, PolicyVersion},
    push::Push,
    relay::{RelayProgress, RelayedCall},
    routing::{
        Dispatch, DispatchFilter, PlayEnd, Posterior, Reservation, Standing as AgentStanding, StandingQuery,
        Unsettled,
    },
    store::{
        AgentStore, ApprovalStore, AuditFilter, AuditStore, Audited, CreatedTenant, Entry, FlowStore,
        LeaseStore, MessageClaim, MessageStore, NodeStore, NumberedSessionMessage, PolicyStore,
        PushConfigStore, RelayStore, RetentionStore, RoutingStore, Sealed, SecretStore, SessionMessage,
        SessionStore, SharedUsage, Store, StoreError, Sweep, Swept, TalkFilter, Talks, TaskFilter, TaskStore,
        TenantStore, Token, TokenStore, UsageReport, UsageStore, Verdict, WebhookStore,
    },
    task::TaskHead,
    verb::VerbEvent,
    webhook::{Lease, Leased, Standing, Webhook},
};

/// Store that keeps nothing but the agents it was made with.
#[derive(Clone, Debug, Default)]
pub struct NullStore(pub Vec<Agent>);

// === impl NullStore ===

#[async_trait]
impl Store for NullStore {
    fn generation(&self) -> u64 {
        // One change, if there is something to be read.
        u64::from(!self.0.is_empty())
    }

    async fn touch(&self) -> Result<u64, StoreError> {
        Ok(self.generation())
    }
}

#[async_trait]
impl AgentStore for NullStore {
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
}

#[async_trait]
impl ApprovalStore for NullStore {
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

#[async_trait]
impl AuditStore for NullStore {
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

    async fn costs(&self, _: &Scope, _: &CostQuery) -> Result<Vec<CostSum>, StoreError> {
        Ok(Vec::new())
    }
}

#[async_trait]
impl LeaseStore for NullStore {
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

    async fn attend(&self, _: Runner) -> Result<bool, StoreError> {
        Ok(false)
    }
}

#[async_trait]
impl MessageStore for NullStore {
    async fn claim_message(&self, _: &MessageClaim) -> Result<Option<MessageClaim>, StoreError> {
        Ok(None)
    }

    async fn release_message(&self, _: &MessageClaim) -> Result<(), StoreError> {
        Ok(())
    }

    async fn tasks_of_message(&self, _: &Scope, _: &CallerId, _: &str) -> Result<Vec<TaskHead>, StoreError> {
        Ok(Vec::new())
    }

    async fn messages(&self, _: Runner, _: usize) -> Result<Option<Vec<u64>>, StoreError> {
        Ok(None)
    }
}

#[async_trait]
impl PolicyStore for NullStore {
    async fn policies(&self) -> Result<PolicySet, StoreError> {
        Ok(PolicySet::default())
    }

    async fn change_policy(&self, _: &PolicyChange, _: u64) -> Result<u64, StoreError> {
        Ok(self.generation())
    }

    async fn policy_history(&self, _: &str) -> Result<Vec<PolicyVersion>, StoreError> {
        Ok(Vec::new())
    }
}

#[async_trait]
impl PushConfigStore for NullStore {
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
}

#[async_trait]
impl RetentionStore for NullStore {
    async fn org_bytes(&self) -> Result<BTreeMap<OrgId, u64>, StoreError> {
        Ok(BTreeMap::new())
    }

    async fn sweep(&self, _: Sweep) -> Result<Swept, StoreError> {
        Ok(Swept::default())
    }
}

#[async_trait]
impl RoutingStore for NullStore {
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
}

#[async_trait]
impl SecretStore for NullStore {
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
}

#[async_trait]
impl SessionStore for NullStore {
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

    async fn is_session_ended(&self, _: &str) -> Result<bool, StoreError> {
        Ok(false)
    }
}

#[async_trait]
impl TaskStore for NullStore {
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

    async fn load(&self, _: &OrgId) -> Result<BTreeMap<AgentId, u64>, StoreError> {
        Ok(BTreeMap::new())
    }
}

#[async_trait]
impl TenantStore for NullStore {
    async fn tenants(&self) -> Result<Vec<CreatedTenant>, StoreError> {
        Ok(Vec::new())
    }

    async fn create_tenant(&self, _: &CreatedTenant) -> Result<bool, StoreError> {
        Ok(true)
    }

    async fn remove_tenant(&self, _: &Scope) -> Result<bool, StoreError> {
        Ok(false)
    }
}

#[async_trait]
impl TokenStore for NullStore {
    async fn tokens(&self) -> Result<Vec<Token>, StoreError> {
        Ok(Vec::new())
    }

    async fn put_token(&self, _: &Token) -> Result<(), StoreError> {
        Ok(())
    }

    async fn revoke_token(&self, _: &str, _: Timestamp) -> Result<Option<u64>, StoreError> {
        Ok(None)
    }
}

#[async_trait]
impl UsageStore for NullStore {
    async fn share_usage(&self, report: &UsageReport) -> Result<SharedUsage, StoreError> {
        let totals = report.counts.iter().map(|count| count.calls).collect();
        Ok(SharedUsage { totals, openings: Vec::new() })
    }
}

#[async_trait]
impl WebhookStore for NullStore {
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
}

#[async_trait]
impl FlowStore for NullStore {
    async fn flows(&self, _: Option<&Scope>) -> Result<Vec<Flow>, StoreError> {
        Ok(Vec::new())
    }

    async fn flow(&self, _: &Scope, _: &str, _: Option<u64>) -> Result<Option<Flow>, StoreError> {
        Ok(None)
    }

    async fn put_flow(&self, _: &Flow, expected: u64, _: &[Schedule]) -> Result<u64, StoreError> {
        Ok(expected + 1)
    }

    async fn remove_flow(&self, _: &Scope, _: &str) -> Result<Option<u64>, StoreError> {
        Ok(None)
    }

    async fn begin_run(&self, _: &FlowRun, _: &str, _: &[FlowStep]) -> Result<bool, StoreError> {
        Ok(true)
    }

    async fn take_run(&self, _: &TaskId, _: &str) -> Result<Option<RunRecord>, StoreError> {
        Ok(None)
    }

    async fn run(&self, _: &Scope, _: &TaskId) -> Result<Option<RunRecord>, StoreError> {
        Ok(None)
    }

    async fn runs(&self, _: &Scope, _: &RunFilter) -> Result<Vec<FlowRun>, StoreError> {
        Ok(Vec::new())
    }

    async fn change_run(&self, _: RunChange) -> Result<bool, StoreError> {
        Ok(true)
    }

    async fn cancel_run(&self, _: &TaskId, _: Timestamp) -> Result<Option<RunRecord>, StoreError> {
        Ok(None)
    }

    async fn wake_runs(&self, _: Timestamp, _: Timestamp, _: usize) -> Result<Vec<FlowRun>, StoreError> {
        Ok(Vec::new())
    }

    async fn schedules(&self, _: &Scope) -> Result<Vec<Schedule>, StoreError> {
        Ok(Vec::new())
    }

    async fn due_schedules(&self, _: &Lease, _: usize) -> Result<Vec<Schedule>, StoreError> {
        Ok(Vec::new())
    }

    async fn note_schedule(&self, _: &Schedule, _: &str) -> Result<bool, StoreError> {
        Ok(false)
    }
}

#[async_trait]
impl NodeStore for NullStore {
    async fn beat_node(&self, _: &Node) -> Result<NodeBeat, StoreError> {
        Ok(NodeBeat::Accepted { is_draining: false })
    }

    async fn nodes(&self, _: Timestamp) -> Result<Vec<NodeStatus>, StoreError> {
        Ok(Vec::new())
    }

    async fn drain_node(&self, _: &str, _: Option<&NodeDrain>) -> Result<bool, StoreError> {
        Ok(false)
    }

    async fn retire_node(&self, _: Runner) -> Result<(), StoreError> {
        Ok(())
    }
}

#[async_trait]
impl RelayStore for NullStore {
    async fn hold_program(&self, _: &str, candidates: &[Runner]) -> Result<Runner, StoreError> {
        Ok(candidates.first().copied().unwrap_or(Runner::NOBODY))
    }

    async fn program_holders(&self) -> Result<Vec<(String, Runner)>, StoreError> {
        Ok(Vec::new())
    }

    async fn put_relayed_call(&self, _: &RelayedCall) -> Result<(), StoreError> {
        Ok(())
    }

    async fn take_relayed_calls(&self, _: Runner) -> Result<Vec<RelayedCall>, StoreError> {
        Ok(Vec::new())
    }

    async fn put_relayed_events(&self, _: &str, _: u64, _: &[String]) -> Result<bool, StoreError> {
        Ok(false)
    }

    async fn relay_progress(&self, _: &str, _: u64) -> Result<Option<RelayProgress>, StoreError> {
        Ok(None)
    }

    async fn remove_relayed_call(&self, _: &str) -> Result<Option<bool>, StoreError> {
        Ok(None)
    }
}
