//! Does the work of one step: one call, from the moment its row is written to its end or its next question.
//!
//! The task's id was promised before, so after a crash the same task is looked for: one that is over gives its result, one that
//! is open is waited for, and only one that never was is begun.

use std::{sync::Arc, time::Duration};

use rialto_engine::{DispatchRequest, Engine, Request, Running, Step, redact};
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

use super::{act::Act, book::Book, render::output_of};

/// For so long a step is waited for when nobody says how long: somebody else gives up first.
const PATIENCE: Duration = Duration::from_secs(30 * 24 * 3_600);

/// A call that is refused because too much is under way is made again after so long, so often.
const PAUSE: Duration = Duration::from_millis(250);
const PAUSES: u32 = 120;

/// For so long a step that was called off may take to say so.
const LAST_WORDS: Duration = Duration::from_secs(10);

/// What all steps of a run share.
#[derive(Clone)]
pub(super) struct Crew {
    pub(super) engine: Engine,
    pub(super) caller: Caller,
    pub(super) trace: Option<Arc<Trace>>,
    /// Finds the definitions that steps run.
    pub(super) book: Arc<Book>,
    /// How many runs this one is inside of, and how many it may be.
    pub(super) depth: u32,
    pub(super) max_depth: u32,
    /// Turns of this process.
    pub(super) turns: Arc<Semaphore>,
    /// Calls everything off.
    pub(super) cancel: CancellationToken,
}

/// One step to be done.
pub(super) struct Unit {
    pub(super) crew: Crew,
    pub(super) task: TaskId,
    /// What is called, for people.
    pub(super) called: String,
    pub(super) wants: Wants,
    /// Whether it waits for a turn. What is nested does not: those that it waits for need them.
    pub(super) takes_turn: bool,
    pub(super) timeout: Option<Duration>,
}

/// How a step goes on.
pub(super) enum Wants {
    /// It begins.
    Begin(Box<Act>),
    /// It may have begun before. If it has not, it begins; if it cannot any more, this is why.
    Resume(Box<Result<Act, Failure>>),
    /// Its task is told this.
    Answer(Vec<Part>),
}

/// How a step ends, for now or for good.
#[derive(Debug)]
pub(super) enum End {
    /// It is done.
    Done(Json),
    /// It asks something.
    Asked(StepQuestion),
    /// It has failed.
    Failed(Failure),
    /// This process ends; the step does not.
    Stopped,
}

// === impl Unit ===

impl Unit {
    /// Does it. Answers the task that did it in the end: another one, when another agent was asked.
    pub(super) async fn run(mut self) -> (TaskId, End) {
        let turns = Arc::clone(&self.crew.turns);
        // Nobody closes it.
        let _turn = if self.takes_turn { turns.acquire_owned().await.ok() } else { None };
        let deadline = Instant::now() + self.timeout.unwrap_or(PATIENCE);
        let end = match self.begin(deadline).await {
            Ok(Begun::Running(running)) => self.hear(running, deadline).await,
            Ok(Begun::Task(task)) => self.follow(*task, deadline).await,
            Err(failure) => Err(failure),
        };
        let end = match end {
            Ok(task) => self.end_of(&task),
            Err(_) if self.crew.engine.is_closing() => End::Stopped,
            Err(failure) => End::Failed(named(&self.called, failure)),
        };
        (self.task, end)
    }

    async fn begin(&mut self, deadline: Instant) -> Result<Begun, Failure> {
        match std::mem::replace(&mut self.wants, Wants::Answer(Vec::new())) {
            Wants::Begin(act) => self.call(*act, deadline).await,
            Wants::Resume(act) => match self.known_in_time(deadline).await? {
                Some(task) => self.rejoin(task).await,
                None => self.call((*act)?, deadline).await,
            },
            Wants::Answer(parts) => {
                let (engine, caller) = (&self.crew.engine, &self.crew.caller);
                let worker = engine.worker(caller, self.task.as_str()).await?;
                let target = CallTarget { agent: worker.agent, skill: None };
                let mut request = Request::message(caller.clone(), EntryProtocol::Library, target, parts);
                request.task = Some(self.task.to_string());
                request.wall_clock = Some(PATIENCE);
                Ok(Begun::Running(engine.call(request).await?))
            }
        }
    }

