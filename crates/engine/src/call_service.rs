//! Start of calls: every call takes this path, whichever server it came in by.
//!
//! The steps are: synchronise with the store, check limits, find the task to continue, authorize, store the task, send. Before the task is
//! stored nothing has left this process, and a failure is an `Err`; after that, a failure is how the task ends.
//!
//! A request is synchronised with the store once. A server that resolves names does it before ([`PolicyService::sync`]) and gives the proof
//! to the request ([`CallRequest::synced`]); a request without one is synchronised here. Hop depth, limits and policy are checked here alone.

use std::sync::Arc;

use futures::FutureExt;
use rialto_model::{
    agent::Health,
    call::{Call, CallTarget, Caller, OriginalMessage},
    event::RemoteIds,
    failure::{Failure, FailureKind},
    ids::{AgentId, TaskId, fresh},
    message::MAX_PARTS,
    presence::CallerPresence,
    size::parts_size,
    task::Task,
};
use rialto_policy::Authorization;
use tokio::time::{Duration, Instant};

use crate::{
    approvals::ApprovalService,
    authorize::AuthorizedCall,
    breakers::{BreakerStatus, Breakers},
    budget::TaskBudget,
    call_handle::CallHandle,
    call_run::RunParams,
    call_runner::CallRunner,
    guardrails::{self, GuardrailService},
    hops,
    journal::audit_verb,
    limits::{self, CallLimits},
    message_dedup::MessageDedup,
    request::CallRequest,
    running_calls::stopping,
    schema::Schemas,
    store_failure::{before, not_made, store_deadline},
    takeover::stored_call,
    task_service::{TaskService, agent_removed, target_of},
    task_start::TaskStart,
};

#[cfg(doc)]
use crate::policies::PolicyService;

/// Starts calls.
pub struct CallService {
    pub(crate) runner: Arc<CallRunner>,
    pub(crate) tasks: Arc<TaskService>,
    pub(crate) messages: Arc<MessageDedup>,
    pub(crate) approvals: Arc<ApprovalService>,
    pub(crate) guardrails: Arc<GuardrailService>,
    pub(crate) schemas: Arc<Schemas>,
    pub(crate) limits: Arc<CallLimits>,
    pub(crate) breakers: Arc<Breakers>,
}

/// Result of starting a call.
#[derive(Debug)]
pub enum CallStart {
    /// The call has started. It leaves when its handle is waited for or dropped.
    Started(CallHandle),
    /// The message is a duplicate: it started or continued this task before.
    Duplicate(TaskId),
}

// === impl CallStart ===

impl CallStart {
    /// The handle of the call. A duplicate is a failure; a request without a conversation is never one.
    pub fn into_handle(self) -> Result<CallHandle, Failure> {
        match self {
            Self::Started(call) => Ok(call),
            Self::Duplicate(task) => {
                let message =
                    format!("the message was received before, and started or continued task {task}");
                Err(Failure::new(FailureKind::Conflict, message))
            }
        }
    }
}

// === impl CallService ===

impl CallService {
    /// Starts a call. A failure before the task is stored is an `Err`; after that, it is how the task ends.
    ///
    /// The call leaves when its handle is waited for or dropped. A message of a conversation that is a duplicate starts nothing.
    ///
    /// It is no async function: that would hold the request twice.
    pub fn start(
        self: &Arc<Self>,
        request: CallRequest,
    ) -> impl Future<Output = Result<CallStart, Failure>> + Send {
        match request.conversation {
            None => self.begin(request).map(|call| call.map(CallStart::Started)).left_future(),
            Some(_) => self.start_in_conversation(request).right_future(),
        }
    }

    /// Starts a call whose message is no duplicate.
    pub(crate) async fn begin(&self, mut request: CallRequest) -> Result<CallHandle, Failure> {
        if self.runner.running.is_stopping() {
            return Err(stopping());
        }
        let runner = &self.runner;
        let started_at = Instant::now();
        let deadline = store_deadline(started_at, self.timeout(&request));
        if request.synced.is_none() {
            before(deadline, runner.policies.sync()).await?;
        }
        let carried = request.trace.as_ref().map_or(0, |trace| trace.hops());
        request.caller.hops = request.caller.hops.max(carried);
        let max_hops = runner.config.max_hops;
        hops::check(&request.caller, max_hops)?;
        before(deadline, runner.quota.check(&runner.store, &request.caller.scope.org)).await?;
        let now = runner.journal.now();
        let mut permit = self.limits.admit(&request.caller, now)?;
        self.limits.admit_tool(&request.caller, &request.target, now)?;
        self.limits.count_self_call(&request.caller, &request.target, max_hops, &mut permit)?;
        let continued = match &request.task {
            Some(_) => before(deadline, Box::pin(self.find_continued(&request))).await?,
            None => None,
        };
        let continued = match continued {
            Some(task) => match Box::pin(self.approvals.find_pending(&task)).await? {
                Some(approval) => {
                    let request = Box::pin(self.guardrails.check_message(request)).await?;
                    return Box::pin(self.approvals.answer(request, task, &approval, permit)).await;
                }
                None => Some(task),
            },
            None => None,
        };
        let (mut conversation, answers) = (request.conversation.take(), request.answers);
        let wants_initial_task =
            conversation.as_ref().is_some_and(|conversation| conversation.wants_initial_task);
        let spoken = conversation.as_ref().map(|conversation| Arc::clone(&conversation.spoken));
        let (timeout, call) = self.make_call(request, spoken, continued.as_ref())?;
        let AuthorizedCall { call, mut span, pre } = self.authorize(call).await.map_err(not_made)?;
        guardrails::apply_redaction(&mut conversation, call.get());
        let start = TaskStart { continued, conversation, answers, pre };
        let task = self.start_task(call.get(), start, &mut span, deadline).await?;
        runner.quota.add(&task.head.scope.org, parts_size(&call.get().parts));
        let initial_task = wants_initial_task.then(|| Box::new(task.clone()));
        let said = call.get();
        let (caller, target, presence) = (said.caller.clone(), said.target.clone(), said.presence.clone());
        let events = match call {
            Authorization::Allow(call) => runner.backends.send(call),
            Authorization::NeedsApproval(call, decision) => {
                Box::pin(self.approvals.hold(call, &decision)).await
            }
        };
        let budget = TaskBudget::new(&runner.config, &task);
        let params = RunParams { caller, target, events, task, span, started_at, timeout, permit, budget };
        Ok(runner.start(params).with_initial_task(initial_task).with_presence(presence))
    }

