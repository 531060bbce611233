//! Start of runs: the part of the engine that everything shares which continues a task.
//!
//! A call, the resumption after an approval, the takeover of a task and the following of a task at its agent all start a
//! [`CallRun`]. They share this struct, which knows none of them, so the services above it depend on each other in one direction.

use std::{sync::Arc, time::Duration};

use futures::{StreamExt, stream, stream::BoxStream};
use rialto_model::{
    call::{CallTarget, Caller, CancelRequest, FollowRequest},
    event::Event,
    failure::{Failure, FailureKind},
    store::Store,
    task::Task,
};
use rialto_policy::Permitted;
use tokio::time::{Instant, sleep};

use crate::{
    call_handle::CallHandle,
    call_run::{CallRun, RunParams},
    config::Config,
    journal::TaskJournal,
    peer::Peer,
    policies::PolicyService,
    process_lease::ProcessLease,
    registry::Registry,
    running_calls::RunningCalls,
    storage_quota::StorageQuota,
};

/// First pause before an agent that could not be asked about a task is asked again.
pub(crate) const FIRST_RETRY_PAUSE: Duration = Duration::from_millis(500);

/// Longest pause before it is asked again.
pub(crate) const LONGEST_RETRY_PAUSE: Duration = Duration::from_secs(30);

/// Code with which A2A agents of every version answer when they do not know a task.
pub(crate) const NO_SUCH_TASK: i64 = -32001;

/// Events of a task.
pub(crate) type Events = BoxStream<'static, Event>;

/// Starter of runs, with the dependencies of each run.
pub(crate) struct CallRunner {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) journal: TaskJournal,
    pub(crate) registry: Arc<Registry>,
    pub(crate) policies: Arc<PolicyService>,
    pub(crate) backends: Arc<dyn Peer>,
    pub(crate) lease: Arc<ProcessLease>,
    pub(crate) quota: Arc<StorageQuota>,
    pub(crate) running: Arc<RunningCalls>,
    pub(crate) config: Arc<Config>,
}

// === impl CallRunner ===

impl CallRunner {
    /// Starts a run. Nothing leaves before its handle is waited for or dropped.
    pub(crate) fn start(self: &Arc<Self>, params: RunParams) -> CallHandle {
        CallHandle::new(CallRun::new(self, params))
    }

    /// Asks the agent to cancel a task, if policy permits that to the caller and the agent has named the task.
    pub(crate) async fn cancel_at_agent(
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
        let permitted = self.policies.check(cancel);
        let permitted = permitted.map_err(|denied| Failure::new(FailureKind::Denied, denied.to_string()))?;
        self.backends.cancel(permitted).await
    }

    /// Follows a task at its agent to its end. An agent that cannot be asked is asked again with backoff.
    pub(crate) fn follow_with_retry(
        self: &Arc<Self>,
        task: &Task,
        caller: &Caller,
        target: &CallTarget,
    ) -> Result<Events, String> {
        let (caller, target, remote) = (caller.clone(), target.clone(), task.head.remote.clone());
        let follow = FollowRequest { caller, target, remote, to_the_end: true };
        self.policies.check(follow.clone()).map_err(|denied| denied.to_string())?;
        let until = Instant::now() + Duration::from_secs(self.config.patience_secs);
        let retry =
            FollowRetry { runner: Arc::clone(self), follow, events: None, pause: FIRST_RETRY_PAUSE, until };
        Ok(stream::unfold(retry, |mut retry| async move { retry.next().await.map(|event| (event, retry)) })
            .boxed())
    }
}

/// State of a task that is followed with retries.
struct FollowRetry {
    runner: Arc<CallRunner>,
    follow: FollowRequest,
    events: Option<BoxStream<'static, Result<Event, Failure>>>,
    pause: Duration,
    until: Instant,
}

// === impl FollowRetry ===

impl FollowRetry {
    async fn next(&mut self) -> Option<Event> {
        loop {
            let event = match &mut self.events {
                Some(events) => events.next().await,
                None => match self.runner.policies.check(self.follow.clone()) {
                    Ok(permitted) => {
                        let permitted: Permitted<FollowRequest> = permitted;
                        self.events.insert(self.runner.backends.follow(permitted)).next().await
                    }
                    Err(denied) => {
                        return Some(Event::failed(Failure::new(FailureKind::Denied, denied.to_string())));
                    }
                },
            };
            match event {
                Some(Ok(event)) => return Some(event),
                Some(Err(failure)) if is_unknown_task(&failure) || Instant::now() >= self.until => {
                    return Some(Event::failed(failure));
                }
                Some(Err(_)) | None => {
                    self.events = None;
                    sleep(self.pause).await;
                    self.pause = (self.pause * 2).min(LONGEST_RETRY_PAUSE);
                }
            }
        }
    }
}

/// True if the agent says that it has no such task: asking again would not help.
fn is_unknown_task(failure: &Failure) -> bool {
    failure.data.as_ref().is_some_and(|data| data.value()["remoteCode"] == NO_SUCH_TASK)
}
