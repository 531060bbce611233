//! Runs definitions at their moments, and wakes runs whose waiting has ended by itself.
//!
//! However many processes look, each moment is run once: the right to run it is leased, and the task that it is run as is
//! named before. Whoever finds that task there, begun by a process that died since, only sets the next moment. Moments that
//! passed while nobody looked are run once, late.

use std::time::Duration;

use rialto_engine::{Engine, Request};
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

use super::{book::cron_of, peer::Runner};

/// How often the clock is looked at.
const LOOK: Duration = Duration::from_secs(1);

/// How often runs are looked at that wait for something which may go on without us.
pub(super) const AGAIN: Duration = Duration::from_secs(3);

/// For so long nobody else runs what one has taken.
const LEASE: Duration = Duration::from_secs(30);

/// So many are taken at once.
const AT_ONCE: usize = 32;

impl Runner {
    /// Runs what is to be run at its moment, until it is told to stop.
    pub async fn keep_time(self, stop: CancellationToken) {
        let holder = fresh();
        while !stop.is_cancelled() {
            if let Ok(engine) = self.engine()
                && !engine.is_draining()
            {
                self.look(&engine, &holder).await;
            }
            tokio::select! {
                () = stop.cancelled() => {}
                () = tokio::time::sleep(LOOK) => {}
            }
        }
    }

    /// Runs everything whose moment has come.
    pub async fn look(&self, engine: &Engine, holder: &str) {
        let now = engine.now();
        let lease =
            DeliveryLease { holder: holder.to_owned(), now, until: now.checked_add(LEASE).unwrap_or(now) };
        match self.store().due_schedules(&lease, AT_ONCE).await {
            Ok(due) => {
                for schedule in due {
                    self.run_at_moment(engine, schedule, holder).await;
                }
            }
            Err(error) => tracing::error!("what is to be run now could not be read: {error}"),
        }
        let again = now.checked_add(AGAIN).unwrap_or(now);
        match self.store().wake_runs(now, again, AT_ONCE).await {
            Ok(woken) => {
                for run in woken {
                    let caller = caller_of(&run.scope, &run.caller);
                    let id = run.id.as_str();
                    if !self.can_go_on(engine, &caller, &run.id).await {
                        continue;
                    }
                    match engine.rejoin(&caller, id).await {
                        // It goes on by itself.
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

    async fn run_at_moment(&self, engine: &Engine, schedule: FlowSchedule, holder: &str) {
        let name = schedule.name.clone();
        let next = match self.begin_scheduled(engine, &schedule).await {
            Ok(next) => next,
            Err(failure) => {
                tracing::error!("{name} was not run at its moment: {failure}");
                None
            }
        };
        let next = match next {
            Some(next) => Some(next),
            None => self.next_moment(engine, &schedule).await,
        };
        // A definition that has no moment any more has no schedule either.
        let Some(next_at) = next else { return };
        let next = FlowSchedule { next_at, task: TaskId::fresh(), ..schedule };
        if let Err(error) = self.store().record_schedule_run(&next, holder).await {
            tracing::error!("when {name} is run next could not be written down: {error}");
        }
    }

    async fn begin_scheduled(
        &self,
        engine: &Engine,
        schedule: &FlowSchedule,
    ) -> Result<Option<rialto_model::clock::Timestamp>, Failure> {
        let (flow, workflow) = self.book().show(&schedule.scope, &schedule.name).await?;
        let caller = caller_of(&schedule.scope, &flow.by);
        let next = cron_of(&workflow, schedule.number).and_then(|(cron, _)| cron.next_after(engine.now()));
        if engine.look(&caller, schedule.task.as_str()).await.is_ok() {
            return Ok(next);
        }
        if !engine.may_go_on(flow.token.as_ref()).await? {
            tracing::warn!(
                "{} is not run at its moment: the token that {} gave it with was revoked or has expired; save it again with another",
                schedule.name,
                flow.by
            );
            return Ok(next);
        }
        let given = cron_of(&workflow, schedule.number).and_then(|(_, input)| input.cloned());
        let caller = Caller { token: flow.token.clone(), ..caller };
        let target = self.book().target_of(engine, &caller, &schedule.name, false).await?;
        let args = given.unwrap_or_else(Json::empty_object);
        let request = Request {
            id: Some(schedule.task.clone()),
            ..Request::skill(caller, EntryProtocol::Library, target, args)
        };
        // It goes on by itself.
        drop(engine.call(request).await?);
        tracing::info!(task.id = %schedule.task, "{} is run at its moment as {}", schedule.name, schedule.task);
        Ok(next)
    }

    async fn next_moment(
        &self,
        engine: &Engine,
        schedule: &FlowSchedule,
    ) -> Option<rialto_model::clock::Timestamp> {
        let (_, workflow) = self.book().show(&schedule.scope, &schedule.name).await.ok()?;
        cron_of(&workflow, schedule.number)?.0.next_after(engine.now())
    }
}

/// Whoever gave the definition, or began the run.
fn caller_of(scope: &rialto_model::ids::Scope, id: &rialto_model::call::CallerId) -> Caller {
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
