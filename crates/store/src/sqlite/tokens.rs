//! Bearer tokens.

use async_trait::async_trait;
use jiff::Timestamp;
use rialto_model::{
    call::CallerId,
    ids::Scope,
    store::{StoreError, Token, TokenStore},
};
use rusqlite::{Connection, Row, params};

use super::{
    SqliteStore,
    column::{At, Word, scope, taken},
    writer::Write,
};
use crate::error::SqliteError;

/// A change of the tokens.
pub(super) enum TokenWrite {
    /// A new one.
    Add(Box<Token>),
    /// One that lets nobody in from now on.
    Revoke {
        /// Name or id.
        id: String,
        /// Now.
        at: Timestamp,
    },
}

#[async_trait]
impl TokenStore for SqliteStore {
    async fn tokens(&self) -> Result<Vec<Token>, StoreError> {
        self.read(all).await
    }

    async fn put_token(&self, token: &Token) -> Result<(), StoreError> {
        self.write(Write::Token(TokenWrite::Add(Box::new(token.clone())))).await.map(drop)
    }

    async fn revoke_token(&self, id: &str, at: Timestamp) -> Result<Option<u64>, StoreError> {
        self.write(Write::Token(TokenWrite::Revoke { id: id.to_owned(), at })).await
    }
}

/// Writes it. Returns whether anything has changed.
pub(super) fn write(connection: &Connection, write: &TokenWrite) -> Result<bool, SqliteError> {
    match write {
        TokenWrite::Add(token) => add(connection, token).map(|()| true),
        TokenWrite::Revoke { id, at } => revoke(connection, id, *at),
    }
}

fn revoke(connection: &Connection, id: &str, at: Timestamp) -> Result<bool, SqliteError> {
    let mut update = connection
        .prepare_cached("UPDATE tokens SET revoked_at = ?2 WHERE id = ?1 AND revoked_at IS NULL")?;
    Ok(update.execute(params![id, At(at)])? > 0)
}

fn add(connection: &Connection, token: &Token) -> Result<(), SqliteError> {
    if token.session_of.is_some() {
        // Console sessions that ended are of no use to anybody, and each sign-in makes one.
        let mut delete = connection
            .prepare_cached("DELETE FROM tokens WHERE session_of IS NOT NULL AND expires_at < ?1")?;
        delete.execute([At(token.created_at)])?;
    }
    let mut insert = connection.prepare_cached(
        "INSERT INTO tokens (id, hash, org, project, caller, kind, rights, created_at, expires_at, revoked_at,
             created_by, session_of)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
    )?;
    let Scope { org, project } = &token.scope;
    let values = params![
        token.id,
        token.hash,
        org.as_str(),
        project.as_str(),
        token.caller.as_str(),
        Word(token.kind),
        Word(token.rights),
        At(token.created_at),
        token.expires_at.map(At),
        token.revoked_at.map(At),
        token.created_by,
        token.session_of,
    ];
    match insert.execute(values) {
        Ok(_) => Ok(()),
        Err(error) if taken(&error, "tokens.id") => {
            Err(StoreError::Taken(format!("the token name {}", token.id)).into())
        }
        Err(error) if taken(&error, "tokens.hash") => {
            Err(StoreError::Taken("the token itself".to_owned()).into())
        }
        Err(error) => Err(error.into()),
    }
}

/// All of them, in the order of their names.
pub(super) fn all(connection: &Connection) -> Result<Vec<Token>, SqliteError> {
    let mut select = connection.prepare_cached("SELECT * FROM tokens ORDER BY id")?;
    let tokens = select.query_map([], token)?.collect::<Result<_, _>>()?;
    Ok(tokens)
}

fn token(row: &Row<'_>) -> rusqlite::Result<Token> {
    Ok(Token {
        id: row.get("id")?,
        hash: row.get("hash")?,
        scope: scope(row)?,
        caller: CallerId::from(row.get::<_, String>("caller")?),
        kind: row.get::<_, Word<_>>("kind")?.0,
        rights: row.get::<_, Word<_>>("rights")?.0,
        created_at: row.get::<_, At>("created_at")?.0,
        expires_at: row.get::<_, Option<At>>("expires_at")?.map(|at| at.0),
        revoked_at: row.get::<_, Option<At>>("revoked_at")?.map(|at| at.0),
        created_by: row.get("created_by")?,
        session_of: row.get("session_of")?,
    })
}
