//! Findings: kinds and ranges, never the text.

use std::{borrow::Cow, fmt, ops::Range};

use serde::Serialize;

use crate::config::CheckAction;

/// Finding of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ContentFinding {
    /// Type of the check.
    pub check: &'static str,
    /// Kind of the finding.
    pub kind: Cow<'static, str>,
    /// Part of the message, from 0.
    pub part: usize,
    /// Field of the part.
    pub field: PartField,
    /// Byte range in that field's text or JSON; none when the finding is about the whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Range<usize>>,
    /// Action.
    pub action: CheckAction,
}

/// Fields of a part that are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PartField {
    /// Text, data or address.
    Content,
    /// Metadata.
    Metadata,
    /// File name.
    Filename,
    /// Unknown members.
    Extra,
    /// All parts together.
    Message,
}

/// Findings of a message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Findings {
    /// Findings, in order.
    pub found: Vec<ContentFinding>,
    /// True if there were more findings than are listed. Such a message is blocked where it would be redacted.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_cut: bool,
}

/// Verdict on a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FindingVerdict {
    /// No finding.
    Pass,
    /// Pass, with a record.
    Log,
    /// Pass with a warning.
    Warn,
    /// Pass with replacements.
    Redact,
    /// Block.
    Block,
}

// === impl Findings ===

impl Findings {
    /// Strictest verdict of all findings.
    pub fn verdict(&self) -> FindingVerdict {
        self.found.iter().map(|finding| finding.verdict(self.is_cut)).max().unwrap_or(FindingVerdict::Pass)
    }

    /// True if there are no findings.
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }
}

/// Text for a header or a log: `pii/email, secrets/high-entropy`. Each kind is named once.
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

// === impl ContentFinding ===

impl ContentFinding {
    /// Verdict on the finding: one that cannot be replaced is blocked.
    pub fn verdict(&self, is_cut: bool) -> FindingVerdict {
        match self.action {
            CheckAction::Log => FindingVerdict::Log,
            CheckAction::Warn => FindingVerdict::Warn,
            CheckAction::Redact if self.at.is_some() && !is_cut => FindingVerdict::Redact,
            CheckAction::Redact | CheckAction::Block => FindingVerdict::Block,
        }
    }
}
