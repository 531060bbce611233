//! A call while it runs: events are recorded as they come, and then published.
//!
//! While the store is not available, a run goes on: what the agent says is held and recorded later
//! ([`held_writes`](crate::held_writes)). The caller gets it once it is recorded, and at its deadline it is told that.
//!
//! A run goes from one piece of news to the next and hands itself over with each, so it does not matter who drives it
//! or whether anybody listens. [`Running`](crate::running::Running) decides that.

mod recording;

use std::{collections::VecDeque, sync::Arc, time::Duration};

use futures::{FutureExt, StreamExt, stream::BoxStream};
use rialto_model::{
    call::{CallTarget, Caller, CancelRequest, EntryProtocol},
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
    budget::TaskBudget, call_run::recording::next_written, engine::EngineInner, health,
    held_writes::HeldWrite, journal::AuditSpan, limits::CallPermit,
};

/// Events that are there at once are written down together, up to so many.
const BATCH: usize = 64;

/// A batch that has come to this size is written before more is read: what a fast agent sends must not pile up in memory.
const BATCH_BYTES: usize = 1024 * 1024;

/// What most agents tell at once: the task's name, a result, the end.
const FEW: usize = 3;

/// When nothing else ends the waiting for a store that is away.
const LONG_WAIT: Duration = Duration::from_secs(3_600);

/// How long a cancelled call is given to learn the remote task's name, without which it cannot be called off there.
const NAMING: Duration = Duration::from_secs(5);

/// How a run ends for whoever waits.
pub(crate) type RunEnd = Result<Box<Task>, Failure>;

/// What a run has to tell.
pub(crate) enum RunUpdate {
    /// Nothing yet; but it has become too long for whoever waits to drive it.
    None(Box<CallRun>),
    /// Something happened; it goes on.
    Events(Box<CallRun>, Vec<Event>),
    /// It takes too long to wait for; it goes on.
    Late(Box<CallRun>, Failure),
    /// It ended, or waits for the caller.
    End(RunEnd),
}

/// One stretch of a task's life: from a message to its end, or to the next question.
pub(crate) struct RunParams {
    pub(crate) caller: Caller,
    pub(crate) target: CallTarget,
    /// What the peer tells. Nothing has left yet.
    pub(crate) events: BoxStream<'static, Event>,
    pub(crate) task: Task,
    pub(crate) announcement: AuditSpan,
    /// When its caller began to wait.
    pub(crate) begun_at: Instant,
    pub(crate) wall_clock: Duration,
    pub(crate) seat: Option<CallPermit>,
    pub(crate) budget: TaskBudget,
}

/// A call under way, seen from inside.
pub(crate) struct CallRun {
    inner: Arc<EngineInner>,
    events: BoxStream<'static, Event>,
    cancel: CancellationToken,
    caller: Caller,
    target: CallTarget,
    task: Task,
    announcement: AuditSpan,
    wall_clock: Duration,
    late_at: Instant,
    give_up_at: Instant,
    is_late: bool,
    /// What was heard already and is told next: the end, and what came right before it.
    ahead: Vec<Event>,
    budget: TaskBudget,
    /// Set when the agent has sent more than the budget: nothing more is read from it.
    exceeded: Option<Failure>,
    /// Outcomes of writes that wait for the store, the oldest first.
    held: VecDeque<HeldWrite>,
    /// Whether the last of them ends this leg: nothing more is read from the agent.
    is_ended: bool,
    /// Whether the agent has ended it, and not we.
    is_answered: bool,
    /// The caller's leave to have it under way.
    _seat: Option<CallPermit>,
    /// As long as it lives, whoever drains the engine waits for it.
    _tracked: TaskTrackerToken,
}

/// Why the run stopped listening to the peer.
enum Wakeup {
    Events(Vec<Event>),
    /// The store has taken what was held, or never will.
    Written(Result<Vec<Event>, StoreError>),
    Beat,
    Late,
    Cancelled,
    GivenUp,
    Exceeded,
}

// === impl Run ===

