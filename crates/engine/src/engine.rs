//! The crossing: the one road every call takes.

use std::{
    path::PathBuf,
    sync::{Arc, Weak, atomic::AtomicBool},
    time::Duration,
};

use parking_lot::Mutex;
use rialto_model::{
    agent::Health,
    audit_event::SkillInvocation,
    call::{Call, CallTarget, Caller, OriginalMessage},
    clock::Clock,
    event::RemoteIds,
    failure::{Failure, FailureKind},
    ids::{AgentId, TaskId, fresh},
    json::Json,
    maps::FastMap,
    message::MAX_PARTS,
    presence::CallerPresence,
    size::parts_size,
    store::Store,
    task::Task,
};
use rialto_policy::{Leave, Policy};
use tokio::time::Instant;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    approvals::PendingApprovals,
    authorize::AuthorizedCall,
    breakers::{BreakerPeer, BreakerStatus, Breakers},
    budget::TaskBudget,
    bus::Bus,
    call_handle::Running,
    call_run::{CallRun, RunParams},
    config::Config,
    conversation::RecentMessages,
    guardrails::{self, ActiveGuardrails},
    held_writes::HeldCounts,
    hops,
    journal::TaskJournal,
    limits::{self, CallLimits},
    node::NodeMembership,
    peer::Peer,
    policies::{ActivePolicies, PolicyLoader},
    process_lease::ProcessLease,
    registry::Registry,
    request::Request,
    routing::Router,
    schema::Schemas,
    seen_messages::SeenMessages,
    shutdown,
    storage_quota::StorageQuota,
    store_deadline::StoreDeadline,
    store_failure::{before, not_made, store_deadline},
    task_start::TaskStart,
};

pub(crate) use crate::store_failure::store_failure;

/// What an engine is made of.
pub struct Parts {
    /// Keeps everything.
    pub store: Arc<dyn Store>,
    /// The agents.
    pub registry: Arc<Registry>,
    /// Executes calls.
    pub peer: Arc<dyn Peer>,
    /// Who may do what, to begin with.
    pub policy: Policy,
    /// Reads the policies again when they may have changed; none keeps the first.
    pub policy_loader: Option<PolicyLoader>,
    /// Tells the time.
    pub clock: Arc<dyn Clock>,
    /// What can be set.
    pub config: Config,
}

/// The one road every call takes. Cloning shares it.
#[derive(Clone)]
pub struct Engine(Arc<EngineInner>);

/// An engine that does not stay because of this: for what the engine itself holds.
#[derive(Clone)]
pub struct FaintEngine(Weak<EngineInner>);

pub(crate) struct EngineInner {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) peer: Arc<dyn Peer>,
    pub(crate) policies: ActivePolicies,
    pub(crate) journal: TaskJournal,
    pub(crate) config: Config,
    /// What runs in this process, and how to stop it.
    pub(crate) running: Mutex<FastMap<TaskId, CancellationToken>>,
    bus: Arc<Bus>,
    pub(crate) schemas: Schemas,
    /// What is remembered for choosing agents.
    pub(crate) router: Router,
    /// Circuit breakers of agents that fail.
    pub(crate) breakers: Arc<Breakers>,
    pub(crate) limits: Arc<CallLimits>,
    /// How much orgs keep.
    pub(crate) quota: StorageQuota,
    /// Counts what runs, to be waited for at the end.
    pub(crate) tracker: TaskTracker,
    /// Whether this process answers for its tasks, and under which number.
    pub(crate) attendance: ProcessLease,
    /// This process among the nodes of the store.
    pub(crate) node: NodeMembership,
    /// The messages that began tasks here.
    pub(crate) messages: RecentMessages,
    /// Those that may have begun tasks before.
    pub(crate) seen_messages: SeenMessages,
    /// Whether what runs is handed back.
    pub(crate) closing: AtomicBool,
    /// The guardrails in force.
    pub(crate) guarding: ActiveGuardrails,
    /// Where calls wait for approval.
    pub(crate) approving: PendingApprovals,
}

// === impl Engine ===

impl Engine {
    /// Puts the parts together.
    pub fn new(parts: Parts) -> Self {
        let bus = Arc::new(Bus::default());
        let store = StoreDeadline::wrap(parts.store, parts.config.store_timeout());
        let max_held_bytes = parts.config.max_held_bytes;
        let journal = TaskJournal::new(Arc::clone(&store), Arc::clone(&bus), parts.clock, max_held_bytes);
        let (guarding, registry) = (ActiveGuardrails::default(), parts.registry);
        let breakers = Breakers::new(parts.config.routing.breaker_rules());
        let peer =
            BreakerPeer { peer: parts.peer, breakers: Arc::clone(&breakers), journal: journal.clone() };
        let peer = guardrails::peer::GuardedPeer {
            peer: Arc::new(peer),
            post: guarding.clone(),
            journal: journal.clone(),
            registry: Arc::clone(&registry),
        };
        Self(Arc::new(EngineInner {
            journal,
            store,
            registry,
            peer: Arc::new(peer),
            guarding,
            policies: ActivePolicies::new(parts.policy, parts.policy_loader, parts.config.policy_index),
            limits: CallLimits::new(&parts.config.limits),
            quota: StorageQuota::new(&parts.config.limits),
            router: Router::new(parts.config.routing.clone()),
            breakers,
            config: parts.config,
            running: Mutex::default(),
            bus,
            schemas: Schemas::default(),
            tracker: TaskTracker::new(),
            attendance: ProcessLease::default(),
            node: NodeMembership::default(),
            messages: RecentMessages::default(),
            seen_messages: SeenMessages::default(),
            closing: AtomicBool::new(false),
            approving: PendingApprovals::default(),
        }))
    }