    /// Resolves the canonical or legacy name of a skill to a target that the caller may see.
    pub fn resolve(&self, caller: &Caller, name: &str) -> Option<CallTarget> {
        let target = self.runner.registry.directory(&caller.scope).find(name)?.target();
        self.runner.policies.may_discover(caller, &target).then_some(target)
    }

    /// Changes the limits of callers and orgs.
    pub fn set_limits(&self, limits: &limits::Config) {
        self.limits.change(limits);
        self.runner.quota.change(limits);
    }

    /// State of an agent's circuit breaker in this process.
    pub fn breaker_status(&self, agent: &AgentId) -> BreakerStatus {
        self.breakers.status(agent, self.runner.journal.now())
    }

    /// Time that the caller of a request waits.
    pub(crate) fn timeout(&self, request: &CallRequest) -> Duration {
        let default = || self.runner.config.call_timeout(&request.caller.scope.org, &request.target.agent);
        request.timeout.unwrap_or_else(default)
    }

    /// Follows a caller's task at its agent, to its end or its next question, as if it had just been called.
    ///
    /// For a task that continued without a message: its agent waited for something that happened elsewhere, most often a login.
    pub async fn follow_remote(&self, caller: &Caller, id: &str) -> Result<CallHandle, Failure> {
        let runner = &self.runner;
        runner.policies.sync().await?;
        let mut task = self.tasks.read(caller, id).await?;
        let is_ours = runner.running.contains(&task.head.id);
        if is_ours || task.head.state.is_terminal() || task.head.remote.task_id.is_none() {
            let message = format!("task {id} cannot be followed at its agent; get_task tells how it stands");
            return Err(Failure::new(FailureKind::Conflict, message));
        }
        let permit = self.limits.admit(caller, runner.journal.now())?;
        let agent = self.tasks.find_agent(&task).ok_or_else(|| agent_removed(id, &task))?;
        let timeout = runner.config.call_timeout(&caller.scope.org, &agent);
        let target = target_of(agent, &task);
        let events = runner.follow_with_retry(&task, caller, &target);
        let events = events.map_err(|denied| Failure::new(FailureKind::Denied, denied))?;
        let verb = audit_verb(&stored_call(&task, caller, &target), task.head.args.clone());
        let span = runner.journal.take_up(verb, target.cost());
        let caller = caller.clone();
        runner.lease.claim(&mut task).await?;
        let budget = TaskBudget::fresh(&runner.config);
        let started_at = Instant::now();
        let params = RunParams { caller, target, events, task, span, started_at, timeout, permit, budget };
        Ok(runner.start(params))
    }

    /// Finds the task that a request continues, if it does, and refuses one that takes no message.
    async fn find_continued(&self, request: &CallRequest) -> Result<Option<Task>, Failure> {
        let Some(id) = &request.task else { return Ok(None) };
        let task = self.tasks.read(&request.caller, id).await?;
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
        if task.head.remote.task_id.is_none() && Box::pin(self.approvals.find_pending(&task)).await?.is_none()
        {
            let message = format!("task {id} cannot be continued: the agent has not given it a name yet");
            return Err(Failure::new(FailureKind::Conflict, message));
        }
        Ok(Some(task))
    }

    /// Makes the call of a request; refuses one whose agent cannot be reached.
    fn make_call(
        &self,
        request: CallRequest,
        spoken: Option<Arc<OriginalMessage>>,
        continued: Option<&Task>,
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
        self.breakers.check(agent, self.runner.journal.now())?;
        if request.parts.len() > MAX_PARTS {
            let message = format!("a message has at most {MAX_PARTS} parts, not {}", request.parts.len());
            return Err(Failure::new(FailureKind::Invalid, message));
        }
        let timeout = self.timeout(&request);
        let session =
            ["a2a-", agent.id.as_str(), "-", request.target.skill_id(), "-", &fresh()].concat().into();
        let continues = match continued {
            Some(task) => task.head.remote.clone(),
            None => RemoteIds { task_id: None, context_id: request.context },
        };
        let hops = request.caller.hops;
        let call = Call {
            task: continued
                .map_or_else(|| request.id.unwrap_or_else(TaskId::fresh), |task| task.head.id.clone()),
            caller: request.caller,
            door: request.door,
            target: request.target,
            parts: request.parts,
            continues,
            session,
            trace: self.runner.config.trace(request.trace.as_deref(), hops),
            spoken,
            presence: CallerPresence::until(std::time::Instant::now() + timeout),
        };
        Ok((timeout, call))
    }
}
