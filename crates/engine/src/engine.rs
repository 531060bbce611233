//! The engine: the bundle that builds the services of the call pipeline and hands them out.
//!
//! Each service holds the few things it needs, and services depend on each other in one direction. From the bottom up:
//!
//! 1. Store, [`Registry`], journal (persists events, then publishes them), limits, circuit breakers, schemas.
//! 2. [`PolicyService`] (decisions, synchronisation with the store), [`ProcessLease`], [`GuardrailService`], [`RunningCalls`].
//! 3. `CallRunner`, the shared core: what a run of any task needs. It starts runs and knows nothing of the services above it. It is
//!    what breaks the circle between calls, which wait for approvals, and approvals, which resume calls.
//! 4. [`TaskService`], [`MessageDedup`], [`NodeService`], [`TokenChecker`], [`PushConfigService`].
//! 5. [`ApprovalService`] and [`TakeoverService`]: they resume tasks with the runner, not by starting calls.
//! 6. [`CallService`]: starts calls.
//! 7. [`DispatchService`] and [`AdminOverride`]: they start calls.
//!
//! Backends that call the engine again (workflows, placed programs) hold a [`WeakEngine`], because the engine holds them.

use std::sync::{Arc, Weak};

use rialto_model::{
    clock::{Clock, Timestamp},
    store::Store,
};
use rialto_policy::Policy;

use crate::{
    admin_override::AdminOverride,
    admin_record::AuditRecorder,
    approvals::ApprovalService,
    breakers::{BreakerPeer, Breakers},
    bus::Bus,
    call_runner::CallRunner,
    call_service::CallService,
    config::Config,
    guardrails::{self, ActiveGuardrails, GuardrailService},
    journal::TaskJournal,
    limits::CallLimits,
    message_dedup::MessageDedup,
    node::NodeService,
    peer::Peer,
    policies::{PolicyLoader, PolicyService},
    process_lease::ProcessLease,
    push_configs::PushConfigService,
    registry::Registry,
    routing::{DispatchService, Router},
    running_calls::RunningCalls,
    schema::Schemas,
    seeds::SharedSeeds,
    session_relay::SessionRelay,
    storage_quota::StorageQuota,
    store_deadline::StoreDeadline,
    takeover::TakeoverService,
    task_service::TaskService,
    token_validity::TokenChecker,
    usage_sharing::UsageSharing,
    visibility::VisibilityService,
};

/// Dependencies of an engine.
pub struct EngineDeps {
    /// Store of rows, tasks, events and the audit log.
    pub store: Arc<dyn Store>,
    /// Registry of agents and tools.
    pub registry: Arc<Registry>,
    /// Backends that execute calls.
    pub peer: Arc<dyn Peer>,
    /// The first policy set.
    pub policy: Policy,
    /// Loads the policies when they may have changed; none keeps the first set.
    pub policy_loader: Option<PolicyLoader>,
    /// Clock of all records.
    pub clock: Arc<dyn Clock>,
    /// Configuration of the engine.
    pub config: Config,
}

/// The services of the call pipeline. Cloning shares them.
#[derive(Clone)]
pub struct Engine(Arc<Services>);

/// Weak handle to the engine, for components the engine owns.
#[derive(Clone)]
pub struct WeakEngine(Weak<Services>);

/// The services, built once.
struct Services {
    registry: Arc<Registry>,
    config: Arc<Config>,
    clock: Arc<dyn Clock>,
    policies: Arc<PolicyService>,
    guardrails: Arc<GuardrailService>,
    lease: Arc<ProcessLease>,
    running: Arc<RunningCalls>,
    nodes: Arc<NodeService>,
    tasks: Arc<TaskService>,
    messages: Arc<MessageDedup>,
    tokens: Arc<TokenChecker>,
    push_configs: Arc<PushConfigService>,
    approvals: Arc<ApprovalService>,
    takeover: Arc<TakeoverService>,
    calls: Arc<CallService>,
    dispatches: Arc<DispatchService>,
    overrides: Arc<AdminOverride>,
    audit: Arc<AuditRecorder>,
    visibility: Arc<VisibilityService>,
    usage: Arc<UsageSharing>,
    sessions: Arc<SessionRelay>,
    seeds: Arc<SharedSeeds>,
}

