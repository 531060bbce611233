//! Encrypted secrets of agents, and random seeds that all processes share.

use async_trait::async_trait;
use rialto_model::{
    credential::Secret,
    store::{SealedSecret, SecretStore, StoreError},
};

use super::{
    PostgresStore, begin,
    column::{Cells, nanoseconds},
    connection::GenericClient,
    error::PostgresError,
    sql,
};

#[async_trait]
impl SecretStore for PostgresStore {
    async fn secrets(&self) -> Result<Vec<SealedSecret>, StoreError> {
        Ok(all(&self.client().await?).await?)
    }

    async fn put_secrets(&self, secrets: Vec<SealedSecret>) -> Result<u64, StoreError> {
        let mut client = self.client().await?;
        let transaction = begin(&mut client).await?;
        put(&transaction, &secrets).await?;
        let made = self.commit_change(transaction).await?;
        self.spread(&client, Some(made)).await;
        Ok(made)
    }

    async fn remove_secret(&self, name: &str) -> Result<Option<u64>, StoreError> {
        let mut client = self.client().await?;
        let transaction = begin(&mut client).await?;
        let was_there = remove(&transaction, name).await?;
        let made = self.commit(transaction, was_there).await?;
        self.spread(&client, made).await;
        Ok(made)
    }

    async fn seed(&self, name: &str, fresh: &Secret) -> Result<Secret, StoreError> {
        Ok(seed(&self.client().await?, name, fresh).await?)
    }
}

/// Keeps these, in place of those with the same names.
pub(super) async fn put(client: &impl GenericClient, secrets: &[SealedSecret]) -> Result<(), PostgresError> {
    let put = "INSERT INTO secrets (name, key, text, set_at) VALUES ($1, $2, $3, $4)
        ON CONFLICT (name) DO UPDATE SET key = excluded.key, text = excluded.text, set_at = excluded.set_at";
    for secret in secrets {
        let values: [sql::Value<'_>; 4] =
            [&secret.name, &secret.key, &secret.text, &nanoseconds(secret.set_at)?];
        sql::execute(client, put, &values).await?;
    }
    Ok(())
}

/// Forgets one. Returns whether it was there.
pub(super) async fn remove(client: &impl GenericClient, name: &str) -> Result<bool, PostgresError> {
    Ok(sql::execute(client, "DELETE FROM secrets WHERE name = $1", &[&name]).await? > 0)
}

/// All of them, in the order of their names.
pub(super) async fn all(client: &impl GenericClient) -> Result<Vec<SealedSecret>, PostgresError> {
    let rows = sql::rows(client, "SELECT * FROM secrets ORDER BY name", &[]).await?;
    let secret = |row| {
        let row = Cells(row);
        Ok(SealedSecret {
            name: row.text("name")?,
            key: row.text("key")?,
            text: row.get("text")?,
            set_at: row.at("set_at")?,
        })
    };
    rows.iter().map(secret).collect()
}

/// The random text that is kept under a name; this one from now on, if there is none.
pub(super) async fn seed(
    client: &impl GenericClient,
    name: &str,
    fresh: &Secret,
) -> Result<Secret, PostgresError> {
    let keep = "INSERT INTO seeds (name, text) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING";
    sql::execute(client, keep, &[&name, &fresh.expose()]).await?;
    let row = sql::row(client, "SELECT text FROM seeds WHERE name = $1", &[&name]).await?;
    Cells(&row).text("text").map(Secret::from)
}
