//! Makes a run go on, until it is over or nothing can go on before its caller says something.
//!
//! A turn has three parts, in this order: everything that may begin is put on the board ([`advance`]), all of it is written down at
//! once, and only then calls leave and the caller hears of it. Whoever finds out while writing that somebody else has the run
//! lets go of it at once.

mod advance;
mod approval;
mod local;
mod recording;

use std::{sync::Arc, time::Duration};

use futures::{FutureExt, StreamExt, future::BoxFuture, stream::FuturesUnordered};
use rialto_model::{
    clock::Timestamp,
    event::Event,
    failure::{Failure, FailureKind},
    flow::{FlowRun, FlowStep, RunChange, RunRecord, RunState, StepQuestion, StepState},
    ids::{TaskId, fresh},
    json::Json,
    store::{Store, StoreError},
};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until},
};

use super::{
    act,
    answer::Answer,
    board::{Board, Key},
    schedules::AGAIN,
    tell,
    unit::{Crew, End, Unit},
};

/// A run whose caller does not listen waits, once so much was not heard.
pub(super) const UNHEARD: usize = 256;

/// For so long steps that were called off may take to say so.
const LAST_WORDS: Duration = Duration::from_secs(12);

/// How often a run is looked at that somebody else has taken.
const LOOK: Duration = Duration::from_secs(1);

/// When nothing else ends a run.
const FAR_OFF: Duration = Duration::from_secs(365 * 24 * 3_600);

/// A run under way.
pub(super) struct Driver {
    pub(super) crew: Crew,
    pub(super) store: Arc<dyn Store>,
    pub(super) run: FlowRun,
    pub(super) board: Board,
    pub(super) events: mpsc::Sender<Event>,
    /// Whether it stands in the store.
    pub(super) is_written: bool,
    /// Our leave to write to it.
    id: String,
    /// What is to be written.
    changed: Vec<FlowStep>,
    /// What is to be begun once that is done.
    starting: Vec<(Key, Work)>,
    at_work: FuturesUnordered<BoxFuture<'static, (Key, Came)>>,
}

/// What is done for a step.
enum Work {
    /// Its call.
    Call(Box<Unit>),
    /// Waiting for its next attempt.
    Pause(Duration),
}

/// What came of it.
enum Came {
    /// Its call has ended, under this task.
    End(TaskId, Box<End>),
    /// It may be tried again.
    Again,
}

/// Why a driver stops.
enum Stop {
    /// It has nothing more to do.
    Over,
    /// It was called off here.
    CalledOff,
    /// The run is somebody else's, or was called off elsewhere.
    Taken,
    /// This process ends.
    Closing,
}

// === impl Driver ===

impl Driver {
    pub(super) fn new(
        crew: Crew,
        store: Arc<dyn Store>,
        run: FlowRun,
        board: Board,
        events: mpsc::Sender<Event>,
    ) -> Self {
        Self {
            crew,
            store,
            run,
            board,
            events,
            is_written: false,
            id: fresh(),
            changed: Vec::new(),
            starting: Vec::new(),
            at_work: FuturesUnordered::new(),
        }
    }

    /// The same for a run that stands in the store and was taken under this name.
    pub(super) fn taken_as(self, id: String) -> Self {
        Self { id, is_written: true, ..self }
    }

    /// Goes on until there is nothing more to do. Answers whether the run is over.
    pub(super) async fn drive(mut self, answer: Option<Answer>) -> bool {
        if self.is_written {
            self.take_up(answer);
        }
        let run = self.run.id.clone();
        match self.turns().await {
            Ok(Stop::Over) => {}
            Ok(Stop::CalledOff) => self.tell(tell::canceled()).await,
            // The task goes on without us: whoever listens must not take our silence for its end.
            Ok(Stop::Closing) => self.events.closed().await,
            Ok(Stop::Taken) => self.watch().await,
            // Whoever takes the run over finds what its steps have done by their tasks.
            Err(StoreError::Unavailable(_)) if self.crew.engine.is_closing() => self.events.closed().await,
            Err(error) => {
                tracing::error!(task.id = %run, "run {run} could not be written to: {error}");
                let message = "the run could not be recorded any further; its steps may have done their work: see the server's log, and the \
                               run's steps";
                self.tell(Event::failed(Failure::new(FailureKind::Internal, message))).await;
            }
        }
        self.run.state.is_over()
    }