    /// The task as it stands, if it was ever begun; asked for again while the store is not available.
    async fn known_in_time(&mut self, deadline: Instant) -> Result<Option<Task>, Failure> {
        loop {
            match self.known().await {
                Err(failure)
                    if failure.kind == FailureKind::StoreUnavailable && !self.crew.engine.is_closing() => {}
                known => return known,
            }
            self.pause(deadline).await?;
        }
    }

    /// The task as it stands, if it was ever begun. Work that names nobody may have gone to another one since.
    async fn known(&mut self) -> Result<Option<Task>, Failure> {
        let (engine, caller) = (&self.crew.engine, &self.crew.caller);
        loop {
            let id = Some(self.task.to_string());
            let filter = DispatchFilter { id, limit: 1, ..DispatchFilter::default() };
            let dispatch = engine.dispatches(caller, filter).await?.pop();
            let last = dispatch.and_then(|mut dispatch| dispatch.attempts.pop()).map(|last| last.task_id);
            match engine.look(caller, last.as_ref().unwrap_or(&self.task).as_str()).await {
                Ok(task) => {
                    self.task = task.head.id.clone();
                    return Ok(Some(task));
                }
                // Somebody was chosen under this id and never called. The next id is made of it, so that whoever comes after
                // us finds it too.
                Err(failure) if failure.kind == FailureKind::NotFound && last.is_some() => {
                    self.task = TaskId::from([self.task.as_str(), "r"].concat());
                }
                Err(failure) if failure.kind == FailureKind::NotFound => return Ok(None),
                Err(failure) => return Err(failure),
            }
        }
    }

    /// Goes on with a task that was begun before, unless somebody works on it, or will by itself.
    async fn rejoin(&self, task: Task) -> Result<Begun, Failure> {
        let (engine, caller) = (&self.crew.engine, &self.crew.caller);
        let is_open = !task.head.state.is_terminal() && !task.head.state.is_waiting();
        if !is_open || engine.is_cared_for(&task.head).await? {
            return Ok(Begun::Task(Box::new(task)));
        }
        if task.head.remote.task_id.is_some() {
            return Ok(Begun::Running(engine.rejoin(caller, self.task.as_str()).await?));
        }
        engine.cancel(caller, self.task.as_str()).await?;
        let why = "the process stopped while this ran, and nothing says that it can safely be run twice";
        Err(Failure::new(FailureKind::PeerFailed, why))
    }

    /// Makes the call, again if too much is under way just now or the store is not available.
    async fn call(&self, act: Act, deadline: Instant) -> Result<Begun, Failure> {
        let mut refusals = 0;
        while refusals < PAUSES {
            match Box::pin(self.try_call(act.clone())).await {
                begun if self.crew.engine.is_closing() => return begun.map(Begun::Running),
                Err(failure) if failure.kind == FailureKind::Busy => refusals += 1,
                // It was not made, and is as soon as the store is back.
                Err(failure) if failure.kind == FailureKind::StoreUnavailable => {}
                begun => return begun.map(Begun::Running),
            }
            self.pause(deadline).await?;
        }
        Err(Failure::new(FailureKind::Busy, "too much is under way; run it again later"))
    }

