//! Takes over the tasks of processes that are gone.
//!
//! What a process that is gone ([`attendance`](crate::attendance)) has left open is resumed: an agent that has named the task
//! is asked how it goes on, a tool that may be run twice is run again, and everything else ends with the reason. Nothing
//! stays open for nobody.

use std::{sync::Arc, time::Duration};

use futures::{StreamExt, stream, stream::BoxStream};
use rialto_model::{
    call::{Call, CallTarget, Caller, CallerKind, FollowRequest, OriginalMessage},
    clock::Timestamp,
    event::Event,
    failure::{Failure, FailureKind},
    ids::{AgentId, ProcessId},
    message::Part,
    presence::CallerPresence,
    store::StoreError,
    task::{Task, TaskHead},
    token_scopes::TokenScopes,
};
use rialto_policy::Permitted;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::{
    budget::TaskBudget,
    call_handle::Running,
    call_run::{CallRun, RunParams},
    engine::{Engine, EngineInner, store_failure, verb_of},
    lease_keeper::LeaseKeeper,
    redact::{is_omitted, is_redacted},
    tasks::target_of,
};

/// How long a task of an agent that only its caller knows is left to its caller.
const CALLERS_TIME: Duration = Duration::from_secs(24 * 60 * 60);

/// While a lease lasts, tasks that others left are looked for so many times.
const LOOKS: u32 = 6;

/// How many tasks are taken over at once.
const AT_ONCE: usize = 100;

/// How long to wait before an agent is asked again that could not be asked.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// How long the store may take to record the end of a task, before it is held.
const END_PATIENCE: Duration = Duration::from_secs(1);

/// What A2A agents of every generation answer when they do not know a task.
pub(crate) const NO_SUCH_TASK: i64 = -32001;

// === impl Engine ===

impl Engine {
    /// Keeps watch until it is told to stop: says that this process is at work where that needs saying, and takes over what
    /// others leave behind.
    pub async fn keep_post(&self, stop: CancellationToken) {
        self.inner().attendance.keep_watch();
        let keeper = LeaseKeeper::start(self);
        if let Err(error) = &keeper {
            tracing::error!("this process cannot say that it is at work: {error}");
        }
        let mut is_failing = false;
        while !stop.is_cancelled() {
            let runner = match self.attend().await {
                Ok(runner) => runner,
                Err(failure) => {
                    tracing::error!("this process could not say that it is at work: {failure}");
                    ProcessId::NOBODY
                }
            };
            let may_judge = self.inner().store.detects_process_exit() || self.can_judge_leases();
            if runner != ProcessId::NOBODY && !self.is_draining() && may_judge {
                let taken = self.take_over(runner).await;
                if let Err(error) = &taken
                    && !is_failing
                {
                    tracing::error!("tasks of processes that are gone could not be taken over: {error}");
                }
                is_failing = taken.is_err();
            }
            tokio::select! {
                () = stop.cancelled() => {}
                () = tokio::time::sleep(self.inner().store.lease() / LOOKS) => {}
            }
        }
    }

    async fn take_over(&self, runner: ProcessId) -> Result<(), StoreError> {
        // What a process held that is gone is recorded before its tasks are looked at.
        self.inner().journal.recover_held().await?;
        loop {
            // By then no lease is over: only processes whose death is seen are gone.
            let now =
                if self.can_judge_leases() { self.inner().journal.now() } else { Timestamp::UNIX_EPOCH };
            let left = self.inner().store.take_over_tasks(runner, now, AT_ONCE).await?;
            if left.is_empty() {
                return Ok(());
            }
            tracing::info!("{} tasks of a process that is gone are taken over", left.len());
            for head in left {
                let id = head.id.clone();
                match self.resume(head.clone()).await {
                    Ok(()) => {}
                    Err(failure) if failure.kind == FailureKind::StoreUnavailable => self.resume_later(head),
                    Err(failure) => {
                        tracing::error!(task.id = %id, "task {id} could not be taken over: {failure}");
                    }
                }
            }
        }
    }

