//! Connections, and the schema they find.
//!
//! Several processes may open one database at the same moment, the very first included. The process that changes the schema holds
//! a lock in the database meanwhile, so that one of them does it and the others find it done.

use std::time::Duration;

use deadpool_postgres::{Hook, HookError, Manager, ManagerConfig, RecyclingMethod, Runtime};
use refinery::{Migration, Runner};
use rialto_model::store::StoreError;
use tokio::time;

use super::{
    connection::{PgClient, Pool, StatementMode},
    error::PostgresError,
    pooler::DatabaseEndpoint,
    sql,
};
use crate::{
    config::{Config, Durability},
    error::DatabaseError,
};

/// The steps to the schema that this program knows, from nothing.
const MIGRATIONS: [(&str, &str); 13] = [
    ("V1__everything", include_str!("../../migrations/postgres/V1__everything.sql")),
    ("V2__seeds", include_str!("../../migrations/postgres/V2__seeds.sql")),
    ("V3__routing", include_str!("../../migrations/postgres/V3__routing.sql")),
    ("V4__flows", include_str!("../../migrations/postgres/V4__flows.sql")),
    ("V5__approvals", include_str!("../../migrations/postgres/V5__approvals.sql")),
    ("V6__message_claims", include_str!("../../migrations/postgres/V6__message_claims.sql")),
    ("V7__tenants", include_str!("../../migrations/postgres/V7__tenants.sql")),
    ("V8__token_origins", include_str!("../../migrations/postgres/V8__token_origins.sql")),
    ("V9__tokens_of_work", include_str!("../../migrations/postgres/V9__tokens_of_work.sql")),
    ("V10__audit_chains", include_str!("../../migrations/postgres/V10__audit_chains.sql")),
    ("V11__session_messages", include_str!("../../migrations/postgres/V11__session_messages.sql")),
    ("V12__nodes", include_str!("../../migrations/postgres/V12__nodes.sql")),
    ("V13__shared_usage", include_str!("../../migrations/postgres/V13__shared_usage.sql")),
];

/// The number of that schema.
const SCHEMA: usize = 13;

/// Advisory lock of the process that changes the schema.
const LOCK: i64 = 0x0052_4941_4c54_4f00;

/// Delay between two attempts to get that lock.
const LOCK_RETRY: Duration = Duration::from_millis(50);

/// Maximum wait for a pooled connection.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// Opens a pool of connections.
pub(super) fn pool(
    DatabaseEndpoint { target, tls }: DatabaseEndpoint,
    config: &Config,
    (connections, mode): (usize, StatementMode),
) -> Result<Pool, StoreError> {
    let manager = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    let builder = deadpool_postgres::Pool::builder(Manager::from_config(target, tls, manager))
        .max_size(connections)
        .wait_timeout(Some(PATIENCE))
        .create_timeout(Some(PATIENCE))
        .runtime(Runtime::Tokio1);
    let builder = match (config.durability, mode) {
        // Behind a pooler no setting stays; that of the server was checked.
        (Durability::Normal, _) | (_, StatementMode::Unnamed) => builder,
        (Durability::Full, StatementMode::Named) => builder.post_create(Hook::async_fn(|client, _| {
            Box::pin(async move {
                client.batch_execute("SET synchronous_commit = on").await.map_err(HookError::Backend)
            })
        })),
    };
    let pool =
        builder.build().map_err(|error| DatabaseError::new("connections could not be set up", error))?;
    Ok(Pool::new(pool, mode))
}

/// Brings the database to the present schema, if it has an older one or none.
pub(super) async fn prepare(pool: &Pool) -> Result<(), PostgresError> {
    let mut client = pool.get().await?;
    match schema_of(&client).await? {
        SCHEMA => return Ok(()),
        // Its changes are such that this program still works with it.
        newer if newer > SCHEMA && floor(&client).await?.is_some_and(|floor| floor <= SCHEMA) => {
            return Ok(());
        }
        newer if newer > SCHEMA => {
            let what = "the database was last written by a newer rialto; update this program";
            return Err(PostgresError::Unreached(DatabaseError::plain(what)));
        }
        _ => {}
    }
    let locking = pool.get().await?;
    let migrated = match lock(&locking).await {
        Ok(()) => migrate(&mut client).await,
        Err(failure) => {
            locking.close();
            return Err(failure);
        }
    };
    // Which ends its transaction, and with it the lock.
    locking.close();
    migrated.map_err(|error| {
        let what = "the database could not be brought to the present schema; make our user its owner";
        PostgresError::Unreached(DatabaseError::new(what, error))
    })
}

/// Begins a transaction that has the lock. A transaction holds it where a connection could not: behind a pooler.
async fn lock(client: &PgClient) -> Result<(), PostgresError> {
    loop {
        client.batch_execute("BEGIN").await?;
        let row = sql::row(client, "SELECT pg_try_advisory_xact_lock($1)", &[&LOCK]).await?;
        if row.try_get(0)? {
            return Ok(());
        }
        // Waiting takes no connection away from who has the lock.
        client.batch_execute("ROLLBACK").await?;
        time::sleep(LOCK_RETRY).await;
    }
}

async fn migrate(client: &mut PgClient) -> Result<(), refinery::Error> {
    let steps = MIGRATIONS.iter().map(|(name, sql)| Migration::unapplied(name, sql));
    let steps = steps.collect::<Result<Vec<_>, _>>()?;
    // Both dereferences lead to the connection itself, which is all that it knows.
    Runner::new(&steps).set_grouped(true).run_async(&mut **client).await.map(drop)
}

/// The oldest schema whose programs can work with a database; none where it does not say.
async fn floor(client: &PgClient) -> Result<Option<usize>, PostgresError> {
    let table = client.query_typed_one("SELECT to_regclass('schema_floor') IS NOT NULL", &[]).await?;
    if !table.try_get::<_, bool>(0)? {
        return Ok(None);
    }
    let row = client.query_typed_opt("SELECT version FROM schema_floor", &[]).await?;
    let version = row.map(|row| row.try_get::<_, i32>(0)).transpose()?;
    Ok(version.and_then(|version| usize::try_from(version).ok()))
}

/// The number of the last migration; zero for a database without any.
async fn schema_of(client: &PgClient) -> Result<usize, PostgresError> {
    let select = "SELECT to_regclass('refinery_schema_history') IS NOT NULL";
    let table = client.query_typed_one(select, &[]).await?;
    if !table.try_get::<_, bool>(0)? {
        return Ok(0);
    }
    let select = "SELECT coalesce(max(version), 0)::int FROM refinery_schema_history";
    let row = client.query_typed_one(select, &[]).await?;
    Ok(usize::try_from(row.try_get::<_, i32>(0)?).unwrap_or_default())
}
