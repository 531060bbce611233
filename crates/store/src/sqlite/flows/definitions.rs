//! Workflow definitions.

use rialto_model::{
    call::CallerId,
    flow::Flow,
    ids::{Scope, TokenId},
    store::StoreError,
};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::super::{
    column::{At, Word, scope},
    meta,
};
use crate::error::SqliteError;

/// The last version of each, unless it took the definition away.
pub(super) fn all(connection: &Connection, of: Option<&Scope>) -> Result<Vec<Flow>, SqliteError> {
    let mut select = connection.prepare_cached(
        "SELECT * FROM flow_versions AS f
         WHERE (?1 IS NULL OR (org = ?1 AND project = ?2)) AND text IS NOT NULL
             AND version = (SELECT max(version) FROM flow_versions AS g
                            WHERE g.org = f.org AND g.project = f.project AND g.name = f.name)
         ORDER BY org, project, name",
    )?;
    let (org, project) = (of.map(|of| of.org.as_str()), of.map(|of| of.project.as_str()));
    Ok(select.query_map(params![org, project], flow)?.collect::<rusqlite::Result<_>>()?)
}

/// One version.
pub(super) fn find(
    connection: &Connection,
    of: &Scope,
    name: &str,
    version: Option<u64>,
) -> Result<Option<Flow>, SqliteError> {
    let last = version.map_or_else(|| last(connection, of, name), Ok)?;
    let mut select = connection.prepare_cached(
        "SELECT * FROM flow_versions
         WHERE org = ?1 AND project = ?2 AND name = ?3 AND version = ?4 AND text IS NOT NULL",
    )?;
    Ok(select.query_row(params![of.org.as_str(), of.project.as_str(), name, last], flow).optional()?)
}

/// Adds a version behind the last one. Answers its number, and the generation that this makes.
pub(super) fn put(connection: &Connection, flow: &Flow, expected: u64) -> Result<(u64, u64), SqliteError> {
    let in_force = find(connection, &flow.scope, &flow.name, None)?.map_or(0, |known| known.version);
    if in_force != expected {
        return Err(StoreError::Conflict.into());
    }
    let version = last(connection, &flow.scope, &flow.name)? + 1;
    insert(connection, &Flow { version, ..flow.clone() }, Some(&flow.text))?;
    Ok((version, meta::next_generation(connection)?))
}

/// Takes one away.
pub(super) fn remove(connection: &Connection, of: &Scope, name: &str) -> Result<Option<u64>, SqliteError> {
    let Some(mut known) = find(connection, of, name, None)? else { return Ok(None) };
    known.version += 1;
    insert(connection, &known, None)?;
    Ok(Some(meta::next_generation(connection)?))
}

fn insert(connection: &Connection, flow: &Flow, text: Option<&str>) -> Result<(), SqliteError> {
    let mut insert = connection.prepare_cached(
        "INSERT INTO flow_versions (org, project, name, version, kind, status, text, configured, by, at, token)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
    )?;
    let (org, project) = (flow.scope.org.as_str(), flow.scope.project.as_str());
    insert.execute(params![
        org,
        project,
        flow.name,
        flow.version,
        Word(flow.kind),
        Word(flow.status),
        text,
        flow.configured,
        flow.by.as_str(),
        At(flow.at),
        flow.token.as_ref().map(TokenId::as_str),
    ])?;
    Ok(())
}

/// The number of the last version there ever was.
fn last(connection: &Connection, of: &Scope, name: &str) -> Result<u64, SqliteError> {
    let mut select = connection.prepare_cached(
        "SELECT coalesce(max(version), 0) FROM flow_versions WHERE org = ?1 AND project = ?2 AND name = ?3",
    )?;
    Ok(select.query_row(params![of.org.as_str(), of.project.as_str(), name], |row| row.get(0))?)
}

fn flow(row: &Row<'_>) -> rusqlite::Result<Flow> {
    Ok(Flow {
        scope: scope(row)?,
        name: row.get("name")?,
        kind: row.get::<_, Word<_>>("kind")?.0,
        status: row.get::<_, Word<_>>("status")?.0,
        version: row.get("version")?,
        text: row.get("text")?,
        configured: row.get("configured")?,
        by: CallerId::from(row.get::<_, String>("by")?),
        at: row.get::<_, At>("at")?.0,
        token: row.get::<_, Option<String>>("token")?.map(TokenId::from),
    })
}
