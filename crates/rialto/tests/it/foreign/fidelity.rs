//! What crosses the bridge, and in which form: every kind of thing that one side can say, to every version of the other.
//!
//! Each test fills its half of `docs/FIDELITY.md`, cell by cell, from what real clients saw of real agents, and fails when the page
//! says something else or anything was lost. With `RIALTO_FIDELITY_PAGE` set (`interop/fidelity` does it) the half is written into
//! that file.

mod page;
mod to_a2a;
mod to_mcp;

use std::{fmt, fs, path::PathBuf};

/// The file that is written.
const PAGE: &str = "RIALTO_FIDELITY_PAGE";

/// How well something crossed.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Verdict {
    /// In the form that the other side has for it.
    Exact(&'static str),
    /// Everything is there, in a lesser form.
    Degraded(&'static str),
    /// One of the two sides has no such thing.
    Impossible(&'static str),
    /// It did not arrive.
    Lost(String),
}

/// One thing that crosses: how each who says it (a line) reached each who hears it (a column).
struct Row {
    title: &'static str,
    /// What is done to see it.
    how: &'static str,
    lines: Vec<Vec<Verdict>>,
}

/// One direction.
struct Half {
    /// Which of the page's halves it is.
    name: &'static str,
    lines: Vec<&'static str>,
    columns: Vec<&'static str>,
    rows: Vec<Row>,
}

#[test]
fn what_agents_do_reaches_every_mcp_client() {
    to_mcp::half().hold_against_the_page();
}

#[test]
fn what_mcp_servers_do_reaches_every_a2a_client() {
    to_a2a::half().hold_against_the_page();
}

// === impl Verdict ===

impl Verdict {
    /// What was seen, when it is not what was wanted.
    fn lost(seen: impl fmt::Debug) -> Self {
        Self::Lost(format!("{seen:?}"))
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(form) => write!(f, "exact: {form}"),
            Self::Degraded(how) => write!(f, "*degraded*: {how}"),
            Self::Impossible(why) => write!(f, "impossible: {why}"),
            Self::Lost(seen) => write!(f, "**lost**: {seen}"),
        }
    }
}

// === impl Half ===

impl Half {
    /// Nothing is lost, and the page says just this.
    fn hold_against_the_page(&self) {
        let lost: Vec<String> = self.lost();
        assert!(lost.is_empty(), "{} lost:\n{}", lost.len(), lost.join("\n"));
        let file = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/FIDELITY.md"));
        let seen = page::written(self);
        if let Some(file) = std::env::var_os(PAGE) {
            let text = fs::read_to_string(&file).unwrap();
            fs::write(&file, page::with_half(&text, self.name, &seen)).unwrap();
            return;
        }
        let text = fs::read_to_string(&file).unwrap();
        let told = page::half_of(&text, self.name);
        assert_eq!(
            told, seen,
            "docs/FIDELITY.md says something else: run interop/fidelity, and look at what changed"
        );
    }

    fn lost(&self) -> Vec<String> {
        let mut lost = Vec::new();
        for row in &self.rows {
            for (line, verdicts) in self.lines.iter().zip(&row.lines) {
                for (column, verdict) in self.columns.iter().zip(verdicts) {
                    if let Verdict::Lost(seen) = verdict {
                        lost.push(format!("{}: {line} to {column}: {seen}", row.title));
                    }
                }
            }
        }
        lost
    }
}
