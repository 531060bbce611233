//! Workflows, as the engine calls them: a run is a task that can be asked about, gone on with and called off.

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
use rialto_engine::{Engine, FaintEngine, is_redacted, peer::Peer, redact};
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
    answer::Answer,
    board::Board,
    book::{Book, BookError, DRAFT, refusal},
    config::Config,
    driver::{Driver, UNHEARD},
    reading, tell,
    unit::Crew,
};
use crate::definition::Workflow;

/// So many inputs with secrets in them are remembered for runs that wait; the others must be given again.
const SECRETS: usize = 1_024;

/// For so long a run may take to call its steps off.
const LAST_WORDS: Duration = Duration::from_secs(15);

/// What A2A agents answer when they do not know a task: asking again would not bring it back.
const NO_SUCH_TASK: i64 = -32001;

/// What the runner needs from outside.
pub struct Ports {
    /// Keeps definitions and runs.
    pub store: Arc<dyn Store>,
}

/// Runs workflows. Cloning shares it.
#[derive(Clone)]
pub struct Runner(Arc<Inner>);

struct Inner {
    store: Arc<dyn Store>,
    book: Arc<Book>,
    config: Config,
    engine: OnceLock<FaintEngine>,
    /// The runs that go on in this process.
    under_way: Mutex<FastMap<TaskId, UnderWay>>,
    /// What runs were given that must not be written down.
    secrets: Mutex<FastMap<TaskId, Json>>,
    turns: Arc<Semaphore>,
}

/// A run that goes on in this process.
#[derive(Clone)]
struct UnderWay {
    cancel: CancellationToken,
    over: watch::Receiver<bool>,
}

/// What is to be run.
struct Wanted {
    name: String,
    version: Option<u64>,
    definition: Option<String>,
    workflow: Arc<Workflow>,
    input: Json,
}

/// Who goes on with a run.
struct Successor {
    run: TaskId,
    caller: Caller,
    trace: Option<Arc<Trace>>,
    answer: Option<Answer>,
}

// === impl Runner ===

impl Runner {
    /// A runner that has not run anything yet.
    pub fn new(ports: Ports, config: Config) -> Self {
        let turns = Arc::new(Semaphore::new(config.parallel_steps.max(1)));
        Self(Arc::new(Inner {
            book: Arc::new(Book::new(Arc::clone(&ports.store))),
            store: ports.store,
            config,
            engine: OnceLock::new(),
            under_way: Mutex::default(),
            secrets: Mutex::default(),
            turns,
        }))
    }

    /// From now on steps are calls of this engine, which itself holds the runner.
    pub fn connect(&self, engine: FaintEngine) {
        let _ = self.0.engine.set(engine);
    }

    /// The definitions.
    pub fn book(&self) -> &Arc<Book> {
        &self.0.book
    }

    /// Whether a run that waits could go on without its caller. Whoever waits for a login is asked about it.
    pub(super) async fn can_go_on(&self, engine: &Engine, caller: &Caller, id: &TaskId) -> bool {
        let record = self.0.store.run(&caller.scope, id).await.ok().flatten();
        let Some(mut record) = record.filter(|record| record.run.state == RunState::Waiting) else {
            return false;
        };
        for step in record.steps.iter().filter(|step| step.state == StepState::Waiting) {
            let is_login = step.question.as_ref().is_some_and(|question| question.ask == QuestionKind::Auth);
            if let Some(task) = step.task.as_ref().filter(|_| is_login) {
                // Trouble in asking says nothing about it.
                let _ = engine.task(caller, task.as_str()).await;
            }
        }
        has_expired(&record, engine) || free(engine, caller, &mut record).await
    }

    pub(super) fn store(&self) -> &Arc<dyn Store> {
        &self.0.store
    }

    pub(super) fn engine(&self) -> Result<Engine, Failure> {
        self.0.engine()
    }
}

