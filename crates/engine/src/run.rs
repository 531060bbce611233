//! What happens while a call runs: events are written down as they come, and whoever waits is told.
//!
//! A call runs in a task of its own. Whoever started it may stop waiting (the wall clock runs out, the client hangs
//! up); the call goes on, and what it brings can be fetched later.

use std::{sync::Arc, time::Duration};

use futures::{FutureExt, StreamExt, stream::BoxStream};
use rialto_model::{
    call::{Call, Caller, Cancel, Target},
    event::{Aside, Event},
    failure::{Failure, Kind},
    ids::TaskId,
    json::Json,
    task::Task,
};
use rialto_policy::Permitted;
use serde_json::json;
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, sleep_until},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    engine::{Inner, store_failure},
    health,
    journal::{Announcement, log_lost},
};

/// Progress that nobody collects is dropped beyond this; the result never is.
const UNCOLLECTED: usize = 64;

/// Events that are there at once are written down together, up to so many.
const BATCH: usize = 64;

/// How long a cancelled call is given to learn the remote task's name, without which it cannot be called off there.
const NAMING: Duration = Duration::from_secs(5);

/// A call under way.
#[derive(Debug)]
pub struct Running {
    task: TaskId,
    updates: mpsc::Receiver<Event>,
    end: oneshot::Receiver<Result<Task, Failure>>,
    cancel: CancellationToken,
    heartbeat: Duration,
    next_beat: Instant,
}

/// What there is to tell while waiting.
#[derive(Debug)]
pub enum Step {
    /// Something happened.
    Event(Box<Event>),
    /// Nothing happened for a while, but it still runs.
    Heartbeat,
    /// It ended, or waits for the caller.
    Done(Box<Task>),
    /// It failed; or it takes too long to wait for, and its task id is in the data.
    Failed(Failure),
}

/// One stretch of a task's life: from a message to its end, or to the next question.
pub(crate) struct Leg {
    pub(crate) call: Permitted<Call>,
    pub(crate) target: Target,
    pub(crate) task: Task,
    pub(crate) announcement: Announcement,
    pub(crate) wall_clock: Duration,
}

/// The side of [`Running`] that tells.
struct Teller {
    updates: mpsc::Sender<Event>,
    end: Option<oneshot::Sender<Result<Task, Failure>>>,
}

/// Why the loop stopped listening to the peer.
enum Turn {
    Events(Vec<Event>),
    Late,
    Cancelled,
    GivenUp,
}

// === impl Running ===

impl Running {
    /// Our name for the task.
    pub const fn task(&self) -> &TaskId {
        &self.task
    }

    /// Waits for the next thing to tell. After `Done` or `Failed` there is nothing more.
    pub async fn next(&mut self) -> Step {
        tokio::select! {
            biased;
            Some(event) = self.updates.recv() => {
                self.next_beat = Instant::now() + self.heartbeat;
                Step::Event(Box::new(event))
            }
            end = &mut self.end => match end {
                Ok(Ok(task)) => Step::Done(Box::new(task)),
                Ok(Err(failure)) => Step::Failed(failure),
                Err(_) => Step::Failed(Failure::new(Kind::Internal, "the call ended without a result; see the server's log")),
            },
            () = sleep_until(self.next_beat) => {
                self.next_beat = Instant::now() + self.heartbeat;
                Step::Heartbeat
            }
        }
    }

    /// Waits for the end.
    pub async fn finish(mut self) -> Result<Task, Failure> {
        loop {
            match self.next().await {
                Step::Event(_) | Step::Heartbeat => {}
                Step::Done(task) => return Ok(*task),
                Step::Failed(failure) => return Err(failure),
            }
        }
    }

    /// Calls it off: the agent is told, as soon as we know what it calls the task.
    pub fn cancel(&self) {
        self.cancel.cancel();
    }
}

// === impl Teller ===

impl Teller {
    fn tell(&self, event: Event) {
        // A reader that does not keep up misses progress, never the end.
        let _ = self.updates.try_send(event);
    }

