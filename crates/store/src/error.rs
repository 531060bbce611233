//! Errors of a database, with their fix.

use std::{error::Error, fmt, path::Path, sync::Arc};

use rialto_model::store::StoreError;
use rusqlite::{Error as SqlError, ErrorCode};

/// Location of the database, for messages.
#[derive(Clone, Debug)]
pub(crate) struct DatabaseLocation(Arc<str>);

/// Why a job came to nothing.
#[derive(Debug)]
pub(crate) enum SqliteError {
    /// It was looked at and refused; it has written nothing.
    Refused(StoreError),
    /// The database did not do its part; what the job has written must not stay.
    Broken(SqlError),
}

/// Error of the database with its fix. It can be cloned for all callers that waited for one commit.
#[derive(Clone, Debug)]
pub(crate) struct DatabaseError {
    what: String,
    source: Option<Arc<dyn Error + Send + Sync>>,
}

// === impl DatabaseLocation ===

impl DatabaseLocation {
    /// A file.
    pub(crate) fn file(path: &Path) -> Self {
        Self(path.display().to_string().into())
    }

    /// No file at all.
    pub(crate) fn memory() -> Self {
        Self("the database in memory".into())
    }

    /// Converts the error of a job for its caller.
    pub(crate) fn explain(&self, failure: SqliteError) -> StoreError {
        match failure {
            SqliteError::Refused(error) => error,
            SqliteError::Broken(
                error @ (SqlError::FromSqlConversionFailure(..)
                | SqlError::IntegralValueOutOfRange(..)
                | SqlError::InvalidColumnType(..)
                | SqlError::Utf8Error(..)),
            ) => StoreError::Corrupt(format!("{} ({self})", innermost(&error))),
            SqliteError::Broken(error) if error.sqlite_error_code() == Some(ErrorCode::TooBig) => {
                StoreError::Unwritable(format!("{} ({self})", innermost(&error)))
            }
            SqliteError::Broken(error) => self.fault(error).into(),
        }
    }

    /// Error of an acknowledged write that cannot be flushed.
    pub(crate) fn unwritten(&self, failure: SqliteError) -> DatabaseError {
        match failure {
            SqliteError::Broken(error) => self.fault(error),
            SqliteError::Refused(error) => {
                DatabaseError::new(format!("{self} rejects an acknowledged write"), error)
            }
        }
    }

    /// Error of the database, with its fix.
    pub(crate) fn fault(&self, error: SqlError) -> DatabaseError {
        let what = match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => {
                format!("{self} is not a database; move it away and start again")
            }
            Some(ErrorCode::DatabaseCorrupt) => {
                format!("{self} is damaged; put a backup in its place, or move it away and start again")
            }
            Some(ErrorCode::CannotOpen) => {
                format!("{self} cannot be opened; check that it and its folder may be read and written")
            }
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
                format!("{self} may not be written; check the permissions of the file and its folder")
            }
            Some(ErrorCode::DiskFull) => format!("there is no space left for {self}; free some"),
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                format!("{self} has been locked by another program for too long; find it and stop it")
            }
            _ => format!("{self} could not be used"),
        };
        DatabaseError::new(what, error)
    }
}

impl fmt::Display for DatabaseLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

// === impl SqliteError ===

impl From<SqlError> for SqliteError {
    fn from(error: SqlError) -> Self {
        Self::Broken(error)
    }
}

impl From<StoreError> for SqliteError {
    fn from(error: StoreError) -> Self {
        Self::Refused(error)
    }
}

// === impl DatabaseError ===

impl DatabaseError {
    /// A fault that something else caused.
    pub(crate) fn new(what: impl Into<String>, source: impl Error + Send + Sync + 'static) -> Self {
        Self { what: what.into(), source: Some(Arc::new(source)) }
    }

    /// A fault that nothing else caused.
    pub(crate) fn plain(what: impl Into<String>) -> Self {
        Self { what: what.into(), source: None }
    }

    /// Nobody works for this store any more.
    pub(crate) fn closed() -> Self {
        Self::plain("the store has been closed")
    }
}

impl fmt::Display for DatabaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl Error for DatabaseError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn Error + 'static))
    }
}

impl From<DatabaseError> for StoreError {
    fn from(fault: DatabaseError) -> Self {
        Self::Unavailable(Box::new(fault))
    }
}

/// The cause at the end of the chain: that is where the value is named.
fn innermost(error: &SqlError) -> String {
    let mut last: &dyn Error = error;
    while let Some(next) = last.source() {
        last = next;
    }
    last.to_string()
}
