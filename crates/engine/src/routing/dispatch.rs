//! Operations of dispatch: call, assign, explain, list.

use std::{sync::Arc, time::Duration};

use rialto_model::{
    call::{CallTarget, Caller, EntryProtocol},
    event::Event,
    failure::{Failure, FailureKind},
    ids::{DispatchId, TaskId},
    message::Part,
    routing::{AssignmentEnd, AssignmentOutcome, Dispatch, DispatchFilter, EndedAssignment, WorkDescription},
    store::{Store, StoreError},
    trace::Trace,
};
use rialto_routing::scoring;
use tokio_util::sync::CancellationToken;

use super::{Router, attempts::DispatchAttempt, select_agent::SelectionPurpose};
use crate::{
    breakers::Breakers, call_handle::CallHandle, call_service::CallService, guardrails::GuardrailService,
    journal::TaskJournal, policies::PolicyService, registry::Registry, schema::Schemas,
    store_failure::store_failure,
};

/// Interval of searches for tasks whose end was not recorded as an outcome.
const LEARN_INTERVAL: Duration = Duration::from_secs(2);

/// Maximum number of them in one step.
const MAX_BATCH_PLAYS: usize = 100;

/// Default number of decisions on a page.
const DEFAULT_DISPATCHES: usize = 50;

/// Maximum number of decisions on a page.
const MAX_DISPATCHES: usize = 200;

/// Request of work that names no agent.
#[derive(Clone, Debug)]
pub struct DispatchRequest {
    /// The caller.
    pub caller: Caller,
    /// The protocol that the request came in by.
    pub door: EntryProtocol,
    /// The work.
    pub work: WorkDescription,
    /// Parts of the message to the agent.
    pub parts: Vec<Part>,
    /// Id of the task of the first agent, if the client has got one before.
    pub id: Option<TaskId>,
    /// The agent's name of the conversation to continue.
    pub context: Option<String>,
    /// Timeout that the caller has set.
    pub timeout: Option<Duration>,
    /// The caller's trace.
    pub trace: Option<Box<Trace>>,
}

/// Reserved slot of an agent. It is held for a minute, or for as long as the task lasts.
#[derive(Clone, Debug)]
pub struct Assigned {
    /// Id of the decision.
    pub dispatch: DispatchId,
    /// The agent and skill to call.
    pub target: CallTarget,
    /// The id that the call must have ([`CallRequest::id`](crate::CallRequest)).
    pub task: TaskId,
}

// === impl DispatchRequest ===

impl DispatchRequest {
    /// Work in words or arguments.
    pub const fn new(caller: Caller, door: EntryProtocol, work: WorkDescription, parts: Vec<Part>) -> Self {
        Self { caller, door, work, parts, id: None, context: None, timeout: None, trace: None }
    }
}

/// Dispatch of work that names no agent.
pub struct DispatchService {
    pub(super) store: Arc<dyn Store>,
    pub(super) journal: TaskJournal,
    pub(super) registry: Arc<Registry>,
    pub(super) policies: Arc<PolicyService>,
    pub(super) calls: Arc<CallService>,
    pub(super) guardrails: Arc<GuardrailService>,
    pub(super) schemas: Arc<Schemas>,
    pub(super) breakers: Arc<Breakers>,
    pub(super) router: Router,
}

// === impl DispatchService ===

impl DispatchService {
    pub(crate) fn new(calls: Arc<CallService>, router: Router) -> Self {
        let runner = &calls.runner;
        Self {
            store: Arc::clone(&runner.store),
            journal: runner.journal.clone(),
            registry: Arc::clone(&runner.registry),
            policies: Arc::clone(&runner.policies),
            guardrails: Arc::clone(&calls.guardrails),
            schemas: Arc::clone(&calls.schemas),
            breakers: Arc::clone(&calls.breakers),
            calls,
            router,
        }
    }

    /// Selects an agent for some work and calls it, like [`CallService::start`]. When the agent cannot be reached and surely has received
    /// nothing, the handle continues with the call of the next best.
    ///
    /// The decision can be read ([`DispatchService::list`]) by its id ([`CallHandle::dispatch`]) or by the task's.
    pub async fn start(self: &Arc<Self>, wanted: DispatchRequest) -> Result<CallHandle, Failure> {
        self.learn_if_due().await;
        let deciding =
            self.select(&wanted.caller, &wanted.work, &wanted.parts, SelectionPurpose::Elsewhere).await?;
        Box::pin(DispatchAttempt::new(Arc::clone(self), wanted, deciding).begin()).await
    }

    /// Selects an agent for some work and reserves a slot there. The client makes the call itself, with the returned task id.
    pub async fn assign(self: &Arc<Self>, wanted: DispatchRequest) -> Result<Assigned, Failure> {
        self.learn_if_due().await;
        let deciding =
            self.select(&wanted.caller, &wanted.work, &wanted.parts, SelectionPurpose::Elsewhere).await?;
        Box::pin(DispatchAttempt::new(Arc::clone(self), wanted, deciding).assign()).await
    }

