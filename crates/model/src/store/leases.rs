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
        /// Says that a process is at work and will have said so again by `until`.
        async fn acquire_lease(&self, runner: ProcessId, until: Timestamp) -> Result<(), StoreError>;

        /// Says it again. The answer is no when the process was taken for gone meanwhile: its tasks are others' now. To be called by one thread at a
        /// time, whose runtime keeps whatever connection this needs.
        async fn renew(&self, runner: ProcessId, until: Timestamp) -> Result<bool, StoreError>;

        /// Shows that a process is at work for as long as it lives, where its death is seen without any beats. Where it is not,
        /// the answer is no, and it is to say so with [`Self::acquire_lease`].
        async fn lock_process(&self, runner: ProcessId) -> Result<bool, StoreError>;

        /// Whether a process is at work, as far as can be told.
        async fn is_process_alive(&self, runner: ProcessId, now: Timestamp) -> Result<bool, StoreError>;

        /// Says that a task is this process's from now on, whoever worked on it before.
        async fn assign_task(&self, task: &TaskId, runner: ProcessId) -> Result<(), StoreError>;

        /// Says that a process works no more: what it left can be taken over at once.
        async fn release_lease(&self, runner: ProcessId) -> Result<(), StoreError>;

        /// Takes over tasks that are not over and whose process is gone: it retired, or has not been heard of by `now`. The
        /// oldest first, at most so many; they have their new runner.
        async fn take_over_tasks(
            &self,
            runner: ProcessId,
            now: Timestamp,
            limit: usize,
        ) -> Result<Vec<TaskHead>, StoreError>;
    }
}
