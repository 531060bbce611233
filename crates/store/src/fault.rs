//! What can be wrong with a database, told to the person who can mend it.

use std::{error::Error, fmt, path::Path, sync::Arc};

use rialto_model::store::StoreError;
use rusqlite::{Error as SqlError, ErrorCode};

/// Where the database is, as it is called in messages.
#[derive(Clone, Debug)]
pub(crate) struct Place(Arc<str>);

/// Why a job came to nothing.
#[derive(Debug)]
pub(crate) enum Snag {
    /// It was looked at and refused; it has written nothing.
    Refused(StoreError),
    /// The database did not do its part; what the job has written must not stay.
    Broken(SqlError),
}

/// A fault with its fix. It can be told to all who waited for the same commit.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    what: String,
    source: Option<Arc<dyn Error + Send + Sync>>,
}

// === impl Place ===

impl Place {
    /// A file.
    pub(crate) fn file(path: &Path) -> Self {
        Self(path.display().to_string().into())
    }

    /// No file at all.
    pub(crate) fn memory() -> Self {
        Self("the database in memory".into())
    }

    /// What the caller is told about a job that came to nothing.
    pub(crate) fn explain(&self, snag: Snag) -> StoreError {
        match snag {
            Snag::Refused(error) => error,
            Snag::Broken(
                error @ (SqlError::FromSqlConversionFailure(..)
                | SqlError::IntegralValueOutOfRange(..)
                | SqlError::InvalidColumnType(..)
                | SqlError::Utf8Error(..)),
            ) => StoreError::Corrupt(format!("{} ({self})", innermost(&error))),
            Snag::Broken(error) if error.sqlite_error_code() == Some(ErrorCode::TooBig) => {
                StoreError::Unwritable(format!("{} ({self})", innermost(&error)))
            }
            Snag::Broken(error) => self.fault(error).into(),
        }
    }

    /// What is wrong when something that was acknowledged cannot be written.
    pub(crate) fn unwritten(&self, snag: Snag) -> Fault {
        match snag {
            Snag::Broken(error) => self.fault(error),
            Snag::Refused(error) => Fault::new(format!("{self} does not take what was noted"), error),
        }
    }

    /// What is wrong with the database, and how to mend it.
    pub(crate) fn fault(&self, error: SqlError) -> Fault {
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
        Fault::new(what, error)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

// === impl Snag ===

impl From<SqlError> for Snag {
    fn from(error: SqlError) -> Self {
        Self::Broken(error)
    }
}

impl From<StoreError> for Snag {
    fn from(error: StoreError) -> Self {
        Self::Refused(error)
    }
}

// === impl Fault ===

impl Fault {
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

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl Error for Fault {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn Error + 'static))
    }
}

impl From<Fault> for StoreError {
    fn from(fault: Fault) -> Self {
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
