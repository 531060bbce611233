//! The leases of this process: what it works on is its own for as long as it renews them.
//!
//! They are renewed on a connection of their own, by a thread of their own, so that neither many calls nor a pool without a free
//! connection make a living process look dead. A process that lost its lease finds that its tasks belong to others, and writes nothing to them.

use std::{collections::HashSet, sync::Arc, time::Duration};

use async_trait::async_trait;
use jiff::Timestamp;
use parking_lot::RwLock;
use rialto_model::{
    ids::{ProcessId, TaskId},
    store::{LeaseStore, StoreError},
    task::TaskHead,
};
use tokio::{sync::Mutex, task::AbortHandle, time};
use tokio_postgres::{Client, types::Type};

use super::{
    PostgresStore, begin,
    column::{limit, nanoseconds},
    connection::GenericClient,
    error::PostgresError,
    pooler::DatabaseEndpoint,
    sql::{self},
    tasks::head,
};
use crate::error::DatabaseError;

/// A process that was silent for so long is gone.
pub(super) const LEASE_DURATION: Duration = Duration::from_secs(3);

/// A server that takes longer to answer than this is not there.
const RENEWAL_TIMEOUT: Duration = Duration::from_secs(2);

/// The processes that we are or were, and the connection that tells of them.
pub(super) struct Leases {
    endpoint: DatabaseEndpoint,
    own: OwnRunners,
    connection: Mutex<Option<LeaseConnection>>,
}

/// The numbers under which this process works or has worked.
#[derive(Clone, Default)]
pub(super) struct OwnRunners(Arc<RwLock<HashSet<u64>>>);

struct LeaseConnection {
    client: Client,
    driver: AbortHandle,
}

#[async_trait]
impl LeaseStore for PostgresStore {
    async fn acquire_lease(&self, runner: ProcessId, until: Timestamp) -> Result<(), StoreError> {
        self.leases.add_own(runner);
        Ok(upsert_lease(&self.client().await?, runner, self.clock.to_server_time(until)).await?)
    }

    async fn renew(&self, runner: ProcessId, until: Timestamp) -> Result<bool, StoreError> {
        Ok(self.leases.renew(runner, self.clock.to_server_time(until)).await?)
    }

    async fn is_process_alive(&self, runner: ProcessId, now: Timestamp) -> Result<bool, StoreError> {
        Ok(has_lease(&self.client().await?, runner, self.clock.to_server_time(now)).await?)
    }

    async fn assign_task(&self, task: &TaskId, runner: ProcessId) -> Result<(), StoreError> {
        Ok(assign_task(&self.client().await?, task, runner).await?)
    }

    async fn release_lease(&self, runner: ProcessId) -> Result<(), StoreError> {
        Ok(delete_lease(&self.client().await?, runner).await?)
    }

    async fn take_over_tasks(
        &self,
        runner: ProcessId,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<TaskHead>, StoreError> {
        let mut client = self.client().await?;
        let transaction = begin(&mut client).await?;
        let taken = take_tasks(&transaction, runner, self.clock.to_server_time(now), limit).await?;
        self.commit(transaction, false).await?;
        Ok(taken)
    }

    async fn lock_process(&self, _: ProcessId) -> Result<bool, StoreError> {
        Ok(false)
    }
}

// === impl OwnRunners ===

impl OwnRunners {
    /// The number, if it is one of ours; else zero.
    pub(super) fn own_or_zero(&self, runner: ProcessId) -> i64 {
        let is_ours = runner != ProcessId::NOBODY && self.0.read().contains(&runner.get());
        if is_ours { runner.get().cast_signed() } else { 0 }
    }
}

// === impl Leases ===

impl Leases {
    pub(super) fn new(endpoint: DatabaseEndpoint) -> Self {
        Self { endpoint, own: OwnRunners::default(), connection: Mutex::new(None) }
    }

    /// Our numbers.
    pub(super) fn own_runners(&self) -> OwnRunners {
        self.own.clone()
    }

    /// This number is one of ours.
    pub(super) fn add_own(&self, runner: ProcessId) {
        self.own.0.write().insert(runner.get());
    }

