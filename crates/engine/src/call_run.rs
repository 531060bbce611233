//! Run of a call: events of the backend are recorded as they arrive, and then published.
//!
//! While the store is not available, a run continues: events are held and recorded later ([`held_writes`](crate::held_writes)).
//! The caller gets them once they are recorded, and at its deadline a failure that says so.
//!
//! A run is a state machine: each step returns the run itself with an update, so it does not matter what drives it, or if anything
//! reads the updates. [`CallHandle`](crate::call_handle::CallHandle) decides that.

mod recording;

use std::{collections::VecDeque, sync::Arc, time::Duration};

use futures::{FutureExt, StreamExt, stream::BoxStream};
use rialto_model::{
    call::{CallTarget, Caller, EntryProtocol},
    event::{Event, EventAside},
    failure::{Failure, FailureKind},
    ids::TaskId,
    json::Json,
    store::StoreError,
    task::{Task, TaskState},
};
use serde_json::json;
use tokio::time::{Instant, sleep_until};
use tokio_util::{sync::CancellationToken, task::task_tracker::TaskTrackerToken};

use crate::{
    budget::TaskBudget, call_run::recording::next_written, call_runner::CallRunner, health,
    held_writes::HeldWrite, journal::AuditSpan, limits::CallPermit,
};

/// Maximum number of events that are recorded in one write.
const MAX_BATCH_EVENTS: usize = 64;

/// Size from which a batch is recorded before more is read: the events of a fast agent must not pile up in memory.
const MAX_BATCH_BYTES: usize = 1024 * 1024;

/// Number of events that most agents send at once: the task's name, a result, the end.
const USUAL_BATCH_EVENTS: usize = 3;

/// Longest wait for a store that is not available, when no other deadline ends it.
const IDLE_WAIT: Duration = Duration::from_secs(3_600);

/// Time in which a cancelled call may learn the remote task's name, without which it cannot be cancelled there.
const NAMING_TIMEOUT: Duration = Duration::from_secs(5);

/// End of a run for its caller.
pub(crate) type RunEnd = Result<Box<Task>, Failure>;

/// Update of a run; it returns the run unless that has ended.
pub(crate) enum RunUpdate {
    /// No event; but the run takes too long for the waiting caller to drive it.
    Nothing(Box<CallRun>),
    /// Recorded events; the run continues.
    Events(Box<CallRun>, Vec<Event>),
    /// The caller's timeout has ended; the run continues.
    TimedOut(Box<CallRun>, Failure),
    /// The task ended, or waits for the caller.
    End(RunEnd),
}

/// Parameters of a run: one part of a task's life, from a message to the end or to the next question.
pub(crate) struct RunParams {
    pub(crate) caller: Caller,
    pub(crate) target: CallTarget,
    /// Events of the backend. Nothing has left before they are polled.
    pub(crate) events: BoxStream<'static, Event>,
    pub(crate) task: Task,
    pub(crate) span: AuditSpan,
    /// Time from which the timeout counts.
    pub(crate) started_at: Instant,
    pub(crate) timeout: Duration,
    pub(crate) permit: Option<CallPermit>,
    pub(crate) budget: TaskBudget,
}

/// Run of a call.
pub(crate) struct CallRun {
    runner: Arc<CallRunner>,
    events: BoxStream<'static, Event>,
    cancel: CancellationToken,
    caller: Caller,
    target: CallTarget,
    task: Task,
    span: AuditSpan,
    timeout: Duration,
    timeout_at: Instant,
    abandon_at: Instant,
    is_timed_out: bool,
    /// Events that were received and are recorded next: the end, and what came right before it.
    next_batch: Vec<Event>,
    budget: TaskBudget,
    /// Set when the agent has sent more than the budget: nothing more is read from it.
    exceeded: Option<Failure>,
    /// Outcomes of writes that wait for the store, the oldest first.
    held: VecDeque<HeldWrite>,
    /// Set when the last of them ends this run: nothing more is read from the agent.
    has_ended: bool,
    /// Set when the agent has sent the end.
    has_result: bool,
    /// Permit that counts this call against the caller's limit.
    _permit: Option<CallPermit>,
    /// Token that a drain of this process waits for.
    _tracked: TaskTrackerToken,
}

