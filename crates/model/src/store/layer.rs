//! Wraps every operation of a store alike: with a deadline, or with faults in a test.
//!
//! [`Layered`] is the one place that names all operations. A layer only says what is done around each of them.

use std::{
    collections::BTreeMap,
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};

use async_trait::async_trait;

use super::{
    AuditFilter, Audited, CreatedTenant, Entry, MessageClaim, NumberedSessionMessage, Sealed, SessionMessage,
    SharedUsage, Store, StoreError, StoreProblem, Sweep, Swept, TalkFilter, Talks, TaskFilter, Token,
    UsageReport, Verdict,
};
use crate::{
    agent::{Agent, OldCard, Probe},
    approval::{Approval, ApprovalFilter, Decided},
    call::CallerId,
    clock::Timestamp,
    cost::{CostQuery, CostSum},
    credential::Secret,
    event::{Event, Recorded},
    flow::{Flow, FlowRun, FlowStep, FlowStore, RunChange, RunFilter, RunRecord, Schedule},
    ids::{AgentId, ApprovalId, OrgId, Runner, Scope, TaskId, TokenId},
    node::{Node, NodeBeat, NodeDrain, NodeStatus, NodeStore},
    policy::{PolicyChange, PolicySet, PolicyVersion},
    push::Push,
    relay::{RelayProgress, RelayStore, RelayedCall},
    routing::{
        Dispatch, DispatchFilter, PlayEnd, Posterior, Reservation, Standing as AgentStanding, StandingQuery,
        Unsettled,
    },
    task::TaskHead,
    verb::VerbEvent,
    webhook::{Lease, Leased, Standing, Webhook},
};

/// Work that is done around each operation of a store.
pub trait StoreLayer: Send + Sync + 'static {
    /// The store below.
    fn store(&self) -> &dyn Store;

    /// Does the work of an operation, which is named like its method.
    fn wrap<'a, T: Send + 'a>(
        &'a self,
        operation: &'static str,
        work: impl Future<Output = Result<T, StoreError>> + Send + 'a,
    ) -> impl Future<Output = Result<T, StoreError>> + Send + 'a;
}

/// A store with a layer around every operation.
#[derive(Clone, Debug)]
pub struct Layered<L>(pub L);

macro_rules! layered {
    (impl $port:ident { $($head:item)* } $(
        async fn $name:ident(&self $(, $argument:ident: $type:ty)*) -> $answer:ty;
    )*) => {
        #[async_trait]
        impl<L: StoreLayer> $port for Layered<L> {
            $($head)*
            $(
                async fn $name(&self $(, $argument: $type)*) -> Result<$answer, StoreError> {
                    self.0.wrap(stringify!($name), self.0.store().$name($($argument),*)).await
                }
            )*
        }
    };
}

