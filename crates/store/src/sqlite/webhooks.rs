//! Webhooks with the state and lease of their delivery.

use async_trait::async_trait;
use rialto_model::{
    audit_event::AuditPhase,
    credential::SecretSource,
    ids::OrgId,
    store::{StoreError, WebhookStore},
    webhook::{DeliveryLease, DeliveryState, LeaseOutcome, Webhook},
};
use rusqlite::{
    Connection, OptionalExtension, Row, named_params, params,
    types::{FromSqlError, Type},
};

use super::{
    SqliteStore, audit,
    column::{At, taken},
    meta,
};
use crate::error::SqliteError;

#[async_trait]
impl WebhookStore for SqliteStore {
    async fn webhooks(&self) -> Result<Vec<Webhook>, StoreError> {
        self.read(all).await
    }

    async fn put_webhook(&self, webhook: &Webhook) -> Result<u64, StoreError> {
        // What was acknowledged before is not news to it.
        self.flush_buffer().await?;
        let webhook = webhook.clone();
        let made = self.transact_change(move |transaction| add(transaction, &webhook).map(Some));
        Ok(made.await?.unwrap_or_else(|| self.generation.get()))
    }

    async fn remove_webhook(&self, id: &str) -> Result<Option<u64>, StoreError> {
        let id = id.to_owned();
        self.transact_change(move |transaction| remove(transaction, &id)).await
    }

    async fn retry_webhook(&self, id: &str) -> Result<Option<u64>, StoreError> {
        let id = id.to_owned();
        self.transact_change(move |transaction| retry(transaction, &id)).await
    }

    async fn lease_webhook(&self, id: &str, lease: &DeliveryLease) -> Result<LeaseOutcome, StoreError> {
        let (id, lease) = (id.to_owned(), lease.clone());
        self.transact(move |transaction| take_lease(transaction, &id, &lease)).await
    }

    async fn record_webhook_delivery(
        &self,
        id: &str,
        holder: &str,
        standing: &DeliveryState,
    ) -> Result<bool, StoreError> {
        let (id, holder, standing) = (id.to_owned(), holder.to_owned(), standing.clone());
        self.transact(move |transaction| record_delivery(transaction, &id, &holder, &standing)).await
    }
}

/// All of them, in the order they were added.
pub(super) fn all(connection: &Connection) -> Result<Vec<Webhook>, SqliteError> {
    let mut select = connection.prepare_cached("SELECT * FROM webhooks ORDER BY created_at, id")?;
    let webhooks = select.query_map([], webhook)?.collect::<Result<_, _>>()?;
    Ok(webhooks)
}

/// Adds a webhook that starts behind the last audit record. Answers the generation that this makes.
pub(super) fn add(connection: &Connection, webhook: &Webhook) -> Result<u64, SqliteError> {
    let phases: Vec<&str> = webhook.phases.iter().map(|phase| phase.as_str()).collect();
    let secret = serde_json::to_string(&webhook.secret)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))?;
    let mut insert = connection.prepare_cached(
        "INSERT INTO webhooks (id, org, url, phases, secret, allow_private, created_at, handled, delivered, lost, failures)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 0, 0, 0)",
    )?;
    let inserted = insert.execute(params![
        webhook.id,
        webhook.org.as_str(),
        webhook.url,
        phases.join(" "),
        secret,
        webhook.allow_private,
        At(webhook.created_at),
        audit::end(connection)?,
    ]);
    match inserted {
        Ok(_) => Ok(meta::next_generation(connection)?),
        Err(error) if taken(&error, "webhooks.id") => {
            Err(StoreError::Taken(format!("the webhook name {}", webhook.id)).into())
        }
        Err(error) => Err(error.into()),
    }
}

/// Removes one. Answers the generation that this makes, if it was there.
pub(super) fn remove(connection: &Connection, id: &str) -> Result<Option<u64>, SqliteError> {
    counted(connection, connection.execute("DELETE FROM webhooks WHERE id = ?1", [id])?)
}

