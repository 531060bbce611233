//! Report of a check of everything that is stored.

use std::fmt;

/// Findings listed in a report; more are counted.
const MAX_FINDINGS: usize = 100;

/// Result of a check of a store.
#[derive(Clone, Debug, Default)]
pub struct CheckReport {
    findings: Vec<CheckFinding>,
    unlisted: u64,
    /// Tasks that were read.
    pub tasks: u64,
    /// Audit records whose seals were compared.
    pub audit_records: u64,
}

/// One thing that is wrong with a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckFinding {
    /// Check that found it: `pages`, `files`, `references`, `tasks`, `events`, `audit`, or the name of a table.
    pub check: &'static str,
    /// Description of the problem.
    pub message: String,
}

// === impl CheckReport ===

impl CheckReport {
    /// The first findings, in the order of the checks.
    pub fn findings(&self) -> &[CheckFinding] {
        &self.findings
    }

    /// Number of all findings, those included that are not listed.
    pub fn count(&self) -> u64 {
        self.findings.len() as u64 + self.unlisted
    }

    pub(crate) fn add(&mut self, check: &'static str, message: impl fmt::Display) {
        if self.findings.len() < MAX_FINDINGS {
            self.findings.push(CheckFinding { check, message: message.to_string() });
        } else {
            self.unlisted += 1;
        }
    }

    /// Adds a finding for rows that refer to nothing, if there are any.
    pub(crate) fn add_orphans(&mut self, check: &'static str, count: u64, what: &str) {
        if count > 0 {
            self.add(check, format!("{count} {what}"));
        }
    }
}
