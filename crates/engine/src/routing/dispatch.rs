//! Work that names nobody: the verbs.

use std::{sync::Arc, time::Duration};

use rialto_model::{
    call::{CallTarget, Caller, EntryProtocol},
    event::Event,
    failure::{Failure, FailureKind},
    ids::{DispatchId, TaskId},
    message::Part,
    routing::{AssignmentEnd, AssignmentOutcome, Dispatch, DispatchFilter, EndedAssignment, WorkDescription},
    store::StoreError,
    trace::Trace,
};
use rialto_route::choice;
use tokio_util::sync::CancellationToken;

use super::{attempts::DispatchAttempt, select_agent::SelectionPurpose};
use crate::{
    call_handle::Running,
    engine::{Engine, store_failure},
};

/// How often a server looks for plays that have ended unheard.
const LOOK: Duration = Duration::from_secs(2);

/// So many of them are looked at at once.
const AT_ONCE: usize = 100;

/// So many decisions are on a page when nobody says, and at most.
const USUAL: usize = 50;
const MOST: usize = 200;

/// Work for whoever does it best.
#[derive(Clone, Debug)]
pub struct DispatchRequest {
    /// Who wants it done.
    pub caller: Caller,
    /// By which door it came.
    pub door: EntryProtocol,
    /// What is to be done.
    pub work: WorkDescription,
    /// What is said to the agent.
    pub parts: Vec<Part>,
    /// The id that its task shall have, when it was promised under one. Whoever is asked next has another.
    pub id: Option<TaskId>,
    /// The conversation to go on with, as the agent calls it.
    pub context: Option<String>,
    /// A wall clock of the caller's own.
    pub wall_clock: Option<Duration>,
    /// The trace that the caller has begun.
    pub trace: Option<Box<Trace>>,
}

/// Work that was promised to somebody. The slot is held for a minute, or for as long as the task lasts.
#[derive(Clone, Debug)]
pub struct Assigned {
    /// The decision.
    pub dispatch: DispatchId,
    /// Who is to be called.
    pub target: CallTarget,
    /// The id that the call must have ([`Request::id`](crate::Request)).
    pub task: TaskId,
}

// === impl DispatchRequest ===

impl DispatchRequest {
    /// Work in words or arguments.
    pub const fn new(caller: Caller, door: EntryProtocol, work: WorkDescription, parts: Vec<Part>) -> Self {
        Self { caller, door, work, parts, id: None, context: None, wall_clock: None, trace: None }
    }
}

// === impl Engine ===

impl Engine {
    /// Chooses who does some work and calls it, as [`Engine::call`] would. When an agent cannot be reached and surely has heard
    /// nothing, whoever waits for the call sees the next best at work instead.
    ///
    /// The decision can be read back ([`Engine::dispatches`]) by its id ([`Running::dispatch`]) or by the task's.
    pub async fn dispatch(&self, wanted: DispatchRequest) -> Result<Running, Failure> {
        self.learn_if_due().await;
        let deciding =
            self.decide(&wanted.caller, &wanted.work, &wanted.parts, SelectionPurpose::Elsewhere).await?;
        Box::pin(DispatchAttempt::new(self.clone(), wanted, deciding).begin()).await
    }

    /// Chooses who does some work and takes a slot for it. Whoever asks makes the call, under the id that is answered.
    pub async fn assign(&self, wanted: DispatchRequest) -> Result<Assigned, Failure> {
        self.learn_if_due().await;
        let deciding =
            self.decide(&wanted.caller, &wanted.work, &wanted.parts, SelectionPurpose::Elsewhere).await?;
        Box::pin(DispatchAttempt::new(self.clone(), wanted, deciding).assign()).await
    }

    /// Who would be asked to do some work now, and why: the same record that is written down with every choice. Nothing is
    /// promised to anybody.
    pub async fn explain(&self, caller: &Caller, work: &WorkDescription) -> Result<Dispatch, Failure> {
        self.explained(caller, work, SelectionPurpose::Elsewhere).await
    }

    /// The same among those who are registered here, for whoever asks from another registry.
    pub async fn explain_here(&self, caller: &Caller, work: &WorkDescription) -> Result<Dispatch, Failure> {
        self.explained(caller, work, SelectionPurpose::Here).await
    }