/// Forgets what keeps one from being tried now. Answers the generation that this makes, if it is there.
pub(super) fn retry(connection: &Connection, id: &str) -> Result<Option<u64>, SqliteError> {
    let sql = "UPDATE webhooks SET failures = 0, next_attempt_at = NULL, disabled = NULL WHERE id = ?1";
    counted(connection, connection.execute(sql, [id])?)
}

/// Acquires or renews a lease, unless another process has it.
fn take_lease(connection: &Connection, id: &str, lease: &DeliveryLease) -> Result<LeaseOutcome, SqliteError> {
    let mut select = connection.prepare_cached("SELECT * FROM webhooks WHERE id = ?1")?;
    let found = select.query_row([id], |row| Ok((webhook(row)?, is_held(row, lease)?))).optional()?;
    match found {
        None => Ok(LeaseOutcome::Gone),
        Some((_, true)) => Ok(LeaseOutcome::Others),
        Some((webhook, false)) => {
            let mut update = connection
                .prepare_cached("UPDATE webhooks SET holder = ?2, held_until = ?3 WHERE id = ?1")?;
            update.execute(params![id, lease.holder, At(lease.until)])?;
            Ok(LeaseOutcome::Ours(Box::new(webhook)))
        }
    }
}

/// Stores the delivery state, if `holder` still has the lease.
pub(super) fn record_delivery(
    connection: &Connection,
    id: &str,
    holder: &str,
    standing: &DeliveryState,
) -> Result<bool, SqliteError> {
    let mut update = connection.prepare_cached(
        "UPDATE webhooks SET handled = :handled, delivered = :delivered, lost = :lost, failures = :failures,
             next_attempt_at = :next_attempt_at, last_error = :last_error, disabled = :disabled
         WHERE id = :id AND holder = :holder",
    )?;
    let changed = update.execute(named_params! {
        ":id": id,
        ":holder": holder,
        ":handled": standing.handled,
        ":delivered": standing.delivered,
        ":lost": standing.lost,
        ":failures": standing.failures,
        ":next_attempt_at": standing.next_attempt_at.map(At),
        ":last_error": standing.last_error,
        ":disabled": standing.disabled,
    })?;
    Ok(changed > 0)
}

fn counted(connection: &Connection, changed: usize) -> Result<Option<u64>, SqliteError> {
    Ok(if changed > 0 { Some(meta::next_generation(connection)?) } else { None })
}

fn is_held(row: &Row<'_>, lease: &DeliveryLease) -> rusqlite::Result<bool> {
    let holder: Option<String> = row.get("holder")?;
    let until = row.get::<_, Option<At>>("held_until")?;
    let is_other = holder.is_some_and(|holder| holder != lease.holder);
    Ok(is_other && until.is_some_and(|until| until.0 > lease.now))
}

fn webhook(row: &Row<'_>) -> rusqlite::Result<Webhook> {
    let phases: String = row.get("phases")?;
    Ok(Webhook {
        id: row.get("id")?,
        org: OrgId::from(row.get::<_, String>("org")?),
        url: row.get("url")?,
        phases: phases.split(' ').filter_map(AuditPhase::parse).collect(),
        secret: secret(row)?,
        allow_private: row.get("allow_private")?,
        created_at: row.get::<_, At>("created_at")?.0,
        standing: DeliveryState {
            handled: row.get("handled")?,
            delivered: row.get("delivered")?,
            lost: row.get("lost")?,
            failures: row.get("failures")?,
            next_attempt_at: row.get::<_, Option<At>>("next_attempt_at")?.map(|at| at.0),
            last_error: row.get("last_error")?,
            disabled: row.get("disabled")?,
        },
    })
}

fn secret(row: &Row<'_>) -> rusqlite::Result<SecretSource> {
    let text: String = row.get("secret")?;
    serde_json::from_str(&text).map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(0, Type::Text, Box::new(FromSqlError::other(error)))
    })
}
