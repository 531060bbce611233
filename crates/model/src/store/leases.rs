//! Leases of processes, and takeover of the tasks of processes that lost theirs.

use jiff::Timestamp;

use super::layer::store_trait;
use crate::{
    ids::{ProcessId, TaskId},
    store::StoreError,
    task::TaskHead,
};

store_trait! {
    /// Leases of processes, and takeover of the tasks of processes that lost theirs. Part of every [`Store`](super::Store).
    pub trait LeaseStore {
        /// Acquires the lease of a process until `until`.
        async fn acquire_lease(&self, runner: ProcessId, until: Timestamp) -> Result<(), StoreError>;

        /// Renews the lease. False if it was lost meanwhile: other processes have taken over its tasks. To be called by one thread at a
        /// time, whose runtime keeps whatever connection this needs.
        async fn renew(&self, runner: ProcessId, until: Timestamp) -> Result<bool, StoreError>;

        /// Holds a lock that shows that a process is alive, where its death is detected without heartbeats. Where it is not,
        /// returns false: it must acquire a lease with [`Self::acquire_lease`].
        async fn lock_process(&self, runner: ProcessId) -> Result<bool, StoreError>;

        /// Returns whether a process is at work, as far as is known.
        async fn is_process_alive(&self, runner: ProcessId, now: Timestamp) -> Result<bool, StoreError>;

        /// Assigns a task to this process, whichever process had it before.
        async fn assign_task(&self, task: &TaskId, runner: ProcessId) -> Result<(), StoreError>;

        /// Releases the lease of a process: its open tasks can be taken over at once.
        async fn release_lease(&self, runner: ProcessId) -> Result<(), StoreError>;

        /// Takes over tasks that are not over and whose process is gone: it released its lease, or let it expire before `now`. The
        /// oldest first, at most `limit`; they have their new runner.
        async fn take_over_tasks(
            &self,
            runner: ProcessId,
            now: Timestamp,
            limit: usize,
        ) -> Result<Vec<TaskHead>, StoreError>;
    }
}
