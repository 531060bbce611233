//! Problems of a workflow definition, reported as a compiler does.
//!
//! All problems are reported at once, in the order of the file.

use std::fmt::{self, Write};

use serde::Serialize;

use crate::definition::SourcePosition;

/// Maximum number of problems that are reported; more are only counted.
const MAX_REPORTED_PROBLEMS: usize = 100;

/// Problem of a definition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DefinitionProblem {
    /// Position in the file.
    #[serde(flatten)]
    pub place: SourcePosition,
    /// Code, for programs.
    pub code: ProblemCode,
    /// Message for people, with a hint.
    pub message: String,
}

/// All problems of one file; never empty as an error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DefinitionProblems {
    found: Vec<DefinitionProblem>,
    /// Number of problems beyond the reported ones.
    more: usize,
}

/// Code of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProblemCode {
    /// The file is no YAML or JSON, or more of it than is read.
    Syntax,
    /// Unknown key.
    UnknownKey,
    /// Duplicate key.
    DuplicateKey,
    /// A key is missing.
    MissingKey,
    /// A value is of another type than it must be.
    WrongType,
    /// A value is of the right type and still none that is allowed.
    BadValue,
    /// Unknown type of node.
    UnknownKind,
    /// Two nodes are called alike.
    DuplicateId,
    /// A node needs one that is not there.
    UnknownNode,
    /// Nodes wait for each other.
    Cycle,
    /// A node can never run.
    Unreachable,
    /// A reference leads nowhere.
    BadReference,
    /// A condition cannot be read.
    BadCondition,
    /// A schedule is none.
    BadSchedule,
    /// A length of time is none.
    BadDuration,
}

// === impl DefinitionProblems ===

impl DefinitionProblems {
    /// Each of them, in the order of the file.
    pub fn iter(&self) -> impl Iterator<Item = &DefinitionProblem> {
        self.found.iter()
    }

    /// True if there are no problems.
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Number of problems, reported or not.
    pub fn len(&self) -> usize {
        self.found.len() + self.more
    }

    /// Renders each problem with its line of the file.
    pub fn render(&self, file: &str, text: &str) -> String {
        let mut out = String::new();
        for problem in &self.found {
            let _ = writeln!(out, "{file}:{}: error: {}", problem.place, problem.message);
            excerpt(&mut out, text, problem.place);
        }
        if self.more > 0 {
            let _ = writeln!(out, "{file}: error: and {} more", self.more);
        }
        out
    }

    pub(crate) fn add(&mut self, place: SourcePosition, code: ProblemCode, message: impl Into<String>) {
        if self.is_full() {
            self.more += 1;
        } else {
            self.found.push(DefinitionProblem { place, code, message: message.into() });
        }
    }

    /// True if further problems are only counted.
    pub(crate) fn is_full(&self) -> bool {
        self.found.len() >= MAX_REPORTED_PROBLEMS
    }

    /// A single problem.
    pub(crate) fn single(place: SourcePosition, code: ProblemCode, message: impl Into<String>) -> Self {
        let mut problems = Self::default();
        problems.add(place, code, message);
        problems
    }

    pub(crate) fn sort(&mut self) {
        self.found.sort_by_key(|problem| problem.place);
    }
}

impl fmt::Display for DefinitionProblems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, problem) in self.found.iter().enumerate() {
            let gap = if at == 0 { "" } else { "\n" };
            write!(f, "{gap}{}: {}", problem.place, problem.message)?;
        }
        if self.more > 0 {
            write!(f, "\nand {} more", self.more)?;
        }
        Ok(())
    }
}

impl std::error::Error for DefinitionProblems {}

/// The line itself, and a mark below the place.
fn excerpt(out: &mut String, text: &str, place: SourcePosition) {
    let Some(line) = place.line.checked_sub(1).and_then(|line| text.lines().nth(line as usize)) else {
        return;
    };
    let before = line.chars().take(place.column.saturating_sub(1) as usize);
    // A tab stays a tab, so that the marker is below its column.
    let space: String = before.map(|c| if c == '\t' { c } else { ' ' }).collect();
    let number = place.line.to_string();
    let _ = writeln!(out, "  {number} | {line}");
    let _ = writeln!(out, "  {:width$} | {space}^", "", width = number.len());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_told_like_a_compiler_tells_them() {
        let mut problems = DefinitionProblems::default();
        problems.add(SourcePosition { line: 2, column: 3 }, ProblemCode::UnknownKey, "nobody knows \"x\"");
        problems.add(SourcePosition { line: 9, column: 1 }, ProblemCode::Syntax, "beyond the end");
        let told = problems.render("flow.yaml", "a: 1\n  x: 2\n");
        let expected = "flow.yaml:2:3: error: nobody knows \"x\"\n  2 |   x: 2\n    |   ^\n\
                        flow.yaml:9:1: error: beyond the end\n";
        assert_eq!(told, expected);
    }

    #[test]
    fn too_many_are_counted() {
        let mut problems = DefinitionProblems::default();
        for _ in 0..MAX_REPORTED_PROBLEMS + 5 {
            problems.add(SourcePosition::default(), ProblemCode::Cycle, "again");
        }
        assert_eq!(
            (problems.iter().count(), problems.len()),
            (MAX_REPORTED_PROBLEMS, MAX_REPORTED_PROBLEMS + 5)
        );
        assert!(problems.to_string().ends_with("\nand 5 more"));
    }
}