    fn end(&mut self, end: Result<Task, Failure>) {
        if let Some(teller) = self.end.take() {
            let _ = teller.send(end);
        }
    }
}

/// Begins a call in a task of its own.
pub(crate) fn start(inner: &Arc<Inner>, tracker: &TaskTracker, leg: Leg) -> Running {
    let (updates, heard) = mpsc::channel(UNCOLLECTED);
    let (end, ended) = oneshot::channel();
    let cancel = CancellationToken::new();
    let task = leg.task.head.id.clone();
    inner.running.lock().insert(task.clone(), cancel.clone());
    let heartbeat = Duration::from_secs(inner.config.heartbeat_secs.max(1));
    let run = Run {
        inner: Arc::clone(inner),
        teller: Teller { updates, end: Some(end) },
        cancel: cancel.clone(),
        caller: leg.call.get().caller.clone(),
        target: leg.target,
        task: leg.task,
        announcement: leg.announcement,
        late_at: Instant::now() + leg.wall_clock,
        give_up_at: Instant::now() + leg.wall_clock + Duration::from_secs(inner.config.patience_secs),
        wall_clock: leg.wall_clock,
    };
    let events = inner.peer.send(leg.call);
    tracker.spawn(run.listen(events));
    Running { task, updates: heard, end: ended, cancel, heartbeat, next_beat: Instant::now() + heartbeat }
}

/// A call under way, seen from inside.
struct Run {
    inner: Arc<Inner>,
    teller: Teller,
    cancel: CancellationToken,
    caller: Caller,
    target: Target,
    task: Task,
    announcement: Announcement,
    wall_clock: Duration,
    late_at: Instant,
    give_up_at: Instant,
}

// === impl Run ===

impl Run {
    async fn listen(mut self, mut events: BoxStream<'static, Event>) {
        let mut is_late = false;
        loop {
            match self.turn(&mut events, is_late).await {
                Turn::Events(batch) => {
                    if self.take(batch).await {
                        break;
                    }
                }
                Turn::Late => {
                    is_late = true;
                    self.tell_late().await;
                }
                Turn::Cancelled => {
                    self.call_off(&mut events).await;
                    break;
                }
                Turn::GivenUp => {
                    self.give_up().await;
                    break;
                }
            }
        }
        self.inner.running.lock().remove(&self.task.head.id);
    }

    async fn turn(&self, events: &mut BoxStream<'static, Event>, is_late: bool) -> Turn {
        let first = tokio::select! {
            biased;
            event = events.next() => event,
            () = self.cancel.cancelled() => return Turn::Cancelled,
            () = sleep_until(self.late_at), if !is_late => return Turn::Late,
            () = sleep_until(self.give_up_at) => return Turn::GivenUp,
        };
        let Some(first) = first else {
            let failure = Failure::new(Kind::PeerGarbled, "the agent hung up before the task was done");
            return Turn::Events(vec![Event::failed(failure)]);
        };
        let mut batch = vec![first];
        while batch.len() < BATCH
            && let Some(Some(event)) = events.next().now_or_never()
        {
            batch.push(event);
        }
        Turn::Events(batch)
    }

    /// Writes a batch down and tells it. Answers whether this leg is over.
    async fn take(&mut self, batch: Vec<Event>) -> bool {
        let mut after = self.task.head.state;
        for event in &batch {
            after = after.after(event).unwrap_or(after);
        }
        let is_over = after.is_terminal() || after.is_waiting();
        let failure = if is_over { failure_in(&batch) } else { None };
        let told = if is_over { Vec::new() } else { batch.clone() };
        let ending = is_over.then_some((&mut self.announcement, failure.as_ref()));
        if let Err(error) = self.inner.journal.record(&mut self.task, batch, ending).await {
            log_lost(&self.task.head.id, &error);
            self.teller.end(Err(store_failure(error)));
            return true;
        }
        for event in told {
            self.teller.tell(event);
        }
        if is_over {
            self.end().await;
        }
        is_over
    }

