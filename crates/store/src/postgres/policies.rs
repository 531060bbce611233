//! Policies that are kept in the store.

use async_trait::async_trait;
use rialto_model::{
    policy::{MAX_POLICY_VERSIONS, PolicyChange, PolicySet, RecordedPolicyChange, StoredPolicy},
    store::{PolicySourceStore, StoreError},
};

use super::{
    PostgresStore, begin,
    column::{Cells, limit, nanoseconds, signed},
    connection::GenericClient,
    error::PostgresError,
    sql::{self, Value},
};

#[async_trait]
impl PolicySourceStore for PostgresStore {
    async fn policies(&self) -> Result<PolicySet, StoreError> {
        Ok(all(&self.client().await?).await?)
    }

    async fn change_policy(&self, change: &PolicyChange, expected: u64) -> Result<u64, StoreError> {
        let mut client = self.client().await?;
        let transaction = begin(&mut client).await?;
        write_change(&transaction, change, expected).await?;
        let made = self.commit_change(transaction).await?;
        self.spread(&client, Some(made)).await;
        Ok(made)
    }

    async fn policy_history(&self, name: &str) -> Result<Vec<RecordedPolicyChange>, StoreError> {
        Ok(history(&self.client().await?, name).await?)
    }
}

/// Active policies. One statement reads both at one moment.
pub(super) async fn all(client: &impl GenericClient) -> Result<PolicySet, PostgresError> {
    let select = "
        SELECT DISTINCT ON (name) name, text, (SELECT max(version) FROM policy_changes) AS last
        FROM policy_changes ORDER BY name, version DESC";
    let rows = sql::rows(client, select, &[]).await?;
    let mut set = PolicySet::default();
    for row in rows.iter().map(Cells) {
        set.version = row.number("last")?;
        if let Some(text) = row.get("text")? {
            set.policies.push(StoredPolicy { name: row.text("name")?, text });
        }
    }
    Ok(set)
}

/// Makes a change, if no other has been made since `expected`.
async fn write_change(
    client: &impl GenericClient,
    change: &PolicyChange,
    expected: u64,
) -> Result<(), PostgresError> {
    // Other writers wait here; readers do not.
    sql::execute(client, "LOCK TABLE policy_changes IN SHARE ROW EXCLUSIVE MODE", &[]).await?;
    let last = sql::row(client, "SELECT coalesce(max(version), 0) AS last FROM policy_changes", &[]).await?;
    if Cells(&last).number("last")? != expected {
        return Err(StoreError::Conflict.into());
    }
    let insert = "INSERT INTO policy_changes (version, name, text, at, by) VALUES ($1, $2, $3, $4, $5)";
    let values: [Value<'_>; 5] =
        [&signed(expected + 1), &change.name, &change.text, &nanoseconds(change.at)?, &change.by];
    sql::execute(client, insert, &values).await?;
    let trim = "DELETE FROM policy_changes WHERE name = $1 AND version <=
        (SELECT version FROM policy_changes WHERE name = $1 ORDER BY version DESC LIMIT 1 OFFSET $2)";
    sql::execute(client, trim, &[&change.name, &limit(MAX_POLICY_VERSIONS)]).await.map(drop)
}

/// The changes of one, newest first.
pub(super) async fn history(
    client: &impl GenericClient,
    name: &str,
) -> Result<Vec<RecordedPolicyChange>, PostgresError> {
    let select = "SELECT * FROM policy_changes WHERE name = $1 ORDER BY version DESC";
    let rows = sql::rows(client, select, &[&name]).await?;
    let version = |row| {
        let row = Cells(row);
        let change = PolicyChange {
            name: row.text("name")?,
            text: row.get("text")?,
            at: row.at("at")?,
            by: row.text("by")?,
        };
        Ok(RecordedPolicyChange { version: row.number("version")?, change })
    };
    rows.iter().map(version).collect()
}
