//! Push notification configs with the state and lease of their delivery.

use async_trait::async_trait;
use rialto_model::{
    call::CallerId,
    credential::Secret,
    ids::{Scope, TaskId, TokenId},
    push::{PushDeliveryState, PushLogin, PushSubscription},
    store::{PushConfigStore, StoreError},
    webhook::DeliveryLease,
};
use tokio_postgres::Row;

use super::{
    PostgresStore,
    column::{Cells, json, limit, maybe_nanoseconds, nanoseconds, signed, word},
    connection::GenericClient,
    error::PostgresError,
    sql::{self, Value},
};

#[async_trait]
impl PushConfigStore for PostgresStore {
    async fn put_push(&self, push: &PushSubscription) -> Result<(), StoreError> {
        Ok(put(&self.client().await?, push).await?)
    }

    async fn pushes(&self, task: &TaskId) -> Result<Vec<PushSubscription>, StoreError> {
        Ok(list_by_task(&self.client().await?, task).await?)
    }

    async fn remove_push(&self, task: &TaskId, id: &str) -> Result<bool, StoreError> {
        Ok(remove(&self.client().await?, task, id).await?)
    }

    async fn due_pushes(
        &self,
        lease: &DeliveryLease,
        limit: usize,
    ) -> Result<Vec<PushSubscription>, StoreError> {
        Ok(lease_due(&self.client().await?, lease, limit).await?)
    }

    async fn record_push_delivery(&self, push: &PushSubscription, holder: &str) -> Result<bool, StoreError> {
        Ok(record_delivery(&self.client().await?, push, holder).await?)
    }

    async fn push_tokens(&self) -> Result<Vec<TokenId>, StoreError> {
        Ok(tokens(&self.client().await?).await?)
    }

    async fn remove_pushes_with_token(&self, token: &TokenId) -> Result<u64, StoreError> {
        Ok(remove_by_token(&self.client().await?, token).await?)
    }

    async fn dead_pushes(&self, scope: &Scope, limit: usize) -> Result<Vec<PushSubscription>, StoreError> {
        Ok(list_dead(&self.client().await?, scope, limit).await?)
    }
}

/// Adds one, or replaces the one with that name. It begins where the task stands when it is new.
pub(super) async fn put(client: &impl GenericClient, push: &PushSubscription) -> Result<(), PostgresError> {
    let login = push.login.as_ref();
    let schemes = login.map(|login| login.schemes.join(" "));
    let credentials = login.and_then(|login| login.credentials.as_ref()).map(Secret::expose);
    let insert = "
        INSERT INTO push_configs (task, id, org, project, caller, url, token, schemes, credentials, dialect, extra,
            created_at, told, created_with, failures, dead)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, 0, FALSE)
        ON CONFLICT (task, id) DO UPDATE SET created_with = excluded.created_with, url = excluded.url, token = excluded.token, schemes = excluded.schemes,
            credentials = excluded.credentials, dialect = excluded.dialect, extra = excluded.extra, failures = 0,
            next_attempt_at = NULL, last_error = NULL, dead = FALSE";
    let values: [Value<'_>; 14] = [
        &push.task.as_str(),
        &push.id,
        &push.scope.org.as_str(),
        &push.scope.project.as_str(),
        &push.caller.as_str(),
        &push.url,
        &push.token.as_ref().map(Secret::expose),
        &schemes,
        &credentials,
        &word(&push.dialect)?,
        &json(&push.extra)?,
        &nanoseconds(push.created_at)?,
        &signed(push.standing.told),
        &push.created_with.as_ref().map(TokenId::as_str),
    ];
    sql::execute(client, insert, &values).await.map(drop)
}

/// All of a task, in the order they were asked for.
pub(super) async fn list_by_task(
    client: &impl GenericClient,
    task: &TaskId,
) -> Result<Vec<PushSubscription>, PostgresError> {
    let select = "SELECT * FROM push_configs WHERE task = $1 ORDER BY created_at, id";
    sql::rows(client, select, &[&task.as_str()]).await?.iter().map(push).collect()
}

/// Removes one. Returns whether it was there.
pub(super) async fn remove(
    client: &impl GenericClient,
    task: &TaskId,
    id: &str,
) -> Result<bool, PostgresError> {
    let delete = "DELETE FROM push_configs WHERE task = $1 AND id = $2";
    Ok(sql::execute(client, delete, &[&task.as_str(), &id]).await? > 0)
}

/// The access tokens that configs were set with, each once.
pub(super) async fn tokens(client: &impl GenericClient) -> Result<Vec<TokenId>, PostgresError> {
    let select =
        "SELECT DISTINCT created_with FROM push_configs WHERE created_with IS NOT NULL ORDER BY created_with";
    let rows = sql::rows(client, select, &[]).await?;
    rows.iter().map(|row| Ok(TokenId::from(Cells(row).text("created_with")?))).collect()
}

