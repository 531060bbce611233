//! Store that keeps nothing, for tests and measurements of everything but the store.

use std::{
    collections::BTreeMap,
    sync::{Arc, atomic::AtomicU64},
};

use async_trait::async_trait;
use jiff::Timestamp;
use rialto_model::{
    agent::{Agent, CardRevision, Probe},
    approval::{Approval, ApprovalFilter, ApprovalVerdict},
    audit_event::AuditEvent,
    call::CallerId,
    cost::{CostQuery, CostSum},
    credential::Secret,
    event::{Event, RecordedEvent},
    flow::{Flow, FlowRun, FlowSchedule, FlowStep, RunChange, RunFilter, RunRecord},
    ids::{AgentId, ApprovalId, OrgId, ProcessId, Scope, TaskId, TokenId},
    node::{Node, NodeBeat, NodeDrain, NodeStatus},
    policy::{PolicyChange, PolicySet, RecordedPolicyChange},
    push::PushSubscription,
    relay::{RelayProgress, RelayedCall},
    routing::{
        AssignmentEnd, Dispatch, DispatchFilter, EndedAssignment, RoutingStats as AgentStanding,
        RoutingStatsQuery, SlotReservation, SuccessRate,
    },
    store::{
        AgentStore, ApprovalStore, AuditFilter, AuditStore, ChainVerification, ConversationFilter,
        ConversationTasks, CreatedTenant, FlowStore, LeaseStore, MessageClaim, MessageStore, NodeStore,
        NumberedSessionMessage, PolicySourceStore, PushConfigStore, RelayStore, RetentionStore, RoutingStore,
        SealedSecret, SecretStore, SessionMessage, SessionStore, SharedUsage, Store, StoreError,
        StoredAuditEvent, SweepLimits, SweepReport, TaskAppend, TaskFilter, TaskStore, TenantStore, Token,
        TokenStore, UsageReport, UsageStore, WebhookStore,
    },
    task::TaskHead,
    webhook::{DeliveryLease, DeliveryState, LeaseOutcome, Webhook},
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

    async fn card_history(&self, _: &AgentId) -> Result<Vec<CardRevision>, StoreError> {
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

    async fn decide_approval(&self, _: &ApprovalId, _: &ApprovalVerdict) -> Result<bool, StoreError> {
        Ok(false)
    }

    async fn close_approval(&self, _: &ApprovalId) -> Result<bool, StoreError> {
        Ok(false)
    }
}

#[async_trait]
impl AuditStore for NullStore {
    async fn audit(&self, _: Vec<AuditEvent>) -> Result<(), StoreError> {
        Ok(())
    }

    async fn audit_records(&self, _: &Scope, _: &AuditFilter) -> Result<Vec<StoredAuditEvent>, StoreError> {
        Ok(Vec::new())
    }

    async fn audit_after(&self, _: u64, _: usize) -> Result<Vec<StoredAuditEvent>, StoreError> {
        Ok(Vec::new())
    }

    async fn last_audit_number(&self) -> Result<u64, StoreError> {
        Ok(0)
    }

    async fn verify_audit_with_progress(&self, _: Arc<AtomicU64>) -> Result<ChainVerification, StoreError> {
        Ok(ChainVerification::Sound { records: 0, last: 0, seal: String::new() })
    }

    async fn costs(&self, _: &Scope, _: &CostQuery) -> Result<Vec<CostSum>, StoreError> {
        Ok(Vec::new())
    }
}

#[async_trait]
impl LeaseStore for NullStore {
    async fn acquire_lease(&self, _: ProcessId, _: Timestamp) -> Result<(), StoreError> {
        Ok(())
    }

    async fn renew(&self, _: ProcessId, _: Timestamp) -> Result<bool, StoreError> {
        Ok(true)
    }

    async fn is_process_alive(&self, _: ProcessId, _: Timestamp) -> Result<bool, StoreError> {
        Ok(false)
    }

    async fn assign_task(&self, _: &TaskId, _: ProcessId) -> Result<(), StoreError> {
        Ok(())
    }

    async fn release_lease(&self, _: ProcessId) -> Result<(), StoreError> {
        Ok(())
    }

    async fn take_over_tasks(
        &self,
        _: ProcessId,
        _: Timestamp,
        _: usize,
    ) -> Result<Vec<TaskHead>, StoreError> {
        Ok(Vec::new())
    }

    async fn lock_process(&self, _: ProcessId) -> Result<bool, StoreError> {
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

    async fn tasks_by_message(&self, _: &Scope, _: &CallerId, _: &str) -> Result<Vec<TaskHead>, StoreError> {
        Ok(Vec::new())
    }

    async fn message_numbers(&self, _: ProcessId, _: usize) -> Result<Option<Vec<u64>>, StoreError> {
        Ok(None)
    }
}

#[async_trait]
impl PolicySourceStore for NullStore {
    async fn policies(&self) -> Result<PolicySet, StoreError> {
        Ok(PolicySet::default())
    }

    async fn change_policy(&self, _: &PolicyChange, _: u64) -> Result<u64, StoreError> {
        Ok(self.generation())
    }

    async fn policy_history(&self, _: &str) -> Result<Vec<RecordedPolicyChange>, StoreError> {
        Ok(Vec::new())
    }
}

#[async_trait]
impl PushConfigStore for NullStore {
    async fn put_push(&self, _: &PushSubscription) -> Result<(), StoreError> {
        Ok(())
    }

    async fn pushes(&self, _: &TaskId) -> Result<Vec<PushSubscription>, StoreError> {
        Ok(Vec::new())
    }

    async fn remove_push(&self, _: &TaskId, _: &str) -> Result<bool, StoreError> {
        Ok(false)
    }

    async fn due_pushes(&self, _: &DeliveryLease, _: usize) -> Result<Vec<PushSubscription>, StoreError> {
        Ok(Vec::new())
    }

    async fn record_push_delivery(&self, _: &PushSubscription, _: &str) -> Result<bool, StoreError> {
        Ok(false)
    }

    async fn push_tokens(&self) -> Result<Vec<TokenId>, StoreError> {
        Ok(Vec::new())
    }

    async fn remove_pushes_with_token(&self, _: &TokenId) -> Result<u64, StoreError> {
        Ok(0)
    }

    async fn dead_pushes(&self, _: &Scope, _: usize) -> Result<Vec<PushSubscription>, StoreError> {
        Ok(Vec::new())
    }
}

#[async_trait]
impl RetentionStore for NullStore {
    async fn org_bytes(&self) -> Result<BTreeMap<OrgId, u64>, StoreError> {
        Ok(BTreeMap::new())
    }

    async fn sweep(&self, _: SweepLimits) -> Result<SweepReport, StoreError> {
        Ok(SweepReport::default())
    }
}

#[async_trait]
impl RoutingStore for NullStore {
    async fn routing_stats(
        &self,
        _: &RoutingStatsQuery,
    ) -> Result<BTreeMap<AgentId, AgentStanding>, StoreError> {
        Ok(BTreeMap::new())
    }

    async fn success_rates(
        &self,
        _: &OrgId,
        _: &AgentId,
        _: usize,
    ) -> Result<Vec<(String, SuccessRate)>, StoreError> {
        Ok(Vec::new())
    }

    async fn reserve(&self, _: &SlotReservation) -> Result<bool, StoreError> {
        Ok(true)
    }

    async fn end_assignment(&self, _: &TaskId, _: &AssignmentEnd) -> Result<bool, StoreError> {
        Ok(false)
    }

    async fn ended_assignments(&self, _: usize) -> Result<Vec<EndedAssignment>, StoreError> {
        Ok(Vec::new())
    }

    async fn dispatches(&self, _: &Scope, _: &DispatchFilter) -> Result<Vec<Dispatch>, StoreError> {
        Ok(Vec::new())
    }
}

#[async_trait]
impl SecretStore for NullStore {
    async fn secrets(&self) -> Result<Vec<SealedSecret>, StoreError> {
        Ok(Vec::new())
    }

    async fn put_secrets(&self, _: Vec<SealedSecret>) -> Result<u64, StoreError> {
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
    async fn open_task(&self, _: &TaskHead, _: Vec<AuditEvent>) -> Result<(), StoreError> {
        Ok(())
    }

    async fn begin_task(&self, _: &TaskHead, _: &[Event], _: Vec<AuditEvent>) -> Result<(), StoreError> {
        Ok(())
    }

    async fn append(&self, _: TaskAppend) -> Result<(), StoreError> {
        Ok(())
    }

    async fn task(&self, _: &Scope, _: &str) -> Result<Option<TaskHead>, StoreError> {
        Ok(None)
    }

    async fn events(&self, _: &TaskId, _: u64) -> Result<Vec<RecordedEvent>, StoreError> {
        Ok(Vec::new())
    }

    async fn tasks(&self, _: &Scope, _: &TaskFilter) -> Result<Vec<TaskHead>, StoreError> {
        Ok(Vec::new())
    }

    async fn conversation_tasks(
        &self,
        _: &Scope,
        _: &ConversationFilter,
    ) -> Result<ConversationTasks, StoreError> {
        Ok(ConversationTasks::default())
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

    async fn lease_webhook(&self, _: &str, _: &DeliveryLease) -> Result<LeaseOutcome, StoreError> {
        Ok(LeaseOutcome::Gone)
    }

    async fn record_webhook_delivery(&self, _: &str, _: &str, _: &DeliveryState) -> Result<bool, StoreError> {
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

    async fn put_flow(&self, _: &Flow, expected: u64, _: &[FlowSchedule]) -> Result<u64, StoreError> {
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

    async fn schedules(&self, _: &Scope) -> Result<Vec<FlowSchedule>, StoreError> {
        Ok(Vec::new())
    }

    async fn due_schedules(&self, _: &DeliveryLease, _: usize) -> Result<Vec<FlowSchedule>, StoreError> {
        Ok(Vec::new())
    }

    async fn record_schedule_run(&self, _: &FlowSchedule, _: &str) -> Result<bool, StoreError> {
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

    async fn retire_node(&self, _: ProcessId) -> Result<(), StoreError> {
        Ok(())
    }
}

#[async_trait]
impl RelayStore for NullStore {
    async fn hold_program(&self, _: &str, candidates: &[ProcessId]) -> Result<ProcessId, StoreError> {
        Ok(candidates.first().copied().unwrap_or(ProcessId::NOBODY))
    }

    async fn program_holders(&self) -> Result<Vec<(String, ProcessId)>, StoreError> {
        Ok(Vec::new())
    }

    async fn put_relayed_call(&self, _: &RelayedCall) -> Result<(), StoreError> {
        Ok(())
    }

    async fn take_relayed_calls(&self, _: ProcessId) -> Result<Vec<RelayedCall>, StoreError> {
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
