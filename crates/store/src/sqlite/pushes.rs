//! Push notification configs with the state and lease of their delivery.

use async_trait::async_trait;
use rialto_model::{
    call::CallerId,
    card::Dialect,
    credential::Secret,
    ids::{Scope, TaskId, TokenId},
    push::{PushDeliveryState, PushLogin, PushSubscription},
    store::{PushConfigStore, StoreError},
    webhook::DeliveryLease,
};
use rusqlite::{
    Connection, Row, named_params, params,
    types::{FromSqlError, Type},
};

use super::{
    SqliteStore,
    column::{At, scope},
};
use crate::error::SqliteError;

#[async_trait]
impl PushConfigStore for SqliteStore {
    async fn put_push(&self, push: &PushSubscription) -> Result<(), StoreError> {
        // The task must be in the database before its config.
        self.flush_buffer().await?;
        let push = push.clone();
        self.transact(move |transaction| put(transaction, &push)).await
    }

    async fn pushes(&self, task: &TaskId) -> Result<Vec<PushSubscription>, StoreError> {
        let task = task.clone();
        self.read(move |connection| list_by_task(connection, &task)).await
    }

    async fn remove_push(&self, task: &TaskId, id: &str) -> Result<bool, StoreError> {
        let (task, id) = (task.clone(), id.to_owned());
        self.transact(move |transaction| remove(transaction, &task, &id)).await
    }

    async fn due_pushes(
        &self,
        lease: &DeliveryLease,
        limit: usize,
    ) -> Result<Vec<PushSubscription>, StoreError> {
        self.flush_buffer().await?;
        let lease = lease.clone();
        self.transact(move |transaction| lease_due(transaction, &lease, limit)).await
    }

    async fn record_push_delivery(&self, push: &PushSubscription, holder: &str) -> Result<bool, StoreError> {
        let (push, holder) = (push.clone(), holder.to_owned());
        self.transact(move |transaction| record_delivery(transaction, &push, &holder)).await
    }

    async fn push_tokens(&self) -> Result<Vec<TokenId>, StoreError> {
        self.read(tokens).await
    }

    async fn remove_pushes_with_token(&self, token: &TokenId) -> Result<u64, StoreError> {
        let token = token.clone();
        self.transact(move |transaction| remove_by_token(transaction, &token)).await
    }

    async fn dead_pushes(&self, scope: &Scope, limit: usize) -> Result<Vec<PushSubscription>, StoreError> {
        let scope = scope.clone();
        self.read(move |connection| list_dead(connection, &scope, limit)).await
    }
}

/// Adds one, or replaces the one with that name. It begins where the task stands when it is new.
pub(super) fn put(connection: &Connection, push: &PushSubscription) -> Result<(), SqliteError> {
    let login = push.login.as_ref();
    let schemes = login.map(|login| login.schemes.join(" "));
    let credentials = login.and_then(|login| login.credentials.as_ref()).map(Secret::expose);
    let extra = serde_json::to_string(&push.extra)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))?;
    let mut insert = connection.prepare_cached(
        "INSERT INTO push_configs (task, id, org, project, caller, created_with, url, token, schemes, credentials, dialect, extra,
             created_at, told, failures, dead)
         VALUES (:task, :id, :org, :project, :caller, :created_with, :url, :token, :schemes, :credentials, :dialect, :extra,
             :created_at, :told, 0, 0)
         ON CONFLICT (task, id) DO UPDATE SET created_with = excluded.created_with, url = excluded.url, token = excluded.token, schemes = excluded.schemes,
             credentials = excluded.credentials, dialect = excluded.dialect, extra = excluded.extra, failures = 0,
             next_attempt_at = NULL, last_error = NULL, dead = 0",
    )?;
    insert.execute(named_params! {
        ":task": push.task.as_str(),
        ":id": push.id,
        ":org": push.scope.org.as_str(),
        ":project": push.scope.project.as_str(),
        ":caller": push.caller.as_str(),
        ":created_with": push.created_with.as_ref().map(TokenId::as_str),
        ":url": push.url,
        ":token": push.token.as_ref().map(Secret::expose),
        ":schemes": schemes,
        ":credentials": credentials,
        ":dialect": push.dialect.as_str(),
        ":extra": extra,
        ":created_at": At(push.created_at),
        ":told": push.standing.told,
    })?;
    Ok(())
}

/// All of a task, in the order they were asked for.
pub(super) fn list_by_task(
    connection: &Connection,
    task: &TaskId,
) -> Result<Vec<PushSubscription>, SqliteError> {
    let mut select =
        connection.prepare_cached("SELECT * FROM push_configs WHERE task = ?1 ORDER BY created_at, id")?;
    let pushes = select.query_map([task.as_str()], push)?.collect::<Result<_, _>>()?;
    Ok(pushes)
}

/// Removes one. Returns whether it was there.
pub(super) fn remove(connection: &Connection, task: &TaskId, id: &str) -> Result<bool, SqliteError> {
    let mut delete = connection.prepare_cached("DELETE FROM push_configs WHERE task = ?1 AND id = ?2")?;
    Ok(delete.execute([task.as_str(), id])? > 0)
}

