//! Gives work to whoever was chosen, and sees to what comes of it.
//!
//! A slot is taken with the decision. If the agent cannot be reached and surely has heard nothing, the next best is asked; if it
//! may have heard something, it is never asked of another: `failed` is an answer.

use std::time::Duration;

use rialto_model::{
    call::CallTarget,
    failure::{Failure, FailureKind},
    ids::{DispatchId, TaskId},
    routing::{AssignmentEnd, AssignmentOutcome, SlotAssignment, SlotReservation},
    task::TaskState,
};
use rialto_route::choice;

use super::{Assigned, DispatchRequest, select_agent::AgentSelection};
use crate::{
    call_handle::Running,
    call_run::RunEnd,
    engine::{Engine, store_failure},
    request::Request,
};

/// For so long a slot is held for a task that is not there yet.
const HELD: Duration = Duration::from_secs(60);

/// Work on its way to somebody.
pub(crate) struct DispatchAttempt {
    engine: Engine,
    wanted: DispatchRequest,
    deciding: AgentSelection,
    /// Task that the agent which has it now works on.
    now: Option<TaskId>,
    /// How many more may be tried.
    failovers: usize,
}

/// What comes after a call has ended.
pub(crate) enum AttemptEnd {
    /// Nothing: this is how it ended.
    End(RunEnd),
    /// Another agent is at work.
    Next(Box<Running>),
}

// === impl Routed ===

impl DispatchAttempt {
    pub(super) fn new(engine: Engine, wanted: DispatchRequest, deciding: AgentSelection) -> Box<Self> {
        let failovers = engine.inner().router.config.failovers;
        Box::new(Self { engine, wanted, deciding, now: None, failovers })
    }

    /// The decision's id.
    pub(crate) const fn id(&self) -> &DispatchId {
        self.deciding.id()
    }

    /// Calls the best one that has a slot. One that turns out to be unreachable before anything leaves is passed over.
    pub(super) async fn begin(mut self: Box<Self>) -> Result<Running, Failure> {
        loop {
            let (target, task) = self.reserve().await?;
            let request = self.request(&target, &task);
            match self.engine.call(request).await {
                Ok(running) => return Ok(running.routed(self)),
                Err(failure) => {
                    let is_gone = failure.kind == FailureKind::PeerUnreachable;
                    self.end(&task, self.engine.worth(AssignmentOutcome::Refused, 0.0)).await;
                    if !is_gone || !self.may_go_on() {
                        return Err(failure);
                    }
                    self.deciding.leave(&failure.message);
                    self.deciding.is_out(FailureKind::PeerUnreachable, &failure.message);
                }
            }
        }
    }

    /// Takes a slot for whoever is best, and leaves the call to others.
    pub(super) async fn assign(mut self: Box<Self>) -> Result<Assigned, Failure> {
        let (target, task) = self.reserve().await?;
        Ok(Assigned { dispatch: self.id().clone(), target, task })
    }

    /// Takes a slot of the next best who has one.
    async fn reserve(&mut self) -> Result<(CallTarget, TaskId), Failure> {
        let engine = self.engine.clone();
        let inner = engine.inner();
        let config = &inner.router.config;
        while let Some(target) = self.deciding.next() {
            let (caller, parts) = (&self.wanted.caller, &self.wanted.parts);
            engine.guard_work(caller, &target, self.deciding.work(), parts).await?;
            let (task, now) = (self.wanted.id.take().unwrap_or_else(TaskId::fresh), inner.journal.now());
            self.deciding.give(&target, &task);
            let until = now.checked_add(HELD).unwrap_or(now);
            let reservation = SlotReservation {
                dispatch: self.deciding.record(),
                play: SlotAssignment { task: task.clone(), agent: target.agent.id.clone(), until },
                hard_cap: config.hard_cap,
                window: config.window(now),
            };
            if inner.store.reserve(&reservation).await.map_err(store_failure)? {
                self.now = Some(task.clone());
                return Ok((target, task));
            }
            self.deciding.take_back();
            self.deciding.is_out(FailureKind::Busy, &choice::full(config.hard_cap, config.hard_cap));
        }
        Err(self.deciding.nobody())
    }

    fn request(&self, target: &CallTarget, task: &TaskId) -> Request {
        let wanted = &self.wanted;
        Request {
            id: Some(task.clone()),
            context: wanted.context.clone(),
            wall_clock: wanted.wall_clock,
            trace: wanted.trace.clone(),
            ..Request::message(wanted.caller.clone(), wanted.door, target.clone(), wanted.parts.clone())
        }
    }

    /// Whether another one may be tried; that is counted.
    const fn may_go_on(&mut self) -> bool {
        match self.failovers.checked_sub(1) {
            Some(left) => {
                self.failovers = left;
                true
            }
            None => false,
        }
    }

    /// Learns from how a call ended, and asks the next one if this one surely has heard nothing.
    pub(crate) async fn after(mut self: Box<Self>, end: RunEnd) -> AttemptEnd {
        let Some(task) = self.now.take() else { return AttemptEnd::End(end) };
        // Without an outcome it goes on without us, or waits: whoever looks later learns from its end.
        if let Some(play) = self.judge(&end) {
            self.end(&task, play).await;
        }
        match end {
            Err(failure) if failure.is_not_sent() && self.may_go_on() => {
                self.deciding.leave(&failure.message);
                self.deciding.is_out(FailureKind::PeerUnreachable, &failure.message);
                match Box::pin(self.begin()).await {
                    Ok(running) => AttemptEnd::Next(Box::new(running)),
                    // What happened to the one that was asked says more than that nobody else is there.
                    Err(_) => AttemptEnd::End(Err(failure)),
                }
            }
            end => AttemptEnd::End(end),
        }
    }

    /// What the end of a call says about its agent. None while the task is not over.
    fn judge(&self, end: &RunEnd) -> Option<AssignmentEnd> {
        match end {
            Ok(task) => {
                let took = task.head.updated_at.duration_since(task.head.created_at).as_secs_f64();
                AssignmentOutcome::from_state(task.head.state).map(|outcome| self.engine.worth(outcome, took))
            }
            Err(failure) if failure.is_not_sent() => {
                Some(self.engine.worth(AssignmentOutcome::Unreachable, 0.0))
            }
            Err(failure) => {
                let outcome = state_of(failure).and_then(AssignmentOutcome::from_state);
                // What a guardrail found says nothing about how well the agent works.
                let is_blocked = failure.kind == FailureKind::Blocked;
                let outcome =
                    outcome.map(|outcome| if is_blocked { AssignmentOutcome::Refused } else { outcome });
                outcome.map(|outcome| self.engine.worth(outcome, 0.0))
            }
        }
    }

    async fn end(&self, task: &TaskId, play: AssignmentEnd) {
        if let Err(error) = self.engine.inner().store.end_assignment(task, &play).await {
            // Whoever looks for ends that nobody heard of finds it.
            tracing::error!(task.id = %task, "the end of task {task} has taught nothing yet: {error}");
        }
    }
}

/// Where the task of a failure stands.
fn state_of(failure: &Failure) -> Option<TaskState> {
    let data = failure.data.as_ref()?.value();
    TaskState::parse(data.get("state")?.as_str()?)
}
