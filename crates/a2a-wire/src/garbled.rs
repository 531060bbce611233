//! Why something could not be read: where, what was expected there, and what stood there instead.

use rialto_model::json::RawJson;
use std::borrow::Cow;

/// Text that is not what it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Garbled {
    /// Where in the document, such as `skills[2].id`. Empty for the document itself.
    pub path: String,
    /// What should have stood there.
    pub expected: Cow<'static, str>,
    /// What stood there.
    pub found: Cow<'static, str>,
}

// === impl Garbled ===

impl Garbled {
    /// Something stands at the document's root that should not.
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

    /// The same, seen from the object that has it as member `name`.
    #[must_use]
    pub(crate) fn at(mut self, name: &str) -> Self {
        let joint = if self.path.is_empty() || self.path.starts_with('[') { "" } else { "." };
        self.path = format!("{name}{joint}{}", self.path);
        self
    }

    /// The same, seen from the list that has it at `index`.
    #[must_use]
    pub(crate) fn at_index(self, index: usize) -> Self {
        self.at(&format!("[{index}]"))
    }
}

impl std::fmt::Display for Garbled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        write!(f, "expected {}, found {}", self.expected, self.found)
    }
}

impl std::error::Error for Garbled {}
