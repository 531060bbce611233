//! Statements: prepared once per connection, or sent whole where a pooler lies between ([`StatementMode`]).

use futures::TryStreamExt;
use tokio_postgres::{
    Row, RowStream,
    types::{ToSql, Type},
};

use super::{
    connection::{GenericClient, StatementMode},
    error::PostgresError,
};

/// A value that goes into a statement.
pub(super) type Value<'a> = &'a dyn SqlValue;

/// A value with the type that it has in the database: a statement without a name is sent with the types of its values.
pub(super) trait SqlValue: Sync {
    fn value(&self) -> &(dyn ToSql + Sync);
    fn sql_type(&self) -> Type;
}

/// A type of Rust with the type that stands for it in the database.
pub(super) trait SqlType {
    const TYPE: Type;
    const ARRAY: Type;
}

impl SqlType for bool {
    const TYPE: Type = Type::BOOL;
    const ARRAY: Type = Type::BOOL_ARRAY;
}

impl SqlType for i32 {
    const TYPE: Type = Type::INT4;
    const ARRAY: Type = Type::INT4_ARRAY;
}

impl SqlType for i64 {
    const TYPE: Type = Type::INT8;
    const ARRAY: Type = Type::INT8_ARRAY;
}

impl SqlType for f64 {
    const TYPE: Type = Type::FLOAT8;
    const ARRAY: Type = Type::FLOAT8_ARRAY;
}

impl SqlType for &str {
    const TYPE: Type = Type::TEXT;
    const ARRAY: Type = Type::TEXT_ARRAY;
}

impl SqlType for String {
    const TYPE: Type = Type::TEXT;
    const ARRAY: Type = Type::TEXT_ARRAY;
}

impl SqlType for &[u8] {
    const TYPE: Type = Type::BYTEA;
    const ARRAY: Type = Type::BYTEA_ARRAY;
}

impl SqlType for Vec<u8> {
    const TYPE: Type = Type::BYTEA;
    const ARRAY: Type = Type::BYTEA_ARRAY;
}

impl<T: SqlType> SqlType for Option<T> {
    const TYPE: Type = T::TYPE;
    const ARRAY: Type = T::ARRAY;
}

impl<T: SqlType> SqlType for Vec<T> {
    const TYPE: Type = T::ARRAY;
    const ARRAY: Type = T::ARRAY;
}

impl<T: SqlType + ToSql + Sync> SqlValue for T {
    fn value(&self) -> &(dyn ToSql + Sync) {
        self
    }

    fn sql_type(&self) -> Type {
        T::TYPE
    }
}

/// All rows.
pub(super) async fn rows(
    client: &impl GenericClient,
    sql: &str,
    values: &[Value<'_>],
) -> Result<Vec<Row>, PostgresError> {
    Ok(stream(client, sql, values).await?.try_collect().await?)
}

/// The row, if there is one.
pub(super) async fn maybe_row(
    client: &impl GenericClient,
    sql: &str,
    values: &[Value<'_>],
) -> Result<Option<Row>, PostgresError> {
    Ok(rows(client, sql, values).await?.into_iter().next())
}

/// The one row.
pub(super) async fn row(
    client: &impl GenericClient,
    sql: &str,
    values: &[Value<'_>],
) -> Result<Row, PostgresError> {
    let row = maybe_row(client, sql, values).await?;
    row.ok_or_else(|| PostgresError::corrupt("a table has no row where it must have one"))
}

/// The rows, one after the other as they come.
pub(super) async fn stream(
    client: &impl GenericClient,
    sql: &str,
    values: &[Value<'_>],
) -> Result<RowStream, PostgresError> {
    let (connection, prepared, mode) = client.parts();
    Ok(match mode {
        StatementMode::Named => {
            let statement = prepared.prepare(connection, sql).await?;
            connection.query_raw(&statement, values.iter().map(|value| value.value())).await?
        }
        StatementMode::Unnamed => connection.query_typed_raw(sql, typed(values)).await?,
    })
}

/// Executes a statement and returns the number of changed rows.
pub(super) async fn execute(
    client: &impl GenericClient,
    sql: &str,
    values: &[Value<'_>],
) -> Result<u64, PostgresError> {
    let (connection, prepared, mode) = client.parts();
    Ok(match mode {
        StatementMode::Named => {
            let statement = prepared.prepare(connection, sql).await?;
            connection.execute_raw(&statement, values.iter().map(|value| value.value())).await?
        }
        StatementMode::Unnamed => {
            let typed: Vec<_> = typed(values).collect();
            connection.execute_typed(sql, &typed).await?
        }
    })
}

/// Prepares a statement if this connection uses names and has not prepared it before.
pub(super) async fn prepare(client: &impl GenericClient, sql: &str) -> Result<(), PostgresError> {
    let (connection, prepared, mode) = client.parts();
    if mode == StatementMode::Named {
        prepared.prepare(connection, sql).await?;
    }
    Ok(())
}

fn typed<'a>(values: &'a [Value<'_>]) -> impl ExactSizeIterator<Item = (&'a (dyn ToSql + Sync), Type)> {
    values.iter().map(|value| (value.value(), value.sql_type()))
}
