//! The workflow backend of the engine: a run is a task that can be queried, resumed and cancelled.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use futures::{
    FutureExt, Stream, StreamExt,
    future::BoxFuture,
    stream::{self, BoxStream},
};
use parking_lot::Mutex;
use rialto_engine::{Engine, WeakEngine, is_redacted, peer::Peer, redact};
use rialto_model::{
    call::{Call, Caller, CancelRequest, FollowRequest},
    event::{Event, EventAside, QuestionKind},
    failure::{Failure, FailureKind},
    flow::{FlowRun, FlowStep, RunRecord, RunState, StepState},
    ids::{Scope, TaskId, fresh},
    json::{Extra, Json},
    maps::FastMap,
    store::{Store, StoreError},
    trace::Trace,
};
use rialto_policy::Permitted;
use serde_json::json;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::{
    answer::RunAnswer,
    config::Config,
    definition_parser,
    definitions::{DRAFT_PREFIX, DefinitionError, WorkflowDefinitions, refuse_inactive},
    driver::{EVENT_QUEUE_LEN, RunDriver},
    execution_state::ExecutionState,
    run_events,
    step_runner::RunContext,
};
use crate::definition::Workflow;

/// Maximum number of inputs with secrets that are retained for waiting runs; others must be sent again.
const MAX_SECRET_INPUTS: usize = 1_024;

/// Maximum time in which a run cancels its steps.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(15);

/// Code with which A2A agents report an unknown task; a retry would not find it.
const TASK_NOT_FOUND_CODE: i64 = -32001;

/// Dependencies of the runner.
pub struct RunnerDeps {
    /// Store of definitions and runs.
    pub store: Arc<dyn Store>,
}

/// Runs workflows. Cloning shares it.
#[derive(Clone)]
pub struct WorkflowRunner(Arc<RunnerInner>);

struct RunnerInner {
    store: Arc<dyn Store>,
    book: Arc<WorkflowDefinitions>,
    config: Config,
    engine: OnceLock<WeakEngine>,
    /// Runs that are driven in this process.
    under_way: Mutex<FastMap<TaskId, ActiveRun>>,
    /// Inputs of runs that must not be stored.
    secrets: Mutex<FastMap<TaskId, Json>>,
    turns: Arc<Semaphore>,
}

/// Run that is driven in this process.
#[derive(Clone)]
struct ActiveRun {
    cancel: CancellationToken,
    over: watch::Receiver<bool>,
}

/// Requested run.
struct RunRequest {
    name: String,
    version: Option<u64>,
    definition: Option<String>,
    workflow: Arc<Workflow>,
    input: Json,
}

/// Parameters for resuming a run.
struct RunContinuation {
    run: TaskId,
    caller: Caller,
    trace: Option<Arc<Trace>>,
    answer: Option<RunAnswer>,
}

// === impl WorkflowRunner ===

impl WorkflowRunner {
    /// A runner that has not run anything yet.
    pub fn new(ports: RunnerDeps, config: Config) -> Self {
        let turns = Arc::new(Semaphore::new(config.parallel_steps.max(1)));
        Self(Arc::new(RunnerInner {
            book: Arc::new(WorkflowDefinitions::new(Arc::clone(&ports.store))),
            store: ports.store,
            config,
            engine: OnceLock::new(),
            under_way: Mutex::default(),
            secrets: Mutex::default(),
            turns,
        }))
    }

    /// From now on steps are calls of this engine, which itself holds the runner.
    pub fn connect(&self, engine: WeakEngine) {
        let _ = self.0.engine.set(engine);
    }

    /// The definitions.
    pub fn definitions(&self) -> &Arc<WorkflowDefinitions> {
        &self.0.book
    }

    /// True if a waiting run could continue without its caller. A wait for a login is checked at the agent.
    pub(super) async fn can_resume(&self, engine: &Engine, caller: &Caller, id: &TaskId) -> bool {
        let record = self.0.store.run(&caller.scope, id).await.ok().flatten();
        let Some(mut record) = record.filter(|record| record.run.state == RunState::Waiting) else {
            return false;
        };
        for step in record.steps.iter().filter(|step| step.state == StepState::Waiting) {
            let is_login = step.question.as_ref().is_some_and(|question| question.ask == QuestionKind::Auth);
            if let Some(task) = step.task.as_ref().filter(|_| is_login) {
                // A failed request gives no information about it.
                let _ = engine.tasks().get(caller, task.as_str()).await;
            }
        }
        has_expired_question(&record, engine) || release_answered_steps(engine, caller, &mut record).await
    }

    pub(super) fn store(&self) -> &Arc<dyn Store> {
        &self.0.store
    }

