//! Errors of a database server, with their fix.
//!
//! Of what the server says, only its message and its code are passed on: the details behind them repeat the values that
//! were written.

use std::error::Error as _;

use deadpool_postgres::PoolError;
use rialto_model::store::StoreError;
use tokio_postgres::{Error as SqlError, error::SqlState};

use crate::error::DatabaseError;

/// Why something came to nothing.
#[derive(Debug)]
pub(super) enum PostgresError {
    /// It was looked at and refused.
    Refused(StoreError),
    /// The server did not do its part; what was written in the transaction does not stay.
    Broken(SqlError),
    /// There was no connection to be had.
    Unreached(DatabaseError),
}

// === impl PostgresError ===

impl PostgresError {
    /// Something that is stored cannot be read.
    pub(super) fn corrupt(what: impl std::fmt::Display) -> Self {
        Self::Refused(StoreError::Corrupt(what.to_string()))
    }

    /// Returns whether one line among many could have caused it: a connection that broke is no line's fault.
    pub(super) fn may_be_one_lines(&self) -> bool {
        match self {
            Self::Refused(_) => true,
            Self::Broken(error) => error.as_db_error().is_some(),
            Self::Unreached(_) => false,
        }
    }

    /// Error for all callers that waited for one transaction.
    pub(super) fn fault(&self) -> DatabaseError {
        match self {
            Self::Refused(error) => DatabaseError::plain(error.to_string()),
            Self::Broken(error) => fault(error),
            Self::Unreached(fault) => fault.clone(),
        }
    }

    /// Turns a violation of a unique constraint into [`StoreError::Taken`]: `taken` names what `constraint` is
    /// about.
    pub(super) fn or_taken(self, constraint: &str, taken: impl FnOnce() -> String) -> Self {
        match &self {
            Self::Broken(error) if violated(error) == Some(constraint) => {
                Self::Refused(StoreError::Taken(taken()))
            }
            _ => self,
        }
    }
}

impl From<SqlError> for PostgresError {
    fn from(error: SqlError) -> Self {
        Self::Broken(error)
    }
}

impl From<StoreError> for PostgresError {
    fn from(error: StoreError) -> Self {
        Self::Refused(error)
    }
}

impl From<PoolError> for PostgresError {
    fn from(error: PoolError) -> Self {
        match error {
            PoolError::Backend(error) => Self::Broken(error),
            PoolError::Timeout(_) => {
                let what = "all connections to PostgreSQL are in use, and none was free in time; raise [store] connections";
                Self::Unreached(DatabaseError::plain(what))
            }
            PoolError::Closed => Self::Unreached(DatabaseError::closed()),
            other => Self::Unreached(DatabaseError::new("no connection to PostgreSQL could be made", other)),
        }
    }
}

impl From<PostgresError> for StoreError {
    fn from(failure: PostgresError) -> Self {
        match failure {
            PostgresError::Refused(error) => error,
            PostgresError::Broken(error) if is_unreadable(&error) => Self::Corrupt(last_cause(&error)),
            PostgresError::Broken(error) if is_unwritable(&error) => Self::Unwritable(last_cause(&error)),
            failure => failure.fault().into(),
        }
    }
}

/// Error of the server or the connection, with its fix.
fn fault(error: &SqlError) -> DatabaseError {
    let Some(server) = error.as_db_error() else {
        let what =
            "the PostgreSQL server cannot be reached; start it, or mend [store] url (RIALTO_STORE_URL)";
        return DatabaseError::new(what, std::io::Error::other(last_cause(error)));
    };
    let code = server.code();
    let fix = match *code {
        SqlState::INVALID_PASSWORD | SqlState::INVALID_AUTHORIZATION_SPECIFICATION => {
            "PostgreSQL does not let us in; mend the user and the password in [store] url (RIALTO_STORE_URL)"
        }
        SqlState::INVALID_CATALOG_NAME => {
            "PostgreSQL has no such database; make it with `createdb`, or mend [store] url (RIALTO_STORE_URL)"
        }
        SqlState::INSUFFICIENT_PRIVILEGE => {
            "PostgreSQL does not let our user do that; make it the owner of the database"
        }
        SqlState::TOO_MANY_CONNECTIONS => {
            "PostgreSQL has no connection left; raise its max_connections, or lower [store] connections"
        }
        SqlState::DISK_FULL => "PostgreSQL has no space left on its disk; free some",
        SqlState::READ_ONLY_SQL_TRANSACTION => {
            "PostgreSQL may only be read here; name the primary server in [store] url (RIALTO_STORE_URL)"
        }
        SqlState::CANNOT_CONNECT_NOW | SqlState::ADMIN_SHUTDOWN | SqlState::CRASH_SHUTDOWN => {
            "PostgreSQL is starting or stopping; wait a moment, or start it"
        }
        SqlState::INVALID_SQL_STATEMENT_NAME | SqlState::DUPLICATE_PSTATEMENT => {
            "a pooler between this process and PostgreSQL does not keep prepared statements; set [store] pooler = true"
        }
        _ => "PostgreSQL did not do its part",
    };
    let said = format!("{} ({})", server.message(), code.code());
    DatabaseError::new(fix, std::io::Error::other(said))
}

/// The constraint that a row has violated by being the second.
fn violated(error: &SqlError) -> Option<&str> {
    let server = error.as_db_error().filter(|server| *server.code() == SqlState::UNIQUE_VIOLATION)?;
    server.constraint()
}

/// Returns whether the server does not take a value: a data exception (class 22), or one beyond its limits (class 54).
fn is_unwritable(error: &SqlError) -> bool {
    error.code().is_some_and(|code| ["22", "54"].iter().any(|class| code.code().starts_with(class)))
}

/// Returns whether a value in a column was not what it should be.
fn is_unreadable(error: &SqlError) -> bool {
    error.as_db_error().is_none() && error.to_string().starts_with("error deserializing column")
}

/// The cause at the end of the chain: that is where it is named.
fn last_cause(error: &SqlError) -> String {
    let mut cause = error.source();
    let mut text = error.to_string();
    while let Some(next) = cause {
        text = next.to_string();
        cause = next.source();
    }
    text
}
