//! Why a run could not be finished.
//!
//! A bench has one reader, who sits at the terminal: one error that says what was being done is enough.

use std::error::Error;

/// Why a run could not be finished.
#[derive(Debug, thiserror::Error)]
#[error("{doing}")]
pub(crate) struct Trouble {
    doing: String,
    source: Option<Box<dyn Error + Send + Sync>>,
}

// === impl Trouble ===

impl Trouble {
    /// Trouble that nothing else caused.
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self { doing: what.into(), source: None }
    }
}

/// For `map_err`: what was being done when the error came.
pub(crate) fn during<E: Into<Box<dyn Error + Send + Sync>>>(
    what: impl Into<String>,
) -> impl FnOnce(E) -> Trouble {
    move |source| Trouble { doing: what.into(), source: Some(source.into()) }
}
