//! Pooler between this process and the database.
//!
//! A pooler that gives a connection of the server away after each transaction (PgBouncer in transaction mode) keeps nothing that belongs to a
//! connection: prepared statements, `LISTEN`, settings and advisory locks that outlive a transaction. Statements are sent without names
//! there, and what needs a connection of its own uses `[store] listen_url`. Without that address, changes by other processes are polled.

use rialto_model::store::StoreError;
use tokio::time;
use tokio_postgres::Config as Target;

use super::{
    address::Address,
    connect,
    connection::{PgClient, Pool, StatementMode},
    error::PostgresError,
    generation::ChangeNotice,
    tls::PgTls,
};
use crate::{
    config::{Config, Durability, StoreUrl},
    error::DatabaseError,
};

/// Number of comparisons of two connections. Under load a pooler may hand each of them the same connection of the server for a while.
const DETECTION_ROUNDS: usize = 4;

/// A place to connect to.
#[derive(Clone)]
pub(super) struct DatabaseEndpoint {
    pub(super) target: Target,
    pub(super) tls: PgTls,
}

/// Connections of this process to its database.
pub(super) struct DatabaseRoute {
    pub(super) pool: Pool,
    /// Endpoint of the pooled connections.
    pub(super) endpoint: DatabaseEndpoint,
    /// Endpoint whose connections belong to this process as long as they are open, if there is one.
    pub(super) direct: DatabaseEndpoint,
    pub(super) notice: ChangeNotice,
}

// === impl DatabaseEndpoint ===

impl DatabaseEndpoint {
    fn parse(url: &StoreUrl, key: &str) -> Result<Self, StoreError> {
        let Address { config: target, tls } = Address::parse(url, key)?;
        Ok(Self { target, tls: PgTls::new(tls.as_ref())? })
    }
}

// === impl DatabaseRoute ===

impl DatabaseRoute {
    /// Connects, and finds out whether a pooler lies between unless the configuration says so.
    pub(super) async fn open(url: &StoreUrl, config: &Config) -> Result<Self, StoreError> {
        let endpoint = DatabaseEndpoint::parse(url, "url")?;
        let listen = config.listen_url.as_ref().map(|url| DatabaseEndpoint::parse(url, "listen_url"));
        let listen = listen.transpose()?;
        let size = usize::from(config.connections.max(2));
        let pool = connect::pool(endpoint.clone(), config, (size, StatementMode::Unnamed))?;
        let is_pooled = match (config.pooler, &listen) {
            (Some(is_pooled), _) => is_pooled,
            (None, Some(_)) => true,
            (None, None) => is_pooler_between(&pool).await?,
        };
        if is_pooled && config.durability == Durability::Full {
            check_commits_wait_for_disk(&pool.get().await?).await?;
        }
        let notice = if is_pooled && listen.is_none() {
            tracing::info!(
                "a pooler lies between this process and PostgreSQL: changes by other processes are polled; \
                 to receive them at once, set [store] listen_url to the address of the server itself"
            );
            ChangeNotice::Poll
        } else {
            ChangeNotice::Listen
        };
        if let Some(listen) = &listen {
            check_same_database(&pool, listen, config).await?;
        }
        let pool = match config.durability {
            _ if is_pooled => pool,
            Durability::Normal => pool.with_mode(StatementMode::Named),
            // That is a setting of each connection, so they are made anew.
            Durability::Full => connect::pool(endpoint.clone(), config, (size, StatementMode::Named))?,
        };
        Ok(Self { pool, direct: listen.unwrap_or_else(|| endpoint.clone()), endpoint, notice })
    }
}

/// Returns whether connections of ours share connections of the server.
async fn is_pooler_between(pool: &Pool) -> Result<bool, PostgresError> {
    let (one, two) = (pool.get().await?, pool.get().await?);
    let (first, second) = (server_process(&one).await?, server_process(&two).await?);
    if first == second {
        return Ok(true);
    }
    for _ in 1..DETECTION_ROUNDS {
        // The other way round: the connection that was freed last is given away first.
        if server_process(&two).await? != second || server_process(&one).await? != first {
            return Ok(true);
        }
    }
    Ok(false)
}

async fn server_process(client: &PgClient) -> Result<i32, PostgresError> {
    Ok(client.query_typed_one("SELECT pg_backend_pid()", &[]).await?.try_get(0)?)
}

/// A setting of a connection does not stay behind a pooler: the server must have it.
async fn check_commits_wait_for_disk(client: &PgClient) -> Result<(), PostgresError> {
    let row = client.query_typed_one("SELECT current_setting('synchronous_commit')", &[]).await?;
    if row.try_get::<_, &str>(0)? == "off" {
        let what = "[store] durability is \"full\", but the server has synchronous_commit = off, and behind a pooler no connection can \
                    change that: ALTER DATABASE … SET synchronous_commit = on";
        return Err(PostgresError::Unreached(DatabaseError::plain(what)));
    }
    Ok(())
}

/// Both addresses must lead to one database, or changes of others are never noticed.
async fn check_same_database(
    pool: &Pool,
    listen: &DatabaseEndpoint,
    config: &Config,
) -> Result<(), PostgresError> {
    let select = "SELECT current_database()::text, pg_postmaster_start_time()::text";
    let read = |row: tokio_postgres::Row| -> Result<(String, String), PostgresError> {
        Ok((row.try_get(0)?, row.try_get(1)?))
    };
    let direct = connect::pool(listen.clone(), config, (1, StatementMode::Unnamed))?;
    let asking = async { read(direct.get().await?.query_typed_one(select, &[]).await?) };
    let late = |_| {
        PostgresError::Unreached(DatabaseError::plain(
            "the server at [store] listen_url (RIALTO_STORE_LISTEN_URL) does not answer",
        ))
    };
    let there = time::timeout(connect::PATIENCE, asking).await.map_err(late)??;
    let here = read(pool.get().await?.query_typed_one(select, &[]).await?)?;
    if here != there {
        let what = "[store] url and [store] listen_url (RIALTO_STORE_LISTEN_URL) lead to different databases; name the same server and \
                    database in both";
        return Err(PostgresError::Unreached(DatabaseError::plain(what)));
    }
    Ok(())
}