impl Peer for Runner {
    fn send(&self, call: Permitted<Call>) -> BoxStream<'static, Event> {
        let inner = Arc::clone(&self.0);
        let told = async move {
            let call = call.into_inner();
            let begun = match call.continues.task_id.clone() {
                Some(run) => {
                    let answer = Some(Answer::of(&call));
                    let (run, caller) = (TaskId::from(run), call.caller);
                    inner.go_on(Successor { run, caller, trace: call.trace, answer }).await
                }
                None => inner.begin(call).await,
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
                inner.go_on(Successor { run, caller, trace: None, answer: None }).await
            } else {
                inner.look(&caller.scope, &run).await
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
            inner.call_off(&caller, &TaskId::from(remote.task_id.unwrap_or_default())).await
        }
        .boxed()
    }
}

// === impl Inner ===

impl Inner {
    fn engine(&self) -> Result<Engine, Failure> {
        let engine = self.engine.get().and_then(FaintEngine::get);
        engine.ok_or_else(|| {
            Failure::new(FailureKind::Internal, "this process has no engine to run workflows with")
        })
    }

    /// Begins a run; one that was begun before under the same task goes on.
    async fn begin(self: Arc<Self>, call: Call) -> Result<BoxStream<'static, Event>, Failure> {
        let engine = self.engine()?;
        let wanted = self.wanted(&call).await?;
        let known = self.store.run(&call.caller.scope, &call.task).await.map_err(stored)?;
        if known.is_some() {
            let (run, caller) = (call.task, call.caller);
            return self.go_on(Successor { run, caller, trace: call.trace, answer: None }).await;
        }
        let now = engine.now();
        let input = redact(&wanted.input);
        if is_redacted(&input) {
            self.remember(&call.task, &wanted.input);
        }
        let run = FlowRun {
            depth: self.book.depth_of(&call.task),
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
        let board = Board::new(wanted.workflow, wanted.input, Vec::new());
        let crew = self.crew(engine, call.caller, call.trace, run.depth);
        let (events, heard) = mpsc::channel(UNHEARD);
        let driver = Driver::new(crew, Arc::clone(&self.store), run, board, events);
        self.start(driver, None);
        Ok(listening(heard).boxed())
    }

