//! Error of an invalid document: path, expected and actual value.

use rialto_model::json::RawJson;
use std::borrow::Cow;

/// Document that does not match its format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidDocument {
    /// Path in the document, such as `skills[2].id`. Empty for the root.
    pub path: String,
    /// Expected value.
    pub expected: Cow<'static, str>,
    /// Actual value.
    pub found: Cow<'static, str>,
}

// === impl InvalidDocument ===

impl InvalidDocument {
    /// Invalid value at the root.
    pub fn new(expected: impl Into<Cow<'static, str>>, found: impl Into<Cow<'static, str>>) -> Self {
        Self { path: String::new(), expected: expected.into(), found: found.into() }
    }

    pub(crate) fn not_json(error: &serde_json::Error) -> Self {
        let found = format!("text that is not JSON at line {} column {}", error.line(), error.column());
        Self::new("JSON", found)
    }

    pub(crate) fn kind(expected: &'static str, found: RawJson<'_>) -> Self {
        Self::new(expected, found.kind())
    }

    pub(crate) fn missing(expected: &'static str) -> Self {
        Self::new(expected, "nothing")
    }

    /// Prefixes the path with the member `name`.
    #[must_use]
    pub(crate) fn at(mut self, name: &str) -> Self {
        let joint = if self.path.is_empty() || self.path.starts_with('[') { "" } else { "." };
        self.path = format!("{name}{joint}{}", self.path);
        self
    }

    /// Prefixes the path with the list item at `index`.
    #[must_use]
    pub(crate) fn at_index(self, index: usize) -> Self {
        self.at(&format!("[{index}]"))
    }
}

impl std::fmt::Display for InvalidDocument {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        write!(f, "expected {}, found {}", self.expected, self.found)
    }
}

impl std::error::Error for InvalidDocument {}
