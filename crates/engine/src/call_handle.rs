//! Handle of a call in progress, for the code that started it.
//!
//! Most calls end at once, so the code that waits for a call also drives it: no task, no channel, no other thread.
//! With the first update before the end, the call moves into a background task, because from then on
//! it must not depend on how fast its updates are read. It moves there too when nobody waits any more (the timeout ends,
//! the client hangs up): the call continues, and its result can be fetched later.

use std::{fmt, future, mem, time::Duration};

use futures::{FutureExt, future::BoxFuture};
use rialto_model::{
    event::Event,
    failure::{Failure, FailureKind},
    ids::{DispatchId, TaskId},
    presence::CallerPresence,
    task::Task,
};
use tokio::{
    runtime::Handle,
    sync::{mpsc, oneshot},
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;

use crate::{
    call_run::{CallRun, RunEnd, RunUpdate},
    routing::{AttemptEnd, DispatchAttempt},
};

/// Maximum number of events that wait for a reader. Further progress is dropped; the result never is.
const MAX_PENDING_UPDATES: usize = 64;

/// A call in progress. It leaves when its handle is first waited for, or dropped.
pub struct CallHandle {
    task: TaskId,
    /// The task as it was stored before the call left, if the request wanted it.
    initial_task: Option<Box<Task>>,
    drive: DriveMode,
    /// Calls the next agent after a failure, if the call was dispatched.
    attempt: Option<Box<DispatchAttempt>>,
    /// The dispatch decision of the call.
    dispatch: Option<DispatchId>,
    cancel: CancellationToken,
    /// Runtime of the background task: the handle may be dropped outside of any runtime.
    runtime: Handle,
    heartbeat: Duration,
    next_heartbeat: Instant,
    /// Tells the backend when nobody waits any more.
    presence: CallerPresence,
}

/// Update of a call in progress.
#[derive(Debug)]
pub enum CallUpdate {
    /// An event of the task.
    Event(Box<Event>),
    /// No event for a while; the call is still in progress.
    Heartbeat,
    /// The task ended, or waits for the caller.
    Done(Box<Task>),
    /// The call failed, or its timeout ended; then the task id is in the data.
    Failed(Failure),
}

/// Driver of a call.
enum DriveMode {
    /// The code that waits: there was no update yet. The future is kept here, so that waiting can be interrupted and started again.
    Inline(BoxFuture<'static, RunUpdate>),
    /// A background task.
    Background(UpdateReceiver),
    /// The code that waits: the call of a dispatch has ended, and the next agent may be called.
    Failover(BoxFuture<'static, AttemptEnd>),
    /// None: the end was returned.
    Ended,
}

/// Receiver of the updates of a call in the background.
struct UpdateReceiver {
    updates: mpsc::Receiver<Event>,
    end: oneshot::Receiver<RunEnd>,
}

/// Sender of the updates to an [`UpdateReceiver`].
struct UpdateSender {
    updates: mpsc::Sender<Event>,
    end: Option<oneshot::Sender<RunEnd>>,
}

// === impl CallHandle ===

impl CallHandle {
    pub(crate) fn new(run: Box<CallRun>) -> Self {
        let heartbeat = run.heartbeat();
        let next_heartbeat = Instant::now() + heartbeat;
        Self {
            task: run.id().clone(),
            initial_task: None,
            attempt: None,
            dispatch: None,
            cancel: run.cancel_token(),
            drive: DriveMode::Inline(run.next(Some(next_heartbeat)).boxed()),
            runtime: Handle::current(),
            heartbeat,
            next_heartbeat,
            presence: CallerPresence::default(),
        }
    }

    /// Sets the presence of the caller: the backend learns from it when nobody waits any more.
    pub(crate) fn with_presence(mut self, presence: CallerPresence) -> Self {
        self.presence = presence;
        self
    }

    /// Adds the task as it was stored before the call left.
    pub(crate) fn with_initial_task(mut self, task: Option<Box<Task>>) -> Self {
        self.initial_task = task;
        self
    }

    /// Adds the dispatch that the call is an attempt of.
    pub(crate) fn with_attempt(mut self, attempt: Box<DispatchAttempt>) -> Self {
        (self.dispatch, self.attempt) = (Some(attempt.id().clone()), Some(attempt));
        self
    }

    /// The dispatch decision of the call, if it was dispatched.
    pub const fn dispatch(&self) -> Option<&DispatchId> {
        self.dispatch.as_ref()
    }

    /// Our id of the task. It changes when a dispatch calls another agent.
    pub const fn task(&self) -> &TaskId {
        &self.task
    }

    /// The task as it was stored before the call left, if the request wanted it.
    pub fn initial_task(&self) -> Option<&Task> {
        self.initial_task.as_deref()
    }

    /// Takes the task as it was stored before the call left, if the request wanted it.
    pub fn take_initial_task(&mut self) -> Option<Box<Task>> {
        self.initial_task.take()
    }

    /// Waits for the next update. After `Done` or `Failed` there is none.
    ///
    /// Waiting can be interrupted and started again: no update is lost.
    pub async fn next(&mut self) -> CallUpdate {
        loop {
            let end = match &mut self.drive {
                DriveMode::Inline(first) => match first.await {
                    RunUpdate::End(end) => end,
                    update => {
                        self.run_in_background(future::ready(update));
                        continue;
                    }
                },
                DriveMode::Failover(after) => match after.await {
                    AttemptEnd::End(end) => end,
                    AttemptEnd::Next(next) => {
                        self.become_next(*next);
                        continue;
                    }
                },
                DriveMode::Background(_) | DriveMode::Ended => match self.receive().await {
                    Ok(step) => return step,
                    Err(end) => end,
                },
            };
            match self.attempt.take() {
                None => return self.end(end),
                Some(attempt) => self.drive = DriveMode::Failover(attempt.on_end(end).boxed()),
            }
        }
    }

    /// Waits for the end.
    pub async fn finish(mut self) -> Result<Task, Failure> {
        loop {
            match self.next().await {
                CallUpdate::Event(_) | CallUpdate::Heartbeat => {}
                CallUpdate::Done(task) => return Ok(*task),
                CallUpdate::Failed(failure) => return Err(failure),
            }
        }
    }

    /// Cancels the call: the agent is asked to cancel its task, as soon as it has named it.
    pub fn cancel(&mut self) {
        self.cancel.cancel();
        if matches!(self.drive, DriveMode::Inline(_)) {
            self.detach();
        }
    }

    /// Becomes the call of another agent.
    fn become_next(&mut self, mut next: Self) {
        if self.cancel.is_cancelled() {
            next.cancel();
        }
        self.drive = DriveMode::Ended;
        *self = next;
    }

    /// Waits for an update of the background task, or for its end.
    async fn receive(&mut self) -> Result<CallUpdate, RunEnd> {
        let DriveMode::Background(receiver) = &mut self.drive else {
            let failure = Failure::new(FailureKind::Internal, "the call has ended, and its end was returned");
            return Ok(CallUpdate::Failed(failure));
        };
        let end = tokio::select! {
            biased;
            Some(event) = receiver.updates.recv() => {
                self.next_heartbeat = Instant::now() + self.heartbeat;
                return Ok(CallUpdate::Event(Box::new(event)));
            }
            end = &mut receiver.end => end.unwrap_or_else(|_| Err(lost())),
            () = sleep_until(self.next_heartbeat) => {
                self.next_heartbeat = Instant::now() + self.heartbeat;
                return Ok(CallUpdate::Heartbeat);
            }
        };
        Err(end)
    }

    fn end(&mut self, end: RunEnd) -> CallUpdate {
        self.drive = DriveMode::Ended;
        end.map_or_else(CallUpdate::Failed, CallUpdate::Done)
    }

    /// Lets the call continue in the background.
    fn detach(&mut self) {
        match mem::replace(&mut self.drive, DriveMode::Ended) {
            DriveMode::Inline(first) => self.run_in_background(first),
            DriveMode::Failover(after) => {
                self.runtime.spawn(async move { drop(after.await) });
            }
            drive => self.drive = drive,
        }
    }

    fn run_in_background(&mut self, first: impl Future<Output = RunUpdate> + Send + 'static) {
        let (updates, receiver) = mpsc::channel(MAX_PENDING_UPDATES);
        let (end, ended) = oneshot::channel();
        let sender = UpdateSender { updates, end: Some(end) };
        self.runtime.spawn(async move { sender.send_all(first.await).await });
        self.drive = DriveMode::Background(UpdateReceiver { updates: receiver, end: ended });
    }
}

impl Drop for CallHandle {
    /// Detaches the call: it continues.
    fn drop(&mut self) {
        self.detach();
        self.presence.leave();
    }
}

impl fmt::Debug for CallHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallHandle").field("task", &self.task).finish_non_exhaustive()
    }
}

// === impl UpdateSender ===

impl UpdateSender {
    /// Drives the call to its end and sends its updates, with or without a reader.
    async fn send_all(mut self, mut update: RunUpdate) {
        loop {
            let run = match update {
                RunUpdate::Nothing(run) => run,
                RunUpdate::Events(run, events) => {
                    for event in events {
                        // A reader that does not keep up misses progress, never the end.
                        let _ = self.updates.try_send(event);
                    }
                    run
                }
                RunUpdate::TimedOut(run, failure) => {
                    self.send_end(Err(failure));
                    run
                }
                RunUpdate::End(end) => return self.send_end(end),
            };
            update = run.next(None).await;
        }
    }

    /// Sends the end. A call whose timeout has ended has a second end, which is only recorded.
    fn send_end(&mut self, end: RunEnd) {
        if let Some(sender) = self.end.take() {
            let _ = sender.send(end);
        }
    }
}

fn lost() -> Failure {
    Failure::new(FailureKind::Internal, "the call ended without a result; see the server's log")
}
