//! Webhooks with the state and lease of their delivery.

use async_trait::async_trait;
use rialto_model::{
    audit_event::AuditPhase,
    ids::OrgId,
    store::{StoreError, WebhookStore},
    webhook::{DeliveryLease, DeliveryState, LeaseOutcome, Webhook},
};

use super::{
    PostgresStore, audit, begin,
    column::{Cells, json, maybe_nanoseconds, nanoseconds, signed},
    connection::GenericClient,
    error::PostgresError,
    sql::{self, Value},
};

#[async_trait]
impl WebhookStore for PostgresStore {
    async fn webhooks(&self) -> Result<Vec<Webhook>, StoreError> {
        Ok(all(&self.client().await?).await?)
    }

    async fn put_webhook(&self, webhook: &Webhook) -> Result<u64, StoreError> {
        let mut client = self.client().await?;
        let transaction = begin(&mut client).await?;
        add(&transaction, webhook).await?;
        self.commit_change(transaction).await
    }

    async fn remove_webhook(&self, id: &str) -> Result<Option<u64>, StoreError> {
        let mut client = self.client().await?;
        let transaction = begin(&mut client).await?;
        let was_there = remove(&transaction, id).await?;
        self.commit(transaction, was_there).await
    }

    async fn retry_webhook(&self, id: &str) -> Result<Option<u64>, StoreError> {
        let mut client = self.client().await?;
        let transaction = begin(&mut client).await?;
        let is_there = retry(&transaction, id).await?;
        self.commit(transaction, is_there).await
    }

    async fn lease_webhook(&self, id: &str, lease: &DeliveryLease) -> Result<LeaseOutcome, StoreError> {
        Ok(take_lease(&self.client().await?, id, lease).await?)
    }

    async fn record_webhook_delivery(
        &self,
        id: &str,
        holder: &str,
        standing: &DeliveryState,
    ) -> Result<bool, StoreError> {
        Ok(record_delivery(&self.client().await?, id, holder, standing).await?)
    }
}

/// All of them, in the order they were added.
pub(super) async fn all(client: &impl GenericClient) -> Result<Vec<Webhook>, PostgresError> {
    let rows = sql::rows(client, "SELECT * FROM webhooks ORDER BY created_at, id", &[]).await?;
    rows.iter().map(|row| webhook(Cells(row))).collect()
}

/// Adds a webhook that starts behind the last audit record.
pub(super) async fn add(client: &impl GenericClient, webhook: &Webhook) -> Result<(), PostgresError> {
    let phases: Vec<&str> = webhook.phases.iter().map(|phase| phase.as_str()).collect();
    let insert = "
        INSERT INTO webhooks (id, org, url, phases, secret, allow_private, created_at, handled, delivered, lost, failures)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 0, 0, 0)";
    let values: [Value<'_>; 8] = [
        &webhook.id,
        &webhook.org.as_str(),
        &webhook.url,
        &phases.join(" "),
        &json(&webhook.secret)?,
        &webhook.allow_private,
        &nanoseconds(webhook.created_at)?,
        &signed(audit::end(client).await?),
    ];
    let inserted = sql::execute(client, insert, &values).await.map(drop);
    inserted.map_err(|failure| failure.or_taken("webhook_id", || format!("the webhook name {}", webhook.id)))
}

/// Removes one. Returns whether it was there.
pub(super) async fn remove(client: &impl GenericClient, id: &str) -> Result<bool, PostgresError> {
    Ok(sql::execute(client, "DELETE FROM webhooks WHERE id = $1", &[&id]).await? > 0)
}

/// Forgets what keeps one from being tried now. Returns whether it is there.
pub(super) async fn retry(client: &impl GenericClient, id: &str) -> Result<bool, PostgresError> {
    let update = "UPDATE webhooks SET failures = 0, next_attempt_at = NULL, disabled = NULL WHERE id = $1";
    Ok(sql::execute(client, update, &[&id]).await? > 0)
}

/// Acquires or renews a lease, unless another process has it. One statement: of two who want it at the same
/// moment, the second waits for the first and then sees that it is taken.
async fn take_lease(
    client: &impl GenericClient,
    id: &str,
    lease: &DeliveryLease,
) -> Result<LeaseOutcome, PostgresError> {
    let take = "
        UPDATE webhooks SET holder = $2, held_until = $3
        WHERE id = $1 AND (holder IS NULL OR holder = $2 OR held_until IS NULL OR held_until <= $4)
        RETURNING *";
    let values: [Value<'_>; 4] = [&id, &lease.holder, &nanoseconds(lease.until)?, &nanoseconds(lease.now)?];
    if let Some(row) = sql::maybe_row(client, take, &values).await? {
        return Ok(LeaseOutcome::Ours(Box::new(webhook(Cells(&row))?)));
    }
    let found = sql::maybe_row(client, "SELECT id FROM webhooks WHERE id = $1", &[&id]).await?;
    Ok(if found.is_some() { LeaseOutcome::Others } else { LeaseOutcome::Gone })
}

/// Stores the delivery state, if `holder` still has the lease.
pub(super) async fn record_delivery(
    client: &impl GenericClient,
    id: &str,
    holder: &str,
    standing: &DeliveryState,
) -> Result<bool, PostgresError> {
    let update = "
        UPDATE webhooks SET handled = $3, delivered = $4, lost = $5, failures = $6, next_attempt_at = $7,
            last_error = $8, disabled = $9
        WHERE id = $1 AND holder = $2";
    let values: [Value<'_>; 9] = [
        &id,
        &holder,
        &signed(standing.handled),
        &signed(standing.delivered),
        &signed(standing.lost),
        &i64::from(standing.failures),
        &maybe_nanoseconds(standing.next_attempt_at)?,
        &standing.last_error,
        &standing.disabled,
    ];
    Ok(sql::execute(client, update, &values).await? > 0)
}

fn webhook(row: Cells<'_>) -> Result<Webhook, PostgresError> {
    Ok(Webhook {
        id: row.text("id")?,
        org: OrgId::from(row.text("org")?),
        url: row.text("url")?,
        phases: row.text("phases")?.split(' ').filter_map(AuditPhase::parse).collect(),
        secret: row.json("secret")?,
        allow_private: row.get("allow_private")?,
        created_at: row.at("created_at")?,
        standing: DeliveryState {
            handled: row.number("handled")?,
            delivered: row.number("delivered")?,
            lost: row.number("lost")?,
            failures: u32::try_from(row.number("failures")?).unwrap_or(u32::MAX),
            next_attempt_at: row.maybe_at("next_attempt_at")?,
            last_error: row.get("last_error")?,
            disabled: row.get("disabled")?,
        },
    })
}
