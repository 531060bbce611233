//! Statements, prepared once per connection.

use deadpool_postgres::GenericClient;
use tokio_postgres::{Row, types::ToSql};

use super::snag::Snag;

/// A value that goes into a statement.
pub(super) type Value<'a> = &'a (dyn ToSql + Sync);

/// All rows.
pub(super) async fn rows(
    client: &impl GenericClient,
    sql: &str,
    values: &[Value<'_>],
) -> Result<Vec<Row>, Snag> {
    let statement = client.prepare_cached(sql).await?;
    Ok(client.query(&statement, values).await?)
}

/// The row, if there is one.
pub(super) async fn maybe_row(
    client: &impl GenericClient,
    sql: &str,
    values: &[Value<'_>],
) -> Result<Option<Row>, Snag> {
    let statement = client.prepare_cached(sql).await?;
    Ok(client.query_opt(&statement, values).await?)
}

/// The one row.
pub(super) async fn row(client: &impl GenericClient, sql: &str, values: &[Value<'_>]) -> Result<Row, Snag> {
    let statement = client.prepare_cached(sql).await?;
    Ok(client.query_one(&statement, values).await?)
}

/// How many rows it has changed.
pub(super) async fn execute(
    client: &impl GenericClient,
    sql: &str,
    values: &[Value<'_>],
) -> Result<u64, Snag> {
    let statement = client.prepare_cached(sql).await?;
    Ok(client.execute(&statement, values).await?)
}
