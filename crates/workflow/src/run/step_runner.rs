//! Execution of one step: one call, from its row to its end or its next question.
//!
//! The id of the task is stored before the call, so after a crash that task is searched: a finished one gives its result, an open
//! one is waited for, and only a missing one is started.

use std::{sync::Arc, time::Duration};

use rialto_engine::{CallHandle, CallRequest, CallStart, CallUpdate, DispatchRequest, Engine, redact};
use rialto_model::{
    backing::Backing,
    call::{CallTarget, Caller, EntryProtocol},
    event::QuestionKind,
    failure::{Failure, FailureKind},
    flow::StepQuestion,
    ids::TaskId,
    json::Json,
    message::Part,
    routing::DispatchFilter,
    task::{Task, TaskState},
    trace::Trace,
};
use tokio::{
    sync::Semaphore,
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;

use super::{definitions::WorkflowDefinitions, output::task_output, step_action::StepAction};

/// Timeout of a step without one; other limits are shorter.
const DEFAULT_STEP_TIMEOUT: Duration = Duration::from_secs(30 * 24 * 3_600);

/// A call that is refused because too much is under way is made again after so long, so often.
const RETRY_PAUSE: Duration = Duration::from_millis(250);
const MAX_RETRIES: u32 = 120;

/// Time for a cancelled step to report its end.
const STEP_CANCEL_GRACE: Duration = Duration::from_secs(10);

/// Context that all steps of a run share.
#[derive(Clone)]
pub(super) struct RunContext {
    pub(super) engine: Engine,
    pub(super) caller: Caller,
    pub(super) trace: Option<Arc<Trace>>,
    /// Finds the definitions that steps run.
    pub(super) book: Arc<WorkflowDefinitions>,
    /// Nesting depth of this run, and its maximum.
    pub(super) depth: u32,
    pub(super) max_depth: u32,
    /// Turns of this process.
    pub(super) turns: Arc<Semaphore>,
    /// Calls everything off.
    pub(super) cancel: CancellationToken,
}

/// Runner of one step.
pub(super) struct StepRunner {
    pub(super) context: RunContext,
    pub(super) task: TaskId,
    /// Name of the callee, for people.
    pub(super) called: String,
    pub(super) start: StepStart,
    /// True if it needs a free slot. A nested run does not: the steps it waits for need one.
    pub(super) takes_turn: bool,
    pub(super) timeout: Option<Duration>,
}

/// Start of a step.
pub(super) enum StepStart {
    /// First start.
    Begin(Box<StepAction>),
    /// Possibly started before. If not, it is started; if that is impossible, with this failure.
    Resume(Box<Result<StepAction, Failure>>),
    /// Message to its task.
    Answer(Vec<Part>),
}

/// End of an attempt, or a wait.
#[derive(Debug)]
pub(super) enum StepEnd {
    /// Completed.
    Done(Json),
    /// Waiting for an answer.
    Asked(StepQuestion),
    /// Failed.
    Failed(Failure),
    /// This process ends; the step does not.
    Stopped,
}

// === impl StepRunner ===

impl StepRunner {
    /// Does it. Answers the task that did it in the end: another one, when another agent was asked.
    pub(super) async fn run(mut self) -> (TaskId, StepEnd) {
        let turns = Arc::clone(&self.context.turns);
        // The semaphore is never closed.
        let _turn = if self.takes_turn { turns.acquire_owned().await.ok() } else { None };
        let deadline = Instant::now() + self.timeout.unwrap_or(DEFAULT_STEP_TIMEOUT);
        let end = match self.begin(deadline).await {
            Ok(StartedStep::Running(running)) => self.wait_for_call(running, deadline).await,
            Ok(StartedStep::Task(task)) => self.follow_task(*task, deadline).await,
            Err(failure) => Err(failure),
        };
        let end = match end {
            Ok(task) => self.step_end(&task),
            Err(_) if self.context.engine.running().is_stopping() => StepEnd::Stopped,
            Err(failure) => StepEnd::Failed(with_callee(&self.called, failure)),
        };
        (self.task, end)
    }

    async fn begin(&mut self, deadline: Instant) -> Result<StartedStep, Failure> {
        match std::mem::replace(&mut self.start, StepStart::Answer(Vec::new())) {
            StepStart::Begin(step_action) => self.call_with_retry(*step_action, deadline).await,
            StepStart::Resume(step_action) => match self.find_task_with_retry(deadline).await? {
                Some(task) => self.resume_task(task).await,
                None => self.call_with_retry((*step_action)?, deadline).await,
            },
            StepStart::Answer(parts) => {
                let (engine, caller) = (&self.context.engine, &self.context.caller);
                let worker = engine.tasks().target(caller, self.task.as_str()).await?;
                let target = CallTarget { agent: worker.agent, skill: None };
                let mut request = CallRequest::message(caller.clone(), EntryProtocol::Library, target, parts);
                request.task = Some(self.task.to_string());
                request.timeout = Some(DEFAULT_STEP_TIMEOUT);
                Ok(StartedStep::Running(engine.calls().start(request).await?.into_handle()?))
            }
        }
    }

    /// Finds the task if it was started, with retries while the store is not available.
    async fn find_task_with_retry(&mut self, deadline: Instant) -> Result<Option<Task>, Failure> {
        loop {
            match self.find_task().await {
                Err(failure)
                    if failure.kind == FailureKind::StoreUnavailable
                        && !self.context.engine.running().is_stopping() => {}
                known => return known,
            }
            self.pause_before_retry(deadline).await?;
        }
    }

    /// Finds the task if it was started. Routed work may have moved to another task.
    async fn find_task(&mut self) -> Result<Option<Task>, Failure> {
        let (engine, caller) = (&self.context.engine, &self.context.caller);
        loop {
            let id = Some(self.task.to_string());
            let filter = DispatchFilter { id, limit: 1, ..DispatchFilter::default() };
            let dispatch = engine.dispatches().list(caller, filter).await?.pop();
            let last = dispatch.and_then(|mut dispatch| dispatch.attempts.pop()).map(|last| last.task_id);
            match engine.tasks().read(caller, last.as_ref().unwrap_or(&self.task).as_str()).await {
                Ok(task) => {
                    self.task = task.head.id.clone();
                    return Ok(Some(task));
                }
                // An agent was selected under this id and never called. The next id derives from it, so that other processes find it too.
                Err(failure) if failure.kind == FailureKind::NotFound && last.is_some() => {
                    self.task = TaskId::from([self.task.as_str(), "r"].concat());
                }
                Err(failure) if failure.kind == FailureKind::NotFound => return Ok(None),
                Err(failure) => return Err(failure),
            }
        }
    }

    /// Resumes a task that was started before, unless it is driven elsewhere.
    async fn resume_task(&self, task: Task) -> Result<StartedStep, Failure> {
        let (engine, caller) = (&self.context.engine, &self.context.caller);
        let is_open = !task.head.state.is_terminal() && !task.head.state.is_waiting();
        if !is_open || engine.lease().has_live_owner(&task.head).await? {
            return Ok(StartedStep::Task(Box::new(task)));
        }
        if task.head.remote.task_id.is_some() {
            return Ok(StartedStep::Running(engine.calls().follow_remote(caller, self.task.as_str()).await?));
        }
        engine.tasks().cancel(caller, self.task.as_str()).await?;
        let why = "the process stopped during this step, and the skill is not declared idempotent";
        Err(Failure::new(FailureKind::PeerFailed, why))
    }

    /// Makes the call, again if too much is under way just now or the store is not available.
    async fn call_with_retry(
        &self,
        step_action: StepAction,
        deadline: Instant,
    ) -> Result<StartedStep, Failure> {
        let mut refusals = 0;
        while refusals < MAX_RETRIES {
            match Box::pin(self.try_call(step_action.clone())).await {
                begun if self.context.engine.running().is_stopping() => {
                    return begun.map(StartedStep::Running);
                }
                Err(failure) if failure.kind == FailureKind::Busy => refusals += 1,
                // It was not made, and is as soon as the store is back.
                Err(failure) if failure.kind == FailureKind::StoreUnavailable => {}
                begun => return begun.map(StartedStep::Running),
            }
            self.pause_before_retry(deadline).await?;
        }
        Err(Failure::new(FailureKind::Busy, "too much is under way; run it again later"))
    }

    async fn try_call(&self, step_action: StepAction) -> Result<CallHandle, Failure> {
        let RunContext { engine, caller, .. } = &self.context;
        if !engine.tokens().is_valid(caller.token.as_ref()).await? {
            let message =
                "the token of this run's caller was revoked or has expired, so this step was not called";
            return Err(Failure::new(FailureKind::Denied, message));
        }
        let trace = self.context.trace.as_deref().cloned().map(Box::new);
        if let StepAction::Dispatch { work, parts } = step_action {
            let wanted = DispatchRequest {
                id: Some(self.task.clone()),
                timeout: Some(DEFAULT_STEP_TIMEOUT),
                trace,
                ..DispatchRequest::new(caller.clone(), EntryProtocol::Library, work, parts)
            };
            return engine.dispatches().start(wanted).await;
        }
        let synced = engine.policies().sync().await?;
        let target = self.context.resolve_target(&step_action)?;
        let is_nested = is_workflow_target(&target);
        if is_nested {
            self.context.enter_nested_run(&self.task, &step_action)?;
        }
        let parts = match step_action {
            StepAction::Invoke { parts, .. } | StepAction::Dispatch { parts, .. } => parts,
            StepAction::Tool { args, .. } => vec![Part::data(args)],
            StepAction::Nested { input, .. } => vec![Part::data(input)],
        };
        let request = CallRequest {
            id: Some(self.task.clone()),
            timeout: Some(DEFAULT_STEP_TIMEOUT),
            trace,
            synced: Some(synced),
            ..CallRequest::message(caller.clone(), EntryProtocol::Library, target, parts)
        };
        let begun = engine.calls().start(request).await.and_then(CallStart::into_handle);
        if is_nested && begun.is_err() {
            self.context.book.depth(&self.task);
        }
        begun
    }

    /// Waits for a call of ours.
    async fn wait_for_call(&mut self, mut running: CallHandle, deadline: Instant) -> Result<Task, Failure> {
        let mut last_words: Option<(Instant, Failure)> = None;
        loop {
            let until = last_words.as_ref().map_or(deadline, |(until, _)| *until);
            let step = tokio::select! {
                step = running.next() => step,
                () = self.context.cancel.cancelled(), if last_words.is_none() => {
                    running.cancel();
                    last_words = Some((Instant::now() + STEP_CANCEL_GRACE, cancelled_failure()));
                    continue;
                }
                () = sleep_until(until) => match last_words {
                    Some((_, failure)) => return Err(failure),
                    None => {
                        running.cancel();
                        last_words = Some((Instant::now() + STEP_CANCEL_GRACE, self.timeout_failure()));
                        continue;
                    }
                },
            };
            match (step, last_words.take()) {
                (CallUpdate::Event(_) | CallUpdate::Heartbeat, words) => last_words = words,
                (_, Some((_, failure))) => return Err(failure),
                (CallUpdate::Done(task), None) => {
                    self.task = task.head.id.clone();
                    return Ok(*task);
                }
                (CallUpdate::Failed(failure), None) => {
                    self.task = running.task().clone();
                    return Err(failure);
                }
            }
        }
    }

    /// Waits for a task that is driven elsewhere.
    async fn follow_task(&self, task: Task, deadline: Instant) -> Result<Task, Failure> {
        let (engine, caller, id) = (&self.context.engine, &self.context.caller, self.task.as_str());
        let mut task = task;
        while !task.head.state.is_terminal() && !task.head.state.is_waiting() {
            let (seen, mut following) = match engine.tasks().subscribe(caller, id).await {
                Err(failure)
                    if failure.kind == FailureKind::StoreUnavailable && !engine.running().is_stopping() =>
                {
                    self.pause_before_retry(deadline).await?;
                    continue;
                }
                followed => followed?,
            };
            task = seen;
            if task.head.state.is_terminal() || task.head.state.is_waiting() {
                break;
            }
            tokio::select! {
                news = following.next() => drop(news?),
                () = self.context.cancel.cancelled() => {
                    engine.tasks().cancel(caller, id).await?;
                    return Err(cancelled_failure());
                }
                () = sleep_until(deadline) => {
                    engine.tasks().cancel(caller, id).await?;
                    return Err(self.timeout_failure());
                }
            }
        }
        Ok(task)
    }

    /// Result of the step for the task's state.
    fn step_end(&self, task: &Task) -> StepEnd {
        let asks = |ask| StepQuestion { ask, message: task.message.clone(), expires: None };
        match task.head.state {
            TaskState::Completed => StepEnd::Done(task_output(task)),
            TaskState::InputRequired => StepEnd::Asked(asks(QuestionKind::Input)),
            TaskState::AuthRequired => StepEnd::Asked(asks(QuestionKind::Auth)),
            state => {
                let said = task
                    .failure
                    .clone()
                    .unwrap_or_else(|| Failure::new(FailureKind::PeerFailed, format!("the task is {state}")));
                StepEnd::Failed(with_callee(&self.called, said))
            }
        }
    }

    /// Waits before something is tried again.
    async fn pause_before_retry(&self, deadline: Instant) -> Result<(), Failure> {
        tokio::select! {
            () = tokio::time::sleep(RETRY_PAUSE) => Ok(()),
            () = sleep_until(deadline) => Err(self.timeout_failure()),
            () = self.context.cancel.cancelled() => Err(cancelled_failure()),
        }
    }

    fn timeout_failure(&self) -> Failure {
        let limit = self.timeout.unwrap_or(DEFAULT_STEP_TIMEOUT).as_millis();
        Failure::new(FailureKind::PeerTimeout, format!("it took longer than {limit} ms and was cancelled"))
    }
}

/// Started call or task to wait for.
enum StartedStep {
    Running(CallHandle),
    Task(Box<Task>),
}

// === impl RunContext ===

impl RunContext {
    /// True if a step runs another workflow: it needs no slot, because the steps it waits for do.
    pub(super) fn is_nested(&self, step_action: &StepAction) -> bool {
        match step_action {
            StepAction::Nested { .. } => true,
            StepAction::Dispatch { .. } => false,
            step_action => self.resolve_target(step_action).is_ok_and(|target| is_workflow_target(&target)),
        }
    }

    /// Input as it may be stored before guardrails have checked it: without secrets and blocked content.
    pub(super) fn redacted_input(&self, step_action: &StepAction) -> Json {
        let said = redact(&step_action.recorded_input());
        self.engine.guardrails().storable_args(self.resolve_target(step_action).ok().as_ref(), said)
    }

    /// Target of the call.
    fn resolve_target(&self, step_action: &StepAction) -> Result<CallTarget, Failure> {
        let Self { engine, caller, .. } = self;
        let not_found = |message: String| Failure::new(FailureKind::NotFound, message);
        match step_action {
            StepAction::Tool { name, .. } => engine.calls().resolve(caller, name).ok_or_else(|| {
                not_found(format!("there is no tool \"{name}\" here; `rialto tools list` shows them"))
            }),
            StepAction::Invoke { agent: key, skill, .. } => {
                let agent = engine.registry().find(&caller.scope, key).ok();
                let target = agent.map(|agent| CallTarget { agent, skill: None });
                let target = target
                    .filter(|target| engine.policies().may_discover(caller, target))
                    .ok_or_else(|| {
                        not_found(format!("no agent is known as \"{key}\"; `rialto agents list` shows them"))
                    })?;
                let Some(id) = skill else { return Ok(target) };
                let skill = target.agent.card.skill(id).cloned().ok_or_else(|| {
                    let known: Vec<&str> = target.agent.card.skills.iter().map(|it| it.id.as_str()).collect();
                    not_found(format!("agent {key} has no skill \"{id}\"; it has: {}", known.join(", ")))
                })?;
                Ok(CallTarget { skill: Some(skill), ..target })
            }
            StepAction::Nested { kind, name, .. } => {
                self.book.resolve_nested_target(engine, &caller.scope, *kind, name)
            }
            StepAction::Dispatch { .. } => Err(Failure::new(FailureKind::Internal, "no agent was named")),
        }
    }

    /// Lets a run begin inside this one, if it is not too deep.
    fn enter_nested_run(&self, task: &TaskId, step_action: &StepAction) -> Result<(), Failure> {
        if self.depth >= self.max_depth {
            let (called, most) = (step_action.callee_name(), self.max_depth);
            let message = format!(
                "{called} would be inside {most} others; that is as deep as [flows] max_depth allows"
            );
            return Err(Failure::new(FailureKind::Invalid, message));
        }
        self.book.set_depth(task, self.depth + 1);
        Ok(())
    }
}

fn is_workflow_target(target: &CallTarget) -> bool {
    matches!(target.agent.backing, Backing::Flow(_))
}

/// The failure, prefixed with the callee's name.
fn with_callee(called: &str, mut failure: Failure) -> Failure {
    if !failure.message.contains(called) {
        failure.message = format!("{called}: {}", failure.message);
    }
    failure
}

fn cancelled_failure() -> Failure {
    Failure::new(FailureKind::PeerFailed, "it was cancelled")
}
