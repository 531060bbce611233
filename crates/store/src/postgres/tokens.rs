//! Bearer tokens.

use async_trait::async_trait;
use jiff::Timestamp;
use rialto_model::{
    call::CallerId,
    store::{StoreError, Token, TokenStore},
};

use super::{
    PostgresStore, begin,
    column::{Cells, maybe_nanoseconds, nanoseconds, word},
    connection::GenericClient,
    error::PostgresError,
    sql::{self, Value},
};

#[async_trait]
impl TokenStore for PostgresStore {
    async fn tokens(&self) -> Result<Vec<Token>, StoreError> {
        Ok(all(&self.client().await?).await?)
    }

    async fn put_token(&self, token: &Token) -> Result<(), StoreError> {
        let mut client = self.client().await?;
        let transaction = begin(&mut client).await?;
        add(&transaction, token).await?;
        let made = self.commit_change(transaction).await?;
        self.spread(&client, Some(made)).await;
        Ok(())
    }

    async fn revoke_token(&self, id: &str, at: Timestamp) -> Result<Option<u64>, StoreError> {
        let mut client = self.client().await?;
        let transaction = begin(&mut client).await?;
        let is_revoked = revoke(&transaction, id, at).await?;
        let made = self.commit(transaction, is_revoked).await?;
        self.spread(&client, made).await;
        Ok(made)
    }
}

/// Marks one that lets nobody in from now on. Returns whether anything has changed.
pub(super) async fn revoke(
    client: &impl GenericClient,
    id: &str,
    at: Timestamp,
) -> Result<bool, PostgresError> {
    let update = "UPDATE tokens SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL";
    Ok(sql::execute(client, update, &[&id, &nanoseconds(at)?]).await? > 0)
}

/// Adds one.
pub(super) async fn add(client: &impl GenericClient, token: &Token) -> Result<(), PostgresError> {
    if token.session_of.is_some() {
        // Console sessions that ended are of no use to anybody, and each sign-in makes one.
        let delete = "DELETE FROM tokens WHERE session_of IS NOT NULL AND expires_at < $1";
        sql::execute(client, delete, &[&nanoseconds(token.created_at)?]).await?;
    }
    let insert = "
        INSERT INTO tokens (id, hash, org, project, caller, kind, rights, created_at, expires_at, revoked_at,
            created_by, session_of)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)";
    let values: [Value<'_>; 12] = [
        &token.id,
        &token.hash,
        &token.scope.org.as_str(),
        &token.scope.project.as_str(),
        &token.caller.as_str(),
        &word(&token.kind)?,
        &word(&token.rights)?,
        &nanoseconds(token.created_at)?,
        &maybe_nanoseconds(token.expires_at)?,
        &maybe_nanoseconds(token.revoked_at)?,
        &token.created_by,
        &token.session_of,
    ];
    sql::execute(client, insert, &values).await.map(drop).map_err(|failure| {
        failure
            .or_taken("token_id", || format!("the token name {}", token.id))
            .or_taken("token_hash", || "the token itself".to_owned())
    })
}

/// All of them, in the order of their names.
pub(super) async fn all(client: &impl GenericClient) -> Result<Vec<Token>, PostgresError> {
    let rows = sql::rows(client, "SELECT * FROM tokens ORDER BY id", &[]).await?;
    rows.iter().map(|row| token(Cells(row))).collect()
}

fn token(row: Cells<'_>) -> Result<Token, PostgresError> {
    Ok(Token {
        id: row.text("id")?,
        hash: row.text("hash")?,
        scope: row.scope()?,
        caller: CallerId::from(row.text("caller")?),
        kind: row.word("kind")?,
        rights: row.word("rights")?,
        created_at: row.at("created_at")?,
        expires_at: row.maybe_at("expires_at")?,
        revoked_at: row.maybe_at("revoked_at")?,
        created_by: row.get("created_by")?,
        session_of: row.get("session_of")?,
    })
}
