//! Workflows, their runs and their schedules.

mod definitions;
mod runs;
mod schedules;

use async_trait::async_trait;
use jiff::Timestamp;
use rialto_model::{
    flow::{Flow, FlowRun, FlowSchedule, FlowStep, RunChange, RunFilter, RunRecord},
    ids::{Scope, TaskId},
    store::{FlowStore, StoreError},
    webhook::DeliveryLease,
};

use super::{PostgresStore, begin};

pub(super) use self::runs::sweep;

#[async_trait]
impl FlowStore for PostgresStore {
    async fn flows(&self, scope: Option<&Scope>) -> Result<Vec<Flow>, StoreError> {
        Ok(definitions::all(&self.client().await?, scope).await?)
    }

    async fn flow(
        &self,
        scope: &Scope,
        name: &str,
        version: Option<u64>,
    ) -> Result<Option<Flow>, StoreError> {
        Ok(definitions::find(&self.client().await?, scope, name, version).await?)
    }

    async fn put_flow(
        &self,
        flow: &Flow,
        expected: u64,
        schedules: &[FlowSchedule],
    ) -> Result<u64, StoreError> {
        let mut client = self.client().await?;
        let transaction = begin(&mut client).await?;
        let version = definitions::put(&transaction, flow, expected).await?;
        schedules::replace(&transaction, &flow.scope, &flow.name, schedules).await?;
        let made = self.commit_change(transaction).await?;
        self.spread(&client, Some(made)).await;
        Ok(version)
    }

    async fn remove_flow(&self, scope: &Scope, name: &str) -> Result<Option<u64>, StoreError> {
        let mut client = self.client().await?;
        let transaction = begin(&mut client).await?;
        schedules::replace(&transaction, scope, name, &[]).await?;
        let was_there = definitions::remove(&transaction, scope, name).await?;
        let made = self.commit(transaction, was_there).await?;
        self.spread(&client, made).await;
        Ok(made)
    }

    async fn begin_run(&self, run: &FlowRun, driver: &str, steps: &[FlowStep]) -> Result<bool, StoreError> {
        let mut client = self.client().await?;
        let transaction = begin(&mut client).await?;
        let is_new = runs::begin(&transaction, run, driver, steps).await?;
        self.commit(transaction, false).await?;
        Ok(is_new)
    }

    async fn take_run(&self, id: &TaskId, driver: &str) -> Result<Option<RunRecord>, StoreError> {
        let mut client = self.client().await?;
        let transaction = begin(&mut client).await?;
        let taken = runs::take(&transaction, id, driver).await?;
        self.commit(transaction, false).await?;
        Ok(taken)
    }

    async fn run(&self, scope: &Scope, id: &TaskId) -> Result<Option<RunRecord>, StoreError> {
        let found = runs::find(&self.client().await?, id).await?;
        Ok(found.filter(|found| found.run.scope == *scope))
    }

    async fn runs(&self, scope: &Scope, filter: &RunFilter) -> Result<Vec<FlowRun>, StoreError> {
        Ok(runs::list(&self.client().await?, scope, filter).await?)
    }

    async fn change_run(&self, change: RunChange) -> Result<bool, StoreError> {
        let mut client = self.client().await?;
        let transaction = begin(&mut client).await?;
        let is_taken = runs::change(&transaction, &change).await?;
        self.commit(transaction, false).await?;
        Ok(is_taken)
    }

    async fn cancel_run(&self, id: &TaskId, at: Timestamp) -> Result<Option<RunRecord>, StoreError> {
        let mut client = self.client().await?;
        let transaction = begin(&mut client).await?;
        let found = runs::cancel(&transaction, id, at).await?;
        self.commit(transaction, false).await?;
        Ok(found)
    }

    async fn wake_runs(
        &self,
        now: Timestamp,
        again: Timestamp,
        limit: usize,
    ) -> Result<Vec<FlowRun>, StoreError> {
        Ok(runs::wake(&self.client().await?, now, again, limit).await?)
    }

    async fn schedules(&self, scope: &Scope) -> Result<Vec<FlowSchedule>, StoreError> {
        Ok(schedules::all(&self.client().await?, scope).await?)
    }

    async fn due_schedules(
        &self,
        lease: &DeliveryLease,
        limit: usize,
    ) -> Result<Vec<FlowSchedule>, StoreError> {
        Ok(schedules::lease_due(&self.client().await?, lease, limit).await?)
    }

    async fn record_schedule_run(&self, schedule: &FlowSchedule, holder: &str) -> Result<bool, StoreError> {
        Ok(schedules::record_run(&self.client().await?, schedule, holder).await?)
    }
}
