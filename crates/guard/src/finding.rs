//! What was found: kinds and places, never the text.

use std::{borrow::Cow, fmt, ops::Range};

use serde::Serialize;

use crate::config::Action;

/// One thing that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// The type of the check that found it.
    pub check: &'static str,
    /// What it is.
    pub kind: Cow<'static, str>,
    /// The part of the message it is in, from 0.
    pub part: usize,
    /// Where in that part.
    pub field: Field,
    /// From which byte to which, in that field's text or JSON; none when it is about the whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Range<usize>>,
    /// What is done about it.
    pub action: Action,
}

/// A part's fields that are looked through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Field {
    /// The text, the data or the address.
    Content,
    /// The facts beside it.
    Metadata,
    /// A file's name.
    Filename,
    /// Members that nobody knows.
    Extra,
    /// All parts together.
    Message,
}

/// Everything that was found in a message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Findings {
    /// In the order of places.
    pub found: Vec<Finding>,
    /// Whether there was more than is listed. Such a message is blocked where it would be redacted.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_cut: bool,
}

/// What becomes of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Nothing was found.
    Pass,
    /// It goes on, and it is noted.
    Log,
    /// It goes on with a warning.
    Warn,
    /// It goes on without what was found.
    Redact,
    /// It does not go on.
    Block,
}

// === impl Findings ===

impl Findings {
    /// What becomes of the message: the strictest of what its findings ask for.
    pub fn verdict(&self) -> Verdict {
        self.found.iter().map(|finding| finding.verdict(self.is_cut)).max().unwrap_or(Verdict::Pass)
    }

    /// Whether nothing was found.
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }
}

/// One line for a header or a log: `pii/email, secrets/high-entropy`. Each kind is named once.
impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut named: Vec<(&str, &str)> =
            self.found.iter().map(|finding| (finding.check, finding.kind.as_ref())).collect();
        named.sort_unstable();
        named.dedup();
        for (n, (check, kind)) in named.iter().enumerate() {
            let comma = if n == 0 { "" } else { ", " };
            write!(f, "{comma}{check}/{kind}")?;
        }
        Ok(())
    }
}

// === impl Finding ===

impl Finding {
    /// What is done about it after all: what cannot be cut out is blocked.
    pub fn verdict(&self, is_cut: bool) -> Verdict {
        match self.action {
            Action::Log => Verdict::Log,
            Action::Warn => Verdict::Warn,
            Action::Redact if self.at.is_some() && !is_cut => Verdict::Redact,
            Action::Redact | Action::Block => Verdict::Block,
        }
    }
}
