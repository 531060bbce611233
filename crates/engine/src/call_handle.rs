//! A call under way, as whoever started it sees it.
//!
//! Most calls are answered at once, so whoever waits for a call also drives it: no task, no channel, no other thread.
//! With the first thing there is to tell before the end, the call moves into a task of its own, because from then on
//! it must not depend on how fast it is listened to. It moves there too when nobody waits any more (the wall clock
//! runs out, the client hangs up): the call goes on, and what it brings can be fetched later.

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

/// Progress that nobody collects is dropped beyond this; the result never is.
const UNCOLLECTED: usize = 64;

/// A call under way. It leaves when it is first waited for, or let go of.
pub struct Running {
    task: TaskId,
    /// The task as it was when the call began, for those who want to see it.
    begun: Option<Box<Task>>,
    drive: DriveMode,
    /// Sees to what comes after it, if somebody was chosen to do it.
    routed: Option<Box<DispatchAttempt>>,
    /// The choice that it came from.
    dispatch: Option<DispatchId>,
    cancel: CancellationToken,
    /// Where it goes on when it is let go of, which may happen outside of any runtime.
    runtime: Handle,
    heartbeat: Duration,
    next_beat: Instant,
    /// Ends when nobody waits any more.
    presence: CallerPresence,
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

/// Who sees to it that a call goes on.
enum DriveMode {
    /// Whoever waits: nothing has been told yet. It lives here and not in the waiting, which may be given up and begun
    /// again.
    Inline(BoxFuture<'static, RunUpdate>),
    /// A task of its own.
    Background(UpdateReceiver),
    /// It has ended, and it is seen to whether somebody else goes on. Like the first, it lives here and not in the waiting.
    Settling(BoxFuture<'static, AttemptEnd>),
    /// Nobody who is waited for: the end has been told.
    Over,
}

/// What is heard from a call in the background.
struct UpdateReceiver {
    updates: mpsc::Receiver<Event>,
    end: oneshot::Receiver<RunEnd>,
}

/// The side of [`UpdateReceiver`] that tells.
struct UpdateSender {
    updates: mpsc::Sender<Event>,
    end: Option<oneshot::Sender<RunEnd>>,
}

// === impl Running ===

impl Running {
    pub(crate) fn of(run: Box<CallRun>, begun: Option<Box<Task>>) -> Self {
        let heartbeat = run.heartbeat();
        let next_beat = Instant::now() + heartbeat;
        Self {
            task: run.id().clone(),
            begun,
            routed: None,
            dispatch: None,
            cancel: run.canceller(),
            drive: DriveMode::Inline(run.news(Some(next_beat)).boxed()),
            runtime: Handle::current(),
            heartbeat,
            next_beat,
            presence: CallerPresence::default(),
        }
    }

    /// The same call, whose backend hears when nobody waits for it any more.
    pub(crate) fn attended(mut self, presence: CallerPresence) -> Self {
        self.presence = presence;
        self
    }

    /// The same call, of which somebody hears when it has ended.
    pub(crate) fn routed(mut self, routed: Box<DispatchAttempt>) -> Self {
        (self.dispatch, self.routed) = (Some(routed.id().clone()), Some(routed));
        self
    }

    /// The choice that it came from, if somebody was chosen to do it.
    pub const fn dispatch(&self) -> Option<&DispatchId> {
        self.dispatch.as_ref()
    }

    /// Our name for the task. It is another one when another agent has gone on with the work.
    pub const fn task(&self) -> &TaskId {
        &self.task
    }

    /// The task as it was written down before the call left, if somebody wants to see it.
    pub(crate) fn as_begun(&mut self) -> Option<Box<Task>> {
        self.begun.take()
    }

    /// Waits for the next thing to tell. After `Done` or `Failed` there is nothing more.
    ///
    /// The waiting can be given up and begun again: nothing is lost.
    pub async fn next(&mut self) -> Step {
        loop {
            let end = match &mut self.drive {
                DriveMode::Inline(first) => match first.await {
                    RunUpdate::End(end) => end,
                    news => {
                        self.go_on(future::ready(news));
                        continue;
                    }
                },
                DriveMode::Settling(after) => match after.await {
                    AttemptEnd::End(end) => end,
                    AttemptEnd::Next(next) => {
                        self.become_next(*next);
                        continue;
                    }
                },
                DriveMode::Background(_) | DriveMode::Over => match self.listen().await {
                    Ok(step) => return step,
                    Err(end) => end,
                },
            };
            match self.routed.take() {
                None => return self.over(end),
                Some(routed) => self.drive = DriveMode::Settling(routed.after(end).boxed()),
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
    pub fn cancel(&mut self) {
        self.cancel.cancel();
        if matches!(self.drive, DriveMode::Inline(_)) {
            self.let_go();
        }
    }

    /// Goes on as another call, of another agent.
    fn become_next(&mut self, mut next: Self) {
        if self.cancel.is_cancelled() {
            next.cancel();
        }
        self.drive = DriveMode::Over;
        *self = next;
    }

    /// Waits for what the background tells, or for its end.
    async fn listen(&mut self) -> Result<Step, RunEnd> {
        let DriveMode::Background(ears) = &mut self.drive else {
            let told = Failure::new(FailureKind::Internal, "the call is over, and its end was told");
            return Ok(Step::Failed(told));
        };
        let end = tokio::select! {
            biased;
            Some(event) = ears.updates.recv() => {
                self.next_beat = Instant::now() + self.heartbeat;
                return Ok(Step::Event(Box::new(event)));
            }
            end = &mut ears.end => end.unwrap_or_else(|_| Err(lost())),
            () = sleep_until(self.next_beat) => {
                self.next_beat = Instant::now() + self.heartbeat;
                return Ok(Step::Heartbeat);
            }
        };
        Err(end)
    }

    fn over(&mut self, end: RunEnd) -> Step {
        self.drive = DriveMode::Over;
        end.map_or_else(Step::Failed, Step::Done)
    }

    /// Lets the call go on by itself.
    fn let_go(&mut self) {
        match mem::replace(&mut self.drive, DriveMode::Over) {
            DriveMode::Inline(first) => self.go_on(first),
            DriveMode::Settling(after) => {
                self.runtime.spawn(async move { drop(after.await) });
            }
            drive => self.drive = drive,
        }
    }

    fn go_on(&mut self, first: impl Future<Output = RunUpdate> + Send + 'static) {
        let (updates, heard) = mpsc::channel(UNCOLLECTED);
        let (end, ended) = oneshot::channel();
        let teller = UpdateSender { updates, end: Some(end) };
        self.runtime.spawn(async move { teller.tell(first.await).await });
        self.drive = DriveMode::Background(UpdateReceiver { updates: heard, end: ended });
    }
}

impl Drop for Running {
    /// Whoever stops waiting does not stop the call.
    fn drop(&mut self) {
        self.let_go();
        self.presence.leave();
    }
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running").field("task", &self.task).finish_non_exhaustive()
    }
}

// === impl Teller ===

impl UpdateSender {
    /// Tells everything up to the end, whether or not somebody listens.
    async fn tell(mut self, mut news: RunUpdate) {
        loop {
            let run = match news {
                RunUpdate::None(run) => run,
                RunUpdate::Events(run, events) => {
                    for event in events {
                        // A reader that does not keep up misses progress, never the end.
                        let _ = self.updates.try_send(event);
                    }
                    run
                }
                RunUpdate::Late(run, failure) => {
                    self.end(Err(failure));
                    run
                }
                RunUpdate::End(end) => return self.end(end),
            };
            news = run.news(None).await;
        }
    }

    /// Tells the end. A call that was too late for its caller has a second one, which is only written down.
    fn end(&mut self, end: RunEnd) {
        if let Some(teller) = self.end.take() {
            let _ = teller.send(end);
        }
    }
}

fn lost() -> Failure {
    Failure::new(FailureKind::Internal, "the call ended without a result; see the server's log")
}
