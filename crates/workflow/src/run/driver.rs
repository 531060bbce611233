//! Driver of a run: advances it until it is finished or waits for its caller.
//!
//! A turn has three parts, in this order: every step that may start is added to the execution state ([`advance`]); all changes are
//! stored at once; and only then calls leave and events are published. A driver that finds while storing that another process has
//! the run stops at once.

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
    answer::RunAnswer,
    execution_state::{ExecutionState, StepKey},
    run_events,
    schedules::WAITING_RUN_POLL_INTERVAL,
    step_action,
    step_runner::{RunContext, StepEnd, StepRunner},
};

/// Maximum number of events that the caller has not received; the run waits beyond it.
pub(super) const EVENT_QUEUE_LEN: usize = 256;

/// Time for cancelled steps to report their end.
const CANCEL_GRACE: Duration = Duration::from_secs(12);

/// Interval at which a run of another process is polled.
const WATCH_INTERVAL: Duration = Duration::from_secs(1);

/// Deadline of a run without a timeout.
const NO_DEADLINE: Duration = Duration::from_secs(365 * 24 * 3_600);

/// A run under way.
pub(super) struct RunDriver {
    pub(super) context: RunContext,
    pub(super) store: Arc<dyn Store>,
    pub(super) run: FlowRun,
    pub(super) execution: ExecutionState,
    pub(super) events: mpsc::Sender<Event>,
    /// True if the run is in the store.
    pub(super) is_written: bool,
    /// Our leave to write to it.
    id: String,
    /// Steps to store.
    changed: Vec<FlowStep>,
    /// Steps to start once that is done.
    starting: Vec<(StepKey, StepWork)>,
    at_work: FuturesUnordered<BoxFuture<'static, (StepKey, StepOutcome)>>,
}

/// Future of a step.
enum StepWork {
    /// Its call.
    Call(Box<StepRunner>),
    /// Waiting for its next attempt.
    Pause(Duration),
}

/// Outcome of that future.
enum StepOutcome {
    /// Its call has ended, under this task.
    End(TaskId, Box<StepEnd>),
    /// Due for a retry.
    Again,
}

/// Why a driver stops.
enum DriverExit {
    /// Finished.
    Over,
    /// Cancelled in this process.
    CalledOff,
    /// Taken over, or cancelled elsewhere.
    Taken,
    /// This process ends.
    Closing,
}

// === impl RunDriver ===

impl RunDriver {
    pub(super) fn new(
        context: RunContext,
        store: Arc<dyn Store>,
        run: FlowRun,
        execution: ExecutionState,
        events: mpsc::Sender<Event>,
    ) -> Self {
        Self {
            context,
            store,
            run,
            execution,
            events,
            is_written: false,
            id: fresh(),
            changed: Vec::new(),
            starting: Vec::new(),
            at_work: FuturesUnordered::new(),
        }
    }

    /// Drives a stored run that was taken with this holder id.
    pub(super) fn with_holder(self, id: String) -> Self {
        Self { id, is_written: true, ..self }
    }

    /// Runs turns until nothing is left to do. Returns true if the run is finished.
    pub(super) async fn run_to_end(mut self, answer: Option<RunAnswer>) -> bool {
        if self.is_written {
            self.resume_run(answer);
        }
        let run = self.run.id.clone();
        match self.run_turns().await {
            Ok(DriverExit::Over) => {}
            Ok(DriverExit::CalledOff) => self.publish(run_events::canceled_event()).await,
            // The task continues elsewhere: the end of this stream must not look like its end.
            Ok(DriverExit::Closing) => self.events.closed().await,
            Ok(DriverExit::Taken) => self.watch_other_driver().await,
            // A process that takes the run over finds the results of its steps in their tasks.
            Err(StoreError::Unavailable(_)) if self.context.engine.running().is_stopping() => {
                self.events.closed().await;
            }
            Err(error) => {
                tracing::error!(task.id = %run, "run {run} could not be written to: {error}");
                let message = "the run could not be recorded further; its steps may have completed: see the server's log, and the \
                               run's steps";
                self.publish(Event::failed(Failure::new(FailureKind::Internal, message))).await;
            }
        }
        self.run.state.is_over()
    }

