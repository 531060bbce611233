//! Starts scheduled runs, and resumes waiting runs whose wait has ended.
//!
//! Among any number of processes each schedule is run once: a process leases it, and the id of its task is fixed in advance. A
//! process that finds this task, started by one that died, only advances the schedule. Times that passed while no process was
//! running are run once, late.

use std::time::Duration;

use rialto_engine::{CallRequest, Engine};
use rialto_model::{
    call::{Caller, CallerKind, EntryProtocol},
    failure::Failure,
    flow::FlowSchedule,
    ids::{TaskId, fresh},
    json::Json,
    token_scopes::TokenScopes,
    webhook::DeliveryLease,
};
use tokio_util::sync::CancellationToken;

use super::{definitions::cron_trigger, runner::WorkflowRunner};

/// Interval at which schedules are polled.
const SCHEDULE_POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Interval at which waiting runs are polled.
pub(super) const WAITING_RUN_POLL_INTERVAL: Duration = Duration::from_secs(3);

/// Lease of a schedule.
const SCHEDULE_LEASE: Duration = Duration::from_secs(30);

/// Maximum number of schedules taken at once.
const MAX_SCHEDULE_BATCH: usize = 32;

impl WorkflowRunner {
    /// Runs schedules until `stop` is cancelled.
    pub async fn run_schedules(self, stop: CancellationToken) {
        let holder = fresh();
        while !stop.is_cancelled() {
            if let Ok(engine) = self.engine()
                && !engine.nodes().is_draining()
            {
                self.run_due(&engine, &holder).await;
            }
            tokio::select! {
                () = stop.cancelled() => {}
                () = tokio::time::sleep(SCHEDULE_POLL_INTERVAL) => {}
            }
        }
    }

    /// Runs all schedules that are due.
    pub async fn run_due(&self, engine: &Engine, holder: &str) {
        let now = engine.now();
        let lease = DeliveryLease {
            holder: holder.to_owned(),
            now,
            until: now.checked_add(SCHEDULE_LEASE).unwrap_or(now),
        };
        match self.store().due_schedules(&lease, MAX_SCHEDULE_BATCH).await {
            Ok(due) => {
                for schedule in due {
                    self.run_schedule(engine, schedule, holder).await;
                }
            }
            Err(error) => tracing::error!("what is to be run now could not be read: {error}"),
        }
        let again = now.checked_add(WAITING_RUN_POLL_INTERVAL).unwrap_or(now);
        match self.store().wake_runs(now, again, MAX_SCHEDULE_BATCH).await {
            Ok(woken) => {
                for run in woken {
                    let caller = caller_for(&run.scope, &run.caller);
                    let id = run.id.as_str();
                    if !self.can_resume(engine, &caller, &run.id).await {
                        continue;
                    }
                    match engine.calls().follow_remote(&caller, id).await {
                        // The run continues detached.
                        Ok(running) => drop(running),
                        Err(failure) => {
                            tracing::warn!(task.id = id, "run {id} could not be woken: {failure}");
                        }
                    }
                }
            }
            Err(error) => tracing::error!("runs that wait could not be read: {error}"),
        }
    }

    async fn run_schedule(&self, engine: &Engine, schedule: FlowSchedule, holder: &str) {
        let name = schedule.name.clone();
        let next = match self.start_scheduled_run(engine, &schedule).await {
            Ok(next) => next,
            Err(failure) => {
                tracing::error!("the scheduled run of {name} failed to start: {failure}");
                None
            }
        };
        let next = match next {
            Some(next) => Some(next),
            None => self.advance_schedule(engine, &schedule).await,
        };
        // A definition that has no moment any more has no schedule either.
        let Some(next_at) = next else { return };
        let next = FlowSchedule { next_at, task: TaskId::fresh(), ..schedule };
        if let Err(error) = self.store().record_schedule_run(&next, holder).await {
            tracing::error!("when {name} is run next could not be written down: {error}");
        }
    }

    async fn start_scheduled_run(
        &self,
        engine: &Engine,
        schedule: &FlowSchedule,
    ) -> Result<Option<rialto_model::clock::Timestamp>, Failure> {
        let (flow, workflow) = self.definitions().show(&schedule.scope, &schedule.name).await?;
        let caller = caller_for(&schedule.scope, &flow.by);
        let next =
            cron_trigger(&workflow, schedule.number).and_then(|(cron, _)| cron.next_after(engine.now()));
        if engine.tasks().read(&caller, schedule.task.as_str()).await.is_ok() {
            return Ok(next);
        }
        if !engine.tokens().is_valid(flow.token.as_ref()).await? {
            tracing::warn!(
                "the schedule of {} is not run: the token with which {} saved it was revoked or has expired; save it again with another",
                schedule.name,
                flow.by
            );
            return Ok(next);
        }
        let given = cron_trigger(&workflow, schedule.number).and_then(|(_, input)| input.cloned());
        let caller = Caller { token: flow.token.clone(), ..caller };
        let target = self.definitions().resolve_target(engine, &caller, &schedule.name, false).await?;
        let args = given.unwrap_or_else(Json::empty_object);
        let request = CallRequest {
            id: Some(schedule.task.clone()),
            ..CallRequest::skill(caller, EntryProtocol::Library, target, args)
        };
        // The run continues detached.
        drop(engine.calls().start(request).await?.into_handle()?);
        tracing::info!(task.id = %schedule.task, "scheduled run of {} started as {}", schedule.name, schedule.task);
        Ok(next)
    }

    async fn advance_schedule(
        &self,
        engine: &Engine,
        schedule: &FlowSchedule,
    ) -> Option<rialto_model::clock::Timestamp> {
        let (_, workflow) = self.definitions().show(&schedule.scope, &schedule.name).await.ok()?;
        cron_trigger(&workflow, schedule.number)?.0.next_after(engine.now())
    }
}

/// Caller of a definition's owner, or of a run.
fn caller_for(scope: &rialto_model::ids::Scope, id: &rialto_model::call::CallerId) -> Caller {
    Caller {
        scope: scope.clone(),
        kind: CallerKind::User,
        id: id.clone(),
        rights: TokenScopes::ALL,
        token: None,
        proof: None,
        hops: 0,
    }
}