/// The access tokens that configs were set with, each once.
pub(super) fn tokens(connection: &Connection) -> Result<Vec<TokenId>, SqliteError> {
    let mut select = connection.prepare_cached(
        "SELECT DISTINCT created_with FROM push_configs WHERE created_with IS NOT NULL ORDER BY created_with",
    )?;
    let tokens = select.query_map([], |row| Ok(TokenId::from(row.get::<_, String>(0)?)))?;
    Ok(tokens.collect::<Result<_, _>>()?)
}

/// Removes the configs that were set with an access token.
pub(super) fn remove_by_token(connection: &Connection, token: &TokenId) -> Result<u64, SqliteError> {
    let mut delete = connection.prepare_cached("DELETE FROM push_configs WHERE created_with = ?1")?;
    Ok(u64::try_from(delete.execute([token.as_str()])?).unwrap_or(u64::MAX))
}

/// Leases configs with a due delivery.
pub(super) fn lease_due(
    connection: &Connection,
    lease: &DeliveryLease,
    limit: usize,
) -> Result<Vec<PushSubscription>, SqliteError> {
    let mut select = connection.prepare_cached(
        "SELECT p.* FROM push_configs p JOIN tasks t ON t.id = p.task
         WHERE p.dead = 0 AND p.told < t.version AND coalesce(p.next_attempt_at, 0) <= :now
             AND (p.holder IS NULL OR p.holder = :holder OR p.held_until <= :now)
         ORDER BY p.created_at LIMIT :limit",
    )?;
    let values = named_params! { ":now": At(lease.now), ":holder": lease.holder, ":limit": limit };
    let pushes: Vec<PushSubscription> = select.query_map(values, push)?.collect::<Result<_, _>>()?;
    let mut update = connection
        .prepare_cached("UPDATE push_configs SET holder = ?3, held_until = ?4 WHERE task = ?1 AND id = ?2")?;
    for push in &pushes {
        update.execute(params![push.task.as_str(), push.id, lease.holder, At(lease.until)])?;
    }
    Ok(pushes)
}

/// Stores the state of a delivery and releases the lease, if `holder` still has it.
pub(super) fn record_delivery(
    connection: &Connection,
    push: &PushSubscription,
    holder: &str,
) -> Result<bool, SqliteError> {
    let mut update = connection.prepare_cached(
        "UPDATE push_configs SET told = :told, failures = :failures, next_attempt_at = :next_attempt_at,
             last_error = :last_error, dead = :dead, holder = NULL, held_until = NULL
         WHERE task = :task AND id = :id AND holder = :holder",
    )?;
    let standing = &push.standing;
    let changed = update.execute(named_params! {
        ":task": push.task.as_str(),
        ":id": push.id,
        ":holder": holder,
        ":told": standing.told,
        ":failures": standing.failures,
        ":next_attempt_at": standing.next_attempt_at.map(At),
        ":last_error": standing.last_error,
        ":dead": standing.is_dead,
    })?;
    Ok(changed > 0)
}

/// Configs whose delivery was given up, the newest first.
pub(super) fn list_dead(
    connection: &Connection,
    of: &Scope,
    limit: usize,
) -> Result<Vec<PushSubscription>, SqliteError> {
    let mut select = connection.prepare_cached(
        "SELECT * FROM push_configs WHERE dead = 1 AND org = ?1 AND project = ?2 ORDER BY created_at DESC LIMIT ?3",
    )?;
    let values = params![of.org.as_str(), of.project.as_str(), limit];
    let pushes = select.query_map(values, push)?.collect::<Result<_, _>>()?;
    Ok(pushes)
}

/// Forgets those whose tasks are gone.
pub(super) fn sweep(connection: &Connection) -> Result<(), SqliteError> {
    connection.execute(
        "DELETE FROM push_configs WHERE NOT EXISTS (SELECT 1 FROM tasks WHERE tasks.id = push_configs.task)",
        [],
    )?;
    Ok(())
}

fn push(row: &Row<'_>) -> rusqlite::Result<PushSubscription> {
    let schemes: Option<String> = row.get("schemes")?;
    let credentials: Option<String> = row.get("credentials")?;
    let unreadable = |error: serde_json::Error| {
        rusqlite::Error::FromSqlConversionFailure(0, Type::Text, Box::new(FromSqlError::other(error)))
    };
    let dialect = format!("\"{}\"", row.get::<_, String>("dialect")?);
    Ok(PushSubscription {
        task: TaskId::from(row.get::<_, String>("task")?),
        id: row.get("id")?,
        scope: scope(row)?,
        caller: CallerId::from(row.get::<_, String>("caller")?),
        created_with: row.get::<_, Option<String>>("created_with")?.map(TokenId::from),
        url: row.get("url")?,
        token: row.get::<_, Option<String>>("token")?.map(Secret::from),
        login: schemes.map(|schemes| PushLogin {
            schemes: schemes.split_whitespace().map(str::to_owned).collect(),
            credentials: credentials.map(Secret::from),
        }),
        dialect: serde_json::from_str::<Dialect>(&dialect).map_err(unreadable)?,
        extra: serde_json::from_str(&row.get::<_, String>("extra")?).map_err(unreadable)?,
        created_at: row.get::<_, At>("created_at")?.0,
        standing: PushDeliveryState {
            told: row.get("told")?,
            failures: row.get("failures")?,
            next_attempt_at: row.get::<_, Option<At>>("next_attempt_at")?.map(|at| at.0),
            last_error: row.get("last_error")?,
            is_dead: row.get("dead")?,
        },
    })
}