// === impl Engine ===

impl Engine {
    /// Builds the services.
    #[expect(clippy::too_many_lines, reason = "a list of constructors in the order of their dependencies")]
    pub fn new(deps: EngineDeps) -> Self {
        let (registry, clock) = (deps.registry, deps.clock);
        let (config, bus) = (Arc::new(deps.config), Arc::new(Bus::default()));
        let store = StoreDeadline::wrap(deps.store, config.store_timeout());
        let journal =
            TaskJournal::new(Arc::clone(&store), Arc::clone(&bus), Arc::clone(&clock), config.max_held_bytes);
        let reloading = (config.policy_index, config.store_timeout());
        let policies =
            Arc::new(PolicyService::new(Arc::clone(&registry), deps.policy, deps.policy_loader, reloading));
        let (active, breakers) = (ActiveGuardrails::default(), Breakers::new(config.routing.breaker_rules()));
        let guarded = guardrails::peer::GuardedPeer {
            peer: Arc::new(BreakerPeer {
                peer: deps.peer,
                breakers: Arc::clone(&breakers),
                journal: journal.clone(),
            }),
            active: active.clone(),
            journal: journal.clone(),
            registry: Arc::clone(&registry),
        };
        let guardrails = Arc::new(GuardrailService::new(
            active,
            Arc::clone(&registry),
            Arc::clone(&policies),
            journal.clone(),
        ));
        let lease = Arc::new(ProcessLease::new(Arc::clone(&store), Arc::clone(&clock)));
        let running = Arc::new(RunningCalls::new(journal.clone()));
        let runner = Arc::new(CallRunner {
            store: Arc::clone(&store),
            journal: journal.clone(),
            registry: Arc::clone(&registry),
            policies: Arc::clone(&policies),
            backends: Arc::new(guarded),
            lease: Arc::clone(&lease),
            quota: Arc::new(StorageQuota::new(&config.limits)),
            running: Arc::clone(&running),
            config: Arc::clone(&config),
        });
        let tasks = Arc::new(TaskService::new(Arc::clone(&runner)));
        let messages = Arc::new(MessageDedup::new(
            Arc::clone(&store),
            Arc::clone(&registry),
            Arc::clone(&lease),
            (Arc::clone(&tasks), journal.clone()),
        ));
        let tokens = Arc::new(TokenChecker::new(Arc::clone(&store), Arc::clone(&clock)));
        let nodes = Arc::new(NodeService::new(
            Arc::clone(&store),
            Arc::clone(&registry),
            Arc::clone(&lease),
            journal.clone(),
        ));
        let audit = Arc::new(AuditRecorder::new(journal, bus));
        let approvals = Arc::new(ApprovalService::new(
            Arc::clone(&runner),
            Arc::clone(&tasks),
            Arc::clone(&tokens),
            Arc::clone(&nodes),
            Arc::clone(&audit),
        ));
        let takeover =
            Arc::new(TakeoverService::new(Arc::clone(&runner), Arc::clone(&tasks), Arc::clone(&nodes)));
        let limits = CallLimits::new(&config.limits);
        let calls = Arc::new(CallService {
            runner,
            tasks: Arc::clone(&tasks),
            messages: Arc::clone(&messages),
            approvals: Arc::clone(&approvals),
            guardrails: Arc::clone(&guardrails),
            schemas: Arc::new(Schemas::default()),
            limits: Arc::clone(&limits),
            breakers: Arc::clone(&breakers),
        });
        let router = Router::new(config.routing.clone());
        let in_calls = (Arc::clone(&calls), Arc::clone(&audit));
        Self(Arc::new(Services {
            push_configs: Arc::new(PushConfigService::new(
                Arc::clone(&store),
                Arc::clone(&tasks),
                Arc::clone(&tokens),
            )),
            dispatches: Arc::new(DispatchService::new(Arc::clone(&calls), router)),
            overrides: Arc::new(AdminOverride::new(
                Arc::clone(&store),
                Arc::clone(&policies),
                Arc::clone(&tasks),
                in_calls,
            )),
            visibility: Arc::new(VisibilityService::new(Arc::clone(&registry), Arc::clone(&policies))),
            usage: Arc::new(UsageSharing::new(Arc::clone(&store), limits, breakers, Arc::clone(&clock))),
            sessions: Arc::new(SessionRelay::new(Arc::clone(&store), Arc::clone(&clock))),
            seeds: Arc::new(SharedSeeds::new(store)),
            registry,
            config,
            clock,
            policies,
            guardrails,
            lease,
            running,
            nodes,
            tasks,
            messages,
            tokens,
            approvals,
            takeover,
            calls,
            audit,
        }))
    }

