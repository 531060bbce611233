//! Conversion between values and columns.

use jiff::Timestamp;
use rialto_model::{
    ids::{OrgId, ProjectId, Scope},
    store::StoreError,
};
use serde::{
    Serialize,
    de::{DeserializeOwned, IntoDeserializer, value::Error as WordError},
};
use tokio_postgres::{Row, types::FromSqlOwned};

use super::error::PostgresError;

/// A row, read by the names of its columns.
#[derive(Clone, Copy)]
pub(super) struct Cells<'a>(pub(super) &'a Row);

// === impl Cells ===

impl Cells<'_> {
    pub(super) fn get<T: FromSqlOwned>(self, name: &str) -> Result<T, PostgresError> {
        Ok(self.0.try_get(name)?)
    }

    pub(super) fn text(self, name: &str) -> Result<String, PostgresError> {
        self.get(name)
    }

    /// A number that is never below zero.
    pub(super) fn number(self, name: &str) -> Result<u64, PostgresError> {
        let number: i64 = self.get(name)?;
        u64::try_from(number).map_err(|_| PostgresError::corrupt(format!("{name} is {number}")))
    }

    pub(super) fn maybe_number(self, name: &str) -> Result<Option<u64>, PostgresError> {
        self.get::<Option<i64>>(name)?.map(|_| self.number(name)).transpose()
    }

    /// A moment.
    pub(super) fn at(self, name: &str) -> Result<Timestamp, PostgresError> {
        moment(self.get(name)?)
    }

    pub(super) fn maybe_at(self, name: &str) -> Result<Option<Timestamp>, PostgresError> {
        self.get::<Option<i64>>(name)?.map(moment).transpose()
    }

    /// A value of an enum without data, by its name.
    pub(super) fn word<T: DeserializeOwned>(self, name: &str) -> Result<T, PostgresError> {
        parse(&self.text(name)?).map_err(|error| PostgresError::corrupt(format!("{name}: {error}")))
    }

    pub(super) fn maybe_word<T: DeserializeOwned>(self, name: &str) -> Result<Option<T>, PostgresError> {
        self.get::<Option<String>>(name)?.map(|_| self.word(name)).transpose()
    }

    /// Something that is kept as JSON.
    pub(super) fn json<T: DeserializeOwned>(self, name: &str) -> Result<T, PostgresError> {
        serde_json::from_str(&self.text(name)?)
            .map_err(|error| PostgresError::corrupt(format!("{name}: {error}")))
    }

    pub(super) fn maybe_json<T: DeserializeOwned>(self, name: &str) -> Result<Option<T>, PostgresError> {
        self.get::<Option<String>>(name)?.map(|_| self.json(name)).transpose()
    }

    pub(super) fn scope(self) -> Result<Scope, PostgresError> {
        Ok(Scope { org: OrgId::from(self.text("org")?), project: ProjectId::from(self.text("project")?) })
    }
}

/// A moment, as nanoseconds since 1970.
pub(super) fn nanoseconds(moment: Timestamp) -> Result<i64, PostgresError> {
    i64::try_from(moment.as_nanosecond()).map_err(|_| unwritable(format!("the moment {moment}")))
}

pub(super) fn maybe_nanoseconds(moment: Option<Timestamp>) -> Result<Option<i64>, PostgresError> {
    moment.map(nanoseconds).transpose()
}

/// The moment in nanoseconds, or the last one that can be said like that: a search may ask for the year 3000.
pub(super) fn nearest(moment: Timestamp) -> i64 {
    let last = if moment < Timestamp::UNIX_EPOCH { i64::MIN } else { i64::MAX };
    i64::try_from(moment.as_nanosecond()).unwrap_or(last)
}

/// A number that fits a column. Whatever is counted here stays far below where these end.
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Row limit as a parameter.
pub(super) fn limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// The name of a value of an enum without data.
pub(super) fn word<T: Serialize>(value: &T) -> Result<String, PostgresError> {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => Ok(word),
        other => Err(unwritable(format!("{other:?}"))),
    }
}

/// A value as JSON.
pub(super) fn json<T: Serialize>(value: &T) -> Result<String, PostgresError> {
    serde_json::to_string(value).map_err(unwritable)
}

fn unwritable(what: impl std::fmt::Display) -> PostgresError {
    StoreError::Unwritable(what.to_string()).into()
}

fn moment(nanoseconds: i64) -> Result<Timestamp, PostgresError> {
    Timestamp::from_nanosecond(nanoseconds.into()).map_err(PostgresError::corrupt)
}

fn parse<T: DeserializeOwned>(word: &str) -> Result<T, WordError> {
    let word: serde::de::value::StrDeserializer<'_, WordError> = word.into_deserializer();
    T::deserialize(word)
}

#[cfg(test)]
mod tests {
    use rialto_model::{agent::AgentTrust, card::Dialect};

    use super::*;

    #[test]
    fn a_moment_keeps_its_nanoseconds() {
        let noon: Timestamp = "2026-08-01T12:00:00.123456789Z".parse().unwrap();
        assert_eq!(moment(nanoseconds(noon).unwrap()).unwrap(), noon);
    }

    #[test]
    fn a_word_is_the_one_the_model_uses_and_no_other() {
        assert_eq!(parse::<AgentTrust>(&word(&AgentTrust::Trusted).unwrap()), Ok(AgentTrust::Trusted));
        assert_eq!(parse::<Dialect>(&word(&Dialect::V10).unwrap()), Ok(Dialect::V10));
        assert!(parse::<AgentTrust>("friend").is_err());
    }
}