impl CallRun {
    /// Begins a call. Nothing leaves before [`CallRun::news`] is waited for.
    pub(crate) fn begin(inner: &Arc<EngineInner>, leg: RunParams) -> Box<Self> {
        let cancel = CancellationToken::new();
        inner.running.lock().insert(leg.task.head.id.clone(), cancel.clone());
        if inner.is_closing() {
            // Whoever hands back what runs may have looked before this one was there.
            cancel.cancel();
        }
        let late_at = leg.begun_at + leg.wall_clock;
        Box::new(Self {
            inner: Arc::clone(inner),
            caller: leg.caller,
            target: leg.target,
            events: leg.events,
            cancel,
            task: leg.task,
            announcement: leg.announcement,
            wall_clock: leg.wall_clock,
            late_at,
            give_up_at: late_at + Duration::from_secs(inner.config.patience_secs),
            is_late: false,
            ahead: Vec::new(),
            budget: leg.budget,
            exceeded: None,
            held: VecDeque::new(),
            is_ended: false,
            is_answered: false,
            _seat: leg.seat,
            _tracked: inner.tracker.token(),
        })
    }

    /// Our name for the task.
    pub(crate) const fn id(&self) -> &TaskId {
        &self.task.head.id
    }

    /// Calls it off when it is cancelled.
    pub(crate) fn canceller(&self) -> CancellationToken {
        self.cancel.clone()
    }

    /// How often whoever waits hears something.
    pub(crate) fn heartbeat(&self) -> Duration {
        Duration::from_secs(self.inner.config.heartbeat_secs.max(1))
    }

    /// Goes on until there is something to tell. What is told is written down.
    ///
    /// Whoever drives it while waiting for it says when it must be back (`beat_at`), and need not keep a timer too.
    pub(crate) async fn news(mut self: Box<Self>, beat_at: Option<Instant>) -> RunUpdate {
        match self.turn(beat_at).await {
            Wakeup::Events(batch) if self.is_over_after(&batch) => {
                self.is_answered = true;
                self.end_with(batch).await
            }
            Wakeup::Events(batch) => {
                let told = batch.clone();
                match self.write(batch, false).await {
                    Ok(()) if !self.held.is_empty() => RunUpdate::None(self),
                    Ok(()) if self.task.head.state.is_terminal() => self.end_with(Vec::new()).await,
                    Ok(()) => RunUpdate::Events(self, told),
                    Err(failure) => self.over(Some(failure)),
                }
            }
            Wakeup::Written(outcome) => self.on_written(outcome).await,
            Wakeup::Beat => RunUpdate::None(self),
            Wakeup::Late => self.be_late().await,
            // The agent may take its time, and hearts must beat meanwhile.
            Wakeup::Cancelled | Wakeup::Exceeded if beat_at.is_some() => RunUpdate::None(self),
            Wakeup::Cancelled if self.inner.is_closing() => self.hand_back().await,
            Wakeup::Cancelled => self.call_off().await,
            Wakeup::GivenUp => self.give_up().await,
            Wakeup::Exceeded => self.exceed().await,
        }
    }

    async fn turn(&mut self, beat_at: Option<Instant>) -> Wakeup {
        if !self.ahead.is_empty() {
            return Wakeup::Events(std::mem::take(&mut self.ahead));
        }
        if self.exceeded.is_some() {
            return Wakeup::Exceeded;
        }
        let (silent_until, then) = self.alarm(beat_at);
        let reads_on = self.held.is_empty() || (!self.is_ended && self.inner.journal.has_room());
        let may_stop = !self.is_ended || self.inner.is_closing() || !self.cancel.is_cancelled();
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
        let mut batch = Vec::with_capacity(FEW);
        let (mut bytes, mut next) = (0, Some(first));
        while let Some(event) = next {
            if let Err(failure) = self.budget.spend(&event) {
                self.exceeded = Some(failure);
                break;
            }
            bytes += event.size();
            batch.push(event);
            if batch.len() >= BATCH || bytes >= BATCH_BYTES {
                break;
            }
            next = self.events.next().now_or_never().flatten();
        }
        if batch.is_empty() {
            return Wakeup::Exceeded;
        }
        // Whoever waits is told the last words too, not only that it is over.
        if self.is_over_after(&batch)
            && let Some(last) = batch.iter().rposition(has_words)
        {
            self.ahead.extend(batch.drain(last + 1..));
        }
        Wakeup::Events(batch)
    }

