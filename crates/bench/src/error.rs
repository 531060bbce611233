//! Why a run could not be finished.
//!
//! A bench has one user, at the terminal: one error with its context is enough.

use std::error::Error;

/// Why a run could not be finished.
#[derive(Debug, thiserror::Error)]
#[error("{doing}")]
pub(crate) struct BenchError {
    doing: String,
    source: Option<Box<dyn Error + Send + Sync>>,
}

// === impl BenchError ===

impl BenchError {
    /// Error without a cause.
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self { doing: what.into(), source: None }
    }
}

/// Adds context to an error, for `map_err`.
pub(crate) fn context<E: Into<Box<dyn Error + Send + Sync>>>(
    what: impl Into<String>,
) -> impl FnOnce(E) -> BenchError {
    move |source| BenchError { doing: what.into(), source: Some(source.into()) }
}
