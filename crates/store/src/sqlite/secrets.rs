//! Encrypted secrets of agents.

use async_trait::async_trait;
use rialto_model::{
    credential::Secret,
    store::{SealedSecret, SecretStore, StoreError},
};
use rusqlite::{Connection, Row, params};

use super::{SqliteStore, column::At, meta, writer::Write};
use crate::error::SqliteError;

/// A change of the secrets.
pub(super) enum SecretWrite {
    /// These, in place of those with the same names.
    Put(Vec<SealedSecret>),
    /// One less.
    Remove(String),
}

#[async_trait]
impl SecretStore for SqliteStore {
    async fn secrets(&self) -> Result<Vec<SealedSecret>, StoreError> {
        self.read(all).await
    }

    async fn put_secrets(&self, secrets: Vec<SealedSecret>) -> Result<u64, StoreError> {
        self.change(Write::Secret(SecretWrite::Put(secrets))).await
    }

    async fn remove_secret(&self, name: &str) -> Result<Option<u64>, StoreError> {
        self.write(Write::Secret(SecretWrite::Remove(name.to_owned()))).await
    }

    async fn seed(&self, name: &str, fresh: &Secret) -> Result<Secret, StoreError> {
        let (name, fresh) = (format!("seed {name}"), fresh.clone());
        self.transact(move |connection| Ok(Secret::from(meta::text_or(connection, &name, fresh.expose())?)))
            .await
    }
}

/// Writes it. Returns whether anything has changed.
pub(super) fn write(connection: &Connection, write: &SecretWrite) -> Result<bool, SqliteError> {
    match write {
        SecretWrite::Put(secrets) => {
            let mut put = connection.prepare_cached(
                "INSERT OR REPLACE INTO secrets (name, key, text, set_at) VALUES (?1, ?2, ?3, ?4)",
            )?;
            for secret in secrets {
                put.execute(params![secret.name, secret.key, secret.text, At(secret.set_at)])?;
            }
            Ok(true)
        }
        SecretWrite::Remove(name) => {
            let mut remove = connection.prepare_cached("DELETE FROM secrets WHERE name = ?1")?;
            Ok(remove.execute([name])? > 0)
        }
    }
}

/// All of them, in the order of their names.
pub(super) fn all(connection: &Connection) -> Result<Vec<SealedSecret>, SqliteError> {
    let mut select = connection.prepare_cached("SELECT * FROM secrets ORDER BY name")?;
    let secrets = select.query_map([], secret)?.collect::<Result<_, _>>()?;
    Ok(secrets)
}

fn secret(row: &Row<'_>) -> rusqlite::Result<SealedSecret> {
    Ok(SealedSecret {
        name: row.get("name")?,
        key: row.get("key")?,
        text: row.get("text")?,
        set_at: row.get::<_, At>("set_at")?.0,
    })
}