    /// Reports the end of a run that another process drives.
    async fn watch_other_driver(&mut self) {
        let (run, total) = (self.run.id.clone(), self.execution.workflow.nodes.len());
        tracing::info!(task.id = %run, "run {run} continues elsewhere, or was cancelled there");
        while !self.events.is_closed() {
            match self.store.run(&self.run.scope, &run).await {
                Ok(Some(record)) => {
                    if let Some(events) =
                        run_events::final_events(&record, self.execution.finished_nodes(), total)
                    {
                        for event in events {
                            self.publish(event).await;
                        }
                        return;
                    }
                }
                Ok(None) => return,
                Err(error) => tracing::warn!(task.id = %run, "run {run} could not be read: {error}"),
            }
            tokio::select! {
                () = tokio::time::sleep(WATCH_INTERVAL) => {}
                () = self.events.closed() => {}
            }
        }
    }

    async fn run_turns(&mut self) -> Result<DriverExit, StoreError> {
        let deadline = self.deadline();
        loop {
            self.advance();
            let is_idle = self.at_work.is_empty() && self.starting.is_empty();
            if is_idle && self.execution.is_over() {
                return self.finish(None).await;
            }
            if is_idle {
                return self.wait_for_caller().await;
            }
            if !self.write(RunState::Running, None, None).await? {
                return Ok(DriverExit::Taken);
            }
            self.dispatch_pending();
            let cancel = self.context.cancel.clone();
            let outcome = tokio::select! {
                outcome = self.at_work.next() => outcome,
                () = cancel.cancelled() => return Ok(self.on_cancelled().await),
                () = sleep_until(deadline) => return self.on_deadline().await,
            };
            let mut outcome = outcome;
            while let Some((key, news)) = outcome {
                if matches!(&news, StepOutcome::End(_, end) if matches!(**end, StepEnd::Stopped)) {
                    return Ok(DriverExit::Closing);
                }
                self.apply_outcome(key, news);
                // What has come meanwhile is written down with it.
                outcome = self.at_work.next().now_or_never().flatten();
            }
        }
    }