/// Reason why the run stopped waiting.
enum Wakeup {
    Events(Vec<Event>),
    /// The store has recorded the held events, or never will.
    Written(Result<Vec<Event>, StoreError>),
    Heartbeat,
    Timeout,
    Cancelled,
    Abandoned,
    Exceeded,
}

// === impl CallRun ===

impl CallRun {
    /// Creates a run. Nothing leaves before [`CallRun::next`] is waited for.
    pub(crate) fn new(runner: &Arc<CallRunner>, params: RunParams) -> Box<Self> {
        let cancel = CancellationToken::new();
        runner.running.insert(params.task.head.id.clone(), &cancel);
        let timeout_at = params.started_at + params.timeout;
        Box::new(Self {
            runner: Arc::clone(runner),
            caller: params.caller,
            target: params.target,
            events: params.events,
            cancel,
            task: params.task,
            span: params.span,
            timeout: params.timeout,
            timeout_at,
            abandon_at: timeout_at + Duration::from_secs(runner.config.patience_secs),
            is_timed_out: false,
            next_batch: Vec::new(),
            budget: params.budget,
            exceeded: None,
            held: VecDeque::new(),
            has_ended: false,
            has_result: false,
            _permit: params.permit,
            _tracked: runner.running.track(),
        })
    }

    /// Our id of the task.
    pub(crate) const fn id(&self) -> &TaskId {
        &self.task.head.id
    }

    /// Token that cancels the call.
    pub(crate) fn cancel_token(&self) -> CancellationToken {
        self.cancel.clone()
    }

    /// Interval of heartbeats for the waiting caller.
    pub(crate) fn heartbeat(&self) -> Duration {
        Duration::from_secs(self.runner.config.heartbeat_secs.max(1))
    }

    /// Runs until the next update, whose events are recorded.
    ///
    /// A waiting caller that drives the run sets the time at which this must return (`heartbeat_at`), and needs no timer of its own.
    pub(crate) async fn next(mut self: Box<Self>, heartbeat_at: Option<Instant>) -> RunUpdate {
        match self.wait(heartbeat_at).await {
            Wakeup::Events(batch) if self.ends_with(&batch) => {
                self.has_result = true;
                self.end_with(batch).await
            }
            Wakeup::Events(batch) => {
                let told = batch.clone();
                match self.write(batch, false).await {
                    Ok(()) if !self.held.is_empty() => RunUpdate::Nothing(self),
                    Ok(()) if self.task.head.state.is_terminal() => self.end_with(Vec::new()).await,
                    Ok(()) => RunUpdate::Events(self, told),
                    Err(failure) => self.end(Some(failure)),
                }
            }
            Wakeup::Written(outcome) => self.on_written(outcome).await,
            Wakeup::Heartbeat => RunUpdate::Nothing(self),
            Wakeup::Timeout => self.on_timeout().await,
            // The agent may take long to cancel, and heartbeats must continue meanwhile.
            Wakeup::Cancelled | Wakeup::Exceeded if heartbeat_at.is_some() => RunUpdate::Nothing(self),
            Wakeup::Cancelled if self.runner.running.is_stopping() => self.on_shutdown().await,
            Wakeup::Cancelled => self.on_cancel().await,
            Wakeup::Abandoned => self.on_silence().await,
            Wakeup::Exceeded => self.on_budget_exceeded().await,
        }
    }

