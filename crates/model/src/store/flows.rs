//! Workflow definitions, their runs and schedules.

use jiff::Timestamp;

use super::layer::store_trait;
use crate::{
    flow::{Flow, FlowRun, FlowSchedule, FlowStep, RunChange, RunFilter, RunRecord},
    ids::{Scope, TaskId},
    store::StoreError,
    webhook::DeliveryLease,
};

store_trait! {
    /// Workflow definitions, their runs and schedules. Part of every [`Store`](super::Store).
    pub trait FlowStore {
        /// The definitions of a project in their last version, by name; without a project, of all.
        async fn flows(&self, scope: Option<&Scope>) -> Result<Vec<Flow>, StoreError>;

        /// One version of a definition, also of one that was removed since; none is the last.
        async fn flow(&self, scope: &Scope, name: &str, version: Option<u64>)
        -> Result<Option<Flow>, StoreError>;

        /// Adds a definition, or another version of one, with the schedules that it has from now on. Refused when `expected` is not
        /// the version in force; zero, where there is none. Answers the version that it has: one more than any there ever was.
        async fn put_flow(&self, flow: &Flow, expected: u64, schedules: &[FlowSchedule]) -> Result<u64, StoreError>;

        /// Removes a definition; its runs keep what they began with. Returns the new generation, or none when it was
        /// not there.
        async fn remove_flow(&self, scope: &Scope, name: &str) -> Result<Option<u64>, StoreError>;

        /// Adds a run with its first steps and its driver. False if it exists already: then nothing was
        /// written.
        async fn begin_run(&self, run: &FlowRun, driver: &str, steps: &[FlowStep]) -> Result<bool, StoreError>;

        /// Takes a run: its previous driver can write nothing any more. A run that is over is only returned.
        async fn take_run(&self, id: &TaskId, driver: &str) -> Result<Option<RunRecord>, StoreError>;

        /// A run as it stands, with its steps in the order they began.
        async fn run(&self, scope: &Scope, id: &TaskId) -> Result<Option<RunRecord>, StoreError>;

        /// Runs of a project, newest first.
        async fn runs(&self, scope: &Scope, filter: &RunFilter) -> Result<Vec<FlowRun>, StoreError>;

        /// Stores changes of a run. False if the run is over or has another driver: then nothing was written.
        async fn change_run(&self, change: RunChange) -> Result<bool, StoreError>;

        /// Cancels a run, whichever driver it has. Returns its last state, or none when it is not there or over already.
        async fn cancel_run(&self, id: &TaskId, at: Timestamp) -> Result<Option<RunRecord>, StoreError>;

        /// Runs that wait though their moment has come, at most `limit`. Their next moment is `again`: until then nobody else gets
        /// them.
        async fn wake_runs(
            &self,
            now: Timestamp,
            again: Timestamp,
            limit: usize,
        ) -> Result<Vec<FlowRun>, StoreError>;

        /// The schedules of a project.
        async fn schedules(&self, scope: &Scope) -> Result<Vec<FlowSchedule>, StoreError>;

        /// Schedules whose moment has come, at most `limit`. Until the lease is over, or [`Self::record_schedule_run`] ends it,
        /// nobody else gets them.
        async fn due_schedules(&self, lease: &DeliveryLease, limit: usize) -> Result<Vec<FlowSchedule>, StoreError>;

        /// Stores the next time and task of a schedule and releases it; rejected when `holder` does not have the lease any more.
        async fn record_schedule_run(&self, schedule: &FlowSchedule, holder: &str) -> Result<bool, StoreError>;
    }
}
