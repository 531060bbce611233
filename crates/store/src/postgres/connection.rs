//! Pooled connections, and how statements are sent on them.
//!
//! Without a pooler each statement is prepared once per connection and used by its name after that. A pooler that gives a connection of the
//! server away after each transaction does not know such names, so there each statement is sent whole, without a name, in one round trip.

use std::ops::{Deref, DerefMut};

use deadpool_postgres::{Object, StatementCache, Transaction as PooledTransaction};
use tokio_postgres::IsolationLevel;

use super::error::PostgresError;

/// Mode in which statements are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StatementMode {
    /// Prepared once per connection, under a name.
    Named,
    /// Whole, each time.
    Unnamed,
}

/// Connections that are reused.
#[derive(Clone)]
pub(super) struct Pool {
    pool: deadpool_postgres::Pool,
    mode: StatementMode,
}

/// A connection out of a pool.
pub(super) struct PgClient {
    client: Object,
    mode: StatementMode,
}

/// A transaction on a connection out of a pool. It is rolled back when it is dropped.
pub(super) struct Transaction<'a> {
    transaction: PooledTransaction<'a>,
    mode: StatementMode,
}

/// A connection or a transaction, for statements that run on either.
pub(super) trait GenericClient: Sync {
    /// Its parts: the connection, the statements prepared on it, and how statements are sent.
    fn parts(&self) -> (&tokio_postgres::Client, &StatementCache, StatementMode);
}

// === impl Pool ===

impl Pool {
    pub(super) const fn new(pool: deadpool_postgres::Pool, mode: StatementMode) -> Self {
        Self { pool, mode }
    }

    /// Pool with another statement mode.
    pub(super) fn with_mode(self, mode: StatementMode) -> Self {
        Self { mode, ..self }
    }

    pub(super) const fn mode(&self) -> StatementMode {
        self.mode
    }

    pub(super) async fn get(&self) -> Result<PgClient, PostgresError> {
        Ok(PgClient { client: self.pool.get().await?, mode: self.mode })
    }
}

// === impl PgClient ===

impl PgClient {
    /// Closes the connection instead of returning it to its pool.
    pub(super) fn close(self) {
        drop(Object::take(self.client));
    }

    pub(super) async fn transaction(&mut self) -> Result<Transaction<'_>, PostgresError> {
        Ok(Transaction { transaction: self.client.transaction().await?, mode: self.mode })
    }

    /// Begins a transaction that sees everything as it is at one moment, and changes nothing.
    pub(super) async fn snapshot(&mut self) -> Result<Transaction<'_>, PostgresError> {
        let builder = self.client.build_transaction().isolation_level(IsolationLevel::RepeatableRead);
        Ok(Transaction { transaction: builder.read_only(true).start().await?, mode: self.mode })
    }
}

impl Deref for PgClient {
    type Target = tokio_postgres::Client;

    fn deref(&self) -> &tokio_postgres::Client {
        &self.client
    }
}

impl DerefMut for PgClient {
    fn deref_mut(&mut self) -> &mut tokio_postgres::Client {
        &mut self.client
    }
}

impl GenericClient for PgClient {
    fn parts(&self) -> (&tokio_postgres::Client, &StatementCache, StatementMode) {
        (&self.client, &self.client.statement_cache, self.mode)
    }
}

// === impl Transaction ===

impl Transaction<'_> {
    pub(super) async fn commit(self) -> Result<(), PostgresError> {
        Ok(self.transaction.commit().await?)
    }
}

impl GenericClient for Transaction<'_> {
    fn parts(&self) -> (&tokio_postgres::Client, &StatementCache, StatementMode) {
        (self.transaction.client(), &self.transaction.statement_cache, self.mode)
    }
}