    async fn wait(&mut self, heartbeat_at: Option<Instant>) -> Wakeup {
        if !self.next_batch.is_empty() {
            return Wakeup::Events(std::mem::take(&mut self.next_batch));
        }
        if self.exceeded.is_some() {
            return Wakeup::Exceeded;
        }
        let (silent_until, then) = self.next_deadline(heartbeat_at);
        let reads_on = self.held.is_empty() || (!self.has_ended && self.runner.journal.has_room());
        let may_stop = !self.has_ended || self.runner.running.is_stopping() || !self.cancel.is_cancelled();
        let first = tokio::select! {
            biased;
            outcome = next_written(&mut self.held) => return Wakeup::Written(outcome),
            event = self.events.next(), if reads_on => event,
            () = self.cancel.cancelled(), if may_stop => return Wakeup::Cancelled,
            () = sleep_until(silent_until) => return then,
        };
        let Some(first) = first else {
            let failure =
                Failure::new(FailureKind::PeerGarbled, "the agent hung up before the task was done");
            return Wakeup::Events(vec![Event::failed(failure)]);
        };
        let mut batch = Vec::with_capacity(USUAL_BATCH_EVENTS);
        let (mut bytes, mut next) = (0, Some(first));
        while let Some(event) = next {
            if let Err(failure) = self.budget.spend(&event) {
                self.exceeded = Some(failure);
                break;
            }
            bytes += event.size();
            batch.push(event);
            if batch.len() >= MAX_BATCH_EVENTS || bytes >= MAX_BATCH_BYTES {
                break;
            }
            next = self.events.next().now_or_never().flatten();
        }
        if batch.is_empty() {
            return Wakeup::Exceeded;
        }
        // The caller gets the last message of the agent too, not only the end.
        if self.ends_with(&batch)
            && let Some(last) = batch.iter().rposition(has_message)
        {
            self.next_batch.extend(batch.drain(last + 1..));
        }
        Wakeup::Events(batch)
    }

    /// Next deadline and the reason to wake up then: the earliest of all, so that one timer is enough.
    fn next_deadline(&self, heartbeat_at: Option<Instant>) -> (Instant, Wakeup) {
        let (at, then) = match (self.is_timed_out, self.has_ended) {
            (false, _) => (self.timeout_at, Wakeup::Timeout),
            (true, false) => (self.abandon_at, Wakeup::Abandoned),
            (true, true) => (Instant::now() + IDLE_WAIT, Wakeup::Heartbeat),
        };
        match heartbeat_at {
            Some(heartbeat_at) if heartbeat_at < at => (heartbeat_at, Wakeup::Heartbeat),
            _ => (at, then),
        }
    }

    /// True if this run has ended after these events.
    fn ends_with(&self, batch: &[Event]) -> bool {
        let state = state_after(self.task.head.state, batch);
        state.is_terminal() || state.is_waiting()
    }

    fn warn_not_cancelled(&self, failure: &Failure) {
        let (id, class, code) = (&self.task.head.id, failure.kind.class(), failure.kind.rpc_code());
        tracing::warn!(task.id = %id, code, "task {id} was not cancelled at the agent: {class}");
    }

    /// Records the events that end this run.
    async fn end_with(mut self: Box<Self>, batch: Vec<Event>) -> RunUpdate {
        if let Err(failure) = self.write(batch, true).await {
            return self.end(Some(failure));
        }
        if !self.held.is_empty() {
            self.has_ended = true;
            self.events = futures::stream::empty().boxed();
            return RunUpdate::Nothing(self);
        }
        self.finish()
    }

    /// Ends the run; its last events are recorded.
    fn finish(self: Box<Self>) -> RunUpdate {
        let failure = self.task.failure.clone().map(|failure| with_ids(failure, &self.task));
        if failure.as_ref().is_some_and(|failure| failure.kind == FailureKind::PeerUnreachable) {
            // Probe at once, and do not wait for the next round.
            health::start_recovery(&self.runner.registry, self.target.agent.id.clone());
        }
        self.end(failure)
    }

