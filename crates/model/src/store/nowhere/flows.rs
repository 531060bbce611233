//! Runs that nobody will ask about later.

use async_trait::async_trait;

use super::Nowhere;
use crate::{
    clock::Timestamp,
    flow::{Flow, FlowRun, FlowStep, FlowStore, RunChange, RunFilter, RunRecord, Schedule},
    ids::{Scope, TaskId},
    store::StoreError,
    webhook::Lease,
};

#[async_trait]
impl FlowStore for Nowhere {
    async fn flows(&self, _: Option<&Scope>) -> Result<Vec<Flow>, StoreError> {
        Ok(Vec::new())
    }

    async fn flow(&self, _: &Scope, _: &str, _: Option<u64>) -> Result<Option<Flow>, StoreError> {
        Ok(None)
    }

    async fn put_flow(&self, _: &Flow, expected: u64, _: &[Schedule]) -> Result<u64, StoreError> {
        Ok(expected + 1)
    }

    async fn remove_flow(&self, _: &Scope, _: &str) -> Result<Option<u64>, StoreError> {
        Ok(None)
    }

    async fn begin_run(&self, _: &FlowRun, _: &str, _: &[FlowStep]) -> Result<bool, StoreError> {
        Ok(true)
    }

    async fn take_run(&self, _: &TaskId, _: &str) -> Result<Option<RunRecord>, StoreError> {
        Ok(None)
    }

    async fn run(&self, _: &Scope, _: &TaskId) -> Result<Option<RunRecord>, StoreError> {
        Ok(None)
    }

    async fn runs(&self, _: &Scope, _: &RunFilter) -> Result<Vec<FlowRun>, StoreError> {
        Ok(Vec::new())
    }

    async fn change_run(&self, _: RunChange) -> Result<bool, StoreError> {
        Ok(true)
    }

    async fn cancel_run(&self, _: &TaskId, _: Timestamp) -> Result<Option<RunRecord>, StoreError> {
        Ok(None)
    }

    async fn wake_runs(&self, _: Timestamp, _: usize) -> Result<Vec<FlowRun>, StoreError> {
        Ok(Vec::new())
    }

    async fn schedules(&self, _: &Scope) -> Result<Vec<Schedule>, StoreError> {
        Ok(Vec::new())
    }

    async fn due_schedules(&self, _: &Lease, _: usize) -> Result<Vec<Schedule>, StoreError> {
        Ok(Vec::new())
    }

    async fn note_schedule(&self, _: &Schedule, _: &str) -> Result<bool, StoreError> {
        Ok(false)
    }
}
