//! What is wrong with a workflow, told the way a compiler does.
//!
//! All that is wrong is told at once, in the order of the file: whoever mends one line should not have to come back for the next.

use std::fmt::{self, Write};

use serde::Serialize;

use crate::definition::Place;

/// More than this are not told: a file that is wrong all over is wrong in one way.
const MOST: usize = 100;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// Where.
    #[serde(flatten)]
    pub place: Place,
    /// What sort of thing, for programs.
    pub code: Code,
    /// What is wrong and what helps, for people.
    pub message: String,
}

/// Everything that is wrong with one file; never empty where it is an error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problems {
    found: Vec<Problem>,
    /// Those beyond the most that are told.
    more: usize,
}

/// What sort of thing is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Code {
    /// The file is no YAML or JSON, or more of it than is read.
    Syntax,
    /// Nobody knows a key.
    UnknownKey,
    /// A key stands twice.
    DuplicateKey,
    /// A key is missing.
    MissingKey,
    /// A value is of another type than it must be.
    WrongType,
    /// A value is of the right type and still none that is allowed.
    BadValue,
    /// Nobody knows a sort of node.
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

// === impl Problems ===

impl Problems {
    /// Each of them, in the order of the file.
    pub fn iter(&self) -> impl Iterator<Item = &Problem> {
        self.found.iter()
    }

    /// Whether nothing is wrong.
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// How many there are, told or not.
    pub fn len(&self) -> usize {
        self.found.len() + self.more
    }

    /// All of them as lines, each with the line of the file that it is about.
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

    pub(crate) fn add(&mut self, place: Place, code: Code, message: impl Into<String>) {
        if self.found.len() < MOST {
            self.found.push(Problem { place, code, message: message.into() });
        } else {
            self.more += 1;
        }
    }

    /// One problem alone.
    pub(crate) fn one(place: Place, code: Code, message: impl Into<String>) -> Self {
        let mut problems = Self::default();
        problems.add(place, code, message);
        problems
    }

    pub(crate) fn sort(&mut self) {
        self.found.sort_by_key(|problem| problem.place);
    }
}

impl fmt::Display for Problems {
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

impl std::error::Error for Problems {}

/// The line itself, and a mark below the place.
fn excerpt(out: &mut String, text: &str, place: Place) {
    let Some(line) = place.line.checked_sub(1).and_then(|line| text.lines().nth(line as usize)) else {
        return;
    };
    let before = line.chars().take(place.column.saturating_sub(1) as usize);
    // A tab stays a tab, so that the mark stands where the place is seen.
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
        let mut problems = Problems::default();
        problems.add(Place { line: 2, column: 3 }, Code::UnknownKey, "nobody knows \"x\"");
        problems.add(Place { line: 9, column: 1 }, Code::Syntax, "beyond the end");
        let told = problems.render("flow.yaml", "a: 1\n  x: 2\n");
        let expected = "flow.yaml:2:3: error: nobody knows \"x\"\n  2 |   x: 2\n    |   ^\n\
                        flow.yaml:9:1: error: beyond the end\n";
        assert_eq!(told, expected);
    }

    #[test]
    fn too_many_are_counted() {
        let mut problems = Problems::default();
        for _ in 0..MOST + 5 {
            problems.add(Place::default(), Code::Cycle, "again");
        }
        assert_eq!((problems.iter().count(), problems.len()), (MOST, MOST + 5));
        assert!(problems.to_string().ends_with("\nand 5 more"));
    }
}