    /// The same, for whoever must not keep it.
    pub fn faint(&self) -> FaintEngine {
        FaintEngine(Arc::downgrade(&self.0))
    }

    /// Lets callers and orgs make so many calls from now on.
    pub fn limit(&self, limits: &limits::Config) {
        self.0.limits.change(limits);
        self.0.quota.change(limits);
    }

    /// The agents.
    pub fn registry(&self) -> &Arc<Registry> {
        &self.0.registry
    }

    /// The verb bus, to subscribe to.
    pub fn bus(&self) -> &Bus {
        &self.0.bus
    }

    /// What time it is.
    pub fn now(&self) -> rialto_model::clock::Timestamp {
        self.0.journal.now()
    }

    /// Keeps a copy of results that the store could not take in a file of this folder, and records what processes held there that
    /// are gone. To be called before their tasks are taken over.
    pub async fn spill_held_in(&self, folder: PathBuf) -> Result<(), Failure> {
        self.0.journal.spill_in(folder);
        self.0.journal.recover_held().await.map_err(store_failure)
    }

    /// Counts of what waits for the store.
    pub fn held_counts(&self) -> HeldCounts {
        self.0.journal.held_counts()
    }

    /// State of an agent's circuit breaker in this process.
    pub fn breaker(&self, agent: &AgentId) -> BreakerStatus {
        self.0.breakers.status(agent, self.0.journal.now())
    }

    /// What was set.
    pub fn config(&self) -> &Config {
        &self.0.config
    }

    /// What is meant by the name of a skill, canonical or legacy.
    pub fn resolve(&self, caller: &Caller, name: &str) -> Option<CallTarget> {
        let target = self.0.registry.directory(&caller.scope).find(name)?.target();
        self.may_discover(caller, &target).then_some(target)
    }

    /// Starts a call. Trouble before the task is written down is an `Err`; after that, it is how the task ends.
    ///
    /// The call leaves when what is returned is waited for or let go of.
    pub async fn call(&self, mut request: Request) -> Result<Running, Failure> {
        if self.0.is_closing() {
            return Err(shutdown::closed());
        }
        let begun_at = Instant::now();
        let deadline = store_deadline(begun_at, self.wall_clock_of(&request));
        before(deadline, self.sync()).await?;
        let carried = request.trace.as_ref().map_or(0, |trace| trace.hops());
        request.caller.hops = request.caller.hops.max(carried);
        let most = self.0.config.max_hops;
        hops::check(&request.caller, most)?;
        before(deadline, self.0.quota.check(&self.0.store, &request.caller.scope.org)).await?;
        let now = self.0.journal.now();
        let mut seat = self.0.limits.admit(&request.caller, now)?;
        self.0.limits.admit_tool(&request.caller, &request.target, now)?;
        self.0.limits.count_self_call(&request.caller, &request.target, most, &mut seat)?;
        let goes_on = match &request.task {
            Some(_) => before(deadline, Box::pin(self.continued(&request))).await?,
            None => None,
        };
        let goes_on = match goes_on {
            Some(task) => match Box::pin(self.approval_of(&task)).await? {
                Some(approval) => {
                    let request = Box::pin(self.guard_said(request)).await?;
                    return Box::pin(self.said_to_approval(request, task, &approval, seat)).await;
                }
                None => Some(task),
            },
            None => None,
        };
        let (mut talk, answers) = (request.talk.take(), request.answers);
        let wants_begun = talk.as_ref().is_some_and(|talk| talk.wants_begun);
        let spoken = talk.as_ref().map(|talk| Arc::clone(&talk.spoken));
        let (wall_clock, call) = self.call_of(request, spoken, goes_on.as_ref())?;
        let AuthorizedCall { call, mut announcement, pre } = self.permit(call).await.map_err(not_made)?;
        guardrails::as_cleared(&mut talk, call.get());
        let start = TaskStart { goes_on, talk, answers, pre };
        let task = self.start_task(call.get(), start, &mut announcement, deadline).await?;
        self.0.quota.add(&task.head.scope.org, parts_size(&call.get().parts));
        let begun = wants_begun.then(|| Box::new(task.clone()));
        let said = call.get();
        let (caller, target, presence) = (said.caller.clone(), said.target.clone(), said.presence.clone());
        let events = match call {
            Leave::Now(call) => self.0.peer.send(call),
            Leave::OnceApproved(call, decision) => Box::pin(self.hold(call, &decision)).await,
        };
        let budget = TaskBudget::new(&self.0.config, &task);
        let leg =
            RunParams { caller, target, events, task, announcement, begun_at, wall_clock, seat, budget };
        Ok(Running::of(CallRun::begin(&self.0, leg), begun).attended(presence))
    }

