//! Bearer tokens that may come in.

use rialto_model::{
    call::CallerId,
    ids::Scope,
    store::{StoreError, Token},
};
use rusqlite::{Connection, Row, params};

use super::column::{At, scope, taken};
use crate::fault::Snag;

pub(super) fn add(connection: &Connection, token: &Token) -> Result<(), Snag> {
    let mut insert = connection.prepare_cached(
        "INSERT INTO tokens (id, hash, org, project, caller, created_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?;
    let Scope { org, project } = &token.scope;
    let values = params![
        token.id,
        token.hash,
        org.as_str(),
        project.as_str(),
        token.caller.as_str(),
        At(token.created_at)
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
pub(super) fn all(connection: &Connection) -> Result<Vec<Token>, Snag> {
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
        created_at: row.get::<_, At>("created_at")?.0,
    })
}