layered! {
    impl Store {
        fn generation(&self) -> u64 {
            self.0.store().generation()
        }

        fn lease(&self) -> Duration {
            self.0.store().lease()
        }

        fn sees_deaths(&self) -> bool {
            self.0.store().sees_deaths()
        }

        async fn problem(&self) -> Option<StoreProblem> {
            self.0.store().problem().await
        }
    }
    async fn touch(&self) -> u64;
    async fn agents(&self) -> Vec<Agent>;
    async fn put_agent(&self, agent: &Agent, expected: Option<u64>) -> u64;
    async fn remove_agent(&self, id: &AgentId) -> Option<u64>;
    async fn card_history(&self, id: &AgentId) -> Vec<OldCard>;
    async fn record_probe(&self, probe: &Probe) -> ();
    async fn probes(&self, id: &AgentId, limit: usize) -> Vec<Probe>;
    async fn open_task(&self, head: &TaskHead, audit: Vec<VerbEvent>) -> ();
    async fn begin_task(&self, head: &TaskHead, first: &[Event], audit: Vec<VerbEvent>) -> ();
    async fn append(&self, entry: Entry) -> ();
    async fn task(&self, scope: &Scope, id: &str) -> Option<TaskHead>;
    async fn events(&self, task: &TaskId, after: u64) -> Vec<Recorded>;
    async fn tasks(&self, scope: &Scope, filter: &TaskFilter) -> Vec<TaskHead>;
    async fn talks(&self, scope: &Scope, filter: &TalkFilter) -> Talks;
    async fn tasks_of_message(&self, scope: &Scope, caller: &CallerId, message: &str) -> Vec<TaskHead>;
    async fn messages(&self, runner: Runner, limit: usize) -> Option<Vec<u64>>;
    async fn claim_message(&self, claim: &MessageClaim) -> Option<MessageClaim>;
    async fn release_message(&self, claim: &MessageClaim) -> ();
    async fn put_session_message(&self, message: &SessionMessage) -> ();
    async fn session_messages(&self, after: u64, limit: usize) -> Vec<NumberedSessionMessage>;
    async fn last_session_message(&self) -> u64;
    async fn remove_session_message(&self, number: u64) -> ();
    async fn is_session_ended(&self, session: &str) -> bool;
    async fn share_usage(&self, report: &UsageReport) -> SharedUsage;
    async fn beat(&self, runner: Runner, until: Timestamp) -> ();
    async fn renew(&self, runner: Runner, until: Timestamp) -> bool;
    async fn attend(&self, runner: Runner) -> bool;
    async fn is_at_work(&self, runner: Runner, now: Timestamp) -> bool;
    async fn claim(&self, task: &TaskId, runner: Runner) -> ();
    async fn retire(&self, runner: Runner) -> ();
    async fn take_over(&self, runner: Runner, now: Timestamp, limit: usize) -> Vec<TaskHead>;
    async fn load(&self, org: &OrgId) -> BTreeMap<AgentId, u64>;
    async fn standings(&self, query: &StandingQuery) -> BTreeMap<AgentId, AgentStanding>;
    async fn works(&self, org: &OrgId, agent: &AgentId, limit: usize) -> Vec<(String, Posterior)>;
    async fn reserve(&self, reservation: &Reservation) -> bool;
    async fn end_play(&self, task: &TaskId, end: &PlayEnd) -> bool;
    async fn unsettled_plays(&self, limit: usize) -> Vec<Unsettled>;
    async fn dispatches(&self, scope: &Scope, filter: &DispatchFilter) -> Vec<Dispatch>;
    async fn audit(&self, events: Vec<VerbEvent>) -> ();
    async fn audit_trail(&self, scope: &Scope, filter: &AuditFilter) -> Vec<Audited>;
    async fn audit_after(&self, record: u64, limit: usize) -> Vec<Audited>;
    async fn audit_end(&self) -> u64;
    async fn verify_audit_in_sight(&self, reached: Arc<AtomicU64>) -> Verdict;
    async fn costs(&self, scope: &Scope, query: &CostQuery) -> Vec<CostSum>;
    async fn org_bytes(&self) -> BTreeMap<OrgId, u64>;
    async fn sweep(&self, sweep: Sweep) -> Swept;
    async fn tenants(&self) -> Vec<CreatedTenant>;
    async fn create_tenant(&self, tenant: &CreatedTenant) -> bool;
    async fn remove_tenant(&self, scope: &Scope) -> bool;
    async fn tokens(&self) -> Vec<Token>;
    async fn put_token(&self, token: &Token) -> ();
    async fn revoke_token(&self, id: &str, at: Timestamp) -> Option<u64>;
    async fn secrets(&self) -> Vec<Sealed>;
    async fn put_secrets(&self, secrets: Vec<Sealed>) -> u64;
    async fn remove_secret(&self, name: &str) -> Option<u64>;
    async fn seed(&self, name: &str, fresh: &Secret) -> Secret;
    async fn policies(&self) -> PolicySet;
    async fn change_policy(&self, change: &PolicyChange, expected: u64) -> u64;
    async fn policy_history(&self, name: &str) -> Vec<PolicyVersion>;
    async fn webhooks(&self) -> Vec<Webhook>;
    async fn put_webhook(&self, webhook: &Webhook) -> u64;
    async fn remove_webhook(&self, id: &str) -> Option<u64>;
    async fn retry_webhook(&self, id: &str) -> Option<u64>;
    async fn lease_webhook(&self, id: &str, lease: &Lease) -> Leased;
    async fn note_webhook(&self, id: &str, holder: &str, standing: &Standing) -> bool;
    async fn put_push(&self, push: &Push) -> ();
    async fn pushes(&self, task: &TaskId) -> Vec<Push>;
    async fn remove_push(&self, task: &TaskId, id: &str) -> bool;
    async fn due_pushes(&self, lease: &Lease, limit: usize) -> Vec<Push>;
    async fn note_push(&self, push: &Push, holder: &str) -> bool;
    async fn push_tokens(&self) -> Vec<TokenId>;
    async fn remove_pushes_of(&self, token: &TokenId) -> u64;
    async fn dead_pushes(&self, scope: &Scope, limit: usize) -> Vec<Push>;
    async fn put_approval(&self, approval: &Approval) -> u64;
    async fn approvals(&self, filter: &ApprovalFilter) -> Vec<Approval>;
    async fn decide_approval(&self, id: &ApprovalId, decided: &Decided) -> bool;
    async fn settle_approval(&self, id: &ApprovalId) -> bool;
}

