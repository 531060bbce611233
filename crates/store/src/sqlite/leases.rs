//! Leases of processes, and takeover of tasks.

use std::collections::HashSet;

use async_trait::async_trait;
use jiff::Timestamp;
use rialto_model::{
    ids::{ProcessId, TaskId},
    store::{LeaseStore, StoreError},
    task::TaskHead,
};
use rusqlite::{Connection, params};

use super::{SqliteStore, column::At, process_locks, tasks::head, writer::Job};
use crate::error::SqliteError;

/// Filter of the tasks whose process has no lease.
pub(super) struct TakeoverFilter<'a> {
    /// True if a process may be at work without having said so.
    pub(super) may_be_alive: &'a dyn Fn(ProcessId) -> bool,
    /// Maximum number of rows.
    pub(super) limit: usize,
}

#[async_trait]
impl LeaseStore for SqliteStore {
    async fn acquire_lease(&self, runner: ProcessId, until: Timestamp) -> Result<(), StoreError> {
        if let Some(readers) = &self.readers {
            self.process_locks.acquire(readers.folder(), runner);
        }
        self.transact(move |transaction| upsert_lease(transaction, runner, until)).await
    }

    async fn renew(&self, runner: ProcessId, until: Timestamp) -> Result<bool, StoreError> {
        self.transact(move |transaction| extend_lease(transaction, runner, until)).await
    }

    async fn lock_process(&self, runner: ProcessId) -> Result<bool, StoreError> {
        Ok(self.readers.as_ref().is_some_and(|readers| self.process_locks.acquire(readers.folder(), runner)))
    }

    async fn is_process_alive(&self, runner: ProcessId, now: Timestamp) -> Result<bool, StoreError> {
        let locked =
            self.readers.as_ref().and_then(|readers| process_locks::is_alive(readers.folder(), runner));
        match locked {
            Some(is_alive) => Ok(is_alive),
            None => self.read(move |connection| has_lease(connection, runner, now)).await,
        }
    }

    async fn assign_task(&self, task: &TaskId, runner: ProcessId) -> Result<(), StoreError> {
        let task = task.clone();
        self.flush_buffer().await?;
        self.transact(move |transaction| assign_task(transaction, &task, runner)).await
    }

    async fn release_lease(&self, runner: ProcessId) -> Result<(), StoreError> {
        self.flush_buffer().await?;
        self.transact(move |transaction| delete_lease(transaction, runner)).await?;
        if let Some(readers) = &self.readers {
            self.process_locks.release(readers.folder(), runner);
        }
        Ok(())
    }

    async fn take_over_tasks(
        &self,
        runner: ProcessId,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<TaskHead>, StoreError> {
        // Those that died are found before their last records are: a process that is found dead writes none any more.
        let folder = self.readers.as_ref().map(|readers| readers.folder().to_owned());
        let gone = folder.as_deref().map(process_locks::find_dead).unwrap_or_default();
        self.ask(Job::RecoverBuffers).await?;
        let place = folder.clone();
        let taken = self.transact(move |transaction| {
            gone.iter().try_for_each(|dead| delete_lease(transaction, *dead))?;
            let gone = [gone, delete_expired(transaction, now)?].concat();
            // One that keeps a file and was not found dead may have records that nobody has adopted: it is looked at next time.
            let may_be_alive = |other| {
                !gone.contains(&other)
                    && place.as_deref().is_some_and(|place| process_locks::has_lock_file(place, other))
            };
            let taken =
                take_tasks(transaction, runner, &TakeoverFilter { may_be_alive: &may_be_alive, limit })?;
            Ok((taken, gone))
        });
        let (taken, gone) = taken.await?;
        for runner in gone {
            folder.iter().for_each(|folder| process_locks::remove_lock_file(folder, runner));
        }
        Ok(taken)
    }
}

/// A process is at work. Those that have long been gone, and left nothing, are forgotten on the way.
pub(super) fn upsert_lease(
    connection: &Connection,
    runner: ProcessId,
    until: Timestamp,
) -> Result<(), SqliteError> {
    let mut upsert = connection.prepare_cached(
        "INSERT INTO runners (id, until) VALUES (?1, ?2) ON CONFLICT (id) DO UPDATE SET until = excluded.until",
    )?;
    upsert.execute(params![runner.get().cast_signed(), At(until)])?;
    Ok(())
}

/// A process is still at work. Returns whether nobody has taken it for gone.
pub(super) fn extend_lease(
    connection: &Connection,
    runner: ProcessId,
    until: Timestamp,
) -> Result<bool, SqliteError> {
    let mut update = connection.prepare_cached("UPDATE runners SET until = ?2 WHERE id = ?1")?;
    Ok(update.execute(params![runner.get().cast_signed(), At(until)])? == 1)
}

/// A process works no more.
pub(super) fn delete_lease(connection: &Connection, runner: ProcessId) -> Result<(), SqliteError> {
    connection.prepare_cached("DELETE FROM runners WHERE id = ?1")?.execute([runner.get().cast_signed()])?;
    Ok(())
}

/// Returns whether a process has said that it is at work, and is not late to say so again.
pub(super) fn has_lease(
    connection: &Connection,
    runner: ProcessId,
    now: Timestamp,
) -> Result<bool, SqliteError> {
    let mut found =
        connection.prepare_cached("SELECT EXISTS (SELECT 1 FROM runners WHERE id = ?1 AND until >= ?2)")?;
    Ok(found.query_row(params![runner.get().cast_signed(), At(now)], |row| row.get(0))?)
}

/// A task is that process's.
fn assign_task(connection: &Connection, task: &TaskId, runner: ProcessId) -> Result<(), SqliteError> {
    let mut update = connection.prepare_cached("UPDATE tasks SET runner = ?2 WHERE id = ?1")?;
    update.execute(params![task.as_str(), runner.get().cast_signed()])?;
    Ok(())
}

/// Forgets the processes that are late to say again that they are at work, and says which they were.
pub(super) fn delete_expired(connection: &Connection, now: Timestamp) -> Result<Vec<ProcessId>, SqliteError> {
    let mut delete = connection.prepare_cached("DELETE FROM runners WHERE until < ?1 RETURNING id")?;
    let late = delete.query_map([At(now)], |row| row.get(0).map(i64::cast_unsigned).map(ProcessId::from))?;
    Ok(late.collect::<rusqlite::Result<_>>()?)
}

/// Takes over what processes that are gone have left open, the oldest first.
pub(super) fn take_tasks(
    connection: &Connection,
    runner: ProcessId,
    filter: &TakeoverFilter<'_>,
) -> Result<Vec<TaskHead>, SqliteError> {
    let mut select = connection.prepare_cached(
        "SELECT * FROM tasks INDEXED BY tasks_open
         WHERE open = 1 AND runner <> 0 AND runner <> ?1 AND runner NOT IN (SELECT id FROM runners) ORDER BY id",
    )?;
    let number = runner.get().cast_signed();
    let mut rows = select.query([number])?;
    let mut update = connection.prepare_cached("UPDATE tasks SET runner = ?2 WHERE row = ?1")?;
    let (mut taken, mut passed_by) = (Vec::new(), HashSet::new());
    while taken.len() < filter.limit
        && let Some(row) = rows.next()?
    {
        let head = head(row)?;
        if passed_by.contains(&head.runner.get()) || (filter.may_be_alive)(head.runner) {
            passed_by.insert(head.runner.get());
            continue;
        }
        update.execute(params![row.get::<_, i64>("row")?, number])?;
        taken.push(TaskHead { runner, ..head });
    }
    Ok(taken)
}
