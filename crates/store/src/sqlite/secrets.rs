//! Agents' secrets, as somebody else has sealed them.

use rialto_model::store::Sealed;
use rusqlite::{Connection, Row, params};

use super::column::At;
use crate::fault::Snag;

/// A change of the secrets.
pub(super) enum SecretWrite {
    /// These, in place of those with the same names.
    Put(Vec<Sealed>),
    /// One less.
    Remove(String),
}

/// Writes it. Answers whether anything has changed.
pub(super) fn write(connection: &Connection, write: &SecretWrite) -> Result<bool, Snag> {
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
pub(super) fn all(connection: &Connection) -> Result<Vec<Sealed>, Snag> {
    let mut select = connection.prepare_cached("SELECT * FROM secrets ORDER BY name")?;
    let secrets = select.query_map([], secret)?.collect::<Result<_, _>>()?;
    Ok(secrets)
}

fn secret(row: &Row<'_>) -> rusqlite::Result<Sealed> {
    Ok(Sealed {
        name: row.get("name")?,
        key: row.get("key")?,
        text: row.get("text")?,
        set_at: row.get::<_, At>("set_at")?.0,
    })
}