    /// Renews a lease. Returns whether it was not lost.
    pub(super) async fn renew(&self, runner: ProcessId, until: Timestamp) -> Result<bool, PostgresError> {
        let mut connection = self.connection.lock().await;
        let renewing = async {
            let ready = match connection.take() {
                Some(ready) if !ready.client.is_closed() => ready,
                _ => self.connect().await?,
            };
            let is_renewed = extend_lease(&ready.client, runner, until).await?;
            // One that was given up on is not used again: it is closed when this is dropped.
            *connection = Some(ready);
            Ok(is_renewed)
        };
        let silent = || {
            PostgresError::Unreached(DatabaseError::plain(
                "the PostgreSQL server does not answer; see that it runs and can be reached",
            ))
        };
        time::timeout(RENEWAL_TIMEOUT, renewing).await.map_err(|_| silent())?
    }

    async fn connect(&self) -> Result<LeaseConnection, PostgresError> {
        let DatabaseEndpoint { target, tls } = &self.endpoint;
        let (client, connection) = target.connect(tls.clone()).await?;
        let driver = tokio::spawn(async move {
            // The next user of the connection gets the error.
            let _ = connection.await;
        });
        Ok(LeaseConnection { client, driver: driver.abort_handle() })
    }
}

impl Drop for LeaseConnection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// A process is at work.
pub(super) async fn upsert_lease(
    client: &impl GenericClient,
    runner: ProcessId,
    until: Timestamp,
) -> Result<(), PostgresError> {
    let upsert = "
        INSERT INTO runners (id, until) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET until = excluded.until";
    sql::execute(client, upsert, &[&runner.get().cast_signed(), &nanoseconds(until)?]).await.map(drop)
}

/// A process is still at work. Returns whether nobody has taken it for gone. On a connection that is used for nothing else.
pub(super) async fn extend_lease(
    client: &tokio_postgres::Client,
    runner: ProcessId,
    until: Timestamp,
) -> Result<bool, PostgresError> {
    let update = "UPDATE runners SET until = $2 WHERE id = $1";
    let (runner, until) = (runner.get().cast_signed(), nanoseconds(until)?);
    Ok(client.execute_typed(update, &[(&runner, Type::INT8), (&until, Type::INT8)]).await? == 1)
}

/// Returns whether a process has said that it is at work, and is not late to say so again.
pub(super) async fn has_lease(
    client: &impl GenericClient,
    runner: ProcessId,
    now: Timestamp,
) -> Result<bool, PostgresError> {
    let select = "SELECT id FROM runners WHERE id = $1 AND until >= $2";
    let found = sql::maybe_row(client, select, &[&runner.get().cast_signed(), &nanoseconds(now)?]).await?;
    Ok(found.is_some())
}

/// A task is that process's.
async fn assign_task(
    client: &impl GenericClient,
    task: &TaskId,
    runner: ProcessId,
) -> Result<(), PostgresError> {
    let update = "UPDATE tasks SET runner = $2 WHERE id = $1";
    sql::execute(client, update, &[&task.as_str(), &runner.get().cast_signed()]).await.map(drop)
}

/// A process works no more.
pub(super) async fn delete_lease(
    client: &impl GenericClient,
    runner: ProcessId,
) -> Result<(), PostgresError> {
    let delete = "DELETE FROM runners WHERE id = $1";
    sql::execute(client, delete, &[&runner.get().cast_signed()]).await.map(drop)
}

/// Takes over what processes that are gone have left open, the oldest first. Rows that another process is taking are left to
/// them.
pub(super) async fn take_tasks(
    client: &impl GenericClient,
    runner: ProcessId,
    now: Timestamp,
    most: usize,
) -> Result<Vec<TaskHead>, PostgresError> {
    sql::execute(client, "DELETE FROM runners WHERE until < $1", &[&nanoseconds(now)?]).await?;
    let take = "
        WITH left_open AS (
            SELECT id FROM tasks
            WHERE open AND runner <> 0 AND runner <> $1 AND NOT EXISTS (SELECT FROM runners WHERE runners.id = tasks.runner)
            ORDER BY id LIMIT $2 FOR UPDATE SKIP LOCKED
        ), taken AS (
            UPDATE tasks SET runner = $1 FROM left_open WHERE tasks.id = left_open.id RETURNING tasks.*
        )
        SELECT * FROM taken ORDER BY id";
    let rows = sql::rows(client, take, &[&runner.get().cast_signed(), &limit(most)]).await?;
    rows.iter().map(head).collect()
}
