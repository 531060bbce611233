//! The store in a PostgreSQL database, for several machines that share one.
//!
//! An operation is one statement or one transaction on a pooled connection. Only the journal is different ([`journal`]): it is
//! written by one task per process, which commits together what comes together. Nothing is kept in this process but the
//! number that tells of changes ([`generation`]).

mod address;
mod agents;
mod approvals;
mod audit;
mod audit_chains;
mod check;
mod column;
mod connect;
mod connection;
mod conversations;
mod costs;
mod error;
mod flows;
mod generation;
mod journal;
mod leases;
mod messages;
mod nodes;
mod policies;
mod pooler;
mod pushes;
mod relay;
mod retention;
mod routing;
mod secrets;
mod server_clock;
mod session_messages;
mod shared_usage;
mod sql;
mod tasks;
mod tenants;
mod tls;
mod tokens;
mod webhooks;

use std::time::Duration;

use async_trait::async_trait;
use rialto_model::store::{Store, StoreError};
use tokio::task::AbortHandle;

use self::{
    connection::{PgClient, Pool, Transaction},
    generation::{AckBarrier, ChangeNotice, GenerationCopy, Listener},
    journal::{Journal, WRITERS},
    leases::Leases,
    pooler::DatabaseRoute,
    server_clock::ServerClock,
};
use crate::{
    config::{Config, StoreUrl},
    open::CardParser,
};

/// A store in a PostgreSQL database.
///
/// What was handed to the journal is written even when its caller stops waiting.
pub struct PostgresStore {
    pool: Pool,
    parse: CardParser,
    generation: GenerationCopy,
    ack_barrier: AckBarrier,
    notice: ChangeNotice,
    journal: Journal,
    leases: Leases,
    clock: ServerClock,
    listener: AbortHandle,
}

// === impl PostgresStore ===

impl PostgresStore {
    /// Opens the database; makes the tables that are not there yet.
    pub async fn open(url: &StoreUrl, config: &Config, parse: CardParser) -> Result<Self, StoreError> {
        let DatabaseRoute { pool, endpoint, direct, notice } = DatabaseRoute::open(url, config).await?;
        // The journal waits for nobody.
        let writing = || connect::pool(endpoint.clone(), config, (1, pool.mode()));
        let writing: [_; WRITERS] = [writing()?, writing()?];
        let (generation, clock) = (GenerationCopy::default(), ServerClock::default());
        connect::prepare(&pool).await?;
        generation.advance(generation::read(&*pool.get().await?, &clock).await?);
        let (ack_barrier, leases) = (AckBarrier::default(), Leases::new(direct.clone()));
        let (followed, others_here, clock_here) = (generation.clone(), ack_barrier.clone(), clock.clone());
        let listener = Listener {
            endpoint: direct,
            notice,
            generation: followed,
            ack_barrier: others_here,
            clock: clock_here,
        };
        let listener = tokio::spawn(listener.run()).abort_handle();
        let journal = Journal::start(writing, &generation, &leases.own_runners());
        Ok(Self { pool, parse, generation, ack_barrier, notice, journal, leases, clock, listener })
    }

    async fn client(&self) -> Result<PgClient, StoreError> {
        Ok(self.pool.get().await?)
    }

    /// Commits; if anything has changed that others must see, it is counted. Returns the new generation.
    async fn commit(
        &self,
        transaction: Transaction<'_>,
        has_changed: bool,
    ) -> Result<Option<u64>, StoreError> {
        let made = if has_changed { Some(generation::next(&transaction).await?) } else { None };
        transaction.commit().await?;
        if let Some(number) = made {
            self.generation.advance(number);
        }
        Ok(made)
    }

    /// Commits a change that surely moves the generation.
    async fn commit_change(&self, transaction: Transaction<'_>) -> Result<u64, StoreError> {
        Ok(self.commit(transaction, true).await?.unwrap_or_else(|| self.generation()))
    }

    /// Waits until every process goes by a change of rights or names that made this generation, if it made one.
    async fn spread(&self, client: &PgClient, made: Option<u64>) {
        if let Some(number) = made {
            self.ack_barrier.wait(client, number).await;
            self.notice.wait_for_polls().await;
        }
    }
}

#[async_trait]
impl Store for PostgresStore {
    fn generation(&self) -> u64 {
        self.generation.get()
    }

    async fn touch(&self) -> Result<u64, StoreError> {
        let mut client = self.client().await?;
        let transaction = begin(&mut client).await?;
        let made = self.commit_change(transaction).await?;
        self.spread(&client, Some(made)).await;
        Ok(made)
    }

    fn lease(&self) -> Duration {
        leases::LEASE_DURATION
    }

    fn detects_process_exit(&self) -> bool {
        false
    }
}

impl Drop for PostgresStore {
    fn drop(&mut self) {
        self.listener.abort();
    }
}

async fn begin(client: &mut PgClient) -> Result<Transaction<'_>, StoreError> {
    Ok(client.transaction().await?)
}
