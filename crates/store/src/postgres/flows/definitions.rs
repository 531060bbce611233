//! Workflow definitions.

use rialto_model::{
    call::CallerId,
    flow::Flow,
    ids::{Scope, TokenId},
    store::StoreError,
};
use tokio_postgres::Row;

use super::super::{
    column::{Cells, nanoseconds, signed, word},
    connection::GenericClient,
    error::PostgresError,
    sql::{self, Value},
};

/// The last version of each, unless it took the definition away.
pub(super) async fn all(client: &impl GenericClient, of: Option<&Scope>) -> Result<Vec<Flow>, PostgresError> {
    let select = "
        SELECT * FROM (
            SELECT DISTINCT ON (org, project, name) * FROM flow_versions
            WHERE $1::text IS NULL OR (org = $1 AND project = $2)
            ORDER BY org, project, name, version DESC
        ) AS last WHERE text IS NOT NULL ORDER BY org, project, name";
    let (org, project) = (of.map(|of| of.org.as_str()), of.map(|of| of.project.as_str()));
    sql::rows(client, select, &[&org, &project]).await?.iter().map(flow).collect()
}

/// One version.
pub(super) async fn find(
    client: &impl GenericClient,
    of: &Scope,
    name: &str,
    version: Option<u64>,
) -> Result<Option<Flow>, PostgresError> {
    let select = "
        SELECT * FROM (
            SELECT * FROM flow_versions
            WHERE org = $1 AND project = $2 AND name = $3 AND ($4::bigint IS NULL OR version = $4)
            ORDER BY version DESC LIMIT 1
        ) AS last WHERE text IS NOT NULL";
    let values: [Value<'_>; 4] = [&of.org.as_str(), &of.project.as_str(), &name, &version.map(signed)];
    sql::maybe_row(client, select, &values).await?.as_ref().map(flow).transpose()
}

/// Adds a version behind the last one. Of two that want the same number, the key lets one in.
pub(super) async fn put(
    client: &impl GenericClient,
    flow: &Flow,
    expected: u64,
) -> Result<u64, PostgresError> {
    let in_force = find(client, &flow.scope, &flow.name, None).await?.map_or(0, |known| known.version);
    if in_force != expected {
        return Err(StoreError::Conflict.into());
    }
    let version = last(client, &flow.scope, &flow.name).await? + 1;
    let inserted = insert(client, &Flow { version, ..flow.clone() }, Some(&flow.text)).await;
    inserted.map(|()| version).map_err(|failure| match failure.or_taken("flow_version", String::new) {
        PostgresError::Refused(StoreError::Taken(_)) => StoreError::Conflict.into(),
        failure => failure,
    })
}

/// Takes one away. Returns whether it was there.
pub(super) async fn remove(
    client: &impl GenericClient,
    of: &Scope,
    name: &str,
) -> Result<bool, PostgresError> {
    let Some(mut known) = find(client, of, name, None).await? else { return Ok(false) };
    known.version += 1;
    insert(client, &known, None).await?;
    Ok(true)
}

async fn insert(client: &impl GenericClient, flow: &Flow, text: Option<&str>) -> Result<(), PostgresError> {
    let insert = "
        INSERT INTO flow_versions (org, project, name, version, kind, status, text, configured, by, at, token)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";
    let values: [Value<'_>; 11] = [
        &flow.scope.org.as_str(),
        &flow.scope.project.as_str(),
        &flow.name,
        &signed(flow.version),
        &word(&flow.kind)?,
        &word(&flow.status)?,
        &text,
        &flow.configured,
        &flow.by.as_str(),
        &nanoseconds(flow.at)?,
        &flow.token.as_ref().map(TokenId::as_str),
    ];
    sql::execute(client, insert, &values).await.map(drop)
}

/// The number of the last version there ever was.
async fn last(client: &impl GenericClient, of: &Scope, name: &str) -> Result<u64, PostgresError> {
    let select = "
        SELECT coalesce(max(version), 0) AS version FROM flow_versions
        WHERE org = $1 AND project = $2 AND name = $3";
    let row = sql::row(client, select, &[&of.org.as_str(), &of.project.as_str(), &name]).await?;
    Cells(&row).number("version")
}

fn flow(row: &Row) -> Result<Flow, PostgresError> {
    let row = Cells(row);
    Ok(Flow {
        scope: row.scope()?,
        name: row.text("name")?,
        kind: row.word("kind")?,
        status: row.word("status")?,
        version: row.number("version")?,
        text: row.text("text")?,
        configured: row.get("configured")?,
        by: CallerId::from(row.text("by")?),
        at: row.at("at")?,
        token: row.get::<Option<String>>("token")?.map(TokenId::from),
    })
}