    pub(super) fn engine(&self) -> Result<Engine, Failure> {
        self.0.engine()
    }
}

impl Peer for WorkflowRunner {
    fn send(&self, call: Permitted<Call>) -> BoxStream<'static, Event> {
        let inner = Arc::clone(&self.0);
        let told = async move {
            let call = call.into_inner();
            let begun = match call.continues.task_id.clone() {
                Some(run) => {
                    let answer = Some(RunAnswer::from_call(&call));
                    let (run, caller) = (TaskId::from(run), call.caller);
                    inner.resume_run(RunContinuation { run, caller, trace: call.trace, answer }).await
                }
                None => inner.begin_run(call).await,
            };
            begun.unwrap_or_else(|failure| stream::iter([Event::failed(failure)]).boxed())
        };
        told.flatten_stream().boxed()
    }

    fn follow(&self, follow: Permitted<FollowRequest>) -> BoxStream<'static, Result<Event, Failure>> {
        let inner = Arc::clone(&self.0);
        let told = async move {
            let FollowRequest { caller, remote, to_the_end, .. } = follow.into_inner();
            let run = TaskId::from(remote.task_id.unwrap_or_default());
            let told = if to_the_end {
                inner.resume_run(RunContinuation { run, caller, trace: None, answer: None }).await
            } else {
                inner.snapshot_run(&caller.scope, &run).await
            };
            match told {
                Ok(events) => events.map(Ok).boxed(),
                Err(failure) => stream::iter([Err(failure)]).boxed(),
            }
        };
        told.flatten_stream().boxed()
    }

    fn cancel(&self, cancel: Permitted<CancelRequest>) -> BoxFuture<'static, Result<Vec<Event>, Failure>> {
        let inner = Arc::clone(&self.0);
        async move {
            let CancelRequest { caller, remote, .. } = cancel.into_inner();
            inner.cancel_run(&caller, &TaskId::from(remote.task_id.unwrap_or_default())).await
        }
        .boxed()
    }
}

// === impl RunnerInner ===

impl RunnerInner {
    fn engine(&self) -> Result<Engine, Failure> {
        let engine = self.engine.get().and_then(WeakEngine::upgrade);
        engine.ok_or_else(|| {
            Failure::new(FailureKind::Internal, "this process has no engine to run workflows with")
        })
    }