    async fn try_call(&self, act: Act) -> Result<Running, Failure> {
        let Crew { engine, caller, .. } = &self.crew;
        if !engine.may_go_on(caller.token.as_ref()).await? {
            let message = "the token that this run was begun with was revoked or has expired, so this step was not called";
            return Err(Failure::new(FailureKind::Denied, message));
        }
        let trace = self.crew.trace.as_deref().cloned().map(Box::new);
        if let Act::Dispatch { work, parts } = act {
            let wanted = DispatchRequest {
                id: Some(self.task.clone()),
                wall_clock: Some(PATIENCE),
                trace,
                ..DispatchRequest::new(caller.clone(), EntryProtocol::Library, work, parts)
            };
            return engine.dispatch(wanted).await;
        }
        engine.sync().await?;
        let target = self.crew.target_of(&act)?;
        let is_nested = is_flow(&target);
        if is_nested {
            self.crew.nest(&self.task, &act)?;
        }
        let parts = match act {
            Act::Invoke { parts, .. } | Act::Dispatch { parts, .. } => parts,
            Act::Tool { args, .. } => vec![Part::data(args)],
            Act::Nested { input, .. } => vec![Part::data(input)],
        };
        let request = Request {
            id: Some(self.task.clone()),
            wall_clock: Some(PATIENCE),
            trace,
            ..Request::message(caller.clone(), EntryProtocol::Library, target, parts)
        };
        let begun = engine.call(request).await;
        if is_nested && begun.is_err() {
            self.crew.book.depth_of(&self.task);
        }
        begun
    }

    /// Waits for a call of ours.
    async fn hear(&mut self, mut running: Running, deadline: Instant) -> Result<Task, Failure> {
        let mut last_words: Option<(Instant, Failure)> = None;
        loop {
            let until = last_words.as_ref().map_or(deadline, |(until, _)| *until);
            let step = tokio::select! {
                step = running.next() => step,
                () = self.crew.cancel.cancelled(), if last_words.is_none() => {
                    running.cancel();
                    last_words = Some((Instant::now() + LAST_WORDS, called_off()));
                    continue;
                }
                () = sleep_until(until) => match last_words {
                    Some((_, failure)) => return Err(failure),
                    None => {
                        running.cancel();
                        last_words = Some((Instant::now() + LAST_WORDS, self.late()));
                        continue;
                    }
                },
            };
            match (step, last_words.take()) {
                (Step::Event(_) | Step::Heartbeat, words) => last_words = words,
                (_, Some((_, failure))) => return Err(failure),
                (Step::Done(task), None) => {
                    self.task = task.head.id.clone();
                    return Ok(*task);
                }
                (Step::Failed(failure), None) => {
                    self.task = running.task().clone();
                    return Err(failure);
                }
            }
        }
    }

    /// Waits for a task that others look after.
    async fn follow(&self, task: Task, deadline: Instant) -> Result<Task, Failure> {
        let (engine, caller, id) = (&self.crew.engine, &self.crew.caller, self.task.as_str());
        let mut task = task;
        while !task.head.state.is_terminal() && !task.head.state.is_waiting() {
            let (seen, mut following) = match engine.follow(caller, id).await {
                Err(failure) if failure.kind == FailureKind::StoreUnavailable && !engine.is_closing() => {
                    self.pause(deadline).await?;
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
                () = self.crew.cancel.cancelled() => {
                    engine.cancel(caller, id).await?;
                    return Err(called_off());
                }
                () = sleep_until(deadline) => {
                    engine.cancel(caller, id).await?;
                    return Err(self.late());
                }
            }
        }
        Ok(task)
    }

    /// What the task's state means for the step.
    fn end_of(&self, task: &Task) -> End {
        let asks = |ask| StepQuestion { ask, message: task.message.clone(), expires: None };
        match task.head.state {
            TaskState::Completed => End::Done(output_of(task)),
            TaskState::InputRequired => End::Asked(asks(QuestionKind::Input)),
            TaskState::AuthRequired => End::Asked(asks(QuestionKind::Auth)),
            state => {
                let said = task
                    .failure
                    .clone()
                    .unwrap_or_else(|| Failure::new(FailureKind::PeerFailed, format!("the task is {state}")));
                End::Failed(named(&self.called, said))
            }
        }
    }

    /// Waits before something is tried again.
    async fn pause(&self, deadline: Instant) -> Result<(), Failure> {
        tokio::select! {
            () = tokio::time::sleep(PAUSE) => Ok(()),
            () = sleep_until(deadline) => Err(self.late()),
            () = self.crew.cancel.cancelled() => Err(called_off()),
        }
    }

    fn late(&self) -> Failure {
        let limit = self.timeout.unwrap_or(PATIENCE).as_millis();
        Failure::new(FailureKind::PeerTimeout, format!("it took longer than {limit} ms and was called off"))
    }
}

/// What is waited for.
enum Begun {
    Running(Running),
    Task(Box<Task>),
}

// === impl Crew ===

impl Crew {
    /// Whether a step runs another definition: then it takes no turn, because those that it waits for need them.
    pub(super) fn is_nested(&self, act: &Act) -> bool {
        match act {
            Act::Nested { .. } => true,
            Act::Dispatch { .. } => false,
            act => self.target_of(act).is_ok_and(|target| is_flow(&target)),
        }
    }