    /// Stores changes, then publishes their events. `false` if another process has the run.
    async fn write(
        &mut self,
        state: RunState,
        end: Option<&Result<Json, Failure>>,
        wakes_at: Option<Timestamp>,
    ) -> Result<bool, StoreError> {
        let is_new = !self.is_written;
        let unchanged = self.changed.is_empty() && state == self.run.state && !is_new;
        let steps = std::mem::take(&mut self.changed);
        (self.run.state, self.run.wakes_at, self.run.updated_at) =
            (state, wakes_at, self.context.engine.now());
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
            self.publish(run_events::accepted_event(&self.run.id)).await;
        }
        let (done, total) = (self.execution.finished_nodes(), self.execution.workflow.nodes.len());
        for step in steps.iter().filter(|step| step.item.is_none() || step.state != StepState::Running) {
            self.publish(run_events::progress_event(step, done, total)).await;
        }
        Ok(true)
    }

    fn change(&self, steps: Vec<FlowStep>) -> RunChange {
        RunChange {
            run: self.run.id.clone(),
            driver: self.id.clone(),
            token: self.context.caller.token.clone(),
            state: self.run.state,
            output: self.run.output.clone(),
            failure: self.run.failure.clone(),
            wakes_at: self.run.wakes_at,
            at: self.run.updated_at,
            steps,
        }
    }

    /// A caller that stopped listening receives nothing.
    async fn publish(&mut self, event: Event) {
        let _ = self.events.send(event).await;
    }

    /// Lets everything leave that is written down.
    fn dispatch_pending(&mut self) {
        for (key, work) in std::mem::take(&mut self.starting) {
            let work = match work {
                StepWork::Call(unit) => {
                    unit.run().map(move |(task, end)| (key, StepOutcome::End(task, Box::new(end)))).boxed()
                }
                StepWork::Pause(pause) => {
                    tokio::time::sleep(pause).map(move |()| (key, StepOutcome::Again)).boxed()
                }
            };
            self.at_work.push(work);
        }
    }

    /// Applies the outcome of a step to the execution state.
    fn apply_outcome(&mut self, key: StepKey, outcome: StepOutcome) {
        let Some(step) = self.execution.step(key).cloned() else { return };
        match outcome {
            StepOutcome::Again => self.retry_step(key, &step),
            StepOutcome::End(task, end) => {
                let step = FlowStep { task: Some(task), ..step };
                match *end {
                    StepEnd::Done(output) => self.complete_step(key, step, output),
                    StepEnd::Asked(question) => self.hold_step(key, step, question),
                    StepEnd::Failed(failure) => self.fail_step(key, step, failure),
                    StepEnd::Stopped => {}
                }
            }
        }
    }

    fn set_step(&mut self, key: StepKey, step: FlowStep) {
        self.changed.retain(|known| {
            (known.node.as_str(), known.item, known.attempt) != (step.node.as_str(), step.item, step.attempt)
        });
        self.changed.push(step.clone());
        self.execution.set_step(key, step);
    }

    fn complete_step(&mut self, key: StepKey, step: FlowStep, output: Json) {
        let ended_at = Some(self.context.engine.now());
        let (state, output) = (StepState::Completed, Some(output));
        self.set_step(key, FlowStep { state, output, question: None, failure: None, ended_at, ..step });
        self.gather_items(key);
    }

    fn hold_step(&mut self, key: StepKey, step: FlowStep, question: StepQuestion) {
        self.set_step(key, FlowStep { state: StepState::Waiting, question: Some(question), ..step });
    }

    /// Fails a step, or schedules a retry if its node allows one.
    fn fail_step(&mut self, key: StepKey, step: FlowStep, failure: Failure) {
        let retry = self.execution.node(key.node).map(|node| node.retry);
        let pause =
            retry.and_then(|retry| retry.pause_after(step.attempt)).filter(|_| is_retryable(&failure));
        let state = if pause.is_some() { StepState::Retrying } else { StepState::Failed };
        let ended_at = Some(self.context.engine.now());
        self.set_step(key, FlowStep { state, failure: Some(failure), question: None, ended_at, ..step });
        match pause {
            Some(pause) => self.starting.push((key, StepWork::Pause(pause))),
            None => self.gather_items(key),
        }
    }

    /// Completes a `map` node once all of its items are finished.
    fn gather_items(&mut self, key: StepKey) {
        if key.item.is_none() {
            return;
        }
        let Some(made) = self.execution.gather_results(key.node) else { return };
        let whole = StepKey::node(key.node);
        let Some(step) = self.execution.step(whole).cloned() else { return };
        let ended_at = Some(self.context.engine.now());
        let step = match made {
            Ok(output) => FlowStep { state: StepState::Completed, output: Some(output), ended_at, ..step },
            Err(failure) => FlowStep { state: StepState::Failed, failure: Some(failure), ended_at, ..step },
        };
        self.set_step(whole, step);
    }

    /// Waits for the caller, or for an event elsewhere.
    async fn wait_for_caller(&mut self) -> Result<DriverExit, StoreError> {
        let held: Vec<FlowStep> =
            self.execution.steps_in_state(StepState::Waiting).map(|(_, step)| step.clone()).collect();
        if held.is_empty() {
            let message = "the run stopped without anything to wait for; this is a bug in Rialto";
            return self.finish(Some(Failure::new(FailureKind::Internal, message))).await;
        }
        // Another process may have taken the run and published the question already.
        if self.is_written && !self.record(false, &[]).await? {
            return Ok(DriverExit::Taken);
        }
        let held: Vec<FlowStep> = self.request_approvals(held).await;
        let now = self.context.engine.now();
        let looks = held
            .iter()
            .any(|step| step.task.is_some())
            .then(|| now.checked_add(WAITING_RUN_POLL_INTERVAL).ok());
        let expires = held.iter().filter_map(|step| step.question.as_ref()?.expires);
        let wakes_at = expires.chain(looks.flatten()).min();
        if !self.write(RunState::Waiting, None, wakes_at).await? {
            return Ok(DriverExit::Taken);
        }
        let held: Vec<&FlowStep> = held.iter().collect();
        self.publish(run_events::question_event(
            &held,
            self.execution.finished_nodes(),
            self.execution.workflow.nodes.len(),
        ))
        .await;
        Ok(DriverExit::Over)
    }

    /// All nodes are over, or something has ended the run before.
    async fn finish(&mut self, cause: Option<Failure>) -> Result<DriverExit, StoreError> {
        let end = match cause.or_else(|| self.failure()) {
            Some(failure) => Err(failure),
            None => self.output(),
        };
        let state = if end.is_ok() { RunState::Completed } else { RunState::Failed };
        if !self.write(state, Some(&end), None).await? {
            return Ok(DriverExit::Taken);
        }
        let record = RunRecord { run: self.run.clone(), steps: Vec::new() };
        for event in run_events::final_events(&record, 0, 0).into_iter().flatten() {
            self.publish(event).await;
        }
        Ok(DriverExit::Over)
    }

    /// Output of the run.
    fn output(&self) -> Result<Json, Failure> {
        match &self.execution.workflow.output {
            None => Ok(self.execution.default_output()),
            Some(template) => {
                step_action::render_template(template, &self.execution, StepKey::node(usize::MAX))
                    .map_err(|failure| Failure::new(failure.kind, format!("output: {}", failure.message)))
            }
        }
    }

    /// Failure of the run, if any: the first failed step, and the number of others.
    fn failure(&self) -> Option<Failure> {
        let mut failed = self.execution.failed_nodes();
        let (node, first) = failed.next()?;
        let more = match failed.count() {
            0 => String::new(),
            more => format!(" (and {more} more)"),
        };
        let message = format!("step {} failed: {}{more}", node.id, first.message);
        let data = serde_json::json!({ "node": node.id, "cause": first.data });
        Some(Failure::new(first.kind, message).with_data(Json::encode(&data)))
    }

    /// Ends a cancelled run; its steps are cancelled separately.
    async fn on_cancelled(&mut self) -> DriverExit {
        let ending = async { while self.at_work.next().await.is_some() {} };
        let _ = tokio::time::timeout(CANCEL_GRACE, ending).await;
        DriverExit::CalledOff
    }

    /// Ends a run whose timeout has passed.
    async fn on_deadline(&mut self) -> Result<DriverExit, StoreError> {
        self.context.cancel.cancel();
        self.on_cancelled().await;
        let at = Some(self.context.engine.now());
        let open: Vec<(StepKey, FlowStep)> = [StepState::Running, StepState::Waiting, StepState::Retrying]
            .into_iter()
            .flat_map(|state| self.execution.steps_in_state(state).map(|(key, step)| (key, step.clone())))
            .collect();
        for (key, step) in open {
            self.set_step(key, FlowStep { state: StepState::Canceled, ended_at: at, ..step });
        }
        let limit = self.execution.workflow.limits.timeout.unwrap_or(NO_DEADLINE).as_millis();
        let message =
            format!("the run took longer than {limit} ms; raise its timeout, or its steps are too slow");
        self.finish(Some(Failure::new(FailureKind::PeerTimeout, message))).await
    }

    fn deadline(&self) -> Instant {
        let limit = self.execution.workflow.limits.timeout.unwrap_or(NO_DEADLINE);
        let spent = self.context.engine.now().duration_since(self.run.created_at);
        let spent = Duration::try_from(spent).unwrap_or_default();
        Instant::now() + limit.saturating_sub(spent)
    }
}

/// True if a retry could succeed.
const fn is_retryable(failure: &Failure) -> bool {
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