    /// Starts a run; an existing run of the same task is resumed.
    async fn begin_run(self: Arc<Self>, call: Call) -> Result<BoxStream<'static, Event>, Failure> {
        let engine = self.engine()?;
        let wanted = self.run_request(&call).await?;
        let known = self.store.run(&call.caller.scope, &call.task).await.map_err(store_failure)?;
        if known.is_some() {
            let (run, caller) = (call.task, call.caller);
            return self.resume_run(RunContinuation { run, caller, trace: call.trace, answer: None }).await;
        }
        let now = engine.now();
        let input = redact(&wanted.input);
        if is_redacted(&input) {
            self.remember_secrets(&call.task, &wanted.input);
        }
        let run = FlowRun {
            depth: self.book.depth(&call.task),
            id: call.task,
            scope: call.caller.scope.clone(),
            caller: call.caller.id.clone(),
            token: call.caller.token.clone(),
            hops: call.caller.hops,
            name: wanted.name,
            version: wanted.version,
            definition: wanted.definition,
            input,
            state: RunState::Running,
            output: None,
            failure: None,
            wakes_at: None,
            created_at: now,
            updated_at: now,
        };
        let execution = ExecutionState::new(wanted.workflow, wanted.input, Vec::new());
        let context = self.run_context(engine, call.caller, call.trace, run.depth);
        let (events, heard) = mpsc::channel(EVENT_QUEUE_LEN);
        let driver = RunDriver::new(context, Arc::clone(&self.store), run, execution, events);
        self.spawn_driver(driver, None);
        Ok(event_stream(heard).boxed())
    }

    /// Resumes a stored run, or reports its end.
    async fn resume_run(
        self: Arc<Self>,
        successor: RunContinuation,
    ) -> Result<BoxStream<'static, Event>, Failure> {
        let RunContinuation { run: id, mut caller, trace, answer } = successor;
        let engine = self.engine()?;
        self.wait_for_driver(&id).await;
        let driver_id = fresh();
        let record = self.store.take_run(&id, &driver_id).await.map_err(store_failure)?;
        let record = record.filter(|record| record.run.scope == caller.scope);
        let mut record = record.ok_or_else(|| run_not_found(&id))?;
        if answer.is_none() {
            // There is no new message, so the run continues with its original token, which another process may have received.
            caller.token.clone_from(&record.run.token);
        }
        caller.hops = caller.hops.max(record.run.hops);
        let workflow = self.workflow_of_run(&record.run).await?;
        let (done, total) = (finished_nodes(&record, &workflow), workflow.nodes.len());
        let has_moved = release_answered_steps(&engine, &caller, &mut record).await;
        let may_move = answer.is_some() || has_moved || has_expired_question(&record, &engine);
        if let Some(events) = run_events::final_events(&record, done, total)
            && (record.run.state.is_over() || !may_move)
        {
            return Ok(stream::iter(events).boxed());
        }
        let RunRecord { run, steps } = record;
        let known = self.secrets.lock().get(&id).cloned();
        let execution = ExecutionState::new(workflow, known.unwrap_or_else(|| run.input.clone()), steps);
        let context = self.run_context(engine, caller, trace, run.depth);
        let (events, heard) = mpsc::channel(EVENT_QUEUE_LEN);
        let driver = RunDriver::new(context, Arc::clone(&self.store), run, execution, events);
        self.spawn_driver(driver.with_holder(driver_id), answer);
        Ok(event_stream(heard).boxed())
    }

    /// Current state of a run, without advancing it.
    async fn snapshot_run(&self, scope: &Scope, id: &TaskId) -> Result<BoxStream<'static, Event>, Failure> {
        let record =
            self.store.run(scope, id).await.map_err(store_failure)?.ok_or_else(|| run_not_found(id))?;
        let workflow = self.workflow_of_run(&record.run).await?;
        let working = || vec![Event::Progress { working: true, message: None, aside: EventAside::default() }];
        let events =
            run_events::final_events(&record, finished_nodes(&record, &workflow), workflow.nodes.len());
        Ok(stream::iter(events.unwrap_or_else(working)).boxed())
    }

    /// Cancels a run with all of its steps.
    async fn cancel_run(&self, caller: &Caller, id: &TaskId) -> Result<Vec<Event>, Failure> {
        let engine = self.engine()?;
        let stood = self.store.cancel_run(id, engine.now()).await.map_err(store_failure)?;
        let under_way = self.under_way.lock().get(id).cloned();
        let is_here = under_way.is_some();
        if let Some(under_way) = under_way {
            under_way.cancel.cancel();
            let _ = tokio::time::timeout(CANCEL_TIMEOUT, self.wait_for_driver(id)).await;
        }
        self.secrets.lock().remove(id);
        let Some(record) = stood else {
            let record = self.store.run(&caller.scope, id).await.map_err(store_failure)?;
            let ended = record.and_then(|record| run_events::final_events(&record, 0, 0));
            return Ok(ended.unwrap_or_else(|| vec![run_events::canceled_event()]));
        };
        let is_open = |step: &&FlowStep| match step.state {
            StepState::Waiting => true,
            StepState::Running => !is_here,
            _ => false,
        };
        for task in record.steps.iter().filter(is_open).filter_map(|step| step.task.as_ref()) {
            // One that is over by now needs nothing more.
            if let Err(failure) = engine.tasks().cancel(caller, task.as_str()).await {
                tracing::debug!(task.id = %task, "step {task} of run {id} was not cancelled: {}", failure.kind.class());
            }
        }
        Ok(vec![run_events::canceled_event()])
    }

    /// Reads the requested run from a call.
    async fn run_request(&self, call: &Call) -> Result<RunRequest, Failure> {
        let id = call.target.skill_id();
        let named = |name: &str| name.to_owned();
        let (name, is_draft) = match id.split_once(':') {
            Some(("orchestration" | "pipeline", name)) => (named(name), false),
            Some((_, name)) if id.starts_with(DRAFT_PREFIX) => (named(name), true),
            _ => return self.inline_definition(id, &call.args()),
        };
        let flow = self.book.find_active(&call.caller.scope, &name).await.map_err(store_failure)?;
        let flow = flow.ok_or(DefinitionError::NotFound(name))?;
        if let Some(refusal) = refuse_inactive(&flow, is_draft) {
            return Err(refusal);
        }
        let workflow = self.book.workflow(&flow)?;
        let (name, version) = (flow.name.clone(), Some(flow.version));
        Ok(RunRequest { name, version, definition: None, workflow, input: call.args() })
    }

    /// A definition that comes with the call.
    fn inline_definition(&self, skill: &str, args: &Json) -> Result<RunRequest, Failure> {
        let invalid = |message: &str| Failure::new(FailureKind::Invalid, message);
        let members: Extra = args.read().map_err(|_| invalid("the arguments are not an object"))?;
        let member = |name: &str| members.get(name).cloned();
        let definition = match skill {
            "execute_dag" => {
                let own = members.iter().filter(|(name, _)| *name != "input");
                let own = own.map(|(name, value)| (name.to_owned(), value.clone()));
                Json::encode(&own.collect::<Extra>())
            }
            "orchestrate_workflow" => member("workflow").ok_or_else(|| invalid("`workflow` is missing"))?,
            _ => return Err(invalid("name the workflow or pipeline that is to be run")),
        };
        let text = definition.read::<String>().unwrap_or_else(|_| definition.get().to_owned());
        let workflow = definition_parser::parse_definition(&text, "dag", None)?;
        let input = member("input").unwrap_or_else(Json::empty_object);
        if is_redacted(&redact(&definition)) {
            return Err(invalid(
                "the definition contains something that looks like a secret; pass it as input",
            ));
        }
        let name = workflow.name.clone();
        Ok(RunRequest { name, version: None, definition: Some(text), workflow: Arc::new(workflow), input })
    }

    async fn workflow_of_run(&self, run: &FlowRun) -> Result<Arc<Workflow>, Failure> {
        match (&run.definition, run.version) {
            (Some(text), _) => Ok(Arc::new(definition_parser::parse_definition(text, &run.name, None)?)),
            (None, Some(version)) => self.book.version(&run.scope, &run.name, version).await,
            (None, None) => Err(Failure::new(FailureKind::Internal, "the run has no definition")),
        }
    }

    fn run_context(
        &self,
        engine: Engine,
        caller: Caller,
        trace: Option<Arc<Trace>>,
        depth: u32,
    ) -> RunContext {
        RunContext {
            engine,
            caller,
            trace,
            book: Arc::clone(&self.book),
            depth,
            max_depth: self.config.max_depth,
            turns: Arc::clone(&self.turns),
            cancel: CancellationToken::new(),
        }
    }

    /// Spawns the driver of a run, independent of its listeners.
    fn spawn_driver(self: &Arc<Self>, driver: RunDriver, answer: Option<RunAnswer>) {
        let (done, over) = watch::channel(false);
        let (id, cancel) = (driver.run.id.clone(), driver.context.cancel.clone());
        self.under_way.lock().insert(id.clone(), ActiveRun { cancel, over });
        let inner = Arc::clone(self);
        tokio::spawn(async move {
            let is_over = driver.run_to_end(answer).await;
            if is_over {
                inner.secrets.lock().remove(&id);
            }
            inner.under_way.lock().remove(&id);
            done.send_replace(true);
        });
    }

    /// Waits until no driver in this process has the run.
    async fn wait_for_driver(&self, id: &TaskId) {
        let under_way = self.under_way.lock().get(id).cloned();
        if let Some(mut under_way) = under_way {
            // An error also means that the driver has ended.
            let _ = under_way.over.wait_for(|is_over| *is_over).await;
        }
    }

    fn remember_secrets(&self, run: &TaskId, input: &Json) {
        let mut secrets = self.secrets.lock();
        if secrets.len() < MAX_SECRET_INPUTS {
            secrets.insert(run.clone(), input.clone());
        }
    }
}