    async fn end(&mut self) {
        if let Some(failure) = self.task.failure.clone() {
            if failure.kind == Kind::PeerUnreachable {
                // Do not wait for the next round to learn that the agent is gone.
                let (inner, id) = (Arc::clone(&self.inner), self.target.agent.id.clone());
                tokio::spawn(async move { health::probe(&inner.registry, &id).await });
            }
            self.teller.end(Err(self.with_ids(failure)));
        } else {
            self.teller.end(Ok(self.task.clone()));
        }
    }

    async fn tell_late(&mut self) {
        let message = format!(
            "{} took longer than {} ms; the task goes on, and get_task with task id {} fetches its result",
            self.target.verb(),
            self.wall_clock.as_millis(),
            self.task.head.id
        );
        let failure = self.with_ids(Failure::new(Kind::PeerTimeout, message));
        self.inner.journal.close(&mut self.announcement, None, &failure).await;
        self.teller.end(Err(failure));
    }

    /// The agent has been silent for longer than anybody waits.
    async fn give_up(&mut self) {
        if self.task.head.remote.task_id.is_some() {
            // It can be asked again at any time, so the task stays open.
            return;
        }
        let failure = Failure::new(Kind::PeerTimeout, "the agent never answered, and never named the task");
        self.take(vec![Event::failed(failure)]).await;
    }

    async fn call_off(&mut self, events: &mut BoxStream<'static, Event>) {
        let named_by = Instant::now() + NAMING;
        while self.task.head.remote.task_id.is_none() {
            let Ok(Some(event)) = tokio::time::timeout_at(named_by, events.next()).await else { break };
            if self.take(vec![event]).await {
                return;
            }
        }
        let result = self.inner.call_off(&self.caller, &self.target, &self.task).await;
        let events = match result {
            Ok(events) => events,
            Err(failure) => {
                tracing::warn!(task.id = %self.task.head.id, "task {} was not called off at the agent: {failure}", self.task.head.id);
                Vec::new()
            }
        };
        let mut state = self.task.head.state;
        for event in &events {
            state = state.after(event).unwrap_or(state);
        }
        let events = if state.is_terminal() { events } else { with_local_cancel(events) };
        self.take(events).await;
    }

    fn with_ids(&self, failure: Failure) -> Failure {
        with_ids(failure, &self.task)
    }
}

impl Inner {
    /// Asks the agent to call a task off, if policy lets the caller do that and the task has a name there.
    pub(crate) async fn call_off(
        &self,
        caller: &Caller,
        target: &Target,
        task: &Task,
    ) -> Result<Vec<Event>, Failure> {
        if task.head.remote.task_id.is_none() {
            return Ok(Vec::new());
        }
        let cancel =
            Cancel { caller: caller.clone(), target: target.clone(), remote: task.head.remote.clone() };
        let permitted = self.policy.load().check(cancel);
        let permitted = permitted.map_err(|denied| Failure::new(Kind::Denied, denied.to_string()))?;
        self.peer.cancel(permitted).await
    }
}

/// What the agent said, and then that we stopped listening.
pub(crate) fn with_local_cancel(mut events: Vec<Event>) -> Vec<Event> {
    events.push(Event::Canceled { message: None, aside: Aside::default() });
    events
}

/// The failure's facts together with everything needed to find the task again.
pub(crate) fn with_ids(mut failure: Failure, task: &Task) -> Failure {
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
    failure.data = Some(Json::of(&data));
    failure
}

fn failure_in(batch: &[Event]) -> Option<Failure> {
    batch.iter().rev().find_map(|event| match event {
        Event::Failed { failure, .. } => Some(failure.clone()),
        Event::Rejected { .. } => Some(Failure::new(Kind::PeerFailed, "the agent rejected the task")),
        Event::Canceled { .. } => Some(Failure::new(Kind::PeerFailed, "the task was canceled")),
        _ => None,
    })
}