    /// Resumes a task that is this process's once the store is back.
    fn resume_later(&self, head: TaskHead) {
        let engine = self.faint();
        tokio::spawn(async move {
            let mut pause = FIRST_PAUSE;
            while let Some(engine) = engine.get() {
                match engine.resume(head.clone()).await {
                    Err(failure) if failure.kind == FailureKind::StoreUnavailable => {}
                    Err(failure) => {
                        let id = &head.id;
                        tracing::error!(task.id = %id, "task {id} could not be taken over: {failure}");
                        return;
                    }
                    Ok(()) => return,
                }
                drop(engine);
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        });
    }

    /// Goes on with a task that another process left.
    async fn resume(&self, head: TaskHead) -> Result<(), Failure> {
        self.sync().await?;
        let inner = self.inner();
        let task = inner.journal.read(head).await.map_err(store_failure)?;
        if task.head.state.is_waiting() {
            // Its caller goes on with it, whichever process it comes to.
            return Ok(());
        }
        let Some(agent) = self.agent_of(&task) else {
            if self.may_be_asked_elsewhere(&task) {
                return Ok(());
            }
            return self.end(task, "its agent was removed while nobody worked on it").await;
        };
        let target = target_of(agent, &task);
        let caller = self.caller_of(&task.head);
        let events = if task.head.remote.task_id.is_some() {
            self.ask_again(&task, &caller, &target)
        } else {
            self.run_again(&task, &caller, &target)
        };
        match events {
            Ok(events) => {
                let verb = verb_of(&call_of(&task, &caller, &target), task.head.args.clone());
                let announcement = inner.journal.take_up(verb, target.cost());
                let wall_clock = Duration::from_secs(inner.config.patience_secs);
                let budget = TaskBudget::fresh(&inner.config);
                let leg = RunParams {
                    caller,
                    target,
                    events,
                    task,
                    announcement,
                    begun_at: Instant::now(),
                    wall_clock,
                    seat: None,
                    budget,
                };
                // Nobody waits for it: it goes on by itself.
                drop(Running::of(CallRun::begin(inner, leg), None));
                Ok(())
            }
            Err(why) => self.end(task, &why).await,
        }
    }

    /// Whether a task's agent, which nobody here knows, may be known to the caller: it was named on a command line, and can
    /// be named again. Its caller asks it then, for a day.
    fn may_be_asked_elsewhere(&self, task: &Task) -> bool {
        let until = task.head.updated_at.checked_add(CALLERS_TIME);
        task.head.remote.task_id.is_some() && until.is_ok_and(|until| self.inner().journal.now() < until)
    }

    pub(crate) fn ask_again(
        &self,
        task: &Task,
        caller: &Caller,
        target: &CallTarget,
    ) -> Result<Events, String> {
        let inner = Arc::clone(self.inner());
        let (caller, target, remote) = (caller.clone(), target.clone(), task.head.remote.clone());
        let follow = FollowRequest { caller, target, remote, to_the_end: true };
        inner.check(follow.clone()).map_err(|denied| denied.to_string())?;
        let begun = tokio::time::Instant::now();
        let patience = Duration::from_secs(inner.config.patience_secs);
        Ok(insistently(inner, follow, begun + patience))
    }

    fn run_again(&self, task: &Task, caller: &Caller, target: &CallTarget) -> Result<Events, String> {
        let is_repeatable = target.skill.as_ref().is_some_and(|skill| skill.is_repeatable());
        if !is_repeatable && !target.agent.backing.begins_once() {
            let why = "the process stopped while this ran, and nothing says that it can safely be run twice; the agent may have done it: check \
                       before you send it again";
            return Err(why.to_owned());
        }
        let beside = task.history.first().and_then(|message| message.metadata.as_ref());
        if is_redacted(&task.head.args) || beside.is_some_and(is_redacted) {
            let why = "the process stopped while this ran, and its arguments held secrets that are not kept; the agent may have done it: check \
                       before you send it again";
            return Err(why.to_owned());
        }
        if is_omitted(&task.head.args) && task.history.is_empty() {
            let why = "the process stopped while this ran, and its arguments were too large to be kept; the agent may have done it: check before \
                       you send it again";
            return Err(why.to_owned());
        }
        let permitted = self.inner().check(call_of(task, caller, target));
        Ok(self.inner().peer.send(permitted.map_err(|denied| denied.to_string())?))
    }

    async fn end(&self, mut task: Task, why: &str) -> Result<(), Failure> {
        let id = task.head.id.clone();
        tracing::warn!(task.id = %id, "task {id} ends, because the process that worked on it is gone: {why}");
        let failure = Failure::new(FailureKind::PeerFailed, why);
        let inner = self.inner();
        if let Some(agent) = self.agent_of(&task) {
            let target = target_of(agent, &task);
            let caller = self.caller_of(&task.head);
            let verb = verb_of(&call_of(&task, &caller, &target), task.head.args.clone());
            let mut announcement = inner.journal.take_up(verb, None);
            let ending = Some((&mut announcement, Some(&failure)));
            let events = vec![Event::failed(failure.clone())];
            let ended = inner.journal.record_or_hold(&mut task, events, ending, END_PATIENCE).await;
            return ended.map(|_| ()).map_err(store_failure);
        }
        let events = vec![Event::failed(failure)];
        let ended = inner.journal.record_or_hold(&mut task, events, None, END_PATIENCE).await;
        ended.map(|_| ()).map_err(store_failure)
    }

    /// Who began a task. An agent's own id says that it is one.
    pub(crate) fn caller_of(&self, head: &TaskHead) -> Caller {
        let is_agent = self.registry().get(&AgentId::from(head.caller.as_str())).is_some();
        let kind = if is_agent { CallerKind::Agent } else { CallerKind::User };
        Caller {
            scope: head.scope.clone(),
            kind,
            id: head.caller.clone(),
            rights: TokenScopes::ALL,
            token: None,
            proof: None,
            hops: 0,
        }
    }
}

pub(crate) type Events = BoxStream<'static, Event>;

/// The same call once more.
pub(crate) fn call_of(task: &Task, caller: &Caller, target: &CallTarget) -> Call {
    let said = task.history.first().map(|message| message.parts.clone());
    Call {
        task: task.head.id.clone(),
        caller: caller.clone(),
        door: task.head.door,
        target: target.clone(),
        parts: said.unwrap_or_else(|| vec![Part::data(task.head.args.clone())]),
        continues: task.head.remote.clone(),
        session: Arc::clone(&task.head.session),
        trace: None,
        spoken: task.history.first().map(|message| Arc::new(OriginalMessage::new(message.clone(), None))),
        presence: CallerPresence::default(),
    }
}

/// What an agent tells of a task, asked again when it cannot be asked.
fn insistently(inner: Arc<EngineInner>, follow: FollowRequest, until: tokio::time::Instant) -> Events {
    struct Asking {
        inner: Arc<EngineInner>,
        follow: FollowRequest,
        heard: Option<BoxStream<'static, Result<Event, Failure>>>,
        pause: Duration,
        until: tokio::time::Instant,
    }
    let asking = Asking { inner, follow, heard: None, pause: FIRST_PAUSE, until };
    stream::unfold(asking, |mut asking| async move {
        loop {
            let heard = match &mut asking.heard {
                Some(heard) => heard.next().await,
                None => match asking.inner.check(asking.follow.clone()) {
                    Ok(permitted) => {
                        let permitted: Permitted<FollowRequest> = permitted;
                        asking.heard.insert(asking.inner.peer.follow(permitted)).next().await
                    }
                    Err(denied) => {
                        let failure = Failure::new(FailureKind::Denied, denied.to_string());
                        return Some((Event::failed(failure), asking));
                    }
                },
            };
            match heard {
                Some(Ok(event)) => return Some((event, asking)),
                Some(Err(failure))
                    if is_forgotten(&failure) || tokio::time::Instant::now() >= asking.until =>
                {
                    return Some((Event::failed(failure), asking));
                }
                Some(Err(_)) | None => {
                    asking.heard = None;
                    tokio::time::sleep(asking.pause).await;
                    asking.pause = (asking.pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    })
    .boxed()
}

/// Whether the agent says that it has no such task: asking again would not bring it back.
fn is_forgotten(failure: &Failure) -> bool {
    failure.data.as_ref().is_some_and(|data| data.value()["remoteCode"] == NO_SUCH_TASK)
}