    /// Goes on with a run that is written down, or tells how it ended.
    async fn go_on(self: Arc<Self>, successor: Successor) -> Result<BoxStream<'static, Event>, Failure> {
        let Successor { run: id, mut caller, trace, answer } = successor;
        let engine = self.engine()?;
        self.wait_for(&id).await;
        let driver_id = fresh();
        let record = self.store.take_run(&id, &driver_id).await.map_err(stored)?;
        let record = record.filter(|record| record.run.scope == caller.scope);
        let mut record = record.ok_or_else(|| forgotten(&id))?;
        if answer.is_none() {
            // Nobody has said anything new, so it goes on with the token that it had, in whichever process that was.
            caller.token.clone_from(&record.run.token);
        }
        caller.hops = caller.hops.max(record.run.hops);
        let workflow = self.workflow_of(&record.run).await?;
        let (done, total) = (over(&record, &workflow), workflow.nodes.len());
        let has_moved = free(&engine, &caller, &mut record).await;
        let may_move = answer.is_some() || has_moved || has_expired(&record, &engine);
        if let Some(events) = tell::ending(&record, done, total)
            && (record.run.state.is_over() || !may_move)
        {
            return Ok(stream::iter(events).boxed());
        }
        let RunRecord { run, steps } = record;
        let known = self.secrets.lock().get(&id).cloned();
        let board = Board::new(workflow, known.unwrap_or_else(|| run.input.clone()), steps);
        let crew = self.crew(engine, caller, trace, run.depth);
        let (events, heard) = mpsc::channel(UNHEARD);
        let driver = Driver::new(crew, Arc::clone(&self.store), run, board, events);
        self.start(driver.taken_as(driver_id), answer);
        Ok(listening(heard).boxed())
    }

    /// How a run stands. Nothing goes on by that.
    async fn look(&self, scope: &Scope, id: &TaskId) -> Result<BoxStream<'static, Event>, Failure> {
        let record = self.store.run(scope, id).await.map_err(stored)?.ok_or_else(|| forgotten(id))?;
        let workflow = self.workflow_of(&record.run).await?;
        let working = || vec![Event::Progress { working: true, message: None, aside: EventAside::default() }];
        let events = tell::ending(&record, over(&record, &workflow), workflow.nodes.len());
        Ok(stream::iter(events.unwrap_or_else(working)).boxed())
    }

    /// Calls a run off, with all of its steps.
    async fn call_off(&self, caller: &Caller, id: &TaskId) -> Result<Vec<Event>, Failure> {
        let engine = self.engine()?;
        let stood = self.store.cancel_run(id, engine.now()).await.map_err(stored)?;
        let under_way = self.under_way.lock().get(id).cloned();
        let is_here = under_way.is_some();
        if let Some(under_way) = under_way {
            under_way.cancel.cancel();
            let _ = tokio::time::timeout(LAST_WORDS, self.wait_for(id)).await;
        }
        self.secrets.lock().remove(id);
        let Some(record) = stood else {
            let record = self.store.run(&caller.scope, id).await.map_err(stored)?;
            let ended = record.and_then(|record| tell::ending(&record, 0, 0));
            return Ok(ended.unwrap_or_else(|| vec![tell::canceled()]));
        };
        let is_open = |step: &&FlowStep| match step.state {
            StepState::Waiting => true,
            StepState::Running => !is_here,
            _ => false,
        };
        for task in record.steps.iter().filter(is_open).filter_map(|step| step.task.as_ref()) {
            // One that is over by now needs nothing more.
            if let Err(failure) = engine.cancel(caller, task.as_str()).await {
                tracing::debug!(task.id = %task, "step {task} of run {id} was not called off: {}", failure.kind.class());
            }
        }
        Ok(vec![tell::canceled()])
    }

    /// What a call wants to be run.
    async fn wanted(&self, call: &Call) -> Result<Wanted, Failure> {
        let id = call.target.skill_id();
        let named = |name: &str| name.to_owned();
        let (name, is_draft) = match id.split_once(':') {
            Some(("orchestration" | "pipeline", name)) => (named(name), false),
            Some((_, name)) if id.starts_with(DRAFT) => (named(name), true),
            _ => return self.given(id, &call.args()),
        };
        let flow = self.book.find(&call.caller.scope, &name).await.map_err(stored)?;
        let flow = flow.ok_or(BookError::NotFound(name))?;
        if let Some(refusal) = refusal(&flow, is_draft) {
            return Err(refusal);
        }
        let workflow = self.book.workflow(&flow)?;
        let (name, version) = (flow.name.clone(), Some(flow.version));
        Ok(Wanted { name, version, definition: None, workflow, input: call.args() })
    }

    /// A definition that comes with the call.
    fn given(&self, skill: &str, args: &Json) -> Result<Wanted, Failure> {
        let invalid = |message: &str| Failure::new(FailureKind::Invalid, message);
        let members: Extra = args.read().map_err(|_| invalid("the arguments are not an object"))?;
        let member = |name: &str| members.get(name).cloned();
        let definition = match skill {
            "execute_dag" => {
                let own = members.iter().filter(|(name, _)| *name != "input");
                let own = own.map(|(name, value)| (name.to_owned(), value.clone()));
                Json::encode(&own.collect::<Extra>())
            }
            "orchestrate_workflow" => {
                member("workflow").ok_or_else(|| invalid("say what is to be run: `workflow` is missing"))?
            }
            _ => return Err(invalid("name the workflow or pipeline that is to be run")),
        };
        let text = definition.read::<String>().unwrap_or_else(|_| definition.get().to_owned());
        let workflow = reading::workflow(&text, "dag", None)?;
        let input = member("input").unwrap_or_else(Json::empty_object);
        if is_redacted(&redact(&definition)) {
            return Err(invalid("the definition holds something that looks like a secret; give it as input"));
        }
        let name = workflow.name.clone();
        Ok(Wanted { name, version: None, definition: Some(text), workflow: Arc::new(workflow), input })
    }

    async fn workflow_of(&self, run: &FlowRun) -> Result<Arc<Workflow>, Failure> {
        match (&run.definition, run.version) {
            (Some(text), _) => Ok(Arc::new(reading::workflow(text, &run.name, None)?)),
            (None, Some(version)) => self.book.version(&run.scope, &run.name, version).await,
            (None, None) => {
                Err(Failure::new(FailureKind::Internal, "the run does not say what it is a run of"))
            }
        }
    }

    fn crew(&self, engine: Engine, caller: Caller, trace: Option<Arc<Trace>>, depth: u32) -> Crew {
        Crew {
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

    /// Lets a run go on by itself, whoever listens.
    fn start(self: &Arc<Self>, driver: Driver, answer: Option<Answer>) {
        let (done, over) = watch::channel(false);
        let (id, cancel) = (driver.run.id.clone(), driver.crew.cancel.clone());
        self.under_way.lock().insert(id.clone(), UnderWay { cancel, over });
        let inner = Arc::clone(self);
        tokio::spawn(async move {
            let is_over = driver.drive(answer).await;
            if is_over {
                inner.secrets.lock().remove(&id);
            }
            inner.under_way.lock().remove(&id);
            done.send_replace(true);
        });
    }

    /// Waits until nobody in this process drives a run.
    async fn wait_for(&self, id: &TaskId) {
        let under_way = self.under_way.lock().get(id).cloned();
        if let Some(mut under_way) = under_way {
            // An error says that it is over too.
            let _ = under_way.over.wait_for(|is_over| *is_over).await;
        }
    }

    fn remember(&self, run: &TaskId, input: &Json) {
        let mut secrets = self.secrets.lock();
        if secrets.len() < SECRETS {
            secrets.insert(run.clone(), input.clone());
        }
    }
}

fn listening(heard: mpsc::Receiver<Event>) -> impl Stream<Item = Event> {
    stream::unfold(heard, |mut heard| async move { heard.recv().await.map(|event| (event, heard)) })
}

/// How many nodes of a run are over.
fn over(record: &RunRecord, workflow: &Arc<Workflow>) -> usize {
    Board::new(Arc::clone(workflow), Json::null(), record.steps.clone()).done()
}

/// Lets steps go on whose tasks do not wait any more: somebody has answered them elsewhere. Answers whether there are any.
async fn free(engine: &Engine, caller: &Caller, record: &mut RunRecord) -> bool {
    let mut has_moved = false;
    for step in record.steps.iter_mut().filter(|step| step.state == StepState::Waiting) {
        if let Some(task) = &step.task
            && let Ok(task) = engine.look(caller, task.as_str()).await
            && !task.head.state.is_waiting()
        {
            (step.state, step.question, has_moved) = (StepState::Running, None, true);
        }
    }
    has_moved
}

/// Whether something that a run waits for has ended by itself.
fn has_expired(record: &RunRecord, engine: &Engine) -> bool {
    let now = engine.now();
    let expires = |step: &FlowStep| step.question.as_ref().and_then(|question| question.expires);
    record.steps.iter().any(|it| it.state == StepState::Waiting && expires(it).is_some_and(|end| end <= now))
}

fn forgotten(run: &TaskId) -> Failure {
    let data = Json::encode(&json!({ "remoteCode": NO_SUCH_TASK }));
    Failure::new(FailureKind::NotFound, format!("there is no run {run}")).with_data(data)
}

fn stored(error: StoreError) -> Failure {
    BookError::from(error).into()
}
