//! The crossing: the one road every call takes.

use std::{
    sync::{Arc, Weak, atomic::AtomicBool},
    time::Duration,
};

use parking_lot::Mutex;
use rialto_model::{
    agent::Health,
    call::{Call, Caller, Spoken, Target},
    clock::Clock,
    event::{Event, Remote},
    failure::{Failure, Kind},
    ids::{TaskId, fresh},
    json::Json,
    maps::FastMap,
    message::{ContentHash, MOST_PARTS, Message, Role},
    size::parts_size,
    store::{Store, StoreError},
    task::{Task, TaskHead, TaskState},
    verb::{Verb, VerbEvent},
};
use rialto_policy::{Leave, Policy};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    approving::Desk,
    attendance::Attendance,
    budget::TaskBudget,
    bus::Bus,
    closing,
    config::Config,
    conversation::Messages,
    guarding::{self, Post},
    hops,
    journal::Journal,
    limits::{self, Limits},
    peer::Peer,
    permitting::Cleared,
    policies::{Policies, PolicyLoader},
    redact::redact_message,
    registry::Registry,
    request::Request,
    routing::Router,
    run::{Leg, Run},
    running::Running,
    schema::Schemas,
    seen_messages::SeenMessages,
    storage_quota::StorageQuota,
};

/// How often something is said again to a task that goes on while it is said.
const TRIES: usize = 8;

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
pub struct Engine(Arc<Inner>);

/// An engine that does not stay because of this: for what the engine itself holds.
#[derive(Clone)]
pub struct FaintEngine(Weak<Inner>);

pub(crate) struct Inner {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) peer: Arc<dyn Peer>,
    pub(crate) policies: Policies,
    pub(crate) journal: Journal,
    pub(crate) config: Config,
    /// What runs in this process, and how to stop it.
    pub(crate) running: Mutex<FastMap<TaskId, CancellationToken>>,
    bus: Arc<Bus>,
    pub(crate) schemas: Schemas,
    /// What is remembered for choosing agents.
    pub(crate) router: Router,
    pub(crate) limits: Arc<Limits>,
    /// How much orgs keep.
    pub(crate) quota: StorageQuota,
    /// Counts what runs, to be waited for at the end.
    pub(crate) tracker: TaskTracker,
    /// Whether this process answers for its tasks, and under which number.
    pub(crate) attendance: Attendance,
    /// The messages that began tasks here.
    pub(crate) messages: Messages,
    /// Those that may have begun tasks before.
    pub(crate) seen_messages: SeenMessages,
    /// Whether what runs is handed back.
    pub(crate) closing: AtomicBool,
    /// The guardrails in force.
    pub(crate) guarding: Post,
    /// Where calls wait for approval.
    pub(crate) approving: Desk,
}

// === impl Engine ===