    /// Explains which agent would be selected for some work now, as the record that is stored with every decision. No slot is reserved.
    pub async fn explain(&self, caller: &Caller, work: &WorkDescription) -> Result<Dispatch, Failure> {
        self.explained(caller, work, SelectionPurpose::Elsewhere).await
    }

    /// Explains the selection among the agents that are registered here, for another registry that asks.
    pub async fn explain_local(&self, caller: &Caller, work: &WorkDescription) -> Result<Dispatch, Failure> {
        self.explained(caller, work, SelectionPurpose::Here).await
    }

    async fn explained(
        &self,
        caller: &Caller,
        work: &WorkDescription,
        asks: SelectionPurpose,
    ) -> Result<Dispatch, Failure> {
        self.learn_if_due().await;
        let mut deciding = Box::pin(self.select(caller, work, &[], asks)).await?;
        deciding.next();
        Ok(deciding.record())
    }

    /// Makes work of one word for a capability: for agents with a skill or a tag of that name or, if there are none, for those whose
    /// descriptions have its words.
    pub async fn work_for_capability(
        &self,
        caller: &Caller,
        capability: &str,
    ) -> Result<WorkDescription, Failure> {
        self.policies.sync().await?;
        let work_type = capability.trim().to_owned();
        let named = WorkDescription {
            required_skills: vec![work_type.clone()],
            work_type: work_type.clone(),
            ..WorkDescription::default()
        };
        let index = self.router.index(&self.registry, &caller.scope).await?;
        if !work_type.is_empty() && !index.find_matches(&named, 1).best.is_empty() {
            return Ok(named);
        }
        Ok(WorkDescription {
            work_type: work_type.clone(),
            description: work_type,
            ..WorkDescription::default()
        })
    }

    /// Lists decisions of a caller's project, newest first: 50 by default, at most 200.
    pub async fn list(&self, caller: &Caller, filter: DispatchFilter) -> Result<Vec<Dispatch>, Failure> {
        let limit = if filter.limit == 0 { DEFAULT_DISPATCHES } else { filter.limit.min(MAX_DISPATCHES) };
        let filter = DispatchFilter { limit, ..filter };
        self.store.dispatches(&caller.scope, &filter).await.map_err(store_failure)
    }

    /// Learns from tasks that end while nobody waits for them, until `stop` is cancelled.
    pub async fn run_learning(&self, stop: CancellationToken) {
        while !stop.is_cancelled() {
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(LEARN_INTERVAL) => self.learn_if_due().await,
            }
        }
    }

    /// Learns from tasks whose end was not recorded as an outcome, unless that was done a moment ago.
    pub(super) async fn learn_if_due(&self) {
        if !self.router.is_due(self.journal.now()) {
            return;
        }
        if let Err(error) = self.learn_from_ended().await {
            tracing::error!("outcomes of tasks could not be recorded for routing: {error}");
        }
    }

    async fn learn_from_ended(&self) -> Result<(), StoreError> {
        let store = Arc::clone(&self.store);
        loop {
            let ended = store.ended_assignments(MAX_BATCH_PLAYS).await?;
            for play in &ended {
                if let Some(end) = self.end_of(play).await? {
                    store.end_assignment(&play.task, &end).await?;
                }
            }
            if ended.len() < MAX_BATCH_PLAYS {
                return Ok(());
            }
        }
    }

    async fn end_of(&self, play: &EndedAssignment) -> Result<Option<AssignmentEnd>, StoreError> {
        let took = play.ended_at.duration_since(play.begun_at).as_secs_f64();
        let mut outcome = AssignmentOutcome::from_state(play.state);
        if outcome == Some(AssignmentOutcome::Failed) && self.was_blocked(&play.task).await? {
            // A guardrail finding says nothing about the quality of the agent.
            outcome = Some(AssignmentOutcome::Refused);
        }
        Ok(outcome.map(|outcome| self.rate(outcome, took)))
    }

    async fn was_blocked(&self, task: &TaskId) -> Result<bool, StoreError> {
        let events = self.store.events(task, 0).await?;
        let last = events.last().map(|recorded| &recorded.event);
        Ok(matches!(last, Some(Event::Failed { failure, .. }) if failure.kind == FailureKind::Blocked))
    }

    /// Rates an outcome for the learned success rate.
    pub(super) fn rate(&self, outcome: AssignmentOutcome, took_secs: f64) -> AssignmentEnd {
        let config = &self.router.config;
        let reward = match outcome {
            AssignmentOutcome::Completed => Some(scoring::reward(took_secs, config.target_secs)),
            outcome => outcome.is_observed().then_some(0.0),
        };
        AssignmentEnd { outcome, reward, discount: config.discount, at: self.journal.now() }
    }
}
