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
use rusqlite::{
    Connection, Row,
    types::{FromSqlError, Type},
};
use serde::{Serialize, de::DeserializeOwned};

use super::SqliteStore;
use crate::error::SqliteError;

pub(super) use self::runs::sweep;

/// Reads all definitions, to see whether they can be read.
pub(super) fn read_all(connection: &Connection) -> Result<(), SqliteError> {
    definitions::all(connection, None).map(drop)
}

#[async_trait]
impl FlowStore for SqliteStore {
    async fn flows(&self, scope: Option<&Scope>) -> Result<Vec<Flow>, StoreError> {
        let scope = scope.cloned();
        self.read(move |connection| definitions::all(connection, scope.as_ref())).await
    }

    async fn flow(
        &self,
        scope: &Scope,
        name: &str,
        version: Option<u64>,
    ) -> Result<Option<Flow>, StoreError> {
        let (scope, name) = (scope.clone(), name.to_owned());
        self.read(move |connection| definitions::find(connection, &scope, &name, version)).await
    }

    async fn put_flow(
        &self,
        flow: &Flow,
        expected: u64,
        schedules: &[FlowSchedule],
    ) -> Result<u64, StoreError> {
        let (flow, wanted) = (flow.clone(), schedules.to_vec());
        let put = self.transact(move |transaction| {
            let put = definitions::put(transaction, &flow, expected)?;
            schedules::replace(transaction, &flow.scope, &flow.name, &wanted)?;
            Ok(put)
        });
        let (version, generation) = put.await?;
        self.generation.advance(generation);
        Ok(version)
    }

    async fn remove_flow(&self, scope: &Scope, name: &str) -> Result<Option<u64>, StoreError> {
        let (scope, name) = (scope.clone(), name.to_owned());
        self.transact_change(move |transaction| {
            schedules::replace(transaction, &scope, &name, &[])?;
            definitions::remove(transaction, &scope, &name)
        })
        .await
    }

    async fn begin_run(&self, run: &FlowRun, driver: &str, steps: &[FlowStep]) -> Result<bool, StoreError> {
        let (run, driver, steps) = (run.clone(), driver.to_owned(), steps.to_vec());
        self.transact(move |transaction| runs::begin(transaction, &run, &driver, &steps)).await
    }

    async fn take_run(&self, id: &TaskId, driver: &str) -> Result<Option<RunRecord>, StoreError> {
        let (id, driver) = (id.clone(), driver.to_owned());
        self.transact(move |transaction| runs::take(transaction, &id, &driver)).await
    }

    async fn run(&self, scope: &Scope, id: &TaskId) -> Result<Option<RunRecord>, StoreError> {
        let (scope, id) = (scope.clone(), id.clone());
        self.read(move |connection| {
            // Both are read at one moment.
            let reading = connection.unchecked_transaction()?;
            Ok(runs::find(&reading, &id)?.filter(|found| found.run.scope == scope))
        })
        .await
    }

    async fn runs(&self, scope: &Scope, filter: &RunFilter) -> Result<Vec<FlowRun>, StoreError> {
        let (scope, filter) = (scope.clone(), filter.clone());
        self.read(move |connection| runs::list(connection, &scope, &filter)).await
    }

    async fn change_run(&self, change: RunChange) -> Result<bool, StoreError> {
        self.transact(move |transaction| runs::change(transaction, &change)).await
    }

    async fn cancel_run(&self, id: &TaskId, at: Timestamp) -> Result<Option<RunRecord>, StoreError> {
        let id = id.clone();
        self.transact(move |transaction| runs::cancel(transaction, &id, at)).await
    }

    async fn wake_runs(
        &self,
        now: Timestamp,
        again: Timestamp,
        limit: usize,
    ) -> Result<Vec<FlowRun>, StoreError> {
        self.transact(move |transaction| runs::wake(transaction, now, again, limit)).await
    }

    async fn schedules(&self, scope: &Scope) -> Result<Vec<FlowSchedule>, StoreError> {
        let scope = scope.clone();
        self.read(move |connection| schedules::all(connection, &scope)).await
    }

    async fn due_schedules(
        &self,
        lease: &DeliveryLease,
        limit: usize,
    ) -> Result<Vec<FlowSchedule>, StoreError> {
        let lease = lease.clone();
        self.transact(move |transaction| schedules::lease_due(transaction, &lease, limit)).await
    }

    async fn record_schedule_run(&self, schedule: &FlowSchedule, holder: &str) -> Result<bool, StoreError> {
        let (schedule, holder) = (schedule.clone(), holder.to_owned());
        self.transact(move |transaction| schedules::record_run(transaction, &schedule, &holder)).await
    }
}

/// Something that is kept as JSON.
fn json<T: Serialize>(value: &T) -> rusqlite::Result<String> {
    serde_json::to_string(value).map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))
}

fn maybe_json<T: Serialize>(value: Option<&T>) -> rusqlite::Result<Option<String>> {
    value.map(json).transpose()
}

/// Reads a value from JSON.
fn read_json<T: DeserializeOwned>(text: &str) -> rusqlite::Result<T> {
    serde_json::from_str(text).map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(0, Type::Text, Box::new(FromSqlError::other(error)))
    })
}

fn maybe_read<T: DeserializeOwned>(row: &Row<'_>, column: &str) -> rusqlite::Result<Option<T>> {
    row.get::<_, Option<String>>(column)?.map(|text| read_json(&text)).transpose()
}