    /// Until when the agent may be silent, and what follows then: the soonest of all that could, so that one timer does.
    fn alarm(&self, beat_at: Option<Instant>) -> (Instant, Wakeup) {
        let (at, then) = match (self.is_late, self.is_ended) {
            (false, _) => (self.late_at, Wakeup::Late),
            (true, false) => (self.give_up_at, Wakeup::GivenUp),
            (true, true) => (Instant::now() + LONG_WAIT, Wakeup::Beat),
        };
        match beat_at {
            Some(beat_at) if beat_at < at => (beat_at, Wakeup::Beat),
            _ => (at, then),
        }
    }

    /// Whether this leg is over once these events have happened.
    fn is_over_after(&self, batch: &[Event]) -> bool {
        let state = state_after(self.task.head.state, batch);
        state.is_terminal() || state.is_waiting()
    }

    fn warn_not_called_off(&self, failure: &Failure) {
        let (id, class, code) = (&self.task.head.id, failure.kind.class(), failure.kind.rpc_code());
        tracing::warn!(task.id = %id, code, "task {id} was not called off at the agent: {class}");
    }

    /// Writes down the events that end this leg.
    async fn end_with(mut self: Box<Self>, batch: Vec<Event>) -> RunUpdate {
        if let Err(failure) = self.write(batch, true).await {
            return self.over(Some(failure));
        }
        if !self.held.is_empty() {
            self.is_ended = true;
            self.events = futures::stream::empty().boxed();
            return RunUpdate::None(self);
        }
        self.finish()
    }

    /// This leg has ended, and that is recorded.
    fn finish(self: Box<Self>) -> RunUpdate {
        let failure = self.task.failure.clone().map(|failure| with_ids(failure, &self.task));
        if failure.as_ref().is_some_and(|failure| failure.kind == FailureKind::PeerUnreachable) {
            // Do not wait for the next round to learn that the agent is gone.
            health::start_recovery(&self.inner.registry, self.target.agent.id.clone());
        }
        self.over(failure)
    }

    fn over(self: Box<Self>, failure: Option<Failure>) -> RunUpdate {
        self.inner.running.lock().remove(&self.task.head.id);
        RunUpdate::End(match failure {
            Some(failure) => Err(failure),
            None => Ok(Box::new(self.task)),
        })
    }