    pub(crate) fn wall_clock_of(&self, request: &Request) -> Duration {
        let own = || self.0.config.wall_clock(&request.caller.scope.org, &request.target.agent);
        request.wall_clock.unwrap_or_else(own)
    }

    /// The task a request goes on with, if it does.
    async fn continued(&self, request: &Request) -> Result<Option<Task>, Failure> {
        let Some(id) = &request.task else { return Ok(None) };
        let task = self.own_task(&request.caller, id).await?;
        if request.answers.is_some_and(|version| version != task.head.version) {
            let message = format!("task {id} has gone on meanwhile, it is {}", task.head.state);
            return Err(Failure::new(FailureKind::Conflict, message));
        }
        if task.head.state.is_terminal() {
            let message = format!(
                "task {id} is {} and takes no more messages; start a new one, with its context_id to stay in the conversation",
                task.head.state
            );
            return Err(Failure::new(FailureKind::Conflict, message));
        }
        if !request.target.agent.backing.is_agent() && !task.head.state.is_waiting() {
            let message =
                format!("task {id} is {}; a tool takes messages only when it asks", task.head.state);
            return Err(Failure::new(FailureKind::Conflict, message));
        }
        if task.head.remote.task_id.is_none() && Box::pin(self.approval_of(&task)).await?.is_none() {
            let message = format!("task {id} cannot be continued: the agent has not given it a name yet");
            return Err(Failure::new(FailureKind::Conflict, message));
        }
        Ok(Some(task))
    }

    fn call_of(
        &self,
        request: Request,
        spoken: Option<Arc<OriginalMessage>>,
        goes_on: Option<&Task>,
    ) -> Result<(Duration, Call), Failure> {
        let agent = &request.target.agent;
        if agent.health == Health::Unreachable {
            let why = agent.last_error.as_deref().unwrap_or("it does not answer");
            let message = format!(
                "agent {} is unreachable: {why}; it is probed again by itself, or now with `rialto agents refresh {}`",
                agent.slug, agent.slug
            );
            return Err(Failure::new(FailureKind::PeerUnreachable, message));
        }
        self.0.breakers.check(agent, self.0.journal.now())?;
        if request.parts.len() > MAX_PARTS {
            let message = format!("a message has at most {MAX_PARTS} parts, not {}", request.parts.len());
            return Err(Failure::new(FailureKind::Invalid, message));
        }
        let wall_clock = self.wall_clock_of(&request);
        let session =
            ["a2a-", agent.id.as_str(), "-", request.target.skill_id(), "-", &fresh()].concat().into();
        let continues = match goes_on {
            Some(task) => task.head.remote.clone(),
            None => RemoteIds { task_id: None, context_id: request.context },
        };
        let hops = request.caller.hops;
        let call = Call {
            task: goes_on
                .map_or_else(|| request.id.unwrap_or_else(TaskId::fresh), |task| task.head.id.clone()),
            caller: request.caller,
            door: request.door,
            target: request.target,
            parts: request.parts,
            continues,
            session,
            trace: self.0.config.trace(request.trace.as_deref(), hops),
            spoken,
            presence: CallerPresence::until(std::time::Instant::now() + wall_clock),
        };
        Ok((wall_clock, call))
    }

    pub(crate) fn inner(&self) -> &Arc<EngineInner> {
        &self.0
    }
}

// === impl FaintEngine ===

impl FaintEngine {
    /// The engine, if it is still there.
    pub fn get(&self) -> Option<Engine> {
        self.0.upgrade().map(Engine)
    }
}

/// What is invoked, with arguments that may be shown.
pub(crate) fn verb_of(call: &Call, args: Json) -> SkillInvocation {
    SkillInvocation {
        verb: call.target.verb(),
        legacy_alias: call.target.legacy_alias(),
        org_id: call.caller.scope.org.shared(),
        agent_card_id: call.target.agent.id.shared(),
        agent_url: call.target.agent.url.clone(),
        skill_id: call.target.skill.as_ref().map_or_else(|| "".into(), |skill| skill.id.shared()),
        session_id: Arc::clone(&call.session),
        args,
        caller: call.caller.id.shared(),
        task_id: call.task.shared(),
        door: Some(call.door),
        trace: call.trace.clone(),
    }
}
