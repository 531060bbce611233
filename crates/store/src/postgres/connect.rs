//! Connections, and the schema they find.
//!
//! Several processes may open one database at the same moment, the very first included. Whoever changes the schema holds
//! a lock in the database meanwhile, so that one of them does it and the others find it done.

use std::time::Duration;

use deadpool_postgres::{Hook, HookError, Manager, ManagerConfig, Pool, RecyclingMethod, Runtime};
use refinery::{Migration, Runner};
use rialto_model::store::StoreError;
use tokio_postgres::{Client, Config as Target};

use super::{snag::Snag, tls::Tls};
use crate::{
    config::{Config, Durability},
    fault::Fault,
};

/// The steps to the schema that this program knows, from nothing.
const MIGRATIONS: [(&str, &str); 12] = [
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
];

/// The number of that schema.
const SCHEMA: usize = 12;

/// Whoever holds this lock changes the schema.
const LOCK: i64 = 0x0052_4941_4c54_4f00;

/// How long somebody waits for a connection that others use.
const PATIENCE: Duration = Duration::from_secs(10);

/// So many connections.
pub(super) fn pool(
    target: Target,
    tls: Tls,
    config: &Config,
    connections: usize,
) -> Result<Pool, StoreError> {
    let manager = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    let builder = Pool::builder(Manager::from_config(target, tls, manager))
        .max_size(connections)
        .wait_timeout(Some(PATIENCE))
        .create_timeout(Some(PATIENCE))
        .runtime(Runtime::Tokio1);
    let builder = match config.durability {
        Durability::Normal => builder,
        Durability::Full => builder.post_create(Hook::async_fn(|client, _| {
            Box::pin(async move {
                client.batch_execute("SET synchronous_commit = on").await.map_err(HookError::Backend)
            })
        })),
    };
    builder.build().map_err(|error| Fault::new("connections could not be set up", error).into())
}

/// Brings the database to the present schema, if it has an older one or none.
pub(super) async fn prepare(client: &mut Client) -> Result<(), Snag> {
    match schema_of(client).await? {
        SCHEMA => return Ok(()),
        // Its changes are such that this program still works with it.
        newer if newer > SCHEMA && floor(client).await?.is_some_and(|floor| floor <= SCHEMA) => return Ok(()),
        newer if newer > SCHEMA => {
            let what = "the database was last written by a newer rialto; update this program";
            return Err(Snag::Unreached(Fault::plain(what)));
        }
        _ => {}
    }
    client.execute("SELECT pg_advisory_lock($1)", &[&LOCK]).await?;
    let migrated = migrate(client).await;
    client.execute("SELECT pg_advisory_unlock($1)", &[&LOCK]).await?;
    migrated.map_err(|error| {
        let what = "the database could not be brought to the present schema; make our user its owner";
        Snag::Unreached(Fault::new(what, error))
    })
}

async fn migrate(client: &mut Client) -> Result<(), refinery::Error> {
    let steps = MIGRATIONS.iter().map(|(name, sql)| Migration::unapplied(name, sql));
    let steps = steps.collect::<Result<Vec<_>, _>>()?;
    Runner::new(&steps).set_grouped(true).run_async(client).await.map(drop)
}

/// The oldest schema whose programs can work with a database; none where it does not say.
async fn floor(client: &Client) -> Result<Option<usize>, Snag> {
    let table = client.query_one("SELECT to_regclass('schema_floor') IS NOT NULL", &[]).await?;
    if !table.try_get::<_, bool>(0)? {
        return Ok(None);
    }
    let row = client.query_opt("SELECT version FROM schema_floor", &[]).await?;
    let version = row.map(|row| row.try_get::<_, i32>(0)).transpose()?;
    Ok(version.and_then(|version| usize::try_from(version).ok()))
}

/// The number of the last migration; zero for a database without any.
async fn schema_of(client: &Client) -> Result<usize, Snag> {
    let table = client.query_one("SELECT to_regclass('refinery_schema_history') IS NOT NULL", &[]).await?;
    if !table.try_get::<_, bool>(0)? {
        return Ok(0);
    }
    let row =
        client.query_one("SELECT coalesce(max(version), 0)::int FROM refinery_schema_history", &[]).await?;
    Ok(usize::try_from(row.try_get::<_, i32>(0)?).unwrap_or_default())
}