    fn end(self: Box<Self>, failure: Option<Failure>) -> RunUpdate {
        self.runner.running.remove(&self.task.head.id);
        RunUpdate::End(match failure {
            Some(failure) => Err(failure),
            None => Ok(Box::new(self.task)),
        })
    }

    /// Ends the waiting of the caller. A task that ends with the process of a command, and of which no agent can be asked, ends here.
    async fn on_timeout(mut self: Box<Self>) -> RunUpdate {
        let late = format!("{} took longer than {} ms", self.target.verb(), self.timeout.as_millis());
        if !self.held.is_empty() {
            let failure = self.held_result(&late).await;
            return RunUpdate::TimedOut(self, failure);
        }
        if self.task.head.door == EntryProtocol::Cli && self.task.head.remote.task_id.is_none() {
            let why = if self.target.agent.backing.is_agent() {
                "the agent has not named the task, so it cannot be asked for later"
            } else {
                "it was ended, because it runs only as long as this command"
            };
            let message = format!("{late}; {why}; --timeout-ms waits longer");
            return self.end_with(vec![Event::failed(Failure::new(FailureKind::PeerTimeout, message))]).await;
        }
        let message = format!("{late}; the task goes on, and {} its result", self.fetch_hint());
        let failure = self.report_timeout(message).await;
        RunUpdate::TimedOut(self, failure)
    }

    /// The command or tool with which the caller fetches the result.
    fn fetch_hint(&self) -> String {
        match self.task.head.door {
            EntryProtocol::Cli => format!("`rialto tasks show {}` fetches", self.id()),
            EntryProtocol::Console => format!("the page of task {} shows", self.id()),
            EntryProtocol::McpStdio
            | EntryProtocol::McpHttp
            | EntryProtocol::A2aJsonRpc
            | EntryProtocol::A2aRest
            | EntryProtocol::A2aGrpc
            | EntryProtocol::A2aFirst
            | EntryProtocol::A2aPlain
            | EntryProtocol::Http
            | EntryProtocol::Library => format!("get_task with task id {} fetches", self.id()),
        }
    }

    async fn report_timeout(&mut self, message: String) -> Failure {
        self.is_timed_out = true;
        let failure = with_ids(Failure::new(FailureKind::PeerTimeout, message), &self.task);
        self.runner.journal.close(&mut self.span, None, &failure).await;
        failure
    }

    /// Detaches the run at shutdown. The task stays open if the agent can be asked for it.
    async fn on_shutdown(mut self: Box<Self>) -> RunUpdate {
        if self.has_ended {
            let stopping = "this server is stopping";
            if self.is_timed_out {
                return self.end(Some(Failure::new(FailureKind::PeerTimeout, stopping)));
            }
            let failure = self.held_result(stopping).await;
            return RunUpdate::TimedOut(self, failure);
        }
        if self.task.head.remote.task_id.is_none() {
            let message = "this server is stopping, and the agent has not named the task, so its result cannot be fetched \
                           later; the agent may have done it: check before you call again";
            return self.end_with(vec![Event::failed(Failure::new(FailureKind::PeerTimeout, message))]).await;
        }
        let message = format!(
            "this server is stopping; the task goes on, and {} its result when it is back",
            self.fetch_hint()
        );
        if self.is_timed_out {
            return self.end(Some(Failure::new(FailureKind::PeerTimeout, message)));
        }
        let failure = self.report_timeout(message).await;
        RunUpdate::TimedOut(self, failure)
    }

    /// Ends a run whose agent was silent for too long.
    async fn on_silence(self: Box<Self>) -> RunUpdate {
        let failure =
            Failure::new(FailureKind::PeerTimeout, "the agent never answered, and never named the task");
        if self.task.head.remote.task_id.is_some() {
            // It can be asked again at any time, so the task stays open. Its caller's timeout has ended long ago.
            return self.end(Some(failure));
        }
        self.end_with(vec![Event::failed(failure)]).await
    }