    /// Its caller waits no longer. What ends with a command's process, and nobody could be asked about, ends here.
    async fn be_late(mut self: Box<Self>) -> RunUpdate {
        let late = format!("{} took longer than {} ms", self.target.verb(), self.wall_clock.as_millis());
        if !self.held.is_empty() {
            let failure = self.held_result(&late).await;
            return RunUpdate::Late(self, failure);
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
        let message = format!("{late}; the task goes on, and {} its result", self.fetcher());
        let failure = self.late(message).await;
        RunUpdate::Late(self, failure)
    }

    /// What whoever called fetches the task's result with.
    fn fetcher(&self) -> String {
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

    async fn late(&mut self, message: String) -> Failure {
        self.is_late = true;
        let failure = with_ids(Failure::new(FailureKind::PeerTimeout, message), &self.task);
        self.inner.journal.close(&mut self.announcement, None, &failure).await;
        failure
    }

    /// This process ends; the task does not, if the agent can be asked about it.
    async fn hand_back(mut self: Box<Self>) -> RunUpdate {
        if self.is_ended {
            let stopping = "this server is stopping";
            if self.is_late {
                return self.over(Some(Failure::new(FailureKind::PeerTimeout, stopping)));
            }
            let failure = self.held_result(stopping).await;
            return RunUpdate::Late(self, failure);
        }
        if self.task.head.remote.task_id.is_none() {
            let message = "this server is stopping, and the agent has not named the task, so its result cannot be fetched \
                           later; the agent may have done it: check before you call again";
            return self.end_with(vec![Event::failed(Failure::new(FailureKind::PeerTimeout, message))]).await;
        }
        let message = format!(
            "this server is stopping; the task goes on, and {} its result when it is back",
            self.fetcher()
        );
        if self.is_late {
            return self.over(Some(Failure::new(FailureKind::PeerTimeout, message)));
        }
        let failure = self.late(message).await;
        RunUpdate::Late(self, failure)
    }

    /// The agent has been silent for longer than anybody waits.
    async fn give_up(self: Box<Self>) -> RunUpdate {
        let failure =
            Failure::new(FailureKind::PeerTimeout, "the agent never answered, and never named the task");
        if self.task.head.remote.task_id.is_some() {
            // It can be asked again at any time, so the task stays open. Its caller has long been told that it is late.
            return self.over(Some(failure));
        }
        self.end_with(vec![Event::failed(failure)]).await
    }

    /// The agent has sent more than one task may hold. It is told to stop, where it has named the task; in every other case dropping
    /// the stream ends the work.
    async fn exceed(mut self: Box<Self>) -> RunUpdate {
        self.events = futures::stream::empty().boxed();
        let cancelling = self.inner.call_off(&self.caller, &self.target, &self.task);
        match tokio::time::timeout(NAMING, cancelling).await {
            Ok(Ok(_)) => {}
            Ok(Err(failure)) => self.warn_not_called_off(&failure),
            Err(_) => {
                let late = Failure::new(FailureKind::PeerTimeout, "the agent did not answer");
                self.warn_not_called_off(&late);
            }
        }
        let events = self.exceeded.take().map(Event::failed).into_iter().collect();
        self.end_with(events).await
    }

    async fn call_off(mut self: Box<Self>) -> RunUpdate {
        if !self.ahead.is_empty() {
            let ahead = std::mem::take(&mut self.ahead);
            return self.end_with(ahead).await;
        }
        let named_by = Instant::now() + NAMING;
        // What never names its tasks need not be told: letting go of it ends them.
        while self.task.head.remote.task_id.is_none() && self.target.agent.backing.names_tasks() {
            let Ok(Some(event)) = tokio::time::timeout_at(named_by, self.events.next()).await else {
                break;
            };
            let batch = vec![event];
            if self.is_over_after(&batch) {
                return self.end_with(batch).await;
            }
            if let Err(failure) = self.write(batch, false).await {
                return self.over(Some(failure));
            }
            if self.task.head.state.is_terminal() {
                return self.end_with(Vec::new()).await;
            }
        }
        let result = self.inner.call_off(&self.caller, &self.target, &self.task).await;
        let events = result.unwrap_or_else(|failure| {
            self.warn_not_called_off(&failure);
            Vec::new()
        });
        let is_over = state_after(self.task.head.state, &events).is_terminal();
        self.end_with(if is_over { events } else { with_local_cancel(events) }).await
    }
}

impl EngineInner {
    /// Asks the agent to call a task off, if policy lets the caller do that and the task has a name there.
    pub(crate) async fn call_off(
        &self,
        caller: &Caller,
        target: &CallTarget,
        task: &Task,
    ) -> Result<Vec<Event>, Failure> {
        if task.head.remote.task_id.is_none() {
            return Ok(Vec::new());
        }
        let cancel = CancelRequest {
            caller: caller.clone(),
            target: target.clone(),
            remote: task.head.remote.clone(),
        };
        let permitted = self.check(cancel);
        let permitted = permitted.map_err(|denied| Failure::new(FailureKind::Denied, denied.to_string()))?;
        self.peer.cancel(permitted).await
    }
}

/// Whether an event says how far the work is.
const fn has_words(event: &Event) -> bool {
    matches!(event, Event::Progress { message: Some(_), .. })
}

/// Where a task stands after `events`; those that cannot happen change nothing.
pub(crate) fn state_after(state: TaskState, events: &[Event]) -> TaskState {
    events.iter().fold(state, |state, event| state.after(event).unwrap_or(state))
}

/// What the agent said, and then that we stopped listening.
pub(crate) fn with_local_cancel(mut events: Vec<Event>) -> Vec<Event> {
    events.push(Event::Canceled { message: None, aside: EventAside::default() });
    events
}

/// The failure's facts together with everything needed to find the task again.
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