fn event_stream(heard: mpsc::Receiver<Event>) -> impl Stream<Item = Event> {
    stream::unfold(heard, |mut heard| async move { heard.recv().await.map(|event| (event, heard)) })
}

/// Number of finished nodes of a run.
fn finished_nodes(record: &RunRecord, workflow: &Arc<Workflow>) -> usize {
    ExecutionState::new(Arc::clone(workflow), Json::null(), record.steps.clone()).finished_nodes()
}

/// Releases steps whose tasks were answered elsewhere. Returns true if there are any.
async fn release_answered_steps(engine: &Engine, caller: &Caller, record: &mut RunRecord) -> bool {
    let mut has_moved = false;
    for step in record.steps.iter_mut().filter(|step| step.state == StepState::Waiting) {
        if let Some(task) = &step.task
            && let Ok(task) = engine.tasks().read(caller, task.as_str()).await
            && !task.head.state.is_waiting()
        {
            (step.state, step.question, has_moved) = (StepState::Running, None, true);
        }
    }
    has_moved
}

/// True if the timeout of a question or approval has passed.
fn has_expired_question(record: &RunRecord, engine: &Engine) -> bool {
    let now = engine.now();
    let expires = |step: &FlowStep| step.question.as_ref().and_then(|question| question.expires);
    record.steps.iter().any(|it| it.state == StepState::Waiting && expires(it).is_some_and(|end| end <= now))
}

fn run_not_found(run: &TaskId) -> Failure {
    let data = Json::encode(&json!({ "remoteCode": TASK_NOT_FOUND_CODE }));
    Failure::new(FailureKind::NotFound, format!("there is no run {run}")).with_data(data)
}

fn store_failure(error: StoreError) -> Failure {
    DefinitionError::from(error).into()
}