    /// Ends a run whose agent has sent more than one task may hold. The agent is asked to cancel, if it has named the task; in every other
    /// case dropping the stream ends the work.
    async fn on_budget_exceeded(mut self: Box<Self>) -> RunUpdate {
        self.events = futures::stream::empty().boxed();
        let cancelling = self.runner.cancel_at_agent(&self.caller, &self.target, &self.task);
        match tokio::time::timeout(NAMING_TIMEOUT, cancelling).await {
            Ok(Ok(_)) => {}
            Ok(Err(failure)) => self.warn_not_cancelled(&failure),
            Err(_) => {
                let late = Failure::new(FailureKind::PeerTimeout, "the agent did not answer");
                self.warn_not_cancelled(&late);
            }
        }
        let events = self.exceeded.take().map(Event::failed).into_iter().collect();
        self.end_with(events).await
    }

    async fn on_cancel(mut self: Box<Self>) -> RunUpdate {
        if !self.next_batch.is_empty() {
            let next_batch = std::mem::take(&mut self.next_batch);
            return self.end_with(next_batch).await;
        }
        let named_by = Instant::now() + NAMING_TIMEOUT;
        // A backend that never names its tasks needs no cancellation: dropping its stream ends them.
        while self.task.head.remote.task_id.is_none() && self.target.agent.backing.names_tasks() {
            let Ok(Some(event)) = tokio::time::timeout_at(named_by, self.events.next()).await else {
                break;
            };
            let batch = vec![event];
            if self.ends_with(&batch) {
                return self.end_with(batch).await;
            }
            if let Err(failure) = self.write(batch, false).await {
                return self.end(Some(failure));
            }
            if self.task.head.state.is_terminal() {
                return self.end_with(Vec::new()).await;
            }
        }
        let result = self.runner.cancel_at_agent(&self.caller, &self.target, &self.task).await;
        let events = result.unwrap_or_else(|failure| {
            self.warn_not_cancelled(&failure);
            Vec::new()
        });
        let is_over = state_after(self.task.head.state, &events).is_terminal();
        self.end_with(if is_over { events } else { with_local_cancel(events) }).await
    }
}

/// True if an event is progress with a message.
const fn has_message(event: &Event) -> bool {
    matches!(event, Event::Progress { message: Some(_), .. })
}

/// State of a task after `events`; those that cannot happen change nothing.
pub(crate) fn state_after(state: TaskState, events: &[Event]) -> TaskState {
    events.iter().fold(state, |state, event| state.after(event).unwrap_or(state))
}

/// The events of the agent, followed by the cancellation.
pub(crate) fn with_local_cancel(mut events: Vec<Event>) -> Vec<Event> {
    events.push(Event::Canceled { message: None, aside: EventAside::default() });
    events
}

/// Adds to a failure the ids with which its task can be found.
fn with_ids(mut failure: Failure, task: &Task) -> Failure {
    let mut data = failure.data.as_ref().map_or_else(|| json!({}), Json::value);
    if let Some(members) = data.as_object_mut() {
        members.insert("taskId".into(), json!(task.head.id));
        members.insert("state".into(), json!(task.head.state));
        if let Some(id) = &task.head.remote.task_id {
            members.insert("remoteTaskId".into(), json!(id));
        }
        if let Some(id) = &task.head.remote.context_id {
            members.insert("contextId".into(), json!(id));
        }
    }
    failure.data = Some(Json::encode(&data));
    failure
}

fn failure_in(batch: &[Event]) -> Option<Failure> {
    batch.iter().rev().find_map(|event| match event {
        Event::Failed { failure, .. } => Some(failure.clone()),
        Event::Rejected { .. } => Some(Failure::new(FailureKind::PeerFailed, "the agent rejected the task")),
        Event::Canceled { .. } => Some(Failure::new(FailureKind::PeerFailed, "the task was canceled")),
        _ => None,
    })
}