    /// What is kept of what a step says before anybody has looked through it: no secrets, and nothing that would be stopped.
    pub(super) fn kept(&self, act: &Act) -> Json {
        let said = redact(&act.input());
        self.engine.keepable(self.target_of(act).ok().as_ref(), said)
    }

    /// Who is called.
    fn target_of(&self, act: &Act) -> Result<CallTarget, Failure> {
        let Self { engine, caller, .. } = self;
        let not_found = |message: String| Failure::new(FailureKind::NotFound, message);
        match act {
            Act::Tool { name, .. } => engine.resolve(caller, name).ok_or_else(|| {
                not_found(format!("there is no tool \"{name}\" here; `rialto tools list` shows them"))
            }),
            Act::Invoke { agent: key, skill, .. } => {
                let agent = engine.registry().find(&caller.scope, key).ok();
                let target = agent.map(|agent| CallTarget { agent, skill: None });
                let target =
                    target.filter(|target| engine.may_discover(caller, target)).ok_or_else(|| {
                        not_found(format!("no agent is known as \"{key}\"; `rialto agents list` shows them"))
                    })?;
                let Some(id) = skill else { return Ok(target) };
                let skill = target.agent.card.skill(id).cloned().ok_or_else(|| {
                    let known: Vec<&str> = target.agent.card.skills.iter().map(|it| it.id.as_str()).collect();
                    not_found(format!("agent {key} has no skill \"{id}\"; it has: {}", known.join(", ")))
                })?;
                Ok(CallTarget { skill: Some(skill), ..target })
            }
            Act::Nested { kind, name, .. } => self.book.target(engine, &caller.scope, *kind, name),
            Act::Dispatch { .. } => Err(Failure::new(FailureKind::Internal, "nobody was named")),
        }
    }

    /// Lets a run begin inside this one, if it is not too deep.
    fn nest(&self, task: &TaskId, act: &Act) -> Result<(), Failure> {
        if self.depth >= self.max_depth {
            let (called, most) = (act.called(), self.max_depth);
            let message = format!(
                "{called} would be inside {most} others; that is as deep as [flows] max_depth allows"
            );
            return Err(Failure::new(FailureKind::Invalid, message));
        }
        self.book.promise(task, self.depth + 1);
        Ok(())
    }
}

fn is_flow(target: &CallTarget) -> bool {
    matches!(target.agent.backing, Backing::Flow(_))
}

/// The same failure, with the name of what was called.
fn named(called: &str, mut failure: Failure) -> Failure {
    if !failure.message.contains(called) {
        failure.message = format!("{called}: {}", failure.message);
    }
    failure
}

fn called_off() -> Failure {
    Failure::new(FailureKind::PeerFailed, "it was called off")
}