    async fn explained(
        &self,
        caller: &Caller,
        work: &WorkDescription,
        asks: SelectionPurpose,
    ) -> Result<Dispatch, Failure> {
        self.learn_if_due().await;
        let mut deciding = Box::pin(self.decide(caller, work, &[], asks)).await?;
        deciding.next();
        Ok(deciding.record())
    }

    /// What is meant by one word for a capability: agents with a skill or a tag of that name or, if there are none, those whose
    /// descriptions have its words.
    pub async fn capability(&self, caller: &Caller, capability: &str) -> Result<WorkDescription, Failure> {
        self.sync().await?;
        let work_type = capability.trim().to_owned();
        let named = WorkDescription {
            required_skills: vec![work_type.clone()],
            work_type: work_type.clone(),
            ..WorkDescription::default()
        };
        let index = self.inner().router.index(self.registry(), &caller.scope).await?;
        if !work_type.is_empty() && !index.fits(&named, 1).best.is_empty() {
            return Ok(named);
        }
        Ok(WorkDescription {
            work_type: work_type.clone(),
            description: work_type,
            ..WorkDescription::default()
        })
    }

    /// Decisions of a caller's project, newest first: 50, or as many as are asked for, up to 200.
    pub async fn dispatches(
        &self,
        caller: &Caller,
        filter: DispatchFilter,
    ) -> Result<Vec<Dispatch>, Failure> {
        let limit = if filter.limit == 0 { USUAL } else { filter.limit.min(MOST) };
        let filter = DispatchFilter { limit, ..filter };
        self.inner().store.dispatches(&caller.scope, &filter).await.map_err(store_failure)
    }

    /// Learns from tasks that end while nobody waits for them, until it is told to stop.
    pub async fn keep_learning(&self, stop: CancellationToken) {
        while !stop.is_cancelled() {
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(LOOK) => self.learn_if_due().await,
            }
        }
    }

    /// Learns from tasks that have ended unheard, unless somebody has just looked for them.
    pub(super) async fn learn_if_due(&self) {
        let inner = self.inner();
        if !inner.router.is_due(inner.journal.now()) {
            return;
        }
        if let Err(error) = self.learn_from_ended().await {
            tracing::error!("what tasks have taught about agents could not be written down: {error}");
        }
    }

    async fn learn_from_ended(&self) -> Result<(), StoreError> {
        let store = Arc::clone(&self.inner().store);
        loop {
            let ended = store.ended_assignments(AT_ONCE).await?;
            for play in &ended {
                if let Some(end) = self.end_of(play).await? {
                    store.end_assignment(&play.task, &end).await?;
                }
            }
            if ended.len() < AT_ONCE {
                return Ok(());
            }
        }
    }

    async fn end_of(&self, play: &EndedAssignment) -> Result<Option<AssignmentEnd>, StoreError> {
        let took = play.ended_at.duration_since(play.begun_at).as_secs_f64();
        let mut outcome = AssignmentOutcome::from_state(play.state);
        if outcome == Some(AssignmentOutcome::Failed) && self.was_blocked(&play.task).await? {
            // What a guardrail found says nothing about how well the agent works.
            outcome = Some(AssignmentOutcome::Refused);
        }
        Ok(outcome.map(|outcome| self.worth(outcome, took)))
    }

    async fn was_blocked(&self, task: &TaskId) -> Result<bool, StoreError> {
        let events = self.inner().store.events(task, 0).await?;
        let last = events.last().map(|recorded| &recorded.event);
        Ok(matches!(last, Some(Event::Failed { failure, .. }) if failure.kind == FailureKind::Blocked))
    }

    /// What an outcome is worth.
    pub(super) fn worth(&self, outcome: AssignmentOutcome, took_secs: f64) -> AssignmentEnd {
        let inner = self.inner();
        let config = &inner.router.config;
        let reward = match outcome {
            AssignmentOutcome::Completed => Some(choice::reward(took_secs, config.target_secs)),
            outcome => outcome.is_observed().then_some(0.0),
        };
        AssignmentEnd { outcome, reward, discount: config.discount, at: inner.journal.now() }
    }
}