impl Engine {
    /// Puts the parts together.
    pub fn new(parts: Parts) -> Self {
        let bus = Arc::new(Bus::default());
        let journal = Journal::new(Arc::clone(&parts.store), Arc::clone(&bus), parts.clock);
        let (guarding, registry) = (Post::default(), parts.registry);
        let peer = guarding::peer::Guarded {
            peer: parts.peer,
            post: guarding.clone(),
            journal: journal.clone(),
            registry: Arc::clone(&registry),
        };
        Self(Arc::new(Inner {
            journal,
            store: parts.store,
            registry,
            peer: Arc::new(peer),
            guarding,
            policies: Policies::new(parts.policy, parts.policy_loader),
            limits: Limits::new(&parts.config.limits),
            quota: StorageQuota::new(&parts.config.limits),
            router: Router::new(parts.config.routing.clone()),
            config: parts.config,
            running: Mutex::default(),
            bus,
            schemas: Schemas::default(),
            tracker: TaskTracker::new(),
            attendance: Attendance::default(),
            messages: Messages::default(),
            seen_messages: SeenMessages::default(),
            closing: AtomicBool::new(false),
            approving: Desk::default(),
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

    /// What was set.
    pub fn config(&self) -> &Config {
        &self.0.config
    }

    /// What is meant by the name of a skill, canonical or legacy.
    pub fn resolve(&self, caller: &Caller, name: &str) -> Option<Target> {
        let target = self.0.registry.directory(&caller.scope).find(name)?.target();
        self.may_discover(caller, &target).then_some(target)
    }

    /// Starts a call. Trouble before the task is written down is an `Err`; after that, it is how the task ends.
    ///
    /// The call leaves when what is returned is waited for or let go of.
    pub async fn call(&self, mut request: Request) -> Result<Running, Failure> {
        if self.0.is_closing() {
            return Err(closing::closed());
        }
        self.sync().await?;
        let carried = request.trace.as_ref().map_or(0, |trace| trace.hops());
        request.caller.hops = request.caller.hops.max(carried);
        let most = self.0.config.max_hops;
        hops::check(&request.caller, most)?;
        self.0.quota.check(&self.0.store, &request.caller.scope.org).await?;
        let now = self.0.journal.now();
        let mut seat = self.0.limits.admit(&request.caller, now)?;
        self.0.limits.admit_tool(&request.caller, &request.target, now)?;
        self.0.limits.count_self_call(&request.caller, &request.target, most, &mut seat)?;
        let goes_on = self.continued(&request).await?;
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
        let Cleared { call, announcement, pre } = self.permit(call).await?;
        guarding::as_cleared(&mut talk, call.get());
        let task = match (goes_on, talk) {
            (Some(task), talk) => {
                let said = talk.map_or_else(
                    || (Message::new(fresh(), Role::User, call.get().parts.clone()), None),
                    |talk| (talk.spoken.message.clone(), talk.content_hash),
                );
                self.answer(task, said, pre, answers).await?
            }
            (None, Some(talk)) => {
                let head = self.head_of(call.get(), announcement.args()).await?;
                self.open_talk(head, *talk, pre).await?
            }
            (None, None) => {
                let head = self.head_of(call.get(), announcement.args()).await?;
                self.0.journal.open(&head, pre).await.map_err(store_failure)?;
                Task::new(head)
            }
        };
        self.0.quota.add(&task.head.scope.org, parts_size(&call.get().parts));
        let begun = wants_begun.then(|| Box::new(task.clone()));
        let (caller, target) = (call.get().caller.clone(), call.get().target.clone());
        let events = match call {
            Leave::Now(call) => self.0.peer.send(call),
            Leave::OnceApproved(call, decision) => Box::pin(self.hold(call, &decision)).await,
        };
        let budget = TaskBudget::new(&self.0.config, &task);
        let leg = Leg { caller, target, events, task, announcement, wall_clock, seat, budget };
        Ok(Running::of(Run::begin(&self.0, leg), begun))
    }

    /// The task a request goes on with, if it does.
    async fn continued(&self, request: &Request) -> Result<Option<Task>, Failure> {
        let Some(id) = &request.task else { return Ok(None) };
        let task = self.own_task(&request.caller, id).await?;
        if request.answers.is_some_and(|version| version != task.head.version) {
            let message = format!("task {id} has gone on meanwhile, it is {}", task.head.state);
            return Err(Failure::new(Kind::Conflict, message));
        }
        if task.head.state.is_terminal() {
            let message = format!(
                "task {id} is {} and takes no more messages; start a new one, with its context_id to stay in the conversation",
                task.head.state
            );
            return Err(Failure::new(Kind::Conflict, message));
        }
        if !request.target.agent.backing.is_agent() && !task.head.state.is_waiting() {
            let message =
                format!("task {id} is {}; a tool takes messages only when it asks", task.head.state);
            return Err(Failure::new(Kind::Conflict, message));
        }
        if task.head.remote.task_id.is_none() && Box::pin(self.approval_of(&task)).await?.is_none() {
            let message = format!("task {id} cannot be continued: the agent has not given it a name yet");
            return Err(Failure::new(Kind::Conflict, message));
        }
        Ok(Some(task))
    }

    fn call_of(
        &self,
        request: Request,
        spoken: Option<Arc<Spoken>>,
        goes_on: Option<&Task>,
    ) -> Result<(Duration, Call), Failure> {
        let agent = &request.target.agent;
        if agent.health == Health::Unreachable {
            let why = agent.last_error.as_deref().unwrap_or("it does not answer");
            let message = format!(
                "agent {} is unreachable: {why}; it is probed again by itself, or now with `rialto agents refresh {}`",
                agent.slug, agent.slug
            );
            return Err(Failure::new(Kind::PeerUnreachable, message));
        }
        if request.parts.len() > MOST_PARTS {
            let message = format!("a message has at most {MOST_PARTS} parts, not {}", request.parts.len());
            return Err(Failure::new(Kind::Invalid, message));
        }
        let wall_clock =
            request.wall_clock.unwrap_or_else(|| self.0.config.wall_clock(&request.caller.scope.org, agent));
        let session =
            ["a2a-", agent.id.as_str(), "-", request.target.skill_id(), "-", &fresh()].concat().into();
        let continues = match goes_on {
            Some(task) => task.head.remote.clone(),
            None => Remote { task_id: None, context_id: request.context },
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
        };
        Ok((wall_clock, call))
    }

    async fn head_of(&self, call: &Call, args: &Json) -> Result<TaskHead, Failure> {
        let now = self.0.journal.now();
        Ok(TaskHead {
            id: call.task.clone(),
            scope: call.caller.scope.clone(),
            caller: call.caller.id.clone(),
            door: call.door,
            agent: call.target.agent.id.clone(),
            agent_url: call.target.agent.url.clone(),
            skill: call.target.skill.as_ref().map(|skill| skill.id.clone()),
            session: call.session.clone(),
            args: args.clone(),
            context: None,
            message: None,
            runner: self.attend().await?,
            state: TaskState::Submitted,
            version: 0,
            remote: Remote { task_id: None, context_id: call.continues.context_id.clone() },
            created_at: now,
            updated_at: now,
        })
    }

    /// Writes down that the caller goes on with a task.
    async fn answer(
        &self,
        mut task: Task,
        (said, content_hash): (Message, Option<ContentHash>),
        pre: VerbEvent,
        answers: Option<u64>,
    ) -> Result<Task, Failure> {
        let message = redact_message(said, None);
        self.0.store.audit(vec![pre]).await.map_err(store_failure)?;
        let journal = &self.0.journal;
        let mut tries = 0;
        loop {
            let event = Event::Answered { message: message.clone(), content_hash: content_hash.clone() };
            match journal.record(&mut task, vec![event], None).await {
                Ok(()) => break,
                // It went on meanwhile. What was not meant for one version of it is said to it as it stands now.
                Err(StoreError::Conflict) if answers.is_none() && tries < TRIES => {
                    task = journal.reread(&task).await.map_err(store_failure)?;
                    if task.head.state.is_terminal() {
                        return Err(store_failure(StoreError::Conflict));
                    }
                    tries += 1;
                }
                Err(error) => return Err(store_failure(error)),
            }
        }
        self.claim(&mut task).await?;
        Ok(task)
    }

    pub(crate) fn inner(&self) -> &Arc<Inner> {
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
pub(crate) fn verb_of(call: &Call, args: Json) -> Verb {
    Verb {
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

pub(crate) fn store_failure(error: StoreError) -> Failure {
    match error {
        StoreError::Conflict => {
            Failure::new(Kind::Conflict, "the task was changed by somebody else; look at it again")
        }
        error => {
            tracing::error!(error = &error as &dyn std::error::Error, "the store failed: {error}");
            Failure::new(
                Kind::Internal,
                "the call could not be written down, so it was not made; see the server's log",
            )
        }
    }
}