    /// Tells how a run ends that somebody else has taken.
    async fn watch(&mut self) {
        let (run, total) = (self.run.id.clone(), self.board.workflow.nodes.len());
        tracing::info!(task.id = %run, "run {run} goes on elsewhere, or was called off there");
        while !self.events.is_closed() {
            match self.store.run(&self.run.scope, &run).await {
                Ok(Some(record)) => {
                    if let Some(events) = tell::ending(&record, self.board.done(), total) {
                        for event in events {
                            self.tell(event).await;
                        }
                        return;
                    }
                }
                Ok(None) => return,
                Err(error) => tracing::warn!(task.id = %run, "run {run} could not be looked at: {error}"),
            }
            tokio::select! {
                () = tokio::time::sleep(LOOK) => {}
                () = self.events.closed() => {}
            }
        }
    }

    async fn turns(&mut self) -> Result<Stop, StoreError> {
        let deadline = self.deadline();
        loop {
            self.advance();
            let is_idle = self.at_work.is_empty() && self.starting.is_empty();
            if is_idle && self.board.is_over() {
                return self.finish(None).await;
            }
            if is_idle {
                return self.wait().await;
            }
            if !self.write(RunState::Running, None, None).await? {
                return Ok(Stop::Taken);
            }
            self.start();
            let cancel = self.crew.cancel.clone();
            let came = tokio::select! {
                came = self.at_work.next() => came,
                () = cancel.cancelled() => return Ok(self.called_off().await),
                () = sleep_until(deadline) => return self.late().await,
            };
            let mut came = came;
            while let Some((key, news)) = came {
                if matches!(&news, Came::End(_, end) if matches!(**end, End::Stopped)) {
                    return Ok(Stop::Closing);
                }
                self.hear(key, news);
                // What has come meanwhile is written down with it.
                came = self.at_work.next().now_or_never().flatten();
            }
        }
    }

    /// Writes down what has changed, then tells of it. `false` when the run is not ours any more.
    async fn write(
        &mut self,
        state: RunState,
        end: Option<&Result<Json, Failure>>,
        wakes_at: Option<Timestamp>,
    ) -> Result<bool, StoreError> {
        let is_new = !self.is_written;
        let unchanged = self.changed.is_empty() && state == self.run.state && !is_new;
        let steps = std::mem::take(&mut self.changed);
        (self.run.state, self.run.wakes_at, self.run.updated_at) = (state, wakes_at, self.crew.engine.now());
        if let Some(end) = end {
            self.run.output = end.as_ref().ok().cloned();
            self.run.failure = end.as_ref().err().cloned();
        }
        let is_ours = unchanged || self.record(is_new, &steps).await?;
        if !is_ours {
            return Ok(false);
        }
        self.is_written = true;
        if is_new {
            self.tell(tell::accepted(&self.run.id)).await;
        }
        let (done, total) = (self.board.done(), self.board.workflow.nodes.len());
        for step in steps.iter().filter(|step| step.item.is_none() || step.state != StepState::Running) {
            self.tell(tell::progress(step, done, total)).await;
        }
        Ok(true)
    }

    fn change(&self, steps: Vec<FlowStep>) -> RunChange {
        RunChange {
            run: self.run.id.clone(),
            driver: self.id.clone(),
            token: self.crew.caller.token.clone(),
            state: self.run.state,
            output: self.run.output.clone(),
            failure: self.run.failure.clone(),
            wakes_at: self.run.wakes_at,
            at: self.run.updated_at,
            steps,
        }
    }

    /// Whoever does not listen any more need not be told.
    async fn tell(&mut self, event: Event) {
        let _ = self.events.send(event).await;
    }