    /// Returns a weak handle.
    pub fn downgrade(&self) -> WeakEngine {
        WeakEngine(Arc::downgrade(&self.0))
    }

    /// Registry of agents and tools.
    pub fn registry(&self) -> &Arc<Registry> {
        &self.0.registry
    }

    /// Configuration of the engine.
    pub fn config(&self) -> &Config {
        &self.0.config
    }

    /// The current time of the engine's clock.
    pub fn now(&self) -> Timestamp {
        self.0.clock.now()
    }

    /// Starts calls.
    pub fn calls(&self) -> &Arc<CallService> {
        &self.0.calls
    }

    /// Gets, lists, cancels and subscribes to tasks.
    pub fn tasks(&self) -> &Arc<TaskService> {
        &self.0.tasks
    }

    /// Finds duplicates of messages, and tasks by message.
    pub fn messages(&self) -> &Arc<MessageDedup> {
        &self.0.messages
    }

    /// Calls that wait for approval.
    pub fn approvals(&self) -> &Arc<ApprovalService> {
        &self.0.approvals
    }

    /// Selects agents for work that names none.
    pub fn dispatches(&self) -> &Arc<DispatchService> {
        &self.0.dispatches
    }

    /// Operations on tasks of other callers.
    pub fn overrides(&self) -> &Arc<AdminOverride> {
        &self.0.overrides
    }

    /// The active policy set, and synchronisation with the store.
    pub fn policies(&self) -> &Arc<PolicyService> {
        &self.0.policies
    }

    /// The active guardrails.
    pub fn guardrails(&self) -> &Arc<GuardrailService> {
        &self.0.guardrails
    }

    /// What callers of a project can see.
    pub fn visibility(&self) -> &Arc<VisibilityService> {
        &self.0.visibility
    }

    /// Calls in progress in this process.
    pub fn running(&self) -> &Arc<RunningCalls> {
        &self.0.running
    }

    /// Lease of this process.
    pub fn lease(&self) -> &Arc<ProcessLease> {
        &self.0.lease
    }

    /// Takeover of the tasks of processes that are gone.
    pub fn takeover(&self) -> &Arc<TakeoverService> {
        &self.0.takeover
    }

    /// Nodes that share the store.
    pub fn nodes(&self) -> &Arc<NodeService> {
        &self.0.nodes
    }

    /// Validity of access tokens.
    pub fn tokens(&self) -> &Arc<TokenChecker> {
        &self.0.tokens
    }

    /// Push notification configs of tasks.
    pub fn push_configs(&self) -> &Arc<PushConfigService> {
        &self.0.push_configs
    }

    /// Audit log of administrative operations, and subscriptions to audit events.
    pub fn audit(&self) -> &Arc<AuditRecorder> {
        &self.0.audit
    }

    /// Exchange of call counts with other processes.
    pub fn usage(&self) -> &Arc<UsageSharing> {
        &self.0.usage
    }

    /// Relay of messages of MCP sessions.
    pub fn sessions(&self) -> &Arc<SessionRelay> {
        &self.0.sessions
    }

    /// Seeds of keys that all processes of the store share.
    pub fn seeds(&self) -> &Arc<SharedSeeds> {
        &self.0.seeds
    }
}

// === impl WeakEngine ===

impl WeakEngine {
    /// The engine, if it still exists.
    pub fn upgrade(&self) -> Option<Engine> {
        self.0.upgrade().map(Engine)
    }
}
