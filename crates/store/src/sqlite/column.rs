//! Conversion between values and columns, and unique constraint errors.

use jiff::Timestamp;
use rialto_model::ids::{OrgId, ProjectId, Scope};
use rusqlite::{
    ErrorCode, Row, ToSql,
    types::{FromSql, FromSqlError, FromSqlResult, ToSqlOutput, ValueRef},
};
use serde::{
    Serialize,
    de::{DeserializeOwned, IntoDeserializer, value::Error as WordError},
};

/// A moment, as nanoseconds since 1970.
#[derive(Clone, Copy)]
pub(super) struct At(pub(super) Timestamp);

/// A value of an enum without data, as its name.
#[derive(Clone, Copy)]
pub(super) struct Word<T>(pub(super) T);

// === impl At ===

impl ToSql for At {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let nanoseconds = i64::try_from(self.0.as_nanosecond())
            .map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))?;
        Ok(ToSqlOutput::from(nanoseconds))
    }
}

impl FromSql for At {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let nanoseconds = value.as_i64()?;
        Timestamp::from_nanosecond(nanoseconds.into()).map(Self).map_err(FromSqlError::other)
    }
}

// === impl Word ===

impl<T: Serialize> ToSql for Word<T> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        match serde_json::to_value(&self.0) {
            Ok(serde_json::Value::String(word)) => Ok(ToSqlOutput::from(word)),
            other => Err(rusqlite::Error::ToSqlConversionFailure(
                format!("not a word of its own: {other:?}").into(),
            )),
        }
    }
}

impl<T: DeserializeOwned> FromSql for Word<T> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let word: serde::de::value::StrDeserializer<'_, WordError> = value.as_str()?.into_deserializer();
        T::deserialize(word).map(Self).map_err(FromSqlError::other)
    }
}

/// The scope of a row.
pub(super) fn scope(row: &Row<'_>) -> rusqlite::Result<Scope> {
    Ok(Scope {
        org: OrgId::from(row.get::<_, String>("org")?),
        project: ProjectId::from(row.get::<_, String>("project")?),
    })
}

/// Returns whether a row was refused because `column` (`table.column`, the last of its key) already holds the value.
pub(super) fn taken(error: &rusqlite::Error, column: &str) -> bool {
    match error {
        rusqlite::Error::SqliteFailure(failure, Some(message)) => {
            failure.code == ErrorCode::ConstraintViolation && message.ends_with(column)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use rialto_model::{agent::AgentTrust, card::Dialect};
    use rusqlite::Connection;

    use super::*;

    fn through_a_column<T: ToSql + FromSql>(value: &T) -> T {
        let connection = Connection::open_in_memory().unwrap();
        connection.query_row("SELECT ?1", [value], |row| row.get(0)).unwrap()
    }

    #[test]
    fn a_moment_keeps_its_nanoseconds() {
        let moment = "2026-08-01T12:00:00.123456789Z".parse().unwrap();
        assert_eq!(through_a_column(&At(moment)).0, moment);
    }

    #[test]
    fn a_word_is_the_one_the_model_uses() {
        assert_eq!(through_a_column(&Word(AgentTrust::Trusted)).0, AgentTrust::Trusted);
        assert_eq!(through_a_column(&Word(Dialect::V10)).0, Dialect::V10);
    }

    #[test]
    fn a_word_nobody_knows_is_an_error() {
        let connection = Connection::open_in_memory().unwrap();
        assert!(
            connection.query_row("SELECT 'friend'", [], |row| row.get::<_, Word<AgentTrust>>(0)).is_err()
        );
    }
}