    /// Lets everything leave that is written down.
    fn start(&mut self) {
        for (key, work) in std::mem::take(&mut self.starting) {
            let work = match work {
                Work::Call(unit) => {
                    unit.run().map(move |(task, end)| (key, Came::End(task, Box::new(end)))).boxed()
                }
                Work::Pause(pause) => tokio::time::sleep(pause).map(move |()| (key, Came::Again)).boxed(),
            };
            self.at_work.push(work);
        }
    }

    /// Puts on the board what came of a step.
    fn hear(&mut self, key: Key, came: Came) {
        let Some(step) = self.board.step(key).cloned() else { return };
        match came {
            Came::Again => self.try_again(key, &step),
            Came::End(task, end) => {
                let step = FlowStep { task: Some(task), ..step };
                match *end {
                    End::Done(output) => self.complete(key, step, output),
                    End::Asked(question) => self.hold(key, step, question),
                    End::Failed(failure) => self.fail(key, step, failure),
                    End::Stopped => {}
                }
            }
        }
    }

    fn put(&mut self, key: Key, step: FlowStep) {
        self.changed.retain(|known| {
            (known.node.as_str(), known.item, known.attempt) != (step.node.as_str(), step.item, step.attempt)
        });
        self.changed.push(step.clone());
        self.board.put(key, step);
    }

    fn complete(&mut self, key: Key, step: FlowStep, output: Json) {
        let ended_at = Some(self.crew.engine.now());
        let (state, output) = (StepState::Completed, Some(output));
        self.put(key, FlowStep { state, output, question: None, failure: None, ended_at, ..step });
        self.gather(key);
    }

    fn hold(&mut self, key: Key, step: FlowStep, question: StepQuestion) {
        self.put(key, FlowStep { state: StepState::Waiting, question: Some(question), ..step });
    }

    /// Fails a step, or has it tried again where its node says so.
    fn fail(&mut self, key: Key, step: FlowStep, failure: Failure) {
        let retry = self.board.node(key.node).map(|node| node.retry);
        let pause = retry.and_then(|retry| retry.pause_after(step.attempt)).filter(|_| may_help(&failure));
        let state = if pause.is_some() { StepState::Retrying } else { StepState::Failed };
        let ended_at = Some(self.crew.engine.now());
        self.put(key, FlowStep { state, failure: Some(failure), question: None, ended_at, ..step });
        match pause {
            Some(pause) => self.starting.push((key, Work::Pause(pause))),
            None => self.gather(key),
        }
    }

    /// A node that does the same for many is over when all of them are.
    fn gather(&mut self, key: Key) {
        if key.item.is_none() {
            return;
        }
        let Some(made) = self.board.gathered(key.node) else { return };
        let whole = Key::node(key.node);
        let Some(step) = self.board.step(whole).cloned() else { return };
        let ended_at = Some(self.crew.engine.now());
        let step = match made {
            Ok(output) => FlowStep { state: StepState::Completed, output: Some(output), ended_at, ..step },
            Err(failure) => FlowStep { state: StepState::Failed, failure: Some(failure), ended_at, ..step },
        };
        self.put(whole, step);
    }

    /// Nothing can go on before somebody says something.
    async fn wait(&mut self) -> Result<Stop, StoreError> {
        let held: Vec<FlowStep> =
            self.board.in_state(StepState::Waiting).map(|(_, step)| step.clone()).collect();
        if held.is_empty() {
            let message = "the run came to a stop with nothing to wait for; this is a fault of this program";
            return self.finish(Some(Failure::new(FailureKind::Internal, message))).await;
        }
        // Somebody else may have taken the run meanwhile, and asks then: nobody is asked twice.
        if self.is_written && !self.record(false, &[]).await? {
            return Ok(Stop::Taken);
        }
        let held: Vec<FlowStep> = self.ask_people(held).await;
        let now = self.crew.engine.now();
        let looks = held.iter().any(|step| step.task.is_some()).then(|| now.checked_add(AGAIN).ok());
        let expires = held.iter().filter_map(|step| step.question.as_ref()?.expires);
        let wakes_at = expires.chain(looks.flatten()).min();
        if !self.write(RunState::Waiting, None, wakes_at).await? {
            return Ok(Stop::Taken);
        }
        let held: Vec<&FlowStep> = held.iter().collect();
        self.tell(tell::asked(&held, self.board.done(), self.board.workflow.nodes.len())).await;
        Ok(Stop::Over)
    }

