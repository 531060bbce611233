//! Takes over the tasks of processes that are gone.
//!
//! The open tasks of a process that is gone ([`process_lease`](crate::process_lease)) are resumed: an agent that has named the task
//! is asked for it, a tool that may be run twice is run again, and everything else ends with the reason. No task stays open
//! without a process.

use std::{path::PathBuf, sync::Arc, time::Duration};

use rialto_model::{
    call::{Call, CallTarget, Caller, OriginalMessage},
    clock::Timestamp,
    event::Event,
    failure::{Failure, FailureKind},
    ids::ProcessId,
    message::Part,
    presence::CallerPresence,
    store::StoreError,
    task::{Task, TaskHead},
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::{
    budget::TaskBudget,
    call_run::RunParams,
    call_runner::{CallRunner, Events, FIRST_RETRY_PAUSE, LONGEST_RETRY_PAUSE},
    journal::audit_verb,
    lease_keeper::LeaseKeeper,
    node::NodeService,
    redact::{is_omitted, is_redacted},
    store_failure::store_failure,
    task_service::{TaskService, target_of},
};

/// Time for which a task of an agent that only its caller knows is left to its caller.
const CALLER_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

/// Number of polls for tasks of other processes while a lease is valid.
const POLLS_PER_LEASE: u32 = 6;

/// Maximum number of tasks that are taken over in one step.
const MAX_BATCH_TASKS: usize = 100;

/// Time that the store has to record the end of a task, before it is held.
const END_WRITE_TIMEOUT: Duration = Duration::from_secs(1);

/// Takeover of the tasks of processes that are gone.
pub struct TakeoverService {
    runner: Arc<CallRunner>,
    tasks: Arc<TaskService>,
    nodes: Arc<NodeService>,
}

// === impl TakeoverService ===

impl TakeoverService {
    pub(crate) const fn new(
        runner: Arc<CallRunner>,
        tasks: Arc<TaskService>,
        nodes: Arc<NodeService>,
    ) -> Self {
        Self { runner, tasks, nodes }
    }

    /// Stores results that the store could not take in a file of this folder from now on, and records those that gone processes left
    /// there. To be called before their tasks are taken over.
    pub async fn spill_held_results(&self, folder: PathBuf) -> Result<(), Failure> {
        self.runner.journal.spill_in(folder);
        self.runner.journal.recover_held().await.map_err(store_failure)
    }

    /// Renews the lease of this process and takes over the tasks of others, until `stop` is cancelled.
    pub async fn run(self: &Arc<Self>, stop: CancellationToken) {
        let lease = &self.runner.lease;
        lease.set_takes_over();
        let keeper = LeaseKeeper::start(lease);
        if let Err(error) = &keeper {
            tracing::error!("the lease of this process cannot be renewed: {error}");
        }
        let mut is_failing = false;
        while !stop.is_cancelled() {
            let runner = match lease.ensure_registered().await {
                Ok(runner) => runner,
                Err(failure) => {
                    tracing::error!("the lease of this process could not be written: {failure}");
                    ProcessId::NOBODY
                }
            };
            let may_judge = self.runner.store.detects_process_exit() || lease.can_judge_leases();
            if runner != ProcessId::NOBODY && !self.nodes.is_draining() && may_judge {
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
                () = tokio::time::sleep(lease.duration() / POLLS_PER_LEASE) => {}
            }
        }
    }

    async fn take_over(self: &Arc<Self>, runner: ProcessId) -> Result<(), StoreError> {
        // Results that a gone process held are recorded before its tasks are read.
        self.runner.journal.recover_held().await?;
        loop {
            // At that time no lease has expired: only processes whose death is seen are gone.
            let can_judge = self.runner.lease.can_judge_leases();
            let now = if can_judge { self.runner.journal.now() } else { Timestamp::UNIX_EPOCH };
            let left = self.runner.store.take_over_tasks(runner, now, MAX_BATCH_TASKS).await?;
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
    fn resume_later(self: &Arc<Self>, head: TaskHead) {
        let service = Arc::downgrade(self);
        tokio::spawn(async move {
            let mut pause = FIRST_RETRY_PAUSE;
            while let Some(service) = service.upgrade() {
                match service.resume(head.clone()).await {
                    Err(failure) if failure.kind == FailureKind::StoreUnavailable => {}
                    Err(failure) => {
                        let id = &head.id;
                        tracing::error!(task.id = %id, "task {id} could not be taken over: {failure}");
                        return;
                    }
                    Ok(()) => return,
                }
                drop(service);
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_RETRY_PAUSE);
            }
        });
    }

    /// Resumes a task of another process.
    async fn resume(&self, head: TaskHead) -> Result<(), Failure> {
        let runner = &self.runner;
        runner.policies.sync().await?;
        let task = runner.journal.read(head).await.map_err(store_failure)?;
        if task.head.state.is_waiting() {
            // Its caller continues it, in any process.
            return Ok(());
        }
        let Some(agent) = self.tasks.find_agent(&task) else {
            if self.may_be_asked_elsewhere(&task) {
                return Ok(());
            }
            return self.end(task, "its agent was removed while nobody worked on it").await;
        };
        let target = target_of(agent, &task);
        let caller = self.tasks.caller_of(&task.head);
        let events = if task.head.remote.task_id.is_some() {
            runner.follow_with_retry(&task, &caller, &target)
        } else {
            self.run_again(&task, &caller, &target)
        };
        match events {
            Ok(events) => {
                let verb = audit_verb(&stored_call(&task, &caller, &target), task.head.args.clone());
                let span = runner.journal.take_up(verb, target.cost());
                let timeout = Duration::from_secs(runner.config.patience_secs);
                let budget = TaskBudget::fresh(&runner.config);
                let params = RunParams {
                    caller,
                    target,
                    events,
                    task,
                    span,
                    started_at: Instant::now(),
                    timeout,
                    permit: None,
                    budget,
                };
                // Nobody waits for it: it continues in the background.
                drop(runner.start(params));
                Ok(())
            }
            Err(why) => self.end(task, &why).await,
        }
    }

    /// True if the agent of a task, which is not registered here, may be known to the caller: it was named on a command line, and can
    /// be named again. Its caller asks it then, for a day.
    fn may_be_asked_elsewhere(&self, task: &Task) -> bool {
        let until = task.head.updated_at.checked_add(CALLER_TIMEOUT);
        task.head.remote.task_id.is_some() && until.is_ok_and(|until| self.runner.journal.now() < until)
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
        let permitted = self.runner.policies.check(stored_call(task, caller, target));
        Ok(self.runner.backends.send(permitted.map_err(|denied| denied.to_string())?))
    }

    async fn end(&self, mut task: Task, why: &str) -> Result<(), Failure> {
        let id = task.head.id.clone();
        tracing::warn!(task.id = %id, "task {id} ends, because the process that worked on it is gone: {why}");
        let failure = Failure::new(FailureKind::PeerFailed, why);
        let runner = &self.runner;
        if let Some(agent) = self.tasks.find_agent(&task) {
            let target = target_of(agent, &task);
            let caller = self.tasks.caller_of(&task.head);
            let verb = audit_verb(&stored_call(&task, &caller, &target), task.head.args.clone());
            let mut span = runner.journal.take_up(verb, None);
            let ending = Some((&mut span, Some(&failure)));
            let events = vec![Event::failed(failure.clone())];
            let ended = runner.journal.record_or_hold(&mut task, events, ending, END_WRITE_TIMEOUT).await;
            return ended.map(|_| ()).map_err(store_failure);
        }
        let events = vec![Event::failed(failure)];
        let ended = runner.journal.record_or_hold(&mut task, events, None, END_WRITE_TIMEOUT).await;
        ended.map(|_| ()).map_err(store_failure)
    }
}

/// The call of a stored task.
pub(crate) fn stored_call(task: &Task, caller: &Caller, target: &CallTarget) -> Call {
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