/// Removes the configs that were set with an access token.
pub(super) async fn remove_by_token(
    client: &impl GenericClient,
    token: &TokenId,
) -> Result<u64, PostgresError> {
    sql::execute(client, "DELETE FROM push_configs WHERE created_with = $1", &[&token.as_str()]).await
}

/// Leases configs with a due delivery. Rows that another process is leasing are skipped,
/// them.
pub(super) async fn lease_due(
    client: &impl GenericClient,
    lease: &DeliveryLease,
    most: usize,
) -> Result<Vec<PushSubscription>, PostgresError> {
    let take = "
        WITH due AS (
            SELECT p.task, p.id FROM push_configs p JOIN tasks t ON t.id = p.task
            WHERE NOT p.dead AND p.told < t.version AND coalesce(p.next_attempt_at, 0) <= $1
                AND (p.holder IS NULL OR p.holder = $2 OR p.held_until <= $1)
            ORDER BY p.created_at LIMIT $4 FOR UPDATE OF p SKIP LOCKED
        ), taken AS (
            UPDATE push_configs p SET holder = $2, held_until = $3 FROM due
            WHERE p.task = due.task AND p.id = due.id RETURNING p.*
        )
        SELECT * FROM taken ORDER BY created_at, task, id";
    let values: [Value<'_>; 4] =
        [&nanoseconds(lease.now)?, &lease.holder, &nanoseconds(lease.until)?, &limit(most)];
    sql::rows(client, take, &values).await?.iter().map(push).collect()
}

/// Stores the state of a delivery and releases the lease, if `holder` still has it.
pub(super) async fn record_delivery(
    client: &impl GenericClient,
    push: &PushSubscription,
    holder: &str,
) -> Result<bool, PostgresError> {
    let update = "
        UPDATE push_configs SET told = $4, failures = $5, next_attempt_at = $6, last_error = $7, dead = $8,
            holder = NULL, held_until = NULL
        WHERE task = $1 AND id = $2 AND holder = $3";
    let standing = &push.standing;
    let values: [Value<'_>; 8] = [
        &push.task.as_str(),
        &push.id,
        &holder,
        &signed(standing.told),
        &i64::from(standing.failures),
        &maybe_nanoseconds(standing.next_attempt_at)?,
        &standing.last_error,
        &standing.is_dead,
    ];
    Ok(sql::execute(client, update, &values).await? > 0)
}

/// Configs whose delivery was given up, the newest first.
pub(super) async fn list_dead(
    client: &impl GenericClient,
    of: &Scope,
    most: usize,
) -> Result<Vec<PushSubscription>, PostgresError> {
    let select = "
        SELECT * FROM push_configs WHERE dead AND org = $1 AND project = $2 ORDER BY created_at DESC LIMIT $3";
    let values: [Value<'_>; 3] = [&of.org.as_str(), &of.project.as_str(), &limit(most)];
    sql::rows(client, select, &values).await?.iter().map(push).collect()
}

/// Forgets those whose tasks are gone.
pub(super) async fn sweep(client: &impl GenericClient) -> Result<(), PostgresError> {
    let delete =
        "DELETE FROM push_configs WHERE NOT EXISTS (SELECT FROM tasks WHERE tasks.id = push_configs.task)";
    sql::execute(client, delete, &[]).await.map(drop)
}

fn push(row: &Row) -> Result<PushSubscription, PostgresError> {
    let row = Cells(row);
    let credentials: Option<String> = row.get("credentials")?;
    Ok(PushSubscription {
        task: TaskId::from(row.text("task")?),
        id: row.text("id")?,
        scope: row.scope()?,
        caller: CallerId::from(row.text("caller")?),
        created_with: row.get::<Option<String>>("created_with")?.map(TokenId::from),
        url: row.text("url")?,
        token: row.get::<Option<String>>("token")?.map(Secret::from),
        login: row.get::<Option<String>>("schemes")?.map(|schemes| PushLogin {
            schemes: schemes.split_whitespace().map(str::to_owned).collect(),
            credentials: credentials.map(Secret::from),
        }),
        dialect: row.word("dialect")?,
        extra: row.json("extra")?,
        created_at: row.at("created_at")?,
        standing: PushDeliveryState {
            told: row.number("told")?,
            failures: u32::try_from(row.number("failures")?).unwrap_or(u32::MAX),
            next_attempt_at: row.maybe_at("next_attempt_at")?,
            last_error: row.get("last_error")?,
            is_dead: row.get("dead")?,
        },
    })
}