    /// All nodes are over, or something has ended the run before.
    async fn finish(&mut self, cause: Option<Failure>) -> Result<Stop, StoreError> {
        let end = match cause.or_else(|| self.failure()) {
            Some(failure) => Err(failure),
            None => self.output(),
        };
        let state = if end.is_ok() { RunState::Completed } else { RunState::Failed };
        if !self.write(state, Some(&end), None).await? {
            return Ok(Stop::Taken);
        }
        let record = RunRecord { run: self.run.clone(), steps: Vec::new() };
        for event in tell::ending(&record, 0, 0).into_iter().flatten() {
            self.tell(event).await;
        }
        Ok(Stop::Over)
    }

    /// What the run answers with.
    fn output(&self) -> Result<Json, Failure> {
        match &self.board.workflow.output {
            None => Ok(self.board.made()),
            Some(template) => act::render(template, &self.board, Key::node(usize::MAX))
                .map_err(|failure| Failure::new(failure.kind, format!("output: {}", failure.message))),
        }
    }

    /// Why the run has failed, if it has: the first step that did, and how many more.
    fn failure(&self) -> Option<Failure> {
        let mut failed = self.board.failed();
        let (node, first) = failed.next()?;
        let more = match failed.count() {
            0 => String::new(),
            more => format!(" (and {more} more)"),
        };
        let message = format!("step {} failed: {}{more}", node.id, first.message);
        let data = serde_json::json!({ "node": node.id, "cause": first.data });
        Some(Failure::new(first.kind, message).with_data(Json::encode(&data)))
    }

    /// It was called off; its steps hear of it themselves.
    async fn called_off(&mut self) -> Stop {
        let ending = async { while self.at_work.next().await.is_some() {} };
        let _ = tokio::time::timeout(LAST_WORDS, ending).await;
        Stop::CalledOff
    }

    /// It has taken longer than it may.
    async fn late(&mut self) -> Result<Stop, StoreError> {
        self.crew.cancel.cancel();
        self.called_off().await;
        let at = Some(self.crew.engine.now());
        let open: Vec<(Key, FlowStep)> = [StepState::Running, StepState::Waiting, StepState::Retrying]
            .into_iter()
            .flat_map(|state| self.board.in_state(state).map(|(key, step)| (key, step.clone())))
            .collect();
        for (key, step) in open {
            self.put(key, FlowStep { state: StepState::Canceled, ended_at: at, ..step });
        }
        let limit = self.board.workflow.limits.timeout.unwrap_or(FAR_OFF).as_millis();
        let message =
            format!("the run took longer than {limit} ms; raise its timeout, or its steps are too slow");
        self.finish(Some(Failure::new(FailureKind::PeerTimeout, message))).await
    }

    fn deadline(&self) -> Instant {
        let limit = self.board.workflow.limits.timeout.unwrap_or(FAR_OFF);
        let spent = self.crew.engine.now().duration_since(self.run.created_at);
        let spent = Duration::try_from(spent).unwrap_or_default();
        Instant::now() + limit.saturating_sub(spent)
    }
}

/// Whether trying again could end otherwise.
const fn may_help(failure: &Failure) -> bool {
    match failure.kind {
        FailureKind::Invalid
        | FailureKind::Unauthenticated
        | FailureKind::Denied
        | FailureKind::Blocked
        | FailureKind::NotFound
        | FailureKind::Conflict
        | FailureKind::Unsupported => false,
        FailureKind::Busy
        | FailureKind::PeerTimeout
        | FailureKind::PeerUnreachable
        | FailureKind::PeerGarbled
        | FailureKind::PeerFailed
        | FailureKind::StoreUnavailable
        | FailureKind::Internal => true,
    }
}