layered! {
    impl FlowStore {}
    async fn flows(&self, scope: Option<&Scope>) -> Vec<Flow>;
    async fn flow(&self, scope: &Scope, name: &str, version: Option<u64>) -> Option<Flow>;
    async fn put_flow(&self, flow: &Flow, expected: u64, schedules: &[Schedule]) -> u64;
    async fn remove_flow(&self, scope: &Scope, name: &str) -> Option<u64>;
    async fn begin_run(&self, run: &FlowRun, driver: &str, steps: &[FlowStep]) -> bool;
    async fn take_run(&self, id: &TaskId, driver: &str) -> Option<RunRecord>;
    async fn run(&self, scope: &Scope, id: &TaskId) -> Option<RunRecord>;
    async fn runs(&self, scope: &Scope, filter: &RunFilter) -> Vec<FlowRun>;
    async fn change_run(&self, change: RunChange) -> bool;
    async fn cancel_run(&self, id: &TaskId, at: Timestamp) -> Option<RunRecord>;
    async fn wake_runs(&self, now: Timestamp, again: Timestamp, limit: usize) -> Vec<FlowRun>;
    async fn schedules(&self, scope: &Scope) -> Vec<Schedule>;
    async fn due_schedules(&self, lease: &Lease, limit: usize) -> Vec<Schedule>;
    async fn note_schedule(&self, schedule: &Schedule, holder: &str) -> bool;
}

layered! {
    impl NodeStore {}
    async fn beat_node(&self, node: &Node) -> NodeBeat;
    async fn nodes(&self, now: Timestamp) -> Vec<NodeStatus>;
    async fn drain_node(&self, name: &str, drain: Option<&NodeDrain>) -> bool;
    async fn retire_node(&self, runner: Runner) -> ();
}

layered! {
    impl RelayStore {}
    async fn hold_program(&self, program: &str, candidates: &[Runner]) -> Runner;
    async fn program_holders(&self) -> Vec<(String, Runner)>;
    async fn put_relayed_call(&self, call: &RelayedCall) -> ();
    async fn take_relayed_calls(&self, receiver: Runner) -> Vec<RelayedCall>;
    async fn put_relayed_events(&self, call: &str, known: u64, events: &[String]) -> bool;
    async fn relay_progress(&self, call: &str, known: u64) -> Option<RelayProgress>;
    async fn remove_relayed_call(&self, call: &str) -> Option<bool>;
}
