//! Calls of the selected agents, and the outcomes.
//!
//! A slot is reserved with the decision. If the agent cannot be reached and surely has received nothing, the next best is called; if it
//! may have received something, no other agent is called: `failed` is a result.

use std::{sync::Arc, time::Duration};

use rialto_model::{
    call::CallTarget,
    failure::{Failure, FailureKind},
    ids::{DispatchId, TaskId},
    routing::{AssignmentEnd, AssignmentOutcome, SlotAssignment, SlotReservation},
    task::TaskState,
};
use rialto_routing::scoring;

use super::{Assigned, DispatchRequest, DispatchService, select_agent::AgentSelection};
use crate::{call_handle::CallHandle, call_run::RunEnd, request::CallRequest, store_failure::store_failure};

/// Time for which a slot is reserved for a task that does not exist yet.
const RESERVATION_TIMEOUT: Duration = Duration::from_secs(60);

/// Dispatched work: the decision and its attempts.
pub(crate) struct DispatchAttempt {
    service: Arc<DispatchService>,
    request: DispatchRequest,
    selection: AgentSelection,
    /// Task of the current attempt.
    task: Option<TaskId>,
    /// Number of failovers left.
    failovers: usize,
}

/// Step after the end of a call.
pub(crate) enum AttemptEnd {
    /// None: the end of the dispatch.
    End(RunEnd),
    /// The call of the next agent.
    Next(Box<CallHandle>),
}

// === impl DispatchAttempt ===

impl DispatchAttempt {
    pub(super) fn new(
        service: Arc<DispatchService>,
        request: DispatchRequest,
        selection: AgentSelection,
    ) -> Box<Self> {
        let failovers = service.router.config.failovers;
        Box::new(Self { service, request, selection, task: None, failovers })
    }

    /// The decision's id.
    pub(crate) const fn id(&self) -> &DispatchId {
        self.selection.id()
    }

    /// Calls the best candidate with a free slot. One that is unreachable before anything leaves is skipped.
    pub(super) async fn begin(mut self: Box<Self>) -> Result<CallHandle, Failure> {
        loop {
            let (target, task) = self.reserve().await?;
            let request = self.request(&target, &task);
            match self.service.calls.begin(request).await {
                Ok(running) => return Ok(running.with_attempt(self)),
                Err(failure) => {
                    let is_gone = failure.kind == FailureKind::PeerUnreachable;
                    self.end(&task, self.service.rate(AssignmentOutcome::Refused, 0.0)).await;
                    if !is_gone || !self.take_failover() {
                        return Err(failure);
                    }
                    self.selection.fail_attempt(&failure.message);
                    self.selection.exclude_last(FailureKind::PeerUnreachable, &failure.message);
                }
            }
        }
    }

    /// Reserves a slot of the best candidate; the client makes the call.
    pub(super) async fn assign(mut self: Box<Self>) -> Result<Assigned, Failure> {
        let (target, task) = self.reserve().await?;
        Ok(Assigned { dispatch: self.id().clone(), target, task })
    }

    /// Reserves a slot of the next best candidate that has one.
    async fn reserve(&mut self) -> Result<(CallTarget, TaskId), Failure> {
        let service = Arc::clone(&self.service);
        let config = &service.router.config;
        while let Some(target) = self.selection.next() {
            let (caller, parts) = (&self.request.caller, &self.request.parts);
            service.guardrails.check_work(caller, &target, self.selection.work(), parts).await?;
            let (task, now) = (self.request.id.take().unwrap_or_else(TaskId::fresh), service.journal.now());
            self.selection.record_attempt(&target, &task);
            let until = now.checked_add(RESERVATION_TIMEOUT).unwrap_or(now);
            let reservation = SlotReservation {
                dispatch: self.selection.record(),
                play: SlotAssignment { task: task.clone(), agent: target.agent.id.clone(), until },
                hard_cap: config.hard_cap,
                window: config.window(now),
            };
            if service.store.reserve(&reservation).await.map_err(store_failure)? {
                self.task = Some(task.clone());
                return Ok((target, task));
            }
            self.selection.undo_attempt();
            self.selection
                .exclude_last(FailureKind::Busy, &scoring::describe_full(config.hard_cap, config.hard_cap));
        }
        Err(self.selection.no_candidate())
    }

    fn request(&self, target: &CallTarget, task: &TaskId) -> CallRequest {
        let request = &self.request;
        CallRequest {
            id: Some(task.clone()),
            context: request.context.clone(),
            timeout: request.timeout,
            trace: request.trace.clone(),
            ..CallRequest::message(
                request.caller.clone(),
                request.door,
                target.clone(),
                request.parts.clone(),
            )
        }
    }

    /// Takes one failover; false if none is left.
    const fn take_failover(&mut self) -> bool {
        match self.failovers.checked_sub(1) {
            Some(left) => {
                self.failovers = left;
                true
            }
            None => false,
        }
    }

    /// Records the outcome of a call, and calls the next agent if this one surely has received nothing.
    pub(crate) async fn on_end(mut self: Box<Self>, end: RunEnd) -> AttemptEnd {
        let Some(task) = self.task.take() else { return AttemptEnd::End(end) };
        // Without an outcome the task continues or waits: the learning loop records its end later.
        if let Some(play) = self.rate_end(&end) {
            self.end(&task, play).await;
        }
        match end {
            Err(failure) if failure.is_not_sent() && self.take_failover() => {
                self.selection.fail_attempt(&failure.message);
                self.selection.exclude_last(FailureKind::PeerUnreachable, &failure.message);
                match Box::pin(self.begin()).await {
                    Ok(running) => AttemptEnd::Next(Box::new(running)),
                    // The failure of the agent that was called says more than that there is no other.
                    Err(_) => AttemptEnd::End(Err(failure)),
                }
            }
            end => AttemptEnd::End(end),
        }
    }

    /// Outcome of a call for its agent. None while the task has not ended.
    fn rate_end(&self, end: &RunEnd) -> Option<AssignmentEnd> {
        match end {
            Ok(task) => {
                let took = task.head.updated_at.duration_since(task.head.created_at).as_secs_f64();
                AssignmentOutcome::from_state(task.head.state).map(|outcome| self.service.rate(outcome, took))
            }
            Err(failure) if failure.is_not_sent() => {
                Some(self.service.rate(AssignmentOutcome::Unreachable, 0.0))
            }
            Err(failure) => {
                let outcome = state_of(failure).and_then(AssignmentOutcome::from_state);
                // A guardrail finding says nothing about the quality of the agent.
                let is_blocked = failure.kind == FailureKind::Blocked;
                let outcome =
                    outcome.map(|outcome| if is_blocked { AssignmentOutcome::Refused } else { outcome });
                outcome.map(|outcome| self.service.rate(outcome, 0.0))
            }
        }
    }

    async fn end(&self, task: &TaskId, play: AssignmentEnd) {
        if let Err(error) = self.service.store.end_assignment(task, &play).await {
            // The learning loop finds it later.
            tracing::error!(task.id = %task, "the outcome of task {task} is not recorded for routing yet: {error}");
        }
    }
}

/// State of the task of a failure.
fn state_of(failure: &Failure) -> Option<TaskState> {
    let data = failure.data.as_ref()?.value();
    TaskState::parse(data.get("state")?.as_str()?)
}
